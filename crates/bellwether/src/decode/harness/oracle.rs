//! Decodes an answer with `serde_json` and the simplest possible code.

use std::collections::btree_map::Entry as Place;
use std::collections::{BTreeMap, BTreeSet};

use serde_json::value::RawValue;

use super::super::Answer;
use super::TICKER;
use super::records::{
    self, Article, Entry, Extra, Latest, Pairs, article_score, canonical_signal, confidence, day, deserialize, echo,
    elements, into_text, record, score, weight,
};
use crate::interface::{Endpoint, SentimentSummary, Ticker, TrailingSummary};
use crate::tables::dates;
use crate::tables::{Leniencies, SeriesKey, Table};

/// One item of an answer.
#[derive(Debug, PartialEq)]
pub(super) enum Item {
    Series(SeriesKey),
    Row {
        date: Option<i64>,
        offset: Option<i16>,
        signal: String,
        confidence: Option<u64>,
        extra: Extra,
    },
    Article {
        position: i32,
        date: Option<i64>,
        texts: [Option<String>; 2],
        score: Option<u64>,
        offset: Option<i16>,
        extra: Extra,
    },
    Summary {
        debtor: Option<String>,
        dates: [Option<i64>; 3],
        scores: [Option<u64>; 3],
        links: [Option<String>; 3],
        summaries: [Option<String>; 3],
    },
    Record {
        position: i32,
        json: Option<String>,
    },
    Ticker(Ticker),
}

/// The expected contents of an answer.
#[derive(Debug, Default)]
pub(super) struct Expected {
    pub(super) items: Vec<Item>,
    /// The pointers of rejects.
    pub(super) pointers: Vec<String>,
    /// Number of rejected records.
    pub(super) rejected: u64,
    /// Number of histories with records of which all were rejected.
    pub(super) lost: u64,
    pub(super) drift: BTreeMap<String, u64>,
    pub(super) unusual: u64,
    pub(super) undated: u64,
    pub(super) lenient: Leniencies,
    pub(super) typed: u64,
}

/// The contents of an answer with these pieces; `None` if it is not JSON.
pub(super) fn contents(answer: &Answer<'_>, pieces: Option<Vec<(String, String)>>) -> Option<Expected> {
    let mut expected = Expected::default();
    let mut seen = BTreeSet::new();
    for (position, (key, json)) in pieces?.iter().enumerate() {
        let pointer = format!("/{}", key.replace('~', "~0").replace('/', "~1"));
        let element = format!("/{position}");
        let read = match answer.request.endpoint {
            Endpoint::SignalsHistory | Endpoint::LegacyHistory => expected.history(answer, TICKER, ["", ""], json),
            Endpoint::Signals | Endpoint::LegacySignals => expected.latest(answer, json),
            Endpoint::SocialSentiment => expected.summary(json),
            Endpoint::NewsArticles => expected.article(answer, position, json),
            Endpoint::HistoricalSentiment if let Some(days) = super::super::listing::days_of(json) => {
                let record = |(position, json)| Item::Record { position: position as i32, json: Some(json) };
                expected.typed += days.len() as u64;
                expected.items.extend(days.into_iter().enumerate().map(record));
                Some(())
            }
            Endpoint::HistoricalSentiment => {
                expected.items.push(Item::Record { position: position as i32, json: Some(json.clone()) });
                expected.typed += 1;
                Some(())
            }
            Endpoint::TickersAvailable => deserialize(json).map(|ticker| {
                expected.items.push(Item::Ticker(ticker));
                expected.typed += 1;
            }),
            _ if key.parse::<Ticker>().is_ok() && !seen.insert(key) => None,
            _ => expected.history(answer, key, [&pointer, "/*"], json),
        };
        if read.is_none() && !answer.request.endpoint.is_of_one_ticker() && is_beside_tickers(key, json) {
            *expected.drift.entry(pointer).or_default() += 1;
            continue;
        }
        if read.is_none() {
            let is_history = !matches!(
                answer.request.endpoint,
                Endpoint::Signals
                    | Endpoint::LegacySignals
                    | Endpoint::SocialSentiment
                    | Endpoint::NewsArticles
                    | Endpoint::HistoricalSentiment
                    | Endpoint::TickersAvailable
            );
            expected.rejected += if is_history { weight(json) } else { 1 };
            expected.lost += u64::from(is_history);
            expected.pointers.push(match answer.request.endpoint {
                endpoint if !endpoint.is_of_one_ticker() && endpoint != Endpoint::TickersAvailable => pointer,
                Endpoint::NewsArticles | Endpoint::TickersAvailable => element,
                _ => String::new(),
            });
        }
    }
    Some(expected)
}

/// Whether a member is none of a ticker.
fn is_beside_tickers(key: &str, json: &str) -> bool {
    !key.is_empty()
        && key.chars().all(|letter| matches!(letter, 'a'..='z' | '_'))
        && !["error", "errors", "detail", "message"].contains(&key)
        && !["predictions", "items"].iter().any(|name| json.contains(&format!("\"{name}\"")))
}

impl Expected {
    fn unknown(&mut self, pattern: &str, json: &str, known: &[&str]) -> Extra {
        let Pairs(pairs) = serde_json::from_str(json).expect("it is valid");
        let unknown: Extra = pairs
            .into_iter()
            .filter(|(name, _)| !known.contains(&name.as_str()))
            .map(|(name, json)| (name, json.get().to_owned()))
            .collect();
        for (name, _) in &unknown {
            *self.drift.entry(format!("{pattern}/{}", name.replace('~', "~0").replace('/', "~1"))).or_default() += 1;
        }
        unknown
    }

    /// The series that a history is of, and whether ticker, period and regime are given as the interface says.
    fn key(answer: &Answer<'_>, asked: &str, echoes: [Option<&str>; 3]) -> Option<(SeriesKey, bool)> {
        let [ticker, period, regime] = echoes;
        let ticker = ticker.filter(|json| *json != "null");
        let (period, has_period) = echo(period, answer.request.period)?;
        let (regime, has_regime) = echo(regime, answer.request.regime)?;
        let key = SeriesKey {
            ticker: ticker.map_or_else(|| asked.parse().ok(), deserialize)?,
            period: Some(period),
            regime: Some(regime),
            table: Table::of(answer.request.endpoint),
        };
        Some((key, ticker.is_some() && has_period && has_regime))
    }

    fn is_requested(answer: &Answer<'_>, ticker: &str, key: &SeriesKey) -> bool {
        key.ticker.as_str() == ticker
            && answer.request.period.is_none_or(|period| Some(period) == key.period)
            && answer.request.regime.is_none_or(|regime| Some(regime) == key.regime)
    }

    fn history(&mut self, answer: &Answer<'_>, asked: &str, place: [&str; 2], json: &str) -> Option<()> {
        let [pointer, pattern] = place;
        if !pattern.is_empty() && ["null", "[]", "{}"].contains(&json) {
            let (key, _) =
                Self::key(answer, asked, [None; 3]).filter(|(key, _)| Self::is_requested(answer, asked, key))?;
            self.lenient.echoes += 1;
            self.items.push(Item::Series(key));
            return Some(());
        }
        // The entries alone are a history, too.
        let alone = json.starts_with('[').then(|| format!("{{\"predictions\":{json}}}"));
        let json = alone.as_deref().unwrap_or(json);
        let Pairs(pairs) = serde_json::from_str(json).ok()?;
        let only = |name: &str| {
            let mut found = pairs.iter().filter(|(known, _)| known == name);
            found.next().filter(|_| found.next().is_none()).map(|(_, json)| json.get())
        };
        let names: Vec<&str> = pairs
            .iter()
            .map(|(name, _)| name.as_str())
            .filter(|name| ["predictions", "items"].contains(name))
            .collect();
        let has_two = |name: &str| pairs.iter().filter(|(known, _)| known == name).count() > 1;
        if ["ticker", "period", "regime"].into_iter().any(has_two) {
            return None;
        }
        let (key, is_echoed) = Self::key(answer, asked, ["ticker", "period", "regime"].map(only))?;
        let name = *names.first()?;
        let entries: Vec<&RawValue> = serde_json::from_str(only(name)?).ok()?;
        let beside = match names[..] {
            [_] => None,
            [first, second] if first != second => Some(second),
            _ => return None,
        };
        if !Self::is_requested(answer, asked, &key) {
            return None;
        }
        if let Some(beside) = beside {
            self.pointers.push(format!("{pointer}/{beside}"));
            self.rejected += elements(only(beside)?).max(1);
        }
        self.unknown(pattern, json, &["ticker", "period", "regime", "predictions", "items"]);
        self.lenient.echoes += u64::from(!is_echoed);
        self.items.push(Item::Series(key));
        let mut rows: BTreeMap<i64, (dates::Date, Entry<'_>, Extra, &str)> = BTreeMap::new();
        let mut repeated = 0;
        for (position, json) in entries.iter().enumerate() {
            let entry = record::<Entry<'_>>(json.get());
            let read = entry.and_then(|entry| Some((day(entry.date)?.0, entry)));
            match read.filter(|(_, entry)| {
                confidence(entry.confidence).is_some() && canonical_signal(&entry.signal).is_some()
            }) {
                Some((date, entry)) => {
                    let extra =
                        self.unknown(&format!("{pattern}/{name}/*"), json.get(), &["date", "signal", "confidence"]);
                    match rows.entry(date.micros) {
                        Place::Vacant(place) => drop(place.insert((date, entry, extra, json.get()))),
                        Place::Occupied(first) if first.get().3 == json.get() => repeated += 1,
                        Place::Occupied(_) => self.pointers.push(format!("{pointer}/{name}/{position}")),
                    }
                }
                None => self.pointers.push(format!("{pointer}/{name}/{position}")),
            }
        }
        let rejected = (entries.len() - rows.len() - repeated) as u64;
        self.lenient.repeated += repeated as u64;
        self.rejected += rejected;
        self.lost += u64::from(rows.is_empty() && (rejected > 0 || beside.is_some()));
        rows.into_values().for_each(|(_, entry, extra, _)| self.row(answer, &entry, extra));
        Some(())
    }

    fn row(&mut self, answer: &Answer<'_>, entry: &Entry<'_>, extra: Extra) {
        let (confidence, is_text) = confidence(entry.confidence).expect("it is valid");
        self.typed += 1;
        let name = canonical_signal(&entry.signal).expect("it is valid");
        let date = day(entry.date);
        self.lenient.signals += u64::from(name != entry.signal);
        self.lenient.dates += u64::from(date.is_some_and(|(_, is_lenient)| is_lenient));
        self.lenient.confidences += u64::from(is_text);
        self.unusual += u64::from(!(0.0..=1.0).contains(&confidence));
        self.items.push(Item::Row {
            date: date.map(|(date, _)| date.micros),
            offset: date.and_then(|(date, _)| date.offset_minutes),
            signal: name.to_owned(),
            confidence: Some(confidence.to_bits()),
            extra: if answer.rules.keep_extra { extra } else { Extra::new() },
        });
    }

    fn latest(&mut self, answer: &Answer<'_>, json: &str) -> Option<()> {
        let Pairs(pairs) = serde_json::from_str(json).ok()?;
        let has = |name: &str| pairs.iter().any(|(known, _)| known == name);
        let is_newer = has("signal") || has("confidence");
        let [signal, confidence, other, another] = if is_newer || !(has("ei") || has("ci")) {
            ["signal", "confidence", "ei", "ci"]
        } else {
            ["ei", "ci", "", ""]
        };
        // The fields of the other shape are unknown fields then, and have no type.
        let of_form: Vec<String> = pairs
            .iter()
            .filter(|(name, _)| name != other && name != another)
            .map(|(name, json)| format!("{}:{}", serde_json::Value::from(name.as_str()), json.get()))
            .collect();
        let text = format!("{{{}}}", of_form.join(","));
        // A duplicate of the older shape's fields matters only if that shape is read.
        let twice = ["ei", "ci"].iter().any(|name| pairs.iter().filter(|(known, _)| known == name).count() > 1);
        let latest: Latest<'_> = serde_json::from_str(&text).ok().filter(|_| !twice)?;
        let echoes = [latest.ticker, latest.period, latest.regime].map(|json| json.map(RawValue::get));
        let (key, is_echoed) = Self::key(answer, TICKER, echoes)?;
        latest.date.map(|json| day(json).ok_or(())).transpose().ok()?;
        let date = latest.date.unwrap_or(RawValue::NULL);
        let entry = Entry { date, signal: latest.signal, confidence: latest.confidence };
        let is_typed = records::confidence(entry.confidence).is_some() && canonical_signal(&entry.signal).is_some();
        if !Self::is_requested(answer, TICKER, &key) || !is_typed {
            return None;
        }
        let extra = self.unknown("", json, &["ticker", "date", "period", "regime", signal, confidence]);
        self.items.push(Item::Series(key));
        self.lenient.echoes += u64::from(!is_echoed);
        self.undated += u64::from(latest.date.is_none());
        self.row(answer, &entry, extra);
        Some(())
    }

    fn article(&mut self, answer: &Answer<'_>, position: usize, json: &str) -> Option<()> {
        let article: Article<'_> = record(json)?;
        let (date, is_lenient) = day(article.date)?;
        let (score, is_plain) = article_score(article.score)?;
        let extra = self.unknown("/*", json, &["date", "title", "score", "link"]);
        self.typed += 1;
        self.lenient.dates += u64::from(is_lenient);
        self.lenient.scores += u64::from(!is_plain);
        self.lenient.untitled += u64::from(article.title.is_none() || article.link.is_none());
        self.items.push(Item::Article {
            position: position as i32,
            date: Some(date.micros),
            texts: [article.title, article.link].map(|text| Some(text.unwrap_or_default())),
            score: score.map(f64::to_bits),
            offset: date.offset_minutes,
            extra: if answer.rules.keep_extra { extra } else { Extra::new() },
        });
        Some(())
    }

    fn summary(&mut self, json: &str) -> Option<()> {
        const ARTICLES: [&str; 3] = ["low", "high", "avg"];
        let Pairs(pairs) = serde_json::from_str(json).ok()?;
        let field = |name: &str| pairs.iter().find(|(known, _)| known == name).map(|(_, json)| *json);
        let of = |part: &str| ARTICLES.map(|article| format!("{article}_{part}"));
        let trailing = [of("score_latest30"), of("link_latest30"), of("summary_latest30")].concat();
        let mut forms = [of("article").to_vec(), trailing, vec!["crawl_date".to_owned()]].concat();
        if forms.iter().any(|name| pairs.iter().filter(|(known, _)| known == name).count() > 1) {
            return None;
        }
        let is_newer = forms[..3].iter().any(|name| field(name).is_some());
        let is_older = !is_newer && forms[3..].iter().any(|name| field(name).is_some());
        let (debtor, ticker, dates, scores, links, summaries);
        let mut lenient = 0;
        if is_older {
            let older: TrailingSummary<'_> = record(json)?;
            forms.drain(..3);
            (debtor, ticker, dates) = (older.debtor.into_owned(), older.ticker, [None; 3]);
            scores = of("score_latest30").map(|name| field(&name).and_then(score));
            links = [older.low_link_latest30, older.high_link_latest30, older.avg_link_latest30].map(into_text);
            summaries =
                [older.low_summary_latest30, older.high_summary_latest30, older.avg_summary_latest30].map(into_text);
        } else {
            let newer: SentimentSummary<'_> = record(json)?;
            forms.truncate(3);
            let references = [newer.low_article, newer.high_article, newer.avg_article];
            let read = |date: &str| {
                let mut lenient = Leniencies::default();
                let read = dates::read(date, &mut lenient).ok().map(|date| date.micros);
                (read, lenient.dates)
            };
            (debtor, ticker) = (newer.debtor.into_owned(), newer.ticker);
            dates = references.each_ref().map(|reference| read(&reference.date).0);
            lenient = references.iter().map(|reference| read(&reference.date).1).sum();
            scores = of("article").map(|name| {
                let Pairs(reference) = record(field(&name)?.get())?;
                reference.iter().find(|(known, _)| known == "score").and_then(|(_, json)| score(json))
            });
            links = references.map(|reference| into_text(reference.link));
            summaries = [None, None, None];
        }
        let is_whole = scores.iter().all(Option::is_some) && (is_older || dates.iter().all(Option::is_some));
        if !is_whole || ticker.as_str() != TICKER {
            return None;
        }
        self.typed += 1;
        self.lenient.dates += lenient;
        let known: Vec<&str> = forms.iter().map(String::as_str).chain(["ticker", "debtor"]).collect();
        self.unknown("", json, &known);
        for name in of("article").iter().filter(|_| !is_older) {
            self.unknown(&format!("/{name}"), field(name)?.get(), &["date", "score", "link"]);
        }
        let scores = scores.map(|score| score.map(f64::to_bits));
        self.items.push(Item::Summary { debtor: Some(debtor), dates, scores, links, summaries });
        Some(())
    }
}
