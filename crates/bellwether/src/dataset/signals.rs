//! The signals of a slab: what they are joined by as numbers, and their columns as the dataset has them.
//!
//! Tickers are numbered in order of appearance, dates are naive timestamps, and closed sets have one dictionary, in order.
//! So codes sort like the values they stand for, and are fast to join on.

use std::collections::{BTreeSet, HashMap, HashSet};
use std::iter::repeat_n;
use std::ops::{AddAssign, Range};
use std::sync::Arc;

use arrow::array::{
    Array, ArrayRef, AsArray, BooleanArray, Float64Array, Int8Array, Int16Array, StringArray, TimestampMicrosecondArray,
};
use arrow::compute::FilterBuilder;
use arrow::datatypes::{ArrowDictionaryKeyType, ArrowNativeType, Float64Type, Int8Type, Int32Type};
use arrow::error::ArrowError;

use super::keys::{Limit, TickerCodes, cell};
use super::live::{LabelledRows, Labeller, for_sightings, inputs_known, is_backfilled, tradable_at};
use super::naive::{self, Moment, Timing, day};
use crate::interface::{Endpoint, Period, Regime, Sector, Signal};
use crate::plan::{Column, DatasetPlan, NaiveRule};
use crate::tables::{ArticleCounts, Past, SeriesKey, Table, TypedRows, choices};

/// The names of closed sets that the series of a dataset have, in order; all that there are if none is named.
///
/// A dictionary has these alone, since frame libraries make categories of its names: an Arrow file has one dictionary for
/// all of its rows, which is written before they are known.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SeriesNames {
    pub(super) periods: Vec<&'static str>,
    pub(super) regimes: Vec<&'static str>,
    pub(super) sources: Vec<&'static str>,
}

impl SeriesNames {
    /// The names of some series, and of the operations that gave them.
    pub fn new(series: &HashSet<SeriesKey>, sources: &BTreeSet<Endpoint>) -> Self {
        /// Those that occur, or else all.
        fn or_all(occurring: BTreeSet<&'static str>, all: impl Iterator<Item = &'static str>) -> Vec<&'static str> {
            Vec::from_iter(if occurring.is_empty() { all.collect() } else { occurring })
        }
        let periods = series.iter().filter_map(|key| Some(key.period?.as_str()));
        let regimes = series.iter().filter_map(|key| Some(key.regime?.as_str()));
        let sources = sources.iter().map(|source| source.as_str());
        Self {
            periods: or_all(periods.collect(), Period::all().map(Period::as_str)),
            regimes: or_all(regimes.collect(), Regime::ALL.into_iter().map(Regime::as_str)),
            sources: or_all(sources.collect(), Endpoint::ALL.into_iter().map(Endpoint::as_str)),
        }
    }
}

impl Default for SeriesNames {
    fn default() -> Self {
        Self::new(&HashSet::new(), &BTreeSet::new())
    }
}

/// Counts of the inputs of a dataset, for summaries.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    /// Signals left out because an earlier one of their series has the same naive date.
    pub repeated_signals: u64,
    /// Rows that were first seen while their date was fresh.
    pub seen_live: u64,
    /// Articles that features were computed from.
    pub articles: ArticleCounts,
}

impl AddAssign for Counts {
    fn add_assign(&mut self, other: Self) {
        self.repeated_signals += other.repeated_signals;
        self.seen_live += other.seen_live;
        self.articles += other.articles;
    }
}

/// The inputs that all slabs share.
pub(super) struct SlabContext {
    pub(super) names: SeriesNames,
    pub(super) past: Option<Past>,
    pub(super) labels: Option<Labeller>,
}

/// The signals of a slab by column.
#[derive(Debug)]
pub(super) struct SlabSignals {
    pub(super) tickers: Vec<i32>,
    pub(super) dates: Vec<i64>,
    /// The limits of what each signal uses; empty if days alone decide.
    pub(super) limits: Vec<Limit>,
    /// The columns that tell the signals of a ticker and a date apart, and lineage columns as far as requested.
    pub(super) own: Vec<(Column, ArrayRef)>,
}

impl SlabSignals {
    /// The signals of a slab that a plan selects, with naive dates by its rule; and how many of them were first seen live,
    /// and how many were left out because an earlier signal of their series has the same naive date.
    pub(super) fn read(
        rows: TypedRows<'_>,
        plan: &DatasetPlan,
        known: &SlabContext,
        tickers: &mut TickerCodes,
    ) -> Result<(Self, Counts), ArrowError> {
        let mut signals = Self {
            tickers: decode::<Int32Type, _>(rows.column("ticker"), |name| tickers.code(name)),
            dates: naive::dates(rows.instants("date"), rows.offsets(), plan.dates),
            limits: Vec::new(),
            own: said(rows, plan, &known.names),
        };
        signals.add_past(rows, plan, known, tickers);
        signals.add_times(rows, plan, known, tickers);
        signals.limits = limits(rows, plan, known.past.as_ref());
        let counts = signals.select(rows, plan, tickers)?;
        Ok((signals, counts))
    }

    /// The values of one of its own columns.
    pub(super) fn column(&self, wanted: Column) -> Option<&ArrayRef> {
        self.own.iter().find(|(column, _)| *column == wanted).map(|(_, values)| values)
    }

    /// The codes of a closed set, in its order.
    pub(super) fn codes(&self, column: Column) -> &[i8] {
        let values = self.column(column).expect("every signal has a period, a regime and a value");
        values.as_dictionary::<Int8Type>().keys().values()
    }

    /// Ticker and day of a row, packed into one number.
    pub(super) fn cell(&self, row: usize) -> i64 {
        cell((self.tickers[row], day(self.dates[row])))
    }

    /// Adds what the archive knew: sectors, claims and until when series were watched.
    fn add_past(&mut self, rows: TypedRows<'_>, plan: &DatasetPlan, known: &SlabContext, tickers: &TickerCodes) {
        let Some(past) = &known.past else { return };
        if plan.columns.contains(&Column::Sector) {
            let sectors = sectors(&self.tickers, rows.instants("first_observed_at").values(), past, tickers);
            self.own.extend(sectors.map(|sectors| (Column::Sector, Arc::new(sectors) as ArrayRef)));
        }
        if plan.columns.contains(&Column::Claimed) {
            let observed = rows.instants("observed_at").values().iter().zip(&self.dates);
            let claimed: Vec<bool> = observed.map(|(&observed, &date)| past.is_claimed(observed, date)).collect();
            self.own.push((Column::Claimed, Arc::new(BooleanArray::from(claimed))));
        }
        if plan.columns.contains(&Column::WatchedUntil) {
            let until = self.watched_until(past, &known.names, tickers);
            self.own.push((Column::WatchedUntil, instants(until)));
        }
    }

    /// Adds when the rows were known and could be traded, and what they were followed by.
    fn add_times(&mut self, rows: TypedRows<'_>, plan: &DatasetPlan, known: &SlabContext, tickers: &TickerCodes) {
        let has = |column| plan.columns.contains(&column);
        let needs_known = known.labels.is_some() || has(Column::KnownAt) || has(Column::TradableAt);
        if !needs_known && !has(Column::Backfilled) {
            return;
        }
        let (dates, first) = (rows.instants("date"), rows.instants("first_observed_at").values());
        let past = known.past.as_ref();
        let inputs = inputs_known(past, &self.tickers, first, tickers);
        let late = dates.values().iter().zip(first).zip(&inputs);
        let backfilled: Vec<bool> =
            late.map(|((&date, &first), &inputs)| is_backfilled(date, first.max(inputs), plan)).collect();
        if needs_known {
            // When the run was sealed that observed their values, and what their features come from was known.
            let observed = rows.instants("observed_at").values().iter();
            let sealed = observed.map(|&at| past.map_or(at, |past| past.seal_time(at)));
            let seen: Vec<i64> = sealed.zip(inputs).map(|(sealed, inputs)| sealed.max(inputs)).collect();
            if has(Column::TradableAt) {
                let tradable = tradable_at((dates, rows.offsets()), &backfilled, &seen, plan);
                self.own.push((Column::TradableAt, Arc::new(tradable)));
            }
            if let Some(labels) = &known.labels {
                let (codes, dates) = (&self.tickers[..], &self.dates[..]);
                let labelled = LabelledRows { codes, dates, known: &seen, backfilled: &backfilled };
                self.own.extend(labels.columns(labelled, tickers));
            }
            self.own.push((Column::KnownAt, instants(seen)));
        }
        self.own.push((Column::Backfilled, Arc::new(BooleanArray::from(backfilled))));
    }

    /// Keeps what the plan selects, and counts it.
    fn select(&mut self, rows: TypedRows<'_>, plan: &DatasetPlan, tickers: &TickerCodes) -> Result<Counts, ArrowError> {
        let (written, first) = (rows.instants("date").values(), rows.instants("first_observed_at").values());
        let is_live = |row: usize| !is_backfilled(written[row], first[row], plan);
        let is_redated = plan.dates != NaiveRule::Utc && rows.offsets().null_count() < written.len();
        let is_repeated = if is_redated { self.mark_repeated() } else { Vec::new() };
        let (filter, mut counts) = (&plan.filter, Counts::default());
        let is_by_date = filter.from.is_some() || filter.to.is_some() || filter.universe.is_some();
        if !is_by_date && !filter.is_by_value() && !is_repeated.contains(&true) {
            counts.seen_live = (0..written.len()).filter(|row| is_live(*row)).count() as u64;
            return Ok(counts);
        }
        let dates = filter.dates();
        // The memberships of each ticker, by its code.
        let members: Option<Vec<&[Range<i64>]>> = filter.universe.as_ref().map(|universe| {
            let codes = 0..tickers.names.len() as i32;
            codes.map(|code| tickers.ticker(code).map(|ticker| universe.spans(ticker)).unwrap_or_default()).collect()
        });
        let (signals, confidences) = (self.codes(Column::Signal), rows.reals("confidence").values());
        let mut is_kept = Vec::with_capacity(written.len());
        for (row, date) in self.dates.iter().enumerate() {
            let of_ticker = |members: &Vec<&[Range<i64>]>| {
                members[self.tickers[row] as usize].iter().any(|span| span.contains(date))
            };
            let is_taken = dates.contains(date)
                && members.as_ref().is_none_or(of_ticker)
                && filter.takes_value(Signal::ALL[signals[row] as usize], confidences[row]);
            let is_repeated = is_repeated.get(row) == Some(&true);
            counts.repeated_signals += u64::from(is_taken && is_repeated);
            counts.seen_live += u64::from(is_taken && !is_repeated && is_live(row));
            is_kept.push(is_taken && !is_repeated);
        }
        self.keep(&BooleanArray::from(is_kept))?;
        Ok(counts)
    }

    /// Marks rows with the same naive date as an earlier row of their series. When clocks are put back, two instants
    /// have the same naive date.
    fn mark_repeated(&self) -> Vec<bool> {
        let mut seen = HashSet::new();
        let (periods, regimes) = (self.codes(Column::Period), self.codes(Column::Regime));
        let keys = (0..self.dates.len()).map(|row| (self.tickers[row], periods[row], regimes[row], self.dates[row]));
        keys.map(|key| !seen.insert(key)).collect()
    }

    /// Until when the vendor told of the series of each row.
    fn watched_until(&self, past: &Past, names: &SeriesNames, tickers: &TickerCodes) -> Vec<i64> {
        let (periods, regimes) = (self.codes(Column::Period), self.codes(Column::Regime));
        let key = |row: usize| (self.tickers[row], periods[row], regimes[row]);
        let rows: Vec<usize> = (0..self.tickers.len()).collect();
        let of_series = rows.chunk_by(|one, next| key(*one) == key(*next)).flat_map(|rows| {
            let (ticker, period, regime) = key(rows[0]);
            let until = tickers.ticker(ticker).and_then(|ticker| {
                past.watched_until(&SeriesKey {
                    table: Some(Table::Signals),
                    ticker: ticker.clone(),
                    period: names.periods[period as usize].parse().ok(),
                    regime: names.regimes[regime as usize].parse().ok(),
                })
            });
            repeat_n(until.expect("a series of the dataset was listed"), rows.len())
        });
        of_series.collect()
    }

    fn keep(&mut self, is_kept: &BooleanArray) -> Result<(), ArrowError> {
        fn retain<T>(values: &mut Vec<T>, is_kept: &BooleanArray) {
            let mut kept = is_kept.values().iter();
            values.retain(|_| kept.next().expect("there is one for each row"));
        }
        retain(&mut self.tickers, is_kept);
        retain(&mut self.dates, is_kept);
        if !self.limits.is_empty() {
            retain(&mut self.limits, is_kept);
        }
        let kept = FilterBuilder::new(is_kept).optimize().build();
        for (_, values) in &mut self.own {
            *values = kept.filter(values)?;
        }
        Ok(())
    }
}

/// What the signals say, and the lineage that the archive has as the dataset does.
fn said(rows: TypedRows<'_>, plan: &DatasetPlan, names: &SeriesNames) -> Vec<(Column, ArrayRef)> {
    let signals = choice_column(rows.column("signal"), &Signal::ALL.map(Signal::as_str));
    let mut own = vec![
        (Column::Period, choice_column(rows.column("period"), &names.periods)),
        (Column::Regime, choice_column(rows.column("regime"), &names.regimes)),
        (Column::Score, scores(&signals, rows.column("confidence"))),
        (Column::Signal, signals),
        (Column::Confidence, Arc::clone(rows.column("confidence"))),
    ];
    for &column in plan.columns.iter().filter(|column| !Column::BASE.contains(column)) {
        match (column, rows.0.column_by_name(column.name())) {
            (Column::Source, Some(values)) => own.push((column, choice_column(values, &names.sources))),
            // Whatever else the archive has of a signal.
            (_, Some(values)) => own.push((column, Arc::clone(values))),
            (_, None) => {}
        }
    }
    own
}

/// A column of a closed set with these names, which are in order, whatever dictionary the archive has. A name of its dictionary
/// that is not among them stands in no row: rows are checked when they are read.
pub(super) fn choice_column(column: &ArrayRef, names: &[&'static str]) -> ArrayRef {
    let codes = decode::<Int8Type, _>(column, |name| names.binary_search(&name).unwrap_or_default() as i8);
    choices(Int8Array::from(codes), names.iter().copied())
}

/// The confidence of each signal, negative for a sell.
pub(super) fn scores(signals: &ArrayRef, confidences: &ArrayRef) -> ArrayRef {
    let rows = signals.as_dictionary::<Int8Type>().keys().values().iter();
    let rows = rows.zip(confidences.as_primitive::<Float64Type>().values());
    // The names of signals are in order.
    let score = |(&code, &confidence): (&i8, &f64)| if code == Signal::Sell as i8 { -confidence } else { confidence };
    Arc::new(Float64Array::from_iter_values(rows.map(score)))
}

/// A column of instants.
pub(super) fn instants(micros: Vec<i64>) -> ArrayRef {
    Arc::new(TimestampMicrosecondArray::from(micros).with_timezone("UTC"))
}

/// The limits of what signals use; none if days alone decide.
fn limits(rows: TypedRows<'_>, plan: &DatasetPlan, past: Option<&Past>) -> Vec<Limit> {
    let past = past.filter(|_| plan.has_a_past());
    // News may have offsets even if no signal has: only on the clock of UTC does a later day mean a later instant.
    let is_timed = plan.is_timed();
    if plan.features.is_empty() || !(is_timed || past.is_some()) {
        return Vec::new();
    }
    let (dates, first) = (rows.instants("date"), rows.instants("first_observed_at").values());
    let made =
        if is_timed { moments(dates, rows.offsets(), Timing::new(plan)) } else { vec![Moment::END; dates.len()] };
    let seen_by = first.iter().map(|&first| past.map_or(i64::MAX, |past| past.seal_time(first)));
    made.into_iter().zip(seen_by).map(|(made, seen_by)| Limit { made, seen_by }).collect()
}

/// The sector of each row when it was first seen; none if each ticker always had the one that it has now.
fn sectors(codes: &[i32], first: &[i64], past: &Past, tickers: &TickerCodes) -> Option<StringArray> {
    let mut is_as_now = true;
    let sectors = for_sightings(codes, first, |code, first| {
        let ticker = tickers.ticker(code);
        let sector = ticker.and_then(|ticker| past.sector_at(ticker, past.seal_time(first)));
        is_as_now &= sector == ticker.and_then(|ticker| past.latest_sector(ticker));
        sector.map(Sector::as_str)
    });
    (!is_as_now).then(|| StringArray::from(sectors))
}

/// When each signal was made. Series mostly have the same dates.
fn moments(dates: &TimestampMicrosecondArray, offsets: &Int16Array, timing: Timing) -> Vec<Moment> {
    let mut known: HashMap<(i64, Option<i16>), Moment> = HashMap::new();
    let rows = dates.values().iter().zip(offsets);
    let made = |(&date, offset)| *known.entry((date, offset)).or_insert_with(|| timing.made_at(date, offset));
    rows.map(made).collect()
}

/// The code of each row, decoding each dictionary entry once, in order of first use.
pub(super) fn decode<K: ArrowDictionaryKeyType, C: Copy>(column: &ArrayRef, mut code: impl FnMut(&str) -> C) -> Vec<C> {
    /// Rows compared at once: those of a series mostly have the same key.
    const STRIDE: usize = 64;
    let dictionary = column.as_dictionary::<K>();
    let names = dictionary.values().as_string::<i32>();
    let keys = dictionary.keys().values();
    // Unused entries may be invalid: a reader may have added some.
    let mut codes: Vec<Option<C>> = vec![None; names.len()];
    let mut of_key = |index: usize| *codes[index].get_or_insert_with(|| code(names.value(index)));
    let mut decoded = Vec::with_capacity(keys.len());
    for keys in keys.chunks(STRIDE) {
        if keys[1..] == keys[..keys.len() - 1] {
            decoded.extend(repeat_n(of_key(keys[0].as_usize()), keys.len()));
        } else {
            decoded.extend(keys.iter().map(|key| of_key(key.as_usize())));
        }
    }
    decoded
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use arrow::array::{ArrayRef, DictionaryArray, Int8Array, StringArray};
    use arrow::datatypes::Int8Type;

    use super::decode;

    #[test]
    fn each_row_gets_the_code_of_its_name_wherever_names_change() {
        let names = ["bear", "never", "bull", "neutral"];
        // Names change within a stride, at its end, and from row to row.
        let lengths = [(0, 70), (2, 58), (3, 64), (0, 1), (3, 1), (0, 1), (2, 200)];
        let keys: Vec<i8> = lengths.into_iter().flat_map(|(key, rows)| std::iter::repeat_n(key, rows)).collect();
        for rows in [0, 1, 63, 64, 65, 128, keys.len()] {
            let array = DictionaryArray::new(
                Int8Array::from(keys[..rows].to_vec()),
                Arc::new(StringArray::from(names.to_vec())) as ArrayRef,
            );
            let codes = decode::<Int8Type, _>(&(Arc::new(array) as ArrayRef), |name| {
                assert_ne!(name, "never", "no row has it");
                name.len()
            });
            let expected: Vec<usize> = keys[..rows].iter().map(|&key| names[key as usize].len()).collect();
            assert_eq!(codes, expected, "{rows}");
        }
    }
}
