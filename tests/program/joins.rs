//! The join on messy data, against brute force in Python.

use std::fmt::Write;
use std::fs;
use std::path::Path;

use chrono::{Days, NaiveDate};

use crate::support::program::{Outcome, Place};
use crate::support::python;
use crate::support::random::Random;
use crate::support::scripted::{Scripted, json};
use crate::support::{choices, window_statistics};

pub(crate) const KEY: (&str, &str) = ("BELLWETHER_API_KEY", "demo");

/// A sector of five tickers.
fn histories(random: &mut Random, offsets: &[&str]) -> String {
    histories_of(random, offsets, &["AAA", "BBB", "CCC", "DDD", "EEE"], ["5d", "bear"])
}

/// The histories of some tickers: dates with gaps, unsorted, repeated, with and without offsets.
fn histories_of(random: &mut Random, offsets: &[&str], tickers: &[&str], [period, regime]: [&str; 2]) -> String {
    let first = NaiveDate::from_ymd_opt(2025, 10, 20).expect("a day");
    let mut of_tickers = Vec::new();
    for ticker in tickers {
        let mut entries: Vec<String> = Vec::new();
        for day in (0..120).map(|days| first + Days::new(days)) {
            if random.below(10) < 4 {
                continue;
            }
            let (signal, confidence) = (["buy", "sell"][random.below(2)], random.below(1000));
            let offset = random.pick(offsets);
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
            r#""{ticker}":{{"ticker":"{ticker}","regime":"{regime}","period":"{period}","predictions":[{entries}]}}"#
        ));
    }
    format!("{{{}}}", of_tickers.join(","))
}

/// Unsorted articles, some without a score, some repeated; none for one ticker.
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
            2 => format!("0.{:014}", random.next() % 100_000_000_000_000),
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

/// How the dates of signals are written.
const OFFSETS: [&str; 4] = ["", "Z", "+00:00", "-05:00"];

fn check(seed: u64, [join, sentiment]: [&str; 2], parameters: &str) {
    let place = Place::new();
    let mut random = Random::of(seed);
    let tickers = ["AAA", "BBB", "CCC", "DDD", "EEE", "FFF"];
    // A signal with an instant uses no news of an unfinished day.
    let offsets = if join.contains("\"0d\"") { &OFFSETS[..1] } else { &OFFSETS };
    let history = histories(&mut random, offsets);
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
    let service = Scripted::start(move |request| {
        let ticker = tickers.iter().position(|ticker| request.target.contains(&format!("/{ticker}?")));
        json("200 OK", ticker.map_or(&history, |place| &news[place]))
    });
    let definition = format!(
        "[source]\n{}[signals]\nsectors = [\"x\"]\nperiods = [\"5d\"]\nregimes = [\"bear\"]\n\
         [sentiment]\ntickers = [\"AAA\", \"BBB\", \"CCC\", \"DDD\", \"EEE\", \"FFF\"]\n{sentiment}[rejects]\nmax_share = 0.5\n\
         [join]\n{join}windows = [\"1d\", \"3d\", \"30d\"]\n\
         stats = {:?}\n\
         half_lives = [\"2d\", \"5d\"]\n",
        service.source(),
        choices("Statistic")
    );
    place.define("messy", &definition);
    Outcome::of(place.command(["run", "messy", "-q"]).envs([KEY])).expect_success();
    let dataset = place.file("output/datasets/messy/latest/messy.parquet");
    python::check("check_join.py", [dataset.as_path(), Path::new(&place.file("parameters.json"))]);
}

#[test]
fn joins_of_messy_data_match_brute_force_pandas_and_duckdb() {
    check(1, ["", ""], "\"lag_days\":1");
    check(2, ["lag = \"0d\"\n", ""], "\"lag_days\":0");
    check(1, ["", "complete = true\n"], "\"lag_days\":1,\"complete\":true");
    check(3, ["lag = \"4d\"\n", "duplicates = \"keep\"\n"], "\"lag_days\":4,\"duplicates\":\"keep\"");
    check(4, ["lag = \"1 trading day\"\n", "duplicates = \"once\"\n"], "\"trading_days\":1");
    check(5, ["lag = \"3 trading days\"\n", ""], "\"trading_days\":3");
    check(6, ["lag = \"2 trading days\"\n", "complete = true\n"], "\"trading_days\":2,\"complete\":true");
}

/// Two sectors, two periods and two regimes.
const SERIES: &str = "sectors = [\"x\", \"y\"]\nperiods = [\"5d\", \"1m\"]\nregimes = [\"bear\", \"bull\"]\n";

const TICKERS: [&str; 5] = ["AAA", "BBB", "CCC", "DDD", "EEE"];

/// The articles of the tickers of two sectors, in a given order.
fn news_of(seed: u64) -> [(&'static str, String); 5] {
    let (mut random, mut listed) = (Random::of(8), Random::of(seed));
    TICKERS.map(|ticker| {
        let list: serde_json::Value = serde_json::from_str(&articles(&mut random, ticker)).expect("a list");
        let mut list = list.as_array().expect("a list").clone();
        listed.shuffle(&mut list);
        (ticker, serde_json::Value::Array(list).to_string())
    })
}

/// A service of two sectors with articles in a given order.
pub(crate) fn two_sectors(seed: u64) -> Scripted {
    let mut random = Random::of(7);
    let mut histories = Vec::new();
    for (sector, tickers) in [("x", &["AAA", "BBB", "CCC"][..]), ("y", &["DDD", "EEE"])] {
        for (period, regime) in [("5d", "bear"), ("5d", "bull"), ("1m", "bear"), ("1m", "bull")] {
            let request = format!("sector={sector}&period={period}&regime={regime}&");
            histories.push((request, histories_of(&mut random, &OFFSETS, tickers, [period, regime])));
        }
    }
    let news = news_of(seed);
    Scripted::start(move |request| {
        let of_ticker = news.iter().find(|(ticker, _)| request.target.contains(&format!("/{ticker}?")));
        let history =
            || &histories.iter().find(|(of, _)| request.target.contains(of.as_str())).expect("it was requested").1;
        json("200 OK", of_ticker.map_or_else(history, |(_, list)| list))
    })
}

pub(crate) fn definition(service: &Scripted, rest: &str) -> String {
    let source = service.source();
    format!("[source]\n{source}[signals]\n{SERIES}[rejects]\nmax_share = 0.5\n{rest}")
}

/// The lines of a dataset as CSV.
fn lines(place: &Place, name: &str, arguments: &[&str]) -> Vec<String> {
    let build = ["build", name, "--format", "csv", "--output", "-"];
    let stdout = place.run(build.iter().chain(arguments)).expect_success().stdout;
    stdout.lines().map(str::to_owned).collect()
}

#[test]
fn statistics_do_not_depend_on_the_order_in_which_articles_are_listed() {
    let windows = "[join]\nwindows = [\"3d\", \"30d\"]\nhalf_lives = \"3d\"\n";
    let join = &format!("{windows}stats = {:?}\n", window_statistics());
    let of_order = |seed: u64| {
        let (place, service) = (Place::new(), two_sectors(seed));
        place.define("it", &definition(&service, join));
        Outcome::of(place.command(["run", "it", "-q"]).envs([KEY])).expect_success();
        lines(&place, "it", &[])
    };
    let expected = of_order(0);
    assert!(expected.len() > 200);
    (1..4).for_each(|seed| assert_eq!(of_order(seed), expected, "{seed}"));
}

#[test]
fn a_filter_selects_rows_and_never_changes_them() {
    let (place, service) = (Place::new(), two_sectors(0));
    let mut random = Random::of(11);
    for (name, naive, lag) in [
        ("one", "utc", "1 trading day"),
        ("three", "America/New_York", "3 trading days"),
        ("days", "wall", "2d"),
        ("same", "Asia/Tokyo", "0d"),
    ] {
        let rest = format!("[dates]\nnaive = \"{naive}\"\n[join]\nlag = \"{lag}\"\n");
        place.define(name, &definition(&service, &rest));
        Outcome::of(place.command(["run", name, "-q"]).envs([KEY])).expect_success();
        let all = lines(&place, name, &[]);
        let dates: Vec<&str> = all[1..].iter().map(|line| &line.split(',').nth(1).expect("a date")[..10]).collect();
        for _ in 0..8 {
            let mut wanted: Vec<&str> = vec!["AAA", "BBB", "CCC", "DDD", "EEE"];
            random.shuffle(&mut wanted);
            wanted.truncate(random.between(1, 5));
            let mut days = [random.pick(&dates), random.pick(&dates)];
            days.sort_unstable();
            let [from, to] = days;
            let is_bounded = from < to && random.one_in(2);
            let mut arguments: Vec<&str> = wanted.iter().flat_map(|ticker| ["--ticker", ticker]).collect();
            let narrowed = [("--sector", ["x", "y"]), ("--period", ["5d", "1m"]), ("--regime", ["bear", "bull"])];
            let [sector, period, regime] = narrowed.map(|(flag, values)| {
                let value = random.one_in(3).then(|| random.pick(&values));
                arguments.extend(value.iter().flat_map(|value| [flag, *value]));
                value
            });
            if is_bounded {
                arguments.extend(["--from", from, "--to", to]);
            }
            let is_taken = |line: &&String| {
                let mut cells = line.split(',');
                let mut cell = || cells.next().expect("a line has ticker, date, period and regime");
                let (ticker, date) = (cell(), &cell()[..10]);
                let of_sector = if ticker < "DDD" { "x" } else { "y" };
                let is_in = |request: Option<&str>, value: &str| request.is_none_or(|request| request == value);
                wanted.contains(&ticker)
                    && (!is_bounded || (from <= date && date < to))
                    && is_in(sector, of_sector)
                    && is_in(period, cell())
                    && is_in(regime, cell())
            };
            let expected: Vec<&String> = all[..1].iter().chain(all[1..].iter().filter(is_taken)).collect();
            if expected.len() > 1 {
                assert_eq!(lines(&place, name, &arguments).iter().collect::<Vec<_>>(), expected, "{lag} {arguments:?}");
            }
        }
    }
}

/// Some cells of the only row of a dataset, after one pull per list.
fn pull(articles: &[&str], records: &[&str], columns: [&str; 3]) -> Vec<String> {
    let history = r#"{"AAA":{"ticker":"AAA","regime":"bear","period":"5d","predictions":[{"date":"2025-11-20","signal":"buy","confidence":0.5}]}}"#;
    let lists = [articles, records].map(|lists| lists.iter().map(|list| (*list).to_owned()).collect::<Vec<_>>());
    let service = Scripted::start(move |request| {
        let list = |lists: &[String]| lists[request.before.min(lists.len() - 1)].clone();
        let body = match &request.target {
            target if target.contains("news_articles") => list(&lists[0]),
            target if target.contains("historical_ss_data") => list(&lists[1]),
            _ => history.to_owned(),
        };
        json("200 OK", &body)
    });
    let place = Place::new();
    let source = service.source();
    let define = |complete: bool| {
        let text = format!(
            "[source]\n{source}[signals]\nsectors = [\"x\"]\nperiods = [\"5d\"]\nregimes = [\"bear\"]\n\
             [sentiment]\nhistorical = true\ncomplete = {complete}\n[join]\nsources = [\"articles\", \"historical\"]\nhistorical = [\"score\"]\n\
             windows = [\"7d\"]\nstats = [\"count\", \"mean\", \"last\"]\n"
        );
        place.define("it", &text);
    };
    // The lists may be cut off, but what they had is all that there was.
    define(false);
    for _ in 0..articles.len().max(records.len()) {
        Outcome::of(place.command(["run", "it", "-q"]).envs([KEY])).expect_success();
    }
    define(true);
    place.run(["build", "it", "-q"]).expect_success();
    let lines = lines(&place, "it", &[]);
    let names: Vec<&str> = lines[0].split(',').collect();
    let cells: Vec<&str> = lines[1].split(',').collect();
    columns.map(|name| cells[names.iter().position(|known| *known == name).expect("a column")].to_owned()).to_vec()
}

#[test]
fn the_last_article_is_the_first_listed_of_its_date_even_in_a_capped_list() {
    let list = |articles: &[(&str, &str, f64)]| {
        let article = |&(date, title, score): &(&str, &str, f64)| {
            format!(r#"{{"date":"{date}","title":"{title}","score":{score},"link":"l"}}"#)
        };
        format!("[{}]", articles.iter().map(article).collect::<Vec<_>>().join(","))
    };
    let day = "2025-11-18";
    let [zebra, yak, bee, ant] = [(day, "zebra", 0.2), (day, "yak", 0.1), (day, "bee", 0.4), (day, "ant", 0.3)];
    let earlier = ("2025-11-17", "old", 0.9);
    for (lists, expected) in [
        (vec![list(&[zebra, yak]), list(&[bee, ant])], ["4", "0.4"]),
        (vec![list(&[zebra, yak]), list(&[bee, ant]), list(&[bee, ant])], ["4", "0.4"]),
        (vec![list(&[zebra, yak]), list(&[bee, zebra])], ["3", "0.4"]),
        (vec![list(&[zebra, yak, earlier]), list(&[bee, ant, zebra])], ["5", "0.4"]),
        (vec![list(&[yak]), list(&[zebra, yak]), list(&[ant, zebra]), list(&[bee, ant])], ["4", "0.4"]),
        (vec![list(&[bee, ant]), list(&[zebra, yak])], ["4", "0.2"]),
    ] {
        let lists: Vec<&str> = lists.iter().map(String::as_str).collect();
        let found = pull(&lists, &["[]"], ["news_count_7d", "news_last_score", "historical_score"]);
        assert_eq!(found[..2], expected, "{lists:?}");
    }
}

#[test]
fn the_first_listed_record_of_a_day_counts_and_scores_may_be_text() {
    let columns = ["historical_score", "news_count_7d", "news_last_score"];
    let score = |lists: &[&str]| pull(&["[]"], lists, columns)[0].clone();
    let record = |day: &str, score: &str| format!(r#"{{"date":"{day}","score":{score}}}"#);
    let list = |records: &[String]| format!("[{}]", records.join(","));
    let (low, high) = (record("2025-11-18", "0.1"), record("2025-11-18", "0.9"));
    assert_eq!(score(&[&list(&[low.clone(), high.clone()])]), "0.1");
    assert_eq!(score(&[&list(&[high.clone(), low.clone()])]), "0.9");
    // The next answer lists another article first.
    assert_eq!(score(&[&list(std::slice::from_ref(&high)), &list(&[low.clone(), high.clone()])]), "0.1");
    assert_eq!(score(&[&list(&[low.clone(), high.clone()]), &list(&[high, low])]), "0.9");
    for (text, expected) in
        [("\"0.25\"", "0.25"), ("\"-1e-2\"", "-0.01"), ("\"n/a\"", ""), ("\"inf\"", ""), ("null", "")]
    {
        assert_eq!(score(&[&list(&[record("2025-11-18", text)])]), expected, "{text}");
    }
}

#[test]
fn an_exact_duplicate_counts_once_and_a_different_score_is_another_article() {
    let article = |score: &str| format!(r#"{{"date":"2025-11-18","title":"t","score":{score},"link":"l"}}"#);
    let count = |scores: &[&str]| {
        let list = format!("[{}]", scores.iter().map(|score| article(score)).collect::<Vec<_>>().join(","));
        pull(&[&list], &["[]"], ["news_count_7d", "news_last_score", "historical_score"])[..2].to_vec()
    };
    assert_eq!(count(&["0.5", "0.5", "0.5"]), ["1", "0.5"]);
    assert_eq!(count(&["0.5", "0.25", "0.5"]), ["2", "0.5"]);
    assert_eq!(count(&["null", "null", "0.25"]), ["2", ""]);
    assert_eq!(count(&["0.5", "\"0.5\"", "0.50"]), ["1", "0.5"]);
}

#[test]
fn a_list_that_is_cut_off_between_copies_revises_none_of_them() {
    let article =
        |title: &str, score: &str| format!(r#"{{"date":"2025-11-18","title":"{title}","score":{score},"link":"l"}}"#);
    let list =
        |scores: &[&str]| format!("[{}]", scores.iter().map(|score| article("t", score)).collect::<Vec<_>>().join(","));
    let found = |lists: &[&[&str]]| {
        let lists: Vec<String> = lists.iter().map(|scores| list(scores)).collect();
        let lists: Vec<&str> = lists.iter().map(String::as_str).collect();
        pull(&lists, &["[]"], ["news_count_7d", "news_mean_7d", "news_last_score"])
    };
    // The newest is listed first.
    assert_eq!(found(&[&["0.9", "0.1"], &["0.9"]]), ["2", "0.5", "0.9"]);
    assert_eq!(found(&[&["0.9", "0.1"], &["0.5", "0.9"]]), ["3", "0.5", "0.5"]);
    assert_eq!(found(&[&["0.9", "0.1"], &["0.5", "0.9"], &["0.5"]]), ["3", "0.5", "0.5"]);
    // Repetitions still count once.
    assert_eq!(found(&[&["0.9", "0.9", "0.1"], &["0.9"]]), ["2", "0.5", "0.9"]);
    // No score is the same: the newest was revised.
    assert_eq!(found(&[&["0.9", "0.1"], &["0.7"]]), ["2", "0.4", "0.7"]);
    assert_eq!(found(&[&["0.9"], &["0.7"]]), ["1", "0.7", "0.7"]);
}

#[test]
fn articles_without_a_score_and_duplicates_are_counted() {
    let (place, service) = (Place::new(), two_sectors(0));
    for (name, duplicates, is_repeated) in [("once", "once", true), ("each", "keep", false)] {
        let rest = format!("[sentiment]\nduplicates = \"{duplicates}\"\n[join]\nwindows = [\"30d\"]\n");
        place.define(name, &definition(&service, &rest));
        let stdout = Outcome::of(place.command(["run", name]).envs([KEY])).expect_success().stdout;
        // Counted in the text of the raw answers.
        let (mut all, mut unscored, mut repeated) = (0, 0, 0);
        for list in news_of(0).into_iter().map(|(_, list)| list) {
            let list: Vec<serde_json::Value> = serde_json::from_str(&list).expect("a list");
            let mut seen = std::collections::HashSet::new();
            for article in list {
                let score =
                    article["score"].as_str().map_or_else(|| article["score"].as_f64(), |text| text.parse().ok());
                let text = |field: &str| article[field].as_str().expect("a text").to_owned();
                let is_new = seen.insert((text("date"), text("title"), text("link"), score.map(f64::to_bits)));
                all += 1;
                repeated += u64::from(!is_new);
                unscored += u64::from(score.is_none() && (is_new || !is_repeated));
            }
        }
        assert!(unscored > 1 && repeated > 1, "{unscored} {repeated}");
        let counted = if is_repeated { all - repeated } else { all };
        assert!(stdout.contains(&format!("note      {unscored} of {counted} articles without a score: ")), "{stdout}");
        assert_eq!(
            stdout.contains(&format!("note      {repeated} of {all} articles repeated")),
            is_repeated,
            "{stdout}"
        );
    }
}
