//! Turns joined rows into the declared columns: numbers become names again, with the types of the plan.

use std::collections::{BTreeSet, HashMap};
use std::sync::Arc;

use arrow::array::{
    ArrayRef, BooleanArray, Float64Array, Int8Array, Int32Array, StringArray, StringBuilder, TimestampMicrosecondArray,
    UInt32Array,
};
use arrow::compute::take;
use arrow::error::ArrowError;

use super::features::Features;
use super::join::{Joined, Segment};
use super::live::UNKNOWN;
use super::series_names::{SeriesNames, dictionary};
use super::slab_columns::{Numbers, Ranked, TickerCodes};
use crate::columns::{self, Rows, Segments};
use crate::identity::Identity;
use crate::interface::{Endpoint, Period, Regime, Sector, Signal, Ticker};
use crate::plan::{Column, DatasetPlan};
use crate::sessions::day_of;
use crate::tables::{Past, choices};

/// The values that numbers encode.
#[derive(Clone, Copy)]
pub(super) struct KnownNames<'a> {
    /// The tickers by code.
    pub(super) tickers: &'a TickerCodes,
    /// The names that occur.
    pub(super) names: &'a SeriesNames,
    /// The past of the archive, which has the sectors.
    pub(super) past: Option<&'a Past>,
}

/// The joined rows and their features, in the schema of the plan.
pub(super) fn rows(
    joined: Joined,
    features: &Features,
    plan: &DatasetPlan,
    known: KnownNames<'_>,
) -> Result<Rows, ArrowError> {
    let KnownNames { tickers, names, past } = known;
    let Joined { segments, own } = joined;
    let shared = Segments::of(segments.iter().map(|segment| segment.rows));
    let mut own: HashMap<Column, Numbers> = own.into_iter().collect();
    let scores = scores(&own);
    let column = |column: &Column| match column {
        Column::Ticker => Ok(shared.column(ticker_column(&segments, tickers))),
        Column::Id => Ok(shared.column(ids(&segments, tickers, &plan.identity))),
        Column::SectorLatest => Ok(shared.column(of_sectors(&segments, tickers, |ticker| past?.latest_sector(ticker)))),
        // Usually each ticker always had the same.
        Column::Sector if !own.contains_key(&Column::Sector) => {
            Ok(shared.column(of_sectors(&segments, tickers, |ticker| past?.latest_sector(ticker))))
        }
        Column::Score => Ok(ArrayRef::clone(&scores).into()),
        Column::Date => {
            let dates = segments.iter().map(|segment| segment.date);
            Ok(shared.column(Arc::new(TimestampMicrosecondArray::from_iter_values(dates))))
        }
        other => {
            let missing = || ArrowError::SchemaError(format!("no signal says its {}", other.name()));
            Ok(decode_column(own.remove(other).ok_or_else(missing)?, *other, names)?.into())
        }
    };
    let indices = UInt32Array::from_iter_values(segments.iter().map(|segment| segment.index));
    // Usually each range of rows has its own features, in order.
    let is_each = indices.values().iter().copied().eq(0..features.rows as u32);
    let feature = |values: &ArrayRef| -> Result<_, ArrowError> {
        let values = if is_each { Arc::clone(values) } else { take(values, &indices, None)? };
        Ok(shared.column(values))
    };
    let mut columns: Vec<columns::Column> = plan.columns.iter().map(column).collect::<Result<_, ArrowError>>()?;
    let lineage = columns.split_off(Column::BASE.len());
    for values in &features.columns {
        columns.push(feature(values)?);
    }
    columns.extend(lineage);
    Rows::of(Arc::clone(&plan.schema), columns)
}

/// The confidence of each row, negative for a sell.
fn scores(own: &HashMap<Column, Numbers>) -> ArrayRef {
    let (Some(Numbers::Bytes(signals)), Some(Numbers::Real(confidences))) =
        (own.get(&Column::Signal), own.get(&Column::Confidence))
    else {
        return Arc::new(Float64Array::new_null(0));
    };
    let sell = Signal::spellings().iter().position(|name| *name == Signal::Sell.as_str());
    let sell = sell.map_or(-1, |rank| rank as i8);
    let rows = signals.iter().zip(confidences);
    let score = |(signal, confidence): (&i8, &f64)| if *signal == sell { -confidence } else { *confidence };
    Arc::new(rows.map(score).collect::<Float64Array>())
}

/// The ticker of each range.
fn ticker_column(segments: &[Segment], tickers: &TickerCodes) -> ArrayRef {
    // Ranges of one ticker are usually adjacent.
    let mut names = StringBuilder::with_capacity(segments.len(), 4 * segments.len());
    for alike in segments.chunk_by(|one, next| one.ticker == next.ticker) {
        names.append_value_n(&tickers.names()[alike[0].ticker as usize], alike.len());
    }
    Arc::new(names.finish())
}

/// The id of each range's ticker at its date.
fn ids(segments: &[Segment], tickers: &TickerCodes, identity: &Identity) -> ArrayRef {
    let mut ids = StringBuilder::with_capacity(segments.len(), 4 * segments.len());
    for alike in segments.chunk_by(|one, next| one.ticker == next.ticker) {
        let ticker = tickers.names()[alike[0].ticker as usize].parse::<Ticker>().ok();
        for segment in alike {
            ids.append_option(ticker.as_ref().and_then(|ticker| identity.id(ticker, day_of(segment.date))));
        }
    }
    Arc::new(ids.finish())
}

/// The sector of each range's ticker.
fn of_sectors<'a>(
    segments: &[Segment],
    tickers: &TickerCodes,
    sector: impl Fn(&Ticker) -> Option<&'a Sector>,
) -> ArrayRef {
    let mut names = StringBuilder::new();
    for alike in segments.chunk_by(|one, next| one.ticker == next.ticker) {
        let ticker = tickers.names()[alike[0].ticker as usize].parse::<Ticker>().ok();
        match ticker.and_then(|ticker| sector(&ticker)) {
            Some(sector) => names.append_value_n(sector.as_str(), alike.len()),
            None => names.append_nulls(alike.len()),
        }
    }
    Arc::new(names.finish())
}

/// A column of numbers as the values that they encode.
fn decode_column(values: Numbers, column: Column, names: &SeriesNames) -> Result<ArrayRef, ArrowError> {
    Ok(match (column, values) {
        (Column::Period, Numbers::Bytes(ranks)) => of_ranks(ranks, &names.periods, Period::as_str),
        (Column::Regime, Numbers::Bytes(ranks)) => of_ranks(ranks, &names.regimes, Regime::as_str),
        (Column::Signal, Numbers::Bytes(ranks)) => of_ranks(ranks, &BTreeSet::new(), Signal::as_str),
        (Column::Source, Numbers::Bytes(ranks)) => of_ranks(ranks, &names.sources, Endpoint::as_str),
        (Column::Confidence, Numbers::Real(values)) => Arc::new(Float64Array::from(values)),
        (
            Column::FirstObservedAt | Column::ObservedAt | Column::WatchedUntil | Column::KnownAt,
            Numbers::Long(micros),
        ) => Arc::new(TimestampMicrosecondArray::from(micros).with_timezone("UTC")),
        (Column::EntryAt | Column::ExitAt(_), Numbers::Long(micros)) => {
            let known = micros.into_iter().map(|at| Some(at).filter(|at| *at != UNKNOWN));
            Arc::new(known.collect::<TimestampMicrosecondArray>())
        }
        (Column::Return(_), Numbers::Real(values)) => Arc::new(
            values.into_iter().map(|value| Some(value).filter(|value| !value.is_nan())).collect::<Float64Array>(),
        ),
        (Column::TradableAt, Numbers::Long(micros)) => {
            let known = micros.into_iter().map(|at| Some(at).filter(|at| *at != UNKNOWN));
            Arc::new(known.collect::<TimestampMicrosecondArray>().with_timezone("UTC"))
        }
        (Column::Revisions, Numbers::Short(counts)) => Arc::new(Int32Array::from(counts)),
        (Column::Sector, Numbers::Names(names)) => {
            Arc::new(names.iter().map(Option::as_deref).collect::<StringArray>())
        }
        (Column::Backfilled | Column::Claimed, Numbers::Bytes(flags)) => {
            Arc::new(flags.iter().map(|flag| Some(*flag != 0)).collect::<BooleanArray>())
        }
        (other, _) => return Err(ArrowError::SchemaError(format!("{} is made of other numbers", other.name()))),
    })
}

/// A column of ranks among all spellings as names, of which only some occur.
fn of_ranks<T: Ranked + Ord>(ranks: Vec<i8>, occurring: &BTreeSet<T>, spelled: fn(T) -> &'static str) -> ArrayRef {
    let (names, codes) = dictionary(occurring, spelled);
    let codes = ranks.into_iter().map(|rank| codes[rank as usize]).collect::<Vec<i8>>();
    choices(Int8Array::from(codes), names)
}
