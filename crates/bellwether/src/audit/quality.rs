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
use super::observed::ObservedColumns;
use super::rows::RowValue::{Real, Text, Whole};
use super::rows::{AuditColumn, RowWriter, always, optional, schema_of};
use super::subject::Subject;
use crate::archive::{Histories, History, Scope, View};
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

/// Audits a subject and delivers a row for each finding in the columns of [`schema`]. The answers to its requests, and
/// what [`of_rows`] found in a definition's dataset, are included.
pub(crate) fn quality(
    subject: &Subject,
    answers: Answers,
    rows: RowFindings,
    deliver: impl FnMut(&RecordBatch) -> Result<()>,
) -> Result<Quality> {
    let (calendar, last_weeks) = &days_and_ends(subject)?;
    let (mut found, mut candidates) = (Quality::default(), Candidates::default());
    let mut writer = RowWriter::new(schema(), deliver);
    let mut take = |piece: Piece| {
        found.series += piece.series;
        for (ticker, counted) in piece.tickers {
            found.total.add(counted);
            found.tickers.entry(ticker).or_default().add(counted);
        }
        candidates.extend(piece.candidates);
        piece.findings.iter().try_for_each(|finding| finding.write(&mut writer))
    };
    for table in [Table::Signals, Table::Articles] {
        let look = |histories: &Histories, observed: &ObservedColumns<'_>| {
            let mut piece = Piece::default();
            for history in histories.series.iter().filter(|one| subject.has(&one.key)) {
                if table == Table::Articles {
                    piece.articles(subject, history, observed);
                    continue;
                }
                piece.signals(subject, history, observed, calendar);
                renames::look(last_weeks, subject, history, observed, &mut piece.candidates);
            }
            Ok(piece)
        };
        subject.each_piece(|view| view.observations(table), look, &mut take)?;
    }
    found.tickers.retain(|_, of| of.missing + of.stale + of.duplicates + of.unusual > 0);
    found.renames = renames::compare(&candidates, subject)?;
    (found.windows, found.split_days) = (rows.windows, rows.split_days);
    (found.rejected, found.unlisted) = (answers.rejects.records, answers.rejects.unlisted);
    (found.reasons, found.unknown_fields) = (answers.rejects.reasons, answers.unknown.fields);
    found.cut_off = answers.cut_off;
    found.whole_findings().iter().try_for_each(|finding| finding.write(&mut writer))?;
    writer.flush()?;
    Ok(found)
}

/// The days on which signals are due, and the tickers that have ended.
fn days_and_ends(subject: &Subject) -> Result<(TradingDays, LastWeeks)> {
    let (mut presence, mut ends) = (Presence::default(), Ends::default());
    let of_piece = |histories: &Histories, observed: &ObservedColumns<'_>| {
        let (mut days, mut ends) = (Vec::new(), Ends::default());
        for history in histories.series.iter().filter(|one| subject.has(&one.key)) {
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
    subject.each_piece(|view| view.observations(Table::Signals), of_piece, add)?;
    let (first, last) = (presence.counts.keys().next().copied(), presence.last);
    let mut calendar = presence.calendar();
    if let (Some(first), Some(last)) = (first, last)
        && let (Ok(first), Ok(last)) = (i32::try_from(first), i32::try_from(last))
        && let Some(sessions) = &subject.sessions
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
        for row in observed.known_rows(history) {
            let Some(date) = observed.written_date(row).filter(|_| subject.has_date(observed, row)) else { continue };
            counted.signals += 1;
            let value = observed.value(row).number.filter(|value| !(0.0..=1.0).contains(value));
            if value.is_some() {
                counted.unusual += 1;
                let source = observed.source(row).map(Endpoint::as_str);
                let (kind, key, date) = ("unusual", Some(history.key.clone()), Some(date));
                self.findings.push(Finding { kind, key, source, date, value, ..Finding::default() });
            }
        }
        let DueDays { due, gaps, behind } = calendar.due(&series);
        counted.due_days = due;
        for gap in gaps {
            counted.gaps += 1;
            counted.missing += gap.days;
            self.findings.push(Finding::over("gap", &history.key, gap));
        }
        if let Some(behind) = behind {
            (counted.stale, counted.behind) = (1, behind.days);
            self.findings.push(Finding::over("stale", &history.key, behind));
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
            let finding = |kind| Finding {
                kind,
                key: Some(history.key.clone()),
                date: Some(date),
                what: Some(title.to_owned()),
                ..Finding::default()
            };
            if same.len() > 1 {
                counted.duplicates += same.len() as u64 - 1;
                self.findings.push(Finding { count: Some(same.len() as u64), ..finding("duplicate") });
            }
            for score in same.iter().filter_map(|&row| observed.value(row).number) {
                if !(-1.0..=1.0).contains(&score) {
                    counted.unusual += 1;
                    self.findings.push(Finding { value: Some(score), ..finding("unusual") });
                }
            }
        }
        self.tickers.entry(history.key.ticker.clone()).or_default().add(counted);
    }
}

impl Quality {
    /// Findings that are of no series, but for renames.
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
        findings.extend(self.renames.iter().map(Rename::finding));
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

/// The columns of findings: kind, series, span, count, value and detail.
pub fn schema() -> SchemaRef {
    schema_of(columns())
}

pub(super) fn columns() -> Vec<AuditColumn> {
    use DataType::{Float64, Int64, Utf8};
    let kinds = "`gap`, `stale`, `duplicate`, `unusual`, `reject`, `drift` (an unknown field), `window`, `cut_off`, \
                 `split_days` or `rename`";
    let count = "how many: days, signals, articles, records, fields, tickers or shared dates, by `finding`";
    let value = "the unusual confidence or score; of `window`, the share of signals with news among those of which it is \
                 known; of `rename`, the share of the shared dates with the same signal";
    vec![
        always("finding", Utf8, kinds),
        optional("source", Utf8, "the operation"),
        optional("ticker", Utf8, ""),
        optional("period", Utf8, ""),
        optional("regime", Utf8, ""),
        optional("date", date(), "the date, or the first of several"),
        optional("until", date(), "the last date"),
        optional("count", Int64, count),
        optional("value", Float64, value),
        optional("what", Utf8, "the reason, field, headline, window, length or successor"),
    ]
}

/// A finding, by the columns of its row.
#[derive(Clone, Debug, Default)]
struct Finding {
    kind: &'static str,
    key: Option<SeriesKey>,
    source: Option<&'static str>,
    date: Option<i64>,
    until: Option<i64>,
    count: Option<u64>,
    value: Option<f64>,
    what: Option<String>,
}

impl Finding {
    /// Some days of a series.
    fn over(kind: &'static str, key: &SeriesKey, range: DayRange) -> Self {
        let [date, until] = [range.first, range.last].map(|day| Some(day * MICROS_PER_DAY));
        Self { kind, key: Some(key.clone()), date, until, count: Some(range.days), ..Self::default() }
    }

    /// Writes it as a row.
    fn write(&self, rows: &mut RowWriter<impl FnMut(&RecordBatch) -> Result<()>>) -> Result<()> {
        let key = self.key.as_ref();
        rows.push(&[
            ("finding", Text(Some(self.kind))),
            ("source", Text(self.source)),
            ("ticker", Text(key.map(|key| key.ticker.as_str()))),
            ("period", Text(key.and_then(|key| key.period).map(Period::as_str))),
            ("regime", Text(key.and_then(|key| key.regime).map(Regime::as_str))),
            ("date", Whole(self.date)),
            ("until", Whole(self.until)),
            ("count", Whole(self.count.map(|count| count as i64))),
            ("value", Real(self.value)),
            ("what", Text(self.what.as_deref())),
        ])
    }
}

/// What the rows of a dataset show.
#[derive(Clone, Debug, Default)]
pub(crate) struct RowFindings {
    /// Signals with news, by window.
    windows: Vec<Window>,
    /// Tickers whose signals are dated at other times of day than those of most others.
    split_days: Option<SplitDays>,
}

/// Counts signals with news in each window of a dataset, and looks at their dates: builds the dataset with only its
/// counts. `scratch` is a temporary folder, removed afterwards.
pub(crate) fn of_rows(view: &View, scope: &Scope, plan: &DatasetPlan, scratch: PathBuf) -> Result<RowFindings> {
    if plan.rows == RowKind::Article {
        return Ok(RowFindings::default());
    }
    let lengths = plan.windows();
    let window = |window: String| Window { window, signals: 0, with_news: 0, unknown: 0 };
    let mut windows: Vec<Window> = lengths.iter().map(|days| window(days.to_string())).collect();
    let plan = plan.of_counts();
    let (mut tickers, mut times) = (HashMap::new(), TimesOfDay::default());
    let input = DatasetInput {
        slabs: || view.slabs(scope, plan.vintage),
        names: SeriesNames::default(),
        past: plan.needs_past().then(|| view.past(scope, &plan)).transpose()?,
        prices: None,
        stop: view.archive().stop(),
    };
    dataset::build(input, &plan, scratch, |rows| {
        let column = |name: &str| rows.column(name).expect("signals have tickers and dates");
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
        for (window, days) in windows.iter_mut().zip(&lengths) {
            let column = rows.column(&Feature::count(*days).to_string()).expect("the plan has a count for each window");
            let counts = column.values().as_primitive::<Int32Type>();
            window.signals += column.len() as u64;
            window.unknown += column.rows_where(|index| counts.is_null(index)) as u64;
            window.with_news += column.rows_where(|index| counts.is_valid(index) && counts.value(index) > 0) as u64;
        }
        Ok(())
    })?;
    Ok(RowFindings { windows, split_days: times.split() })
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
        let dated = |row| {
            let day = observed.written_date(row)?.div_euclid(MICROS_PER_DAY);
            Some((day, subject.has_date(observed, row)))
        };
        let mut dated: Vec<(Day, bool)> = observed.known_rows(history).filter_map(dated).collect();
        dated.sort_unstable();
        dated.dedup();
        let mut days: Vec<Day> = dated.iter().map(|(day, _)| *day).collect();
        days.dedup();
        let in_scope = dated.into_iter().filter(|(_, is_in_scope)| *is_in_scope).map(|(day, _)| day).collect();
        Self { every: cadence(&days), days: in_scope }
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
        let [begin, end] =
            [self.trading.partition_point(|day| day < first), self.trading.partition_point(|day| day <= last)];
        let due = &self.trading[begin..end];
        let mut gaps: Vec<DayRange> = Vec::new();
        let mut is_open = false;
        for day in due {
            let is_missing = days.binary_search(day).is_err();
            match gaps.last_mut() {
                Some(gap) if is_missing && is_open => (gap.last, gap.days) = (*day, gap.days + 1),
                _ if is_missing => gaps.push(DayRange { first: *day, last: *day, days: 1 }),
                _ => {}
            }
            is_open = is_missing;
        }
        let after = &self.trading[end..];
        let behind = after.first().zip(after.last());
        let behind = behind.map(|(first, last)| DayRange { first: *first, last: *last, days: after.len() as u64 });
        DueDays { due: due.len() as u64, gaps, behind }
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
        let last = days.last().copied();
        // The next signal is late only when it is not just a long month.
        let late = last.zip(self.last).filter(|(last, today)| due_in(today - last) > 1);
        let behind = late.and_then(|(last, today)| missing(last, (today - last) / every));
        DueDays { due, gaps, behind }
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
