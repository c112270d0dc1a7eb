//! The report as plain text for a terminal, readable without colour.

use std::fmt::{Display, Write};

use super::Report;
use super::facts::{Activity, Axis, Bins, Histogram, PairFacts, Step};
use super::page::highest_rate;
use crate::audit::answers::RejectReason;
use crate::audit::revisions::Revisions;
use crate::tables::Drift;
use crate::text::escape::escape;
use crate::text::human::{count_of, group_digits, percent, portion, took};

/// Smallest and largest line width.
const NARROWEST: usize = 50;
const WIDEST: usize = 120;

/// Width of names, left of bars and sparklines, and of values, right of them.
const NAME: usize = 20;
const VALUE: usize = 18;

/// The most tickers, reasons and fields listed.
const TICKERS: usize = 5;

/// Lines of text and their maximum width.
struct Lines {
    text: String,
    width: usize,
}

impl Report {
    /// Renders the report in lines of at most `width` columns.
    pub fn text(&self, width: usize) -> String {
        let mut lines = Lines { text: String::new(), width: width.clamp(NARROWEST, WIDEST) };
        self.opening(&mut lines);
        // A dataset of news has no signals.
        if !self.facts.pairs.is_empty() {
            self.coverage_in_lines(&mut lines);
            self.signals_in_lines(&mut lines);
            self.behavior_in_lines(&mut lines);
            self.skill_in_lines(&mut lines);
        }
        self.news_in_lines(&mut lines);
        self.rewrites_in_lines(&mut lines);
        self.contents_in_lines(&mut lines);
        self.work_in_lines(&mut lines);
        lines.text
    }

    fn opening(&self, lines: &mut Lines) {
        let Self { identity, facts, .. } = self;
        lines.line(&identity.name);
        lines.wrap("", &self.standing());
        if let Some(description) = &identity.description {
            lines.wrap("", description);
        }
        let count = |count: usize| group_digits(count as u64);
        lines.blank();
        lines.fact(if facts.pairs.is_empty() { "rows" } else { "signals" }, group_digits(facts.rows));
        lines.fact("tickers", count(facts.tickers.len()));
        lines.fact("days", format_args!("{}, {}", group_digits(facts.day_count()), facts.range()));
        if !facts.pairs.is_empty() {
            lines.fact("pairs", count(facts.pairs.len()));
        }
        lines.fact("as of", identity.as_of.format("%Y-%m-%d %H:%M:%S UTC"));
        identity.watched.iter().for_each(|watched| lines.fact("watched", watched));
        if let Some(version) = &identity.version {
            lines.fact("version", &version.name);
            lines.fact("content", &version.content);
        }
        lines.fact("from", count_of(self.work.runs.len() as u64, "run", "runs"));
        self.notes.iter().for_each(|note| lines.wrap("note: ", note));
    }

    fn coverage_in_lines(&self, lines: &mut Lines) {
        let coverage = self.facts.coverage(lines.middle());
        lines.heading(coverage.finding());
        self.facts.beyond_the_plots().iter().for_each(|text| lines.wrap("", text));
        if coverage.axis.is_empty() {
            return;
        }
        let most = coverage.tickers.iter().max().copied().unwrap_or_default();
        lines.spark(
            &format!("by {}", coverage.axis.step.as_str()),
            &coverage.tickers,
            format!("peak {}", group_digits(most)),
        );
        let lacking = coverage.rows.iter().take(TICKERS).filter(|covered| covered.total().0 < covered.total().1);
        for covered in lacking {
            let (days, full) = covered.total();
            lines.bar(&covered.ticker, days as f64 / full.max(1) as f64, portion(days, full));
        }
    }

    fn signals_in_lines(&self, lines: &mut Lines) {
        let facts = &self.facts;
        lines.heading(facts.buying());
        let axis = Axis::of(&facts.days, Step::Week, lines.middle());
        lines.wrap("", &format!("By {}: the share of buys of each pair, and its mean confidence.", axis.step.as_str()));
        for pair in &facts.pairs {
            lines
                .pair(pair, &pair.over(&facts.days, &axis).iter().map(|totals| totals.buy_share()).collect::<Vec<_>>());
        }
        lines.heading(facts.trusting());
        let [buys, sells] = &facts.confidences;
        let [of_buys, of_sells] = Histogram::bins([buys, sells]);
        lines.bins("buys", &of_buys);
        lines.bins("sells", &of_sells);
    }

    fn behavior_in_lines(&self, lines: &mut Lines) {
        let facts = &self.facts;
        lines.heading(facts.flipping());
        let share = |pair: &PairFacts| pair.flips.share().unwrap_or_default();
        let mut pairs: Vec<&PairFacts> = facts.pairs.iter().filter(|pair| pair.flips.followed > 0).collect();
        pairs.sort_by(|one, other| share(other).total_cmp(&share(one)));
        let most = pairs.first().map_or(1.0, |pair| share(pair)).max(f64::MIN_POSITIVE);
        for pair in pairs.iter().take(TICKERS) {
            lines.bar(&format!("{} {}", pair.period, pair.regime), share(pair) / most, percent(share(pair)));
        }
        lines.more(pairs.len(), "pair", "pairs");
        facts.flips_by_confidence().iter().for_each(|text| lines.wrap("", text));
        if let Some(finding) = facts.agreeing() {
            lines.heading(finding);
            // A single comparison is in the heading.
            let extremes = facts.agreement_extremes().filter(|[least, most]| least.pairs != most.pairs);
            for agreement in extremes.into_iter().flatten() {
                lines.wrap("  ", &format!("{}: {}", facts.pair_names(agreement), agreement.in_words()));
            }
        }
        if let Some(finding) = self.split() {
            lines.heading(finding);
            self.sector_test().iter().for_each(|text| lines.wrap("", text));
            for sector in &self.sectors {
                let share = sector.totals.buy_share().unwrap_or_default();
                let shown = portion(sector.totals.buys, sector.totals.rows);
                lines.bar(sector.display_name(), share, format_args!("{shown:>6} buy"));
            }
        }
    }

    fn skill_in_lines(&self, lines: &mut Lines) {
        match &self.skill {
            None => {}
            Some(Ok(skill)) => {
                lines.heading(skill.finding());
                skill.remarks().iter().for_each(|remark| lines.wrap("", remark));
            }
            Some(Err(why)) => lines.heading(format_args!("Signals were not measured against prices: {why}")),
        }
    }

    fn news_in_lines(&self, lines: &mut Lines) {
        let Some(news) = &self.facts.news else {
            return lines.heading("This dataset has no news");
        };
        lines.heading(self.facts.reach().unwrap_or_else(|| count_of(news.articles, "article", "articles")));
        for window in &self.facts.windows {
            let (some, all) = self.facts.with_news(window);
            lines.bar(&window.in_words(), some as f64 / all.max(1) as f64, portion(some, all));
        }
        if news.articles == 0 {
            return;
        }
        let axis = self.facts.news_axis(lines.middle());
        let counts = axis.sums(news.days.iter().map(|(day, count)| (*day, *count)));
        let most = counts.iter().max().copied().unwrap_or_default();
        lines.spark(&format!("articles by {}", axis.step.as_str()), &counts, format!("peak {}", group_digits(most)));
        news.beyond(&counts).iter().for_each(|text| lines.wrap("", text));
        let [bins] = Histogram::bins([&news.scores]);
        lines.bins("scores", &bins);
        lines.wrap("", &news.scope(&self.facts));
    }

    fn rewrites_in_lines(&self, lines: &mut Lines) {
        lines.heading(self.rewrite_finding());
        let Some(Revisions { signals, articles, .. }) = self.changes() else { return };
        let most_at_an_age = highest_rate([signals, articles].into_iter());
        for (rewrites, what) in [(signals, "signals"), (articles, "articles")] {
            if rewrites.total.known > 0 {
                lines.wrap("", &rewrites.tally(what));
            }
            if rewrites.total.changed == 0 {
                continue;
            }
            for (age, rate) in rewrites.ages() {
                lines.bar(&format!("aged {age}"), rate / most_at_an_age, percent(rate));
            }
            let tickers = rewrites.most();
            let most = tickers.first().map_or(1, |(_, changed, _)| *changed);
            for (ticker, changed, _) in tickers.into_iter().take(TICKERS) {
                lines.bar(
                    ticker.as_str(),
                    changed as f64 / most as f64,
                    count_of(changed, "changed cell", "changed cells"),
                );
            }
        }
    }

    fn contents_in_lines(&self, lines: &mut Lines) {
        lines.heading(self.columns_with_nulls());
        for column in self.columns.iter().filter(|column| column.nulls > 0 || column.range.is_some()) {
            let nulls = (column.nulls > 0).then(|| format!("{} null", portion(column.nulls, self.facts.rows)));
            let parts: Vec<String> = column.range_in_words().into_iter().chain(nulls).collect();
            lines.wrap(&format!("  {:NAME$}", column.name), &parts.join(", "));
        }
        lines.wrap("", &self.identity.in_words);
        self.commands().iter().for_each(|command| lines.wrap("  ", command));
    }

    fn work_in_lines(&self, lines: &mut Lines) {
        let Activity { rejects, unknown, .. } = &self.work;
        lines.heading(self.work.unusable());
        for RejectReason { reason, records, .. } in rejects.reasons.iter().take(TICKERS) {
            lines.wrap(&format!("{} ", count_of(*records, "record", "records")), reason);
        }
        lines.more(rejects.reasons.len(), "reason", "reasons");
        for Drift { field, endpoint, count, .. } in unknown.fields.iter().take(TICKERS) {
            lines.wrap(&format!("{} ", count_of(*count, "time", "times")), &format!("{field} of {endpoint}"));
        }
        lines.more(unknown.fields.len(), "field", "fields");
        lines.heading(self.fetch_time());
        let stages = self.stage_times();
        let most = stages.iter().map(|(_, time)| time.as_secs_f64()).fold(1e-9, f64::max);
        for (name, time) in stages {
            lines.bar(name, time.as_secs_f64() / most, took(time));
        }
    }
}

impl Lines {
    fn line(&mut self, text: impl Display) {
        let text = text.to_string();
        writeln!(self.text, "{}", escape(text.trim_end())).expect("a string takes any text");
    }

    fn blank(&mut self) {
        self.line("");
    }

    fn heading(&mut self, text: impl Display) {
        self.blank();
        self.wrap("", &text.to_string());
    }

    /// Notes how many entries of a list were left out.
    fn more(&mut self, all: usize, one: &str, many: &str) {
        if all > TICKERS {
            self.line(format_args!(
                "and {}",
                count_of((all - TICKERS) as u64, &format!("more {one}"), &format!("more {many}"))
            ));
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

    fn spark(&mut self, name: &str, counts: &[u64], value: impl Display) {
        let most = counts.iter().max().copied().unwrap_or_default().max(1) as f64;
        let plot: String = counts.iter().map(|count| spark((*count > 0).then(|| *count as f64 / most))).collect();
        self.plot(name, &plot, value);
    }

    fn pair(&mut self, pair: &PairFacts, shares: &[Option<f64>]) {
        let total = pair.total();
        let plot: String = shares.iter().map(|share| spark(*share)).collect();
        let mean = total.mean_confidence().unwrap_or_default();
        let value = format!("{:>6} buy, {mean:.3}", portion(total.buys, total.rows));
        self.plot(&format!("{} {}", pair.period, pair.regime), &plot, value);
    }

    /// A histogram, merging bins that do not fit.
    fn bins(&mut self, name: &str, bins: &Bins) {
        let together = bins.counts.len().div_ceil(self.middle()).max(1);
        let counts: Vec<u64> = bins.counts.chunks(together).map(|bins| bins.iter().sum()).collect();
        let (from, to) = bins.range();
        self.spark(name, &counts, format!("{from} to {to}"));
    }
}

/// A character of a sparkline; blank if there is no value.
fn spark(share: Option<f64>) -> char {
    const HEIGHTS: [char; 8] = ['▁', '▂', '▃', '▄', '▅', '▆', '▇', '█'];
    share.map_or(' ', |share| HEIGHTS[((share.clamp(0.0, 1.0) * 8.0) as usize).min(7)])
}
