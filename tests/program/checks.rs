//! Exit code 0 means that everything requested is there. If data is missing, lost or different, the run is archived but
//! not published, with an exit code and a message.

use std::fs;
use std::path::PathBuf;
use std::sync::{Arc, Mutex};

use crate::support::program::{Outcome, Place};
use crate::support::rows::{distinct, read};
use crate::support::scripted::{Scripted, ScriptedRequest, Step, json};

pub(super) const ENTRY: &str = r#"{"date":"2026-11-20T00:00:00+00:00","signal":"buy","confidence":0.5}"#;

/// The history of a ticker, as JSON in an answer.
pub(super) fn history(ticker: &str, period: &str, entries: &str) -> String {
    format!(r#""{ticker}":{{"ticker":"{ticker}","regime":"neutral","period":"{period}","predictions":[{entries}]}}"#)
}

/// An answer with a history of each ticker, for the requested period.
pub(super) fn of_tickers<T: AsRef<str>>(request: &ScriptedRequest, tickers: &[T]) -> Vec<Step> {
    let period = parameter(request, "period");
    let histories: Vec<String> = tickers.iter().map(|ticker| history(ticker.as_ref(), &period, ENTRY)).collect();
    json("200 OK", &format!("{{{}}}", histories.join(",")))
}

pub(super) fn parameter(request: &ScriptedRequest, name: &str) -> String {
    let (_, query) = request.target.split_once('?').unwrap_or_default();
    let pair = query.split('&').filter_map(|pair| pair.split_once('=')).find(|(key, _)| *key == name);
    pair.map_or_else(String::new, |(_, value)| value.to_owned())
}

/// A service whose histories a test can replace between runs.
pub(super) struct ChangingService {
    pub(super) service: Scripted,
    tickers: Arc<Mutex<Vec<String>>>,
}

impl ChangingService {
    pub(super) fn new(tickers: &[String]) -> Self {
        let tickers = Arc::new(Mutex::new(tickers.to_vec()));
        let now = Arc::clone(&tickers);
        let service =
            Scripted::of_histories(move |request| of_tickers(request, &now.lock().expect("no test panicked")));
        Self { service, tickers }
    }

    pub(super) fn become_one_of(&self, tickers: &[String]) {
        *self.tickers.lock().expect("no test panicked") = tickers.to_vec();
    }
}

pub(super) fn tickers(numbers: impl Iterator<Item = usize>) -> Vec<String> {
    numbers.map(|number| format!("T{number:02}")).collect()
}

pub(super) fn define(place: &Place, service: &Scripted, rest: &str) {
    place.define("it", &format!("[source]\n{}{rest}[sentiment]\narticles = false\n", service.source()));
}

pub(super) fn run(place: &Place) -> Outcome {
    Outcome::of(place.command(["run", "it"]).env("BELLWETHER_API_KEY", "demo"))
}

fn runs(place: &Place) -> usize {
    let entries = fs::read_dir(place.file("output/archive/vendor")).expect("an archive").flatten();
    entries.filter(|entry| entry.file_name().to_string_lossy().starts_with("run=")).count()
}

/// The folder of the only run.
fn sealed_run(place: &Place) -> PathBuf {
    let entries = fs::read_dir(place.file("output/archive/vendor")).expect("an archive").flatten();
    let mut runs = entries.map(|entry| entry.path()).filter(|path| path.join("run.json").exists());
    runs.next().expect("a run")
}

pub(super) fn latest(place: &Place) -> Option<PathBuf> {
    fs::read_link(place.file("output/datasets/it/latest")).ok()
}

fn published_tickers(place: &Place) -> Vec<String> {
    distinct(&read(&place.file("output/datasets/it/latest/it.parquet")), "ticker")
}

#[test]
fn a_sector_without_data_is_named_and_nothing_is_published() {
    let all_empty = format!("{{{},{}}}", history("AAPL", "15d", ""), history("MSFT", "15d", ""));
    let cases = [
        ("enery", json("200 OK", "{}"), "`enery` (did you mean `energy`?): the answer is empty"),
        ("enery", json("404 Not Found", "{}"), "`enery` (did you mean `energy`?): the service does not know it"),
        ("technology", json("200 OK", "{}"), "`technology`: the answer is empty"),
        (
            "technology",
            json("200 OK", r#"{"error": "overloaded"}"#),
            "`technology`: every record in the answer was rejected",
        ),
        ("technology", json("200 OK", &all_empty), "`technology`: every history in the answer is empty"),
    ];
    for (sector, answer, printed) in cases {
        let place = Place::new();
        let service = Scripted::of_histories(move |request| match parameter(request, "sector").as_str() {
            "energy" => of_tickers(request, &["XOM", "CVX"]),
            _ => answer.clone(),
        });
        let signals = format!("[signals]\nsectors = [\"{sector}\", \"energy\"]\n[rejects]\nmax_share = 1.0\n");
        define(&place, &service, &signals);
        let shown = run(&place).failed_with(4).stderr;
        let expected = format!(
            "error: nothing was published for `it`: 1 check failed\n  because: no signals for sector {printed}\n\
             hint: the archive keeps what was fetched, and `latest` is unchanged; set `missing = \"warn\"` in \
             `[checks]` to publish without it\n"
        );
        assert!(shown.ends_with(&expected), "{shown}");
        assert_eq!((runs(&place), latest(&place)), (1, None), "{printed}");
        define(&place, &service, &format!("{signals}[checks]\nmissing = \"warn\"\n"));
        let outcome = run(&place).expect_success();
        assert!(outcome.stdout.contains(&format!("note      no signals for sector {printed}\n")), "{}", outcome.stdout);
        assert_eq!(published_tickers(&place), ["CVX", "XOM"]);
    }
}

#[test]
fn unreadable_answers_are_named_when_there_are_too_many() {
    let place = Place::new();
    let service = Scripted::of_histories(|request| match parameter(request, "sector").as_str() {
        "energy" => of_tickers(request, &["XOM", "CVX"]),
        _ => json("200 OK", r#"{"error": "overloaded"}"#),
    });
    define(&place, &service, "[signals]\nsectors = [\"technology\", \"energy\"]\n");
    let shown = run(&place).failed_with(4).stderr;
    let expected = "\
error: rejected 1 of 3 records and 1 of 3 series of signals-history-all, above the limit of 1.00 %
  because: every record was rejected in the answer to `signals-history-all sector=technology period=15d regime=neutral`
";
    assert!(shown.contains(expected), "{shown}");
    assert!(latest(&place).is_none());
}

#[test]
fn all_missing_data_is_reported_at_once() {
    let place = Place::new();
    let service =
        Scripted::of_histories(move |request| match (&*parameter(request, "sector"), &*parameter(request, "period")) {
            ("energy", "5d") => json("200 OK", "{}"),
            ("energy", _) => of_tickers(request, &["XOM"]),
            _ => json("404 Not Found", "{}"),
        });
    define(&place, &service, "[signals]\nsectors = [\"energy\", \"b\", \"c\"]\nperiods = [\"5d\", \"1m\"]\n");
    let shown = run(&place).failed_with(4).stderr;
    let expected = "\
error: nothing was published for `it`: 3 checks failed
  because: no signals for sector `b`: the service does not know it
  because: no signals for sector `c`: the service does not know it
  because: no signals for sector `energy` with 5d neutral: the answer is empty
";
    assert!(shown.contains(expected), "{shown}");
}

#[test]
fn tickers_without_data_are_named_for_every_operation() {
    let place = Place::new();
    let known = ["XOM", "CVX"];
    let service = Scripted::start(move |request| {
        let name =
            request.target.rsplit('/').next().unwrap_or_default().split('?').next().unwrap_or_default().to_owned();
        match (known.contains(&&*name), request.target.starts_with("/b/")) {
            (false, _) => json("404 Not Found", "{}"),
            (true, true) => json("200 OK", "[]"),
            (true, false) => json("200 OK", history(&name, "15d", ENTRY).split_once(':').expect("a member").1),
        }
    });
    let of = |signals: &str, sentiment: &str, checks: &str| {
        let signals = format!("[signals]\nhistory = \"ticker\"\ntickers = {signals}\n");
        place.define(
            "it",
            &format!("[source]\n{}{signals}[sentiment]\ntickers = {sentiment}\n{checks}", service.source()),
        );
        run(&place)
    };
    let shown = of(r#"["XOM", "XMO"]"#, "\"signals\"", "").failed_with(4).stderr;
    assert!(shown.contains("because: no signals for ticker `XMO` (did you mean `XOM`?)\n"), "{shown}");
    let shown = of(r#"["XOM", "B", "C"]"#, r#"["XOM", "ZZZZ"]"#, "").failed_with(4).stderr;
    assert!(shown.contains("because: no signals for 2 tickers: B, C\n"), "{shown}");
    assert!(shown.contains("because: no data in news_articles for ticker `ZZZZ`\n"), "{shown}");
    let outcome = of(r#"["XOM", "B"]"#, r#"["XOM", "ZZZZ"]"#, "[checks]\nmissing = \"warn\"\n").expect_success();
    for note in ["note      no signals for ticker `B`\n", "note      no data in news_articles for ticker `ZZZZ`\n"] {
        assert!(outcome.stdout.contains(note), "{}", outcome.stdout);
    }
}

#[test]
fn a_sector_of_newly_empty_histories_fails_the_run_and_leaves_latest() {
    let place = Place::new();
    let service = Scripted::of_histories(|request| match request.before {
        0 | 2 => of_tickers(request, &["XOM", "CVX"]),
        _ => json("200 OK", &format!("{{{},{}}}", history("XOM", "15d", ""), history("CVX", "15d", ""))),
    });
    define(&place, &service, "[signals]\nsectors = [\"energy\"]\n");
    run(&place).expect_success();
    let before = latest(&place);
    let shown = run(&place).failed_with(4).stderr;
    assert!(shown.contains("no signals for sector `energy`: every history in the answer is empty\n"), "{shown}");
    assert_eq!((runs(&place), latest(&place)), (2, before.clone()));
    let shown = place.run(["build", "it"]).failed_with(4).stderr;
    assert!(shown.contains("no signals for sector `energy`: there were none in the last answer\n"), "{shown}");
    assert_eq!(latest(&place), before, "a build publishes no more than a run");
    run(&place).expect_success();
    assert_ne!(latest(&place), before, "it is well again");
}

#[test]
fn a_sector_that_disappears_is_not_published_from_old_answers() {
    let place = Place::new();
    let service = Scripted::of_histories(|request| match (parameter(request, "sector").as_str(), request.before) {
        ("utilities", 1) => json("404 Not Found", "{}"),
        ("energy", _) => of_tickers(request, &["XOM"]),
        _ => of_tickers(request, &["NEE"]),
    });
    define(&place, &service, "[signals]\nsectors = [\"energy\", \"utilities\"]\n[checks]\nuniverse = 1.0\n");
    run(&place).expect_success();
    let before = latest(&place);
    let shown = run(&place).failed_with(4).stderr;
    assert!(shown.contains("no signals for sector `utilities`: the service does not know it\n"), "{shown}");
    let shown = place.run(["build", "it"]).failed_with(4).stderr;
    assert!(shown.contains("no signals for sector `utilities`: the last run got no answer\n"), "{shown}");
    assert_eq!(latest(&place), before);
    run(&place).expect_success();
    place.run(["build", "it"]).expect_success();
}

#[test]
fn newly_empty_histories_count_as_missing() {
    let place = Place::new();
    let body = |empty: usize| {
        let entries = |at| if at < empty { "" } else { ENTRY };
        let histories: Vec<String> = (0..10).map(|at| history(&format!("T{at:02}"), "15d", entries(at))).collect();
        json("200 OK", &format!("{{{}}}", histories.join(",")))
    };
    let service = Scripted::of_histories(move |request| body([2, 5, 2, 2][request.before.min(3)]));
    define(&place, &service, "[signals]\nsectors = [\"energy\"]\n");
    run(&place).expect_success();
    let before = latest(&place);
    for command in ["run", "build"] {
        let go = || Outcome::of(place.command([command, "it"]).env("BELLWETHER_API_KEY", "demo"));
        let shown = go().failed_with(4).stderr;
        assert!(shown.contains("because: 3 of 8 tickers disappeared since version `"), "{command}: {shown}");
        assert!(shown.contains(": T02, T03, T04\n"), "{command}: {shown}");
        assert_eq!(latest(&place), before, "{command}");
    }
    // Tickers that never had a signal do not count.
    run(&place).expect_success();
    run(&place).expect_success();
}

#[test]
fn empty_histories_among_others_are_named() {
    let place = Place::new();
    let service = Scripted::of_histories(|_| {
        json("200 OK", &format!("{{{},{}}}", history("XOM", "15d", ENTRY), history("AAPL", "15d", "")))
    });
    define(&place, &service, "[signals]\nsectors = [\"energy\"]\n");
    let outcome = run(&place).expect_success();
    let note = "note      empty histories for 1 series: AAPL 15d neutral\n";
    assert!(outcome.stdout.contains(note), "{}", outcome.stdout);
}

#[test]
fn a_latest_signal_without_a_date_is_told_and_no_failure() {
    let place = Place::new();
    let service = Scripted::start(|request| {
        let ticker = request.target.rsplit_once("signals/").expect("a latest signal").1;
        let ticker = ticker.split('?').next().expect("a ticker");
        let date = if ticker == "XOM" { "\"2026-11-20T00:00:00\"" } else { "null" };
        let body = format!(
            "{{\"ticker\":\"{ticker}\",\"date\":{date},\"period\":\"15d\",\"regime\":\"neutral\",\"signal\":\"buy\",\"confidence\":0.5}}"
        );
        json("200 OK", &body)
    });
    let signals =
        "[signals]\nhistory = \"latest\"\ntickers = [\"XOM\", \"CVX\"]\nperiods = [\"15d\"]\nregimes = [\"neutral\"]\n";
    define(&place, &service, signals);
    let outcome = run(&place).expect_success().stdout;
    assert!(outcome.contains("undated   1 latest signal without a date, archived and in no dataset\n"), "{outcome}");
    assert_eq!(published_tickers(&place), ["XOM"]);
}

#[test]
fn records_in_a_second_history_of_a_ticker_are_counted() {
    let place = Place::new();
    let two = format!("{ENTRY},{}", ENTRY.replace("-20T", "-19T"));
    let body = format!(
        "{{{},{},{}}}",
        history("XOM", "15d", ENTRY),
        history("CVX", "15d", ENTRY),
        history("XOM", "15d", &two)
    );
    let offset = body.rfind(r#"{"ticker":"XOM""#).expect("it stands there");
    let service = Scripted::of_histories(move |_| json("200 OK", &body));
    define(&place, &service, "[signals]\nsectors = [\"energy\"]\n[rejects]\nmax_share = 0.5\n");
    let outcome = run(&place).expect_success();
    assert!(outcome.stdout.contains("rejected  2 records\n"), "{}", outcome.stdout);
    let rejects = read(&sealed_run(&place).join("rejects.parquet"));
    let reason = format!("duplicate ticker `XOM`: another history starts at byte {offset}; the first is kept");
    assert_eq!(distinct(&rejects, "reason"), [reason]);
}

#[test]
fn records_with_different_values_in_two_answers_are_counted() {
    let place = Place::new();
    let service = Scripted::of_histories(|request| {
        let (energy, two) = (
            parameter(request, "sector") == "energy",
            format!("{},{}", ENTRY.replace("0.5", "0.25"), ENTRY.replace("-20T", "-19T")),
        );
        let histories = [history("XOM", "15d", if energy { ENTRY } else { &two }), history("CVX", "15d", ENTRY)];
        json("200 OK", &format!("{{{}}}", histories.join(",")))
    });
    let signals = "[signals]\nsectors = [\"energy\", \"utilities\"]\n";
    let reason = ["another history of the series 15d neutral has other values; the earlier ones are kept"];
    define(&place, &service, signals);
    let refused = run(&place).failed_with(4).stderr;
    assert!(refused.contains("rejected 1 of 5 records of signals-history-all, above the limit of 1.00 %"), "{refused}");
    assert_eq!(distinct(&read(&sealed_run(&place).join("rejects.parquet")), "reason"), reason);

    let place = Place::new();
    define(&place, &service, &format!("{signals}[rejects]\nmax_share = 0.5\n"));
    let outcome = run(&place).expect_success();
    assert!(outcome.stdout.contains("rejected  1 record\n"), "{}", outcome.stdout);
    assert_eq!(distinct(&read(&sealed_run(&place).join("rejects.parquet")), "reason"), reason);
    let audited = place.run(["audit", "quality", "it"]).expect_success().stdout;
    assert!(audited.contains("has other values; the earlier ones are kept"), "{audited}");
}

#[test]
fn filter_values_that_match_nothing_are_named() {
    let place = Place::new();
    let vendor = ChangingService::new(&["XOM".to_owned(), "CVX".to_owned()]);
    define(&place, &vendor.service, "[signals]\nsectors = [\"energy\"]\nperiods = [\"15d\"]\n");
    run(&place).expect_success();
    let before = latest(&place);
    let cases: [(&[&str], &str); 7] = [
        (&["--ticker", "ZZZZ"], "no signals for ticker `ZZZZ`\n"),
        (&["--ticker", "xom"], "no signals for ticker `xom` (did you mean `XOM`?)\n"),
        (&["--ticker", "XOM", "--ticker", "XMO"], "no signals for ticker `XMO` (did you mean `XOM`?)\n"),
        (&["--ticker", "XOM", "--ticker", "A1", "--ticker", "B1"], "no signals for 2 tickers: A1, B1\n"),
        (&["--sector", "enery"], "no signals for sector `enery` (did you mean `energy`?)\n"),
        (&["--period", "15d", "--period", "5d"], "no signals for period `5d`\n"),
        (&["--regime", "bull", "--regime", "neutral"], "no signals for regime `bull`\n"),
    ];
    for (filter, printed) in cases {
        for output in [&[][..], &["--output", "-"], &["--output", "rows.csv"]] {
            let outcome = place.run([&["build", "it", "--format", "csv"], output, filter].concat()).failed_with(2);
            assert_eq!(outcome.stdout, "");
            let hint = "hint: select what the archive has; `bellwether run` fetches what the definition asks for\n";
            assert_eq!(outcome.stderr, format!("error: {printed}{hint}"));
        }
    }
    assert_eq!(latest(&place), before);
    place.run(["build", "it", "--ticker", "XOM", "--sector", "energy", "--period", "15d"]).expect_success();
    define(&place, &vendor.service, "[signals]\nsectors = [\"energy\"]\n[filter]\ntickers = [\"XOM\", \"ZZZZ\"]\n");
    let shown = run(&place).failed_with(4).stderr;
    assert!(shown.contains("because: no signals for ticker `ZZZZ`\n"), "{shown}");
    let shown = place.run(["build", "it", "--ticker", "CVX"]).failed_with(2).stderr;
    assert!(shown.contains("the definition filters out ticker `CVX`\n"), "{shown}");
    define(&place, &vendor.service, "[signals]\nsectors = [\"energy\"]\n[filter]\nperiods = [\"15d\", \"5d\"]\n");
    let shown = place.run(["check", "it"]).failed_with(2).stderr;
    assert!(shown.contains("`[signals]` does not fetch period `5d`"), "{shown}");
}

#[test]
fn invalid_checks_are_refused_at_their_line() {
    let place = Place::new();
    place.define(
        "it",
        "[source]\nservice = \"demo\"\n[signals]\nsectors = [\"energy\"]\n[checks]\nmissing = \"ignore\"\nuniverse = 20.0\n",
    );
    let shown = place.run(["check", "it"]).failed_with(2).stderr;
    for printed in ["unknown action `ignore`", "it.toml:6:11", "20 is out of range", "it.toml:7:12"] {
        assert!(shown.contains(printed), "{printed}: {shown}");
    }
}

#[test]
fn the_help_explains_each_exit_code() {
    let shown = Place::new().run(["--help"]).expect_success().stdout;
    let (_, codes) = shown.split_once("Exit codes:\n").expect("they have a heading");
    let codes: Vec<&str> = codes.lines().filter_map(|line| line.split_whitespace().next()).collect();
    assert_eq!(codes, ["0", "1", "2", "3", "4", "5", "75", "130"]);
}
