//! Measures as rows: one for each date of a pair and state, one without a date for all of them, and one for each lag, year,
//! sector and number of news. Features of the news have such rows of their own, and one for what they add to the signal.

use std::sync::{Arc, LazyLock};

use arrow::array::RecordBatch;
use arrow::datatypes::{DataType, Field, Schema, SchemaRef};
use bellwether_statistics::MeanTest;

use super::PairSkill;
use super::answer::{DateCorrelation, DateReturns, FeatureSkill, Measure, RankMeasure, SeriesMeasure, Side};
use crate::audit::row_builder::{RowBuilder, RowValue};
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
        let mut fields = vec![text("period"), text("regime"), text("state")];
        fields.push(Field::new("feature", DataType::Utf8, true));
        fields.push(Field::new("date", date(), true));
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
        let series = [pair.period.as_str(), pair.regime.as_str(), measure.state.as_str()];
        let returns = measure.returns.iter().map(Some);
        add(&mut rows, MeasureName { series, feature: None }, (&measure.ranks, Some(measure)), returns);
    }
    rows.finish()
}

/// The rows of a feature.
pub(super) fn of_feature(feature: &FeatureSkill) -> Result<Option<RecordBatch>> {
    let mut rows = RowBuilder::new(schema());
    for measure in &feature.measures {
        let series = [feature.period.as_str(), feature.regime.as_str(), measure.state.as_str()];
        let named = MeasureName { series, feature: Some(&feature.feature) };
        add(&mut rows, named, (&measure.ranks, None), std::iter::repeat(None));
        measure.partial.iter().for_each(|partial| rows.push(&of_group(named, ("given", "signal"), partial)));
    }
    rows.finish()
}

/// What is measured.
#[derive(Clone, Copy)]
struct MeasureName<'a> {
    /// The period, the regime and the state.
    series: [&'a str; 3],
    feature: Option<&'a str>,
}

impl<'a> MeasureName<'a> {
    fn row(self) -> Vec<RowValue<'a>> {
        let mut row = Vec::from(self.series.map(Some).map(RowValue::Text));
        row.push(RowValue::Text(self.feature));
        row
    }
}

/// Adds a measure, the returns of each date with it if it is of signals.
fn add<'a>(
    rows: &mut RowBuilder,
    named: MeasureName<'_>,
    (ranks, signals): (&RankMeasure, Option<&Measure>),
    returns: impl Iterator<Item = Option<&'a DateReturns>>,
) {
    rows.push(&of_all(named, ranks, signals));
    for (date, returns) in ranks.by_date.iter().zip(returns) {
        rows.push(&of_date(named, date, returns));
    }
    let by_news = signals.map_or(&[][..], |signals| &signals.by_news);
    let by_news = by_news.iter().map(|of| ("news", format!("{} {}", of.window, of.articles), &of.measure));
    for (by, group, measure) in groups(ranks).chain(by_news) {
        rows.push(&of_group(named, (by, &group), measure));
    }
}

/// The measures by lag, year and sector.
fn groups(measure: &RankMeasure) -> impl Iterator<Item = (&'static str, String, &SeriesMeasure)> {
    let lags = measure.by_lag.iter().map(|lag| ("lag", lag.lag.to_string(), &lag.measure));
    let years = measure.by_year.iter().map(|year| ("year", year.year.to_string(), &year.measure));
    let neutral = [("within", "sectors", &measure.within_sectors), ("given", "beta", &measure.given_beta)];
    let neutral = neutral.into_iter().filter_map(|(by, group, of)| Some((by, group.to_owned(), of.as_ref()?)));
    let sectors = measure.by_sector.iter().map(|of| ("sector", of.sector.clone(), &of.measure));
    lags.chain(years).chain(sectors).chain(neutral)
}

fn of_group<'a>(named: MeasureName<'a>, (by, group): (&'a str, &'a str), measure: &SeriesMeasure) -> Vec<RowValue<'a>> {
    let mut row = named.row();
    row.extend([RowValue::Moment(None), RowValue::Text(Some(by)), RowValue::Text(Some(group))]);
    row.extend([measure.names, measure.correlation, None].map(RowValue::Real));
    row.extend(of_sides([None; 3]));
    row.push(RowValue::Real(None));
    row.extend([measure.dates, measure.horizon, measure.windows].map(|count| RowValue::Count(Some(count as i64))));
    row.push(RowValue::Real(None));
    row.extend(of_test(measure.test.as_ref()));
    row.extend([RowValue::Real(None); OF_ALL - 3 - 6]);
    row
}

/// Standard error, degrees of freedom, interval and p-value.
fn of_test(test: Option<&MeanTest>) -> [RowValue<'static>; 5] {
    let of: [fn(&MeanTest) -> f64; 5] = [
        |test| test.standard_error,
        |test| test.degrees_of_freedom,
        |test| test.interval.lower,
        |test| test.interval.upper,
        |test| test.p,
    ];
    of.map(|value| RowValue::Real(test.map(value)))
}

/// Signals, hits and excess of buys, of sells and of the most confident.
fn of_sides<'a>(sides: [Option<Side>; 3]) -> impl Iterator<Item = RowValue<'a>> {
    sides.into_iter().flat_map(|side| {
        let count = |of: fn(Side) -> u64| RowValue::Count(side.map(|side| of(side) as i64));
        [count(|side| side.signals), count(|side| side.hits), RowValue::Real(side.and_then(|side| side.excess))]
    })
}

fn of_date<'a>(named: MeasureName<'a>, date: &DateCorrelation, returns: Option<&DateReturns>) -> Vec<RowValue<'a>> {
    let mut row = named.row();
    row.extend([
        RowValue::Moment(Some(i64::from(date.day) * MICROS_PER_DAY)),
        RowValue::Text(None),
        RowValue::Text(None),
    ]);
    row.extend([Some(date.names as f64), date.correlation, returns.map(|of| of.mean_return)].map(RowValue::Real));
    let sides: [fn(&DateReturns) -> Side; 3] = [|of| of.buys, |of| of.sells, |of| of.confident];
    row.extend(of_sides(sides.map(|side| returns.map(side))));
    row.push(RowValue::Real(returns.and_then(|of| of.spread)));
    row.extend([RowValue::Count(None); 3]);
    row.extend([RowValue::Real(None); OF_ALL - 3]);
    row
}

fn of_all<'a>(named: MeasureName<'a>, measure: &RankMeasure, signals: Option<&Measure>) -> Vec<RowValue<'a>> {
    let mut row = named.row();
    row.extend([RowValue::Moment(None), RowValue::Text(None), RowValue::Text(None)]);
    row.extend([measure.names, measure.correlation, None].map(RowValue::Real));
    let sides: [fn(&Measure) -> Side; 3] = [|of| of.buys.side, |of| of.sells.side, |of| of.confident.side];
    row.extend(of_sides(sides.map(|side| signals.map(side))));
    row.push(RowValue::Real(signals.and_then(|of| of.spread)));
    row.extend([measure.dates, measure.horizon, measure.windows].map(|count| RowValue::Count(Some(count as i64))));
    row.push(RowValue::Real(measure.positive));
    row.extend(of_test(measure.test.as_ref()));
    let disjoint = |value: fn(&MeanTest) -> f64| measure.disjoint.as_ref().map(value);
    let numbers = [
        measure.p_holm,
        measure.p_benjamini_hochberg,
        disjoint(|test| test.mean),
        disjoint(|test| test.p),
        signals.and_then(|of| of.flips),
    ];
    row.extend(numbers.map(RowValue::Real));
    row
}
