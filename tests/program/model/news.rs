//! The articles of a vendor.

use super::histories::{OFFSETS, date_text, day_text};
use crate::support::random::Random;

#[derive(Clone, Debug, PartialEq)]
pub(super) struct Article {
    /// Days since 1970.
    pub(super) day: i64,
    pub(super) title: &'static str,
    pub(super) link: &'static str,
    pub(super) score: Option<f64>,
    /// Microseconds of its date, midnight in UTC.
    pub(super) offset: Option<i16>,
}

/// The articles of one ticker.
#[derive(Debug)]
pub(super) struct News {
    /// Oldest first.
    list: Vec<Article>,
    gone: Vec<Article>,
    /// Only this many of the newest are listed.
    limit: Option<usize>,
    /// Whether dates are listed in any order; within a date, the latest is always first.
    is_mixed: bool,
    is_empty: bool,
    pub(super) is_missing: bool,
}

impl Article {
    /// One of a few, so that duplicates of title and link occur.
    fn random(random: &mut Random) -> Self {
        // Near the end of a quarter, and some months later.
        let day = random.pick(&[13_328, 13_329, 13_330, 13_331, 13_465, 13_466]);
        let title = random.pick(&["up", "down", "flat", "a \"b\" é\n"]);
        let link = random.pick(&["https://a", "https://a", "https://b"]);
        let offset = if random.one_in(2) { None } else { random.pick(&OFFSETS) };
        Self { day, title, link, score: Self::score(random), offset }
    }

    fn score(random: &mut Random) -> Option<f64> {
        random.pick(&[Some(0.5), Some(-0.25), Some(1.0), Some(0.0), None])
    }

    pub(super) fn body(list: &[Self], random: &mut Random) -> String {
        let mut one = |article: &Self| {
            let score = match article.score {
                Some(score) if random.one_in(2) => serde_json::json!(score.to_string()),
                score => serde_json::json!(score),
            };
            let Self { day, title, link, .. } = article;
            let date = article.offset.map_or_else(|| day_text(*day), |offset| date_text(day * 1440, Some(offset)));
            serde_json::json!({ "date": date, "title": title, "score": score, "link": link }).to_string()
        };
        let list: Vec<String> = list.iter().map(&mut one).collect();
        format!("[{}]", list.join(","))
    }
}

impl News {
    pub(super) fn new(random: &mut Random) -> Self {
        let mut news = Self {
            list: Vec::new(),
            gone: Vec::new(),
            limit: None,
            is_mixed: random.one_in(4),
            is_empty: random.one_in(8),
            is_missing: random.one_in(8),
        };
        for _ in 0..random.between(1, 12) {
            news.insert(Article::random(random), random);
        }
        news
    }

    /// At a random position within its date.
    fn insert(&mut self, article: Article, random: &mut Random) {
        let first = self.list.partition_point(|known| known.day < article.day);
        let last = self.list.partition_point(|known| known.day <= article.day);
        self.list.insert(random.between(first, last), article);
    }

    /// Newest first.
    pub(super) fn list(&self, random: &mut Random) -> Vec<Article> {
        if self.is_empty {
            return Vec::new();
        }
        let hidden = self.list.len() - self.limit.unwrap_or(usize::MAX).min(self.list.len());
        let mut listed: Vec<Article> = self.list[hidden..].to_vec();
        listed.reverse();
        if !self.is_mixed {
            return listed;
        }
        let mut days: Vec<i64> = listed.iter().map(|article| article.day).collect();
        random.shuffle(&mut days);
        let next = |day: i64| {
            let at = listed
                .iter()
                .position(|article| article.day == day)
                .expect("each day is taken as often as it is there");
            listed.remove(at)
        };
        days.into_iter().map(next).collect()
    }

    /// Makes a change, and describes it.
    pub(super) fn change(&mut self, is_sliding: bool, random: &mut Random) -> String {
        if self.list.is_empty() {
            self.insert(Article::random(random), random);
            return "one more".to_owned();
        }
        let at = random.below(self.list.len());
        let day = self.list[at].day;
        match random.below(12) {
            0 => {
                let score = Article::score(random);
                self.list[at].score = score;
                format!("another score {score:?}")
            }
            1 | 2 => {
                self.gone.push(self.list.remove(at));
                format!("one of {} withdrawn", day_text(day))
            }
            3 => {
                let (gone, kept) = self.list.drain(..).partition(|article| (day..day + 2).contains(&article.day));
                self.gone.extend::<Vec<Article>>(gone);
                self.list = kept;
                format!("all of {} and the next day withdrawn", day_text(day))
            }
            4 if !self.gone.is_empty() => {
                let back = self.gone.remove(random.below(self.gone.len()));
                self.insert(back, random);
                "one brought back".to_owned()
            }
            5 => {
                let twin = Article { score: Article::score(random), ..self.list[at].clone() };
                self.insert(twin, random);
                format!("one of {} twice", day_text(day))
            }
            6 if is_sliding => {
                self.limit = Some(random.between(1, self.list.len()));
                format!("no more than {:?}", self.limit)
            }
            7 if is_sliding => {
                self.limit = None;
                "as many as there are".to_owned()
            }
            8 => {
                let first = self.list.partition_point(|known| known.day < day);
                let last = self.list.partition_point(|known| known.day <= day);
                random.shuffle(&mut self.list[first..last]);
                format!("{} in another order", day_text(day))
            }
            9 => {
                self.is_mixed = !self.is_mixed;
                "dates listed in another order".to_owned()
            }
            10 if random.one_in(2) => {
                self.is_missing = !self.is_missing;
                if self.is_missing { "gone" } else { "back" }.to_owned()
            }
            10 => {
                self.is_empty = !self.is_empty;
                if self.is_empty { "emptied" } else { "filled" }.to_owned()
            }
            _ => {
                let article = Article::random(random);
                let text = format!("one more of {}", day_text(article.day));
                self.insert(article, random);
                text
            }
        }
    }
}
