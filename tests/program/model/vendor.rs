//! A vendor whose data changes between pulls in every way seen in practice.

use crate::support::random::Random;
use std::collections::{BTreeMap, BTreeSet};

use super::histories::{Entry, History};
use super::news::{Article, News};

pub(super) const TICKERS: [&str; 3] = ["BRK.B", "AA", "B"];
pub(super) const PERIODS: [&str; 2] = ["15d", "5d"];

/// A signal is the same whichever operation says it.
const SIGNALS: &str = "signals";

/// The series of the vendor.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Key {
    pub(super) ticker: &'static str,
    /// The key of a series of signals.
    pub(super) period: Option<&'static str>,
    pub(super) source: &'static str,
}

/// The contents of a series, in the order of the answer.
#[derive(Clone, Debug)]
pub(super) enum SeriesContents {
    Signals(Vec<Entry>),
    Articles(Vec<Article>),
    /// The debtor, then date, score and link of each of the three articles.
    Summary(String, [(i64, f64, String); 3]),
    Records(Vec<String>),
}

/// The operation that gives the signals, which goes and comes back with the service's sets of changes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Form {
    Sector,
    Batched,
    Ticker,
}

impl Form {
    pub(super) const ALL: &[Self] = &[Self::Sector, Self::Batched, Self::Ticker];

    /// The part of a definition that asks for it.
    pub(super) fn signals(self) -> String {
        let periods = "periods = [\"15d\", \"5d\"]\n";
        match self {
            Self::Sector => format!("sectors = [\"energy\"]\n{periods}"),
            Self::Batched => "history = \"batched\"\n".to_owned(),
            Self::Ticker => format!("history = \"ticker\"\ntickers = {TICKERS:?}\n{periods}"),
        }
    }
}

/// A complete answer.
#[derive(Clone, Debug)]
pub(super) struct Answer {
    /// Path and query, without the key.
    pub(super) target: String,
    /// `None` is a 404.
    pub(super) body: Option<String>,
    pub(super) tellings: Vec<(Key, SeriesContents)>,
}

impl Answer {
    /// Writes each zero with a sign, which does not change it.
    pub(super) fn sign_zeros(&mut self) {
        for (zero, signed) in [
            ("\"confidence\":0.0", "\"confidence\":-0.0"),
            ("\"score\":0.0", "\"score\":-0.0"),
            ("\"score\":\"0\"", "\"score\":\"-0\""),
        ] {
            self.body = self.body.take().map(|body| body.replace(zero, signed));
        }
    }
}

#[derive(Debug)]
pub(super) struct Vendor {
    pub(super) histories: BTreeMap<(&'static str, &'static str), History>,
    news: BTreeMap<&'static str, News>,
    summaries: BTreeMap<&'static str, Summary>,
    records: BTreeMap<&'static str, Records>,
    is_sliding: bool,
    /// Whether the same date always has the same offset, or none, and no article has copies.
    pub(super) has_steady_offsets: bool,
    focus: Focus,
}

/// What may change. Changes should hit cells that have changed before.
#[derive(Clone, Copy, Debug)]
enum Focus {
    Anything,
    OneHistory,
    OneNews,
}

#[derive(Debug)]
struct Summary {
    debtor: usize,
    articles: [(i64, f64, usize); 3],
    is_missing: bool,
}

#[derive(Debug, Default)]
struct Records {
    list: Vec<String>,
    gone: Vec<String>,
    is_empty: bool,
    is_missing: bool,
}

impl Vendor {
    /// A vendor of some tickers. Unless its window slides, it always lists everything.
    pub(super) fn of(tickers: usize, is_sliding: bool, random: &mut Random) -> Self {
        let tickers = &TICKERS[..tickers];
        let mut histories = BTreeMap::new();
        for ticker in tickers {
            for period in PERIODS {
                histories.insert((period, *ticker), History::new(random));
            }
        }
        let summary = |random: &mut Random| Summary {
            debtor: 0,
            articles: [(); 3].map(|()| (600, random.pick(&[0.5, -0.25]), 0)),
            is_missing: random.one_in(4),
        };
        let record = |random: &mut Random| {
            let list = (0..random.below(5)).map(|_| record(random)).collect();
            Records { list, ..Records::default() }
        };
        Self {
            histories,
            news: tickers.iter().map(|ticker| (*ticker, News::new(random))).collect(),
            summaries: tickers.iter().map(|ticker| (*ticker, summary(random))).collect(),
            records: tickers.iter().map(|ticker| (*ticker, record(random))).collect(),
            is_sliding,
            has_steady_offsets: false,
            focus: random.pick(&[Focus::Anything, Focus::OneHistory, Focus::OneNews]),
        }
    }

    /// Continues changes that began earlier, and describes them.
    pub(super) fn go_on(&mut self, random: &mut Random) -> Vec<String> {
        let mended = |((period, ticker), history): (&(&str, &str), &mut History)| {
            Some(format!("{ticker} {period}: {}", history.mend(random)?))
        };
        self.histories.iter_mut().filter_map(mended).collect()
    }

    /// Makes a change, and describes it.
    pub(super) fn change(&mut self, random: &mut Random) -> String {
        let kind = match self.focus {
            Focus::Anything => random.below(8),
            Focus::OneHistory => 0,
            Focus::OneNews => 4,
        };
        match kind {
            0..4 => {
                let at = self.focus.one_of(self.histories.len(), random);
                let is_sliding = self.is_sliding;
                let ((period, ticker), history) = self.histories.iter_mut().nth(at).expect("it is one of them");
                format!("{ticker} {period}: {}", history.change(is_sliding, random))
            }
            4..6 => {
                let at = self.focus.one_of(self.news.len(), random);
                let is_sliding = self.is_sliding;
                let (ticker, news) = self.news.iter_mut().nth(at).expect("it is one of them");
                format!("{ticker} news: {}", news.change(is_sliding, random))
            }
            6 => {
                let at = random.below(self.summaries.len());
                let (ticker, summary) = self.summaries.iter_mut().nth(at).expect("it is one of them");
                format!("{ticker} summary: {}", summary.change(random))
            }
            _ => {
                let at = random.below(self.records.len());
                let (ticker, records) = self.records.iter_mut().nth(at).expect("it is one of them");
                format!("{ticker} records: {}", records.change(random))
            }
        }
    }

    /// The operation that will answer; one that knows no ticker would count as no longer offered, and the run would fail.
    pub(super) fn form(&self, forms: &[Form], random: &mut Random) -> Form {
        let is_listed =
            |period: &&str| self.histories.iter().any(|((own, _), history)| own == period && history.is_listed);
        if PERIODS.iter().all(is_listed) { random.pick(forms) } else { Form::Sector }
    }

    /// Every answer to a pull now: signals of both periods, and the news of their tickers.
    pub(super) fn answers(&self, form: Form, random: &mut Random) -> Vec<Answer> {
        let mut answers = match form {
            Form::Sector => PERIODS.iter().map(|period| self.sector(period, random)).collect(),
            Form::Batched => vec![self.batch(random)],
            Form::Ticker => self.by_ticker(random),
        };
        let named: Vec<&'static str> = TICKERS
            .into_iter()
            .filter(|ticker| answers.iter().any(|answer| answer.tellings.iter().any(|(key, _)| key.ticker == *ticker)))
            .collect();
        // An operation that knows none of the tickers would count as no longer offered, and the run would fail.
        let is_known = named.iter().any(|ticker| !self.news[ticker].is_missing);
        for ticker in named {
            let mut listed = self.news[ticker].list(random);
            if self.has_steady_offsets {
                listed.iter_mut().for_each(|article| article.offset = None);
                // Machines that have not met may number copies otherwise where a list is cut off between them.
                let mut seen = BTreeSet::new();
                listed.retain(|article| seen.insert((article.day, article.title, article.link)));
            }
            let is_there = !self.news[ticker].is_missing || !is_known;
            let body = Article::body(&listed, random);
            answers.push(of_ticker(
                "news_articles",
                ticker,
                is_there.then_some((SeriesContents::Articles(listed), body)),
            ));
            let summary = &self.summaries[ticker];
            answers.push(of_ticker("social_sentiment", ticker, summary.list(ticker)));
            let records = &self.records[ticker];
            let listed = (!records.is_missing).then(|| records.list());
            answers.push(of_ticker("historical_ss_data", ticker, listed));
        }
        answers
    }

    /// What each listed history of a period says.
    fn list(&self, period: &'static str, random: &mut Random) -> Vec<(&'static str, Vec<Entry>)> {
        let of_period = self.histories.iter().filter(|((own, _), history)| *own == period && history.is_listed);
        let listed = |history: &History, random: &mut Random| {
            let mut listed = history.list(random);
            if self.has_steady_offsets {
                listed.iter_mut().for_each(|entry| entry.offset = (entry.date % 120 == 0).then_some(0));
            }
            listed
        };
        of_period.map(|((_, ticker), history)| (*ticker, listed(history, random))).collect()
    }

    fn sector(&self, period: &'static str, random: &mut Random) -> Answer {
        let listed = self.list(period, random);
        let piece = |(ticker, entries): &(&str, Vec<Entry>)| {
            format!("\"{ticker}\":{}", history_body(ticker, period, "predictions", entries))
        };
        let mut pieces: Vec<String> = listed.iter().map(piece).collect();
        random.shuffle(&mut pieces);
        let target = format!("/a/signals-history-all?sector=energy&period={period}&regime=neutral");
        let tellings = listed.into_iter().filter_map(|(ticker, entries)| telling(ticker, period, entries)).collect();
        Answer { target, body: Some(format!("{{{}}}", pieces.join(","))), tellings }
    }

    /// A history of each ticker, of a period that the service chooses, without offsets.
    fn batch(&self, random: &mut Random) -> Answer {
        let mut whole = BTreeMap::new();
        for period in PERIODS {
            for (ticker, mut entries) in self.list(period, random) {
                entries.iter_mut().for_each(|entry| entry.offset = None);
                if !whole.contains_key(ticker) || random.one_in(2) {
                    whole.insert(ticker, (period, entries));
                }
            }
        }
        let piece = |(ticker, (period, entries)): (&&str, &(&str, Vec<Entry>))| {
            format!("\"{ticker}\":{}", history_body(ticker, period, "items", entries))
        };
        let mut pieces: Vec<String> = whole.iter().map(piece).collect();
        random.shuffle(&mut pieces);
        let tellings = whole.into_iter().filter_map(|(ticker, (period, entries))| telling(ticker, period, entries));
        let tellings = tellings.collect();
        let target = "/a/signals-history-batched-all".to_owned();
        Answer { target, body: Some(format!("{{{}}}", pieces.join(","))), tellings }
    }

    fn by_ticker(&self, random: &mut Random) -> Vec<Answer> {
        let mut answers = Vec::new();
        for period in PERIODS {
            let mut listed: BTreeMap<_, _> = self.list(period, random).into_iter().collect();
            answers.extend(TICKERS.map(|ticker| {
                let entries = listed.remove(ticker);
                let body = entries.as_ref().map(|entries| history_body(ticker, period, "predictions", entries));
                let tellings = entries.and_then(|entries| telling(ticker, period, entries)).into_iter().collect();
                let target = format!("/a/signals-history/{ticker}?period={period}&regime=neutral");
                Answer { target, body, tellings }
            }));
        }
        answers
    }
}

fn history_body(ticker: &str, period: &str, list: &str, entries: &[Entry]) -> String {
    let entries: Vec<String> = entries.iter().map(Entry::body).collect();
    format!(
        "{{\"ticker\":\"{ticker}\",\"regime\":\"neutral\",\"period\":\"{period}\",\"{list}\":[{}]}}",
        entries.join(",")
    )
}

/// What a history says. One without signals counts as missing.
fn telling(ticker: &'static str, period: &'static str, entries: Vec<Entry>) -> Option<(Key, SeriesContents)> {
    let key = Key { ticker, period: Some(period), source: SIGNALS };
    (!entries.is_empty()).then_some((key, SeriesContents::Signals(entries)))
}

impl Focus {
    /// A random index below a number.
    fn one_of(self, count: usize, random: &mut Random) -> usize {
        match self {
            Self::Anything => random.below(count),
            Self::OneHistory | Self::OneNews => 0,
        }
    }
}

fn of_ticker(source: &'static str, ticker: &'static str, listed: Option<(SeriesContents, String)>) -> Answer {
    let target = format!("/b/{source}/{ticker}");
    match listed {
        Some((listed, body)) => {
            Answer { target, body: Some(body), tellings: vec![(Key { ticker, period: None, source }, listed)] }
        }
        None => Answer { target, body: None, tellings: Vec::new() },
    }
}

impl Summary {
    fn change(&mut self, random: &mut Random) -> &'static str {
        match random.below(4) {
            0 => {
                self.is_missing = !self.is_missing;
                if self.is_missing { "gone" } else { "back" }
            }
            1 => {
                self.debtor += 1;
                "another name"
            }
            2 => {
                self.articles[random.below(3)].2 += 1;
                "another link"
            }
            _ => {
                self.articles[random.below(3)] = (random.between(500, 503) as i64, random.pick(&[0.5, 1.0]), 0);
                "another article"
            }
        }
    }

    fn list(&self, ticker: &str) -> Option<(SeriesContents, String)> {
        if self.is_missing {
            return None;
        }
        let debtor = format!("Company {}", self.debtor);
        let articles = self.articles.map(|(day, score, link)| (day, score, format!("https://a/{link}")));
        let article = |place: usize| {
            let (day, score, link) = &articles[place];
            serde_json::json!({ "date": super::histories::day_text(*day), "score": score, "link": link })
        };
        let body = serde_json::json!({
            "debtor": debtor, "ticker": ticker,
            "low_article": article(0), "high_article": article(1), "avg_article": article(2),
        });
        Some((SeriesContents::Summary(debtor, articles), body.to_string()))
    }
}

/// One of a few records, so that duplicates occur.
fn record(random: &mut Random) -> String {
    format!("{{\"date\":\"2006-01-0{}\",\"score\":0.{}}}", random.between(1, 5), random.between(1, 3))
}

impl Records {
    fn change(&mut self, random: &mut Random) -> &'static str {
        let at = random.below(self.list.len());
        match random.below(7) {
            0 => {
                self.is_missing = !self.is_missing;
                if self.is_missing { "gone" } else { "back" }
            }
            1 => {
                self.is_empty = !self.is_empty;
                if self.is_empty { "emptied" } else { "filled" }
            }
            2 if !self.list.is_empty() => {
                self.gone.push(self.list.remove(at));
                "one withdrawn"
            }
            3 if !self.gone.is_empty() => {
                let back = self.gone.remove(random.below(self.gone.len()));
                self.list.insert(at, back);
                "one brought back"
            }
            4 => {
                random.shuffle(&mut self.list);
                "listed in another order"
            }
            _ => {
                self.list.push(record(random));
                "one more"
            }
        }
    }

    fn list(&self) -> (SeriesContents, String) {
        let list = if self.is_empty { Vec::new() } else { self.list.clone() };
        let body = format!("[{}]", list.join(","));
        (SeriesContents::Records(list), body)
    }
}
