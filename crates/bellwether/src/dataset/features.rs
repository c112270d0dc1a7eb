//! Features: numbers computed from the news known on each date that has signals.

use std::collections::HashSet;
use std::sync::Arc;

use arrow::array::{ArrayRef, Float64Array, Int32Array, TimestampMicrosecondArray};

use super::keys::NewsKey;
use super::naive::{Day, before_lag, day};
use super::news::{self, Cutoff, Lists, NewsItem, SentimentRecord, TickerNews};
use super::statistics::Windows;
use crate::error::Result;
use crate::plan::{DatasetPlan, Days, Feature, Statistic};
use crate::tables::ArticleCounts;

/// Computes the features of every key, a column per feature in plan order, and counts the articles; keys and news are sorted.
pub(super) fn compute(
    keys: &[NewsKey],
    articles: impl Iterator<Item = Result<Vec<NewsItem>>>,
    news: &TickerNews,
    lists: &Lists<'_>,
) -> Result<(Vec<ArrayRef>, ArticleCounts)> {
    let plan = lists.plan;
    if plan.features.is_empty() {
        return Ok(Default::default());
    }
    let cutoffs = keys.iter().map(|key| before_lag(key.day, plan)).collect();
    let keys_with_cutoffs = KeyCutoffs { list: keys, cutoffs, plan };
    let mut table = FeatureTable::new(keys_with_cutoffs, news, lists, &plan.features);
    let mut counts = ArticleCounts::default();
    for articles in articles {
        let articles = articles?;
        counts += news::counts(&articles);
        table.add(&articles);
    }
    table.trust_lists_that_began_empty();
    let is_field = |feature: &&Feature| matches!(feature, Feature::Historical(_));
    let column = |(index, feature): (usize, &Feature)| {
        table.column(feature, plan.features[..=index].iter().filter(is_field).count())
    };
    Ok((plan.features.iter().enumerate().map(column).collect(), counts))
}

/// The keys, and what each may know.
struct KeyCutoffs<'a> {
    list: &'a [NewsKey],
    /// The last day whose news each key may use.
    cutoffs: Vec<Day>,
    plan: &'a DatasetPlan,
}

impl KeyCutoffs<'_> {
    fn iter(&self) -> impl Iterator<Item = (&NewsKey, Cutoff)> {
        self.list.iter().zip(&self.cutoffs).map(|(key, day)| (key, Cutoff::new(key, *day, self.plan)))
    }

    /// For each key, the index of its ticker's first article, and of the first that is too recent.
    fn article_bounds(&self, articles: &[NewsItem]) -> Vec<(u32, u32)> {
        let (mut first, mut end) = (0, 0);
        let mut bounds = Vec::with_capacity(self.list.len());
        for (&NewsKey { ticker, .. }, cutoff) in self.list.iter().zip(&self.cutoffs) {
            while articles.get(first).is_some_and(|article| article.ticker < ticker) {
                first += 1;
            }
            end = end.max(first);
            // A cutoff in trading days may be earlier than that of the day before.
            while end > first && day(articles[end - 1].date) > *cutoff {
                end -= 1;
            }
            let is_old = |article: &NewsItem| article.ticker == ticker && day(article.date) <= *cutoff;
            while articles.get(end).is_some_and(is_old) {
                end += 1;
            }
            bounds.push((first as u32, end as u32));
        }
        bounds
    }
}

/// The keys, and the features of each. A slab has tens of thousands of keys, so each takes few bytes.
struct FeatureTable<'a> {
    keys: KeyCutoffs<'a>,
    news: &'a TickerNews,
    /// The windows of each length.
    windows: Vec<Windows>,
    /// The day of the oldest article that was ever listed for each key, after which everything is known;
    /// [`Day::MIN`] if all of the past is, and none if nothing is.
    known_after: Vec<Option<Day>>,
    /// Whether lists may be cut off.
    are_cut_off: bool,
    /// The tickers whose list may always have been cut off.
    cut_off: HashSet<i32>,
    /// The last article known to each key.
    last: Vec<Option<LastArticle>>,
}

/// What features use of the last article known to a key.
#[derive(Clone, Copy)]
struct LastArticle {
    /// See [`NewsItem::order`]; it begins with the date.
    order: (i64, i64, i32),
    score: Option<f64>,
}

impl<'a> FeatureTable<'a> {
    /// Keys without any articles.
    fn new(keys: KeyCutoffs<'a>, news: &'a TickerNews, lists: &Lists<'_>, features: &[Feature]) -> Self {
        let count = keys.list.len();
        let known_after = keys.iter().map(|(key, cut)| lists.tell(key.ticker, cut).then_some(Day::MIN)).collect();
        let are_cut_off = lists.are_cut_off();
        let mut table = Self {
            keys,
            news,
            windows: Vec::new(),
            known_after,
            are_cut_off,
            cut_off: HashSet::new(),
            last: vec![None; count],
        };
        for days in features.iter().filter_map(Feature::window) {
            if table.windows.iter().all(|known| known.days != days) {
                table.windows.push(Windows::new(days, features, count));
            }
        }
        table
    }

    /// Adds some articles, sorted by ticker and from the first known to the last.
    fn add(&mut self, articles: &[NewsItem]) {
        let known = self.keys.article_bounds(articles);
        let known = || known.iter().map(|&(first, end)| (first as usize, end as usize));
        let reached = articles.last().map(|last| (last.ticker, day(last.date)));
        // Pieces are cut between dates as they were written, from which naive dates differ by less than two days.
        let is_passed = |ticker: i32, cutoff: Day| reached > Some((ticker, cutoff.saturating_add(2)));
        for windows in &mut self.windows {
            let (days, mut start) = (windows.days.count(), 0);
            for (index, ((first, end), (key, cut))) in known().zip(self.keys.iter()).enumerate() {
                // The articles of the days that end at the cutoff.
                start = start.max(first);
                while start > first && day(articles[start - 1].date) > cut.day.saturating_sub(days) {
                    start -= 1;
                }
                while start < end && day(articles[start].date) <= cut.day.saturating_sub(days) {
                    start += 1;
                }
                windows.add(index, &articles[start.min(end)..end], cut, is_passed(key.ticker, cut.day));
            }
        }
        if self.are_cut_off {
            for of_ticker in articles.chunk_by(|one, next| one.ticker == next.ticker) {
                if of_ticker.iter().any(|article| article.is_of_first) {
                    self.cut_off.insert(of_ticker[0].ticker);
                }
            }
            for (((first, _), (key, cut)), after) in known().zip(self.keys.iter()).zip(&mut self.known_after) {
                let Some(after) = after else { continue };
                let mut of_ticker = articles[first..].iter().take_while(|article| article.ticker == key.ticker);
                if let Some(oldest) = of_ticker.find(|article| article.is_listed(cut)) {
                    let oldest = day(oldest.date);
                    *after = if *after == Day::MIN { oldest } else { oldest.min(*after) };
                }
            }
        }
        for (((first, end), (_, cut)), last) in known().zip(self.keys.iter()).zip(&mut self.last) {
            let newest = articles[first..end].iter().rev().find(|article| article.is_known(cut));
            if let Some(article) = newest
                && last.is_none_or(|last| last.order <= article.order())
            {
                *last = Some(LastArticle { order: article.order(), score: article.score.map(|score| score.value) });
            }
        }
    }

    /// Lets the past be known of lists that never were cut off, once all articles were added.
    fn trust_lists_that_began_empty(&mut self) {
        let mut index = 0;
        for of_ticker in self.keys.list.chunk_by(|one, next| one.ticker == next.ticker) {
            let known = &mut self.known_after[index..index + of_ticker.len()];
            index += of_ticker.len();
            if !self.cut_off.contains(&of_ticker[0].ticker) {
                known.iter_mut().flatten().for_each(|after| *after = Day::MIN);
            }
        }
    }

    /// The column of a feature. For a field of historical sentiment, `field` is its number, counted from one.
    fn column(&self, feature: &Feature, field: usize) -> ArrayRef {
        match feature {
            Feature::Window(Statistic::Count, days) => {
                let windows = self.windows_of(*days);
                whole(self.told(windows).map(|key| Some(windows.articles(key?))))
            }
            Feature::Window(statistic, days) => {
                let windows = self.windows_of(*days);
                reals(self.told(windows).map(|key| windows.statistic(*statistic, key?)))
            }
            Feature::Decay(decay) => {
                let windows = self.windows_of(decay.window);
                reals(self.told(windows).map(|key| windows.decaying_mean(*decay, key?)))
            }
            Feature::LastScore => reals(self.last.iter().map(|last| last.and_then(|one| one.score))),
            Feature::LastDate => {
                let dates = self.last.iter().map(|last| last.map(|one| one.order.0));
                Arc::new(dates.collect::<TimestampMicrosecondArray>())
            }
            Feature::DaysSince => whole(
                self.last.iter().zip(self.keys.list).map(|(last, key)| last.map(|one| key.day - day(one.order.0))),
            ),
            Feature::Summary(reference) => {
                let index = *reference as usize;
                reals(self.last_known(&self.news.summaries).map(|last| last?.values[index]))
            }
            Feature::SummaryDaysSince => {
                let last = self.last_known(&self.news.summaries);
                whole(last.zip(self.keys.list).map(|(last, key)| last.map(|one| key.day - one.day)))
            }
            Feature::Historical(_) => reals(self.last_known(&self.news.records).map(|last| last?.values[field - 1])),
        }
    }

    fn windows_of(&self, days: Days) -> &Windows {
        let found = self.windows.iter().find(|known| known.days == days);
        found.expect("the windows of every feature were computed")
    }

    /// Each key of a window; none if the lists do not tell what was in it, or if it ends where it begins.
    fn told(&self, windows: &Windows) -> impl Iterator<Item = Option<usize>> {
        let days = windows.days.count();
        self.keys.iter().zip(&self.known_after).enumerate().map(move |(key, ((_, cut), after))| {
            let day_before = cut.day.saturating_sub(days);
            let can_hold = windows.articles(key) > 0 || cut.is_made_after(day_before);
            (can_hold && day_before >= (*after)?).then_some(key)
        })
    }

    /// For each key, the latest known record whose day is not after the cutoff.
    fn last_known(&self, records: &'a [SentimentRecord]) -> impl Iterator<Item = Option<&'a SentimentRecord>> {
        let (mut first, mut end) = (0, 0);
        self.keys.iter().map(move |(&NewsKey { ticker, .. }, cut)| {
            while records.get(first).is_some_and(|one| one.ticker < ticker) {
                first += 1;
            }
            end = end.max(first);
            while end > first && records[end - 1].day > cut.day {
                end -= 1;
            }
            while records.get(end).is_some_and(|one| one.ticker == ticker && one.day <= cut.day) {
                end += 1;
            }
            records[first..end].iter().rev().find(|one| one.is_known(cut))
        })
    }
}

fn reals(values: impl Iterator<Item = Option<f64>>) -> ArrayRef {
    Arc::new(values.collect::<Float64Array>())
}

fn whole(values: impl Iterator<Item = Option<i32>>) -> ArrayRef {
    Arc::new(values.collect::<Int32Array>())
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::{FeatureTable, KeyCutoffs, Windows};
    use crate::dataset::keys::{Limit, NewsKey};
    use crate::dataset::naive::{Day, day};
    use crate::dataset::news::{NewsItem, TickerNews};
    use crate::definition::DefinitionFile;
    use crate::plan::{Days, Decay, Feature, Plan, Statistic};
    use crate::time::MICROS_PER_DAY;

    /// Whether an article is among those of some days up to a cutoff.
    fn is_within(article: &NewsItem, key: &NewsKey, cutoff: Day, days: i32) -> bool {
        let date = day(article.date);
        article.ticker == key.ticker && date <= cutoff && date > cutoff - days
    }

    /// The features whose scores are not in a window's own sums.
    fn features(window: Days) -> Vec<Feature> {
        let decay = |half_life: u16| Feature::Decay(Decay { half_life: Days::new(half_life), window });
        vec![Feature::Window(Statistic::Median, window), decay(1), decay(4)]
    }

    /// Compares means that decay with those of powers.
    fn assert_decays(windows: &Windows, index: usize, articles: &[NewsItem], of: (&NewsKey, Day)) {
        let (key, cutoff) = of;
        for decay in [1, 4].map(|days| Decay { half_life: Days::new(days), window: windows.days }) {
            let Decay { half_life, window } = decay;
            let within = articles.iter().filter(|article| is_within(article, key, cutoff, window.count()));
            let weighed = within.map(|article| {
                let age = f64::from(cutoff - day(article.date));
                let weight = 0.5_f64.powf(age / f64::from(half_life.count()));
                (if weight < 0.5_f64.powi(20) { 0.0 } else { weight }, article.score.unwrap().value)
            });
            let [weights, sum] =
                weighed.fold([0.0, 0.0], |[all, sum], (weight, score)| [all + weight, sum + weight * score]);
            match windows.decaying_mean(decay, index) {
                Some(mean) => assert!((mean - sum / weights).abs() < 1e-6, "{mean} {sum} {weights}"),
                None => assert_eq!(weights, 0.0),
            }
        }
    }

    #[test]
    fn each_window_has_the_articles_of_its_days_wherever_cutoffs_go_back_and_pieces_end() {
        let text = "source.service = \"demo\"\nsignals.sectors = \"energy\"\n".to_owned();
        let plan = Plan::of(DefinitionFile::new("it.toml".into(), text).unwrap()).unwrap().dataset;
        let mut state = 13_u64;
        let mut random = |below: u64| {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            (state >> 33) % below
        };
        for round in 0..400 {
            let mut articles: Vec<NewsItem> = (0..random(40))
                .map(|index| {
                    let date = (random(20) as i64 - 5) * MICROS_PER_DAY + random(3) as i64;
                    // Each score tells its article.
                    NewsItem::always_known(random(4) as i32, date, index as i32, Some(index as f64))
                })
                .collect();
            articles.sort_by_key(|article| (article.ticker, article.order()));
            let mut keys: Vec<NewsKey> = (0..random(12))
                .map(|_| NewsKey { ticker: random(4) as i32, day: random(20) as Day, limit: Limit::NONE })
                .collect();
            keys.sort();
            // A cutoff in trading days that were seen may be earlier than that of the day before.
            let cutoffs: Vec<Day> = keys.iter().map(|key| key.day - random(9) as Day).collect();
            let lengths = [1, 3, 7].map(Days::new);
            let news = TickerNews::default();
            let mut table = FeatureTable {
                keys: KeyCutoffs { list: &keys, cutoffs: cutoffs.clone(), plan: &plan },
                news: &news,
                windows: lengths.map(|days| Windows::new(days, &features(days), keys.len())).into(),
                known_after: vec![Some(Day::MIN); keys.len()],
                are_cut_off: true,
                cut_off: HashSet::new(),
                last: vec![None; keys.len()],
            };
            let cut = random(articles.len() as u64 + 1) as usize;
            table.add(&articles[..cut]);
            table.add(&articles[cut..]);
            for (index, (key, &cutoff)) in keys.iter().zip(&cutoffs).enumerate() {
                for windows in &table.windows {
                    let days = windows.days;
                    let within = articles.iter().filter(|article| is_within(article, key, cutoff, days.count()));
                    let scores: Vec<f64> = within.filter_map(|article| Some(article.score?.value)).collect();
                    let of_window = |statistic| windows.statistic(statistic, index);
                    let least = scores.iter().copied().reduce(f64::min);
                    let most = scores.iter().copied().reduce(f64::max);
                    let expected = (scores.len() as i32, least, most);
                    let found = (windows.articles(index), of_window(Statistic::Min), of_window(Statistic::Max));
                    assert_eq!(found, expected, "round {round}: {key:?}");
                    let mut sorted = scores.clone();
                    sorted.sort_by(f64::total_cmp);
                    let halves = sorted.len().checked_sub(1).map(|last| [sorted[last / 2], sorted[sorted.len() / 2]]);
                    let middle = halves.map(|[lower, upper]| (lower + upper) / 2.0);
                    assert_eq!(of_window(Statistic::Median), middle, "round {round}: {key:?}");
                    assert_eq!(
                        of_window(Statistic::Sum),
                        (!scores.is_empty()).then(|| scores.iter().sum()),
                        "round {round}"
                    );
                    assert_decays(windows, index, &articles, (key, cutoff));
                }
                let mut known = articles.iter().filter(|article| is_within(article, key, cutoff, 1_000));
                let newest = known.next_back().map(|article| (article.date, article.score.map(|score| score.value)));
                assert_eq!(table.last[index].map(|last| (last.order.0, last.score)), newest, "round {round}: {key:?}");
                // A list that may be cut off tells of what is after its oldest article.
                let oldest = articles.iter().find(|article| article.ticker == key.ticker);
                let after = oldest.map_or(Day::MIN, |oldest| day(oldest.date));
                assert_eq!(table.known_after[index], Some(after), "round {round}: {key:?}");
            }
            table.trust_lists_that_began_empty();
            for (index, key) in keys.iter().enumerate() {
                let oldest = articles.iter().find(|article| article.ticker == key.ticker);
                let after = oldest.map_or(Day::MIN, |oldest| day(oldest.date));
                assert_eq!(table.known_after[index], Some(after), "none of them began empty");
            }
            table.cut_off.clear();
            table.trust_lists_that_began_empty();
            assert!(table.known_after.iter().all(|after| *after == Some(Day::MIN)), "all of them began empty");
        }
    }
}
