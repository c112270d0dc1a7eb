//! What a definition can say beyond the usual: pairs of period and regime, tickers to leave out, addresses from the
//! environment, and rows by what they say.

use std::collections::BTreeSet;
use std::fs;

use serde_json::Value;

use crate::support::program::{Outcome, Place};
use crate::support::rows::{distinct, read, texts};
use crate::support::scripted::{Scripted, json};

const KEY: (&str, &str) = ("BELLWETHER_API_KEY", "demo");

/// A definition of signals of the demo without news.
fn of_demo(signals: &str) -> String {
    format!("[source]\nservice = \"demo\"\n[dataset]\nkind = \"signals\"\n[signals]\n{signals}")
}

/// The distinct values of some columns together.
fn together(place: &Place, columns: &[&str]) -> BTreeSet<String> {
    let rows = read(&place.file("output/datasets/it/latest/it.parquet"));
    let columns: Vec<Vec<Option<String>>> = columns.iter().map(|column| texts(&rows, column)).collect();
    let row =
        |row: usize| columns.iter().map(|column| column[row].clone().expect("no null")).collect::<Vec<_>>().join(" ");
    (0..rows.num_rows()).map(row).collect()
}

#[test]
fn pairs_are_requested_as_they_are_and_not_each_period_with_each_regime() {
    const PAIRS: &str = "pairs = [\"5d bull\", \"1m neutral\"]\n";
    let expected = BTreeSet::from(["5d bull", "1m neutral"].map(str::to_owned));
    for (form, requests) in [
        ("sectors = \"energy\"\n", 2),
        ("tickers = [\"XOM\", \"CVX\"]\n", 4),
        ("history = \"latest\"\ntickers = \"XOM\"\n", 2),
        ("history = \"batched\"\n", 1),
    ] {
        let place = Place::new();
        place.define("it", &of_demo(&format!("{form}{PAIRS}")));
        let shown = place.run(["check", "it"]).expect_success().stdout;
        assert!(shown.contains(&format!("requests: {requests}\n")), "{shown}");
        let document: Value =
            serde_json::from_str(&place.run(["check", "it", "--json"]).expect_success().stdout).unwrap();
        let plan = &document["definitions"][0]["plan"];
        assert_eq!(plan["signals"][0]["requests"].as_array().unwrap().len(), requests, "{document}");
        place.run(["run", "it"]).expect_success();
        assert_eq!(together(&place, &["period", "regime"]), expected, "{form}");
    }
}

#[test]
fn a_pair_that_cannot_be_is_explained_at_its_place() {
    let place = Place::new();
    let demo = "sectors = \"energy\"\n";
    for (signals, error, hint) in [
        ("pairs = \"5d bul\"\n", "unknown regime `bul` in `5d bul`", "did you mean `bull`?"),
        (
            "pairs = [\"5d bull\", \"45d bull\"]\n",
            "unknown period `45d` in `45d bull`",
            "periods are 1d to 30d and 1m to 6m",
        ),
        ("pairs = \"bull 5d\"\n", "`bull 5d` is not a pair", "the period comes first: `5d bull`"),
        ("pairs = \"5d\"\n", "`5d` is not a pair", "use a period and a regime, such as `5d bull`"),
        ("pairs = [\"5d bull\", \"5d bull\"]\n", "duplicate pair `5d bull`", "remove one"),
        (
            "pairs = \"5d bull\"\nperiods = \"5d\"\n",
            "`pairs` and `periods` are mutually exclusive",
            "remove `periods`: each pair names a period and a regime",
        ),
        (
            "pairs = \"5d bull\"\nregimes = \"bull\"\n",
            "`pairs` and `regimes` are mutually exclusive",
            "remove `regimes`: each pair names a period and a regime",
        ),
        (
            "pairs = [\"5d bull\", \"1m bear\"]\n[filter]\nregimes = \"neutral\"\n",
            "`[signals]` does not fetch regime `neutral`",
            "add it to `pairs` in `[signals]`",
        ),
        (
            "pairs = [\"5d bull\", \"1m bear\"]\n[filter]\nperiods = \"5d\"\nregimes = \"bear\"\n",
            "no pair of `pairs` has one of these periods and one of these regimes",
            "add the pair to `[signals]`",
        ),
    ] {
        place.define("odd", &of_demo(&format!("{demo}{signals}")));
        let shown = place.run(["check", "odd"]).failed_with(2).stderr;
        assert!(shown.contains(&format!("error: {error}\n")) && shown.contains(hint), "{signals}{shown}");
        assert_eq!(shown.matches("error: ").count(), 1, "{shown}");
    }
}

#[test]
fn excluded_tickers_have_no_requests_and_no_rows_however_signals_are_fetched() {
    for form in [
        "sectors = \"utilities\"\n",
        "history = \"ticker\"\nsectors = \"utilities\"\n",
        "history = \"batched\"\n[checks]\nuniverse = 1.0\n",
        "tickers = [\"NEE\", \"DUK\", \"SO\"]\n",
    ] {
        let place = Place::new();
        let define = |exclude: &str| {
            let text = format!("[source]\nservice = \"demo\"\n[signals]\n{exclude}{form}");
            let text = if form.contains("batched") { text + "[dataset]\nkind = \"signals\"\n" } else { text };
            place.define("it", &text);
        };
        let tickers = || distinct(&read(&place.file("output/datasets/it/latest/it.parquet")), "ticker");
        define("");
        place.run(["run", "it"]).expect_success();
        let all = tickers();
        assert!(all.contains(&"NEE".to_owned()) && all.contains(&"DUK".to_owned()), "{form}: {all:?}");
        define("exclude = [\"NEE\", \"DUK\"]\n");
        let plan = place.run(["check", "it"]).expect_success().stdout;
        assert!(plan.contains("\n  without DUK, NEE\n"), "{plan}");
        place.run(["run", "it"]).expect_success();
        let expected: Vec<String> =
            all.iter().filter(|ticker| !["NEE", "DUK"].contains(&&***ticker)).cloned().collect();
        assert_eq!(tickers(), expected, "{form}");
        let run = fs::read_to_string(place.file("output/datasets/it/latest/dataset.json")).unwrap();
        let run: Value = serde_json::from_str(&run).unwrap();
        let latest = run["runs"].as_array().unwrap().last().unwrap().as_str().unwrap().to_owned();
        let requests = read(&place.file(&format!("output/archive/demo/run={latest}/requests.parquet")));
        let asked: Vec<String> = texts(&requests, "request").into_iter().flatten().collect();
        assert!(!asked.is_empty() && asked.iter().all(|request| !request.contains("/NEE")), "{form}: {asked:?}");
        let refused = place.run(["build", "it", "--ticker", "NEE"]).failed_with(2).stderr;
        assert!(refused.contains("ticker `NEE`"), "{refused}");
    }
}

#[test]
fn a_ticker_that_is_excluded_in_vain_is_an_error_with_a_suggestion() {
    let place = Place::new();
    place.define("it", &of_demo("sectors = \"utilities\"\nexclude = \"NEEE\"\n"));
    let shown = place.run(["run", "it"]).failed_with(4).stderr;
    assert!(shown.contains("nothing to exclude for ticker `NEEE` (did you mean `NEE`?)"), "{shown}");
    for (signals, error) in [
        ("tickers = [\"NEE\", \"DUK\"]\nexclude = \"DUKE\"\n", "`[signals]` does not fetch ticker `DUKE`"),
        ("tickers = [\"NEE\", \"DUK\"]\nexclude = [\"DUK\", \"NEE\"]\n", "`exclude` leaves no ticker"),
        ("sectors = \"utilities\"\nexclude = []\n", "empty list: at least one ticker is required"),
        (
            "sectors = \"utilities\"\nexclude = \"DUK\"\n[filter]\ntickers = [\"NEE\", \"DUK\"]\n",
            "`exclude` in `[signals]` leaves out ticker `DUK`",
        ),
    ] {
        place.define("odd", &of_demo(signals));
        let shown = place.run(["check", "odd"]).failed_with(2).stderr;
        assert!(shown.starts_with(&format!("error: {error}\n")) && shown.contains("hint: "), "{signals}{shown}");
    }
    place.define("odd", &of_demo("tickers = [\"NEE\", \"DUK\"]\nexclude = \"DUKE\"\n"));
    assert!(place.run(["check", "odd"]).failed_with(2).stderr.contains("did you mean `DUK`?"));
}

const REST: &str = "[signals]\nsectors = \"energy\"\nperiods = \"15d\"\n[sentiment]\narticles = false\n";

fn vendor(confidence: &'static str) -> Scripted {
    let entry = format!(r#"{{"date":"2026-11-19T00:00:00","signal":"buy","confidence":{confidence}}}"#);
    let history = format!(r#"{{"XOM":{{"ticker":"XOM","regime":"neutral","period":"15d","predictions":[{entry}]}}}}"#);
    Scripted::of_histories(move |_| json("200 OK", &history))
}

/// The variables of a service's addresses.
fn variables(service: &Scripted, names: [&str; 2]) -> Vec<(String, String)> {
    let source = service.source();
    let address = |key: &str| {
        let line = source.lines().find(|line| line.starts_with(key)).expect("an address");
        line.split('"').nth(1).expect("its value").to_owned()
    };
    vec![(names[0].to_owned(), address("base_url")), (names[1].to_owned(), address("sentiment_base_url"))]
}

#[test]
fn one_definition_asks_the_service_of_the_environment_and_keeps_two_apart() {
    let (staging, production) = (vendor("0.25"), vendor("0.75"));
    let of_names = ["VENDOR_URL", "VENDOR_NEWS_URL"];
    let usual = ["BELLWETHER_BASE_URL", "BELLWETHER_SENTIMENT_BASE_URL"];
    let typed = "base_url = \"$VENDOR_URL\"\nsentiment_base_url = \"$VENDOR_NEWS_URL\"\n";
    for (source, names) in [(typed, of_names), ("", usual)] {
        let place = Place::new();
        place.define("it", &format!("[source]\n{source}{REST}"));
        let with = |service: &Scripted, arguments: &[&str]| {
            Outcome::of(place.command(arguments).envs([KEY]).envs(variables(service, names)))
        };
        let shown = with(&production, &["check", "it"]).expect_success().stdout;
        let address = &variables(&production, names)[0].1;
        assert!(shown.contains(&format!("base_url: {address}")), "{shown}");
        assert!(shown.contains(&format!("from the environment: {}, {}", names[0], names[1])), "{shown}");
        let document = with(&production, &["check", "it", "--json"]).expect_success().stdout;
        let document: Value = serde_json::from_str(&document).unwrap();
        let plan = &document["definitions"][0]["plan"];
        assert_eq!(plan["address_variables"], serde_json::json!(names), "{document}");
        place.define("due", &format!("[source]\n{source}{REST}[schedule]\ncron = \"@daily\"\n"));
        let printed = with(&production, &["schedule", "print", "--for", "crontab"]).expect_success().stdout;
        let left_out = names.map(|name| format!("`{name}`"));
        assert!(left_out.iter().all(|name| printed.contains(name)), "{printed}");
        fs::remove_file(place.file("pipelines/due.toml")).unwrap();
        with(&production, &["run", "it"]).expect_success();
        // The same folder goes on with one service.
        let before = staging.count();
        let refused = with(&staging, &["run", "it"]).failed_with(2).stderr;
        assert!(refused.contains(&format!("set `{}` and `{}` as before", names[0], names[1])), "{refused}");
        assert!(!refused.contains("name = "), "{refused}");
        assert_eq!(staging.count(), before, "nothing is fetched before");
        with(&staging, &["run", "it", "--data", "staging", "--archive", "output/archive"]).expect_success();
        let services: Vec<_> = fs::read_dir(place.file("output/archive")).unwrap().map(Result::unwrap).collect();
        let services = services.iter().filter(|entry| !entry.file_name().to_string_lossy().starts_with('.')).count();
        assert_eq!(services, 2);
        with(&production, &["run", "it"]).expect_success();
        let confidence = |data: &str| {
            let rows = read(&place.file(&format!("{data}/datasets/it/latest/it.parquet")));
            texts(&rows, "confidence")
        };
        assert_eq!(confidence("output"), [Some("0.75".to_owned())]);
        assert_eq!(confidence("staging"), [Some("0.25".to_owned())]);
    }
}

#[test]
fn a_variable_that_holds_no_address_is_named_and_its_value_is_never_shown() {
    let place = Place::new();
    let check = |source: &str, variables: &[(&str, &str)]| {
        place.define("odd", &format!("[source]\n{source}{REST}"));
        Outcome::of(place.command(["check", "odd"]).envs(variables.iter().copied()))
    };
    let typed = "base_url = \"$VENDOR_URL\"\nsentiment_base_url = \"https://b.example/\"\n";
    for value in [None, Some("")] {
        let variables: Vec<_> = value.map(|value| ("VENDOR_URL", value)).into_iter().collect();
        let shown = check(typed, &variables).failed_with(2).stderr;
        assert!(shown.starts_with("error: the variable `VENDOR_URL` is not set\n"), "{shown}");
        assert!(shown.contains("odd.toml:2:12") && shown.contains("hint: set it: `export VENDOR_URL="), "{shown}");
    }
    for (value, reason) in [
        ("S3CRET", "not an address of the web"),
        ("S3CRET:password", "not an address of the web"),
        ("https://me:S3CRET@a.example/", "an address with a user name or password"),
        ("https://a.example/?key=S3CRET", "the address must not have a query"),
        ("http://S3CRET.example/", "plain http would send the API key unencrypted"),
        ("https://S3CRET .example/", "not an address"),
    ] {
        for (source, name) in [(typed, "VENDOR_URL"), ("", "BELLWETHER_BASE_URL")] {
            let shown = check(source, &[(name, value)]).failed_with(2).stderr;
            assert!(shown.contains(&format!("the variable `{name}`: {reason}")), "{value}: {shown}");
            assert!(!shown.to_lowercase().contains("s3cret"), "{shown}");
        }
    }
    let fine = [("VENDOR_URL", "https://a.example/")];
    check(typed, &fine).expect_success();
    let shown = check(&format!("name = \"acme\"\n{typed}"), &fine).failed_with(2).stderr;
    assert!(shown.contains("`name` would be that of every service whose address `VENDOR_URL` may hold"), "{shown}");
    for (address, error) in [
        ("$", "no name of a variable"),
        ("$A-B", "no name of a variable"),
        ("https://$VENDOR/v1", "a variable in an address"),
        ("https://me:$PASSWORD@a.example", "a variable in an address"),
    ] {
        let shown = check(&format!("base_url = \"{address}\"\n"), &[]).failed_with(2).stderr;
        assert!(shown.contains(&format!("error: {error}\n")) && shown.contains("such as `$VENDOR_URL`"), "{shown}");
    }
    // A definition that says where its service is asks nobody else.
    place.define("mine", &format!("[source]\nservice = \"demo\"\n{REST}"));
    let other = [("BELLWETHER_BASE_URL", "https://a.example/")];
    let shown = Outcome::of(place.command(["check", "mine"]).envs(other)).expect_success().stdout;
    assert!(shown.contains("service: demo, built in"), "{shown}");
    // Signals alone need one address, and take no other from the environment.
    let signals = "base_url = \"https://a.example/\"\nname = \"acme\"\n";
    place
        .define("one", &format!("[source]\n{signals}[signals]\nsectors = \"energy\"\n[dataset]\nkind = \"signals\"\n"));
    let other = [("BELLWETHER_SENTIMENT_BASE_URL", "https://b.example/")];
    let shown = Outcome::of(place.command(["check", "one"]).envs(other)).expect_success().stdout;
    assert!(!shown.contains("b.example") && !shown.contains("from the environment"), "{shown}");
}

#[test]
fn rows_are_selected_by_what_they_say_and_a_filter_that_leaves_none_fails() {
    let place = Place::new();
    let signals = "sectors = \"energy\"\n";
    let define = |filter: &str| place.define("it", &of_demo(&format!("{signals}[filter]\n{filter}")));
    let rows = || together(&place, &["ticker", "date", "signal", "confidence"]);
    define("");
    place.run(["run", "it"]).expect_success();
    let all = rows();
    let with = |wanted: Option<&str>, least: f64| -> BTreeSet<String> {
        let is_wanted = |row: &&String| {
            let words: Vec<&str> = row.split(' ').collect();
            wanted.is_none_or(|wanted| words[2] == wanted) && words[3].parse::<f64>().unwrap() >= least
        };
        all.iter().filter(is_wanted).cloned().collect()
    };
    for (filter, options, expected) in [
        ("signal = \"buy\"\n", &["--signal", "buy"][..], with(Some("buy"), 0.0)),
        (
            "signal = \"sell\"\nmin_confidence = 0.6\n",
            &["--signal", "sell", "--min-confidence", "0.6"],
            with(Some("sell"), 0.6),
        ),
        ("min_confidence = 0.6\n", &["--min-confidence", "0.6"], with(None, 0.6)),
    ] {
        assert!(!expected.is_empty() && expected.len() < all.len(), "{filter}");
        define("");
        let text =
            place.run([&["build", "it", "--format", "csv", "--output", "-"], options].concat()).expect_success().stdout;
        assert_eq!(text.lines().count() - 1, expected.len(), "{filter}");
        define(filter);
        place.run(["build", "it"]).expect_success();
        assert_eq!(rows(), expected, "{filter}");
        // Narrowed further, and never widened.
        place.run(["build", "it", "--min-confidence", "0.1", "--output", "narrow.parquet"]).expect_success();
        assert_eq!(read(&place.file("narrow.parquet")).num_rows(), expected.len());
        fs::remove_file(place.file("narrow.parquet")).unwrap();
    }
    define("signal = \"buy\"\n");
    let refused = place.run(["build", "it", "--signal", "sell"]).failed_with(2).stderr;
    assert!(refused.contains("the definition filters out signal `sell`"), "{refused}");
    define("min_confidence = 60\n");
    let shown = place.run(["build", "it"]).failed_with(1).stderr;
    assert!(shown.contains("`it` has no rows") && shown.contains("the filters"), "{shown}");
    for (filter, error) in [
        ("signal = \"bye\"\n", "unknown signal `bye`"),
        ("min_confidence = 0\n", "0 is not a least confidence"),
        ("min_confidence = -1.5\n", "-1.5 is not a least confidence"),
        ("min_confidence = nan\n", "NaN is not a least confidence"),
        ("min_confidence = \"60%\"\n", "`min_confidence` takes a number, not text"),
    ] {
        define(filter);
        let shown = place.run(["check", "it"]).failed_with(2).stderr;
        assert!(shown.contains(error) && shown.contains("it.toml:"), "{filter}{shown}");
    }
    place.define(
        "news",
        "source.service = \"demo\"\nsignals.sectors = \"energy\"\ndataset.kind = \"news\"\nfilter.signal = \"buy\"\n",
    );
    let shown = place.run(["check", "news"]).failed_with(2).stderr;
    assert!(shown.contains("`signal` has no effect on a dataset of news"), "{shown}");
}
