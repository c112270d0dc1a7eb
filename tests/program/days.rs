//! Ten days of a service that rewrites its past: each day's run records what was rewritten, what is new, and no more.
//!
//! The truth comes from the service's side: [`Universe::rewrites`] names the rewritten cells, the trading days are the
//! cells of a history, and lists of articles are read in plain HTTP.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;

use arrow::array::{AsArray, RecordBatch};
use arrow::compute::filter_record_batch;
use arrow::datatypes::TimestampMicrosecondType;
use bellwether::archive::Interrupted;
use bellwether::definition::Found;
use bellwether::interface::{ChangeSet, Period, Regime, Ticker};
use bellwether::plan::Plan;
use bellwether::run::{Options, Progress, Summary, run};
use bellwether::serve::Universe;
use bellwether::tables::Table;
use bellwether::time::Clock;
use chrono::{DateTime, Days, NaiveDate, NaiveDateTime, Utc};
use serde_json::Value;
use tokio_util::sync::CancellationToken;

use crate::support::program::Place;
use crate::support::rows::{known, read, texts};
use crate::support::service::{KEY, Server, day, list, text};

const SEED: u64 = 124;
const SECTOR: &str = "energy";
const PERIODS: [&str; 2] = ["1d", "15d"];
const REGIMES: [&str; 2] = ["bear", "neutral"];

/// Ticker, period, regime and date.
type Cell = [String; 4];
type Signals = BTreeMap<Cell, (String, f64)>;
/// The score of an article by ticker, date and link.
type Scores = BTreeMap<[String; 3], f64>;

/// Ten days with a weekend and the end of a quarter among them, which the dates that leave the histories pass too, five
/// years before; and one more after a pause of a month.
fn days() -> impl Iterator<Item = NaiveDate> {
    day(2026, 9, 28).iter_days().take(10).chain([day(2026, 11, 6)])
}

fn evening(day: NaiveDate) -> DateTime<Utc> {
    day.and_hms_opt(21, 30, 0).expect("a time of the day").and_utc()
}

/// A date as it stands in a column.
fn midnight(day: NaiveDate) -> String {
    format!("{day}T00:00:00")
}

fn spelled<T: std::str::FromStr<Err: std::fmt::Debug>>(names: &[&str]) -> Vec<T> {
    names.iter().map(|name| name.parse().expect("it is spelled so")).collect()
}

fn numbers(rows: &RecordBatch, column: &str) -> impl Iterator<Item = Option<f64>> {
    texts(rows, column).into_iter().map(|text| text.map(|text| text.parse().expect("a number")))
}

/// The rows of some columns, null as nothing.
fn columns<const N: usize>(rows: &RecordBatch, names: [&str; N]) -> Vec<[String; N]> {
    let columns = names.map(|name| texts(rows, name));
    (0..rows.num_rows()).map(|row| columns.each_ref().map(|column| column[row].clone().unwrap_or_default())).collect()
}

fn signals(rows: &RecordBatch) -> Signals {
    let values = texts(rows, "signal").into_iter().flatten().zip(numbers(rows, "confidence").flatten());
    let signals: Signals = columns(rows, ["ticker", "period", "regime", "date"]).into_iter().zip(values).collect();
    assert_eq!(signals.len(), rows.num_rows(), "a cell is there twice, or has no value");
    signals
}

fn scores(rows: &RecordBatch) -> Scores {
    let scores: Scores =
        columns(rows, ["ticker", "date", "link"]).into_iter().zip(numbers(rows, "score").flatten()).collect();
    assert_eq!(scores.len(), rows.num_rows(), "an article is there twice, or has no score");
    scores
}

/// The rows that record one kind of change.
fn changed(rows: &RecordBatch, kind: &str) -> RecordBatch {
    let is_so = texts(rows, "change").into_iter().map(|change| Some(change.as_deref() == Some(kind)));
    filter_record_batch(rows, &is_so.collect()).expect("as many flags as rows")
}

/// The service on one day, and what became of it since an earlier one.
struct Day {
    universe: Universe,
    server: Server,
    tickers: Vec<Ticker>,
}

impl Day {
    fn new(today: NaiveDate) -> Self {
        let universe = Universe::new(SEED, today);
        let tickers = universe.tickers_of(SECTOR).cloned().collect();
        Self { server: Server::new(universe.clone(), ChangeSet::All), universe, tickers }
    }

    /// Runs the pipeline on the evening of the day.
    fn run(&self, place: &Place) -> Summary {
        let key = place.file("key");
        fs::write(&key, KEY).expect("a key");
        let running = &self.server.running;
        let definition = format!(
            "[source]\nbase_url = \"{}\"\nsentiment_base_url = \"{}\"\napi_key_file = {key:?}\n\
             [signals]\nsectors = [\"{SECTOR}\"]\nperiods = {PERIODS:?}\nregimes = {REGIMES:?}\n\
             [join]\nlag = \"1d\"\nwindows = [\"7d\"]\nstats = [\"count\", \"max\"]\n",
            running.base_url(),
            running.sentiment_base_url()
        );
        let plan = Plan::of(Found::new("days.toml".into(), definition).expect("a name")).expect("a plan");
        let options = Options {
            output: place.file("output"),
            archive: place.file("output/archive"),
            clock: Clock::Fixed(evening(self.universe.today())),
            interrupted: Interrupted::TakenUp,
            progress: Progress::Quiet,
            stop: CancellationToken::new(),
        };
        self.server.runtime.block_on(run(plan, options)).expect("a run")
    }

    /// The cells of every history, of the dates that a test wants.
    fn cells(&self, is_wanted: impl Fn(NaiveDate) -> bool) -> BTreeSet<Cell> {
        let dates = || self.universe.trading_days().iter().filter(|date| is_wanted(**date));
        let kinds = || PERIODS.iter().flat_map(|period| REGIMES.map(|regime| (period, regime)));
        let series = self.tickers.iter().flat_map(|ticker| kinds().map(move |kind| (ticker, kind)));
        let cell = |(ticker, (period, regime)): (&Ticker, (&&str, &str)), date: &NaiveDate| {
            [ticker.to_string(), (*period).to_owned(), regime.to_owned(), midnight(*date)]
        };
        series.flat_map(|series| dates().map(move |date| cell(series, date))).collect()
    }

    /// Every listed article, as the service says it in HTTP.
    fn listed(&self) -> Scores {
        let score = |score: &Value| match score {
            Value::String(text) => text.parse().expect("a number"),
            number => number.as_f64().expect("a number"),
        };
        let of_ticker = |ticker: &Ticker| {
            let answer = self.server.json(&format!("/sentiment/news_articles/{ticker}"));
            let article = |one: &Value| {
                let date = text(&one["date"]).parse().expect("a date");
                ([ticker.to_string(), midnight(date), text(&one["link"]).to_owned()], score(&one["score"]))
            };
            list(&answer).iter().map(article).collect::<Vec<_>>()
        };
        self.tickers.iter().flat_map(of_ticker).collect()
    }

    /// The histories that the service gives, in HTTP.
    fn told(&self) -> Signals {
        let mut told = Signals::new();
        for (period, regime) in PERIODS.iter().flat_map(|period| REGIMES.map(|regime| (period, regime))) {
            let target = format!("/api/signals-history-all?sector={SECTOR}&period={period}&regime={regime}");
            for (ticker, history) in self.server.members(&target) {
                let history: Value = serde_json::from_str(history.get()).expect("JSON");
                for entry in list(&history["predictions"]) {
                    let date = text(&entry["date"])[..10].parse().expect("a date");
                    let cell = [ticker.clone(), (*period).to_owned(), regime.to_owned(), midnight(date)];
                    let confidence = entry["confidence"].as_f64().expect("a number");
                    told.insert(cell, (text(&entry["signal"]).to_owned(), confidence));
                }
            }
        }
        told
    }

    /// The rewritten signals since an earlier day: what they were, and what they are.
    fn rewritten_signals(&self, earlier: NaiveDate) -> (Signals, Signals) {
        let rewrites = self.universe.rewrites(earlier).of_tickers(&self.tickers);
        let rewrites = rewrites.of_periods(&spelled::<Period>(&PERIODS)).of_regimes(&spelled::<Regime>(&REGIMES));
        let value = |one: bellwether::serve::Prediction| (one.signal().to_string(), one.confidence());
        let cells = rewrites.signals().map(|one| {
            let cell = [one.ticker.to_string(), one.period.to_string(), one.regime.to_string(), midnight(one.date)];
            ((cell.clone(), value(one.before)), (cell, value(one.after)))
        });
        cells.unzip()
    }

    /// The rewritten scores since an earlier day: what they were, and what they are.
    fn rewritten_scores(&self, earlier: NaiveDate) -> (Scores, Scores) {
        let rewrites = self.universe.rewrites(earlier).of_tickers(&self.tickers);
        let articles = rewrites.scores().map(|one| {
            let article = [one.ticker.to_string(), midnight(one.date), one.link];
            ((article.clone(), one.before), (article, one.after))
        });
        articles.unzip()
    }
}

/// What the archive knew on an evening of some dates.
fn known_on(archive: &Path, table: Table, evening_of: NaiveDate, dates: &BTreeSet<i64>) -> RecordBatch {
    let rows = known(archive, table, evening(evening_of));
    let column = rows.column_by_name("date").expect("it has dates").as_primitive::<TimestampMicrosecondType>();
    let is_wanted = column.iter().map(|date| Some(date.is_some_and(|date| dates.contains(&date))));
    filter_record_batch(&rows, &is_wanted.collect()).expect("as many flags as rows")
}

fn micros<'a>(dates: impl Iterator<Item = &'a String>) -> BTreeSet<i64> {
    let micros = |text: &String| text.parse::<NaiveDateTime>().expect("a date").and_utc().timestamp_micros();
    dates.map(micros).collect()
}

#[test]
fn each_day_records_what_was_rewritten_and_what_is_new_and_no_more() {
    let place = Place::new();
    let archive = place.file("output/archive");
    let mut listed = Scores::new();
    let mut rewritten = (0, 0);
    let mut last = None;
    for today in days() {
        let service = Day::new(today);
        let summary = service.run(&place);
        let earlier = last.as_ref().map(|(before, _): &(Day, Summary)| before.universe.today());

        let recorded = read(&summary.fetched.as_ref().expect("it fetched").run.join("signals.parquet"));
        assert_eq!(changed(&recorded, "withdrawn").num_rows(), 0, "{today}: what leaves the window is not withdrawn");
        let added = signals(&changed(&recorded, "added"));
        let is_new = |date: NaiveDate| earlier.is_none_or(|earlier| date > earlier);
        assert!(added.keys().eq(&service.cells(is_new)), "{today}: {} signals are added", added.len());
        let revised = signals(&changed(&recorded, "revised"));

        let articles = read(&summary.fetched.as_ref().expect("it fetched").run.join("articles.parquet"));
        assert_eq!(changed(&articles, "withdrawn").num_rows(), 0, "{today}: what leaves the list is not withdrawn");
        let now = service.listed();
        let new: Scores =
            now.iter().filter(|(one, _)| !listed.contains_key(*one)).map(|(k, v)| (k.clone(), *v)).collect();
        assert_eq!(scores(&changed(&articles, "added")), new, "{today}");
        let rescored = scores(&changed(&articles, "revised"));

        if let Some(earlier) = earlier {
            let (before, after) = service.rewritten_signals(earlier);
            assert_eq!(revised, after, "{today}");
            let dates = micros(revised.keys().map(|cell| &cell[3]));
            let mut was = signals(&known_on(&archive, Table::Signals, earlier, &dates));
            was.retain(|cell, _| revised.contains_key(cell));
            assert_eq!(was, before, "{today}");

            let (before, after) = service.rewritten_scores(earlier);
            assert_eq!(rescored, after, "{today}");
            let dates = micros(rescored.keys().map(|article| &article[1]));
            let mut was = scores(&known_on(&archive, Table::Articles, earlier, &dates));
            was.retain(|article, _| rescored.contains_key(article));
            assert_eq!(was, before, "{today}");
        } else {
            assert!(revised.is_empty() && rescored.is_empty(), "there was nothing to revise");
        }
        rewritten = (rewritten.0 + revised.len(), rewritten.1 + rescored.len());
        listed = now;
        last = Some((service, summary));
    }
    assert!(rewritten.0 > 0 && rewritten.1 > 0, "{rewritten:?} rewrites: the test has seen too little");

    let (service, summary) = last.expect("there were days");
    let today = service.universe.today();
    let cells = known(&archive, Table::Signals, evening(today));
    let (all, told) = (signals(&cells), service.told());
    let of_window = all.iter().filter(|(cell, _)| cell[3] >= midnight(service.universe.trading_days()[0]));
    assert!(of_window.eq(&told), "what is known is what the service says");
    let news = scores(&known(&archive, Table::Articles, evening(today)));
    assert!(listed.iter().all(|(article, score)| news[article] == *score), "what is known is what the service says");
    check_dataset(&read(&summary.latest.join("days.parquet")), &all, &news);
}

/// The published rows are what is known: each signal with the news of the seven days before it.
#[track_caller]
fn check_dataset(rows: &RecordBatch, signals: &Signals, news: &Scores) {
    let mut of_tickers: BTreeMap<&str, Vec<(NaiveDate, f64)>> = BTreeMap::new();
    let date = |text: &str| text[..10].parse::<NaiveDate>().expect("a date");
    for ([ticker, published, _], score) in news {
        of_tickers.entry(ticker).or_default().push((date(published), *score));
    }
    let mut expected: Vec<([String; 5], f64, usize, Option<f64>)> = Vec::with_capacity(signals.len());
    for ([ticker, period, regime, when], (signal, confidence)) in signals {
        let today = date(when);
        let articles = of_tickers.get(ticker.as_str()).map_or(&[][..], Vec::as_slice);
        let seen = articles.iter().skip_while(|(published, _)| *published < today - Days::new(7));
        let seen = seen.take_while(|(published, _)| *published < today);
        let seen: Vec<f64> = seen.map(|(_, score)| *score).collect();
        let key = [ticker, when, period, regime, signal].map(String::clone);
        expected.push((key, *confidence, seen.len(), seen.into_iter().reduce(f64::max)));
    }
    expected.sort_by(|one, other| one.0.cmp(&other.0));
    let keys = columns(rows, ["ticker", "date", "period", "regime", "signal"]);
    let counts = numbers(rows, "news_count_7d").map(|count| count.expect("a count") as usize);
    let values = numbers(rows, "confidence").flatten().zip(counts).zip(numbers(rows, "news_max_7d"));
    let published = keys.into_iter().zip(values).map(|(key, ((confidence, count), max))| (key, confidence, count, max));
    let mut published: Vec<_> = published.collect();
    published.sort_by(|one, other| one.0.cmp(&other.0));
    assert_eq!(published.len(), expected.len());
    assert!(published == expected, "the dataset is not what is known");
}
