//! The tables that `--by` shows.

use bellwether::audit::skill::{FeatureMeasure, Measure, PairSkill, RankMeasure, SeriesMeasure, Skill, State};
use bellwether::text::human::{group_digits, percent, round};

use super::super::aligned::{Aligned, RowLimit};
use super::{correlation, in_percent, interval, measures, none, p_value};

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
        match self {
            Self::Feature => features(found, limit),
            Self::Hits => hits(found, limit),
            Self::Fifths => fifths(found, limit),
            Self::Confidence => confidences(found, limit),
            Self::Rewriting => rewritten(found, limit),
            _ => self.groups(found, limit),
        }
    }

    /// The correlations of each group.
    fn groups(self, found: &Skill, limit: RowLimit) -> Aligned {
        let name = match self {
            Self::Lag => "by lag",
            Self::Year => "by year",
            Self::Sector => "by sector",
            Self::News => "by news",
            _ => "neutral",
        };
        let mut table = Aligned::new(3, [name, "", "", "dates", "windows", "names", "mean", "95 % interval", "p"]);
        let of_pairs = measures(found).map(|(name, of)| (name, of.state, &of.ranks, Some(of)));
        let measures = of_pairs.chain(of_features(found).map(|(name, of)| (name, of.state, &of.ranks, None)));
        let measures = measures.filter(|(_, state, ..)| *state != State::Difference);
        let rows = measures.flat_map(|(name, state, ranks, signals)| {
            let groups = self.of_measure(ranks, signals).into_iter().filter(|(_, of)| of.dates > 0);
            let row = move |(group, of): (String, &SeriesMeasure)| {
                let mut cells = vec![name.clone(), state.as_str().to_owned(), group];
                cells.extend([of.dates, of.windows].map(group_digits));
                cells.push(of.names.map_or_else(none, |names| format!("{names:.0}")));
                cells.extend(mean_and_test(of));
                cells
            };
            groups.map(row).collect::<Vec<_>>()
        });
        table.rest(rows.collect::<Vec<_>>().into_iter(), limit);
        table
    }

    /// The groups of a measure; only one of signals is grouped by news.
    fn of_measure<'a>(self, ranks: &'a RankMeasure, signals: Option<&'a Measure>) -> Vec<(String, &'a SeriesMeasure)> {
        match self {
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
        }
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

/// The measures of the features, with the name of each and its period.
fn of_features(found: &Skill) -> impl Iterator<Item = (String, &FeatureMeasure)> {
    found.features.iter().flat_map(|feature| {
        let name = format!("{} {}", feature.feature, feature.period);
        feature.measures.iter().map(move |measure| (name.clone(), measure))
    })
}

fn features(found: &Skill, limit: RowLimit) -> Aligned {
    let heads = ["feature", "", "dates", "mean", "95 % interval", "p", "Holm", "given signal", "p"];
    let mut table = Aligned::new(2, heads);
    let measured = of_features(found).filter(|(_, measure)| measure.ranks.dates > 0);
    let row = |(name, measure): (String, &FeatureMeasure)| {
        let mut cells = correlation(name, measure.state, &measure.ranks);
        // The windows are those of the pairs.
        cells.remove(3);
        let partial = measure.partial.as_ref().map(mean_and_test);
        cells.extend(partial.map_or_else(|| [none(), none()], |[mean, _, p]| [mean, p]));
        cells
    };
    table.rest(measured.map(row).collect::<Vec<_>>().into_iter(), limit);
    table
}

fn hits(found: &Skill, limit: RowLimit) -> Aligned {
    let heads = ["came true", "", "buys", "after", "p", "sells", "after", "p", "surest", "after", "flips"];
    let mut table = Aligned::new(2, heads);
    let row = |(pair, measure): (String, &Measure)| {
        let mut cells = vec![pair, measure.state.as_str().to_owned()];
        for (of, has_p) in [(measure.buys, true), (measure.sells, true), (measure.confident, false)] {
            cells.extend([of.hit_rate.map_or_else(none, percent), of.side.excess.map_or_else(none, in_percent)]);
            cells.extend(has_p.then(|| of.test.map_or_else(none, |test| p_value(test.p))));
        }
        cells.push(measure.flips.map_or_else(none, percent));
        cells
    };
    let rows = measures(found).filter(|(_, measure)| measure.state != State::Difference).map(row);
    table.rest(rows.collect::<Vec<_>>().into_iter(), limit);
    table
}

fn fifths(found: &Skill, limit: RowLimit) -> Aligned {
    let heads = ["fifths", "", "lowest", "2", "3", "4", "highest", "spread", "turnover", "cost"];
    let mut table = Aligned::new(2, heads);
    let row = |(pair, measure): (String, &Measure)| {
        let mut cells = vec![pair, measure.state.as_str().to_owned()];
        let in_percent = |share: f64| format!("{} %", round(100.0 * share, 2));
        cells.extend(measure.fifths.into_iter().chain([measure.spread]).map(|of| of.map_or_else(none, in_percent)));
        cells.push(measure.turnover.map_or_else(none, percent));
        cells.push(measure.break_even.map_or_else(none, |cost| format!("{} bp", round(10_000.0 * cost, 0))));
        cells
    };
    let rows = measures(found).filter(|(_, measure)| measure.state != State::Difference).map(row);
    table.rest(rows.collect::<Vec<_>>().into_iter(), limit);
    table
}

fn confidences(found: &Skill, limit: RowLimit) -> Aligned {
    let heads = ["confidence", "", "Brier score", "miscalibration", "discrimination", "uncertainty"];
    let mut table = Aligned::new(2, heads);
    let row = |(pair, measure): (String, &Measure)| {
        let found = measure.confidence.as_ref()?;
        let numbers = [found.brier, found.miscalibration, found.discrimination, found.uncertainty];
        let mut cells = vec![pair, measure.state.as_str().to_owned()];
        cells.extend(numbers.map(|number| round(number, 4)));
        Some(cells)
    };
    table.rest(measures(found).filter_map(row).collect::<Vec<_>>().into_iter(), limit);
    table
}

fn rewritten(found: &Skill, limit: RowLimit) -> Aligned {
    let since = if found.from.is_some() { "since then" } else { "rewritten" };
    let heads = [since, "matched", "altered", "removed", "added", "first", "altered", "removed", "added", "today"];
    let mut table = Aligned::new(1, heads);
    let row = |pair: &PairSkill| {
        let kinds = &pair.rewritten;
        let mut cells = vec![format!("{} {}", pair.period, pair.regime)];
        cells.extend([kinds.matched, kinds.altered, kinds.removed, kinds.added].map(group_digits));
        let means = [kinds.base, kinds.with_altered, kinds.without_removed, kinds.with_added, kinds.today];
        cells.extend(means.map(|mean| mean.map_or_else(none, |mean| round(mean, 4))));
        cells
    };
    table.rest(found.pairs.iter().map(row).collect::<Vec<_>>().into_iter(), limit);
    table
}
