//! The features: which news each signal may use, and their statistics.

use super::view::{cell, in_order, newest_of};
use super::{Question, indent, one_of, quote, relation, wrap};
use crate::archive::ANSWERS;
use crate::interface::Endpoint;
use crate::plan::{Availability, Decay, Duplicates, Feature, Reference, Statistic};
use crate::tables::Table;

/// Window statistics use integers, billionths of a score; the limits keep them exact.
const SCALED: &str =
    "case when abs(score) < 9e9 then cast(cast(round(score * 1e9) as bigint) as decimal(38)) end as scaled";

/// The column of the weights of a half-life.
fn weight_of(decay: Decay) -> String {
    format!("weight_{}", decay.half_life)
}

impl Question<'_> {
    fn has_feature(&self, is_wanted: impl Fn(&Feature) -> bool) -> bool {
        self.plan.features.iter().any(is_wanted)
    }

    /// Whether features need the last article.
    fn has_last(&self) -> bool {
        self.has_feature(|feature| matches!(feature, Feature::LastScore | Feature::LastDate | Feature::DaysSince))
    }

    /// Whether features are one of some statistics of windows.
    fn has_statistic(&self, wanted: &[Statistic]) -> bool {
        self.has_feature(|feature| match feature {
            Feature::Window(statistic, _) => wanted.contains(statistic),
            Feature::Decay(_) => wanted.contains(&Statistic::Decay),
            _ => false,
        })
    }

    /// Whether features need integer statistics.
    fn has_integers(&self) -> bool {
        self.has_statistic(&[Statistic::Mean, Statistic::Std, Statistic::Sum, Statistic::Decay])
    }

    fn has_summary(&self) -> bool {
        self.has_feature(|feature| matches!(feature, Feature::Summary(_) | Feature::SummaryDaysSince))
    }

    /// Whether it matters when a signal was made, and when news was known.
    pub(super) fn is_timed(&self) -> bool {
        self.plan.is_timed() && !self.plan.features.is_empty()
    }

    /// The columns that news is joined on.
    fn key(&self) -> Vec<&'static str> {
        let all = [("ticker", true), ("day", true), ("made", self.is_timed()), ("seen_by", self.plan.has_a_past())];
        all.into_iter().filter_map(|(column, is_used)| is_used.then_some(column)).collect()
    }

    /// The key as columns of a relation.
    fn key_of(&self, alias: &str) -> String {
        self.key().iter().map(|column| format!("{alias}.{column}")).collect::<Vec<_>>().join(", ")
    }

    /// The condition that two relations have the same key.
    fn same_key(&self, one: &str, other: &str) -> String {
        self.key().iter().map(|column| format!("{one}.{column} = {other}.{column}")).collect::<Vec<_>>().join(" and ")
    }

    /// The named relations of the news, in order.
    pub(super) fn news_relations(&self) -> Vec<(&'static str, String)> {
        let mut relations = Vec::new();
        let has_windows = self.has_feature(|feature| feature.window().is_some());
        if has_windows || self.has_last() {
            // It matters which observation said a value of an article first.
            if self.plan.is_as_lived() || self.is_timed() {
                relations.push(("article_changes", self.changes(Table::Articles)));
            }
            relations.push(("articles", self.articles()));
            relations.push(("keys", format!("select distinct {}, cutoff\nfrom selected", self.key().join(", "))));
        }
        if has_windows {
            let news = format!("source = {}\n    and {}", quote(Endpoint::NewsArticles.as_str()), self.is_asked());
            relations.push(("answers", self.answers("ticker", &news)));
            if self.plan.is_as_lived() {
                // The last run with lists of articles that had been sealed when each signal was seen.
                let runs = "select k.seen_by, max(a.sealed) as run\nfrom (select distinct seen_by from keys) k\n\
                            join (select distinct sealed from answers) a on a.sealed <= k.seen_by\ngroup by k.seen_by";
                relations.push(("news_runs", runs.to_owned()));
            }
            relations.push(("lists", self.lists()));
            if !self.plan.are_lists_complete {
                relations.push(("begins", self.begins()));
                if self.plan.is_as_lived() {
                    relations.push(("oldest", self.oldest_article()));
                }
            }
            relations.extend(self.weights().map(|weights| ("weights", weights)));
            relations.push(("windows", self.windows()));
        }
        if self.has_last() {
            let (key, known) = (self.key_of("k"), self.is_known());
            let last = format!(
                "select {key}, max(a.recency) as recency\nfrom keys k join articles a on {known}\ngroup by {key}"
            );
            relations.push(("last_article", last));
        }
        if self.has_summary() {
            relations.push(("summary_changes", self.changes(Table::Summaries)));
            relations.push(("summaries", self.summaries()));
        }
        relations
    }

    /// The condition that the news of a ticker is asked for.
    fn is_asked(&self) -> String {
        match self.news {
            None => "ticker in (select ticker from series)".to_owned(),
            Some(asked) => one_of("ticker", asked.iter().map(|ticker| quote(ticker.as_str()))),
        }
    }

    /// The same as a further condition, where the tickers are not those of the signals.
    fn and_is_asked(&self) -> String {
        self.news.map_or_else(String::new, |_| format!("\n    and {}", self.is_asked()))
    }

    /// Some answers: when they were observed, and when their runs were sealed.
    pub(super) fn answers(&self, columns: &str, condition: &str) -> String {
        format!(
            "select {columns}, {} as observed, {} as sealed\n{}\n    and {condition}",
            self.dialect.in_utc("observed_at"),
            self.dialect.in_utc("greatest(sealed_at, observed_at)"),
            self.rows(ANSWERS)
        )
    }

    /// The lists of articles: when each was first known, and the day of the last answer if the latest run that asked has none.
    fn lists(&self) -> String {
        if self.plan.is_as_lived() {
            return format!(
                "select {key}, min(a.observed) as first,\n    \
                 case when max(a.sealed) < max(r.run) then cast(max(a.observed) as date) end as until\n\
                 from keys k join answers a on a.ticker = k.ticker and a.sealed <= k.seen_by\n\
                 join news_runs r on r.seen_by = k.seen_by\ngroup by {key}",
                key = self.key_of("k"),
            );
        }
        "select ticker, min(observed) as first,\n    \
         case when max(sealed) < max(max(sealed)) over () then cast(max(observed) as date) end as until\n\
         from answers\ngroup by ticker"
            .to_owned()
    }

    /// When the articles of each ticker were first listed, and the day of the oldest.
    fn begins(&self) -> String {
        format!(
            "select ticker, {} as listed, min(cast(date as date)) as oldest\n{} and change <> 'withdrawn'\ngroup by ticker",
            self.dialect.in_utc("min(observed_at)"),
            self.rows(&Table::Articles.file())
        )
    }

    /// The day of the oldest article that had been listed when the signal was made.
    fn oldest_article(&self) -> String {
        format!(
            "select {key}, min(a.day) as oldest\nfrom keys k join articles a on a.ticker = k.ticker and {}\ngroup by {key}",
            has_begun(&self.article_limits(), "a.seen_from", "a.observed", "k").join(" and "),
            key = self.key_of("k"),
        )
    }

    /// The condition that it is known what was in a window.
    fn is_told(&self) -> String {
        let mut told = vec!["n.first is not null and k.cutoff < coalesce(n.until, k.cutoff + 1)".to_owned()];
        told.extend(has_begun(&self.article_limits(), "cast(n.first as date)", "n.first", "k"));
        if !self.plan.are_lists_complete {
            // A list that was empty at first was not cut off then.
            let oldest = if self.plan.is_as_lived() { "o.oldest" } else { "b.oldest" };
            told.push(format!(
                "\n        (b.listed > n.first or k.cutoff - w.days >= coalesce({oldest}, k.cutoff - w.days))"
            ));
        }
        told.join(" and ")
    }

    /// What something must not have been observed after that counts from then on, as columns of the key: the last day whose
    /// news a signal may use, when the signal was made, and when the run was sealed that first saw it.
    fn sighting_limits(&self) -> Vec<&'static str> {
        let all = [("cutoff", true), ("made", self.is_timed()), ("seen_by", self.plan.is_as_lived())];
        all.into_iter().filter_map(|(column, is_used)| is_used.then_some(column)).collect()
    }

    /// The same of an article.
    fn article_limits(&self) -> Vec<&'static str> {
        match (self.plan.availability == Availability::Observed, self.plan.is_as_lived()) {
            (true, _) => self.sighting_limits(),
            (false, true) => vec!["seen_by"],
            (false, false) => Vec::new(),
        }
    }

    /// The condition that a value had been observed within some limits, and not yet replaced.
    fn is_seen(&self, limits: &[&str], alias: &str, key: &str) -> String {
        let has_begun = |day, instant| has_begun(limits, &format!("{alias}.{day}"), &format!("{alias}.{instant}"), key);
        let (begun, ended) = (has_begun("seen_from", "observed"), has_begun("seen_until", "replaced"));
        format!("{} and not ({})", begun.join(" and "), ended.join(" and "))
    }

    fn articles(&self) -> String {
        let mut columns = vec!["ticker, date, cast(date as date) as day, score".to_owned()];
        if self.plan.duplicates == Duplicates::Once {
            columns.push("repeats = 0 as is_counted".to_owned());
        }
        if self.has_integers() {
            columns.push(SCALED.to_owned());
        }
        let is_lived = self.plan.is_as_lived();
        if self.has_last() {
            let ties = if is_lived { ", observed_at" } else { "" };
            columns.push(format!(
                "row_number() over (partition by ticker order by date, place, title, link, copy{ties}) as recency"
            ));
        }
        if is_lived {
            columns.extend(self.sightings());
        }
        if self.is_timed() {
            let known = format!("case when utc_offset_minutes_known is null then {} else date end", self.end_of_day());
            columns.push(match self.plan.news_delay.as_secs() {
                0 => format!("{known} as known_from"),
                delay => format!("{known} + interval '{delay}' second as known_from"),
            });
        }
        let (inner, is_known) = if is_lived {
            (self.spans(Table::Articles, "article_changes"), "")
        } else {
            let newest = if self.is_timed() {
                newest_of("from article_changes", &cell(Table::Articles), &in_order(Table::Articles, " desc"))
            } else {
                self.newest(Table::Articles)
            };
            (newest, "newest = 1 and ")
        };
        format!(
            "select {}\nfrom (\n{}\n) where {is_known}change <> 'withdrawn'{}",
            columns.join(",\n    "),
            indent(&inner),
            self.and_is_asked()
        )
    }

    /// The end of the day of a date.
    pub(super) fn end_of_day(&self) -> String {
        format!("cast(cast(date as date) + 1 as {})", self.dialect.naive())
    }

    /// When a value was observed and replaced.
    fn sightings(&self) -> Vec<String> {
        let mut columns = vec!["cast(observed as date) as seen_from, cast(replaced as date) as seen_until".to_owned()];
        columns.extend((self.is_timed() || self.plan.is_as_lived()).then(|| "observed, replaced".to_owned()));
        columns
    }

    /// The condition that an article was known when the signal was made.
    fn is_known(&self) -> String {
        let mut known = "a.ticker = k.ticker and a.day <= k.cutoff".to_owned();
        if self.is_timed() {
            known.push_str(" and a.known_from <= k.made");
        }
        if self.plan.is_as_lived() {
            known = format!("{known}\n    and {}", self.is_seen(&self.article_limits(), "a", "k"));
        }
        known
    }

    /// The half-lives of means that decay, in their order.
    fn half_lives(&self) -> Vec<Decay> {
        let mut decays: Vec<Decay> = Vec::new();
        for feature in &self.plan.features {
            let Feature::Decay(decay) = feature else { continue };
            match decays.iter_mut().find(|known| known.half_life == decay.half_life) {
                Some(known) if known.window.count() < decay.window.count() => *known = *decay,
                Some(_) => {}
                None => decays.push(*decay),
            }
        }
        decays
    }

    /// What an article counts by its age, in trillionths, for each half-life; none if nothing decays. Engines compute powers
    /// differently.
    fn weights(&self) -> Option<String> {
        let decays: Vec<(Decay, Vec<i64>)> =
            self.half_lives().into_iter().map(|decay| (decay, decay.weights())).collect();
        let ages = decays.iter().map(|(_, weights)| weights.len()).max()?;
        let weight = |age: usize| {
            decays.iter().map(move |(_, weights)| weights.get(age).copied().unwrap_or_default().to_string())
        };
        let row = |age: usize| format!("({age}, {})", weight(age).collect::<Vec<_>>().join(", "));
        let names: Vec<String> = decays.iter().map(|(decay, _)| weight_of(*decay)).collect();
        let rows = wrap((0..ages).map(row));
        Some(format!("select *\nfrom (values\n{}\n) as d(age, {})", indent(&rows), names.join(", ")))
    }

    fn windows(&self) -> String {
        let days = self.plan.windows().into_iter().map(|days| days.count().to_string());
        // The values that are not null, from the least to the greatest.
        let sorted = self.dialect.pick(
            "list(a.score order by a.score) filter (where a.score is not null) as sorted",
            "array_sort(collect_list(a.score)) as sorted",
        );
        let statistics = [
            (true, "count(a.day) as articles, count(a.score) as scores"),
            (self.has_integers(), "sum(a.scaled) as total, max(abs(a.score)) as largest"),
            (
                self.has_statistic(&[Statistic::Std]),
                "sum(case when abs(a.score) < 1e6 then a.scaled * a.scaled end) as squares",
            ),
            (
                self.has_statistic(&[Statistic::Mean, Statistic::Min, Statistic::Sum, Statistic::Decay]),
                "min(a.score) as lowest",
            ),
            (self.has_statistic(&[Statistic::Mean, Statistic::Max, Statistic::Decay]), "max(a.score) as highest"),
            (self.has_statistic(&[Statistic::Median]), sorted),
        ];
        let mut statistics: Vec<String> =
            statistics.into_iter().filter(|(is_used, _)| *is_used).map(|(_, text)| text.to_owned()).collect();
        let decays = self.half_lives();
        statistics.extend(decays.iter().map(|decay| {
            let weight = weight_of(*decay);
            let scored = format!("sum(case when a.score is not null then d.{weight} end) as {weight}");
            format!("{scored}, sum(a.scaled * d.{weight}) as total_{weight}")
        }));
        let is_counted = if self.plan.duplicates == Duplicates::Once { " and a.is_counted" } else { "" };
        let mut of_lists = match self.plan.is_as_lived() {
            true => format!("left join lists n on {}", self.same_key("n", "k")),
            false => "left join lists n on n.ticker = k.ticker".to_owned(),
        };
        if !self.plan.are_lists_complete {
            of_lists.push_str("\nleft join begins b on b.ticker = k.ticker");
            if self.plan.is_as_lived() {
                of_lists = format!("{of_lists}\nleft join oldest o on {}", self.same_key("o", "k"));
            }
        }
        // A signal that was made at midnight knows no news of its own day.
        let can_hold = match self.is_timed() {
            true => {
                let start = format!("cast(k.cutoff - w.days + 1 as {})", self.dialect.naive());
                let delay = self.plan.news_delay.as_secs();
                format!(" and (count(a.day) > 0 or bool_and(k.made > {start} + interval '{delay}' second))")
            }
            false => String::new(),
        };
        let age = self.dialect.days_between("a.day", "k.cutoff");
        let of_weights =
            if decays.is_empty() { String::new() } else { format!("\nleft join weights d on d.age = {age}") };
        format!(
            "select {key}, w.days,\n    bool_and({}){can_hold} as is_told,\n    {}\nfrom keys k cross join {}\n\
             {of_lists}\nleft join articles a on {}\n    \
             and a.day > k.cutoff - w.days{is_counted}{of_weights}\ngroup by {key}, w.days",
            self.is_told(),
            statistics.join(",\n    "),
            relation("w", "days", days),
            self.is_known(),
            key = self.key_of("k"),
        )
    }

    fn summaries(&self) -> String {
        format!(
            "select ticker, {},\n    {}\nfrom (\n{}\n) where change <> 'withdrawn'{}",
            Reference::ALL.map(|reference| format!("{}_score", reference.as_str())).join(",\n    "),
            self.sightings().join(", "),
            indent(&self.spans(Table::Summaries, "summary_changes")),
            self.and_is_asked()
        )
    }

    /// The joins that add the features to the signals.
    pub(super) fn news_joins(&self) -> Vec<String> {
        let mut joins = Vec::new();
        for days in self.plan.windows() {
            let w = format!("w{}", days.count());
            joins.push(format!("join windows {w} on {} and {w}.days = {}", self.same_key(&w, "s"), days.count()));
        }
        if self.has_last() {
            joins.push(format!("left join last_article l on {}", self.same_key("l", "s")));
            joins.push("left join articles a on a.ticker = l.ticker and a.recency = l.recency".to_owned());
        }
        if self.has_summary() {
            joins.push(format!(
                "left join summaries m on m.ticker = s.ticker and {}",
                self.is_seen(&self.sighting_limits(), "m", "s")
            ));
        }
        joins
    }

    /// A feature as an expression over the joined relations.
    pub(super) fn feature(&self, feature: &Feature) -> String {
        let w = feature.window().map(|days| format!("w{}", days.count())).unwrap_or_default();
        match feature {
            Feature::Window(Statistic::Count, _) => format!("case when {w}.is_told then cast({w}.articles as int) end"),
            Feature::Window(Statistic::Mean, _) => format!(
                "case when {w}.is_told and {w}.largest < 9e9 then\n        \
                 least(greatest(cast(cast({w}.total as string) as double) / ({w}.scores * 1e9), {w}.lowest), {w}.highest) end"
            ),
            Feature::Window(Statistic::Min, _) => format!("case when {w}.is_told then {w}.lowest end"),
            Feature::Window(Statistic::Max, _) => format!("case when {w}.is_told then {w}.highest end"),
            // Every engine rounds correctly from text, but not from such decimals.
            Feature::Window(Statistic::Std, _) => format!(
                "case when {w}.is_told and {w}.scores > 1 and {w}.largest < 1e6 and {w}.scores * {w}.largest < 9e9 then\n        \
                 sqrt(cast(cast({w}.scores * {w}.squares - {w}.total * {w}.total as string) as double)\n        \
                 / ({w}.scores * ({w}.scores - 1))) / 1e9 end"
            ),
            Feature::Window(Statistic::Sum, _) => format!(
                "case when {w}.is_told and {w}.largest < 9e9 then\n        \
                 case when {w}.scores = 1 then {w}.lowest else cast(cast({w}.total as string) as double) / 1e9 end end"
            ),
            Feature::Window(Statistic::Median, _) => {
                // Elements of a list are counted from one.
                let element = self.dialect.pick("list_extract", "element_at");
                let at = |more| format!("{element}({w}.sorted, cast(floor(({w}.scores + {more}) / 2) as int))");
                let (lower, upper) = (at(1), at(2));
                format!(
                    "case when {w}.is_told and {w}.scores > 0 then\n        \
                     case when {lower} = {upper} then {lower}\n        else {lower} / 2 + {upper} / 2 end end"
                )
            }
            Feature::Decay(decay) => {
                let weight = weight_of(*decay);
                format!(
                    "case when {w}.is_told and {w}.{weight} > 0 and {w}.largest < 9e9 then\n        \
                     least(greatest(cast(cast({w}.total_{weight} as string) as double)\n        \
                     / (cast(cast({w}.{weight} as string) as double) * 1e9), {w}.lowest), {w}.highest) end"
                )
            }
            Feature::LastScore => "a.score".to_owned(),
            Feature::LastDate => "a.date".to_owned(),
            Feature::DaysSince => self.dialect.days_between("a.day", "s.day"),
            Feature::Summary(reference) => format!("m.{}_score", reference.as_str()),
            Feature::SummaryDaysSince => self.dialect.days_between("m.seen_from", "s.day"),
            Feature::Historical(_) => unreachable!("a plan with such a feature is refused"),
            Feature::Window(Statistic::Decay | Statistic::Last | Statistic::DaysSince, _) => {
                unreachable!("the statistics of no single window are features of their own")
            }
        }
    }
}

/// The conditions that an observation, by its day and instant, was within some limits of a key.
fn has_begun(limits: &[&str], day: &str, instant: &str, key: &str) -> Vec<String> {
    let seen = |limit: &str| if limit == "cutoff" { day.to_owned() } else { instant.to_owned() };
    limits.iter().map(|limit| format!("{} <= {key}.{limit}", seen(limit))).collect()
}
