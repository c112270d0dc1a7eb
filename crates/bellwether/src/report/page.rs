//! The page: first what the dataset comes to and what is new, then a section per question that people ask of it.
//!
//! Each section states its finding in a sentence before it shows any plot.

use std::collections::BTreeMap;
use std::time::Duration;

use maud::{Markup, html};
use serde_json::{Value, json};

use super::Report;
use super::calendar::{Axis, Step};
use super::frame::{Frame, Section, figure, foreign, key, link, notes, part, phrase, table};
use super::histogram::Histogram;
use super::news::Headline;
use super::numbers::{Agreement, Coverage, PairNumbers, TickerNumbers, Totals};
use super::plots::{Along, BASE, Layer, MapRow, Mark, Row, chart, counts, map, plot, rectangle, rows, tick};
use super::skill;
use crate::audit::answers::RejectReason;
use crate::audit::revisions::{Revisions, Rewrites};
use crate::interface::Endpoint;
use crate::tables::Drift;
use crate::text::human::{bytes, count_of, group_digits, percent, portion, round, took};

/// The size that a page stays below, with a reserve for what surrounds the table of tickers.
const MAX_BYTES: usize = 1_950_000;

/// The most buckets of a plot over time.
const BUCKETS: usize = 72;

/// The most pairs that have a plot each, rows of a table, sectors, tickers with gaps, tickers with changes and signals of the
/// newest date.
const PAIRS: usize = 27;
const ROWS: usize = 12;
const SECTORS: usize = 24;
const GAPS: usize = 48;
const CHANGED: usize = 10;
const NEWEST: usize = 12;

/// Buckets that the duration of a run is divided into.
const STRETCHES: usize = 80;

/// Height of a row of the matrix of pairs; must match the style of the names beside it.
const MATRIX_HEIGHT: f64 = 24.0;

/// The scale of shares, and the ends of a chart of them.
const SHARES: [&str; 3] = ["0 %", "50 %", "100 %"];
const WHOLE: [&str; 2] = ["100 %", "0 %"];

impl Report {
    /// Renders the report as one HTML file.
    pub fn page(&self) -> String {
        let mut sections = Vec::new();
        // A dataset of news has no signals.
        if self.has_signals() {
            sections.extend([self.coverage(), self.signals(), self.confidence(), self.persistence()]);
            sections.extend(self.agreement());
            sections.extend(self.by_sector());
        }
        sections.extend(self.skill.as_ref().map(skill::section_of));
        sections.extend([self.articles(), self.rewrites(), self.contents(), self.rejects(), self.timings()]);
        let drawn: usize = sections.iter().map(|(.., markup)| markup.0.len()).sum();
        sections.insert(0, self.one_ticker(MAX_BYTES.saturating_sub(drawn + 100_000)));
        let (kind, script, name) = ("dataset report", include_str!("script.js"), &self.identity.name);
        let foot = "This page is self-contained and loads nothing from the network. Hover over a plot, or focus it with Tab and \
                    use the arrow keys, to read its values.";
        let frame = Frame { title: name, kind, heading: name, style: "", script, reload: None, foot };
        frame.page(&self.head(&sections), &html! { @for (.., markup) in &sections { (markup) } })
    }

    /// What it comes to, what is new, and what the page has.
    fn head(&self, sections: &[Section]) -> Markup {
        let identity = &self.identity;
        let instant = |instant: chrono::DateTime<chrono::Utc>| instant.format("%Y-%m-%d %H:%M:%S UTC").to_string();
        let count = |count: usize| group_digits(count as u64);
        let figure = |name: &str, value: String, what: &str| {
            html! { div { dt { (phrase(what)) } dd id={ "figure-" (name) } { (value) } } }
        };
        let noun = if self.has_signals() { "signals" } else { "rows" };
        html! {
            ul.verdict {
                @for sentence in self.verdict() {
                    li id=[(sentence == self.standing()).then_some("standing")] { (phrase(&sentence)) }
                }
            }
            @if let Some(since) = &self.since { p.news { (phrase(&since.in_words(self))) } }
            p.news { (phrase(&self.freshness())) }
            (self.newest())
            nav {
                @for (id, heading, _) in sections { a href={ "#" (id) } { (heading) } " " }
            }
            @if let Some(description) = &identity.description { p.lede { (foreign(description)) } }
            dl.figures {
                (figure("rows", group_digits(self.facts.rows), noun))
                (figure("tickers", count(self.facts.tickers.len()), "tickers"))
                (figure("days", group_digits(self.day_count()), &format!("days, {}", self.range())))
                @if self.has_signals() { (figure("pairs", count(self.numbers.pairs.len()), "pairs of period and regime")) }
                @if let Some(news) = &self.news { (figure("articles", group_digits(news.articles), "articles about them")) }
            }
            dl.origin {
                div { dt { "As of" } dd { (instant(identity.as_of)) } }
                @if let Some(watched) = &identity.watched { div { dt { "Watched" } dd { (watched.to_string()) } } }
                @if let Some(version) = &identity.version {
                    div { dt { "Built" } dd { (instant(version.built_at)) } }
                    div { dt { "Version" } dd.code { (version.name) } }
                    div { dt { "Content" } dd.code { (version.content) } }
                }
                div { dt { "From" } dd { (count_of(self.work.runs.len() as u64, "run", "runs")) } }
            }
            (notes(&self.notes))
            details { summary { "Definition" } pre { (identity.definition.trim().replace('\t', "    ")) } }
        }
    }

    /// The signals of the newest date by their score.
    fn newest(&self) -> Markup {
        let newest = self.numbers.newest();
        let Some(day) = newest.first().and_then(|(_, latest)| latest.day()) else { return html! {} };
        let heads = ["ticker", "pair", "score", "moved"];
        let all = newest.len();
        let rows = newest.into_iter().take(NEWEST).map(|(ticker, latest)| {
            let moved = latest.change().map_or_else(|| "first".to_owned(), |change| format!("{change:+.3}"));
            let side = if latest.score < 0.0 { "say-sell" } else { "say-buy" };
            vec![
                html! { (ticker) },
                html! { (self.numbers.pairs[latest.pair].name()) },
                html! { span class=(side) { (format!("{:+.3}", latest.score)) } },
                html! { (moved) },
            ]
        });
        let note = "The score is the confidence, negative for a sell; it has moved since the signal before. The strongest first.";
        html! {
            (figure(&format!("Signals of {day}"), note, &table("compared", 2, &heads, rows)))
            @if all > NEWEST { p.cut { "Showing " (NEWEST) " of " (count_of(all as u64, "signal", "signals")) " of that day." } }
        }
    }

    /// A field for a ticker, and a table of as many as fit into some bytes, which the script shows.
    pub(super) fn one_ticker(&self, room: usize) -> Section {
        let strength = |ticker: Option<&TickerNumbers>| {
            ticker.iter().flat_map(|ticker| &ticker.latest).map(|it| it.score.abs()).fold(0.0, f64::max)
        };
        let mut order: Vec<(&String, Option<&TickerNumbers>)> = if self.has_signals() {
            self.numbers.tickers.iter().map(|ticker| (&ticker.name, Some(ticker))).collect()
        } else {
            self.facts.tickers.iter().map(|name| (name, None)).collect()
        };
        // The tickers of a dataset of news stay in order.
        order.sort_by(|(_, one), (_, other)| strength(*other).total_cmp(&strength(*one)));
        let all = order.len() as u64;
        let (mut size, mut known) = (0, serde_json::Map::new());
        for (name, numbers) in order {
            let row = self.of_ticker(name, numbers);
            // Escaped, a quotation mark takes six bytes.
            let text = row.to_string();
            size += text.len() + 5 * text.matches(['"', '&', '<', '>']).count() + name.len() + 20;
            if size > room {
                break;
            }
            known.insert(name.clone(), row);
        }
        let some = known.len() as u64;
        let [before, after] =
            if self.has_signals() { ["", " with the strongest last signals"] } else { ["first ", ""] };
        let scope = if some == all {
            format!("All {} are in this page.", count_of(all, "ticker", "tickers"))
        } else {
            let (some, all) = (group_digits(some), group_digits(all));
            format!("The {before}{some} of {all} tickers{after} are in this page.")
        };
        let pairs: Vec<String> = self.numbers.pairs.iter().map(PairNumbers::name).collect();
        let data = json!({ "pairs": pairs, "tickers": known });
        let body = html! {
            p {
                label for="search" { "Ticker" }
                input #search type="search" list="names" autocomplete="off" spellcheck="false" placeholder="Type a ticker";
            }
            datalist #names {}
            div #found aria-live="polite" {}
            div #data hidden { (data.to_string()) }
        };
        part("ticker", "One ticker", "What is known of a ticker", vec![scope], &body)
    }

    /// The last signals, the last articles and the revisions of a ticker: what the script shows.
    fn of_ticker(&self, name: &str, numbers: Option<&TickerNumbers>) -> Value {
        let latest = numbers.map_or(&[][..], |numbers| &numbers.latest).iter().map(|it| {
            json!([
                it.pair,
                it.day().map(|day| day.to_string()),
                round(it.score, 3),
                it.change().map(|it| round(it, 3))
            ])
        });
        let articles = self.news.iter().filter_map(|news| news.tickers.get(name)).flatten().rev().map(|it| {
            let title: String = it.title.chars().take(160).collect();
            json!([it.date.to_string(), it.score.map(|score| round(score, 3)), title, link(&it.link).map(String::from)])
        });
        let changed = self.revisions.iter().flat_map(|it| [(&it.signals, "signals"), (&it.articles, "articles")]);
        let changed = changed.filter_map(|(rewrites, what)| {
            let counts = rewrites.by_ticker.iter().find(|(ticker, _)| ticker.as_str() == name)?.1;
            Some(json!([what, counts.changed, counts.known]))
        });
        json!([latest.collect::<Vec<_>>(), articles.collect::<Vec<_>>(), changed.collect::<Vec<_>>()])
    }

    fn coverage(&self) -> Section {
        let coverage = self.numbers.coverage(BUCKETS);
        let axis = &coverage.axis;
        let mut asides = vec![
            "A ticker is complete when it has a signal for each of its period and regime pairs on every day that any \
             ticker has one for that pair."
                .to_owned(),
        ];
        asides.extend(self.beyond_the_plots());
        let title = format!("Tickers with signals, by {}", axis.step.as_str());
        let label = |index: usize| {
            let tickers = count_of(coverage.tickers[index], "ticker", "tickers");
            let days = count_of(coverage.days[index], "day", "days");
            format!("{}\n{tickers}, {days} with signals", axis.in_words(index))
        };
        let chart = counts("plot-tickers", &title, 64.0, &Along::Time(axis), &coverage.tickers, label);
        let body = html! {
            @if !axis.starts.is_empty() {
                (figure(&title, "", &chart))
                @if !coverage.incomplete.is_empty() { (self.gaps(&coverage)) }
            }
        };
        part("coverage", "Coverage", self.coverage_finding(&coverage), asides, &body)
    }

    /// The coverage map, a row per ticker with gaps.
    fn gaps(&self, coverage: &Coverage) -> Markup {
        let axis = &coverage.axis;
        let rows: Vec<MapRow> = coverage
            .incomplete
            .iter()
            .take(GAPS)
            .map(|covered| {
                let cells = covered.days.iter().enumerate().map(|(index, (days, due))| {
                    let (ticker, when) = (&covered.ticker, axis.in_words(index));
                    let label = format!("{ticker}, {when}\n{} of {}", group_digits(*days), group_digits(*due));
                    let share = *days as f64 / (*due).max(1) as f64;
                    (class_at(share, &[f64::MIN_POSITIVE, 0.5, 0.9, 1.0], &["q0", "q1", "q2", "q3", "q4"]), label)
                });
                let (days, due) = covered.total();
                MapRow { name: covered.ticker.clone(), cells: cells.collect(), value: portion(days, due) }
            })
            .collect();
        let title = format!("Tickers with gaps, by {}", axis.step.as_str());
        let keys = [("q0", "none"), ("q1", "under half"), ("q2", "over half"), ("q3", "over 90 %"), ("q4", "all")];
        let note = html! {
            span.keys { "Those with the most gaps first. Present: " @for (class, text) in keys { (key(class, text)) } }
        };
        let mut rest = Vec::new();
        if let Some(next) = coverage.incomplete.get(GAPS) {
            let (days, due) = next.total();
            let others = count_of((coverage.incomplete.len() - GAPS) as u64, "other has", "others have");
            rest.push(format!("{others} at least {} of their possible signals", portion(days, due)));
        }
        let complete = (self.numbers.tickers.len() - coverage.incomplete.len()) as u64;
        if complete > 0 {
            rest.push(format!("{} complete", count_of(complete, "ticker is", "tickers are")));
        }
        let body = html! {
            (map("plot-coverage", &title, axis, &rows))
            @if !rest.is_empty() { p.cut { (rest.join("; ")) "." } }
        };
        figure(&title, note, &body)
    }

    fn signals(&self) -> Section {
        let numbers = &self.numbers;
        let mut asides: Vec<String> =
            numbers.pair_range(Totals::buy_share, ["Lowest", "highest"]).into_iter().collect();
        asides.extend(self.beyond_the_plots());
        let finding = numbers.buy_finding();
        if numbers.pairs.len() > PAIRS {
            return part("signals", "Buy and sell", finding, asides, &self.many_pairs());
        }
        let axis = Axis::new(&numbers.days, Step::Week, 64);
        let of_pairs: Vec<Vec<Totals>> = numbers.pairs.iter().map(|pair| pair.over(&numbers.days, &axis)).collect();
        // A common scale for mean confidences, rounded outwards to hundredths.
        let means: Vec<f64> = of_pairs.iter().flatten().filter_map(|totals| totals.mean_confidence()).collect();
        let low = means.iter().copied().fold(f64::INFINITY, f64::min).min(f64::MAX);
        let high = means.iter().copied().fold(f64::NEG_INFINITY, f64::max).max(f64::MIN);
        let scale = if low > high {
            (0.0, 1.0)
        } else {
            ((low * 100.0).floor() / 100.0, (high * 100.0).floor() / 100.0 + 0.01)
        };
        let note = html! {
            "Top: share of signals that are " em.say-buy { "buy" } " and " em.say-sell { "sell" }
            "; the dashed line is at 50 %. Bottom: mean confidence."
        };
        let body = html! {
            div.multiples {
                @for (pair, totals) in numbers.pairs.iter().zip(&of_pairs) { (of_pair(pair, totals, &axis, scale)) }
            }
        };
        let title = format!("By period, regime and {}", axis.step.as_str());
        part("signals", "Buy and sell", finding, asides, &figure(&title, note, &body))
    }

    /// Buys and sells of many pairs, in one plot: a row for each, the most one-sided first.
    fn many_pairs(&self) -> Markup {
        let numbers = &self.numbers;
        let one_sided = |pair: &PairNumbers| pair.totals.buy_share().map_or(0.0, |share| (share - 0.5).abs());
        let mut pairs: Vec<&PairNumbers> = numbers.pairs.iter().collect();
        pairs.sort_by(|one, other| one_sided(other).total_cmp(&one_sided(one)));
        let axis = Axis::new(&numbers.days, Step::Month, 24);
        let shade = |share| {
            let classes = ["sell4", "sell3", "sell2", "sell1", "buy1", "buy2", "buy3", "buy4"];
            class_at(share, &[0.2, 0.35, 0.45, 0.5, 0.55, 0.65, 0.8], &classes)
        };
        let rows = pairs.into_iter().map(|pair| {
            let cells = pair.over(&numbers.days, &axis).into_iter().enumerate().map(|(index, totals)| {
                let (when, rows) = (axis.in_words(index), group_digits(totals.rows));
                let label = format!("{}, {when}\n{} of {rows} buy", pair.name(), portion(totals.buys, totals.rows));
                (totals.buy_share().map_or("q0", shade), label)
            });
            let value = portion(pair.totals.buys, pair.totals.rows);
            MapRow { name: pair.name(), cells: cells.collect(), value }
        });
        let title = format!("Share of buys by period, regime and {}", axis.step.as_str());
        let note = "The most one-sided pairs first. The color is the distance from as many buys as sells; on the right, the \
                    share of all signals that are buys.";
        figure(&title, note, &map("plot-signals", &title, &axis, &rows.collect::<Vec<_>>()))
    }

    fn confidence(&self) -> Section {
        let [sells, buys] = &self.numbers.confidences;
        let [of_buys, of_sells] = Histogram::bins([buys, sells]);
        let left_out = of_buys.left_out + of_sells.left_out;
        let asides = (left_out > 0)
            .then(|| format!("{} confidences fall outside the plotted range.", group_digits(left_out)))
            .into_iter()
            .collect();
        let most = of_buys.counts.iter().chain(&of_sells.counts).copied().max().unwrap_or_default().max(1);
        let columns = |counts: &[u64], side: f64, [one, many]: [&str; 2]| {
            let column = counts.iter().enumerate().map(|(bin, count)| {
                let label = format!("confidence {}\n{}", of_buys.edges(bin), count_of(*count, one, many));
                let end = 0.5 + side * (*count as f64 / most as f64 / 2.0);
                Some((end.min(0.5), end.max(0.5), label))
            });
            column.collect()
        };
        let title = "Confidence of buys and sells";
        let layers = [
            Layer::Columns("buy", columns(&of_buys.counts, 1.0, ["buy", "buys"])),
            Layer::Columns("sell", columns(&of_sells.counts, -1.0, ["sell", "sells"])),
            Layer::Rule("base", 0.5),
        ];
        let (most, along) = (group_digits(most), Along::Scale(of_buys.range()));
        let chart = chart("plot-confidence", title, 180.0, [&most, &most], &along, &layers);
        let note = html! {
            "Signals by confidence, in steps of " (of_buys.width) ": "
            em.say-buy { (count_of(buys.count(), "buy", "buys")) } " upwards, "
            em.say-sell { (count_of(sells.count(), "sell", "sells")) } " downwards."
        };
        let finding = self.numbers.confidence_finding();
        part("confidence", "Confidence", finding, asides, &figure(title, note, &chart))
    }

    fn persistence(&self) -> Section {
        let numbers = &self.numbers;
        let range = numbers.pair_range(Totals::flip_share, ["Least often", "most often"]);
        let asides = range.into_iter().chain(numbers.flips_by_confidence()).collect();
        if numbers.followed.count() == 0 {
            return part("persistence", "Persistence", numbers.flip_finding(), asides, &html! {});
        }
        let mut pairs: Vec<&PairNumbers> = numbers.pairs.iter().collect();
        let share = |pair: &PairNumbers| pair.totals.flip_share().unwrap_or_default();
        if pairs.len() > PAIRS {
            pairs.sort_by(|one, other| share(other).total_cmp(&share(one)));
        }
        let by_pair = pairs.iter().take(PAIRS).map(|pair| {
            let id = format!("plot-flips-{}-{}", pair.period, pair.regime);
            Row::new(id, pair.name(), "bar", Mark::Share(share(pair)), percent(share(pair)))
        });
        let [followed, flipped] = Histogram::bins([&numbers.followed, &numbers.flipped]);
        let columns = followed.counts.iter().zip(&flipped.counts).enumerate().map(|(bin, (all, flipped))| {
            let (edges, share) = (followed.edges(bin), portion(*flipped, *all));
            let label = format!("confidence {edges}\n{share} of {} flip", group_digits(*all));
            (*all > 0).then(|| (0.0, *flipped as f64 / *all as f64, label))
        });
        let layers = [Layer::Columns("bar", columns.collect()), BASE];
        let along = Along::Scale(followed.range());
        let chart = chart("plot-persistence", "Flips by confidence", 96.0, WHOLE, &along, &layers);
        let of_pairs = html! {
            (rows(by_pair, &SHARES))
            @if pairs.len() > PAIRS { p.cut { "Showing the " (PAIRS) " of " (pairs.len()) " pairs that flip most often." } }
        };
        let note = "Share of signals at each confidence that are followed by their opposite.";
        let body = html! {
            (figure("How often signals flip", "Share of signals followed by their opposite in the same series.", &of_pairs))
            (figure("Flips by confidence", note, &chart))
        };
        part("persistence", "Persistence", numbers.flip_finding(), asides, &body)
    }

    /// Pairs are compared if there are several.
    fn agreement(&self) -> Option<Section> {
        let numbers = &self.numbers;
        let finding = numbers.agreement_finding()?;
        let mut asides = Vec::new();
        if let Some([least, most]) = numbers.agreement_extremes() {
            let named = |it: &Agreement| format!("{}, {}", numbers.pair_names(it), it.in_words());
            asides.push(format!("Least: {}. Most: {}.", named(least), named(most)));
        }
        let compared: Vec<&Agreement> = numbers.agreements.iter().flatten().filter(|it| it.answers.both > 0).collect();
        if compared.iter().any(|it| it.answers.kappa().is_some()) {
            let kappa = "Agreement beyond chance is Cohen's kappa: 0 if two pairs agree as often as two that buy as often and \
                         know nothing of each other, 1 if they always agree, negative if they agree less often than by chance.";
            asides.push(kappa.to_owned());
        }
        let body = html! { @if !compared.is_empty() { (self.matrix(&compared)) } };
        Some(part("agreement", "Agreement", finding, asides, &body))
    }

    /// A row and a column for each pair; columns are headed by row numbers.
    fn matrix(&self, agreements: &[&Agreement]) -> Markup {
        let pairs = &self.numbers.pairs;
        // The last pair has a row and no column of its own.
        let (count, bottom) = (pairs.len() - 1, pairs.len() as f64 * MATRIX_HEIGHT);
        let extent = |column: usize| [column as f64 / count as f64, (column as f64 + 0.88) / count as f64];
        let shade = |it: &Agreement| {
            let classes = ["less4", "less3", "less2", "less1", "more1", "more2", "more3", "more4"];
            class_at(it.answers.kappa().unwrap_or_default(), &[-0.6, -0.3, -0.1, 0.0, 0.1, 0.3, 0.6], &classes)
        };
        let content = html! {
            @for it in agreements {
                @let ([column, row], both) = (it.pairs, count_of(it.answers.both, "signal", "signals"));
                @let label = format!("{}\nof {both} each, {}", self.numbers.pair_names(it), it.in_words());
                @let top = row as f64 * MATRIX_HEIGHT;
                @let [left, right] = extent(column);
                (rectangle(shade(it), [left, right], [top + 1.5, top + MATRIX_HEIGHT - 1.5], Some(&label)))
                text.cell x=(format!("{:.2}%", (left + right) * 50.0)) y=(top + MATRIX_HEIGHT / 2.0 + 4.0) text-anchor="middle" {
                    (format!("{:.0}", it.answers.rate().unwrap_or_default() * 100.0))
                }
            }
            @for column in 0..count {
                (tick(extent(column).iter().sum::<f64>() / 2.0, bottom + 12.0, &(column + 1).to_string()))
            }
        };
        let title = "Share of signals that agree";
        let note = "In percent of the tickers and dates for which both have a signal; the color is the agreement beyond chance. \
                    Column numbers refer to rows.";
        let body = html! {
            div.map.matrix {
                ol { @for (index, pair) in pairs.iter().enumerate() { li { (index + 1) ". " (pair.name()) } } }
                div { (plot("plot-agreement", title, bottom + 18.0, count, &content)) }
            }
        };
        figure(title, note, &body)
    }

    /// The sectors, if any is known.
    fn by_sector(&self) -> Option<Section> {
        let (finding, mut asides) = self.sector_finding()?;
        asides.push("Each ticker counts in the sector that the service lists it in, as of the report.".to_owned());
        let heads = ["sector", "tickers", "signals", "buys", "confidence", "flips"];
        let rows = self.sectors.iter().take(SECTORS).map(|sector| {
            let totals = sector.totals();
            vec![
                foreign(sector.display_name()),
                html! { (group_digits(sector.tickers.len() as u64)) },
                html! { (group_digits(totals.rows)) },
                html! { (portion(totals.buys, totals.rows)) },
                html! { (format!("{:.3}", totals.mean_confidence().unwrap_or_default())) },
                html! { (totals.flip_share().map_or_else(|| "-".to_owned(), percent)) },
            ]
        });
        let note = "Share of signals that are buys, and share followed by their opposite.";
        let body = html! {
            (figure("By sector", note, &table("compared", 1, &heads, rows)))
            @if self.sectors.len() > SECTORS { p.cut { "Showing " (SECTORS) " of " (self.sectors.len()) " sectors." } }
        };
        Some(part("sectors", "Sectors", finding, asides, &body))
    }

    fn articles(&self) -> Section {
        let (finding, asides) = (self.news_finding(), self.news_scope().into_iter().collect());
        let Some(news) = &self.news else { return part("news", "News", finding, asides, &html! {}) };
        let bars = self.numbers.windows.iter().map(|window| {
            let all = self.facts.rows.max(1) as f64;
            let mark = Mark::ShareAndUnknown(window.with_news as f64 / all, window.unknown as f64 / all);
            let value = portion(window.with_news, self.facts.rows - window.unknown);
            Row::new(format!("plot-window-{}", window.length), window.in_words(), "bar", mark, value)
        });
        let note = html! {
            span.keys {
                "By window length, of the signals for which it is known. A window ends at the signal's date minus the lag of the \
                 join. Of all signals: "
                (key("bar", "with news")) (key("unknown", "unknown")) (key("track", "none"))
            }
        };
        let headlines = |title: &str, headlines: &[Headline]| {
            let list = html! {
                ul.headlines {
                    @for Headline { score, ticker, date, title, link: address } in headlines {
                        li {
                            span { (format!("{:+.3}", score.unwrap_or_default())) }
                            span {
                                @match link(address) {
                                    Some(url) => a href=(url) rel="noopener noreferrer nofollow" { (foreign(title)) },
                                    None => (foreign(title)),
                                }
                                small { (ticker) ", " (date.to_string()) }
                            }
                        }
                    }
                }
            };
            figure(title, "", &list)
        };
        let body = html! {
            @if !self.numbers.windows.is_empty() { (figure("Signals with news", note, &rows(bars, &SHARES))) }
            @if news.articles > 0 {
                (self.news_over_time())
                (self.scores(&news.scores))
                div.pair { (headlines("Lowest scores", &news.lowest)) (headlines("Highest scores", &news.highest)) }
            }
        };
        part("news", "News", finding, asides, &body)
    }

    fn news_over_time(&self) -> Markup {
        let axis = self.news_axis(BUCKETS);
        let Some(news) = self.news.as_ref().filter(|_| !axis.starts.is_empty()) else { return html! {} };
        let articles = axis.sums(news.days.iter().map(|(day, count)| (*day, *count)));
        let by = axis.step.as_str();
        let title = format!("Articles by {by}");
        let label =
            |index: usize| format!("{}\n{}", axis.in_words(index), count_of(articles[index], "article", "articles"));
        let over_time = counts("plot-news", &title, 84.0, &Along::Time(&axis), &articles, label);
        let reach = self.numbers.longest_window().map(|window| {
            let drawn = self.facts.days.iter().filter(|(day, _)| self.numbers.days.binary_search(day).is_ok());
            let counts = drawn.zip(&window.days).map(|((day, rows), counts)| (*day, (counts, rows)));
            let sums = axis.group(counts, |sum: &mut (u64, u64, u64), ([some, unknown], rows)| {
                *sum = (sum.0 + some, sum.1 + unknown, sum.2 + rows);
            });
            let share = |some: u64, all: u64| some as f64 / all.max(1) as f64;
            let known = sums.iter().enumerate().map(|(index, (some, unknown, all))| {
                let known = all - unknown;
                let label = format!("{} of {}", portion(*some, known), count_of(known, "signal", "signals"));
                Some((0.0, share(*some, *all), format!("{}\n{label}", axis.in_words(index))))
            });
            let unknown = sums.iter().enumerate().map(|(index, (some, unknown, all))| {
                let label = format!("{}\nunknown for {}", axis.in_words(index), portion(*unknown, *all));
                (*unknown > 0).then(|| (share(*some, *all), share(some + unknown, *all), label))
            });
            let title = format!("Signals with news within {}, by {by}", window.in_words());
            let note = html! { span.keys { "Of all signals: " (key("bar", "with news")) (key("unknown", "unknown")) } };
            let layers = [Layer::Columns("bar", known.collect()), Layer::Columns("unknown", unknown.collect()), BASE];
            figure(&title, note, &chart("plot-reach", &title, 84.0, WHOLE, &Along::Time(&axis), &layers))
        });
        html! {
            (figure(&title, self.articles_beyond(&articles).unwrap_or_default(), &over_time))
            @if let Some(reach) = reach { (reach) }
        }
    }

    fn scores(&self, scores: &Histogram) -> Markup {
        let [bins] = Histogram::bins([scores]);
        let left_out = match bins.left_out {
            0 => String::new(),
            count => format!(" {} fall outside the plotted range.", group_digits(count)),
        };
        let label =
            |bin: usize| format!("score {}\n{}", bins.edges(bin), count_of(bins.counts[bin], "article", "articles"));
        let title = "Article scores";
        let chart = counts("plot-scores", title, 96.0, &Along::Scale(bins.range()), &bins.counts, label);
        figure(title, format!("Articles by score, in steps of {}.{left_out}", bins.width), &chart)
    }

    fn rewrites(&self) -> Section {
        let mut asides = Vec::new();
        let mut body = html! {};
        if let Some(Revisions { signals, articles, .. }) = self.changes() {
            let tables = [(signals, "signals"), (articles, "articles")];
            let known = tables.iter().filter(|(rewrites, _)| rewrites.total.known > 0);
            asides.extend(known.map(|(rewrites, what)| rewrites.tally(what)));
            let changed: Vec<_> = tables.into_iter().filter(|(rewrites, _)| rewrites.total.changed > 0).collect();
            // Side by side, so on one scale.
            let most = changed.iter().map(|(rewrites, _)| rewrites.ages().1).fold(f64::MIN_POSITIVE, f64::max);
            body = html! {
                div.pair { @for (rewrites, what) in &changed { (by_age(rewrites, what, most)) } }
                @for (rewrites, what) in &changed { (by_month(rewrites, what)) (by_changed_ticker(rewrites, what)) }
            };
        } else if self.work.runs.len() == 1 {
            asides.push("Revisions show up from the second run on.".to_owned());
        }
        part("rewrites", "Revisions", self.rewrite_finding(), asides, &body)
    }

    /// What a version holds: its columns, its files and how to load them, and what changed since the version before.
    fn contents(&self) -> Section {
        let asides = vec![self.identity.in_words.clone()];
        let heads = ["column", "null", "lowest", "highest"];
        let rows = self.columns.iter().map(|column| {
            let [low, high] = column.ends().unwrap_or_else(|| ["-".to_owned(), "-".to_owned()]);
            vec![
                html! { code { (column.name) } },
                html! { (portion(column.nulls, self.facts.rows)) },
                html! { (low) },
                html! { (high) },
            ]
        });
        let note = "Share of rows without a value, and the range of the others.";
        let commands = self.commands();
        let body = html! {
            (figure("Columns", note, &table("compared", 1, &heads, rows)))
            @if !commands.is_empty() {
                (figure("How to read it", "In Python, and in a shell.", &html! { pre { (commands.join("\n")) } }))
            }
        };
        part("columns", "Columns", self.column_finding(), asides, &body)
    }

    fn rejects(&self) -> Section {
        let (rejects, fields) = (&self.work.rejects, &self.work.unknown.fields);
        let counted = "Counted in the latest answer to each request of this dataset. New: not in the previous answer.";
        let has_any = rejects.records > 0 || !fields.is_empty();
        let asides = has_any.then(|| counted.to_owned()).into_iter().collect();
        let reasons =
            rejects.reasons.iter().take(ROWS).map(|RejectReason { reason, example, records, new, .. }| {
                let (request, pointer) = example;
                let new = new.map_or_else(|| "-".to_owned(), group_digits);
                let example = foreign(&format!("{pointer} of {request}"));
                vec![foreign(reason), example, html! { (group_digits(*records)) }, html! { (new) }]
            });
        let unlisted = match rejects.unlisted {
            0 => String::new(),
            count => format!(" {} more are counted but not listed.", group_digits(count)),
        };
        let note = format!("Every rejected record is kept in the archive with its position and raw text.{unlisted}");
        let of_reasons = ["reason", "example", "records", "new"];
        let of_fields = ["field", "operation", "example", "times"];
        let unknown = fields.iter().take(ROWS).map(|Drift { field, endpoint, example, count }| {
            vec![foreign(field), html! { (endpoint.to_string()) }, foreign(example), html! { (group_digits(*count)) }]
        });
        let body = html! {
            @if !rejects.reasons.is_empty() {
                @let body = html! { (table("wide", 2, &of_reasons, reasons)) (cut(rejects.reasons.len(), "reasons")) };
                (figure("Why records were rejected", note, &body))
            }
            @if !fields.is_empty() {
                @let body = html! { (table("wide", 3, &of_fields, unknown)) (cut(fields.len(), "fields")) };
                (figure("Unknown fields", "", &body))
            }
        };
        part("rejects", "Rejected records", self.work.unusable(), asides, &body)
    }

    fn timings(&self) -> Section {
        let heads = ["run", "definition", "fetched in", "requests", "added", "revised", "withdrawn", "rejected"];
        let rows = self.work.runs.iter().take(ROWS).map(|run| {
            let changes = &run.changes;
            let counts = [run.requests, changes.added, changes.revised, changes.withdrawn, run.rejects];
            let mut cells =
                vec![html! { code { (run.name) } }, html! { (run.definition) }, html! { (took(run.fetched_in)) }];
            cells.extend(counts.map(|count| html! { (group_digits(count)) }));
            cells
        });
        let note =
            "Runs that answered a request of this dataset, newest first. Changes cover everything a run requested.";
        let runs = html! { (table("wide", 2, &heads, rows)) (cut(self.work.runs.len(), "runs")) };
        let body = html! { (self.answers()) (figure("Runs", note, &runs)) };
        part("timings", "Time", self.fetch_finding(), Vec::new(), &body)
    }

    /// When the answers of the newest run came, by operation, in the order in which operations were first answered.
    fn answers(&self) -> Markup {
        let Some(run) = self.work.runs.first() else { return html! {} };
        let mut of_operations: BTreeMap<Endpoint, (Vec<Duration>, [u64; 3])> = BTreeMap::new();
        for request in &self.work.newest {
            let (complete, [again, rows, bytes]) = of_operations.entry(request.endpoint).or_default();
            complete.push((request.observed_at - run.started_at).to_std().unwrap_or_default());
            *again += u64::from(request.attempts.saturating_sub(1));
            *rows += request.rows;
            *bytes += request.bytes;
        }
        of_operations.values_mut().for_each(|(complete, _)| complete.sort_unstable());
        let mut all: Vec<_> = of_operations.into_iter().collect();
        all.sort_by_key(|(_, (complete, _))| complete.first().copied());
        let end = all.iter().filter_map(|(_, (complete, _))| complete.last()).max().copied();
        let end = end.unwrap_or_default().as_secs_f64().max(1e-3);
        html! {
            @for (index, (endpoint, (complete, [again, rows, size]))) in all.iter().enumerate() {
                @let title = format!("{}: {endpoint}", count_of(complete.len() as u64, "answer", "answers"));
                @let again = if *again > 0 { format!(", {} retried", group_digits(*again)) } else { String::new() };
                @let note = format!("{}, {}{again}.", count_of(*rows, "row", "rows"), bytes(*size));
                (figure(&title, note, &answers_over_time(index, &title, complete, end)))
            }
        }
    }
}

/// When answers came, from the start of a run to an end.
fn answers_over_time(index: usize, title: &str, complete: &[Duration], end: f64) -> Markup {
    let mut buckets = vec![0_u64; STRETCHES];
    for time in complete {
        let bucket = (time.as_secs_f64() / end * STRETCHES as f64) as usize;
        buckets[bucket.min(STRETCHES - 1)] += 1;
    }
    let most = buckets.iter().copied().max().unwrap_or_default().max(1);
    let columns = buckets.iter().enumerate().map(|(bucket, count)| {
        let from = Duration::from_secs_f64(end * bucket as f64 / STRETCHES as f64);
        let label = format!("after {}\n{}", took(from), count_of(*count, "answer", "answers"));
        // A single one among thousands must be visible.
        (*count > 0).then(|| (0.0, (*count as f64 / most as f64).max(0.05), label))
    });
    let along = Along::Labels(vec![(0.0, "start".to_owned()), (1.0, took(Duration::from_secs_f64(end)))]);
    let layers = [Layer::Columns("bar", columns.collect()), BASE];
    chart(&format!("plot-answers-{index}"), title, 42.0, [&group_digits(most), "0"], &along, &layers)
}

/// The class of a value, by the ends of all classes but the last.
fn class_at(value: f64, ends: &[f64], classes: &[&'static str]) -> &'static str {
    classes[ends.partition_point(|end| *end <= value)]
}

/// Notes how many rows were cut.
fn cut(all: usize, what: &str) -> Markup {
    html! { @if all > ROWS { p.cut { "Showing " (ROWS) " of " (group_digits(all as u64)) " " (what) "." } } }
}

/// The plots of one pair: share of buys, and mean confidence.
fn of_pair(pair: &PairNumbers, totals: &[Totals], axis: &Axis, (low, high): (f64, f64)) -> Markup {
    let (all, mean) = (pair.totals, pair.totals.mean_confidence().unwrap_or_default());
    let buys = portion(all.buys, all.rows);
    let (mut sells, mut of_buys, mut line, mut confidences) = (Vec::new(), Vec::new(), Vec::new(), Vec::new());
    for (index, of) in totals.iter().enumerate() {
        let (when, middle) = (axis.in_words(index), (index as f64 + 0.5) / totals.len() as f64);
        let measured = of.buy_share().zip(of.mean_confidence());
        sells.push(measured.map(|(share, _)| (share, 1.0, String::new())));
        of_buys.push(measured.map(|(share, mean)| {
            let (buys, rows) = (portion(of.buys, of.rows), group_digits(of.rows));
            (0.0, share, format!("{when}\n{buys} of {rows} buy\nconfidence {mean:.3}"))
        }));
        line.push(measured.map(|(_, mean)| (middle, (mean - low) / (high - low))));
        let mean = measured.map_or("no signals".to_owned(), |(_, mean)| format!("confidence {mean:.3}"));
        confidences.push(format!("{when}\n{mean}"));
    }
    let of_share =
        [Layer::Columns("sell flush", sells), Layer::Columns("buy flush", of_buys), Layer::Rule("half", 0.5)];
    let of_mean = [Layer::Line("", line), BASE, Layer::Labels(confidences)];
    let id = |plot: &str| format!("plot-{plot}-{}-{}", pair.period, pair.regime);
    let (name, none) = (pair.name(), Along::Labels(Vec::new()));
    let share = chart(&id("signals"), &format!("{name}: {buys} buys"), 46.0, WHOLE, &none, &of_share);
    let (ends, label) = ([format!("{high:.2}"), format!("{low:.2}")], format!("{name}: mean confidence {mean:.3}"));
    let mean_over_time =
        chart(&id("mean"), &label, 30.0, ends.each_ref().map(String::as_str), &Along::Time(axis), &of_mean);
    html! {
        div {
            div.name { b { (name) } span { span.say-buy { (buys) } " · " (format!("{mean:.3}")) } }
            (share)
            (mean_over_time)
        }
    }
}

fn by_age(rewrites: &Rewrites, what: &str, most: f64) -> Markup {
    let bars = rewrites.ages().0.into_iter().enumerate().map(|(index, (age, rate))| {
        let mark = Mark::Length(rate / most);
        Row::new(format!("plot-age-{what}-{index}"), age.to_string(), "alert", mark, percent(rate))
    });
    let note = format!("Share of the {what} that reached this age and changed then.");
    figure(&format!("Age of {what} when they changed"), note, &rows(bars, &["0 %", &percent(most)]))
}

fn by_month(rewrites: &Rewrites, what: &str) -> Markup {
    let months: Vec<_> = rewrites.by_month.iter().map(|(month, tally)| (month.start(), *tally)).collect();
    let starts: Vec<_> = months.iter().map(|(start, _)| *start).collect();
    let axis = Axis::new(&starts, Step::Month, BUCKETS);
    let changed = axis.sums(months.iter().map(|(start, tally)| (*start, tally.changed)));
    let known = axis.sums(months.iter().map(|(start, tally)| (*start, tally.known)));
    let rate = |index: usize| changed[index] as f64 / known[index].max(1) as f64;
    let most = (0..axis.starts.len()).map(rate).fold(f64::MIN_POSITIVE, f64::max);
    let columns = (0..axis.starts.len()).map(|index| {
        let (when, of) = (axis.in_words(index), group_digits(known[index]));
        let label = format!("{when}\n{} of {of} changed, {}", group_digits(changed[index]), percent(rate(index)));
        Some((0.0, rate(index) / most, label))
    });
    let title = format!("Changed {what}, by {} of their date", axis.step.as_str());
    let layers = [Layer::Columns("alert", columns.collect()), BASE];
    let id = format!("plot-rewrites-{what}");
    figure(&title, "", &chart(&id, &title, 84.0, [&percent(most), "0 %"], &Along::Time(&axis), &layers))
}

fn by_changed_ticker(rewrites: &Rewrites, what: &str) -> Markup {
    let tickers = rewrites.most_changed();
    let most = tickers.first().map_or(1, |(_, changed, _)| *changed);
    let bars = tickers.iter().take(CHANGED).enumerate().map(|(index, (ticker, changed, known))| {
        let mark = Mark::Length(*changed as f64 / most as f64);
        let value = format!("{}, {}", group_digits(*changed), portion(*changed, *known));
        Row::new(format!("plot-rewritten-{what}-{index}"), ticker.to_string(), "alert", mark, value)
    });
    let others = tickers.len().saturating_sub(CHANGED) as u64;
    let body = html! {
        (rows(bars, &["0", &group_digits(most)]))
        @if others > 0 { p.cut { (count_of(others, "other ticker has", "other tickers have")) " changed " (what) " too." } }
    };
    let note = format!("Changed {what}, and their share of all {what} of the ticker.");
    figure(&format!("Tickers with the most changed {what}"), note, &body)
}
