//! Definitions: valid ones, problems and their locations, plans, and the schema for editors.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::Path;
use std::process::Command;
use std::time::{Duration, Instant};

use crate::support::program::{Outcome, Place};
use crate::support::python;
use crate::support::rows::{distinct, read};
use crate::support::scripted::{Scripted, json};
use crate::support::tools::{PYTHON, needs};

fn project() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

/// The shipped definitions, by name.
fn shipped_names() -> Vec<String> {
    let entries = fs::read_dir(project().join("pipelines")).expect("the definitions");
    let file_names = entries.map(|entry| entry.expect("an entry").file_name().into_string().expect("a name"));
    let mut names: Vec<String> = file_names.filter_map(|name| Some(name.strip_suffix(".toml")?.to_owned())).collect();
    names.sort();
    names
}

#[test]
fn the_shipped_definitions_pass_check_and_say_whom_they_are_for() {
    let place = Place::new();
    let names = shipped_names();
    let path = |name: &String| project().join("pipelines").join(name).with_extension("toml");
    let outcome = place.run(["check".into()].into_iter().chain(names.iter().map(path)));
    assert_eq!(outcome.expect_success().stdout.matches(": ok\n").count(), names.len());
    for name in &names {
        let text = fs::read_to_string(path(name)).unwrap();
        assert!(text.starts_with("#:schema definition.schema.json\n# For "), "{name}");
    }
}

/// Compares a file that follows from the definition's types with what they give, or writes it.
#[track_caller]
fn follows(path: &str, expected: &str) {
    let file = project().join(path);
    if std::env::var_os("BELLWETHER_BLESS").is_some() {
        fs::write(&file, expected).expect("a file");
    }
    assert!(
        fs::read_to_string(file).expect("text") == expected,
        "{path} is outdated; write it with `BELLWETHER_BLESS=1`"
    );
}

#[test]
fn the_shipped_definitions_reference_the_schema_and_match_it() {
    let place = Place::new();
    follows("pipelines/definition.schema.json", &place.run(["schema"]).expect_success().stdout);
    python::check("check_schema.py", [project().join("pipelines")]);
}

#[test]
fn the_types_in_python_are_those_of_the_schema() {
    needs!(PYTHON);
    let place = Place::new();
    fs::write(place.file("schema.json"), place.run(["schema"]).expect_success().stdout).unwrap();
    let types = python::output("typed_definition.py", [place.file("schema.json")]);
    follows("python/bellwether/_typed.py", &types);
}

#[test]
fn each_shipped_definition_runs_and_writes_the_promised_columns() {
    let place = Place::new();
    fs::create_dir(place.file("pipelines")).unwrap();
    // Each has its own archive, so that they can run concurrently.
    let run = |name: &String| {
        let file = format!("pipelines/{name}.toml");
        fs::copy(project().join(&file), place.file(&file)).unwrap();
        place.run(["run", name, "-q", "--fresh", "--archive", &format!("archives/{name}")]).expect_success();
    };
    let names = shipped_names();
    std::thread::scope(|scope| names.iter().for_each(|name| drop(scope.spawn(|| run(name)))));
    python::check("check_examples.py", [place.file("output/datasets")]);
}

#[test]
fn every_problem_of_a_file_is_shown_at_once_with_its_line_and_a_hint() {
    let place = Place::new();
    place.define(
        "wrong",
        "descripton = \"x\"\n[source]\nservice = \"demo\"\n[signals]\nsectors = [\"energy\", 5, \"energy\"]\n\
         periods = [\"45d\", \"1d\"]\nregimes = \"bul\"\n[join]\nwindows = [\"0d\", \"a week\"]\nlag = -1\n\
         [output]\nformat = [\"parquet\", \"xls\"]\nsort = [\"tickr\"]\n[schedule]\ncron = \"30 25 * * *\"\n",
    );
    let shown = place.run(["check", "wrong"]).failed_with(2);
    assert_eq!(shown.stdout, "");
    let heads: Vec<(&str, &str)> = shown
        .stderr
        .split("\n\n")
        .map(|problem| {
            let mut lines = problem.lines();
            (lines.next().unwrap(), lines.next().unwrap().trim_start())
        })
        .collect();
    let expected = [
        ("error: unknown key `descripton`", "--> pipelines/wrong.toml:1:1"),
        ("error: `sectors` takes text, not a number", "--> pipelines/wrong.toml:5:22"),
        ("error: duplicate sector `energy`", "--> pipelines/wrong.toml:5:25"),
        ("error: unknown period `45d`", "--> pipelines/wrong.toml:6:12"),
        ("error: unknown regime `bul`", "--> pipelines/wrong.toml:7:11"),
        ("error: empty window", "--> pipelines/wrong.toml:9:12"),
        ("error: `a week` is not a number of days", "--> pipelines/wrong.toml:9:18"),
        ("error: `lag` takes text, not a number", "--> pipelines/wrong.toml:10:7"),
        ("error: unknown format `xls`", "--> pipelines/wrong.toml:12:22"),
        ("error: no column `tickr` to sort by", "--> pipelines/wrong.toml:13:9"),
        ("error: invalid hour `25` in a schedule", "--> pipelines/wrong.toml:15:8"),
    ];
    assert_eq!(heads, expected);
    let carets = "6 | periods = [\"45d\", \"1d\"]\n  |            ^^^^^\nhint: periods are 1d to 30d and 1m to 6m\n";
    assert!(shown.stderr.contains(carets), "{}", shown.stderr);
    assert!(shown.stderr.contains("hint: did you mean `description`?"), "{}", shown.stderr);
    assert!(shown.stderr.contains("hint: did you mean `ticker`?"), "{}", shown.stderr);
}

#[test]
fn a_value_of_the_wrong_kind_is_explained_in_words() {
    let place = Place::new();
    let cases = [
        ("source", "connections = \"8\"", "a whole number, not text", "write it without quotes: `connections = 8`"),
        ("source", "connections = \"many\"", "a whole number, not text", "write a number, without quotes"),
        ("source", "connections = 2.5", "a whole number, not `2.5`", "write a whole number"),
        ("source", "connections = true", "a whole number, not `true`", "write a whole number"),
        ("source", "connections = [8]", "a whole number, not a list", "write one number, without brackets"),
        ("source", "service = { name = \"demo\" }", "text, not a table", "write one of these in quotes: `demo`"),
        (
            "sentiment",
            "articles = \"true\"",
            "`true` or `false`, not text",
            "write it without quotes: `articles = true`",
        ),
        ("sentiment", "articles = 1", "`true` or `false`, not a number", "write `true` or `false`, without quotes"),
        ("dates", "naive = 2024-01-01", "text, not a date", "write it in quotes, such as `naive = \"utc\"`"),
        ("join", "lag = 1", "text, not a number", "write it in quotes, such as `lag = \"1d\"`"),
        ("join", "lag = [\"1d\"]", "text, not a list", "write one value, without brackets"),
        ("join", "windows = [7]", "text, not a number", "write it in quotes, such as `windows = \"1d\"`"),
        ("join", "windows = 7", "text, not a number", "write it in quotes, such as `windows = \"1d\"`"),
        (
            "join",
            "windows = { days = 7 }",
            "text or a list, not a table",
            "write it in quotes, such as `windows = \"1d\"`",
        ),
        (
            "filter",
            "from = 20240101",
            "a date or text, not a number",
            "write it in quotes, such as `from = \"2026-11-20\"`",
        ),
        ("filter", "regimes = [true]", "text, not `true`", "write one of these in quotes: `bear`, `bull`, `neutral`"),
    ];
    for (section, line, expected, hint) in cases {
        place.define("odd", &format!("[{section}]\n{line}\n"));
        let shown = place.run(["check", "odd"]).failed_with(2).stderr;
        let (key, value) = line.split_once(" = ").unwrap();
        let column = if value.starts_with('[') && !matches!(key, "connections" | "lag") { 2 } else { 1 };
        let column = key.len() + " = ".len() + column;
        let expected = format!("error: `{key}` takes {expected}\n --> pipelines/odd.toml:2:{column}\n");
        assert!(shown.contains(&expected), "{expected}{shown}");
        assert!(shown.contains(&format!("hint: {hint}\n")), "{hint}\n{shown}");
    }
    for (text, expected, hint) in [
        ("source = \"demo\"\n", "`source` takes a table, not text", "write `[source]` on a line of its own"),
        ("[[source]]\nservice = \"demo\"\n", "`source` takes a table, not a list", "write `[source]` once"),
        (
            "source.connections = 300\n",
            "300 is out of range",
            "`connections` is the number of concurrent requests, 1 to 64",
        ),
        (
            "output.keep = 99999999999999999999\n",
            "99999999999999999999 is out of range",
            "`keep` is how many versions of the dataset to keep",
        ),
        ("[dataset.rename]\nticker = 1\n", "`ticker` takes text, not a number", "write it in quotes"),
    ] {
        place.define("odd", text);
        let shown = place.run(["check", "odd"]).failed_with(2).stderr;
        assert!(shown.contains(&format!("error: {expected}\n")) && shown.contains(hint), "{shown}");
    }
}

#[test]
fn one_value_is_a_list_of_one_and_a_date_is_a_date() {
    let place = Place::new();
    let plan = |text: &str| {
        place.define("it", &format!("[source]\nservice = \"demo\"\n{text}"));
        place.run(["check", "it"]).expect_success().stdout
    };
    let lists = plan(
        "[signals]\nsectors = [\"energy\"]\nperiods = [\"5d\"]\nregimes = [\"bull\"]\n\
         [join]\nsources = [\"articles\"]\nwindows = [\"7d\"]\nstats = [\"mean\"]\n[calendar]\nholidays = [\"2026-11-26\"]\n\
         [filter]\ntickers = [\"XOM\"]\nsectors = [\"energy\"]\nperiods = [\"5d\"]\nregimes = [\"bull\"]\nfrom = \"2024-01-01\"\n\
         [output]\nformat = [\"csv\"]\nsort = [\"date\"]\npartition_by = [\"period\"]\n",
    );
    let values = plan(
        "[signals]\nsectors = \"energy\"\nperiods = \"5d\"\nregimes = \"bull\"\n\
         [join]\nsources = \"articles\"\nwindows = \"7d\"\nstats = \"mean\"\n[calendar]\nholidays = 2026-11-26\n\
         [filter]\ntickers = \"XOM\"\nsectors = \"energy\"\nperiods = \"5d\"\nregimes = \"bull\"\nfrom = 2024-01-01\n\
         [output]\nformat = \"csv\"\nsort = \"date\"\npartition_by = \"period\"\n",
    );
    assert_eq!(values, lists);
    let of_one = plan("[signals]\nhistory = \"ticker\"\ntickers = \"XOM\"\n");
    assert_eq!(of_one, plan("[signals]\nhistory = \"ticker\"\ntickers = [\"XOM\"]\n"));

    place.define(
        "it",
        "source.service = \"demo\"\nsignals.sectors = \"energy\"\n[filter]\nfrom = 2026-02-01\nto = 2026-01-01\n",
    );
    let shown = place.run(["check", "it"]).failed_with(2).stderr;
    assert!(
        shown.starts_with("error: empty date range: 2026-02-01 to 2026-01-01\n --> pipelines/it.toml:5:6\n"),
        "{shown}"
    );
    place.define("it", "signals.tickers = \"availble\"\n");
    let shown = place.run(["check", "it"]).failed_with(2).stderr;
    assert!(shown.contains("error: unknown list of tickers `availble`\n"), "{shown}");
    assert!(shown.contains("hint: did you mean `available`?\n"), "{shown}");
}

#[test]
fn what_is_no_text_in_the_place_of_a_definition_is_named() {
    let place = Place::new();
    let demo = "source.service = \"demo\"\nsignals.sectors = [\"energy\"]\n";
    place.define("fine", demo);
    place.define("slip", "source.service = \"demo\"\n[signal]\nsectors = [\"energy\"]\n");
    fs::write(place.file("pipelines/latin.toml"), [demo.as_bytes(), b"# \xe9t\xe9\n"].concat()).unwrap();
    symlink("nowhere.toml", place.file("pipelines/zlink.toml")).unwrap();
    assert!(Command::new("mkfifo").arg(place.file("pipelines/pipe.toml")).status().expect("it runs").success());
    let cases = [
        ("latin", 2, "error: definition `pipelines/latin.toml` is not UTF-8 text: line 3\nhint: save it as UTF-8\n"),
        (
            "zlink",
            2,
            "error: no definition `zlink`: `pipelines/zlink.toml` does not exist\nhint: use one of these names\n",
        ),
        ("pipe", 1, "error: cannot read `pipelines/pipe.toml`\n  because: it is a pipe\n"),
        ("slip", 2, "hint: did you mean `signals`?\n"),
    ];
    for (name, code, expected) in cases {
        let shown = place.run(["check", name]).failed_with(code).stderr;
        assert!(shown.contains(expected), "{shown}");
    }
    let all = place.run(["check", "--json"]).failed_with(2).stdout;
    let all: serde_json::Value = serde_json::from_str(&all).unwrap();
    let paths: Vec<&str> =
        all["definitions"].as_array().unwrap().iter().map(|it| it["path"].as_str().unwrap()).collect();
    assert_eq!(paths, ["fine", "latin", "pipe", "slip", "zlink"].map(|name| format!("pipelines/{name}.toml")));
    let status = place.run(["status"]).failed_with(5).stdout;
    assert!(
        status.contains("pipe is unknown\n  because   cannot read `pipelines/pipe.toml`: it is a pipe\n"),
        "{status}"
    );
}

#[test]
fn every_choice_is_listed_unless_the_guess_is_sure() {
    let place = Place::new();
    let cases = [
        ("output.format = \"parqet\"\n", "did you mean `parquet`?"),
        ("output.format = \"xls\"\n", "choose one of: `parquet`, `csv`, `csv.gz`, `csv.zst`, `arrow`"),
        (
            "output.format = \"parq\"\n",
            "did you mean `parquet`? choose one of: `parquet`, `csv`, `csv.gz`, `csv.zst`, `arrow`",
        ),
        ("output.sort = \"datum\"\n", "did you mean `date`? the columns are: `ticker`, `date`, `period`"),
        ("source.urls = \"\"\n", "known keys: `api_key_command`, `api_key_file`, `base_url`, `clock`, `connections`"),
    ];
    for (text, hint) in cases {
        place.define("odd", text);
        let shown = place.run(["check", "odd"]).failed_with(2).stderr;
        assert!(shown.contains(&format!("hint: {hint}")), "{shown}");
    }
}

#[test]
fn invalid_combinations_are_refused() {
    let place = Place::new();
    let cases = [
        ("[signals]\nsectors = [\"energy\"]\n", "no service"),
        ("[source]\nservice = \"demo\"\n[signals]\n", "no signals to fetch"),
        (
            "[source]\nservice = \"demo\"\nbase_url = \"https://a.example\"\n",
            "`service` and an address are mutually exclusive",
        ),
        ("[source]\nbase_url = \"https://a.example/\"\n", "`sentiment_base_url` is missing"),
        ("[source]\nsentiment_base_url = \"https://a.example/\"\n", "`base_url` is missing"),
        ("[source]\napi_key_command = \"pass show it\"\n", "a command takes its arguments one by one"),
        ("[source]\nbase_url = \"http://a.example/\"\n", "plain http would send the API key unencrypted"),
        ("[source]\nbase_url = \"https://a.example/?api_key=S3CRET\"\n", "the address must not have a query"),
        ("[source]\nbase_url = \"https://me:S3CRET@a.example/\"\n", "an address with a user name or password"),
        ("[source]\napi_key_file = \"k\"\napi_key_command = [\"k\"]\n", "two sources for the API key"),
        ("[sentiment]\narticles = false\n[join]\nlag = \"1d\"\n", "`lag` has no effect without articles"),
        ("[sentiment]\narticles = false\nduplicates = \"keep\"\n", "`duplicates` has no effect without articles"),
        ("[signals]\nperiods = []\n", "empty list: at least one period is required"),
        ("[schedule]\ntimezone = \"UTC\"\n", "`cron` is missing"),
        ("[source]\nservice = \"demo\"\napi_key = \"S3CRET\"\n", "unknown key `api_key` in `[source]`"),
        ("[source\napi_key = S3CRET", "unclosed table, expected `]`"),
    ];
    for (text, expected) in cases {
        place.define("odd", text);
        let shown = place.run(["check", "odd"]).failed_with(2).stderr;
        assert!(shown.contains(&format!("error: {expected}\n")), "{text}\n{shown}");
        assert!(!shown.contains("S3CRET"), "{shown}");
    }
}

#[test]
fn keys_without_effect_are_refused_at_their_line() {
    let place = Place::new();
    let summary = "[sentiment]\nsummary = true\n[join]\nsources = [\"summary\"]\n";
    let of_tickers = "history = \"ticker\"\ntickers = [\"XOM\"]\n[filter]\n";
    let cases = [
        (
            format!("sectors = [\"energy\"]\n{summary}windows = [\"7d\"]\n"),
            "`windows` has no effect without articles",
            "windows",
            "",
        ),
        (
            format!("sectors = [\"energy\"]\n{summary}stats = [\"mean\"]\n"),
            "`stats` has no effect without articles",
            "stats",
            "",
        ),
        (
            "sectors = [\"energy\"]\n[sentiment]\narticles = false\n[join]\nwindows = [\"7d\"]\n".to_owned(),
            "`windows` has no effect without articles",
            "windows",
            "hint: set `articles = true` in `[sentiment]`, or remove `windows`",
        ),
        (
            "sectors = [\"energy\"]\n[sentiment]\narticles = false\n[join]\nhistorical = [\"score\"]\n".to_owned(),
            "`historical` has no effect without its source",
            "historical",
            "",
        ),
        (
            "sectors = [\"energy\"]\nperiods = [\"5d\"]\n[filter]\nperiods = [\"5d\", \"1m\"]\n".to_owned(),
            "`[signals]` does not fetch period `1m`",
            "periods = [\"5d\", \"1m\"]",
            "hint: add it to `periods` in `[signals]`, or remove it from `[filter]`",
        ),
        (
            "sectors = [\"energy\"]\n[filter]\nregimes = [\"bull\"]\n".to_owned(),
            "`[signals]` does not fetch regime `bull`",
            "regimes",
            "hint: add it to `regimes` in `[signals]`",
        ),
        (
            "sectors = [\"energy\"]\n[filter]\nsectors = [\"utilities\"]\n".to_owned(),
            "`[signals]` does not fetch sector `utilities`",
            "sectors = [\"utilities\"]",
            "hint: add it to `sectors` in `[signals]`",
        ),
        (
            format!("{of_tickers}tickers = [\"CVX\"]\n"),
            "`[signals]` does not fetch ticker `CVX`",
            "tickers = [\"CVX\"]",
            "hint: add it to `tickers` in `[signals]`",
        ),
        (
            "history = \"batched\"\nperiods = [\"5d\"]\n[filter]\nperiods = [\"1m\"]\n".to_owned(),
            "`[signals]` does not fetch period `1m`",
            "periods = [\"1m\"]",
            "",
        ),
    ];
    for (text, expected, line, hint) in cases {
        let text = format!("[source]\nservice = \"demo\"\n[signals]\n{text}");
        place.define("odd", &text);
        let shown = place.run(["check", "odd"]).failed_with(2).stderr;
        assert!(shown.starts_with(&format!("error: {expected}\n")) && shown.contains(hint), "{text}\n{shown}");
        let number = text.lines().position(|each| each.starts_with(line)).expect("the line that it is about") + 1;
        assert!(shown.contains(&format!("odd.toml:{number}:")), "line {number}\n{shown}");
        assert_eq!(shown.matches("error: ").count(), 1, "{shown}");
    }
    let fine = [
        "sectors = [\"energy\"]\nperiods = [\"5d\", \"1m\"]\n[filter]\nperiods = [\"1m\"]\nregimes = [\"neutral\"]\n",
        "history = \"batched\"\n[filter]\nperiods = [\"1m\"]\nregimes = [\"bull\"]\n",
        "sectors = [\"energy\"]\n[sentiment]\nsummary = true\n[join]\nsources = [\"summary\"]\nlag = \"2d\"\n",
    ];
    for text in fine {
        place.define("fine", &format!("[source]\nservice = \"demo\"\n[signals]\n{text}"));
        place.run(["check", "fine"]).expect_success();
    }
}

#[test]
fn a_missing_definition_suggests_a_similar_name() {
    let place = Place::new();
    place.define("nightly", "");
    place.define("notebook", "");
    let shown = place.run(["run", "nigtly"]).failed_with(2).stderr;
    let expected = "error: no definition `nigtly`: `pipelines/nigtly.toml` does not exist\nhint: did you mean `nightly`?\n\
         definitions in `pipelines`:\n  nightly\n  notebook\n";
    assert_eq!(shown, expected);
    let shown = place.run(["check", "x"]).failed_with(2).stderr;
    let expected = "hint: use one of these names\ndefinitions in `pipelines`:\n  nightly\n  notebook\n";
    assert!(shown.ends_with(expected), "{shown}");
}

#[test]
fn a_plan_lists_the_requests_and_the_columns() {
    let place = Place::new();
    place.define(
        "small",
        "description = \"Two sectors\"\n[source]\nservice = \"demo\"\n[signals]\nsectors = [\"energy\", \"a b&c\"]\n\
         periods = [\"1m\"]\nregimes = [\"bear\"]\n[join]\nwindows = [\"7d\"]\nstats = [\"count\", \"mean\", \"last\"]\n\
         [output]\nsort = [\"date\"]\nformat = [\"csv\", \"arrow\"]\n\
         [schedule]\ncron = \"30 18 * * 1-5\"\ntimezone = \"America/New_York\"\n",
    );
    let expected = "\
pipelines/small.toml: ok
Two sectors

service: demo, built in
dates: naive by utc
trading days: those of the New York Stock Exchange
schedule: 30 18 * * 1-5 in America/New_York

requests: 2, and 1 for each ticker
  signals-history-all     2 requests
  news_articles/{ticker}  1 request for each ticker with signals
  or, if the service does not offer that, {base_url}/signals-history/{ticker}
    for the same tickers, as listed in the archive

columns: 12
  ticker           text
  date             timestamp, microseconds, no time zone
  period           text (dictionary)
  regime           text (dictionary)
  signal           text (dictionary)
  confidence       64-bit float
  score            64-bit float, may be null
  news_count_7d    32-bit integer, may be null
  news_mean_7d     64-bit float, may be null
  news_last_score  64-bit float, may be null
  news_last_date   timestamp, microseconds, no time zone, may be null
  sector           text, may be null

sorted by: date, ticker, period, regime
written as: csv, arrow
";
    let (times, rest): (Vec<String>, Vec<String>) = place
        .run(["check", "small"])
        .expect_success()
        .stdout
        .lines()
        .map(str::to_owned)
        .partition(|line| line.starts_with("  ") && line.ends_with(" UTC"));
    assert_eq!(rest.join("\n") + "\n", expected);
    assert_eq!(times.len(), 5, "the next five times");
    assert!(times.iter().all(|time| time.contains(" 18:30:00 E") && !time.contains("  S")), "{times:?}");
    let listed = place.run(["check", "small", "--requests"]).expect_success().stdout;
    let requests = "requests: 2, and 1 for each ticker
  GET {base_url}/signals-history-all?sector=energy&period=1m&regime=bear
  GET {base_url}/signals-history-all?sector=a+b%26c&period=1m&regime=bear
  GET {sentiment_base_url}/news_articles/{ticker} for each ticker with signals
  or, if";
    assert!(listed.contains(requests), "{listed}");
}

#[test]
fn a_plan_says_how_its_number_of_requests_comes_about() {
    let place = Place::new();
    for (signals, rest, expected) in [
        (
            "sectors = [\"energy\", \"utilities\", \"materials\"]\nperiods = [\"5d\", \"15d\", \"1m\"]\n\
             regimes = [\"bull\", \"bear\", \"neutral\"]\n",
            "[sentiment]\nsummary = true\n",
            "requests: 27, and 2 for each ticker\n\
             \x20 signals-history-all        3 sectors × 9 pairs = 27 requests\n\
             \x20 news_articles/{ticker}     1 request for each ticker with signals\n\
             \x20 social_sentiment/{ticker}  1 request for each ticker with signals\n",
        ),
        (
            "tickers = [\"XOM\", \"CVX\"]\nperiods = [\"5d\", \"1m\"]\n",
            "[sentiment]\ntickers = [\"XOM\"]\n",
            "requests: 4, and 1 for each ticker\n\
             \x20 signals-history/{ticker}  2 tickers × 2 pairs = 4 requests\n\
             \x20 news_articles/{ticker}    1 request\n",
        ),
        (
            "history = \"ticker\"\nsectors = [\"energy\", \"utilities\"]\nperiods = [\"5d\", \"1m\"]\n",
            "[dataset]\nkind = \"signals\"\n",
            "requests: 2, then 2 for each ticker in the answers\n\
             \x20 signals-history-all       2 requests, which name the tickers\n\
             \x20 signals-history/{ticker}  2 requests for each ticker in these answers\n",
        ),
        (
            "history = \"batched\"\n",
            "[dataset]\nkind = \"signals\"\n",
            "requests: 1\n  signals-history-batched-all  1 request\n",
        ),
    ] {
        place.define("it", &format!("[source]\nservice = \"demo\"\n[signals]\n{signals}{rest}"));
        let shown = place.run(["check", "it"]).expect_success().stdout;
        assert!(shown.contains(expected), "{expected}{shown}");
    }
}

#[test]
fn a_definition_full_of_mistakes_is_reported_in_seconds_on_one_page() {
    const MOST: usize = 1 << 20;
    let many = |head: &str, unit: &dyn Fn(usize) -> String, tail: &str| {
        let mut text = head.to_owned();
        for number in 0.. {
            let next = unit(number);
            if text.len() + next.len() + tail.len() > MOST {
                break;
            }
            text.push_str(&next);
        }
        text + tail
    };
    let place = Place::new();
    for (text, expected) in [
        (many("", &|key| format!("k{key} = 1\n"), ""), "error: unknown key `k0`\n"),
        (many("[signals]\nperiods = [", &|_| "\"45d\",".to_owned(), "]\n"), "error: unknown period `45d`\n"),
        (many("[signals]\nregimes = [", &|_| "\"株式\",".to_owned(), "]\n"), "error: unknown regime `株式`\n"),
        (many("", &|_| "!\n".to_owned(), ""), "error: invalid unquoted key"),
        (many("x = \"", &|_| "\\q".to_owned(), "\"\n"), "error: missing escaped value"),
    ] {
        place.define("long", &text);
        let begun = Instant::now();
        let shown = place.run(["check", "long"]).failed_with(2).stderr;
        assert!(shown.contains(expected), "{shown}");
        assert_eq!(shown.matches("error: ").count(), 20, "{shown}");
        assert!(shown.trim_end().ends_with(" more problems"), "{shown}");
        assert!(shown.len() < 20_000 && shown.lines().all(|line| line.chars().count() < 450), "{shown}");
        assert!(begun.elapsed() < Duration::from_secs(20), "{:?}", begun.elapsed());
    }
    place.define("long", &"#".repeat(MOST + 1));
    let shown = place.run(["check", "long"]).failed_with(2).stderr;
    assert!(shown.starts_with("error: definition `pipelines/long.toml` is larger than 1.0 MB\nhint: "), "{shown}");
    place.define(
        "long",
        &format!("{}\n[source]\nservice = \"demo\"\n[signals]\nsectors = [\"energy\"]\n", "#".repeat(MOST - 100)),
    );
    place.run(["check", "long"]).expect_success();
}

#[test]
fn sectors_and_tickers_select_the_tickers_of_both() {
    let place = Place::new();
    let define = |signals: &str| {
        let kind = "[dataset]\nkind = \"signals\"\n";
        place.define("it", &format!("[source]\nservice = \"demo\"\n[signals]\n{signals}{kind}"));
    };
    let tickers = || distinct(&read(&place.file("output/datasets/it/latest/it.parquet")), "ticker");
    // Tickers alone are asked for one by one.
    define("tickers = [\"AAPL\", \"XOM\"]\n");
    let shown = place.run(["run", "it"]).expect_success();
    assert!(shown.stderr.contains("signals: 2 requests"), "{}", shown.stderr);
    assert_eq!(tickers(), ["AAPL", "XOM"]);
    let energy = {
        define("sectors = \"energy\"\n");
        place.run(["run", "it"]).expect_success();
        tickers()
    };
    for form in ["", "history = \"sector\"\n", "history = \"ticker\"\n"] {
        define(&format!("{form}sectors = \"energy\"\ntickers = [\"XOM\", \"AAPL\"]\n[checks]\nuniverse = 1.0\n"));
        let shown = place.run(["check", "it"]).expect_success().stdout;
        assert!(shown.contains("and 2 requests for the tickers that are named"), "{shown}");
        place.run(["run", "it"]).expect_success();
        let both: Vec<String> = std::iter::once("AAPL".to_owned()).chain(energy.iter().cloned()).collect();
        assert_eq!(tickers(), both, "{form}");
        place.run(["build", "it"]).expect_success();
        assert_eq!(tickers(), both, "{form}");
        let filter = "[filter]\ntickers = [\"XOM\", \"AAPL\"]\n";
        define(&format!("{form}sectors = \"energy\"\ntickers = [\"AAPL\"]\n[checks]\nuniverse = 1.0\n{filter}"));
        place.run(["run", "it"]).expect_success();
        assert_eq!(tickers(), ["AAPL", "XOM"], "{form}");
    }
    define("sectors = \"energy\"\ntickers = [\"XOM\", \"AAPLE\"]\n");
    let shown = place.run(["run", "it"]).failed_with(4).stderr;
    assert!(shown.contains("because: no signals for ticker `AAPLE`"), "{shown}");
    define("history = \"batched\"\ntickers = [\"XOM\", \"AAPL\"]\n[checks]\nuniverse = 1.0\n");
    place.run(["run", "it"]).expect_success();
    assert_eq!(tickers(), ["AAPL", "XOM"]);
}

#[test]
fn a_key_or_value_in_another_place_or_form_is_explained() {
    let place = Place::new();
    for (rest, printed, hint) in [
        ("from = 2026-01-01\n", "unknown key `from` in `[signals]`", "`from` belongs in `[filter]`"),
        ("description = \"a\"\n", "unknown key `description` in `[signals]`", "`description` belongs at the top"),
        ("stats = \"mean\"\n", "unknown key `stats`", "`stats` belongs in `[join]`"),
        ("[hooks]\non_success = \"echo done\"\n", "neither an address nor a list", "a command is a list"),
        ("[checks]\nuniverse = \"20\"\n", "`20` is not a share", "such as `\"20%\"`"),
        (
            "[dataset]\ncolumns = [\"asset\"]\nrename = { ticker = \"asset\" }\n",
            "`asset` is the new name of `ticker`",
            "write `\"ticker\"`",
        ),
    ] {
        place.define("it", &format!("[source]\nservice = \"demo\"\n[signals]\nsectors = \"energy\"\n{rest}"));
        let shown = place.run(["check", "it"]).failed_with(2).stderr;
        assert!(shown.contains(printed) && shown.contains(hint), "{shown}");
        assert_eq!(shown.matches("error: ").count(), 1, "{shown}");
    }
    place.define("top", "sectors = \"energy\"\nservice = \"demo\"\n");
    let shown = place.run(["check", "top"]).failed_with(2).stderr;
    assert!(
        shown.contains("`sectors` belongs in `[signals]` or `[filter]`")
            || shown.contains("`sectors` belongs in `[filter]` or `[signals]`"),
        "{shown}"
    );
    assert!(shown.contains("`service` belongs in `[source]`"), "{shown}");
    let shares = "[checks]\nuniverse = \"20%\"\nrewritten = 1\n[rejects]\nmax_share = \"0.5 %\"\n";
    place.define("it", &format!("[source]\nservice = \"demo\"\n[signals]\nsectors = \"energy\"\n{shares}"));
    place.run(["check", "it"]).expect_success();
}

/// What a definition does not say is said by a line of something else, and each of those lines works.
#[test]
fn what_a_definition_leaves_to_others_is_done_by_the_lines_of_the_page() {
    let service = Scripted::start(|request| {
        let sector = request.target.split("sector=").nth(1).and_then(|rest| rest.split('&').next()).unwrap_or_default();
        let of = |date: &str, confidence: f64| {
            format!(r#"{{"date":"2026-01-{date}","signal":"buy","confidence":{confidence}}}"#)
        };
        let entries = [of("05", 0.625), of("07", 0.75), of("06", 0.5)].join(",");
        json(
            "200 OK",
            &format!(
                r#"{{"{sector}":{{"ticker":"{sector}","regime":"neutral","period":"15d","predictions":[{entries}]}}}}"#
            ),
        )
    });
    let place = Place::new();
    for name in ["it", "other"] {
        let rest = "[dataset]\nkind = \"signals\"\n[checks]\nmissing = \"warn\"\n";
        let signals = format!("[signals]\nsectors = \"{}\"\n", name.to_uppercase());
        place.define(name, &format!("[source]\n{}{signals}{rest}", service.source()));
        Outcome::of(place.command(["run", name, "-q"]).env("BELLWETHER_API_KEY", "key")).expect_success();
        let file = format!("{name}.parquet");
        fs::copy(place.file(&format!("output/datasets/{name}/latest/{file}")), place.file(&file)).unwrap();
    }
    fs::write(place.file("source.toml"), format!("[source]\n{}", service.source())).unwrap();
    fs::write(place.file("energy.toml"), "[signals]\nsectors = \"energy\"\n").unwrap();
    let page = project().join("docs/more-definitions.md");
    python::check("check_leftovers.py", [page.as_path(), place.path()]);
    place.run(["check", "energy"]).expect_success();
}
