//! Whether the features of the news predicted, measured as signals are: at the cells of a pair, with their returns. What a
//! feature adds to the signal is its partial correlation, given the signed confidence.

use bellwether_statistics::Order;
use schemars::JsonSchema;
use serde::Serialize;

use super::answer::{RankMeasure, State};
use super::measures::Measuring;
use super::news::{DateNews, SignalNews};
use super::ranked::{DateContext, RankTally};
use super::series::{CorrelationSeries, SeriesMeasure};
use crate::interface::{Period, Regime};

/// A feature of the news at the horizon of a period.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct FeatureSkill {
    /// Its column in the dataset.
    pub feature: String,
    /// The period.
    pub period: Period,
    /// The regime at whose signals it is measured: of the period, the one with the most. Others have the same news.
    pub regime: Regime,
    /// As published, as it stands today, and the difference on the same signals.
    pub measures: [FeatureMeasure; 3],
}

/// The measure of a feature in a state.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct FeatureMeasure {
    /// Which.
    pub state: State,
    /// The rank correlation of the feature with the return.
    #[serde(flatten)]
    pub ranks: RankMeasure,
    /// What the feature adds to the signal: its partial rank correlation with the return, given the signed confidence of the
    /// same signals; none of the difference.
    pub partial: Option<SeriesMeasure>,
}

/// The measures of all features while dates are added.
pub(super) struct FeatureTallies(Vec<FeatureTally>);

/// The measures of a feature.
struct FeatureTally {
    ranks: [RankTally; 3],
    /// As published and today.
    partial: [CorrelationSeries; 2],
}

impl FeatureTallies {
    pub(super) fn of(news: &SignalNews, measuring: &Measuring<'_>) -> Self {
        let tally = |_: &String| FeatureTally {
            ranks: State::ALL.map(|state| RankTally::of(state, measuring.sectors)),
            partial: Default::default(),
        };
        Self(news.features.iter().map(tally).collect())
    }

    /// Adds the features of the cells of a date, whose signals have an order of their confidences as published and today.
    pub(super) fn add(&mut self, news: &DateNews<'_>, confidences: &[Order; 2], date: &DateContext) {
        for (feature, tally) in self.0.iter_mut().enumerate() {
            let [published, today, difference] = &mut tally.ranks;
            let [first, latest] = news.values(feature);
            let add =
                |ranks: &mut RankTally, partial: &mut CorrelationSeries, values: &[Option<f64>], given: &Order| {
                    let entries = date.entries[ranks.state() as usize];
                    let values = Order::of(values.iter().copied());
                    ranks.add(&values, date);
                    partial.add(entries, values.partial_correlation(&date.returns[0], given));
                };
            add(today, &mut tally.partial[1], &latest, &confidences[1]);
            if first.iter().any(Option::is_some) {
                add(published, &mut tally.partial[0], &first, &confidences[0]);
                let before = first.iter().zip(&latest).map(|(first, latest)| latest.and(*first));
                let after = first.iter().zip(&latest).map(|(first, latest)| first.and(*latest));
                difference.add_difference(&Order::of(before), &Order::of(after), date);
            }
        }
    }

    pub(super) fn finish(self, measuring: &Measuring<'_>, period: Period) -> Vec<[FeatureMeasure; 3]> {
        let measure = |FeatureTally { ranks, partial }| {
            let mut partial = partial.into_iter();
            ranks.map(|tally: RankTally| FeatureMeasure {
                state: tally.state(),
                ranks: tally.finish(measuring, period),
                partial: partial.next().map(|series| series.measure(|dates| measuring.windows(period, 0, dates))),
            })
        };
        self.0.into_iter().map(measure).collect()
    }
}
