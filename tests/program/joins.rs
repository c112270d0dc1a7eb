//! The join on messy data, computed anew by three ways that share nothing with it.

use std::fmt::Write;
use std::fs;
use std::path::Path;

use chrono::{Days, NaiveDate};

use crate::support::program::{Outcome, Place};
use crate::support::python;
use crate::support::random::Random;
use crate::support::scripted::{Scripted, json};

const KEY: (&str, &str) = ("BELLWETHER_API_KEY", "demo");

/// A sector of five tickers: dates with gaps, out of order, repeated, with and without offsets.
fn histories(random: &mut Random) -> String {
    let first = NaiveDate::from_ymd_opt(2025, 10, 20).expect("a day");
    let mut of_tickers = Vec::new();
    for ticker in ["AAA", "BBB", "CCC", "DDD", "EEE"] {
        let mut entries: Vec<String> = Vec::new();
        for day in (0..120).map(|days| first + Days::new(days)) {
            if random.below(10) < 4 {
                continue;
            }
            let (signal, confidence) = (["buy", "sell"][random.below(2)], random.below(1000));
            let offset = ["", "Z", "+00:00", "-05:00"][random.below(4)];
            let entry =
                format!(r#"{{"date":"{day}T00:00:00{offset}","signal":"{signal}","confidence":0.{confidence:03}}}"#);
            if random.below(20) == 0 {
                entries.push(entry.replace("0.", "0.9"));
            }
            entries.push(entry);
        }
        random.shuffle(&mut entries);
        let entries = entries.join(",");
        of_tickers.push(format!(
            r#""{ticker}":{{"ticker":"{ticker}","regime":"bear","period":"5d","predictions":[{entries}]}}"#
        ));
    }
    format!("{{{}}}", of_tickers.join(","))
}

/// Articles out of order, some without a score, some twice; of one ticker none.
fn articles(random: &mut Random, ticker: &str) -> String {
    if ticker == "CCC" {
        return "[]".to_owned();
    }
    let first = NaiveDate::from_ymd_opt(2025, 9, 1).expect("a day");
    let mut list: Vec<String> = Vec::new();
    for number in 0..60 {
        let date = first + Days::new(random.below(180) as u64);
        let score = match random.below(8) {
            0 => "null".to_owned(),
            1 => format!("\"-0.{:04}\"", random.below(10_000)),
            _ => format!("0.{:04}", random.below(10_000)),
        };
        let article = format!(r#"{{"date":"{date}","title":"t{number}","score":{score},"link":"https://x/{number}"}}"#);
        if random.below(10) == 0 {
            list.push(article.clone());
        }
        list.push(article);
    }
    random.shuffle(&mut list);
    format!("[{}]", list.join(","))
}

fn check(seed: u64, join: &str, parameters: &str) {
    let place = Place::new();
    let mut random = Random::of(seed);
    let tickers = ["AAA", "BBB", "CCC", "DDD", "EEE", "FFF"];
    let history = histories(&mut random);
    let news = tickers.map(|ticker| articles(&mut random, ticker));
    fs::write(place.file("histories.json"), &history).expect("a file");
    let mut files = String::new();
    for (ticker, list) in tickers.iter().zip(&news) {
        fs::write(place.file(ticker), list).expect("a file");
        write!(files, "{}\"{ticker}\":{:?}", if files.is_empty() { "" } else { "," }, place.file(ticker))
            .expect("text");
    }
    let histories = place.file("histories.json");
    let text = format!("{{\"histories\":[{histories:?}],\"articles\":{{{files}}},\"windows\":[1,3,30],{parameters}}}");
    fs::write(place.file("parameters.json"), text).expect("a file");
    let service = Scripted::start(move |asked| {
        let ticker = tickers.iter().position(|ticker| asked.target.contains(&format!("/{ticker}?")));
        json("200 OK", ticker.map_or(&history, |place| &news[place]))
    });
    let definition = format!(
        "[source]\n{}[signals]\nsectors = [\"x\"]\nperiods = [\"5d\"]\nregimes = [\"bear\"]\n\
         [sentiment]\ntickers = [\"AAA\", \"BBB\", \"CCC\", \"DDD\", \"EEE\", \"FFF\"]\n[rejects]\nmax_share = 0.5\n\
         [join]\n{join}windows = [\"1d\", \"3d\", \"30d\"]\n\
         stats = [\"count\", \"mean\", \"min\", \"max\", \"std\", \"last\", \"days_since\"]\n",
        service.source()
    );
    place.define("messy", &definition);
    Outcome::of(place.command(["run", "messy", "-q"]).envs([KEY])).succeeded();
    let dataset = place.file("output/datasets/messy/latest/messy.parquet");
    python::check("check_join.py", [dataset.as_path(), Path::new(&place.file("parameters.json"))]);
}

#[test]
fn messy_data_are_joined_as_brute_force_pandas_and_duckdb_join_them() {
    check(1, "", "\"lag_days\":1");
    check(2, "lag = \"0d\"\n", "\"lag_days\":0");
    check(3, "lag = \"4d\"\n", "\"lag_days\":4");
    check(4, "lag = \"1 trading day\"\n", "\"trading_days\":1");
    check(5, "lag = \"3 trading days\"\n", "\"trading_days\":3");
}
