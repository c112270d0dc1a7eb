//! The quality of the vendor's data.
//!
//! Looks at the latest known signals and articles, and at the latest answer to each request:
//!
//! - *gaps*: due days without a signal, between the first and last day of a series. Most series are due on trading days: a
//!   day counts as one if at least half of these series that have begun and not ended by then have a signal, unless the
//!   definition gives a calendar. A series that comes once in five days or less often is due by its own cadence: the median
//!   of the days between its signals.
//! - *stale*: series whose last day is before the latest day on which they were due.
//! - *duplicates*: articles listed more than once with the same date, title and link.
//! - *unusual*: confidences outside 0 to 1 and scores outside -1 to 1. The interface gives no bounds; these are the
//!   usual ones.
//! - *rejects*: rejected records by reason; and *drift*: unknown fields.
//! - *windows*: signals with news in each window of a definition, when auditing one.
//! - *split days*: tickers whose signals are dated at other times of day than those of most others.
//! - *cut off*: a length at which the service seems to cut off lists of articles.
//! - *renames*: tickers that end where another goes on with the same history.
//!
//! Signals are read twice, a few whole tickers at a time and several such pieces at once, because trading days depend on
//! all of them; a third time only to compare the histories of suspected renames.

mod renames;

use std::collections::{BTreeMap, HashMap};
use std::path::PathBuf;

use arrow::array::{Array, AsArray, RecordBatch};
use arrow::datatypes::{DataType, Int32Type, SchemaRef, TimestampMicrosecondType};
use schemars::JsonSchema;
use serde::Serialize;

pub use renames::Rename;

use super::answers::{Answers, CutOff, RejectReason};
use super::cut::midnight;
use super::rows::RowValue::{Real, Text, Whole};
use super::rows::{Entry, RowWriter, always, optional, schema_of};
use super::subject::{ObservedColumns, Subject};
use crate::archive::{Histories, History};
use crate::dataset::{self, DatasetInput, SeriesNames};
use crate::error::Result;
use crate::facts::{SplitDays, TimesOfDay};
use crate::interface::{Endpoint, Period, Regime, Ticker};
use crate::plan::{DatasetPlan, Feature, RowKind};
use crate::tables::{Drift, SeriesKey, Table, date};
use crate::time::MICROS_PER_DAY;
use renames::{Candidates, Ends, LastWeeks};

/// Gaps, stale series, repeated articles, unusual values, rejected records and unknown fields.
#[derive(Clone, Debug, Default, Serialize, JsonSchema)]
pub struct Quality {
    /// The number of series of signals.
    pub series: u64,
    /// All tickers; `behind` is the most.
    pub total: TickerQuality,
    /// The tickers with findings.
    pub tickers: BTreeMap<Ticker, TickerQuality>,
    /// The signals with news in each window of a definition.
    pub windows: Vec<Window>,
    /// The length at which lists of articles seem to be cut off; none if they do not.
    pub cut_off: Option<CutOff>,
    /// Tickers whose signals are dated at other times of day than those of most others; none if there are none.
    pub split_days: Option<SplitDays>,
    /// Tickers that end where another goes on with the same history: suspected renames.
    pub renames: Vec<Rename>,
    /// The number of rejected records.
    pub rejected: u64,
    /// Why records were rejected.
    pub reasons: Vec<RejectReason>,
    /// Unknown fields of the latest answers.
    pub unknown_fields: Vec<Drift>,
    /// How many rejected records are counted but not listed.
    #[serde(skip)]
    pub unlisted: u64,
}

/// The quality of a ticker's data.
#[derive(Clone, Copy, Debug, Default, Serialize, JsonSchema)]
pub struct TickerQuality {
    /// Number of signals.
    pub signals: u64,
    /// Days on which a signal was due, from the first to the last of each series.
    pub due_days: u64,
    /// The share of them with a signal.
    pub coverage: Option<f64>,
    /// Those without a signal.
    pub missing: u64,
    /// Runs of consecutive missing days.
    pub gaps: u64,
    /// Series that end before the latest day on which they were due.
    pub stale: u64,
    /// The due days that the furthest of them is behind.
    pub behind: u64,
    /// Number of articles.
    pub articles: u64,
    /// Articles that repeat another one.
    pub duplicates: u64,
    /// Confidences and scores outside their usual bounds.
    pub unusual: u64,
}

/// The signals with news in a window.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct Window {
    /// Its length.
    pub window: String,
    /// Signals of the dataset.
    pub signals: u64,
    /// Signals with an article in the window.
    pub with_news: u64,
    /// The signals for which it is unknown what was in the window.
    pub unknown: u64,
}

impl Window {
    /// Share of the signals with a known window that have news; `None` without such signals.
    pub fn share(&self) -> Option<f64> {
        let known = self.signals - self.unknown;
        (known > 0).then(|| self.with_news as f64 / known as f64)
    }
}

impl TickerQuality {
    fn add(&mut self, other: Self) {
        add_fields!(self, other, signals, due_days, missing, gaps, stale, articles, duplicates, unusual);
        self.behind = self.behind.max(other.behind);
        let present = self.due_days - self.missing;
        self.coverage = (self.due_days > 0).then(|| present as f64 / self.due_days as f64);
    }
}

/// Audits a subject and delivers a row for each finding in the columns of [`schema`]. The answers to its requests are
/// included, and what the rows of the dataset of a plan show. `scratch` is a temporary folder, removed afterwards.
pub(crate) fn quality(
    subject: &Subject,
    answers: Answers,
    plan: Option<&DatasetPlan>,
    scratch: PathBuf,
    deliver: impl FnMut(&RecordBatch) -> Result<()>,
) -> Result<Quality> {
    let mut found = Quality {
        cut_off: answers.cut_off,
        rejected: answers.rejects.records,
        reasons: answers.rejects.reasons,
        unknown_fields: answers.unknown.fields,
        unlisted: answers.rejects.unlisted,
        ..Quality::default()
    };
    if let Some(plan) = plan.filter(|plan| plan.rows != RowKind::Article) {
        found.look_at_rows(subject, plan, scratch)?;
    }
    let (calendar, last_weeks) = &days_and_ends(subject)?;
    let mut candidates = Candidates::default();
    let mut rows = RowWriter::new(entries(), deliver);
    let mut take = |piece: Piece| {
        found.series += piece.series;
        for (ticker, counted) in piece.tickers {
            found.total.add(counted);
            found.tickers.entry(ticker).or_default().add(counted);
        }
        candidates.extend(piece.candidates);
        piece.findings.iter().try_for_each(|finding| rows.push(finding))
    };
    for table in [Table::Signals, Table::Articles] {
        let look = |histories: &Histories, observed: &ObservedColumns<'_>| {
            let mut piece = Piece::default();
            for history in subject.series(histories) {
                if table == Table::Articles {
                    piece.articles(subject, history, observed);
                } else {
                    piece.signals(subject, history, observed, calendar);
                    renames::look(last_weeks, subject, history, observed, &mut piece.candidates);
                }
            }
            Ok(piece)
        };
        subject.each_piece(|view| view.observations(table), look, &mut take)?;
    }
    found.tickers.retain(|_, of| of.missing + of.stale + of.duplicates + of.unusual > 0);
    found.renames = renames::compare(&candidates, subject)?;
    found.whole_findings().iter().try_for_each(|finding| rows.push(finding))?;
    rows.flush()?;
    Ok(found)
}

/// The days on which signals are due, and the tickers that have ended.
fn days_and_ends(subject: &Subject) -> Result<(TradingDays, LastWeeks)> {
    let (mut presence, mut ends) = (Presence::default(), Ends::default());
    let work = |histories: &Histories, observed: &ObservedColumns<'_>| {
        let (mut days, mut ends) = (Vec::new(), Ends::default());
        for history in subject.series(histories) {
            days.push(SeriesDays::new(subject, history, observed));
            renames::add_end(&mut ends, subject, history, observed);
        }
        Ok((days, ends))
    };
    let add = |piece: (Vec<SeriesDays>, Ends)| {
        piece.0.iter().for_each(|days| presence.add(days));
        ends.extend(piece.1);
        Ok(())
    };
    subject.each_piece(|view| view.observations(Table::Signals), work, add)?;
    let first = presence.counts.keys().next().copied();
    let mut calendar = presence.calendar();
    if let (Some(first), Some(last), Some(sessions)) = (first, calendar.last, &subject.sessions)
        && let (Ok(first), Ok(last)) = (i32::try_from(first), i32::try_from(last))
    {
        calendar.trading = sessions.between(first, last).iter().copied().map(Day::from).collect();
    }
    Ok((calendar, renames::last_weeks(ends)))
}

/// What was found in some series.
#[derive(Default)]
struct Piece {
    series: u64,
    tickers: BTreeMap<Ticker, TickerQuality>,
    findings: Vec<Finding>,
    /// What may be renames.
    candidates: Candidates,
}

impl Piece {
    fn signals(
        &mut self,
        subject: &Subject,
        history: &History,
        observed: &ObservedColumns<'_>,
        calendar: &TradingDays,
    ) {
        let series = SeriesDays::new(subject, history, observed);
        if series.days.is_empty() {
            return;
        }
        let mut counted = TickerQuality::default();
        let of_series = Finding { key: Some(history.key.clone()), ..Finding::default() };
        for row in observed.known_rows(history) {
            let Some(date) = observed.written_date(row).filter(|_| subject.has_date(observed, row)) else { continue };
            counted.signals += 1;
            let value = observed.value(row).number.filter(|value| !(0.0..=1.0).contains(value));
            if value.is_some() {
                counted.unusual += 1;
                let (source, date) = (observed.source(row).map(Endpoint::as_str), Some(date));
                self.findings.push(Finding { kind: "unusual", source, date, value, ..of_series.clone() });
            }
        }
        let over = |kind, range: DayRange| {
            let [date, until] = [range.first, range.last].map(|day| Some(day * MICROS_PER_DAY));
            Finding { kind, date, until, count: Some(range.days), ..of_series.clone() }
        };
        let DueDays { due, gaps, behind } = calendar.due(&series);
        counted.due_days = due;
        for gap in gaps {
            counted.gaps += 1;
            counted.missing += gap.days;
            self.findings.push(over("gap", gap));
        }
        if let Some(behind) = behind {
            (counted.stale, counted.behind) = (1, behind.days);
            self.findings.push(over("stale", behind));
        }
        self.series += 1;
        self.tickers.entry(history.key.ticker.clone()).or_default().add(counted);
    }

    fn articles(&mut self, subject: &Subject, history: &History, observed: &ObservedColumns<'_>) {
        let mut counted = TickerQuality::default();
        let texts = observed.texts.expect("these are articles");
        let article = |row: usize| (observed.dates.value(row), texts.map(|texts| texts.value(row)));
        let known: Vec<usize> = observed.known_rows(history).filter(|&row| subject.has_date(observed, row)).collect();
        // Articles are sorted by date, title and link.
        for same in known.chunk_by(|&one, &other| article(one) == article(other)) {
            let (date, [title, _]) = article(same[0]);
            counted.articles += same.len() as u64;
            let (key, date, what) = (Some(history.key.clone()), Some(date), Some(title.to_owned()));
            let finding = Finding { key, date, what, ..Finding::default() };
            if same.len() > 1 {
                counted.duplicates += same.len() as u64 - 1;
                self.findings.push(Finding { kind: "duplicate", count: Some(same.len() as u64), ..finding.clone() });
            }
            for score in same.iter().filter_map(|&row| observed.value(row).number) {
                if !(-1.0..=1.0).contains(&score) {
                    counted.unusual += 1;
                    self.findings.push(Finding { kind: "unusual", value: Some(score), ..finding.clone() });
                }
            }
        }
        self.tickers.entry(history.key.ticker.clone()).or_default().add(counted);
    }
}

impl Quality {
    /// Counts signals with news in each window of a dataset, and looks at their dates: builds the dataset with only its
    /// counts.
    fn look_at_rows(&mut self, subject: &Subject, plan: &DatasetPlan, scratch: PathBuf) -> Result<()> {
        let Some(scope) = subject.scope() else { return Ok(()) };
        let (lengths, plan, view) = (plan.windows(), plan.of_counts(), &subject.view);
        let window = |window: String| Window { window, signals: 0, with_news: 0, unknown: 0 };
        self.windows = lengths.iter().map(|days| window(days.to_string())).collect();
        let (mut tickers, mut times) = (HashMap::new(), TimesOfDay::default());
        let input = DatasetInput {
            slabs: || view.slabs(scope, plan.vintage),
            names: SeriesNames::default(),
            past: plan.needs_past().then(|| view.past(scope, &plan)).transpose()?,
            prices: None,
            stop: view.archive().stop(),
        };
        dataset::build(input, &plan, scratch, |rows| {
            let column = |name: &str| rows.column(name).expect("the plan has the columns of signals and counts");
            let (names, dates) = (column("ticker"), column("date"));
            let (all, moments) =
                (names.values().as_string::<i32>(), dates.values().as_primitive::<TimestampMicrosecondType>());
            for (start, _) in (names.boundaries() | dates.boundaries()).runs() {
                let (name, count) = (all.value(names.index(start)), tickers.len());
                let ticker = match tickers.get(name) {
                    Some(ticker) => *ticker,
                    None => *tickers.entry(name.to_owned()).or_insert(count),
                };
                times.add(ticker, moments.value(dates.index(start)));
            }
            for (window, days) in self.windows.iter_mut().zip(&lengths) {
                let column = column(&Feature::count(*days).to_string());
                let counts = column.values().as_primitive::<Int32Type>();
                window.signals += column.len() as u64;
                window.unknown += column.rows_where(|index| counts.is_null(index)) as u64;
                window.with_news += column.rows_where(|index| counts.is_valid(index) && counts.value(index) > 0) as u64;
            }
            Ok(())
        })?;
        self.split_days = times.split();
        Ok(())
    }

    /// Findings that are of no series, and renames.
    fn whole_findings(&self) -> Vec<Finding> {
        let none = Finding::default();
        let mut findings = Vec::new();
        for RejectReason { operation, reason, records, .. } in &self.reasons {
            let (source, count, what) = (Some(*operation), Some(*records), Some(reason.clone()));
            findings.push(Finding { kind: "reject", source, count, what, ..none.clone() });
        }
        for Drift { endpoint, field, count, .. } in &self.unknown_fields {
            let (source, count, what) = (Some(endpoint.as_str()), Some(*count), Some(field.clone()));
            findings.push(Finding { kind: "drift", source, count, what, ..none.clone() });
        }
        if let Some(SplitDays { tickers, times: [_, other], .. }) = &self.split_days {
            let (count, what) = (Some(*tickers), Some(format!("dated at {other}")));
            findings.push(Finding { kind: "split_days", count, what, ..none.clone() });
        }
        for rename in &self.renames {
            let (table, ticker) = (Some(Table::Signals), rename.ticker.clone());
            findings.push(Finding {
                kind: "rename",
                key: Some(SeriesKey { table, ticker, period: Some(rename.period), regime: Some(rename.regime) }),
                date: Some(midnight(rename.begins)),
                until: Some(midnight(rename.ends)),
                count: Some(rename.overlap),
                value: Some(rename.equal as f64 / rename.overlap as f64),
                what: Some(rename.successor.to_string()),
                ..none.clone()
            });
        }
        if let Some(CutOff { articles, tickers, .. }) = self.cut_off {
            let (count, what) = (Some(tickers), Some(format!("lists of {articles} articles")));
            findings.push(Finding { kind: "cut_off", count, what, ..none.clone() });
        }
        for window in &self.windows {
            let (count, value, what) = (Some(window.with_news), window.share(), Some(window.window.clone()));
            findings.push(Finding { kind: "window", count, value, what, ..none.clone() });
        }
        findings
    }
}

/// A finding, by the columns of its row.
#[derive(Clone, Debug, Default)]
pub(super) struct Finding {
    kind: &'static str,
    key: Option<SeriesKey>,
    source: Option<&'static str>,
    date: Option<i64>,
    until: Option<i64>,
    count: Option<u64>,
    value: Option<f64>,
    what: Option<String>,
}

/// The columns of findings: kind, series, span, count, value and detail.
pub fn schema() -> SchemaRef {
    schema_of(entries())
}

pub(super) fn entries() -> [Entry<Finding>; 10] {
    use DataType::{Float64, Int64, Utf8};
    let kinds = "`gap`, `stale`, `duplicate`, `unusual`, `reject`, `drift` (an unknown field), `window`, `cut_off`, \
                 `split_days` or `rename`";
    let count = "how many: days, signals, articles, records, fields, tickers or shared dates, by `finding`";
    let value = "the unusual confidence or score; of `window`, the share of signals with news among those of which it is \
                 known; of `rename`, the share of the shared dates with the same signal";
    let what = "the reason, field, headline, window, length or successor";
    [
        always("finding", Utf8, kinds, |it| Text(Some(it.kind))),
        optional("source", Utf8, "the operation", |it| Text(it.source)),
        optional("ticker", Utf8, "", |it| Text(it.key.as_ref().map(|key| key.ticker.as_str()))),
        optional("period", Utf8, "", |it| Text(it.key.as_ref().and_then(|key| key.period).map(Period::as_str))),
        optional("regime", Utf8, "", |it| Text(it.key.as_ref().and_then(|key| key.regime).map(Regime::as_str))),
        optional("date", date(), "the date, or the first of several", |it| Whole(it.date)),
        optional("until", date(), "the last date", |it| Whole(it.until)),
        optional("count", Int64, count, |it| Whole(it.count.map(|count| count as i64))),
        optional("value", Float64, value, |it| Real(it.value)),
        optional("what", Utf8, what, |it| Text(it.what.as_deref())),
    ]
}

/// Days since 1970.
type Day = i64;

/// The days of a series.
#[derive(Debug)]
struct SeriesDays {
    /// Its own cadence, by all days that are known: a range of dates may have too few to tell. None on trading days.
    every: Option<Day>,
    /// Those in scope, in order.
    days: Vec<Day>,
}

/// The cadence of a series that is not one of trading days: from five days between two signals on, if three intervals tell it.
fn cadence(days: &[Day]) -> Option<Day> {
    let mut intervals: Vec<Day> = days.windows(2).map(|pair| pair[1] - pair[0]).collect();
    intervals.sort_unstable();
    intervals.get(intervals.len() / 2).copied().filter(|median| intervals.len() >= 3 && *median >= 5)
}

impl SeriesDays {
    fn new(subject: &Subject, history: &History, observed: &ObservedColumns<'_>) -> Self {
        let (mut all, mut days): (Vec<Day>, Vec<Day>) = Default::default();
        for row in observed.known_rows(history) {
            if let Some(date) = observed.written_date(row) {
                all.push(date.div_euclid(MICROS_PER_DAY));
                days.extend(all.last().filter(|_| subject.has_date(observed, row)));
            }
        }
        for days in [&mut all, &mut days] {
            days.sort_unstable();
            days.dedup();
        }
        Self { every: cadence(&all), days }
    }
}

/// How many series are on each day.
#[derive(Default)]
struct Presence {
    /// Of those of trading days: how many have a signal, begin and end.
    counts: BTreeMap<Day, [u64; 3]>,
    /// The last day of any series.
    last: Option<Day>,
}

impl Presence {
    fn add(&mut self, SeriesDays { every, days }: &SeriesDays) {
        let (Some(first), Some(last)) = (days.first(), days.last()) else { return };
        self.last = self.last.max(Some(*last));
        if every.is_none() {
            days.iter().for_each(|day| self.counts.entry(*day).or_default()[0] += 1);
            self.counts.entry(*first).or_default()[1] += 1;
            self.counts.entry(*last).or_default()[2] += 1;
        }
    }

    /// The days that at least half of the series have which have begun and not ended.
    fn calendar(self) -> TradingDays {
        let (mut under_way, mut trading) = (0, Vec::new());
        for (day, [present, begun, ended]) in self.counts {
            under_way += begun;
            if present * 2 >= under_way {
                trading.push(day);
            }
            under_way -= ended;
        }
        TradingDays { trading, last: self.last }
    }
}

/// The trading days, in order, and the last day of any series.
#[derive(Debug, Default)]
struct TradingDays {
    trading: Vec<Day>,
    last: Option<Day>,
}

/// What a series should have had.
#[derive(Debug, PartialEq, Eq)]
struct DueDays {
    /// Number of days on which a signal was due, from its first to its last.
    due: u64,
    /// Those of them without one.
    gaps: Vec<DayRange>,
    /// Those after its last signal.
    behind: Option<DayRange>,
}

/// Consecutive due days: the first and the last, and how many.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct DayRange {
    first: Day,
    last: Day,
    days: u64,
}

impl TradingDays {
    /// What a series with signals on some days should have had.
    fn due(&self, SeriesDays { every, days }: &SeriesDays) -> DueDays {
        let (Some(first), Some(last)) = (days.first(), days.last()) else {
            return DueDays { due: 0, gaps: Vec::new(), behind: None };
        };
        if let Some(every) = every {
            return self.due_slowly(days, *every);
        }
        let begin = self.trading.partition_point(|day| day < first);
        let (until, after) = self.trading.split_at(self.trading.partition_point(|day| day <= last));
        let is_missing = |day: &Day| days.binary_search(day).is_err();
        let runs = until[begin..].chunk_by(|one, next| is_missing(one) == is_missing(next));
        let range = |run: &[Day]| Some(DayRange { first: *run.first()?, last: *run.last()?, days: run.len() as u64 });
        let gaps = runs.filter(|run| is_missing(&run[0])).filter_map(range).collect();
        DueDays { due: (until.len() - begin) as u64, gaps, behind: range(after) }
    }

    /// The same for a series of its own cadence. A signal is due if its days pass for an interval, which months and holidays
    /// make longer or shorter.
    fn due_slowly(&self, days: &[Day], every: Day) -> DueDays {
        let due_in = |days: Day| (days + every / 2) / every;
        let missing = |after: Day, count: Day| {
            let range = DayRange { first: after + every, last: after + count * every, days: count as u64 };
            (count > 0).then_some(range)
        };
        let between = days.windows(2).map(|pair| (pair[0], due_in(pair[1] - pair[0]).max(1)));
        let due = 1 + between.clone().map(|(_, count)| count as u64).sum::<u64>();
        let gaps = between.filter_map(|(day, count)| missing(day, count - 1)).collect();
        // The next signal is late only when it is not just a long month.
        let late = days.last().zip(self.last).filter(|(last, today)| due_in(today - *last) > 1);
        DueDays { due, gaps, behind: late.and_then(|(last, today)| missing(*last, (today - last) / every)) }
    }
}

#[cfg(test)]
mod tests {
    use super::{Day, DayRange, DueDays, Presence, SeriesDays, cadence};

    fn whole(days: &[Day]) -> SeriesDays {
        SeriesDays { every: cadence(days), days: days.to_vec() }
    }

    #[test]
    fn a_trading_day_is_a_date_that_half_of_the_series_have() {
        let mut presence = Presence::default();
        // The second misses 3 and 4 and ends early, the third starts late, and the fourth trades on a holiday, 9.
        let series: [&[i64]; 4] = [&[1, 2, 3, 4, 7, 8], &[1, 2, 7], &[3, 4, 7, 8], &[1, 2, 3, 4, 7, 8, 9, 10]];
        series.iter().for_each(|days| presence.add(&whole(days)));
        let mut holiday = Presence::default();
        [&[1, 2, 3][..], &[1, 3], &[1, 3]].iter().for_each(|days| holiday.add(&whole(days)));
        assert_eq!(holiday.calendar().trading, [1, 3]);
        let calendar = presence.calendar();
        let found = [0, 1, 3].map(|index| calendar.due(&whole(series[index])));
        assert_eq!(found[1].gaps, [DayRange { first: 3, last: 4, days: 2 }]);
        assert_eq!(found[1].behind, Some(DayRange { first: 8, last: 10, days: 3 }));
        assert_eq!((&found[0].gaps, found[2].behind), (&Vec::new(), None));
    }

    #[test]
    fn a_monthly_series_has_gaps_only_where_a_month_is_missing() {
        let day = |text: &str| i64::from(text.parse::<chrono::NaiveDate>().unwrap().to_epoch_days());
        // The last trading day of each month, without that of April.
        let months = ["2026-01-30", "2026-02-27", "2026-03-31", "2026-05-29", "2026-06-30", "2026-07-31"].map(day);
        let weeks: Vec<i64> = (0..30).filter(|week| *week != 7).map(|week| day("2026-01-02") + 7 * week).collect();
        let daily: Vec<i64> =
            (day("2026-01-02")..=day("2026-10-02")).filter(|day| !matches!((day + 3) % 7, 5 | 6)).collect();
        let mut presence = Presence::default();
        // Most series are not daily, and yet each is due by its own cadence.
        [&months[..], &months[..], &weeks, &weeks, &daily].into_iter().for_each(|days| presence.add(&whole(days)));
        let calendar = presence.calendar();
        let range = |first: &str, last: &str, days| DayRange { first: day(first), last: day(last), days };
        let found = calendar.due(&whole(&months));
        // The median month has 32 days: March 31st and May 29th are two apart, and August and September have none.
        let (april, late_month) = (range("2026-05-02", "2026-05-02", 1), range("2026-09-01", "2026-09-01", 1));
        assert_eq!(found, DueDays { due: 7, gaps: vec![april], behind: Some(late_month) });
        let found = calendar.due(&whole(&weeks));
        let (week, late) = (range("2026-02-20", "2026-02-20", 1), range("2026-07-31", "2026-10-02", 10));
        assert_eq!(found, DueDays { due: 30, gaps: vec![week], behind: Some(late) });
        assert_eq!(calendar.due(&whole(&daily)), DueDays { due: daily.len() as u64, gaps: Vec::new(), behind: None });
        // The last months of a range tell as little, but the series does.
        let of_range = SeriesDays { every: cadence(&months), days: months[3..].to_vec() };
        assert_eq!(calendar.due(&of_range), DueDays { due: 3, gaps: Vec::new(), behind: Some(late_month) });
        // A few days say nothing of a cadence.
        assert_eq!(calendar.due(&whole(&[daily[0], daily[20]])).gaps.len(), 1);
    }
}
