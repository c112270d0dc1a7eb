//! The columns of a slab as numbers: tickers in order of appearance, closed sets by the rank of their spelling, dates
//! as naive timestamps.
//!
//! Codes sort like the values they stand for, and are fast to join on.

use std::collections::{HashMap, HashSet};
use std::iter::repeat_n;
use std::ops::Range;
use std::sync::Arc;

use arrow::array::{Array, ArrayRef, AsArray, Int16Array, RecordBatch, TimestampMicrosecondArray};
use arrow::datatypes::{
    ArrowDictionaryKeyType, ArrowNativeType, Float64Type, Int8Type, Int16Type, Int32Type, TimestampMicrosecondType,
};
use chrono::{NaiveDate, NaiveTime};

use super::Counts;
use super::keys::Limit;
use super::labels::{LabelledRows, Labeller};
use super::live::{Live, LiveRows};
use super::naive::{self, Day, Moment, Timing, day};
use crate::interface::{Endpoint, Period, Regime, Sector, Signal, Ticker};
use crate::plan::{Column, DatasetPlan, NaiveRule};
use crate::tables::{Past, SeriesKey, Table};

/// Ticker and day packed into one sortable number.
pub(super) fn cell((ticker, day): (i32, Day)) -> i64 {
    (i64::from(ticker) << 32) | i64::from((day ^ i32::MIN) as u32)
}

/// The tickers seen so far. Slabs come in ticker order, so codes sort like tickers.
#[derive(Debug, Default)]
pub(super) struct TickerCodes {
    names: Vec<String>,
    codes: HashMap<String, i32>,
}

impl TickerCodes {
    /// The tickers, by code.
    pub(super) fn names(&self) -> &[String] {
        &self.names
    }

    pub(super) fn code(&mut self, name: &str) -> i32 {
        if let Some(&code) = self.codes.get(name) {
            return code;
        }
        let code = self.names.len() as i32;
        self.names.push(name.to_owned());
        self.codes.insert(name.to_owned(), code);
        code
    }
}

/// A closed set whose spellings can be ranked.
pub(super) trait Ranked: Copy + 'static {
    fn spellings() -> Vec<&'static str>;
}

impl Ranked for Period {
    fn spellings() -> Vec<&'static str> {
        sort_spellings(Self::all().map(Self::as_str))
    }
}

impl Ranked for Regime {
    fn spellings() -> Vec<&'static str> {
        sort_spellings(Self::ALL.map(Self::as_str))
    }
}

impl Ranked for Signal {
    fn spellings() -> Vec<&'static str> {
        sort_spellings(Self::ALL.map(Self::as_str))
    }
}

impl Ranked for Endpoint {
    fn spellings() -> Vec<&'static str> {
        sort_spellings(Self::ALL.map(Self::as_str))
    }
}

fn sort_spellings(spellings: impl IntoIterator<Item = &'static str>) -> Vec<&'static str> {
    let mut spellings: Vec<&str> = spellings.into_iter().collect();
    spellings.sort_unstable();
    spellings
}

/// The signals of a slab by column.
#[derive(Debug)]
pub(super) struct SlabSignals {
    pub(super) tickers: Vec<i32>,
    pub(super) dates: Vec<i64>,
    pub(super) periods: Vec<i8>,
    pub(super) regimes: Vec<i8>,
    pub(super) signals: Vec<i8>,
    pub(super) confidences: Vec<f64>,
    /// The limits of what each signal uses; empty if days alone decide.
    pub(super) limits: Vec<Limit>,
    /// Lineage columns, as far as requested.
    pub(super) lineage: Vec<(Column, Numbers)>,
}

/// A column of numbers.
#[derive(Clone, Debug)]
pub(super) enum Numbers {
    Bytes(Vec<i8>),
    Short(Vec<i32>),
    Long(Vec<i64>),
    Real(Vec<f64>),
    /// Names of an open set, or none.
    Names(Vec<Option<Arc<str>>>),
}

impl SlabSignals {
    /// The signals of a slab that a plan selects, with naive dates by its rule; and how many of them were first seen live,
    /// and how many were left out because an earlier signal of their series has the same naive date.
    pub(super) fn of(
        batch: &RecordBatch,
        plan: &DatasetPlan,
        (past, labels): (Option<&Past>, Option<&Labeller>),
        tickers: &mut TickerCodes,
    ) -> (Self, Counts) {
        let dates = column(batch, "date").as_primitive::<TimestampMicrosecondType>();
        let offsets = column(batch, "utc_offset_minutes").as_primitive::<Int16Type>();
        let lineage = plan.columns.iter().filter_map(|&column| Some((column, lineage(batch, column)?)));
        let first = || column(batch, "first_observed_at").as_primitive::<TimestampMicrosecondType>().values();
        let mut signals = Self {
            tickers: decode::<Int32Type, _>(column(batch, "ticker"), |name| tickers.code(name)),
            dates: naive::dates(dates, offsets, plan.dates),
            periods: ranks::<Period>(column(batch, "period")),
            regimes: ranks::<Regime>(column(batch, "regime")),
            signals: ranks::<Signal>(column(batch, "signal")),
            confidences: column(batch, "confidence").as_primitive::<Float64Type>().values().to_vec(),
            limits: Vec::new(),
            lineage: lineage.collect(),
        };
        let is_redated = plan.dates != NaiveRule::Utc && offsets.null_count() < offsets.len();
        if let Some(past) = past.filter(|_| plan.columns.contains(&Column::Sector)) {
            let sectors = sectors(&signals.tickers, batch, past, tickers);
            signals.lineage.extend(sectors.map(|sectors| (Column::Sector, Numbers::Names(sectors))));
        }
        let live = Live { plan, past };
        if plan.columns.contains(&Column::Backfilled) {
            let late = live.mark_backfilled(&signals.tickers, dates.values(), first(), tickers);
            signals.lineage.push((Column::Backfilled, Numbers::Bytes(late)));
        }
        let observed = || column(batch, "observed_at").as_primitive::<TimestampMicrosecondType>().values();
        let needs_known = |column: &Column| matches!(column, Column::KnownAt | Column::TradableAt);
        if labels.is_some() || plan.columns.iter().any(needs_known) {
            let (codes, first, observed) = (&signals.tickers[..], &first()[..], &observed()[..]);
            let rows = LiveRows { codes, dates, offsets, first, observed };
            let known = live.known_at(rows, tickers);
            let is_traded = plan.columns.contains(&Column::TradableAt);
            let tradable = is_traded.then(|| live.tradable_at(rows, &known, tickers));
            if let Some(labels) = labels {
                let backfilled = &live.mark_backfilled(&signals.tickers, dates.values(), first, tickers);
                let rows = LabelledRows { codes, dates: &signals.dates, known: &known, backfilled };
                let measured = labels.columns(rows, tickers);
                signals.lineage.extend(measured);
            }
            signals.lineage.push((Column::KnownAt, Numbers::Long(known)));
            signals.lineage.extend(tradable.map(|tradable| (Column::TradableAt, Numbers::Long(tradable))));
        }
        if let Some(past) = past.filter(|_| plan.columns.contains(&Column::Claimed)) {
            let observed = observed();
            let rows = observed.iter().zip(&signals.dates);
            let claimed = rows.map(|(&observed, &date)| i8::from(past.is_claimed(observed, date))).collect();
            signals.lineage.push((Column::Claimed, Numbers::Bytes(claimed)));
        }
        if let Some(past) = past.filter(|_| plan.columns.contains(&Column::WatchedUntil)) {
            let until = Numbers::Long(signals.watched_until(past, tickers));
            signals.lineage.push((Column::WatchedUntil, until));
        }
        let past = past.filter(|_| plan.has_a_past());
        // News may have offsets even if no signal has: only on the clock of UTC does a later day mean a later instant.
        let is_timed = plan.is_timed();
        if !plan.features.is_empty() && (is_timed || past.is_some()) {
            let made =
                if is_timed { moments(dates, offsets, Timing::of(plan)) } else { vec![Moment::END; dates.len()] };
            let first = first();
            let seen_by = |row: usize| past.map_or(i64::MAX, |past| past.seal_time(first[row]));
            let limit = |(row, made)| Limit { made, seen_by: seen_by(row) };
            signals.limits = made.into_iter().enumerate().map(limit).collect();
        }
        let is_repeated = if is_redated { signals.mark_repeated() } else { Vec::new() };
        let micros = |day: Option<NaiveDate>| day.map(|day| day.and_time(NaiveTime::MIN).and_utc().timestamp_micros());
        let (from, to) = (micros(plan.filter.from), micros(plan.filter.to));
        // By the ranks of their spelling.
        let of_rank = Signal::spellings().into_iter().map(|text| text.parse().expect("it is a spelling"));
        let of_rank: Vec<Signal> = of_rank.collect();
        // The memberships of each ticker, by its code.
        let universe = plan.filter.universe.as_ref();
        let members: Option<Vec<&[Range<i64>]>> = universe.map(|universe| {
            let spans = |name: &String| name.parse().map(|ticker| universe.spans(&ticker)).unwrap_or_default();
            tickers.names().iter().map(spans).collect()
        });
        let is_member = |row: usize, date: i64| {
            let spans = |members: &Vec<&[Range<i64>]>| {
                members[signals.tickers[row] as usize].iter().any(|span| span.contains(&date))
            };
            members.as_ref().is_none_or(spans)
        };
        let is_taken = |row: usize, date: i64| {
            from.is_none_or(|from| date >= from)
                && to.is_none_or(|to| date < to)
                && is_member(row, date)
                && plan.filter.takes_value(of_rank[signals.signals[row] as usize], signals.confidences[row])
        };
        let live = Live { plan, past: None };
        let (written, first) = (dates.values(), first());
        let is_live = |row: usize| !live.is_backfilled(written[row], first[row]);
        let (mut repeated_signals, mut seen_live) = (0, 0);
        let is_by_date = from.is_some() || to.is_some() || universe.is_some();
        if is_by_date || plan.filter.is_by_value() || is_repeated.contains(&true) {
            let is_kept = |(row, &date): (usize, &i64)| {
                let is_repeated = is_repeated.get(row) == Some(&true);
                let (is_taken, is_live) = (is_taken(row, date), is_live(row));
                repeated_signals += u64::from(is_taken && is_repeated);
                seen_live += u64::from(is_taken && !is_repeated && is_live);
                is_taken && !is_repeated
            };
            let is_kept: Vec<bool> = signals.dates.iter().enumerate().map(is_kept).collect();
            signals.keep(&is_kept);
        } else {
            seen_live = (0..written.len()).filter(|row| is_live(*row)).count() as u64;
        }
        (signals, Counts { repeated_signals, seen_live, ..Counts::default() })
    }

    /// Ticker and day of a row, packed into one number.
    pub(super) fn cell(&self, row: usize) -> i64 {
        cell((self.tickers[row], day(self.dates[row])))
    }

    /// Marks rows with the same naive date as an earlier row of their series. When clocks are put back, two instants
    /// have the same naive date.
    fn mark_repeated(&self) -> Vec<bool> {
        let mut seen = HashSet::new();
        let keys =
            (0..self.dates.len()).map(|row| (self.tickers[row], self.periods[row], self.regimes[row], self.dates[row]));
        keys.map(|key| !seen.insert(key)).collect()
    }

    /// Until when the vendor told of the series of each row.
    fn watched_until(&self, past: &Past, tickers: &TickerCodes) -> Vec<i64> {
        let (periods, regimes) = (Period::spellings(), Regime::spellings());
        let key = |row: usize| (self.tickers[row], self.periods[row], self.regimes[row]);
        let rows: Vec<usize> = (0..self.tickers.len()).collect();
        let of_series = rows.chunk_by(|one, next| key(*one) == key(*next)).flat_map(|rows| {
            let (ticker, period, regime) = key(rows[0]);
            let until = || {
                past.watched_until(&SeriesKey {
                    table: Some(Table::Signals),
                    ticker: tickers.names()[ticker as usize].parse().ok()?,
                    period: periods[period as usize].parse().ok(),
                    regime: regimes[regime as usize].parse().ok(),
                })
            };
            repeat_n(until().expect("a series of the dataset was listed"), rows.len())
        });
        of_series.collect()
    }

    fn keep(&mut self, is_kept: &[bool]) {
        fn retain<T>(values: &mut Vec<T>, is_kept: &[bool]) {
            let mut kept = is_kept.iter();
            values.retain(|_| *kept.next().expect("there is one for each row"));
        }
        for values in [&mut self.periods, &mut self.regimes, &mut self.signals] {
            retain(values, is_kept);
        }
        retain(&mut self.tickers, is_kept);
        retain(&mut self.dates, is_kept);
        retain(&mut self.confidences, is_kept);
        if !self.limits.is_empty() {
            retain(&mut self.limits, is_kept);
        }
        for (_, numbers) in &mut self.lineage {
            match numbers {
                Numbers::Bytes(values) => retain(values, is_kept),
                Numbers::Short(values) => retain(values, is_kept),
                Numbers::Long(values) => retain(values, is_kept),
                Numbers::Real(values) => retain(values, is_kept),
                Numbers::Names(values) => retain(values, is_kept),
            }
        }
    }
}

/// The sector of each row when it was first seen; none if each ticker always had the one that it has now.
fn sectors(codes: &[i32], batch: &RecordBatch, past: &Past, tickers: &TickerCodes) -> Option<Vec<Option<Arc<str>>>> {
    let first = column(batch, "first_observed_at").as_primitive::<TimestampMicrosecondType>().values();
    let parsed: Vec<Option<Ticker>> = tickers.names().iter().map(|name| name.parse().ok()).collect();
    let mut names: HashMap<&Sector, Arc<str>> = HashMap::new();
    let (mut sectors, mut is_as_now) = (Vec::with_capacity(codes.len()), true);
    // Rows that were first seen together usually stand together.
    let mut last: Option<(i32, i64, Option<Arc<str>>)> = None;
    for (&code, &first) in codes.iter().zip(first) {
        let known = last.as_ref().filter(|(of, at, _)| (*of, *at) == (code, first));
        let sector = match known {
            Some((.., sector)) => sector.clone(),
            None => {
                let ticker = parsed[code as usize].as_ref();
                let sector = ticker.and_then(|ticker| past.sector_at(ticker, past.seal_time(first)));
                is_as_now &= sector == ticker.and_then(|ticker| past.latest_sector(ticker));
                sector.map(|sector| Arc::clone(names.entry(sector).or_insert_with(|| sector.as_str().into())))
            }
        };
        last = Some((code, first, sector.clone()));
        sectors.push(sector);
    }
    (!is_as_now).then_some(sectors)
}

/// When each signal was made. Series mostly have the same dates.
fn moments(dates: &TimestampMicrosecondArray, offsets: &Int16Array, timing: Timing) -> Vec<Moment> {
    let mut known: HashMap<(i64, Option<i16>), Moment> = HashMap::new();
    let rows = dates.values().iter().zip(offsets);
    let made = |(&date, offset)| *known.entry((date, offset)).or_insert_with(|| timing.made_at(date, offset));
    rows.map(made).collect()
}

/// A lineage column as numbers; `None` for other columns.
fn lineage(batch: &RecordBatch, column: Column) -> Option<Numbers> {
    let values = batch.column_by_name(column.name());
    let instants = |values: &ArrayRef| values.as_primitive::<TimestampMicrosecondType>().values().to_vec();
    match column {
        Column::FirstObservedAt | Column::ObservedAt => Some(Numbers::Long(instants(values?))),
        Column::Revisions => Some(Numbers::Short(values?.as_primitive::<Int32Type>().values().to_vec())),
        Column::Source => Some(Numbers::Bytes(ranks::<Endpoint>(values?))),
        _ => None,
    }
}

pub(super) fn column<'a>(batch: &'a RecordBatch, name: &str) -> &'a ArrayRef {
    batch.column_by_name(name).expect("a slab has the columns that it declares")
}

fn ranks<T: Ranked>(column: &ArrayRef) -> Vec<i8> {
    let spellings = T::spellings();
    decode::<Int8Type, _>(column, |name| {
        spellings.binary_search(&name).expect("the archive holds known spellings only") as i8
    })
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
