//! A demo service that advances day by day, a pipeline that runs each evening, and the true rewrites between days.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;

use bellwether::definition::DefinitionFile;
use bellwether::interface::{ChangeSet, Period, Regime, Ticker};
use bellwether::plan::{Plan, StoreUrl};
use bellwether::run::{Options, Summary, run};
use bellwether::serve::Universe;
use bellwether::time::Clock;
use chrono::{DateTime, NaiveDate, Utc};
use serde_json::Value;

use super::program::Place;
use super::service::{KEY, Server, list, text};

pub(crate) const SEED: u64 = 124;
pub(crate) const SECTOR: &str = "energy";
pub(crate) const PERIODS: [&str; 2] = ["1d", "15d"];
pub(crate) const REGIMES: [&str; 2] = ["bear", "neutral"];

/// Ticker, period, regime and date.
pub(crate) type Cell = [String; 4];
pub(crate) type Signals = BTreeMap<Cell, (String, f64)>;
/// The score of an article by ticker, date and link.
pub(crate) type Scores = BTreeMap<[String; 3], f64>;

pub(crate) fn evening(day: NaiveDate) -> DateTime<Utc> {
    day.and_hms_opt(21, 30, 0).expect("a time of the day").and_utc()
}

/// A date as in a column.
pub(crate) fn midnight(day: NaiveDate) -> String {
    format!("{day}T00:00:00")
}

pub(crate) fn parse_all<T: std::str::FromStr<Err: std::fmt::Debug>>(names: &[&str]) -> Vec<T> {
    names.iter().map(|name| name.parse().expect("it is spelled so")).collect()
}

/// The service on one day, and its rewrites since an earlier one.
pub(crate) struct Day {
    pub(crate) universe: Universe,
    server: Server,
    tickers: Vec<Ticker>,
}

impl Day {
    pub(crate) fn new(today: NaiveDate) -> Self {
        let universe = Universe::new(SEED, today);
        let tickers = universe.tickers_of(SECTOR).cloned().collect();
        Self { server: Server::new(universe.clone(), ChangeSet::All), universe, tickers }
    }

    /// Runs the pipeline on the evening of the day.
    pub(crate) fn run(&self, place: &Place) -> Summary {
        self.run_with(&place.file("output"), None)
    }

    /// The same with a data folder and a store.
    pub(crate) fn run_with(&self, data: &Path, store: Option<StoreUrl>) -> Summary {
        let rest = format!(
            "[signals]\nsectors = [\"{SECTOR}\"]\nperiods = {PERIODS:?}\nregimes = {REGIMES:?}\n\
             [join]\nlag = \"1d\"\nwindows = [\"7d\"]\nstats = [\"count\", \"max\"]\n"
        );
        self.run_definition(data, store, &rest)
    }

    /// The same of a definition whose `[source]` is this service.
    pub(crate) fn run_definition(&self, data: &Path, store: Option<StoreUrl>, rest: &str) -> Summary {
        fs::create_dir_all(data).expect("a folder");
        let key = data.with_extension("key");
        fs::write(&key, KEY).expect("a key");
        let running = &self.server.running;
        let definition = format!(
            "[source]\nname = \"vendor\"\nbase_url = \"{}\"\nsentiment_base_url = \"{}\"\napi_key_file = {key:?}\n{rest}",
            running.base_url(),
            running.sentiment_base_url()
        );
        let plan = Plan::of(DefinitionFile::new("days.toml".into(), definition).expect("a name")).expect("a plan");
        let clock = Clock::Fixed(evening(self.universe.today()));
        let options = Options { clock, store, ..Options::new(data) };
        self.server.runtime.block_on(run(plan, options)).expect("a run")
    }

    /// The cells of every history, filtered by date.
    pub(crate) fn cells(&self, is_wanted: impl Fn(NaiveDate) -> bool) -> BTreeSet<Cell> {
        let dates = || self.universe.trading_days().iter().filter(|date| is_wanted(**date));
        let kinds = || PERIODS.iter().flat_map(|period| REGIMES.map(|regime| (period, regime)));
        let series = self.tickers.iter().flat_map(|ticker| kinds().map(move |kind| (ticker, kind)));
        let cell = |(ticker, (period, regime)): (&Ticker, (&&str, &str)), date: &NaiveDate| {
            [ticker.to_string(), (*period).to_owned(), regime.to_owned(), midnight(*date)]
        };
        series.flat_map(|series| dates().map(move |date| cell(series, date))).collect()
    }

    /// Every listed article, from HTTP answers.
    pub(crate) fn list(&self) -> Scores {
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

    /// The histories, from HTTP answers.
    pub(crate) fn histories(&self) -> Signals {
        let mut message = Signals::new();
        for (period, regime) in PERIODS.iter().flat_map(|period| REGIMES.map(|regime| (period, regime))) {
            let target = format!("/api/signals-history-all?sector={SECTOR}&period={period}&regime={regime}");
            for (ticker, history) in self.server.members(&target) {
                let history: Value = serde_json::from_str(history.get()).expect("JSON");
                for entry in list(&history["predictions"]) {
                    let date = text(&entry["date"])[..10].parse().expect("a date");
                    let cell = [ticker.clone(), (*period).to_owned(), regime.to_owned(), midnight(date)];
                    let confidence = entry["confidence"].as_f64().expect("a number");
                    message.insert(cell, (text(&entry["signal"]).to_owned(), confidence));
                }
            }
        }
        message
    }

    /// The signals rewritten since an earlier day: values before and after.
    pub(crate) fn rewritten_signals(&self, earlier: NaiveDate) -> (Signals, Signals) {
        let rewrites = self.universe.rewrites(earlier).of_tickers(&self.tickers);
        let rewrites = rewrites.of_periods(&parse_all::<Period>(&PERIODS)).of_regimes(&parse_all::<Regime>(&REGIMES));
        let value = |one: bellwether::serve::Prediction| (one.signal().to_string(), one.confidence());
        let cells = rewrites.signals().map(|one| {
            let cell = [one.ticker.to_string(), one.period.to_string(), one.regime.to_string(), midnight(one.date)];
            ((cell.clone(), value(one.before)), (cell, value(one.after)))
        });
        cells.unzip()
    }

    /// The scores rewritten since an earlier day: values before and after.
    pub(crate) fn rewritten_scores(&self, earlier: NaiveDate) -> (Scores, Scores) {
        let rewrites = self.universe.rewrites(earlier).of_tickers(&self.tickers);
        let articles = rewrites.scores().map(|one| {
            let article = [one.ticker.to_string(), midnight(one.date), one.link];
            ((article.clone(), one.before), (article, one.after))
        });
        articles.unzip()
    }
}
