//! Scored news: the articles about one company, and their summaries.
//!
//! An article is identified by its company, its day and its index among the day's articles, never by its position in a
//! list: the list of tomorrow has the same articles after the new ones. Each week has one to four, also on weekends. A
//! list is cut between days, so it has all articles of a day or none.

use bellwether_interface::Score;
use chrono::{Datelike, NaiveDate};

use crate::companies::Company;
use crate::draw::{Draw, Mood, purpose};
use crate::headline::headline;
use crate::revision::Revision;

const NEWS: u64 = purpose("news");
const COUNT: u64 = purpose("count");
const TONE: u64 = purpose("tone");
const FORM: u64 = purpose("form");
const SHIFT: u64 = purpose("shift");
const OUTLET: u64 = purpose("outlet");

/// Articles in a list; a few more if the oldest day has several.
const LISTED: usize = 400;

const OUTLETS: [&str; 5] = ["newswire", "markets", "ledger", "daily", "observer"];

/// One article.
#[derive(Clone, Copy, Debug)]
pub struct Article {
    /// The company that it is about.
    pub company: &'static Company,
    /// Its day.
    pub date: NaiveDate,
    /// Its index among the articles of its day.
    index: u32,
    draw: Draw,
    /// The score as first published, in ten-thousandths, so that comparisons are exact.
    first: i32,
}

/// The articles with the lowest and the highest score, and the one nearest to the mean.
#[derive(Clone, Copy, Debug)]
pub struct Extremes<'a> {
    /// The one with the lowest score.
    pub low: &'a Article,
    /// The one with the highest score.
    pub high: &'a Article,
    /// The one nearest to the mean.
    pub average: &'a Article,
}

/// A day with articles.
#[derive(Clone, Copy, Debug)]
pub struct Day {
    /// The day.
    pub date: NaiveDate,
    /// The mean of their scores, with four decimals.
    pub mean: f64,
    /// Number of its articles.
    pub articles: u32,
}

/// The newest articles about a company as of a day, newest first.
pub(crate) fn articles(seed: Draw, company: &'static Company, today: NaiveDate) -> Vec<Article> {
    let mut articles = Vec::with_capacity(LISTED + 3);
    let mut day = Some(today);
    while let (Some(date), true) = (day, articles.len() < LISTED) {
        articles.extend((0..count(seed, company, date)).rev().map(|index| Article::new(seed, company, date, index)));
        day = date.pred_opt();
    }
    articles
}

/// Number of articles of a day.
fn count(seed: Draw, company: &Company, date: NaiveDate) -> u32 {
    // The first day of the common era was a Monday, so these are calendar weeks.
    let week = (date.num_days_from_ce() - 1).div_euclid(7);
    let draw = seed.at(NEWS).of(company.ticker.as_str()).on(week);
    let articles = u64::from(1 + draw.at(COUNT).below(4));
    let of_week = (0..articles).map(|article| draw.at(article).below(7));
    // At most four.
    of_week.filter(|&weekday| weekday == date.weekday().num_days_from_monday()).count() as u32
}

impl Article {
    fn new(seed: Draw, company: &'static Company, date: NaiveDate, index: u32) -> Self {
        let of_company = seed.at(NEWS).at(TONE).of(company.ticker.as_str());
        let draw = of_company.on(date.num_days_from_ce()).at(index.into());
        let tone = 0.55 * Mood::of(seed, company.ticker.as_str()).on(date) + 0.45 * draw.at(TONE).signed_fraction();
        Self { company, date, index, draw, first: (10_000.0 * tone).round() as i32 }
    }

    /// Its revision, if it has one.
    pub(crate) fn revision(&self) -> Option<Revision> {
        Revision::of(self.draw, self.date)
    }

    /// Its score as of a day, from -1 to 1 with four decimals.
    pub fn score(&self, today: NaiveDate) -> f64 {
        f64::from(self.ten_thousandths(today)) / 10_000.0
    }

    /// Its score as written: one in three is a string with a decimal number.
    pub fn written_score(&self, today: NaiveDate) -> Score<'static> {
        let score = self.score(today);
        if self.draw.at(FORM).is_one_in(3) { Score::Text(format!("{score:.4}").into()) } else { Score::Number(score) }
    }

    /// Its headline, in the tone of its first score.
    pub fn title(&self) -> String {
        headline(self.company.name, f64::from(self.first) / 10_000.0, self.draw)
    }

    /// Its unique URL.
    pub fn link(&self) -> String {
        let outlet = self.draw.at(OUTLET).choose(&OUTLETS);
        let symbol = self.company.ticker.as_str().to_ascii_lowercase();
        format!("https://{outlet}.example.com/{symbol}/{}/{}", self.date, self.index + 1)
    }

    fn ten_thousandths(&self, today: NaiveDate) -> i32 {
        match self.revision() {
            Some(revision) if revision.shows(today) => {
                // Towards zero and past it: always different, and within bounds.
                let shift = 1 + revision.draw.at(SHIFT).below(3_000) as i32;
                if self.first > 0 { self.first - shift } else { self.first + shift }
            }
            _ => self.first,
        }
    }
}

impl<'a> Extremes<'a> {
    /// The extremes of a list; among equal scores the newest. `None` for an empty list.
    pub fn of(articles: &'a [Article], today: NaiveDate) -> Option<Self> {
        let score = |article: &&Article| i64::from(article.ten_thousandths(today));
        let sum: i64 = articles.iter().map(|article| score(&article)).sum();
        // The distance to the mean, multiplied by the number of articles to stay an integer.
        let count = i64::try_from(articles.len()).ok()?;
        let distance = |article: &&Article| (score(article) * count - sum).abs();
        Some(Self {
            low: articles.iter().min_by_key(score)?,
            // `max_by_key` returns the last of equal elements, so the list is reversed.
            high: articles.iter().rev().max_by_key(score)?,
            average: articles.iter().min_by_key(distance)?,
        })
    }
}

impl Day {
    /// The days of a list, in its order.
    pub fn each(articles: &[Article], today: NaiveDate) -> impl Iterator<Item = Self> {
        articles.chunk_by(|one, next| one.date == next.date).map(move |day| {
            // At most four articles a day.
            let count = day.len() as u32;
            let sum: i32 = day.iter().map(|article| article.ten_thousandths(today)).sum();
            let mean = (f64::from(sum) / f64::from(count)).round() / 10_000.0;
            Self { date: day[0].date, mean, articles: count }
        })
    }
}

#[cfg(test)]
mod tests {
    use std::collections::{BTreeMap, BTreeSet};

    use bellwether_interface::Score;
    use chrono::{Datelike, NaiveDate, Weekday};

    use super::{Article, Day, Extremes, articles};
    use crate::companies;
    use crate::draw::Draw;

    fn today() -> NaiveDate {
        NaiveDate::from_ymd_opt(2026, 11, 20).unwrap()
    }

    fn list(symbol: &str, today: NaiveDate) -> Vec<Article> {
        articles(Draw::from_seed(1), companies::find(symbol).unwrap(), today)
    }

    #[test]
    fn every_week_has_one_to_four_articles_and_some_days_have_several() {
        let articles = list("AAPL", today());
        assert!((400..404).contains(&articles.len()));
        let mut weeks = BTreeMap::<_, usize>::new();
        let mut days = BTreeMap::<_, usize>::new();
        for article in &articles {
            *weeks.entry(article.date.iso_week()).or_default() += 1;
            *days.entry(article.date).or_default() += 1;
        }
        // The first and the last week may be incomplete.
        let whole: Vec<usize> = weeks.values().copied().skip(1).take(weeks.len() - 2).collect();
        assert_eq!(whole.iter().copied().collect::<BTreeSet<_>>(), BTreeSet::from([1, 2, 3, 4]));
        let span = (articles[0].date - articles[articles.len() - 1].date).num_days() / 7;
        assert!(whole.len() as i64 >= span - 1, "a week of {span} has none");
        assert!(days.values().any(|&count| count > 1) && days.len() < 7 * whole.len() / 2);
        assert!(days.keys().any(|date| date.weekday() == Weekday::Sun));
    }

    #[test]
    fn articles_are_listed_newest_first_with_links_of_their_own() {
        let mut links = BTreeSet::new();
        for company in companies::all() {
            let articles = list(company.ticker.as_str(), today());
            assert!(
                articles[0].date <= today() && articles.is_sorted_by_key(|article| std::cmp::Reverse(article.date))
            );
            for article in articles {
                assert!(links.insert(article.link()), "{} appears twice", article.link());
            }
        }
        assert!(links.iter().all(|link| link.starts_with("https://") && link.contains(".example.com/")));
    }

    #[test]
    fn tomorrow_lists_the_same_articles_after_the_new_ones() {
        let mut known: Vec<String> = list("BRK.B", today()).iter().map(Article::link).collect();
        for date in today().iter_days().skip(1).take(60) {
            let links: Vec<String> = list("BRK.B", date).iter().map(Article::link).collect();
            let new = links.iter().position(|link| *link == known[0]).expect("the newest stays");
            let kept = links.len() - new;
            assert!(new <= 4 && links[new..] == known[..kept] && known.len() - kept <= 7, "{date}");
            known = links;
        }
    }

    #[test]
    fn scores_are_within_bounds_and_come_as_numbers_and_as_strings() {
        let (mut numbers, mut strings) = (0, 0);
        for article in companies::all().iter().flat_map(|company| list(company.ticker.as_str(), today())) {
            let written = article.written_score(today());
            let value = written.value().unwrap();
            assert!(value == article.score(today()) && (-1.0..=1.0).contains(&value), "{written:?}");
            assert!(format!("{}", value.abs()).len() <= "0.1234".len(), "{value}");
            match written {
                Score::Number(_) => numbers += 1,
                Score::Text(_) => strings += 1,
            }
        }
        assert!(numbers > strings && strings > 40_000, "{numbers} numbers, {strings} strings");
    }

    #[test]
    fn the_average_article_is_the_one_nearest_to_the_mean() {
        for company in companies::all() {
            let articles = list(company.ticker.as_str(), today());
            let extremes = Extremes::of(&articles, today()).unwrap();
            let scores: Vec<f64> = articles.iter().map(|article| article.score(today())).collect();
            let mean = scores.iter().sum::<f64>() / scores.len() as f64;
            let distance = (extremes.average.score(today()) - mean).abs();
            assert!(scores.iter().all(|score| (score - mean).abs() > distance - 1e-9));
            assert!(scores.iter().all(|&score| score >= extremes.low.score(today())));
            assert!(scores.iter().all(|&score| score <= extremes.high.score(today())));
        }
        assert!(Extremes::of(&[], today()).is_none());
    }

    #[test]
    fn every_article_belongs_to_one_day() {
        let articles = list("XOM", today());
        let days: Vec<Day> = Day::each(&articles, today()).collect();
        assert_eq!(days.iter().map(|day| day.articles as usize).sum::<usize>(), articles.len());
        assert!(days.is_sorted_by(|one, next| one.date > next.date));
        assert!(days.iter().any(|day| day.articles > 1));
    }
}
