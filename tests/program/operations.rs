//! Every operation of the service at the points of the change record that have it, and its replacement at the others.

use std::collections::BTreeMap;
use std::fs;
use std::time::Duration;

use crate::support::program::{DemoService, Outcome, Place};
use crate::support::rows::{distinct, read, sealed_run, texts};
use crate::support::scripted::{Scripted, Step, json};

const TODAY: [&str; 2] = ["--today", "2026-11-20"];

/// A demo service at a point of the change record.
fn at(place: &Place, change_set: &str) -> DemoService {
    DemoService::start(place, &[&TODAY[..], &["--change-set", change_set]].concat())
}

/// Runs a definition against services for signals and news.
#[track_caller]
fn run(place: &Place, signals: &DemoService, sentiment: &DemoService, rest: &str) -> Outcome {
    let addresses = format!(
        "[source]\nname = \"vendor\"\nbase_url = \"{}\"\nsentiment_base_url = \"{}\"\n",
        signals.address("base_url"),
        sentiment.address("sentiment_base_url")
    );
    place.define("it", &format!("{addresses}{rest}"));
    Outcome::of(place.command(["run", "it"]).env("BELLWETHER_API_KEY", "demo"))
}

fn dataset(place: &Place) -> arrow::array::RecordBatch {
    read(&place.file("output/datasets/it/latest/it.parquet"))
}

#[test]
fn the_batch_for_all_is_one_answer_with_every_ticker() {
    let place = Place::new();
    let service = at(&place, "all");
    let rest = "[signals]\nhistory = \"batched\"\n[sentiment]\narticles = false\n";
    let outcome = run(&place, &service, &service, rest).expect_success();
    assert!(outcome.stderr.contains("signals: 1 request"), "{}", outcome.stderr);
    let rows = dataset(&place);
    assert_eq!(distinct(&rows, "ticker").len(), 500);
    assert!(distinct(&rows, "period").len() > 20, "each ticker has a period of its own");
    let archived = read(&sealed_run(&place).join("signals.parquet"));
    assert_eq!(distinct(&archived, "source"), ["signals-history-batched-all"]);
    assert!(texts(&archived, "utc_offset_minutes").iter().all(Option::is_none), "batched dates have no offset");
}

#[test]
fn only_the_named_periods_and_regimes_of_a_batch_are_kept() {
    let place = Place::new();
    let service = at(&place, "all");
    let rest = "[signals]\nhistory = \"batched\"\n[sentiment]\narticles = false\n";
    run(&place, &service, &service, rest).expect_success();
    let all = dataset(&place);
    let pairs = |rows: &arrow::array::RecordBatch| -> BTreeMap<(String, String), usize> {
        let (periods, regimes) = (texts(rows, "period"), texts(rows, "regime"));
        let mut pairs = BTreeMap::new();
        for pair in periods.into_iter().flatten().zip(regimes.into_iter().flatten()) {
            *pairs.entry(pair).or_default() += 1;
        }
        pairs
    };
    let whole = pairs(&all);
    // Each filter works alone, and together with the definition's own.
    let cases: [(&str, &[&str], &[&str]); 4] = [
        ("periods = [\"5d\", \"1m\"]\n", &["5d", "1m"], &["bear", "bull", "neutral"]),
        ("regimes = [\"bull\"]\n", &[], &["bull"]),
        ("periods = [\"5d\", \"1m\"]\nregimes = [\"bear\", \"neutral\"]\n", &["5d", "1m"], &["bear", "neutral"]),
        ("periods = [\"5d\", \"1m\"]\n[filter]\nperiods = [\"5d\"]\n", &["5d"], &["bear", "bull", "neutral"]),
    ];
    for (named, periods, regimes) in cases {
        let rest = format!("[signals]\nhistory = \"batched\"\n{named}[sentiment]\narticles = false\n");
        run(&place, &service, &service, &rest).expect_success();
        let mut expected = whole.clone();
        expected.retain(|(period, regime), _| {
            (periods.is_empty() || periods.contains(&period.as_str())) && regimes.contains(&regime.as_str())
        });
        assert_eq!(pairs(&dataset(&place)), expected, "{named}");
        assert!(!expected.is_empty() && expected.len() < whole.len());
    }
}

#[test]
fn missing_operations_are_replaced_in_order_and_reported_once() {
    let cases = [
        // Set D has the batch and set B has sectors; set A has sectors but no list of tickers.
        ("D", "history = \"batched\"\n", "signals-history-batched", "signals-history-batched-all: used"),
        ("B", "history = \"batched\"\n", "signals-history-batched", "used"),
        (
            "E",
            "history = \"batched\"\ntickers = [\"BRK.B\", \"XOM\"]\n",
            "signals-history",
            "no longer offers signals-history-batched-all, signals-history-batched: used signals-history for 2 tickers: BRK.B, \
             XOM\n",
        ),
    ];
    for (change_set, signals, source, note) in cases {
        let place = Place::new();
        let service = at(&place, change_set);
        let rest = format!("[signals]\n{signals}[sentiment]\narticles = false\n");
        let outcome = run(&place, &service, &service, &rest).expect_success();
        assert_eq!(outcome.stdout.matches(note).count(), 1, "{change_set}: {}", outcome.stdout);
        let archived = read(&sealed_run(&place).join("signals.parquet"));
        assert_eq!(distinct(&archived, "source"), [source], "{change_set}");
    }
}

/// The tickers of the only request with names.
fn published_tickers(place: &Place) -> Vec<String> {
    distinct(&dataset(place), "ticker")
}

#[test]
fn a_removed_operation_is_replaced_for_the_same_tickers() {
    let signals = "[signals]\nsectors = [\"energy\", \"utilities\"]\n[sentiment]\narticles = false\n";
    let place = Place::new();
    let service = at(&place, "all");
    run(&place, &service, &service, signals).expect_success();
    let before = published_tickers(&place);
    assert_eq!(before.len(), 53, "22 and 31 of 500");
    // Set C has no sector histories, but a history of each ticker and a list of all 500.
    let later = at(&place, "C");
    for _ in 0..2 {
        let outcome = run(&place, &later, &later, signals).expect_success();
        let message =
            "note      the service no longer offers signals-history-all: used signals-history for 53 tickers: AEE, ";
        assert!(outcome.stdout.contains(message), "{}", outcome.stdout);
        assert!(outcome.stdout.contains(" and 45 more, as listed in the archive\n"), "{}", outcome.stdout);
        assert_eq!(published_tickers(&place), before);
    }
    place.run(["build", "it"]).expect_success();
    assert_eq!(published_tickers(&place), before, "a build takes the way that the last run took");
    let outcome = run(&place, &service, &service, signals).expect_success();
    assert!(!outcome.stdout.contains("no longer offers"), "it is back");
    assert_eq!(published_tickers(&place), before);
}

#[test]
fn an_operation_that_another_definition_uses_for_some_of_the_tickers_replaces_none() {
    let place = Place::new();
    let service = at(&place, "all");
    for history in ["sectors = [\"utilities\"]\nperiods = [\"5d\"]", "history = \"batched\"\nregimes = [\"bear\"]"] {
        let rest = format!("[signals]\n{history}\n[sentiment]\narticles = false\n");
        run(&place, &service, &service, &rest).expect_success();
        let published = dataset(&place);
        let few = "[signals]\ntickers = [\"AEE\", \"AEP\"]\nperiods = [\"5d\"]\n[sentiment]\narticles = false\n";
        place.define("few", &format!("[source]\n{}{few}", service.source));
        Outcome::of(place.command(["run", "few", "-q"]).env("BELLWETHER_API_KEY", "demo")).expect_success();
        place.run(["build", "it", "-q", "--output", "it.parquet", "--force"]).expect_success();
        assert_eq!(read(&place.file("it.parquet")).num_rows(), published.num_rows(), "{history}");
    }
}

#[test]
fn a_removed_operation_with_unknown_tickers_fails_the_run_at_once() {
    let place = Place::new();
    let listed: Vec<String> = (0..500).map(|number| format!("\"T{number}\"")).collect();
    let listed = format!("[{}]", listed.join(","));
    let service = Scripted::start(move |request| match request.target.starts_with("/a/tickers/available") {
        true => json("200 OK", &listed),
        false if request.target.starts_with("/a/signals-history-all") => json("410 Gone", "{}"),
        false => panic!("{} is requested", request.target),
    });
    let signals = "[signals]\nsectors = [\"energy\", \"utilities\"]\nperiods = [\"5d\", \"15d\"]\n";
    place.define("it", &format!("[source]\n{}{signals}", service.source()));
    let shown = Outcome::of(place.command(["run", "it"]).env("BELLWETHER_API_KEY", "demo")).failed_with(1).stderr;
    let expected = "the service no longer offers signals-history-all, and the archive has no list of tickers for \
                    signals-history\n";
    assert!(shown.ends_with(expected), "{shown}");
    assert!(service.count() <= 4, "{:?}", service.targets());
}

#[test]
fn an_operation_is_not_replaced_where_the_tickers_of_a_sector_are_unknown() {
    let place = Place::new();
    let signals = |sectors: &str, rest: &str| {
        format!("[signals]\nsectors = [{sectors}]\n[sentiment]\narticles = false\n[checks]\nuniverse = 1.0\n{rest}")
    };
    let service = at(&place, "all");
    run(&place, &service, &service, &signals("\"energy\"", "")).expect_success();
    let before = published_tickers(&place);
    let later = at(&place, "C");
    let both = "\"energy\", \"utilities\"";
    let shown = run(&place, &later, &later, &signals(both, "")).failed_with(1).stderr;
    let expected = "the service no longer offers signals-history-all, and the archive has no tickers of 1 sector: utilities \
                    for signals-history\n";
    assert!(shown.contains(expected), "{shown}");
    let outcome = run(&place, &later, &later, &signals(both, "missing = \"warn\"\n")).expect_success();
    let note = "note      the service no longer offers signals-history-all, and the archive has no tickers of 1 sector: \
                utilities\n";
    assert!(outcome.stdout.contains(note), "{}", outcome.stdout);
    assert_eq!(published_tickers(&place), before);
}

#[test]
fn a_replacement_batch_with_other_tickers_fails_the_run() {
    let place = Place::new();
    let history = |ticker: &str| {
        let entry = r#"{"date":"2026-11-20T00:00:00","signal":"buy","confidence":0.5}"#;
        format!(r#""{ticker}":{{"ticker":"{ticker}","regime":"bull","period":"5d","items":[{entry}]}}"#)
    };
    let [all, same, other] = [["A", "B", "C"], ["C", "A", "B"], ["A", "C", "D"]]
        .map(|tickers| format!("{{{}}}", tickers.map(history).join(",")));
    let service = Scripted::of_histories(move |request| {
        let is_first = request.target.starts_with("/a/signals-history-batched-all");
        match (is_first, request.before) {
            (true, 0) => json("200 OK", &all),
            (true, _) => json("501 Not Implemented", "{}"),
            (false, 0) => json("200 OK", &same),
            (false, _) => json("200 OK", &other),
        }
    });
    let signals = "[signals]\nhistory = \"batched\"\n[sentiment]\narticles = false\n";
    place.define("it", &format!("[source]\n{}{signals}", service.source()));
    let go = || Outcome::of(place.command(["run", "it"]).env("BELLWETHER_API_KEY", "demo"));
    go().expect_success();
    let outcome = go().expect_success();
    let message =
        "signals-history-batched-all: used signals-history-batched for 3 tickers: A, B, C, as listed in the archive\n";
    assert!(outcome.stdout.contains(message), "{}", outcome.stdout);
    let latest = fs::read_link(place.file("output/datasets/it/latest")).unwrap();
    let shown = go().failed_with(4).stderr;
    assert_eq!(
        fs::read_dir(place.file("output/archive/vendor/.partial")).unwrap().count(),
        0,
        "nothing is resumed from it"
    );
    let expected = "error: the service no longer offers signals-history-batched-all, and signals-history-batched lists \
                    different tickers: missing B; new D\n";
    assert!(shown.contains(expected), "{shown}");
    assert_eq!(fs::read_link(place.file("output/datasets/it/latest")).unwrap(), latest);
}

#[test]
fn a_batch_of_other_series_is_no_replacement_and_each_series_is_asked_for() {
    let place = Place::new();
    let entry = r#"{"date":"2026-11-20T00:00:00","signal":"buy","confidence":0.5}"#;
    let history = move |ticker: &str, period: &str, regime: &str, name: &str| {
        format!(r#"{{"ticker":"{ticker}","regime":"{regime}","period":"{period}","{name}":[{entry}]}}"#)
    };
    let batch = move |series: [(&str, &str, &str); 2]| {
        let of = |(ticker, period, regime)| format!("\"{ticker}\":{}", history(ticker, period, regime, "items"));
        format!("{{{}}}", series.map(of).join(","))
    };
    let service = Scripted::of_histories(move |request| {
        let target = &*request.target;
        match request.before {
            0 if target.contains("batched-all") => json("200 OK", &batch([("A", "5d", "bull"), ("B", "1m", "bear")])),
            _ if target.contains("batched-all") => json("404 Not Found", "{}"),
            _ if target.contains("batched") => {
                json("200 OK", &batch([("A", "15d", "neutral"), ("B", "15d", "neutral")]))
            }
            _ if target.contains("/A?period=5d&regime=bull") => {
                json("200 OK", &history("A", "5d", "bull", "predictions"))
            }
            _ if target.contains("/B?period=1m&regime=bear") => {
                json("200 OK", &history("B", "1m", "bear", "predictions"))
            }
            _ => json("404 Not Found", "{}"),
        }
    });
    let signals = "[signals]\nhistory = \"batched\"\n[sentiment]\narticles = false\n";
    place.define("it", &format!("[source]\n{}{signals}", service.source()));
    let go = || Outcome::of(place.command(["run", "it"]).env("BELLWETHER_API_KEY", "demo")).expect_success();
    let series = || {
        let rows = dataset(&place);
        [texts(&rows, "ticker"), texts(&rows, "period"), texts(&rows, "regime")]
    };
    go();
    let before = series();
    for _ in 0..2 {
        let outcome = go();
        let note = "signals-history-batched has other periods and regimes than the archive, and is not used\n";
        assert!(outcome.stdout.contains(note), "{}", outcome.stdout);
        assert!(
            outcome.stdout.contains("used signals-history for 2 tickers: A, B, as listed in the archive"),
            "{}",
            outcome.stdout
        );
        assert_eq!(series(), before);
    }
    place.run(["build", "it"]).expect_success();
    assert_eq!(series(), before);
}

/// The service says at once what it lacks, and the rest later.
#[test]
fn tickers_that_each_lack_a_period_do_not_mean_that_the_operation_is_gone() {
    let place = Place::new();
    let service = Scripted::of_histories(|request| {
        let is_of = |ticker: &str, period: &str| {
            request.target.contains(&format!("/{ticker}?")) && request.target.contains(&format!("period={period}&"))
        };
        let (ticker, period) = match (is_of("ONE", "5d"), is_of("TWO", "15d")) {
            (true, _) => ("ONE", "5d"),
            (_, true) => ("TWO", "15d"),
            _ => return json("404 Not Found", "{}"),
        };
        let entry = r#"{"date":"2026-11-20T00:00:00Z","signal":"buy","confidence":0.5}"#;
        let history =
            format!(r#"{{"ticker":"{ticker}","regime":"neutral","period":"{period}","predictions":[{entry}]}}"#);
        [vec![Step::Wait(Duration::from_millis(500))], json("200 OK", &history)].concat()
    });
    let rest = "[signals]\nhistory = \"ticker\"\ntickers = [\"ONE\", \"TWO\"]\nperiods = [\"5d\", \"15d\"]\n\
                [sentiment]\narticles = false\n[checks]\nmissing = \"warn\"\n";
    place.define("it", &format!("[source]\n{}{rest}", service.source()));
    Outcome::of(place.command(["run", "it"]).env("BELLWETHER_API_KEY", "demo")).expect_success();
    assert_eq!(distinct(&dataset(&place), "ticker"), ["ONE", "TWO"]);
}

#[test]
fn news_that_is_not_offered_is_asked_for_a_few_times_and_costs_no_signals() {
    let histories = |sector: bool| {
        Scripted::start(move |request| {
            let entry = r#"{"date":"2026-11-20T00:00:00Z","signal":"buy","confidence":0.5}"#;
            let history = |ticker: &str, period: &str| {
                format!(r#"{{"ticker":"{ticker}","regime":"neutral","period":"{period}","predictions":[{entry}]}}"#)
            };
            let parameter = |name: &str| {
                let (_, rest) = request.target.split_once(name).unwrap_or_default();
                rest.split('&').next().unwrap_or_default().to_owned()
            };
            let period = parameter("period=");
            match request.target.strip_prefix("/a/signals-history") {
                None => json("404 Not Found", "{}"),
                Some(_) if sector => {
                    let name = parameter("sector=").to_uppercase();
                    json("200 OK", &format!("{{\"{name}\":{}}}", history(&name, &period)))
                }
                Some(rest) => {
                    let ticker = rest[1..].split('?').next().unwrap_or_default();
                    json("200 OK", &history(ticker, &period))
                }
            }
        })
    };
    let names: Vec<String> = (0..200).map(|number| format!("\"s{number}\"")).collect();
    let names = names.join(",");
    for (is_sector, signals) in
        [(true, format!("sectors = [{names}]\n")), (false, format!("history = \"ticker\"\ntickers = [{names}]\n"))]
    {
        let place = Place::new();
        let service = histories(is_sector);
        place.define("it", &format!("[source]\n{}[signals]\n{signals}", service.source()));
        let shown = Outcome::of(place.command(["run", "it"]).env("BELLWETHER_API_KEY", "demo")).failed_with(4).stderr;
        assert!(
            shown.contains("the service no longer offers news_articles (is `sentiment_base_url` correct?)"),
            "{shown}"
        );
        assert_eq!(service.histories(), 200, "all signals are archived");
        assert!(service.count() <= 215, "{} requests", service.count());
    }
}

#[test]
fn a_removed_ticker_list_is_replaced_by_the_last_one_received() {
    let place = Place::new();
    let service = at(&place, "all");
    let signals =
        "[signals]\nhistory = \"latest\"\nsectors = [\"energy\"]\nperiods = [\"1d\"]\n[sentiment]\narticles = false\n";
    run(&place, &service, &service, signals).expect_success();
    let later = at(&place, "C");
    let outcome = run(&place, &later, &later, signals).expect_success();
    assert!(outcome.stdout.contains("note      the service no longer offers signals-history-all: used 22 tickers: "));
    // Latest signals had no date then.
    assert_eq!(published_tickers(&place).len(), 22);
}

#[test]
fn a_404_for_everything_questions_the_base_url() {
    let place = Place::new();
    let service = at(&place, "D");
    let shown = run(&place, &service, &service, "[signals]\nsectors = [\"energy\"]\n").failed_with(1).stderr;
    let expected = format!(
        "error: `GET {}/signals-history-all` answered 404: is `base_url` correct?\n\
         hint: check the address; if it is correct, the service no longer offers signals-history-all, and the archive has \
         no list of tickers for signals-history\n",
        service.address("base_url")
    );
    assert!(shown.ends_with(&expected), "{shown}");
    // Without articles there are no counts, so a join with articles is not published.
    let rest = "[signals]\nhistory = \"ticker\"\ntickers = [\"XOM\"]\n";
    let shown = run(&place, &service, &service, rest).failed_with(4).stderr;
    let expected = "the service no longer offers news_articles (is `sentiment_base_url` correct?)\n";
    assert!(shown.contains(expected), "{shown}");
}

#[test]
fn a_404_among_other_answers_means_the_operation_is_not_offered() {
    let place = Place::new();
    let service = Scripted::start(|request| match request.target.starts_with("/a/tickers/available") {
        true => json("200 OK", "[\"XOM\"]"),
        false => json("404 Not Found", "{}"),
    });
    place.define(
        "it",
        &format!("[source]\n{}[signals]\nhistory = \"ticker\"\ntickers = \"available\"\n", service.source()),
    );
    let shown = Outcome::of(place.command(["run", "it"]).env("BELLWETHER_API_KEY", "demo")).failed_with(4).stderr;
    assert!(shown.contains("error: the service no longer offers operations that `it` needs: "), "{shown}");
}

#[test]
fn histories_per_ticker_are_read_under_both_keys() {
    // `items` at set E, `predictions` from D on.
    for change_set in ["E", "D", "all"] {
        let place = Place::new();
        let (service, news) = (at(&place, change_set), at(&place, "G"));
        let rest = "[signals]\nhistory = \"ticker\"\ntickers = [\"BRK.B\", \"XOM\"]\nperiods = [\"1d\", \"6m\"]\n";
        let outcome = run(&place, &service, &news, rest).expect_success();
        assert!(outcome.stderr.starts_with("signals: 4 requests, 5,024 rows"), "{change_set}: {}", outcome.stderr);
        assert_eq!(distinct(&dataset(&place), "ticker"), ["BRK.B", "XOM"]);
    }
}

#[test]
fn every_ticker_of_a_sector_or_of_the_service_needs_no_list() {
    let place = Place::new();
    let service = at(&place, "all");
    let rest = "[signals]\nhistory = \"latest\"\nsectors = [\"energy\"]\n[sentiment]\narticles = false\n";
    let outcome = run(&place, &service, &service, rest).expect_success();
    assert!(outcome.stderr.starts_with("tickers: 1 request, 27,632 rows"), "{}", outcome.stderr);
    assert!(outcome.stderr.contains("\nsignals: 22 requests, 22 rows"), "{}", outcome.stderr);
    let place = Place::new();
    let rest =
        "[signals]\nhistory = \"latest\"\ntickers = \"available\"\nperiods = [\"1d\"]\n[sentiment]\narticles = false\n";
    let outcome = run(&place, &service, &service, rest).expect_success();
    assert!(outcome.stderr.starts_with("tickers: 1 request, 500 rows"), "{}", outcome.stderr);
    assert_eq!(distinct(&read(&sealed_run(&place).join("signals.parquet")), "ticker").len(), 500);
}

#[test]
fn latest_signals_are_read_in_each_shape_and_null_dates_are_kept() {
    // `ei` and `ci` at set E; a nullable date from B on.
    for change_set in ["E", "D", "all"] {
        let place = Place::new();
        let service = at(&place, change_set);
        let periods: Vec<String> = (1..=30).map(|days| format!("\"{days}d\"")).collect();
        let rest = format!(
            "[signals]\nhistory = \"latest\"\ntickers = [\"XOM\", \"AAPL\", \"BRK.B\", \"MSFT\"]\nperiods = [{}]\n\
             [sentiment]\narticles = false\n",
            periods.join(", ")
        );
        run(&place, &service, &service, &rest).expect_success();
        let archived = read(&sealed_run(&place).join("signals.parquet"));
        assert_eq!(archived.num_rows(), 120, "{change_set}");
        let undated = texts(&archived, "date").iter().filter(|date| date.is_none()).count();
        assert_eq!(undated > 0, change_set == "all", "{change_set}: {undated} without a date");
        // Signals without a date are in the archive but not in datasets.
        assert_eq!(dataset(&place).num_rows(), 120 - undated);
        assert!(distinct(&archived, "signal").iter().all(|signal| signal == "buy" || signal == "sell"));
    }
}

#[test]
fn summaries_are_read_in_both_shapes_and_historical_sentiment_as_text() {
    for (change_set, has_articles) in [("origin", false), ("G", true)] {
        let place = Place::new();
        let (signals, news) = (at(&place, "all"), at(&place, change_set));
        let rest = "[signals]\nhistory = \"latest\"\ntickers = [\"XOM\", \"BRK.B\"]\n\
                    [sentiment]\narticles = false\nsummary = true\nhistorical = true\n";
        if !has_articles {
            let place = Place::new();
            let shown = run(&place, &signals, &news, rest).failed_with(4).stderr;
            assert!(shown.contains("because: the service no longer offers historical_ss_data\n"), "{shown}");
        }
        let rest = format!("{rest}[checks]\nmissing = \"warn\"\n");
        let outcome = run(&place, &signals, &news, &rest).expect_success();
        let folder = sealed_run(&place);
        let summaries = read(&folder.join("summaries.parquet"));
        assert_eq!(distinct(&summaries, "ticker"), ["BRK.B", "XOM"], "{change_set}");
        assert!(texts(&summaries, "low_score").iter().all(Option::is_some));
        assert_eq!(texts(&summaries, "low_date").iter().all(Option::is_some), has_articles);
        assert_eq!(texts(&summaries, "low_summary").iter().all(Option::is_some), !has_articles);
        assert_eq!(
            outcome.stdout.contains("note      the service no longer offers historical_ss_data\n"),
            !has_articles
        );
        let history = read(&folder.join("sentiment_history.parquet"));
        if has_articles {
            let record: serde_json::Value =
                serde_json::from_str(texts(&history, "record")[0].as_ref().unwrap()).unwrap();
            assert!(record["date"].is_string() && record["score"].is_number(), "{record}");
        } else {
            assert_eq!(history.num_rows(), 0);
        }
    }
}

#[test]
fn news_may_cover_other_tickers_than_signals() {
    let place = Place::new();
    let service = at(&place, "all");
    let rest = "[signals]\nhistory = \"ticker\"\ntickers = [\"XOM\"]\n[sentiment]\ntickers = [\"XOM\", \"AAPL\"]\n";
    run(&place, &service, &service, rest).expect_success();
    assert_eq!(distinct(&read(&sealed_run(&place).join("articles.parquet")), "ticker"), ["AAPL", "XOM"]);
    assert_eq!(distinct(&dataset(&place), "ticker"), ["XOM"]);
    assert!(fs::exists(place.file("output/datasets/it/latest")).unwrap());
}
