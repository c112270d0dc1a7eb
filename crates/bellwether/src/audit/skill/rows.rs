//! Measures as rows: one for each date of a pair and state, one without a date for all of them, and one for each lag, year,
//! sector and number of news. Features of the news have such rows of their own, and one for what they add to the signal.

use arrow::array::RecordBatch;
use arrow::datatypes::{DataType, SchemaRef};
use bellwether_statistics::MeanTest;

use super::PairSkill;
use super::answer::{FeatureSkill, Measure, RankMeasure, SeriesMeasure, Side, State};
use crate::audit::rows::RowValue::{self, Real, Text, Whole};
use crate::audit::rows::{Entry, RowWriter, always, optional, schema_of};
use crate::error::Result;
use crate::interface::{Period, Regime};
use crate::prices::Day;
use crate::tables::date;
use crate::time::MICROS_PER_DAY;

/// The columns of measures, one row for each date, and one for all.
pub fn schema() -> SchemaRef {
    schema_of(entries())
}

pub(in crate::audit) fn entries<'a>() -> [Entry<Row<'a>>; 34] {
    use DataType::{Float64, Int64, Utf8};
    let by = "what the group is by: `lag`, `year`, `sector`, `news`, `within` sectors, or `given` beta or the signal";
    let group = "the group: a lag, a year, a sector, a window and its number of articles, `sectors`, `beta`, or `signal`, \
                 beside which a feature is measured";
    let names = "the names with a signal and a return; of several dates, their mean";
    let correlation = "the rank correlation with the return over the horizon, the partial one given the signal; of several \
                       dates, their mean";
    let buy_hits = "the buys that came true, relative to the median of the date";
    let sell_hits = "the sells that came true, relative to the median of the date";
    let buy_excess = "the mean return after the buys, less the mean of the date, which should be positive";
    let sell_excess = "the mean return after the sells, less the mean of the date, which should be negative";
    let confident_hits = "the signals of the most confident fifth that came true, relative to the median of the date";
    let confident_excess = "the mean return after the signals of the most confident fifth, less the mean of the date, in the \
                            direction of each signal";
    let spread = "the mean return of the highest fifth less that of the lowest";
    let horizon = "how many dates a return overlaps with, its own included";
    let positive = "the share of dates with a correlation above zero";
    let standard_error = "the standard error of the mean correlation, which allows for the overlap";
    let adjusted = "the p-value after Benjamini and Hochberg, among all tests of the state";
    let disjoint = "the mean correlation of dates whose windows do not overlap";
    let flips = "the share of signals that are the opposite of the one before";
    [
        always("period", Utf8, "", |it| Text(Some(it.period))),
        always("regime", Utf8, "", |it| Text(Some(it.regime))),
        always("state", Utf8, "`published`, `today` or `difference`", |it| Text(Some(it.state))),
        optional("feature", Utf8, "the feature of the news", |it| Text(it.feature)),
        optional("date", date(), "the date of the signals", |it| {
            Whole(it.date.map(|day| i64::from(day) * MICROS_PER_DAY))
        }),
        optional("by", Utf8, by, |it| Text(it.group.as_ref().map(|(by, _)| *by))),
        optional("group", Utf8, group, |it| Text(it.group.as_ref().map(|(_, group)| group.as_str()))),
        optional("names", Float64, names, |it| Real(it.names)),
        optional("correlation", Float64, correlation, |it| Real(it.correlation)),
        optional("mean_return", Float64, "the mean return of the names over the horizon", |it| Real(it.mean_return)),
        optional("buys", Int64, "the buys", |it| it.count_of(0, |side| side.signals)),
        optional("buy_hits", Int64, buy_hits, |it| it.count_of(0, |side| side.hits)),
        optional("buy_excess", Float64, buy_excess, |it| it.excess(0)),
        optional("sells", Int64, "the sells", |it| it.count_of(1, |side| side.signals)),
        optional("sell_hits", Int64, sell_hits, |it| it.count_of(1, |side| side.hits)),
        optional("sell_excess", Float64, sell_excess, |it| it.excess(1)),
        optional("confidents", Int64, "the signals of the most confident fifth", |it| {
            it.count_of(2, |side| side.signals)
        }),
        optional("confident_hits", Int64, confident_hits, |it| it.count_of(2, |side| side.hits)),
        optional("confident_excess", Float64, confident_excess, |it| it.excess(2)),
        optional("spread", Float64, spread, |it| Real(it.spread)),
        optional("dates", Int64, "the dates with a correlation", |it| Whole(it.over.map(|[dates, ..]| dates as i64))),
        optional("horizon", Int64, horizon, |it| Whole(it.over.map(|[_, horizon, _]| horizon as i64))),
        optional("windows", Int64, "the windows of a whole horizon that do not overlap", |it| {
            Whole(it.over.map(|[.., windows]| windows as i64))
        }),
        optional("positive", Float64, positive, |it| Real(it.ranks.and_then(|ranks| ranks.positive))),
        optional("standard_error", Float64, standard_error, |it| it.of_test(|test| test.standard_error)),
        optional("degrees_of_freedom", Float64, "its degrees of freedom", |it| {
            it.of_test(|test| test.degrees_of_freedom)
        }),
        optional("lower", Float64, "the lower end of the 95 % interval", |it| it.of_test(|test| test.interval.lower)),
        optional("upper", Float64, "the upper end of the 95 % interval", |it| it.of_test(|test| test.interval.upper)),
        optional("p", Float64, "the p-value of no correlation", |it| it.of_test(|test| test.p)),
        optional("p_holm", Float64, "the p-value after Holm, among all tests of the state", |it| {
            Real(it.ranks.and_then(|ranks| ranks.p_holm))
        }),
        optional("p_benjamini_hochberg", Float64, adjusted, |it| Real(it.ranks.and_then(|of| of.p_benjamini_hochberg))),
        optional("disjoint_correlation", Float64, disjoint, |it| Real(it.ranks.and_then(|of| Some(of.disjoint?.mean)))),
        optional("disjoint_p", Float64, "its p-value", |it| Real(it.ranks.and_then(|of| Some(of.disjoint?.p)))),
        optional("flips", Float64, flips, |it| Real(it.flips)),
    ]
}

/// A row: of a date, of a group, or of all dates.
#[derive(Clone, Default)]
pub(in crate::audit) struct Row<'a> {
    period: &'static str,
    regime: &'static str,
    state: &'static str,
    feature: Option<&'a str>,
    date: Option<Day>,
    /// What the group is by, and its name.
    group: Option<(&'static str, String)>,
    names: Option<f64>,
    correlation: Option<f64>,
    mean_return: Option<f64>,
    /// Buys, sells and the most confident.
    sides: Option<[Side; 3]>,
    spread: Option<f64>,
    /// Of several dates, how many there are, their horizon and their windows.
    over: Option<[u64; 3]>,
    test: Option<MeanTest>,
    /// Of all dates.
    ranks: Option<&'a RankMeasure>,
    flips: Option<f64>,
}

impl<'a> Row<'a> {
    /// A row without numbers.
    fn new((period, regime): (Period, Regime), state: State, feature: Option<&'a String>) -> Self {
        let (period, regime, state) = (period.as_str(), regime.as_str(), state.as_str());
        Self { period, regime, state, feature: feature.map(String::as_str), ..Self::default() }
    }

    fn count_of(&self, side: usize, count: fn(&Side) -> u64) -> RowValue<'_> {
        Whole(self.sides.map(|sides| count(&sides[side]) as i64))
    }

    fn excess(&self, side: usize) -> RowValue<'_> {
        Real(self.sides.and_then(|sides| sides[side].excess))
    }

    fn of_test(&self, number: fn(&MeanTest) -> f64) -> RowValue<'_> {
        Real(self.test.as_ref().map(number))
    }

    fn of_group(&self, by: &'static str, group: impl ToString, of: &SeriesMeasure) -> Self {
        Self {
            group: Some((by, group.to_string())),
            names: of.names,
            correlation: of.correlation,
            over: Some([of.dates, of.horizon, of.windows]),
            test: of.test,
            ..self.clone()
        }
    }

    /// The rows of a measure, with the returns of each date if it is of signals.
    fn rows_of(&self, ranks: &'a RankMeasure, signals: Option<&Measure>) -> Vec<Self> {
        let mut rows = vec![Self {
            names: ranks.names,
            correlation: ranks.correlation,
            sides: signals.map(|of| [of.buys.side, of.sells.side, of.confident.side]),
            spread: signals.and_then(|of| of.spread),
            over: Some([ranks.dates, ranks.horizon, ranks.windows]),
            test: ranks.test,
            ranks: Some(ranks),
            flips: signals.and_then(|of| of.flips),
            ..self.clone()
        }];
        for (index, date) in ranks.by_date.iter().enumerate() {
            let of = signals.map(|signals| &signals.returns[index]);
            rows.push(Self {
                date: Some(date.day),
                names: Some(date.names as f64),
                correlation: date.correlation,
                mean_return: of.map(|of| of.mean_return),
                sides: of.map(|of| [of.buys, of.sells, of.confident]),
                spread: of.and_then(|of| of.spread),
                ..self.clone()
            });
        }
        rows.extend(ranks.by_lag.iter().map(|of| self.of_group("lag", of.lag, &of.measure)));
        rows.extend(ranks.by_year.iter().map(|of| self.of_group("year", of.year, &of.measure)));
        rows.extend(ranks.by_sector.iter().map(|of| self.of_group("sector", &of.sector, &of.measure)));
        rows.extend(ranks.within_sectors.iter().map(|of| self.of_group("within", "sectors", of)));
        rows.extend(ranks.given_beta.iter().map(|of| self.of_group("given", "beta", of)));
        for of in signals.iter().flat_map(|signals| &signals.by_news) {
            rows.push(self.of_group("news", format!("{} {}", of.window, of.articles), &of.measure));
        }
        rows
    }
}

/// Writes the rows of pairs and of features.
pub(super) fn write(
    pairs: &[PairSkill],
    features: &[FeatureSkill],
    deliver: impl FnMut(&RecordBatch) -> Result<()>,
) -> Result<()> {
    let mut writer = RowWriter::new(entries(), deliver);
    for PairSkill { period, regime, measures, .. } in pairs {
        for measure in measures {
            let row = Row::new((*period, *regime), measure.state, None);
            row.rows_of(&measure.ranks, Some(measure)).iter().try_for_each(|row| writer.push(row))?;
        }
    }
    for FeatureSkill { feature, period, regime, measures } in features {
        for measure in measures {
            let row = Row::new((*period, *regime), measure.state, Some(feature));
            let given = measure.partial.as_ref().map(|partial| row.of_group("given", "signal", partial));
            row.rows_of(&measure.ranks, None).iter().chain(&given).try_for_each(|row| writer.push(row))?;
        }
    }
    writer.flush()
}
