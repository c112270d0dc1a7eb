//! Whether the features of the news predicted, measured as signals are: at the cells of a pair, with their returns.

use bellwether_statistics::Order;
use schemars::JsonSchema;
use serde::Serialize;

use super::answer::{RankMeasure, State};
use super::measures::Measuring;
use super::news::{DateNews, News};
use super::ranked::{DateContext, RankTally};
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
}

/// The measures of all features while dates are added.
pub(super) struct FeatureTallies(Vec<[RankTally; 3]>);

impl FeatureTallies {
    pub(super) fn of(news: &News, measuring: &Measuring<'_>) -> Self {
        let tallies = |_: &String| State::ALL.map(|state| RankTally::of(state, measuring.sectors));
        Self(news.features.iter().map(tallies).collect())
    }

    /// Adds the features of the cells of a date.
    pub(super) fn add(&mut self, news: &DateNews<'_>, date: &DateContext) {
        for (feature, [published, today, difference]) in self.0.iter_mut().enumerate() {
            let [first, latest] = news.values(feature);
            today.add(&Order::of(latest.iter().copied()), date);
            if first.iter().any(Option::is_some) {
                published.add(&Order::of(first.iter().copied()), date);
                let before = first.iter().zip(&latest).map(|(first, latest)| latest.and(*first));
                let after = first.iter().zip(&latest).map(|(first, latest)| first.and(*latest));
                difference.add_difference(&Order::of(before), &Order::of(after), date);
            }
        }
    }

    pub(super) fn finish(self, measuring: &Measuring<'_>, period: Period) -> Vec<[FeatureMeasure; 3]> {
        let measure =
            |tally: RankTally| FeatureMeasure { state: tally.state(), ranks: tally.finish(measuring, period) };
        self.0.into_iter().map(|tallies| tallies.map(measure)).collect()
    }
}
