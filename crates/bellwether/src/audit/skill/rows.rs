//! Measures as rows: one for each date of a pair and state, one without a date for all of them, and one for each lag, year,
//! sector and number of news. Features of the news have such rows of their own, and one for what they add to the signal.

use std::sync::{Arc, LazyLock};

use arrow::array::RecordBatch;
use arrow::datatypes::{DataType, Field, Schema, SchemaRef};
use bellwether_statistics::MeanTest;

use super::PairSkill;
use super::answer::{DateCorrelation, DateReturns, FeatureSkill, Measure, RankMeasure, SeriesMeasure, Side};
use crate::audit::row_builder::{RowValue, RowWriter};
use crate::error::Result;
use crate::prices::Day;
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

/// The columns that only the rows of all dates and of groups have, and those that only the row of all dates has.
const OF_ALL: usize = 14;
const OF_WHOLE: usize = 5;

/// Writes the rows of a pair.
pub(super) fn write_pair(pair: &PairSkill, rows: &mut RowWriter<impl FnMut(&RecordBatch) -> Result<()>>) -> Result<()> {
    for measure in &pair.measures {
        let series = [pair.period.as_str(), pair.regime.as_str(), measure.state.as_str()];
        write(rows, (series, None), &measure.ranks, Some(measure))?;
    }
    Ok(())
}

/// Writes the rows of a feature.
pub(super) fn write_feature(
    feature: &FeatureSkill,
    rows: &mut RowWriter<impl FnMut(&RecordBatch) -> Result<()>>,
) -> Result<()> {
    for measure in &feature.measures {
        let series = [feature.period.as_str(), feature.regime.as_str(), measure.state.as_str()];
        let named = (series, Some(feature.feature.as_str()));
        write(rows, named, &measure.ranks, None)?;
        if let Some(partial) = &measure.partial {
            rows.push(&of_group(named, ("given", "signal"), partial))?;
        }
    }
    Ok(())
}

/// What is measured: the period, the regime and the state; and the feature, if it is of one.
type MeasureName<'a> = ([&'a str; 3], Option<&'a str>);

/// Writes a measure, the returns of each date with it if it is of signals.
fn write(
    rows: &mut RowWriter<impl FnMut(&RecordBatch) -> Result<()>>,
    named: MeasureName<'_>,
    ranks: &RankMeasure,
    signals: Option<&Measure>,
) -> Result<()> {
    rows.push(&of_all(named, ranks, signals))?;
    for (index, date) in ranks.by_date.iter().enumerate() {
        rows.push(&of_date(named, date, signals.map(|signals| &signals.returns[index])))?;
    }
    for (by, group, measure) in groups(ranks, signals) {
        rows.push(&of_group(named, (by, &group), measure))?;
    }
    Ok(())
}

/// The measures of each group, with what it is by and its name.
fn groups<'a>(ranks: &'a RankMeasure, signals: Option<&'a Measure>) -> Vec<(&'static str, String, &'a SeriesMeasure)> {
    let mut all = Vec::new();
    all.extend(ranks.by_lag.iter().map(|of| ("lag", of.lag.to_string(), &of.measure)));
    all.extend(ranks.by_year.iter().map(|of| ("year", of.year.to_string(), &of.measure)));
    all.extend(ranks.by_sector.iter().map(|of| ("sector", of.sector.clone(), &of.measure)));
    all.extend(ranks.within_sectors.iter().map(|of| ("within", "sectors".to_owned(), of)));
    all.extend(ranks.given_beta.iter().map(|of| ("given", "beta".to_owned(), of)));
    let by_news = signals.map_or(&[][..], |signals| &signals.by_news);
    all.extend(by_news.iter().map(|of| ("news", format!("{} {}", of.window, of.articles), &of.measure)));
    all
}

/// The cells up to the group.
fn start<'a>(
    ([period, regime, state], feature): MeasureName<'a>,
    day: Option<Day>,
    group: Option<(&'a str, &'a str)>,
) -> Vec<RowValue<'a>> {
    vec![
        RowValue::Text(Some(period)),
        RowValue::Text(Some(regime)),
        RowValue::Text(Some(state)),
        RowValue::Text(feature),
        RowValue::Moment(day.map(|day| i64::from(day) * MICROS_PER_DAY)),
        RowValue::Text(group.map(|(by, _)| by)),
        RowValue::Text(group.map(|(_, group)| group)),
    ]
}

/// Signals, hits and excess of buys, of sells and of the most confident, and the spread.
fn of_sides<'a>(sides: Option<[Side; 3]>, spread: Option<f64>) -> Vec<RowValue<'a>> {
    let mut cells = Vec::new();
    for side in 0..3 {
        let side = sides.map(|sides| sides[side]);
        cells.push(RowValue::Count(side.map(|side| side.signals as i64)));
        cells.push(RowValue::Count(side.map(|side| side.hits as i64)));
        cells.push(RowValue::Real(side.and_then(|side| side.excess)));
    }
    cells.push(RowValue::Real(spread));
    cells
}

/// Dates, horizon and windows; the share of positive dates; and standard error, degrees of freedom, interval and p-value.
fn of_test<'a>(counts: [u64; 3], positive: Option<f64>, test: Option<&MeanTest>) -> Vec<RowValue<'a>> {
    let mut cells = Vec::from(counts.map(|count| RowValue::Count(Some(count as i64))));
    cells.push(RowValue::Real(positive));
    cells.extend([
        RowValue::Real(test.map(|test| test.standard_error)),
        RowValue::Real(test.map(|test| test.degrees_of_freedom)),
        RowValue::Real(test.map(|test| test.interval.lower)),
        RowValue::Real(test.map(|test| test.interval.upper)),
        RowValue::Real(test.map(|test| test.p)),
    ]);
    cells
}

fn of_group<'a>(named: MeasureName<'a>, group: (&'a str, &'a str), measure: &SeriesMeasure) -> Vec<RowValue<'a>> {
    let mut row = start(named, None, Some(group));
    row.extend([measure.names, measure.correlation, None].map(RowValue::Real));
    row.extend(of_sides(None, None));
    row.extend(of_test([measure.dates, measure.horizon, measure.windows], None, measure.test.as_ref()));
    row.extend([RowValue::Real(None); OF_WHOLE]);
    row
}

fn of_date<'a>(named: MeasureName<'a>, date: &DateCorrelation, returns: Option<&DateReturns>) -> Vec<RowValue<'a>> {
    let mut row = start(named, Some(date.day), None);
    row.extend([Some(date.names as f64), date.correlation, returns.map(|of| of.mean_return)].map(RowValue::Real));
    let sides = returns.map(|of| [of.buys, of.sells, of.confident]);
    row.extend(of_sides(sides, returns.and_then(|of| of.spread)));
    row.extend([RowValue::Count(None); 3]);
    row.extend([RowValue::Real(None); OF_ALL - 3]);
    row
}

fn of_all<'a>(named: MeasureName<'a>, measure: &RankMeasure, signals: Option<&Measure>) -> Vec<RowValue<'a>> {
    let mut row = start(named, None, None);
    row.extend([measure.names, measure.correlation, None].map(RowValue::Real));
    let sides = signals.map(|of| [of.buys.side, of.sells.side, of.confident.side]);
    row.extend(of_sides(sides, signals.and_then(|of| of.spread)));
    let counts = [measure.dates, measure.horizon, measure.windows];
    row.extend(of_test(counts, measure.positive, measure.test.as_ref()));
    row.extend([
        RowValue::Real(measure.p_holm),
        RowValue::Real(measure.p_benjamini_hochberg),
        RowValue::Real(measure.disjoint.map(|test| test.mean)),
        RowValue::Real(measure.disjoint.map(|test| test.p)),
        RowValue::Real(signals.and_then(|of| of.flips)),
    ]);
    row
}
