//! Correlations by group.

use bellwether::audit::skill::{Measure, RankMeasure, SeriesMeasure, Skill, State};
use bellwether::text::human::{group_digits, round};

use super::super::aligned::{Aligned, RowLimit};
use super::{interval, none, p_value};

/// What correlations are grouped by.
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
}

impl Grouping {
    /// The correlations of each group.
    pub(super) fn table(self, found: &Skill, limit: RowLimit) -> Aligned {
        let name = match self {
            Self::Lag => "by lag",
            Self::Year => "by year",
            Self::Sector => "by sector",
            Self::News => "by news",
        };
        let mut table = Aligned::new(3, [name, "", "", "dates", "windows", "names", "mean", "95 % interval", "p"]);
        let of_pairs = found.pairs.iter().flat_map(|pair| {
            let name = format!("{} {}", pair.period, pair.regime);
            pair.measures.iter().map(move |of| (name.clone(), of.state, &of.ranks, Some(of)))
        });
        let of_features = found.features.iter().flat_map(|feature| {
            let name = format!("{} {}", feature.feature, feature.period);
            feature.measures.iter().map(move |of| (name.clone(), of.state, &of.ranks, None))
        });
        let measures = of_pairs.chain(of_features).filter(|(_, state, ..)| *state != State::Difference);
        let rows =
            measures.flat_map(|(name, state, ranks, signals)| self.rows(&[&name, state.as_str()], ranks, signals));
        table.rest(rows.collect::<Vec<_>>().into_iter(), limit);
        table
    }

    /// The rows of a measure; only one of signals is grouped by news.
    fn rows(self, names: &[&str; 2], ranks: &RankMeasure, signals: Option<&Measure>) -> Vec<Vec<String>> {
        let groups: Vec<(String, &SeriesMeasure)> = match self {
            Self::Lag => ranks.by_lag.iter().map(|of| (format!("lag {}", of.lag), &of.measure)).collect(),
            Self::Year => ranks.by_year.iter().map(|of| (of.year.to_string(), &of.measure)).collect(),
            Self::Sector => ranks.by_sector.iter().map(|of| (of.sector.clone(), &of.measure)).collect(),
            Self::News => {
                let by_news = signals.map_or(&[][..], |signals| &signals.by_news);
                by_news.iter().map(|of| (format!("{} in {}", of.articles, of.window), &of.measure)).collect()
            }
        };
        let row = |(group, of): (String, &SeriesMeasure)| {
            let test = of.test.as_ref();
            vec![
                names[0].to_owned(),
                names[1].to_owned(),
                group,
                group_digits(of.dates),
                group_digits(of.windows),
                of.names.map_or_else(none, |names| format!("{names:.0}")),
                of.correlation.map_or_else(none, |mean| round(mean, 4)),
                test.map_or_else(none, |test| interval(test.interval.lower, test.interval.upper)),
                test.map_or_else(none, |test| p_value(test.p)),
            ]
        };
        groups.into_iter().filter(|(_, of)| of.dates > 0).map(row).collect()
    }
}
