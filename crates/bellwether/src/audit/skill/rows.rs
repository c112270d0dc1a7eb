//! Measures as rows: one for each date of a pair and state, one without a date for all of them, and one for each lag, year
//! and sector.

use std::sync::{Arc, LazyLock};

use arrow::array::RecordBatch;
use arrow::datatypes::{DataType, Field, Schema, SchemaRef};
use bellwether_statistics::MeanTest;

use super::PairSkill;
use super::answer::{DateMeasure, Measure, Side};
use super::series::SeriesMeasure;
use crate::audit::row_builder::{Cell, RowBuilder};
use crate::error::Result;
use crate::tables::date;
use crate::time::MICROS_PER_DAY;

/// The columns of measures, one row for each date, and one for all.
pub fn schema() -> SchemaRef {
    static SCHEMA: LazyLock<SchemaRef> = LazyLock::new(|| {
        let text = |name: &str| Field::new(name, DataType::Utf8, false);
        let count = |name: &str| Field::new(name, DataType::Int64, true);
        let real = |name: &str| Field::new(name, DataType::Float64, true);
        let side =
            |name: &str| [count(&format!("{name}s")), count(&format!("{name}_hits")), real(&format!("{name}_excess"))];
        let mut fields = vec![text("period"), text("regime"), text("state"), Field::new("date", date(), true)];
        fields.extend(["by", "group"].map(|name| Field::new(name, DataType::Utf8, true)));
        fields.extend([real("names"), real("correlation"), real("mean_return")]);
        fields.extend(["buy", "sell", "confident"].into_iter().flat_map(side));
        fields.push(real("spread"));
        // Of all dates alone.
        fields.extend(["dates", "horizon", "windows"].map(count));
        fields.extend(["positive", "standard_error", "degrees_of_freedom", "lower", "upper", "p"].map(real));
        fields.extend(["p_holm", "p_benjamini_hochberg", "disjoint_correlation", "disjoint_p", "flips"].map(real));
        Arc::new(Schema::new(fields))
    });
    Arc::clone(&SCHEMA)
}

/// The number of columns that only the row of all dates has.
const OF_ALL: usize = 14;

/// The rows of a pair.
pub(super) fn of_pair(pair: &PairSkill) -> Result<Option<RecordBatch>> {
    let mut rows = RowBuilder::new(schema());
    for measure in &pair.measures {
        let series = [pair.period.as_str(), pair.regime.as_str(), measure.state.as_str()].map(Some).map(Cell::Text);
        rows.push(&of_all(series, measure));
        for date in &measure.by_date {
            rows.push(&of_date(series, date));
        }
        for (by, group, of_group) in groups(measure) {
            rows.push(&self::of_group(series, (by, &group), of_group));
        }
    }
    rows.finish()
}

/// The measures by lag, year and sector.
fn groups(measure: &Measure) -> impl Iterator<Item = (&'static str, String, &SeriesMeasure)> {
    let lags = measure.by_lag.iter().map(|lag| ("lag", lag.lag.to_string(), &lag.measure));
    let years = measure.by_year.iter().map(|year| ("year", year.year.to_string(), &year.measure));
    lags.chain(years).chain(measure.by_sector.iter().map(|of| ("sector", of.sector.clone(), &of.measure)))
}

fn of_group<'a>(series: [Cell<'a>; 3], (by, group): (&'a str, &'a str), measure: &SeriesMeasure) -> Vec<Cell<'a>> {
    let mut row = Vec::from(series);
    row.extend([Cell::Moment(None), Cell::Text(Some(by)), Cell::Text(Some(group))]);
    row.extend([measure.names, measure.correlation, None].map(Cell::Real));
    [Cell::Count(None), Cell::Count(None), Cell::Real(None)]
        .into_iter()
        .cycle()
        .take(9)
        .for_each(|cell| row.push(cell));
    row.push(Cell::Real(None));
    row.extend([measure.dates, measure.horizon, measure.windows].map(|count| Cell::Count(Some(count as i64))));
    row.push(Cell::Real(None));
    row.extend(of_test(measure.test.as_ref()));
    row.extend([Cell::Real(None); OF_ALL - 3 - 6]);
    row
}

/// Standard error, degrees of freedom, interval and p-value.
fn of_test(test: Option<&MeanTest>) -> [Cell<'static>; 5] {
    let of: [fn(&MeanTest) -> f64; 5] = [
        |test| test.standard_error,
        |test| test.degrees_of_freedom,
        |test| test.interval.lower,
        |test| test.interval.upper,
        |test| test.p,
    ];
    of.map(|value| Cell::Real(test.map(value)))
}

fn of_side(side: Side) -> [Cell<'static>; 3] {
    [Cell::Count(Some(side.signals as i64)), Cell::Count(Some(side.hits as i64)), Cell::Real(side.excess)]
}

fn of_date<'a>(series: [Cell<'a>; 3], date: &DateMeasure) -> Vec<Cell<'a>> {
    let mut row = Vec::from(series);
    row.extend([Cell::Moment(Some(i64::from(date.day) * MICROS_PER_DAY)), Cell::Text(None), Cell::Text(None)]);
    row.extend([Some(date.names as f64), date.correlation, Some(date.mean_return)].map(Cell::Real));
    [date.buys, date.sells, date.confident].into_iter().for_each(|side| row.extend(of_side(side)));
    row.push(Cell::Real(date.spread));
    row.extend([Cell::Count(None); 3]);
    row.extend([Cell::Real(None); OF_ALL - 3]);
    row
}

fn of_all<'a>(series: [Cell<'a>; 3], measure: &Measure) -> Vec<Cell<'a>> {
    let mut row = Vec::from(series);
    row.extend([Cell::Moment(None), Cell::Text(None), Cell::Text(None)]);
    row.extend([measure.names, measure.correlation, None].map(Cell::Real));
    let sides = [measure.buys, measure.sells, measure.confident];
    sides.into_iter().for_each(|side| row.extend(of_side(side.side)));
    row.push(Cell::Real(measure.spread));
    row.extend([measure.dates, measure.horizon, measure.windows].map(|count| Cell::Count(Some(count as i64))));
    row.push(Cell::Real(measure.positive));
    row.extend(of_test(measure.test.as_ref()));
    let disjoint = |value: fn(&MeanTest) -> f64| measure.disjoint.as_ref().map(value);
    let numbers = [
        measure.p_holm,
        measure.p_benjamini_hochberg,
        disjoint(|test| test.mean),
        disjoint(|test| test.p),
        measure.flips,
    ];
    row.extend(numbers.map(Cell::Real));
    row
}
