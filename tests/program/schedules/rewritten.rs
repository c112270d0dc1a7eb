//! How much of what was known each run found rewritten, counted from what the service answered.

use std::collections::BTreeMap;
use std::fs;
use std::sync::{Arc, Mutex};

use chrono::{NaiveDate, TimeDelta, Utc};
use serde_json::Value;

use super::process::{KEY, history, journal};
use crate::support::program::{Outcome, Place};
use crate::support::random::Random;
use crate::support::scripted::{Scripted, json};

const TICKERS: [&str; 4] = ["XOM", "CVX", "COP", "EOG"];

/// The values of a ticker, by date; a date has one cell.
type Cells = BTreeMap<NaiveDate, u32>;

/// What the service answers on a day: the signals and the articles of each ticker.
#[derive(Clone, Default)]
struct Answers {
    signals: BTreeMap<&'static str, Cells>,
    articles: BTreeMap<&'static str, Cells>,
}

impl Answers {
    fn histories(&self) -> String {
        let entry = |(date, value): (&NaiveDate, &u32)| {
            format!("{{\"date\":\"{date}T00:00:00Z\",\"signal\":\"buy\",\"confidence\":0.{value:04}}}")
        };
        let of_ticker = |(ticker, cells): (&&str, &Cells)| {
            let entries: Vec<String> = cells.iter().rev().map(entry).collect();
            format!(
                "\"{ticker}\":{{\"ticker\":\"{ticker}\",\"regime\":\"neutral\",\"period\":\"15d\",\"predictions\":[{}]}}",
                entries.join(",")
            )
        };
        let histories: Vec<String> = self.signals.iter().map(of_ticker).collect();
        format!("{{{}}}", histories.join(","))
    }

    fn articles(&self, ticker: &str) -> String {
        let article = |(date, value): (&NaiveDate, &u32)| {
            format!(
                "{{\"date\":\"{date}\",\"title\":\"of {date}\",\"link\":\"https://x/{date}\",\"score\":0.{value:04}}}"
            )
        };
        let articles: Vec<String> = self.articles.get(ticker).into_iter().flatten().rev().map(article).collect();
        format!("[{}]", articles.join(","))
    }

    fn all(&self) -> impl Iterator<Item = (usize, &&'static str, &Cells)> {
        let news = self.articles.iter().map(|(ticker, cells)| (1, ticker, cells));
        self.signals.iter().map(|(ticker, cells)| (0, ticker, cells)).chain(news)
    }

    fn of(&self, kind: usize, ticker: &str) -> &Cells {
        [&self.signals, &self.articles][kind].get(ticker).expect("the same tickers")
    }
}

/// The next day: some cells are revised and some are gone, but none of the oldest date, and each ticker has a new one.
fn next(random: &mut Random, answers: &Answers, day: NaiveDate) -> Answers {
    let mut next = answers.clone();
    for cells in next.signals.values_mut().chain(next.articles.values_mut()) {
        let oldest = *cells.keys().next().expect("there are some");
        cells.retain(|date, _| *date == oldest || !random.one_in(40));
        for (_, value) in cells.iter_mut().skip(1) {
            *value += u32::from(random.one_in(15));
        }
        cells.insert(day, random.below(9000) as u32);
    }
    next
}

/// The numbers of cells that were known, added, revised and withdrawn.
fn expected_counts(before: &Answers, now: &Answers) -> [u64; 4] {
    let mut counts = [0; 4];
    for (kind, ticker, known) in before.all() {
        let message = now.of(kind, ticker);
        counts[0] += known.len() as u64;
        counts[1] += message.keys().filter(|date| !known.contains_key(date)).count() as u64;
        counts[2] +=
            known.iter().filter(|(date, value)| message.get(date).is_some_and(|message| message != *value)).count()
                as u64;
        counts[3] += known.keys().filter(|date| !message.contains_key(date)).count() as u64;
    }
    counts
}

/// The cells of the page's column, newest run first.
fn shown_cells(place: &Place, name: &str) -> Vec<String> {
    Outcome::of(place.command(["status", name, "--html", "status.html", "--force"]).envs([KEY])).expect_success();
    let page = fs::read_to_string(place.file("status.html")).expect("a page");
    let cells = page.split("data-head=\"Rewritten\">").skip(1);
    cells.map(|rest| rest.split('<').next().expect("it ends").to_owned()).collect()
}

#[test]
fn the_share_of_rewritten_cells_of_each_run_is_what_the_answers_say() {
    let mut random = Random::of(29);
    let today = Utc::now().date_naive();
    let cells = |random: &mut Random| -> Cells {
        (10..80).map(|back| (today - TimeDelta::days(back), random.below(9000) as u32)).collect()
    };
    let mut answers = vec![Answers::default()];
    for ticker in TICKERS {
        answers[0].signals.insert(ticker, cells(&mut random));
        answers[0].articles.insert(ticker, cells(&mut random));
    }
    for back in [4, 3, 2, 1, 0] {
        let before = answers.last().expect("the first");
        answers.push(next(&mut random, before, today - TimeDelta::days(back)));
    }

    let day = Arc::new(Mutex::new(answers[0].clone()));
    let of_service = Arc::clone(&day);
    let service = Scripted::start(move |request| {
        let message = of_service.lock().expect("as the test expects");
        let target = request.target.split('?').next().unwrap_or_default();
        match target.strip_prefix("/b/news_articles/") {
            Some(ticker) => json("200 OK", &message.articles(ticker)),
            None if request.target.contains("sector=energy") => json("200 OK", &message.histories()),
            // Another definition, with a ticker of its own.
            None => json("200 OK", &history().replace("XOM", "NEE")),
        }
    });
    let place = Place::new();
    for name in ["energy", "utilities"] {
        place.define(name, &format!("[source]\n{}[signals]\nsectors = [\"{name}\"]\n", service.source()));
    }
    let run = |name: &str| Outcome::of(place.command(["run", name, "-q"]).envs([KEY])).expect_success();
    run("utilities");
    for answers in &answers {
        *day.lock().unwrap() = answers.clone();
        run("energy");
    }

    let (records, mut shown) = (journal(&place, "energy"), shown_cells(&place, "energy"));
    shown.reverse();
    assert_eq!((records.len(), shown.len()), (answers.len(), answers.len()));
    assert_eq!(shown[0], "", "nothing was known to the first run");
    for (number, days) in answers.windows(2).enumerate() {
        let [known, added, revised, withdrawn] = expected_counts(&days[0], &days[1]);
        assert!(revised > 0 && withdrawn > 0, "{number}");
        let published = &records[number + 1]["published"];
        let count = |value: &Value| value.as_u64().unwrap_or_else(|| panic!("{published}"));
        let changes = ["added", "revised", "withdrawn"].map(|change| count(&published["changes"][change]));
        assert_eq!((count(&published["known"]), changes), (known, [added, revised, withdrawn]), "{number}");
        let percent: f64 = shown[number + 1].strip_suffix(" %").expect("a share").parse().unwrap();
        let share = 100.0 * (revised + withdrawn) as f64 / known as f64;
        assert!((percent - share).abs() < 0.051, "{percent} {share}");
    }
}
