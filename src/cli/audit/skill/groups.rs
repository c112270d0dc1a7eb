//! The tables that `--by` shows.

use bellwether::audit::skill::{
    ConfidenceMeasure, FeatureMeasure, Measure, PairSkill, RankMeasure, SeriesMeasure, Skill, State,
};
use bellwether::text::human::{group_digits, percent, round};

use super::{correlation, cost, in_percent, interval, measures, none, p_value};
use crate::cli::talk::{Aligned, RowLimit};

/// What further tables show.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub(super) enum Grouping {
    /// The horizon at the entry, the one after it, and so on.
    Lag,
    /// The year of the date.
    Year,
    /// The sector.
    Sector,
    /// The number of articles in each window of news.
    News,
    /// What is left within sectors, and given the beta of each name.
    Neutral,
    /// The features of the news, by themselves and given the signal.
    Feature,
    /// How many came true, and what followed.
    Hits,
    /// What each fifth by score returned, and how much of the highest one is replaced.
    Fifths,
    /// Whether confidences are probabilities.
    Confidence,
    /// What each kind of rewriting makes of the correlation.
    Rewriting,
}

impl Grouping {
    pub(super) fn table(self, found: &Skill, limit: RowLimit) -> Aligned {
        let mut table = self.heads(found);
        let mut rows = Vec::new();
        if self == Self::Rewriting {
            rows.extend(found.pairs.iter().map(rewritten));
        }
        for (pair, measure) in measures(found) {
            let name = [pair, measure.state.as_str().to_owned()];
            match self {
                Self::Confidence => rows.extend(measure.confidence.as_ref().map(|found| confidence(name, found))),
                Self::Feature | Self::Rewriting => {}
                _ if measure.state == State::Difference => {}
                Self::Hits => rows.push(hits(name, measure)),
                Self::Fifths => rows.push(fifths(name, measure)),
                _ => rows.extend(self.groups(&name, &measure.ranks, Some(measure))),
            }
        }
        for feature in &found.features {
            for measure in &feature.measures {
                let name = [format!("{} {}", feature.feature, feature.period), measure.state.as_str().to_owned()];
                match self {
                    Self::Feature if measure.ranks.dates > 0 => rows.push(of_feature(name, measure)),
                    Self::Lag | Self::Year | Self::Sector | Self::Neutral if measure.state != State::Difference => {
                        rows.extend(self.groups(&name, &measure.ranks, None));
                    }
                    _ => {}
                }
            }
        }
        table.rest(rows, limit);
        table
    }

    fn heads(self, found: &Skill) -> Aligned {
        let name = match self {
            Self::Feature => {
                let heads = ["feature", "", "dates", "mean", "95 % interval", "p", "Holm", "given signal", "p"];
                return Aligned::new(2, heads);
            }
            Self::Hits => {
                let heads = ["came true", "", "buys", "after", "p", "sells", "after", "p", "surest", "after", "flips"];
                return Aligned::new(2, heads);
            }
            Self::Fifths => {
                let heads = ["fifths", "", "lowest", "2", "3", "4", "highest", "spread", "turnover", "cost"];
                return Aligned::new(2, heads);
            }
            Self::Confidence => {
                let heads = ["confidence", "", "Brier score", "miscalibration", "discrimination", "uncertainty"];
                return Aligned::new(2, heads);
            }
            Self::Rewriting => {
                let first = if found.from.is_some() { "since then" } else { "rewritten" };
                let kinds = ["matched", "altered", "removed", "added", "first", "altered", "removed", "added", "today"];
                return Aligned::new(1, [first].into_iter().chain(kinds));
            }
            Self::Lag => "by lag",
            Self::Year => "by year",
            Self::Sector => "by sector",
            Self::News => "by news",
            Self::Neutral => "neutral",
        };
        Aligned::new(3, [name, "", "", "dates", "windows", "names", "mean", "95 % interval", "p"])
    }

    /// A row for each group of a measure; only one of signals is grouped by news.
    fn groups(self, name: &[String; 2], ranks: &RankMeasure, signals: Option<&Measure>) -> Vec<Vec<String>> {
        let groups: Vec<(String, &SeriesMeasure)> = match self {
            Self::Lag => ranks.by_lag.iter().map(|of| (format!("lag {}", of.lag), &of.measure)).collect(),
            Self::Year => ranks.by_year.iter().map(|of| (of.year.to_string(), &of.measure)).collect(),
            Self::Sector => ranks.by_sector.iter().map(|of| (of.sector.clone(), &of.measure)).collect(),
            Self::News => {
                let by_news = signals.map_or(&[][..], |signals| &signals.by_news);
                by_news.iter().map(|of| (format!("{} in {}", of.articles, of.window), &of.measure)).collect()
            }
            _ => {
                let neutral = [("in sectors", &ranks.within_sectors), ("given beta", &ranks.given_beta)];
                neutral.into_iter().filter_map(|(name, of)| Some((name.to_owned(), of.as_ref()?))).collect()
            }
        };
        let mut rows = Vec::new();
        for (group, of) in groups.into_iter().filter(|(_, of)| of.dates > 0) {
            let mut cells = Vec::from(name.clone());
            cells.extend([group, group_digits(of.dates), group_digits(of.windows)]);
            cells.push(of.names.map_or_else(none, |names| format!("{names:.0}")));
            cells.extend(mean_and_test(of));
            rows.push(cells);
        }
        rows
    }
}

fn mean_and_test(of: &SeriesMeasure) -> [String; 3] {
    let test = of.test.as_ref();
    [
        of.correlation.map_or_else(none, |mean| round(mean, 4)),
        test.map_or_else(none, |test| interval(test.interval.lower, test.interval.upper)),
        test.map_or_else(none, |test| p_value(test.p)),
    ]
}

fn of_feature([name, _]: [String; 2], measure: &FeatureMeasure) -> Vec<String> {
    let mut cells = correlation(name, measure.state, &measure.ranks);
    // The windows are those of the pairs.
    cells.remove(3);
    let partial = measure.partial.as_ref().map(mean_and_test);
    cells.extend(partial.map_or_else(|| [none(), none()], |[mean, _, p]| [mean, p]));
    cells
}

fn hits(name: [String; 2], measure: &Measure) -> Vec<String> {
    let mut cells = Vec::from(name);
    for (of, has_p) in [(measure.buys, true), (measure.sells, true), (measure.confident, false)] {
        cells.extend([of.hit_rate.map_or_else(none, percent), of.side.excess.map_or_else(none, in_percent)]);
        cells.extend(has_p.then(|| of.test.map_or_else(none, |test| p_value(test.p))));
    }
    cells.push(measure.flips.map_or_else(none, percent));
    cells
}

fn fifths(name: [String; 2], measure: &Measure) -> Vec<String> {
    let mut cells = Vec::from(name);
    for share in measure.fifths.into_iter().chain([measure.spread]) {
        cells.push(share.map_or_else(none, |share| format!("{} %", round(100.0 * share, 2))));
    }
    cells.push(measure.turnover.map_or_else(none, percent));
    cells.push(cost(measure));
    cells
}

fn confidence(name: [String; 2], found: &ConfidenceMeasure) -> Vec<String> {
    let mut cells = Vec::from(name);
    let numbers = [found.brier, found.miscalibration, found.discrimination, found.uncertainty];
    cells.extend(numbers.map(|number| round(number, 4)));
    cells
}

fn rewritten(pair: &PairSkill) -> Vec<String> {
    let kinds = &pair.rewritten;
    let mut cells = vec![format!("{} {}", pair.period, pair.regime)];
    cells.extend([kinds.matched, kinds.altered, kinds.removed, kinds.added].map(group_digits));
    let means = [kinds.base, kinds.with_altered, kinds.without_removed, kinds.with_added, kinds.today];
    cells.extend(means.map(|mean| mean.map_or_else(none, |mean| round(mean, 4))));
    cells
}
