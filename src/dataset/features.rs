//! What was known of the news on each date that has signals.

use std::sync::Arc;

use arrow::array::{ArrayRef, Float64Array, Int32Array, TimestampMicrosecondArray};

use super::calendar::Calendar;
use super::codes::{Day, day};
use super::news::{Article, News, Statement};
use crate::plan::{DatasetPlan, Days, Feature};

/// The features of some tickers and days.
#[derive(Debug)]
pub(super) struct Features {
    /// What names each row.
    pub(super) keys: Vec<(i32, Day)>,
    /// A column a feature, in the order of the plan.
    pub(super) columns: Vec<ArrayRef>,
}

/// Computes the features of every key; keys and news are in order.
pub(super) fn of(keys: Vec<(i32, Day)>, news: &News, plan: &DatasetPlan, calendar: &Calendar) -> Features {
    let cutoffs: Vec<Day> = keys.iter().map(|&(_, date)| calendar.cutoff(date, plan.lag)).collect();
    let table = Table::of(&keys, &cutoffs, news, &plan.features);
    let is_field = |feature: &&Feature| matches!(feature, Feature::Historical(_));
    let column = |(place, feature): (usize, &Feature)| {
        table.column(feature, plan.features[..=place].iter().filter(is_field).count())
    };
    let columns = plan.features.iter().enumerate().map(column).collect();
    Features { keys, columns }
}

/// For each key, where its ticker's articles begin and where those that are too young begin.
fn known_by(keys: &[(i32, Day)], cutoffs: &[Day], articles: &[Article]) -> Vec<(usize, usize)> {
    let (mut first, mut end) = (0, 0);
    let mut bounds = Vec::with_capacity(keys.len());
    for (&(ticker, _), &cutoff) in keys.iter().zip(cutoffs) {
        while articles.get(first).is_some_and(|article| article.ticker < ticker) {
            first += 1;
        }
        end = end.max(first);
        let is_old = |article: &Article| article.ticker == ticker && day(article.date) <= cutoff;
        while articles.get(end).is_some_and(is_old) {
            end += 1;
        }
        bounds.push((first, end));
    }
    bounds
}

/// Keys and what is known of each.
struct Table<'a> {
    keys: &'a [(i32, Day)],
    /// The last day whose news serves each key.
    cutoffs: &'a [Day],
    known: Vec<(usize, usize)>,
    news: &'a News,
    /// What the windows of each length hold.
    windows: Vec<(Days, Vec<Window>)>,
}

impl<'a> Table<'a> {
    fn of(keys: &'a [(i32, Day)], cutoffs: &'a [Day], news: &'a News, features: &[Feature]) -> Self {
        let known = known_by(keys, cutoffs, &news.articles);
        let mut table = Self { keys, cutoffs, known, news, windows: Vec::new() };
        for days in features.iter().filter_map(Feature::window) {
            if table.windows.iter().all(|(known, _)| *known != days) {
                let windows = table.articles_within(days).map(|(articles, cutoff)| Window::of(articles, cutoff));
                let windows = windows.collect();
                table.windows.push((days, windows));
            }
        }
        table
    }

    /// The column of a feature; a field of historical sentiment is the `field`th of them, counted from one.
    fn column(&self, feature: &Feature, field: usize) -> ArrayRef {
        let reals = |values: Vec<Option<f64>>| -> ArrayRef { Arc::new(Float64Array::from(values)) };
        let whole = |values: Vec<Option<i32>>| -> ArrayRef { Arc::new(Int32Array::from(values)) };
        match feature {
            Feature::Count(days) => {
                let counts = self.window(*days).iter().map(|window| window.articles);
                Arc::new(Int32Array::from_iter_values(counts))
            }
            Feature::Mean(days) => reals(self.window(*days).iter().map(Window::mean).collect()),
            Feature::Min(days) => reals(self.window(*days).iter().map(|window| window.scored(window.min)).collect()),
            Feature::Max(days) => reals(self.window(*days).iter().map(|window| window.scored(window.max)).collect()),
            Feature::Std(days) => reals(self.window(*days).iter().map(|window| window.deviation).collect()),
            Feature::LastScore => reals(self.last().map(|article| article.and_then(|one| one.score)).collect()),
            Feature::LastDate => {
                let dates = self.last().map(|article| article.map(|one| one.date));
                Arc::new(dates.collect::<TimestampMicrosecondArray>())
            }
            Feature::DaysSince => {
                let since = self.last().zip(self.keys).map(|(last, (_, date))| last.map(|one| date - day(one.date)));
                whole(since.collect())
            }
            Feature::Summary(reference) => {
                let place = *reference as usize;
                reals(self.statements(&self.news.summaries).map(|last| last?.values[place]).collect())
            }
            Feature::SummaryDaysSince => {
                let last = self.statements(&self.news.summaries);
                whole(last.zip(self.keys).map(|(last, (_, date))| last.map(|one| date - one.day)).collect())
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

    /// For each key, the last article that was known.
    fn last(&self) -> impl Iterator<Item = Option<&'a Article>> {
        let articles = &self.news.articles;
        self.known.iter().zip(self.cutoffs).map(move |(&(first, end), &cutoff)| {
            articles[first..end].iter().rev().find(|article| article.known.contains(cutoff))
        })
    }

    /// For each key, the articles of the `days` days that end at its cutoff, and the cutoff.
    fn articles_within(&self, days: Days) -> impl Iterator<Item = (&'a [Article], Day)> {
        let articles = &self.news.articles;
        let mut start = 0;
        self.known.iter().zip(self.cutoffs).map(move |(&(first, end), &cutoff)| {
            start = start.max(first);
            while start < end && day(articles[start].date) <= cutoff.saturating_sub(days.count()) {
                start += 1;
            }
            (&articles[start.min(end)..end], cutoff)
        })
    }

    /// For each key, the last of some statements that was known and is not about a day after the cutoff.
    fn statements(&self, statements: &'a [Statement]) -> impl Iterator<Item = Option<&'a Statement>> {
        let (mut first, mut end) = (0, 0);
        self.keys.iter().zip(self.cutoffs).map(move |(&(ticker, _), &cutoff)| {
            while statements.get(first).is_some_and(|one| one.ticker < ticker) {
                first += 1;
            }
            end = end.max(first);
            while statements.get(end).is_some_and(|one| one.ticker == ticker && one.day <= cutoff) {
                end += 1;
            }
            statements[first..end].iter().rev().find(|one| one.known.contains(cutoff))
        })
    }
}

/// What the articles of a window say together. Numbers come from these alone, added in the order of their dates.
struct Window {
    articles: i32,
    /// How many of them have a score.
    scores: u32,
    sum: f64,
    min: f64,
    max: f64,
    /// The sample standard deviation; of fewer than two scores there is none.
    deviation: Option<f64>,
}

impl Window {
    /// The articles that were known at the end of a day.
    fn of(articles: &[Article], cutoff: Day) -> Self {
        let known = || articles.iter().filter(|article| article.known.contains(cutoff));
        let scores = || known().filter_map(|article| article.score);
        let (min, max) = (f64::INFINITY, f64::NEG_INFINITY);
        let mut window = Self { articles: known().count() as i32, scores: 0, sum: 0.0, min, max, deviation: None };
        for score in scores() {
            window.scores += 1;
            window.sum += score;
            window.min = window.min.min(score);
            window.max = window.max.max(score);
        }
        if let Some(mean) = window.mean().filter(|_| window.scores > 1) {
            let squares: f64 = scores().map(|score| (score - mean).powi(2)).sum();
            window.deviation = Some((squares / f64::from(window.scores - 1)).sqrt());
        }
        window
    }

    fn mean(&self) -> Option<f64> {
        self.scored(self.sum / f64::from(self.scores))
    }

    /// A value, when there was a score.
    fn scored(&self, value: f64) -> Option<f64> {
        (self.scores > 0).then_some(value)
    }
}
