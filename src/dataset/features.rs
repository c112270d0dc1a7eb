//! Features: numbers computed from the news known on each date that has signals.

use std::sync::Arc;

use arrow::array::{ArrayRef, Float64Array, Int32Array, TimestampMicrosecondArray};

use super::Counts;
use super::calendar::Calendar;
use super::keys::NewsKey;
use super::news::{self, Cutoff, News, NewsItem, SentimentRecord};
use super::slab_columns::day;
use super::window::Window;
use crate::error::Result;
use crate::plan::{DatasetPlan, Days, Feature};

/// The features of some tickers and days.
#[derive(Debug)]
pub(super) struct Features {
    /// The key of each row.
    pub(super) keys: Vec<NewsKey>,
    /// A column per feature, in plan order.
    pub(super) columns: Vec<ArrayRef>,
}

/// Computes the features of every key, and counts the articles; keys and news are sorted.
pub(super) fn of(
    keys: Vec<NewsKey>,
    articles: impl Iterator<Item = Result<Vec<NewsItem>>>,
    news: &News,
    settings: Settings<'_>,
) -> Result<(Features, Counts)> {
    let Settings { plan, calendar } = settings;
    let cut = |key: &NewsKey| Cutoff::of(key, calendar.cutoff(key.day, plan.lag), plan.dates);
    let cuts: Vec<Cutoff> = keys.iter().map(cut).collect();
    let mut table = FeatureTable::of(&keys, &cuts, news, &plan.features);
    let mut counts = Counts::default();
    for articles in articles {
        let articles = articles?;
        counts += news::counts(&articles);
        table.add(&articles);
    }
    let is_field = |feature: &&Feature| matches!(feature, Feature::Historical(_));
    let column = |(place, feature): (usize, &Feature)| {
        table.column(feature, plan.features[..=place].iter().filter(is_field).count())
    };
    let columns = plan.features.iter().enumerate().map(column).collect();
    Ok((Features { keys, columns }, counts))
}

/// What determines which news a signal may use.
#[derive(Clone, Copy)]
pub(super) struct Settings<'a> {
    pub(super) plan: &'a DatasetPlan,
    pub(super) calendar: &'a Calendar,
}

/// For each key, the index of its ticker's first article, and of the first that is too recent.
fn known_by(keys: &[NewsKey], cuts: &[Cutoff], articles: &[NewsItem]) -> Vec<(usize, usize)> {
    let (mut first, mut end) = (0, 0);
    let mut bounds = Vec::with_capacity(keys.len());
    for (&NewsKey { ticker, .. }, cut) in keys.iter().zip(cuts) {
        while articles.get(first).is_some_and(|article| article.ticker < ticker) {
            first += 1;
        }
        end = end.max(first);
        let is_old = |article: &NewsItem| article.ticker == ticker && day(article.date) <= cut.day;
        while articles.get(end).is_some_and(is_old) {
            end += 1;
        }
        bounds.push((first, end));
    }
    bounds
}

/// The keys, and the features of each.
struct FeatureTable<'a> {
    keys: &'a [NewsKey],
    /// What each key may know.
    cuts: &'a [Cutoff],
    news: &'a News,
    /// The windows of each length.
    windows: Vec<(Days, Vec<Window>)>,
    /// The last article known to each key.
    last: Vec<Option<NewsItem>>,
}

impl<'a> FeatureTable<'a> {
    /// Keys without any articles.
    fn of(keys: &'a [NewsKey], cuts: &'a [Cutoff], news: &'a News, features: &[Feature]) -> Self {
        let mut table = Self { keys, cuts, news, windows: Vec::new(), last: vec![None; keys.len()] };
        for days in features.iter().filter_map(Feature::window) {
            if table.windows.iter().all(|(known, _)| *known != days) {
                table.windows.push((days, vec![Window::default(); keys.len()]));
            }
        }
        table
    }

    /// Adds some articles, sorted by ticker and from the first known to the last.
    fn add(&mut self, articles: &[NewsItem]) {
        let known = known_by(self.keys, self.cuts, articles);
        for (days, windows) in &mut self.windows {
            let mut start = 0;
            for ((&(first, end), &cut), window) in known.iter().zip(self.cuts).zip(windows) {
                // The articles of the days that end at the cutoff.
                start = start.max(first);
                while start < end && day(articles[start].date) <= cut.day.saturating_sub(days.count()) {
                    start += 1;
                }
                window.add(&articles[start.min(end)..end], cut);
            }
        }
        for ((&(first, end), &cut), last) in known.iter().zip(self.cuts).zip(&mut self.last) {
            let newest = articles[first..end].iter().rev().find(|article| article.is_known(cut));
            if let Some(article) = newest
                && last.is_none_or(|last| last.order() <= article.order())
            {
                *last = Some(*article);
            }
        }
    }

    /// The column of a feature. For a field of historical sentiment, `field` is its number, counted from one.
    fn column(&self, feature: &Feature, field: usize) -> ArrayRef {
        let reals = |values: Vec<Option<f64>>| -> ArrayRef { Arc::new(Float64Array::from(values)) };
        let whole = |values: Vec<Option<i32>>| -> ArrayRef { Arc::new(Int32Array::from(values)) };
        match feature {
            Feature::Count(days) => {
                let counts = self.window(*days).iter().map(|window| window.articles);
                Arc::new(Int32Array::from_iter_values(counts))
            }
            Feature::Mean(days) => reals(self.window(*days).iter().map(Window::mean).collect()),
            Feature::Min(days) => reals(self.window(*days).iter().map(Window::min).collect()),
            Feature::Max(days) => reals(self.window(*days).iter().map(Window::max).collect()),
            Feature::Std(days) => reals(self.window(*days).iter().map(Window::deviation).collect()),
            Feature::LastScore => reals(self.last.iter().map(|last| last.and_then(|one| one.score)).collect()),
            Feature::LastDate => {
                let dates = self.last.iter().map(|last| last.map(|one| one.date));
                Arc::new(dates.collect::<TimestampMicrosecondArray>())
            }
            Feature::DaysSince => {
                let since = self.last.iter().zip(self.keys).map(|(last, key)| last.map(|one| key.day - day(one.date)));
                whole(since.collect())
            }
            Feature::Summary(reference) => {
                let place = *reference as usize;
                reals(self.statements(&self.news.summaries).map(|last| last?.values[place]).collect())
            }
            Feature::SummaryDaysSince => {
                let last = self.statements(&self.news.summaries);
                whole(last.zip(self.keys).map(|(last, key)| last.map(|one| key.day - one.day)).collect())
            }
            Feature::Historical(_) => {
                reals(self.statements(&self.news.records).map(|last| last?.values[field - 1]).collect())
            }
        }
    }

    fn window(&self, days: Days) -> &[Window] {
        let found = self.windows.iter().find(|(known, _)| *known == days);
        &found.expect("the windows of every feature were computed").1
    }

    /// For each key, the latest known record whose day is not after the cutoff.
    fn statements(&self, statements: &'a [SentimentRecord]) -> impl Iterator<Item = Option<&'a SentimentRecord>> {
        let (mut first, mut end) = (0, 0);
        self.keys.iter().zip(self.cuts).map(move |(&NewsKey { ticker, .. }, &cut)| {
            while statements.get(first).is_some_and(|one| one.ticker < ticker) {
                first += 1;
            }
            end = end.max(first);
            while statements.get(end).is_some_and(|one| one.ticker == ticker && one.day <= cut.day) {
                end += 1;
            }
            statements[first..end].iter().rev().find(|one| one.is_known(cut))
        })
    }
}
