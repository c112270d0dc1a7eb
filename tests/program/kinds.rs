//! Datasets of signals without news, and of news without signals.

use std::fs;

use serde_json::{Value, json};

use crate::support::program::{Outcome, Place, only_build};
use crate::support::python;
use crate::support::rows::{columns, read, texts};
use crate::support::scripted::{Scripted, ScriptedRequest, json as answer};
use crate::support::service::{list, text};

const KEY: (&str, &str) = ("BELLWETHER_API_KEY", "demo");

fn run(place: &Place, name: &str) -> Outcome {
    Outcome::of(place.command(["run", name]).envs([KEY])).expect_success()
}

fn seal(place: &Place, number: usize) -> String {
    let runs: Value =
        serde_json::from_str(&place.run(["list", "runs", "--json"]).expect_success().stdout).expect("JSON");
    let mut sealed: Vec<String> = list(&runs["runs"]).iter().map(|run| text(&run["sealed_at"]).to_owned()).collect();
    sealed.sort();
    sealed[number].clone()
}

#[test]
fn signals_without_news_ask_for_no_news_and_are_those_of_the_joined_dataset() {
    let place = Place::new();
    let service = Scripted::start(|ScriptedRequest { target, .. }| {
        assert!(target.starts_with("/a/"), "{target}");
        let history = "{\"ONE\":{\"ticker\":\"ONE\",\"period\":\"15d\",\"regime\":\"neutral\",\"predictions\":\
                       [{\"date\":\"2026-11-20T00:00:00\",\"signal\":\"buy\",\"confidence\":0.5}]}}";
        answer("200 OK", history)
    });
    // The other address gets no requests, and may be left out.
    let source = service.source();
    let (only, _) = source.split_once("sentiment_base_url").unwrap();
    place.define("it", &format!("[source]\n{only}[signals]\nsectors = \"alpha\"\n[dataset]\nkind = \"signals\"\n"));
    run(&place, "it");
    assert_eq!(service.count(), 1);

    let signals = "source.service = \"demo\"\nsignals.sectors = \"energy\"\n";
    place.define("joined", signals);
    place.define("signals", &format!("{signals}dataset.kind = \"signals\"\n"));
    run(&place, "joined");
    place.run(["build", "signals", "-q"]).expect_success();
    let read = |name: &str| read(&place.file(&format!("output/datasets/{name}/latest/{name}.parquet")));
    let (joined, alone) = (read("joined"), read("signals"));
    assert_eq!((alone.num_columns(), joined.num_columns()), (8, 22));
    assert_eq!(&alone.columns()[..7], &joined.columns()[..7]);
    let page = place.run(["report", "signals", "--output", "-"]).expect_success().stdout;
    assert!(page.contains("This dataset has no news") || !page.contains("news_count"), "the report says so");
}

/// The articles of the first and of the second run.
const ARTICLES: [&str; 2] = [
    r#"[{"date":"2026-11-19","title":"Old","score":"0.1","link":"https://a/1"},
        {"date":"2026-11-18","title":"Gone","score":0.2,"link":"https://a/2"},
        {"date":"2026-11-17","title":"Twice","score":0.3,"link":"https://a/3"},
        {"date":"2026-11-17","title":"Twice","score":0.3,"link":"https://a/3"},
        {"date":"2026-11-16","title":"None","score":null,"link":"https://a/4"},
        {"date":"2026-11-16","title":"Anchor","score":0.0,"link":"https://a/0"},
        {"date":"2026-11-15","title":"First","score":0.0,"link":"https://a/0"}]"#,
    r#"[{"date":"2026-11-20","title":"New","score":-0.5,"link":"https://a/5"},
        {"date":"2026-11-19","title":"Old","score":0.9,"link":"https://a/1"},
        {"date":"2026-11-17","title":"Twice","score":0.3,"link":"https://a/3"},
        {"date":"2026-11-17","title":"Twice","score":0.3,"link":"https://a/3"},
        {"date":"2026-11-16","title":"None","score":null,"link":"https://a/4"},
        {"date":"2026-11-16","title":"Anchor","score":0.0,"link":"https://a/0"},
        {"date":"2026-11-15","title":"First","score":0.0,"link":"https://a/0"}]"#,
];

const NEWS: &str = "[sentiment]\ntickers = [\"ONE\", \"QUIET\"]\n[dataset]\nkind = \"news\"\n";

#[test]
fn news_is_a_row_per_article_as_it_was_known() {
    let place = Place::new();
    let service = Scripted::start(|ScriptedRequest { target, before }| {
        let body = if target.contains("/ONE") { ARTICLES[(*before).min(1)] } else { "[]" };
        answer("200 OK", body)
    });
    place.define("news", &format!("[source]\n{}{NEWS}", service.source()));
    let message = run(&place, "news").stdout;
    assert!(message.contains("rows      6\ntickers   1\ndates     2026-11-15 to 2026-11-19\n"), "{message}");
    assert!(message.contains("1 of 7 articles repeated exactly and counted once"), "{message}");
    run(&place, "news");
    assert!(service.targets().iter().all(|target| target.starts_with("/b/news_articles/")), "no signals");
    let rows = |path: &str| {
        let rows = read(&place.file(path));
        columns(&rows, ["date", "title", "link", "copy", "score", "revisions"]).map_rows()
    };
    let latest = "output/datasets/news/latest/news.parquet";
    let now = [
        "2026-11-15 First https://a/0 0 0.0 0",
        "2026-11-16 Anchor https://a/0 0 0.0 0",
        "2026-11-16 None https://a/4 0 - 0",
        "2026-11-17 Twice https://a/3 0 0.3 0",
        "2026-11-19 Old https://a/1 0 0.9 1",
        "2026-11-20 New https://a/5 0 -0.5 0",
    ];
    assert_eq!(rows(latest), now);
    let version = fs::canonicalize(place.file("output/datasets/news/latest")).unwrap();
    let record: Value = serde_json::from_slice(&fs::read(version.join("dataset.json")).unwrap()).unwrap();
    assert_eq!(record["key"], json!(["ticker", "date", "title", "link", "copy"]));

    place.run(["build", "news", "--as-of", &seal(&place, 0), "-q"]).expect_success();
    let earlier = only_build(&place, "news");
    let then = rows(earlier.join("news.parquet").to_str().unwrap());
    let expected = ["2026-11-18 Gone https://a/2 0 0.2 0", "2026-11-19 Old https://a/1 0 0.1 0"];
    assert_eq!(then, [&now[..4], &expected[..]].concat());
    let message = place.run(["diff".into(), earlier, version]).expect_success().stdout;
    for line in ["added        1", "removed      1", "changed      1"] {
        assert!(message.contains(line), "{message}");
    }
    let first = ["build", "news", "--vintage", "first", "--format", "csv", "--output", "-"];
    let first = place.run(first).expect_success().stdout;
    let score = |title: &str| {
        first.lines().find(|line| line.contains(title)).map(|line| line.split(',').nth(5).unwrap().to_owned())
    };
    assert_eq!(score("Old").as_deref(), Some("0.1"));
    assert_eq!(score("Gone").as_deref(), Some("0.2"), "withdrawn, but it was published");
    let shown = place.run(["show", "news", "--columns", "title,score", "--from", "2026-11-19"]).expect_success().stdout;
    assert_eq!(shown, "title  score\nOld      0.9\nNew     -0.5\n");
    place.run(["audit", "revisions", "news"]).expect_success();
    place.run(["audit", "quality", "news"]).expect_success();
    place.run(["report", "news"]).expect_success();
    let refused = |arguments: &[&str], expected: &str| {
        let shown = place.run(arguments);
        assert_ne!(shown.code, Some(0), "{arguments:?}");
        assert!(shown.stderr.contains(expected), "{}", shown.stderr);
    };
    refused(&["build", "news", "--period", "5d"], "a dataset of news has no periods and no regimes\n");
    refused(&["audit", "leak", "news"], "`news` has no join to audit\n");
    refused(&["sql", "news"], "SQL cannot compute a dataset with `kind = \"news\"`\n");
}

/// Four answers: the first; one more article before the others of its date, which move up; the order turned and another
/// score; the same again with another offset and an unknown field.
const MOVED: [&str; 4] = [
    r#"[{"date":"2026-11-19","title":"Score","score":0.1,"link":"l"},
        {"date":"2026-11-19","title":"Place","score":0.2,"link":"l"},
        {"date":"2026-11-18T05:00:00Z","title":"Offset","score":0.3,"link":"l"},
        {"date":"2026-11-17","title":"Field","score":0.4,"link":"l"},
        {"date":"2026-11-16","title":"Oldest","score":0.5,"link":"l"}]"#,
    r#"[{"date":"2026-11-19","title":"Score","score":0.1,"link":"l"},
        {"date":"2026-11-19","title":"Place","score":0.2,"link":"l"},
        {"date":"2026-11-19","title":"Late","score":0.6,"link":"l"},
        {"date":"2026-11-18T05:00:00Z","title":"Offset","score":0.3,"link":"l"},
        {"date":"2026-11-17","title":"Field","score":0.4,"link":"l"},
        {"date":"2026-11-16","title":"Oldest","score":0.5,"link":"l"}]"#,
    r#"[{"date":"2026-11-19","title":"Late","score":0.6,"link":"l"},
        {"date":"2026-11-19","title":"Place","score":0.2,"link":"l"},
        {"date":"2026-11-19","title":"Score","score":0.9,"link":"l"},
        {"date":"2026-11-18T05:00:00Z","title":"Offset","score":0.3,"link":"l"},
        {"date":"2026-11-17","title":"Field","score":0.4,"link":"l"},
        {"date":"2026-11-16","title":"Oldest","score":0.5,"link":"l"}]"#,
    r#"[{"date":"2026-11-19","title":"Score","score":0.9,"link":"l"},
        {"date":"2026-11-19","title":"Place","score":0.2,"link":"l"},
        {"date":"2026-11-19","title":"Late","score":0.6,"link":"l"},
        {"date":"2026-11-18T00:00:00-05:00","title":"Offset","score":0.3,"link":"l"},
        {"date":"2026-11-17","title":"Field","score":0.4,"link":"l","id":7},
        {"date":"2026-11-16","title":"Oldest","score":0.5,"link":"l"}]"#,
];

#[test]
fn an_article_is_revised_by_what_it_says_and_not_by_its_place_in_the_list() {
    let place = Place::new();
    let service = Scripted::start(|ScriptedRequest { before, .. }| answer("200 OK", MOVED[(*before).min(3)]));
    let news = "[sentiment]\ntickers = \"ONE\"\n[dataset]\nkind = \"news\"\n[rejects]\nkeep_extra = true\n";
    place.define("news", &format!("[source]\n{}{news}", service.source()));
    MOVED.iter().for_each(|_| drop(run(&place, "news")));
    let runs: Value =
        serde_json::from_str(&place.run(["list", "runs", "--json"]).expect_success().stdout).expect("JSON");
    let folders = list(&runs["runs"]).iter().map(|run| format!("output/archive/vendor/run={}", text(&run["run"])));
    let requests = folders.map(|folder| read(&place.file(&format!("{folder}/requests.parquet"))));
    let mut answered: Vec<String> = requests.flat_map(|rows| texts(&rows, "observed_at")).flatten().collect();
    answered.sort();
    let number = |instant: &str| answered.iter().position(|one| one == instant).expect("an answer's instant");
    let rows = read(&place.file("output/datasets/news/latest/news.parquet"));
    let rows = columns(&rows, ["title", "score", "first_observed_at", "observed_at", "revisions"]);
    let found: Vec<String> = rows
        .iter()
        .map(|[title, score, first, seen, revisions]| {
            format!("{title} {score}, seen in {} and {}, {revisions} revisions", number(first), number(seen))
        })
        .collect();
    let expected = [
        "Oldest 0.5, seen in 0 and 0, 0 revisions",
        "Field 0.4, seen in 0 and 3, 1 revisions",
        "Offset 0.3, seen in 0 and 3, 1 revisions",
        "Late 0.6, seen in 1 and 1, 0 revisions",
        "Place 0.2, seen in 0 and 0, 0 revisions",
        "Score 0.9, seen in 0 and 2, 1 revisions",
    ];
    assert_eq!(found, expected);
    // The audit compares scores alone, and knows as well since when the old one was said.
    place.run(["audit", "revisions", "news", "--output", "changes.parquet"]).expect_success();
    let changes = columns(&read(&place.file("changes.parquet")), ["title", "kind", "seen_before", "observed_at"]);
    let revised: Vec<_> = changes.iter().filter(|[_, kind, ..]| kind == "revised").collect();
    let [[title, _, before, now]] = revised[..] else { panic!("{changes:?}") };
    assert_eq!((title.as_str(), number(before), number(now)), ("Score", 0, 2));
}

#[test]
fn articles_that_share_a_clock_face_have_keys_of_their_own() {
    let article = |(date, score): &(&str, f64)| {
        format!("{{\"date\":\"{date}\",\"title\":\"Same\",\"score\":{score},\"link\":\"https://a/1\"}}")
    };
    let list = |articles: &[(&str, f64)]| format!("[{}]", articles.iter().map(article).collect::<Vec<_>>().join(","));
    // Midnight in three offsets, one of them twice; and half past one in New York before and after its clock goes back.
    let faces = [
        ("2026-11-18T00:00:00-05:00", 0.4),
        ("2026-11-18T00:00:00-05:00", 0.3),
        ("2026-11-18T00:00:00Z", 0.2),
        ("2026-11-18T00:00:00+09:00", 0.1),
    ];
    let hours = [("2026-11-01T06:30:00Z", 0.2), ("2026-11-01T05:30:00Z", 0.1)];
    let cases = [
        (
            "wall",
            list(&faces),
            ["2026-11-18 0 0.1", "2026-11-18 1 0.2", "2026-11-18 2 0.3", "2026-11-18 3 0.4"].to_vec(),
        ),
        ("America/New_York", list(&hours), ["2026-11-01T01:30:00 0 0.1", "2026-11-01T01:30:00 1 0.2"].to_vec()),
    ];
    for (rule, body, expected) in cases {
        let service = Scripted::start(move |_| answer("200 OK", &body));
        let place = Place::new();
        let news = "[sentiment]\ntickers = [\"ONE\"]\n[dataset]\nkind = \"news\"\n";
        place.define("news", &format!("[source]\n{}{news}[dates]\nnaive = \"{rule}\"\n", service.source()));
        run(&place, "news");
        let rows = read(&place.file("output/datasets/news/latest/news.parquet"));
        assert_eq!(columns(&rows, ["date", "copy", "score"]).map_rows(), expected, "{rule}");
        let record = fs::read(place.file("output/datasets/news/latest/dataset.json")).unwrap();
        let record: Value = serde_json::from_slice(&record).unwrap();
        assert_eq!(record["key"], json!(["ticker", "date", "title", "link", "copy"]));
    }
}

trait MapRows {
    fn map_rows(self) -> Vec<String>;
}

impl<const N: usize> MapRows for Vec<[String; N]> {
    /// Each row as text, with its day, and a dash for null.
    fn map_rows(self) -> Vec<String> {
        let cell = |cell: String| if cell.is_empty() { "-".to_owned() } else { cell.replace("T00:00:00", "") };
        self.into_iter().map(|row| row.map(cell).join(" ")).collect()
    }
}

#[test]
fn news_of_sectors_has_the_archived_articles_of_their_tickers_in_every_format() {
    let place = Place::new();
    let news = "source.service = \"demo\"\nsignals.sectors = [\"energy\", \"utilities\"]\n[dataset]\nkind = \"news\"\n";
    let output = "[output]\nformat = [\"parquet\", \"csv\", \"arrow\"]\nlive_within = \"3d\"\n";
    place.define("news", &format!("{news}add = [\"sector\", \"backfilled\"]\n{output}"));
    run(&place, "news");
    let sorted = "columns = [\"date\", \"ticker\", \"score\", \"title\"]\n[output]\nsort = [\"score\", \"date\"]\n";
    place.define("sorted", &format!("{news}{sorted}[filter]\nfrom = 2026-01-01\nsectors = \"energy\"\n"));
    place.run(["build", "sorted", "-q"]).expect_success();
    python::check("check_news.py", [place.path()]);
}

#[test]
fn keys_without_effect_on_a_kind_are_refused_with_their_location() {
    let place = Place::new();
    let cases = [
        ("signals", "[join]\nlag = \"1d\"\n", "`lag` has no effect on a dataset of signals", 7),
        ("signals", "[sentiment]\nsummary = true\n", "`summary` has no effect on a dataset of signals", 11),
        ("news", "[join]\nwindows = \"7d\"\n", "`windows` has no effect on a dataset of news", 11),
        (
            "news",
            "[signals]\nsectors = \"energy\"\nperiods = \"5d\"\n",
            "`periods` has no effect on a dataset of news",
            11,
        ),
        ("news", "[filter]\nregimes = \"bull\"\n", "`regimes` has no effect on a dataset of news", 11),
        ("news", "[sentiment]\narticles = false\n", "a dataset of news needs its articles", 12),
        ("news", "[output]\nlayout = \"wide\"\n", "a dataset of news cannot be wide", 10),
        ("new", "", "unknown kind of dataset `new`", 8),
    ];
    for (kind, text, expected, column) in cases {
        let signals = if text.starts_with("[signals]") { "" } else { "[signals]\nsectors = \"energy\"\n" };
        place.define("odd", &format!("[source]\nservice = \"demo\"\n[dataset]\nkind = \"{kind}\"\n{text}{signals}"));
        let shown = place.run(["check", "odd"]).failed_with(2).stderr;
        assert!(shown.contains(&format!("error: {expected}\n")) && shown.contains("\nhint: "), "{shown}");
        assert!(
            shown.lines().any(|line| line.starts_with(" --> ") && line.ends_with(&format!(":{column}"))),
            "{shown}"
        );
        assert_eq!(shown.matches("error: ").count(), 1, "{shown}");
    }
    place.define("odd", "source.service = \"demo\"\ndataset.kind = \"news\"\n");
    let shown = place.run(["check", "odd"]).failed_with(2).stderr;
    assert!(shown.starts_with("error: no tickers to fetch news for\n"), "{shown}");
}

#[test]
fn an_empty_title_is_one_however_the_files_are_written() {
    let service = Scripted::start(|_| {
        let article = |title: &str| json!({ "date": "2026-11-20", "title": title, "score": 0.5, "link": "l" });
        answer("200 OK", &json!([article(""), article("t")]).to_string())
    });
    let place = Place::new();
    let news = "[sentiment]\ntickers = \"XOM\"\n[dataset]\nkind = \"news\"\n[output]\nformat = ";
    for (name, format) in [("it", "parquet"), ("text", "csv.zst")] {
        place.define(name, &format!("[source]\n{}{news}\"{format}\"\n", service.source()));
    }
    Outcome::of(place.command(["run", "it", "-q"]).envs([KEY])).expect_success();
    place.run(["build", "text", "-q"]).expect_success();
    let shown = |name: &str| place.run(["show", name, "--format", "json"]).expect_success().stdout;
    assert!(shown("it").contains("\"title\":\"\""), "{}", shown("it"));
    assert_eq!(shown("text"), shown("it"));
}
