//! What was known of the news on each date that has signals.

use polars::prelude::{Column as Series, IntoColumn, NamedFrom, Series as PolarsSeries};

use super::codes::{Article, Articles, Day, day};
use crate::plan::{DatasetPlan, Days, Feature};

/// The features of some tickers and days.
#[derive(Debug)]
pub(super) struct Features {
    /// What names each row.
    pub(super) keys: Vec<(i32, Day)>,
    /// A column a feature, in the order of the plan.
    pub(super) columns: Vec<Series>,
}

/// Computes the features of every key; keys and articles are in order.
pub(super) fn of(keys: &[(i32, Day)], articles: &Articles, plan: &DatasetPlan) -> Features {
    let known = known_by(keys, &articles.0, plan.lag);
    let columns = plan.features.iter().map(|&feature| column(feature, keys, &articles.0, &known, plan.lag)).collect();
    Features { keys: keys.to_vec(), columns }
}

/// For each key, where its ticker's articles begin and where those that were not yet known begin.
fn known_by(keys: &[(i32, Day)], articles: &[Article], lag: Days) -> Vec<(usize, usize)> {
    let (mut first, mut end) = (0, 0);
    let mut bounds = Vec::with_capacity(keys.len());
    for &(ticker, date) in keys {
        while articles.get(first).is_some_and(|article| article.ticker < ticker) {
            first += 1;
        }
        end = end.max(first);
        let is_known = |article: &Article| article.ticker == ticker && day(article.date) <= date - lag.count();
        while articles.get(end).is_some_and(is_known) {
            end += 1;
        }
        bounds.push((first, end));
    }
    bounds
}

fn column(feature: Feature, keys: &[(i32, Day)], articles: &[Article], known: &[(usize, usize)], lag: Days) -> Series {
    let name = feature.to_string().into();
    let window = |days: Days| windows(keys, articles, known, lag, days);
    let last = || known.iter().map(|&(first, end)| articles[first..end].last());
    match feature {
        Feature::Count(days) => PolarsSeries::new(name, window(days).map(|seen| seen.len() as i32).collect::<Vec<_>>()),
        Feature::Mean(days) => PolarsSeries::new(name, window(days).map(mean).collect::<Vec<_>>()),
        Feature::Min(days) => {
            PolarsSeries::new(name, window(days).map(|seen| scores(seen).reduce(f64::min)).collect::<Vec<_>>())
        }
        Feature::Max(days) => {
            PolarsSeries::new(name, window(days).map(|seen| scores(seen).reduce(f64::max)).collect::<Vec<_>>())
        }
        Feature::LastScore => {
            PolarsSeries::new(name, last().map(|article| article.and_then(|one| one.score)).collect::<Vec<_>>())
        }
        Feature::LastDate => {
            PolarsSeries::new(name, last().map(|article| article.map(|one| one.date)).collect::<Vec<_>>())
        }
    }
    .into_column()
}

/// For each key, the articles of the `days` days that end at its date minus the lag.
fn windows<'a>(
    keys: &'a [(i32, Day)],
    articles: &'a [Article],
    known: &'a [(usize, usize)],
    lag: Days,
    days: Days,
) -> impl Iterator<Item = &'a [Article]> {
    let mut start = 0;
    keys.iter().zip(known).map(move |(&(_, date), &(first, end))| {
        start = start.max(first);
        while start < end && day(articles[start].date) <= date - lag.count() - days.count() {
            start += 1;
        }
        &articles[start.min(end)..end]
    })
}

fn scores(articles: &[Article]) -> impl Iterator<Item = f64> {
    articles.iter().filter_map(|article| article.score)
}

fn mean(articles: &[Article]) -> Option<f64> {
    let (sum, count) = scores(articles).fold((0.0, 0_u32), |(sum, count), score| (sum + score, count + 1));
    (count > 0).then(|| sum / f64::from(count))
}
