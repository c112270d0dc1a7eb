//! The report as plain text for a terminal, readable without colour: the verdict, then a few lines for each section.

use std::fmt::{Display, Write};

use super::Report;
use super::calendar::{Axis, Step};
use super::histogram::{Bins, Histogram};
use super::numbers::PairNumbers;
use crate::audit::answers::RejectReason;
use crate::audit::revisions::Revisions;
use crate::tables::Drift;
use crate::text::escape::escape;
use crate::text::human::{count_of, group_digits, percent, portion};

/// Width of names, left of bars and sparklines, and of values, right of them.
const NAME: usize = 20;
const VALUE: usize = 18;

/// The most tickers, signals, pairs, reasons and fields listed.
const LISTED: usize = 5;

/// Lines of text and their maximum width.
struct Lines {
    text: String,
    width: usize,
}

impl Report {
    /// Renders the report in lines of at most `width` columns.
    pub fn text(&self, width: usize) -> String {
        let mut lines = Lines { text: String::new(), width: width.clamp(50, 120) };
        self.opening(&mut lines);
        // A dataset of news has no signals.
        if self.has_signals() {
            self.signals_in_lines(&mut lines);
            self.behavior_in_lines(&mut lines);
        }
        self.news_in_lines(&mut lines);
        self.rewrites_in_lines(&mut lines);
        self.contents_in_lines(&mut lines);
        lines.text
    }

    fn opening(&self, lines: &mut Lines) {
        let Self { identity, facts, .. } = self;
        lines.line(&identity.name);
        self.verdict().iter().for_each(|sentence| lines.wrap("", sentence));
        self.since.iter().for_each(|since| lines.wrap("", &since.in_words(self)));
        lines.wrap("", &self.freshness());
        let newest = self.numbers.newest();
        if let Some(day) = newest.first().and_then(|(_, latest)| latest.day()) {
            lines.heading(format_args!("The strongest signals of {day}, with how each has moved"));
            for (ticker, latest) in newest.iter().take(LISTED) {
                let moved = latest.change().map_or_else(|| "first".to_owned(), |change| format!("{change:+.3}"));
                let pair = self.numbers.pairs[latest.pair].name();
                lines.line(format_args!("  {ticker:NAME$}{pair:14}{:+.3}  {moved}", latest.score));
            }
        }
        lines.line("");
        identity.description.iter().for_each(|description| lines.wrap("", description));
        lines.fact(if self.has_signals() { "signals" } else { "rows" }, group_digits(facts.rows));
        lines.fact("tickers", group_digits(facts.tickers.len() as u64));
        lines.fact("days", format_args!("{}, {}", group_digits(self.day_count()), self.range()));
        lines.fact("as of", identity.as_of.format("%Y-%m-%d %H:%M:%S UTC"));
        identity.watched.iter().for_each(|watched| lines.fact("watched", watched));
        if let Some(version) = &identity.version {
            lines.fact("version", &version.name);
            lines.fact("content", &version.content);
        }
        lines.fact("from", count_of(self.work.runs.len() as u64, "run", "runs"));
        self.notes.iter().for_each(|note| lines.wrap("note: ", note));
    }

    fn signals_in_lines(&self, lines: &mut Lines) {
        let numbers = &self.numbers;
        let coverage = numbers.coverage(lines.middle());
        lines.heading(self.coverage_finding(&coverage));
        self.beyond_the_plots().iter().for_each(|text| lines.wrap("", text));
        for covered in coverage.incomplete.iter().take(LISTED) {
            let (days, due) = covered.total();
            lines.bar(&covered.ticker, days as f64 / due.max(1) as f64, portion(days, due));
        }
        lines.heading(numbers.buy_finding());
        let axis = Axis::new(&numbers.days, Step::Week, lines.middle());
        lines.wrap("", &format!("By {}: the share of buys of each pair, and its mean confidence.", axis.step.as_str()));
        for pair in &numbers.pairs {
            let shares = pair.over(&numbers.days, &axis).into_iter().map(|totals| spark(totals.buy_share()));
            let mean = pair.totals.mean_confidence().unwrap_or_default();
            let value = format!("{:>6} buy, {mean:.3}", portion(pair.totals.buys, pair.totals.rows));
            lines.plot(&pair.name(), &shares.collect::<String>(), value);
        }
        lines.heading(numbers.confidence_finding());
        let [sells, buys] = &numbers.confidences;
        let [of_buys, of_sells] = Histogram::bins([buys, sells]);
        lines.bins("buys", &of_buys);
        lines.bins("sells", &of_sells);
    }

    fn behavior_in_lines(&self, lines: &mut Lines) {
        let numbers = &self.numbers;
        lines.heading(numbers.flip_finding());
        let mut pairs: Vec<(&PairNumbers, f64)> =
            numbers.pairs.iter().filter_map(|pair| Some((pair, pair.totals.flip_share()?))).collect();
        pairs.sort_by(|(_, one), (_, other)| other.total_cmp(one));
        for (pair, share) in pairs.iter().take(LISTED) {
            lines.bar(&pair.name(), *share, percent(*share));
        }
        lines.more(pairs.len(), "pair", "pairs");
        numbers.flips_by_confidence().iter().for_each(|text| lines.wrap("", text));
        if let Some(finding) = numbers.agreement_finding() {
            lines.heading(finding);
            // A single comparison is in the heading.
            let extremes = numbers.agreement_extremes().filter(|[least, most]| least.pairs != most.pairs);
            for agreement in extremes.into_iter().flatten() {
                lines.wrap("  ", &format!("{}: {}", numbers.pair_names(agreement), agreement.in_words()));
            }
        }
        if let Some((finding, asides)) = self.sector_finding() {
            lines.heading(finding);
            asides.iter().for_each(|text| lines.wrap("", text));
            for sector in &self.sectors {
                let totals = sector.totals();
                let shown = portion(totals.buys, totals.rows);
                lines.bar(
                    sector.display_name(),
                    totals.buy_share().unwrap_or_default(),
                    format_args!("{shown:>6} buy"),
                );
            }
        }
    }

    fn news_in_lines(&self, lines: &mut Lines) {
        lines.heading(self.news_finding());
        let Some(news) = &self.news else { return };
        for window in &self.numbers.windows {
            let known = self.facts.rows - window.unknown;
            let share = window.with_news as f64 / known.max(1) as f64;
            lines.bar(&window.in_words(), share, portion(window.with_news, known));
        }
        if news.articles > 0 {
            let axis = self.news_axis(lines.middle());
            let counts = axis.sums(news.days.iter().map(|(day, count)| (*day, *count)));
            let most = counts.iter().max().copied().unwrap_or_default();
            lines.counts(
                &format!("articles by {}", axis.step.as_str()),
                &counts,
                format!("peak {}", group_digits(most)),
            );
            self.articles_beyond(&counts).iter().for_each(|text| lines.wrap("", text));
            let [bins] = Histogram::bins([&news.scores]);
            lines.bins("scores", &bins);
            self.news_scope().iter().for_each(|text| lines.wrap("", text));
        }
    }

    fn rewrites_in_lines(&self, lines: &mut Lines) {
        lines.heading(self.rewrite_finding());
        let Some(Revisions { signals, articles, .. }) = self.changes() else { return };
        let most = signals.ages().1.max(articles.ages().1);
        for (rewrites, what) in [(signals, "signals"), (articles, "articles")] {
            if rewrites.total.known > 0 {
                lines.wrap("", &rewrites.tally(what));
            }
            for (age, rate) in rewrites.ages().0.into_iter().filter(|_| rewrites.total.changed > 0) {
                lines.bar(&format!("aged {age}"), rate / most, percent(rate));
            }
        }
    }

    fn contents_in_lines(&self, lines: &mut Lines) {
        lines.heading(self.column_finding());
        for column in self.columns.iter().filter(|column| column.nulls > 0 || column.lowest.is_some()) {
            let nulls = (column.nulls > 0).then(|| format!("{} null", portion(column.nulls, self.facts.rows)));
            let parts: Vec<String> = column.ends().map(|ends| ends.join(" to ")).into_iter().chain(nulls).collect();
            lines.wrap(&format!("  {:NAME$}", column.name), &parts.join(", "));
        }
        lines.wrap("", &self.identity.in_words);
        self.commands().iter().for_each(|command| lines.wrap("  ", command));
        lines.heading(self.work.unusable());
        for RejectReason { reason, records, .. } in self.work.rejects.reasons.iter().take(LISTED) {
            lines.wrap(&format!("{} ", count_of(*records, "record", "records")), reason);
        }
        lines.more(self.work.rejects.reasons.len(), "reason", "reasons");
        for Drift { field, endpoint, count, .. } in self.work.unknown.fields.iter().take(LISTED) {
            lines.wrap(&format!("{} ", count_of(*count, "time", "times")), &format!("{field} of {endpoint}"));
        }
        lines.more(self.work.unknown.fields.len(), "field", "fields");
        lines.heading(self.fetch_finding());
    }
}

impl Lines {
    fn line(&mut self, text: impl Display) {
        let text = text.to_string();
        writeln!(self.text, "{}", escape(text.trim_end())).expect("a string takes any text");
    }

    fn heading(&mut self, text: impl Display) {
        self.line("");
        self.wrap("", &text.to_string());
    }

    /// Notes how many entries of a list were left out.
    fn more(&mut self, all: usize, one: &str, many: &str) {
        if all > LISTED {
            let left = (all - LISTED) as u64;
            self.line(format_args!("and {}", count_of(left, &format!("more {one}"), &format!("more {many}"))));
        }
    }

    fn fact(&mut self, name: &str, value: impl Display) {
        self.wrap(&format!("{name:8}  "), &value.to_string());
    }

    /// Wraps a text, indenting further lines under the first.
    fn wrap(&mut self, head: &str, text: &str) {
        let indent = head.chars().count();
        let room = self.width.saturating_sub(indent).max(8);
        let mut pieces: Vec<String> = vec![String::new()];
        for word in text.split_whitespace() {
            for piece in word.chars().collect::<Vec<_>>().chunks(room) {
                let last = pieces.last_mut().expect("there is one from the beginning");
                if !last.is_empty() && last.chars().count() + 1 + piece.len() > room {
                    pieces.push(piece.iter().collect());
                } else {
                    if !last.is_empty() {
                        last.push(' ');
                    }
                    last.extend(piece);
                }
            }
        }
        for (index, piece) in pieces.iter().enumerate() {
            let head = if index == 0 { head.to_owned() } else { " ".repeat(indent) };
            self.line(format_args!("{head}{piece}"));
        }
    }

    /// Width left for bars and sparklines.
    fn middle(&self) -> usize {
        self.width.saturating_sub(NAME + VALUE + 4).max(8)
    }

    fn plot(&mut self, name: &str, plot: &str, value: impl Display) {
        let middle = self.middle();
        let name: String = name.chars().take(NAME).collect();
        self.line(format_args!("  {name:NAME$}{plot:middle$}  {value}"));
    }

    fn bar(&mut self, name: &str, share: f64, value: impl Display) {
        let eighths = (share.clamp(0.0, 1.0) * self.middle() as f64 * 8.0).round() as usize;
        // Anything above zero must be visible.
        let eighths = if share > 0.0 { eighths.max(1) } else { 0 };
        let rest = ["", "▏", "▎", "▍", "▌", "▋", "▊", "▉"][eighths % 8];
        self.plot(name, &format!("{}{rest}", "█".repeat(eighths / 8)), value);
    }

    fn counts(&mut self, name: &str, counts: &[u64], value: impl Display) {
        let most = counts.iter().max().copied().unwrap_or_default().max(1) as f64;
        let plot: String = counts.iter().map(|count| spark((*count > 0).then(|| *count as f64 / most))).collect();
        self.plot(name, &plot, value);
    }

    /// A histogram, merging bins that do not fit.
    fn bins(&mut self, name: &str, bins: &Bins) {
        let together = bins.counts.len().div_ceil(self.middle()).max(1);
        let counts: Vec<u64> = bins.counts.chunks(together).map(|bins| bins.iter().sum()).collect();
        let (from, to) = bins.range();
        self.counts(name, &counts, format!("{from} to {to}"));
    }
}

/// A character of a sparkline; blank if there is no value.
fn spark(share: Option<f64>) -> char {
    const HEIGHTS: [char; 8] = ['▁', '▂', '▃', '▄', '▅', '▆', '▇', '█'];
    share.map_or(' ', |share| HEIGHTS[((share.clamp(0.0, 1.0) * 8.0) as usize).min(7)])
}
