//! Measures as rows: one for each date of a pair and state, one without a date for all of them, and one for each lag, year,
//! sector and number of news. Features of the news have such rows of their own, and one for what they add to the signal.

use arrow::array::RecordBatch;
use arrow::datatypes::{DataType, SchemaRef};
use bellwether_statistics::MeanTest;

use super::PairSkill;
use super::answer::{FeatureSkill, Measure, RankMeasure, SeriesMeasure, Side, State};
use crate::audit::rows::RowValue::{self, Real, Text, Whole};
use crate::audit::rows::{AuditColumn, RowWriter, always, optional, schema_of};
use crate::error::Result;
use crate::interface::{Period, Regime};
use crate::tables::date;
use crate::time::MICROS_PER_DAY;

/// The columns of measures, one row for each date, and one for all.
pub fn schema() -> SchemaRef {
    schema_of(columns())
}

pub(in crate::audit) fn columns() -> Vec<AuditColumn> {
    use DataType::{Float64, Int64, Utf8};
    let by = "what the group is by: `lag`, `year`, `sector`, `news`, `within` sectors, or `given` beta or the signal";
    let group = "the group: a lag, a year, a sector, a window and its number of articles, `sectors`, `beta`, or `signal`, \
                 beside which a feature is measured";
    let correlation = "the rank correlation with the return over the horizon, the partial one given the signal; of several \
                       dates, their mean";
    let buy_excess = "the mean return after the buys, less the mean of the date, which should be positive";
    let sell_excess = "the mean return after the sells, less the mean of the date, which should be negative";
    let confident_hits = "the signals of the most confident fifth that came true, relative to the median of the date";
    let confident_excess = "the mean return after the signals of the most confident fifth, less the mean of the date, in the \
                            direction of each signal";
    let standard_error = "the standard error of the mean correlation, which allows for the overlap";
    let adjusted = "the p-value after Benjamini and Hochberg, among all tests of the state";
    vec![
        always("period", Utf8, ""),
        always("regime", Utf8, ""),
        always("state", Utf8, "`published`, `today` or `difference`"),
        optional("feature", Utf8, "the feature of the news"),
        optional("date", date(), "the date of the signals"),
        optional("by", Utf8, by),
        optional("group", Utf8, group),
        optional("names", Float64, "the names with a signal and a return; of several dates, their mean"),
        optional("correlation", Float64, correlation),
        optional("mean_return", Float64, "the mean return of the names over the horizon"),
        optional("buys", Int64, "the buys"),
        optional("buy_hits", Int64, "the buys that came true, relative to the median of the date"),
        optional("buy_excess", Float64, buy_excess),
        optional("sells", Int64, "the sells"),
        optional("sell_hits", Int64, "the sells that came true, relative to the median of the date"),
        optional("sell_excess", Float64, sell_excess),
        optional("confidents", Int64, "the signals of the most confident fifth"),
        optional("confident_hits", Int64, confident_hits),
        optional("confident_excess", Float64, confident_excess),
        optional("spread", Float64, "the mean return of the highest fifth less that of the lowest"),
        optional("dates", Int64, "the dates with a correlation"),
        optional("horizon", Int64, "how many dates a return overlaps with, its own included"),
        optional("windows", Int64, "the windows of a whole horizon that do not overlap"),
        optional("positive", Float64, "the share of dates with a correlation above zero"),
        optional("standard_error", Float64, standard_error),
        optional("degrees_of_freedom", Float64, "its degrees of freedom"),
        optional("lower", Float64, "the lower end of the 95 % interval"),
        optional("upper", Float64, "the upper end of the 95 % interval"),
        optional("p", Float64, "the p-value of no correlation"),
        optional("p_holm", Float64, "the p-value after Holm, among all tests of the state"),
        optional("p_benjamini_hochberg", Float64, adjusted),
        optional("disjoint_correlation", Float64, "the mean correlation of dates whose windows do not overlap"),
        optional("disjoint_p", Float64, "its p-value"),
        optional("flips", Float64, "the share of signals that are the opposite of the one before"),
    ]
}

/// A cell of a row, with its column.
type Cell<'a> = (&'static str, RowValue<'a>);

/// Writes the rows of pairs and of features.
pub(super) fn write(
    pairs: &[PairSkill],
    features: &[FeatureSkill],
    deliver: impl FnMut(&RecordBatch) -> Result<()>,
) -> Result<()> {
    let mut rows = RowWriter::new(schema(), deliver);
    for pair in pairs {
        for measure in &pair.measures {
            let name = name(pair.period, pair.regime, measure.state, None);
            write_measure(&mut rows, &name, &measure.ranks, Some(measure))?;
        }
    }
    for feature in features {
        for measure in &feature.measures {
            let name = name(feature.period, feature.regime, measure.state, Some(&feature.feature));
            write_measure(&mut rows, &name, &measure.ranks, None)?;
            if let Some(partial) = &measure.partial {
                rows.push(&of_group(&name, "given", "signal", partial))?;
            }
        }
    }
    rows.flush()
}

/// What is measured: the pair and the state; and the feature, if it is of one.
fn name(period: Period, regime: Regime, state: State, feature: Option<&str>) -> Vec<Cell<'_>> {
    vec![
        ("period", Text(Some(period.as_str()))),
        ("regime", Text(Some(regime.as_str()))),
        ("state", Text(Some(state.as_str()))),
        ("feature", Text(feature)),
    ]
}

/// Writes a measure, the returns of each date with it if it is of signals.
fn write_measure(
    rows: &mut RowWriter<impl FnMut(&RecordBatch) -> Result<()>>,
    name: &[Cell<'_>],
    ranks: &RankMeasure,
    signals: Option<&Measure>,
) -> Result<()> {
    let mut row = name.to_vec();
    row.extend([("names", Real(ranks.names)), ("correlation", Real(ranks.correlation))]);
    if let Some(of) = signals {
        row.extend(of_sides([of.buys.side, of.sells.side, of.confident.side], of.spread));
        row.push(("flips", Real(of.flips)));
    }
    row.extend(of_test([ranks.dates, ranks.horizon, ranks.windows], ranks.test.as_ref()));
    row.extend([
        ("positive", Real(ranks.positive)),
        ("p_holm", Real(ranks.p_holm)),
        ("p_benjamini_hochberg", Real(ranks.p_benjamini_hochberg)),
        ("disjoint_correlation", Real(ranks.disjoint.map(|test| test.mean))),
        ("disjoint_p", Real(ranks.disjoint.map(|test| test.p))),
    ]);
    rows.push(&row)?;
    for (index, date) in ranks.by_date.iter().enumerate() {
        let mut row = name.to_vec();
        row.push(("date", Whole(Some(i64::from(date.day) * MICROS_PER_DAY))));
        row.extend([("names", Real(Some(date.names as f64))), ("correlation", Real(date.correlation))]);
        if let Some(of) = signals.map(|signals| &signals.returns[index]) {
            row.push(("mean_return", Real(Some(of.mean_return))));
            row.extend(of_sides([of.buys, of.sells, of.confident], of.spread));
        }
        rows.push(&row)?;
    }
    for (by, group, measure) in groups(ranks, signals) {
        rows.push(&of_group(name, by, &group, measure))?;
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

fn of_group<'a>(name: &[Cell<'a>], by: &'static str, group: &'a str, measure: &SeriesMeasure) -> Vec<Cell<'a>> {
    let mut row = name.to_vec();
    row.extend([("by", Text(Some(by))), ("group", Text(Some(group)))]);
    row.extend([("names", Real(measure.names)), ("correlation", Real(measure.correlation))]);
    row.extend(of_test([measure.dates, measure.horizon, measure.windows], measure.test.as_ref()));
    row
}

/// Signals, hits and excess of buys, of sells and of the most confident, and the spread.
fn of_sides<'a>(sides: [Side; 3], spread: Option<f64>) -> Vec<Cell<'a>> {
    let names = [
        ["buys", "buy_hits", "buy_excess"],
        ["sells", "sell_hits", "sell_excess"],
        ["confidents", "confident_hits", "confident_excess"],
    ];
    let mut cells = vec![("spread", Real(spread))];
    for ([signals, hits, excess], side) in names.into_iter().zip(sides) {
        cells.extend([(signals, Whole(Some(side.signals as i64))), (hits, Whole(Some(side.hits as i64)))]);
        cells.push((excess, Real(side.excess)));
    }
    cells
}

/// Dates, horizon and windows, and the test.
fn of_test<'a>([dates, horizon, windows]: [u64; 3], test: Option<&MeanTest>) -> Vec<Cell<'a>> {
    vec![
        ("dates", Whole(Some(dates as i64))),
        ("horizon", Whole(Some(horizon as i64))),
        ("windows", Whole(Some(windows as i64))),
        ("standard_error", Real(test.map(|test| test.standard_error))),
        ("degrees_of_freedom", Real(test.map(|test| test.degrees_of_freedom))),
        ("lower", Real(test.map(|test| test.interval.lower))),
        ("upper", Real(test.map(|test| test.interval.upper))),
        ("p", Real(test.map(|test| test.p))),
    ]
}
