//! Correlations by group.

use bellwether::audit::skill::{Measure, PairSkill, SeriesMeasure, Skill, State};
use bellwether::human::grouped;

use super::super::aligned::{Aligned, RowLimit};
use super::{none, p_value};

/// What correlations are grouped by.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub(super) enum Grouping {
    /// The horizon at the entry, the one after it, and so on.
    Lag,
    /// The year of the date.
    Year,
    /// The sector.
    Sector,
}

impl Grouping {
    /// The correlations of each group.
    pub(super) fn table(self, found: &Skill, limit: RowLimit) -> Aligned {
        let name = match self {
            Self::Lag => "by lag",
            Self::Year => "by year",
            Self::Sector => "by sector",
        };
        let mut table = Aligned::new(3, [name, "", "", "dates", "windows", "names", "mean", "95 % interval", "p"]);
        let rows = found.pairs.iter().flat_map(|pair| {
            let measures = pair.measures.iter().filter(|measure| measure.state != State::Difference);
            measures.flat_map(move |measure| self.rows(pair, measure))
        });
        table.rest(rows.collect::<Vec<_>>().into_iter(), limit);
        table
    }

    fn rows(self, pair: &PairSkill, measure: &Measure) -> Vec<Vec<String>> {
        let groups: Vec<(String, &SeriesMeasure)> = match self {
            Self::Lag => measure.by_lag.iter().map(|of| (format!("lag {}", of.lag), &of.measure)).collect(),
            Self::Year => measure.by_year.iter().map(|of| (of.year.to_string(), &of.measure)).collect(),
            Self::Sector => measure.by_sector.iter().map(|of| (of.sector.clone(), &of.measure)).collect(),
        };
        let row = |(group, of): (String, &SeriesMeasure)| {
            let test = of.test.as_ref();
            let interval = test.map(|test| format!("{:.3} to {:.3}", test.interval.lower, test.interval.upper));
            vec![
                format!("{} {}", pair.period, pair.regime),
                measure.state.as_str().to_owned(),
                group,
                grouped(of.dates),
                grouped(of.windows),
                of.names.map_or_else(none, |names| format!("{names:.0}")),
                of.correlation.map_or_else(none, |mean| format!("{mean:.4}")),
                interval.unwrap_or_else(none),
                test.map_or_else(none, |test| p_value(test.p)),
            ]
        };
        groups.into_iter().filter(|(_, of)| of.dates > 0).map(row).collect()
    }
}
