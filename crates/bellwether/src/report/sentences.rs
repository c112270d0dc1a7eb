//! What the numbers of a report come to, in sentences: those that head the page and its sections, and the text.

use std::time::Duration;

use bellwether_statistics::Share;
use bellwether_statistics::distributions::normal_tail;
use bellwether_statistics::mean::mean;
use bellwether_statistics::{CONFIDENCE, ClusteredShare, ShareDifference};
use chrono::NaiveDate;

use super::calendar::{Axis, Step};
use super::histogram::Histogram;
use super::numbers::{Agreement, ColumnNumbers, Coverage, Numbers, PairNumbers, SectorNumbers, Totals, WindowNumbers};
use super::{Report, Since};
use crate::audit::answers::{AnsweredRun, Answers};
use crate::audit::revisions::{AgeGroup, Revisions, Rewrites};
use crate::export::VersionShape;
use crate::interface::Ticker;
use crate::text::human::{count_of, group_digits, percent, portion, round, span, took};

/// The most files and tickers that are named.
const NAMED: usize = 4;

impl Report {
    /// What the dataset comes to: what was published, since when it has been observed, what was rewritten, and whether its
    /// skill was measured.
    pub fn verdict(&self) -> Vec<String> {
        let rows = self.count_of_rows(self.facts.rows, "");
        let published = format!("{rows} of {}, {}.", tickers(self.facts.tickers.len()), self.range());
        let mut verdict = vec![published, self.standing(), format!("{}.", self.rewrite_finding())];
        let why = match &self.skill {
            _ if !self.has_signals() => return verdict,
            Some(Ok(skill)) => {
                verdict.extend(skill.verdict());
                return verdict;
            }
            Some(Err(why)) => format!("was not measured: {why}."),
            None if self.facts.seen_live == 0 => {
                "cannot be told yet: no signal was seen live, and the definition has no `[prices]`.".to_owned()
            }
            None => "was not measured: the definition has no `[prices]`.".to_owned(),
        };
        verdict.push(format!("Whether it predicts {why}"));
        verdict
    }

    /// What its rows are.
    fn noun(&self) -> &'static str {
        if self.has_signals() { "signals" } else { "articles" }
    }

    /// A number of rows with their noun: `2 signals`, `1 article more`.
    fn count_of_rows(&self, count: u64, more: &str) -> String {
        let noun = self.noun();
        count_of(count, &noun[..noun.len() - 1], noun) + more
    }

    /// What was observed: since when, how much of it live, and of how much the news is unknown.
    pub(super) fn standing(&self) -> String {
        let (count, noun) = (self.work.runs.len() as u64, self.noun());
        let watch = self.identity.watched.as_ref();
        let since = watch.map(|watch| format!(" since {}", watch.from.date_naive())).unwrap_or_default();
        // In a single run, no change can be seen.
        let over = self.time_observed().filter(|_| count > 1).map(|span| format!(", over {span}")).unwrap_or_default();
        let observed = format!("Observed{since} in {}{over}.", count_of(count, "run", "runs"));
        let (live, rows, within) = (self.facts.seen_live, self.facts.rows, self.identity.live_within);
        let seen = match live {
            0 => format!("All {noun} were first seen later than {within} after their date."),
            _ if live == rows => format!("All {noun} were seen live, within {within} of their date."),
            _ => {
                let (seen, rest) = (portion(live, rows), portion(rows - live, rows));
                format!("{seen} of {noun} were seen live, within {within} of their date; {rest} were first seen later.")
            }
        };
        let unknown = self.numbers.longest_window().map_or(0, |window| window.unknown);
        if unknown == 0 {
            return format!("{observed} {seen}");
        }
        let cut_off = self.work.cut_off.map(|cut_off| {
            let lists = count_of(cut_off.tickers, "list", "lists");
            let articles = count_of(cut_off.articles, "article", "articles");
            format!("the service seems to cut {lists} off at {articles}")
        });
        let unasked = (self.unasked > 0).then(|| format!("it was not asked for {}", tickers(self.unasked as usize)));
        let why: Vec<String> = cut_off.into_iter().chain(unasked).collect();
        let why = if why.is_empty() { String::new() } else { format!(": {}", why.join(", and ")) };
        format!("{observed} {seen} News is unknown for {} of signals{why}.", portion(unknown, rows))
    }

    /// The time from the first answer to the last.
    fn time_observed(&self) -> Option<String> {
        let watch = self.identity.watched.as_ref()?;
        Some(span((watch.until - watch.from).to_std().unwrap_or(Duration::ZERO)))
    }

    /// Number of days with rows.
    pub(super) fn day_count(&self) -> u64 {
        self.facts.days.len() as u64 + self.numbers.undrawn_days
    }

    /// First and last day: `2026-01-05 to 2026-03-31`.
    pub(super) fn range(&self) -> String {
        match self.facts.bounds() {
            Some((first, last)) if first != last => format!("{first} to {last}"),
            Some((only, _)) => only.to_string(),
            None => "no dates".to_owned(),
        }
    }

    /// How fresh and how complete it is, in one line.
    pub(super) fn freshness(&self) -> String {
        let newest = self.facts.bounds().map(|(_, last)| match self.identity.age {
            Some(age) => format!("The newest date is {last}, {} when it was built", age.in_words()),
            None => format!("The newest date is {last}"),
        });
        let gaps = self.has_signals().then(|| self.coverage_finding(&self.numbers.coverage(1)));
        newest.into_iter().chain(gaps).collect::<Vec<_>>().join(". ") + "."
    }

    /// How many tickers have gaps.
    pub(super) fn coverage_finding(&self, coverage: &Coverage) -> String {
        let all = tickers(self.numbers.tickers.len());
        match coverage.incomplete.len() as u64 {
            _ if coverage.axis.starts.is_empty() => "No signals dated between 1900 and 2099".to_owned(),
            0 => format!("No gaps in {all}"),
            some => some_of(some, &all, "gaps"),
        }
    }

    /// A note on the signals that plots over time leave out, if there are any.
    pub(super) fn beyond_the_plots(&self) -> Option<String> {
        let numbers = &self.numbers;
        (numbers.undrawn > 0).then(|| {
            let signals = count_of(numbers.undrawn, "signal is", "signals are");
            let days = count_of(numbers.undrawn_days, "day", "days");
            format!(
                "{signals} dated before 1900 or after 2099, on {days}. They count towards shares and means, but charts over \
                 time and the gap analysis leave them out."
            )
        })
    }

    /// How far sectors are apart, with those that are furthest and whether that is more than noise; `None` if none is known.
    pub(super) fn sector_finding(&self) -> Option<(String, Vec<String>)> {
        let only = self.sectors.iter().find(|sector| sector.name.is_some())?;
        let Some(SectorExtremes { lowest, highest, test }) = SectorExtremes::find(&self.sectors) else {
            return Some((format!("Every ticker with a sector is in {}", only.display_name()), Vec::new()));
        };
        let mut said = vec![format!("Lowest: {}. Highest: {}.", lowest.buying(), highest.buying())];
        let Some(ShareDifference { p, comparisons, .. }) = test else {
            let few = "There are too few tickers to tell whether sectors differ in their share of buys";
            return Some((few.to_owned(), said));
        };
        let size = if p < 0.001 { "p < 0.001".to_owned() } else { format!("p = {p:.3}") };
        let chosen = match comparisons {
            1 => String::new(),
            many => format!(", for the widest of {} differences", group_digits(many)),
        };
        said.push(format!("Welch's test with tickers as clusters gives {size}{chosen}."));
        if p < 1.0 - CONFIDENCE {
            return Some((format!("Buys are {} and {}", lowest.buying(), highest.buying()), said));
        }
        Some(("Sectors differ in their share of buys by no more than noise".to_owned(), said))
    }

    /// The share of signals that have news, and for how many that is unknown; the number of articles without windows.
    pub(super) fn news_finding(&self) -> String {
        let Some(news) = &self.news else { return "This dataset has no news".to_owned() };
        let Some(window) = self.numbers.longest_window() else {
            return count_of(news.articles, "article", "articles");
        };
        let (length, share) = (window.in_words(), portion(window.with_news, self.facts.rows - window.unknown));
        match window.unknown {
            0 => format!("{share} of signals have news within {length}"),
            unknown => {
                let unknown = portion(unknown, self.facts.rows);
                format!("News is unknown for {unknown} of signals; {share} of the others have some within {length}")
            }
        }
    }

    /// Months, or longer, from the first article to the last day; empty without articles that are drawn.
    pub(super) fn news_axis(&self, most: usize) -> Axis {
        let days = self.news.iter().flat_map(|news| news.days.keys());
        let (first, last) = (days.clone().next(), days.chain(self.numbers.days.last()).max());
        let ends: Vec<NaiveDate> = first.into_iter().chain(first.and(last)).copied().collect();
        Axis::new(&ends, Step::Month, most)
    }

    /// A note on the articles that a plot leaves out, if there are any.
    pub(super) fn articles_beyond(&self, drawn: &[u64]) -> Option<String> {
        let beyond = self.news.as_ref()?.articles - drawn.iter().sum::<u64>();
        (beyond > 0).then(|| format!("{} dated outside this plot.", count_of(beyond, "article is", "articles are")))
    }

    /// What the counts of news cover.
    pub(super) fn news_scope(&self) -> Option<String> {
        let news = self.news.as_ref()?;
        let unscored = match news.unscored {
            0 => String::new(),
            count => format!(", {} without a score", group_digits(count)),
        };
        let (reached, all) = (group_digits(news.reached()), tickers(self.facts.tickers.len()));
        let dated = match (news.days.keys().next(), news.days.keys().next_back()) {
            (Some(first), Some(last)) if first != last => format!(", dated {first} to {last}"),
            (Some(only), _) => format!(", dated {only}"),
            _ => String::new(),
        };
        let articles = count_of(news.articles, "article", "articles");
        Some(format!("{articles} about {reached} of {all}{unscored}{dated}, with their latest known scores."))
    }

    /// The revisions, if anything changed.
    pub(super) fn changes(&self) -> Option<&Revisions> {
        self.revisions.as_ref().filter(|found| found.signals.total.changed + found.articles.total.changed > 0)
    }

    /// The share that changed.
    pub(super) fn rewrite_finding(&self) -> String {
        let time = self.time_observed().map(|span| format!(" ({span} from the first answer to the last)"));
        let time = time.unwrap_or_default();
        match self.changes() {
            Some(Revisions { signals, articles, .. }) => {
                let share = |(rewrites, what): (&Rewrites, &str)| match rewrites.total.rate? {
                    _ if rewrites.total.changed == 0 => Some(format!("no {what}")),
                    rate => Some(format!("{} of {what}", percent(rate))),
                };
                let shares = [(signals, "signals"), (articles, "articles")].into_iter().filter_map(share);
                let shares = shares.collect::<Vec<_>>().join(" and ");
                let (first, rest) = shares.split_at(1);
                format!("{}{rest} changed after they were first seen{time}", first.to_uppercase())
            }
            None if self.work.runs.len() == 1 => "Only one run so far: nothing to compare with".to_owned(),
            None => format!("No revisions{time}"),
        }
    }

    /// How many columns have nulls.
    pub(super) fn column_finding(&self) -> String {
        let all = format!("{} columns", group_digits(self.columns.len() as u64));
        match self.columns.iter().filter(|column| column.nulls > 0).count() as u64 {
            0 => format!("No nulls in {all}"),
            some => some_of(some, &all, "nulls"),
        }
    }

    /// How to load the version, and how to see what changed since the one before.
    pub(super) fn commands(&self) -> Vec<String> {
        let Some(version) = &self.identity.version else { return Vec::new() };
        let mut commands: Vec<String> = version.files.iter().take(NAMED).cloned().collect();
        if version.files.len() > NAMED {
            commands.push(format!("… and {} more files", group_digits((version.files.len() - NAMED) as u64)));
        }
        commands.push(format!("bellwether.load(\"{}\")", version.reference));
        // Matrices cannot be compared row by row.
        if let Some(before) = version.before.as_ref().filter(|_| version.shape == VersionShape::Long) {
            commands.push(format!("bellwether diff {}/{before} {}", self.identity.name, version.reference));
        }
        commands
    }

    /// How long the newest run took to fetch.
    pub(super) fn fetch_finding(&self) -> String {
        match self.work.runs.first() {
            Some(AnsweredRun { fetched_in, definition, .. }) => {
                let is_other = *definition != self.identity.name;
                let of = if is_other { format!(" (definition `{definition}`)") } else { String::new() };
                format!("The latest run{of} was fetched in {}", took(*fetched_in))
            }
            None => "No runs".to_owned(),
        }
    }
}

/// `1 of 3 tickers has gaps`.
fn some_of(some: u64, all: &str, what: &str) -> String {
    format!("{} of {all} {} {what}", group_digits(some), if some == 1 { "has" } else { "have" })
}

/// `2 tickers`.
fn tickers(count: usize) -> String {
    count_of(count as u64, "ticker", "tickers")
}

impl Since {
    /// What changed, in a sentence.
    pub(super) fn in_words(&self, report: &Report) -> String {
        let mut said = Vec::new();
        let (rows, before) = (report.facts.rows, self.rows);
        said.push(match rows.checked_sub(before) {
            Some(0) => format!("as many {}", report.noun()),
            Some(more) => report.count_of_rows(more, " more"),
            None => report.count_of_rows(before - rows, " fewer"),
        });
        for (names, what) in [(&self.appeared, "new"), (&self.disappeared, "gone")] {
            if !names.is_empty() {
                let more = if names.len() > NAMED { ", …" } else { "" };
                let first = names[..names.len().min(NAMED)].join(", ");
                said.push(format!("{} {what} ({first}{more})", tickers(names.len())));
            }
        }
        let newest = report.facts.bounds().map(|(_, last)| last);
        if let (Some(before), Some(now)) = (self.newest, newest.filter(|now| Some(*now) != self.newest)) {
            said.push(format!("the newest date went from {before} to {now}"));
        }
        for ((known, rewritten), what) in [(self.signals, "signals"), (self.articles, "articles")] {
            if known > 0 {
                let rewritten = if rewritten == 0 { "none".to_owned() } else { group_digits(rewritten) };
                said.push(format!("{rewritten} of {} {what} known then revised or withdrawn", group_digits(known)));
            }
        }
        format!("Since version {}: {}.", self.version, said.join("; "))
    }
}

impl Numbers {
    /// How many signals are buys.
    pub(super) fn buy_finding(&self) -> String {
        format!("{} of signals are buys", portion(self.totals().buys, self.totals().rows))
    }

    /// How confident signals are.
    pub(super) fn confidence_finding(&self) -> String {
        self.totals()
            .mean_confidence()
            .map_or_else(|| "No signals".to_owned(), |mean| format!("Mean confidence is {mean:.3}"))
    }

    /// How often signals flip.
    pub(super) fn flip_finding(&self) -> String {
        match self.totals().flip_share() {
            None => "No series has two signals".to_owned(),
            Some(share) => format!("{} of signals are followed by their opposite", percent(share)),
        }
    }

    /// The pairs in which some share is lowest and highest.
    pub(super) fn pair_range(&self, share: fn(Totals) -> Option<f64>, [low, high]: [&str; 2]) -> Option<String> {
        let [least, most] = extremes(&self.pairs, |pair| share(pair.totals))?;
        let shown = |(pair, share): (&PairNumbers, f64)| format!("{}, {}", pair.name(), percent(share));
        let is_one = self.pairs.iter().filter(|pair| share(pair.totals).is_some()).count() == 1;
        (!is_one).then(|| format!("{low} for {}; {high} for {}.", shown(least), shown(most)))
    }

    /// Whether confident signals flip less often: the least and the most confident that have a successor, as many whole bins
    /// of the plot as hold a fifth of them. `None` if the two overlap.
    pub(super) fn flips_by_confidence(&self) -> Option<String> {
        let [followed, flipped] = Histogram::bins([&self.followed, &self.flipped]);
        let fifth = followed.counts.iter().sum::<u64>().div_ceil(5);
        let bins: Vec<(u64, u64)> = followed.counts.into_iter().zip(flipped.counts).collect();
        let end = |bins: &mut dyn Iterator<Item = &(u64, u64)>| {
            let (mut taken, mut sum) = (0, (0, 0));
            for (followed, flipped) in bins {
                taken += 1;
                sum = (sum.0 + followed, sum.1 + flipped);
                if sum.0 >= fifth {
                    break;
                }
            }
            (taken, sum)
        };
        let ((few, low), (many, high)) = (end(&mut bins.iter()), end(&mut bins.iter().rev()));
        (fifth > 0 && few + many <= bins.len()).then(|| {
            let share = |(followed, _): (u64, u64)| portion(followed, self.followed.count());
            let flips = |(followed, flipped): (u64, u64)| portion(flipped, followed);
            format!(
                "Of the least confident {} of signals, {} flip; of the most confident {}, {}.",
                share(low),
                flips(low),
                share(high),
                flips(high)
            )
        })
    }

    /// How often pairs agree; `None` with a single pair.
    pub(super) fn agreement_finding(&self) -> Option<String> {
        if self.pairs.len() < 2 {
            return None;
        }
        let Some(agreements) = &self.agreements else {
            return Some(format!("Agreement of {} pairs is not counted", group_digits(self.pairs.len() as u64)));
        };
        let Some([least, most]) = self.agreement_extremes() else {
            return Some("No two pairs have a signal for the same ticker and date".to_owned());
        };
        if least.pairs == most.pairs {
            return Some(format!("{} agree on {}", self.pair_names(least), least.in_words()));
        }
        let Some((low, high)) = least.answers.kappa().zip(most.answers.kappa()) else {
            let [low, high] = [least, most].map(|it| percent(it.answers.rate().unwrap_or_default()));
            return Some(format!("Pairs agree on {low} to {high} of their signals"));
        };
        // The signals of a date may all repeat one another, so a date counts as one observation.
        let z = match [least, most].map(|it| it.answers.kappa_error(self.day_count())) {
            [Some(one), Some(other)] => (high - low) / (one.powi(2) + other.powi(2)).sqrt().max(f64::MIN_POSITIVE),
            _ => 0.0,
        };
        let kappas: Vec<f64> = agreements.iter().filter_map(|it| it.answers.kappa()).collect();
        let compared = kappas.len() as f64;
        let is_apart = 2.0 * normal_tail(z) * compared * (compared - 1.0) / 2.0 < 1.0 - CONFIDENCE;
        let beyond = if is_apart {
            format!("{} to {}", round(low, 2), round(high, 2))
        } else {
            format!("{}, and differs by no more than noise", round(mean(&kappas).unwrap_or_default(), 2))
        };
        Some(format!("Agreement of pairs beyond chance is {beyond}"))
    }

    /// The two pairs that agree least, and the two that agree most: beyond chance, where chance does not explain everything.
    pub(super) fn agreement_extremes(&self) -> Option<[&Agreement; 2]> {
        let all = || self.agreements.iter().flatten().filter(|it| it.answers.both > 0);
        let has_kappa = all().any(|it| it.answers.kappa().is_some());
        let rank = |it: &Agreement| if has_kappa { it.answers.kappa() } else { it.answers.rate() };
        extremes(all(), rank).map(|extremes| extremes.map(|(agreement, _)| agreement))
    }

    /// The names of the two: `5d bear and 5d bull`.
    pub(super) fn pair_names(&self, agreement: &Agreement) -> String {
        agreement.pairs.map(|index| self.pairs[index].name()).join(" and ")
    }

    /// The longest window; none without any.
    pub(super) fn longest_window(&self) -> Option<&WindowNumbers> {
        self.windows.iter().max_by_key(|window| window.length.count())
    }
}

impl Agreement {
    /// The share that agrees, what chance would give, and the agreement beyond it.
    pub(super) fn in_words(&self) -> String {
        let share = portion(self.answers.same, self.answers.both);
        match (self.answers.by_chance(), self.answers.kappa()) {
            (Some(chance), Some(kappa)) => {
                format!("{share} where chance gives {}: {} beyond it", percent(chance), round(kappa, 2))
            }
            _ => format!("{share} where chance gives 100 %"),
        }
    }
}

impl WindowNumbers {
    /// Its length: `1 day`, `30 days`.
    pub(super) fn in_words(&self) -> String {
        count_of(self.length.count().unsigned_abs().into(), "day", "days")
    }
}

impl ColumnNumbers {
    /// The lowest and the highest value, with at most four decimals.
    pub(super) fn ends(&self) -> Option<[String; 2]> {
        Some([self.lowest?, self.highest?].map(|number| {
            let text = format!("{number:.4}");
            let text = text.trim_end_matches('0').trim_end_matches('.');
            if text == "-0" { "0".to_owned() } else { text.to_owned() }
        }))
    }
}

/// The first of those with the least rank and the last of those with the greatest, with their ranks.
fn extremes<'a, T>(
    all: impl IntoIterator<Item = &'a T>,
    rank: impl Fn(&T) -> Option<f64>,
) -> Option<[(&'a T, f64); 2]> {
    let ranked: Vec<(&T, f64)> = all.into_iter().filter_map(|it| Some((it, rank(it)?))).collect();
    let least = ranked.iter().min_by(|(_, one), (_, other)| one.total_cmp(other))?;
    let most = ranked.iter().max_by(|(_, one), (_, other)| one.total_cmp(other))?;
    Some([*least, *most])
}

/// The two sectors that are furthest apart in their share of buys.
pub(super) struct SectorExtremes<'a> {
    pub(super) lowest: &'a SectorNumbers,
    pub(super) highest: &'a SectorNumbers,
    /// Whether they differ by more than luck; none if too few tickers tell.
    ///
    /// The clusters are tickers: the signals of one repeat one another from date to date and from pair to pair. Dates do
    /// not separate sectors, since each has them all.
    pub(super) test: Option<ShareDifference>,
}

impl<'a> SectorExtremes<'a> {
    /// Those of some sectors; `None` with fewer than two that have a name.
    pub(super) fn find(sectors: &'a [SectorNumbers]) -> Option<Self> {
        let known: Vec<&SectorNumbers> = sectors.iter().filter(|sector| sector.name.is_some()).collect();
        let share = |sector: &SectorNumbers| Some(sector.totals().buy_share().unwrap_or_default());
        let [(lowest, _), (highest, _)] = extremes(known.iter().copied(), share)?;
        let count = known.len() as u64;
        if count < 2 {
            return None;
        }
        let clustered = |sector: &SectorNumbers| {
            ClusteredShare::new(sector.tickers.iter().map(|ticker| Share { hits: ticker.buys, of: ticker.rows }))
        };
        let test = clustered(lowest).zip(clustered(highest));
        let test = test.and_then(|(low, high)| low.difference(&high, count * (count - 1) / 2));
        Some(Self { lowest, highest, test })
    }
}

impl SectorNumbers {
    /// Totals of its signals.
    pub(super) fn totals(&self) -> Totals {
        Totals::sum(self.tickers.iter().copied())
    }

    /// Its share of buys, with its name.
    fn buying(&self) -> String {
        format!("{} in {}", portion(self.totals().buys, self.totals().rows), self.display_name())
    }

    /// Its name, or `no sector`.
    pub(super) fn display_name(&self) -> &str {
        self.name.as_deref().unwrap_or("no sector")
    }
}

impl Rewrites {
    /// Counts of revisions, late additions and withdrawals.
    pub(super) fn tally(&self, what: &str) -> String {
        let total = &self.total;
        let turned = match total.flipped {
            0 => String::new(),
            flipped => format!(" ({} flipped between buy and sell)", group_digits(flipped)),
        };
        let (revisions, late) = (count_of(total.revised, "revision", "revisions"), group_digits(total.added_late));
        format!(
            "{} {what}: {revisions}{turned}, {late} added late, {} withdrawn.",
            group_digits(total.known),
            group_digits(total.withdrawn)
        )
    }

    /// Tickers by number of changed cells, most first, with changed and known cells.
    pub(super) fn most_changed(&self) -> Vec<(&Ticker, u64, u64)> {
        let changed = self.by_ticker.iter().filter(|(_, tally)| tally.changed > 0);
        let mut tickers: Vec<_> = changed.map(|(ticker, tally)| (ticker, tally.changed, tally.known)).collect();
        tickers.sort_by_key(|(_, changed, _)| std::cmp::Reverse(*changed));
        tickers
    }

    /// Share of changed cells by age, and the highest of them.
    pub(super) fn ages(&self) -> (Vec<(AgeGroup, f64)>, f64) {
        let ages: Vec<_> = self.by_age.iter().map(|(age, tally)| (*age, tally.rate.unwrap_or_default())).collect();
        let most = ages.iter().map(|(_, rate)| *rate).fold(f64::MIN_POSITIVE, f64::max);
        (ages, most)
    }
}

impl Answers {
    /// Number of rejected records and unknown fields.
    pub(super) fn unusable(&self) -> String {
        let counted = |count: u64, new: Option<u64>, [none, one, many]: [&str; 3]| match (count, new) {
            (0, _) => format!("{none} {many}"),
            (_, None) => count_of(count, one, many),
            (_, Some(0)) => format!("{} (none new)", count_of(count, one, many)),
            (_, Some(new)) => format!("{} ({} new)", count_of(count, one, many), group_digits(new)),
        };
        let Self { rejects, unknown, .. } = self;
        let rejected = counted(rejects.records, rejects.new, ["No", "rejected record", "rejected records"]);
        let fields = unknown.fields.len() as u64;
        let unknown = counted(fields, unknown.new, ["no", "unknown field", "unknown fields"]);
        format!("{rejected}, {unknown}")
    }
}
