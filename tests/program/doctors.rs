//! `doctor`: what a run would refuse, it finds, and what it calls right is.

use std::fs;
use std::os::unix::fs::symlink;

use crate::schedules::process::{define, history};
use crate::support::program::{DemoService, Outcome, Place};
use crate::support::proxy::Proxy;
use crate::support::scripted::{Scripted, json, reply};
use crate::support::tls::{TlsService, certificate};

const REST: &str = "[signals]\nsectors = [\"utilities\"]\n";

fn of(place: &Place, command: &[&str], variables: &[(&str, &str)]) -> Outcome {
    Outcome::of(place.command(command).envs(variables.iter().copied()))
}

#[test]
fn the_key_line_is_ok_only_with_a_key_and_names_where_it_comes_from() {
    let place = Place::new();
    let service = DemoService::start(&place, &["--today", "2026-11-20"]);
    place.define("it", &format!("[source]\n{}{REST}", service.source));
    fs::write(place.file("own-key"), "demo\n").unwrap();
    let doctor = |variables: &[(&str, &str)]| of(&place, &["doctor", "it"], variables);
    let of_key = |outcome: Outcome| -> String {
        let lines: Vec<String> =
            outcome.stdout.lines().filter(|line| line.contains("  key  ")).map(Into::into).collect();
        assert_eq!(lines.len(), 1, "{}", outcome.stdout);
        lines[0].clone()
    };
    let shown = of_key(doctor(&[("BELLWETHER_API_KEY", "demo")]).expect_success());
    assert!(shown.starts_with("ok  ") && shown.ends_with("from `BELLWETHER_API_KEY`"), "{shown}");
    let shown = of_key(doctor(&[("BELLWETHER_API_KEY_FILE", "own-key")]).expect_success());
    assert!(shown.starts_with("ok  ") && shown.contains("own-key`, which `BELLWETHER_API_KEY_FILE`"), "{shown}");
    let both = [("BELLWETHER_API_KEY", "demo"), ("BELLWETHER_API_KEY_FILE", "own-key")];
    assert!(of_key(doctor(&both).expect_success()).ends_with("from `BELLWETHER_API_KEY`"));
    for none in [&[][..], &[("BELLWETHER_API_KEY_FILE", "no-such-file")]] {
        let outcome = doctor(none).failed_with(1);
        assert!(!outcome.stdout.contains("from `BELLWETHER_API_KEY`"), "{}", outcome.stdout);
        assert!(of_key(outcome).starts_with("failed "));
    }
    place.define("it", &format!("[source]\n{}api_key_command = [\"echo\", \"demo\"]\n{REST}", service.source));
    assert!(of_key(doctor(&[]).expect_success()).ends_with("from the command `echo`"));
}

#[test]
fn wrong_and_swapped_addresses_are_said_as_a_run_says_them() {
    let place = Place::new();
    let service = DemoService::start(&place, &["--today", "2026-11-20"]);
    let (signals, news) = (service.address("base_url"), service.address("sentiment_base_url"));
    let page = Scripted::start(|_| reply("200 OK", "Content-Type: text/html; charset=utf-8\r\n", b"<html></html>"));
    let page = format!("http://{}/a", page.address());
    let wrong = format!("{signals}/wrong");
    for (base_url, sentiment_base_url, settings) in [
        (signals, news, &[][..]),
        (wrong.as_str(), news, &["base_url"]),
        (signals, wrong.as_str(), &["sentiment_base_url"]),
        (news, signals, &["base_url", "sentiment_base_url"]),
        (page.as_str(), page.as_str(), &["base_url", "sentiment_base_url"]),
    ] {
        let source =
            format!("name = \"it\"\nbase_url = \"{base_url}\"\nsentiment_base_url = \"{sentiment_base_url}\"\n");
        place.define("it", &format!("[source]\n{source}patience = \"1s\"\n{REST}"));
        let key = [("BELLWETHER_API_KEY", "demo")];
        let outcome = of(&place, &["doctor", "it"], &key);
        assert_eq!(outcome.code, Some(i32::from(!settings.is_empty())), "{source}{}", outcome.stdout);
        let words: String = outcome.stdout.split_whitespace().collect::<Vec<_>>().join(" ");
        for setting in settings {
            assert!(words.contains(&format!(": is `{setting}` correct? check the address")), "{source}{words}");
        }
        assert!(settings.is_empty() || !words.contains("ask the vendor"), "{words}");
        // The run agrees.
        let run = of(&place, &["run", "it", "-q", "--data", "elsewhere", "--new-archive"], &key);
        assert_eq!(run.code == Some(0), settings.is_empty(), "{source}{}", run.stderr);
    }
}

#[test]
fn a_service_is_asked_for_its_sectors() {
    let place = Place::new();
    let service = DemoService::start(&place, &["--today", "2026-11-20"]);
    let (signals, news) = (service.address("base_url"), service.address("sentiment_base_url"));
    let addresses = ["--base-url", signals, "--sentiment-base-url", news];
    let init = |name: &str, variables: &[(&str, &str)]| {
        let said = of(&place, &[&["init", name][..], &addresses].concat(), variables).expect_success().stderr;
        let text = fs::read_to_string(place.file(&format!("pipelines/{name}.toml"))).unwrap();
        let line = text.lines().find(|line| line.starts_with("sectors = ")).expect("sectors").to_owned();
        (said, line)
    };
    let guessed = "sectors = [\"energy\", \"healthcare\", \"financials\"]";
    let (said, sectors) = init("guessed", &[]);
    assert!(said.contains("the sectors are examples; with a key"), "{said}");
    assert_eq!(sectors, guessed);
    let (said, sectors) = init("refused", &[("BELLWETHER_API_KEY", "wrong")]);
    assert!(said.contains("refused the API key") && !said.contains("wrong"), "{said}");
    assert_eq!(sectors, guessed);
    let key = [("BELLWETHER_API_KEY", "demo")];
    let (_, sectors) = init("mine", &key);
    let all = [
        "communication-services",
        "consumer-discretionary",
        "consumer-staples",
        "energy",
        "financials",
        "healthcare",
        "industrials",
        "materials",
        "real-estate",
        "technology",
        "utilities",
    ];
    assert_eq!(sectors, format!("sectors = {all:?}"));
    let healthy = of(&place, &["doctor", "mine"], &key).expect_success().stdout;
    assert!(healthy.contains("\nok       answers          signals-history-all: 500 histories with "), "{healthy}");
    let text = format!("[source]\n{}[signals]\nsectors = [\"tech\", \"utilities\"]\n", service.source);
    place.define("it", &text);
    let found = of(&place, &["doctor", "it"], &key).failed_with(1).stdout;
    assert!(found.contains("failed   missing          no signals for sector `tech`"), "{found}");
}

#[test]
fn the_sectors_and_tickers_of_a_service_are_listed() {
    let place = Place::new();
    let service = DemoService::start(&place, &["--today", "2026-11-20"]);
    let key = [("BELLWETHER_API_KEY", "demo")];
    let list = |arguments: &[&str]| of(&place, &[&["list"], arguments].concat(), &key);
    list(&["sectors"]).failed_with(2);
    place.define("it", &format!("[source]\n{}[signals]\nsectors = [\"tech\", \"utilities\"]\n", service.source));
    let listed = list(&["sectors", "it"]).expect_success();
    assert_eq!(listed.stdout.lines().count(), 11, "{listed:?}");
    assert!(
        listed.stdout.contains("real-estate\ntechnology\nutilities\n")
            && listed.stderr.contains("asked for 21 sectors")
    );
    // The only definition need not be named; of several, one must be.
    let document = |arguments: &[&str]| {
        let printed = list(arguments).expect_success().stdout;
        serde_json::from_str::<serde_json::Value>(&printed).expect("a document")
    };
    let sectors = document(&["sectors", "--json"]);
    assert_eq!(sectors["sectors"], serde_json::json!(listed.stdout.lines().collect::<Vec<_>>()));
    assert!(sectors["asked"].as_array().expect("sectors").contains(&"tech".into()), "{sectors}");
    let tickers = list(&["tickers"]).expect_success().stdout;
    assert_eq!(document(&["tickers", "--json"])["tickers"], serde_json::json!(tickers.lines().collect::<Vec<_>>()));
    place.define("demo", "source.service = \"demo\"\nsignals.tickers = \"available\"\ndataset.kind = \"signals\"\n");
    let refused = list(&["tickers"]).failed_with(2).stderr;
    assert!(refused.contains("no definition given") && refused.contains("\n  it"), "{refused}");
    assert_eq!(list(&["tickers", "demo"]).expect_success().stdout, tickers);
    // A run takes the same tickers.
    let summary = of(&place, &["run", "demo", "--log", "json"], &[]).expect_success().stdout;
    let summary: serde_json::Value = serde_json::from_str(&summary).expect("a document");
    assert_eq!(summary["source"]["tickers"], serde_json::json!(tickers.lines().collect::<Vec<_>>()));
    // Before the change set that brings the list, there is none.
    let older = DemoService::start(&place, &["--today", "2026-11-20", "--change-set", "origin"]);
    place.define("older", &format!("[source]\n{}[signals]\nsectors = \"energy\"\n", older.source));
    let refused = list(&["tickers", "older"]).failed_with(1).stderr;
    assert!(refused.starts_with("error: the service does not list its tickers: `http://"), "{refused}");
    assert!(refused.contains("hint: take all tickers of its sectors"), "{refused}");
}

#[test]
fn a_proxy_in_use_is_named_also_when_it_works() {
    let place = Place::new();
    let service = TlsService::start(|target| match target.starts_with("/a/") {
        true => "{\"A\":[{\"date\":\"2026-11-20\",\"signal\":\"buy\",\"confidence\":0.5}]}",
        false => "[]",
    });
    let proxy = Proxy::start(Some(service.address));
    let addresses = "base_url = \"https://vendor.example/a\"\nsentiment_base_url = \"https://vendor.example/b\"\n";
    place.define("it", &format!("[source]\n{addresses}{REST}"));
    let through = format!("http://me:S3CRET-password@{}", proxy.address);
    let trusted = certificate().display().to_string();
    let variables = [("BELLWETHER_API_KEY", "demo"), ("HTTPS_PROXY", &through), ("SSL_CERT_FILE", &trusted)];
    let outcome = of(&place, &["doctor", "it", "--json"], &variables).expect_success();
    let named = format!("through the proxy `{}`", proxy.address);
    assert_eq!(outcome.stdout.matches(&named).count(), 2, "{}", outcome.stdout);
    assert!(!outcome.stdout.contains("S3CRET"), "{}", outcome.stdout);
}

#[test]
fn what_a_run_says_of_answers_doctor_says_before() {
    let key = [("BELLWETHER_API_KEY", "demo")];
    let history = |entry: &str| {
        format!(
            "{{\"XOM\":{{\"ticker\":\"XOM\",\"regime\":\"neutral\",\"period\":\"15d\",\"predictions\":[{entry}]}}}}"
        )
    };
    let good = "{\"date\":\"2026-11-20\",\"signal\":\"buy\",\"confidence\":0.5}";
    let bodies = [
        (history(good), "[]", None),
        (history(&good.replace("buy", "hold")), "[]", Some("unknown signal `hold`, at `/XOM/predictions/0`")),
        ("{}".to_owned(), "[]", Some("no signals for sector `utilities`")),
        ("[1]".to_owned(), "[]", Some("expected an object whose keys are tickers, found `[`")),
        (history(good), "{", Some("expected an array, found `{`")),
    ];
    for (signals, news, expected) in bodies {
        let place = Place::new();
        let body = signals.clone();
        let service = Scripted::start(move |request| {
            json("200 OK", if request.target.starts_with("/a/") { &body } else { news })
        });
        place.define("it", &format!("[source]\n{}{REST}", service.source()));
        let doctor = of(&place, &["doctor", "it", "--json"], &key);
        let run = of(&place, &["run", "it", "-q"], &key);
        assert_eq!(doctor.code == Some(0), run.code == Some(0), "{signals}: {}{}", doctor.stdout, run.stderr);
        let expected = expected.unwrap_or("signals-history-all: 1 history with 1 record; news_articles: 0 records");
        assert!(doctor.stdout.contains(expected), "{expected}: {}", doctor.stdout);
        assert!(run.code == Some(0) || run.stderr.contains(expected), "{expected}: {}", run.stderr);
    }
}

#[test]
fn what_a_definition_allows_to_be_missing_is_a_warning_of_doctor() {
    let key = [("BELLWETHER_API_KEY", "demo")];
    let place = Place::new();
    let service = Scripted::of_histories(|request| match request.target.contains("utilities") {
        true => json("200 OK", "{\"A\":[{\"date\":\"2026-11-20\",\"signal\":\"buy\",\"confidence\":0.5}]}"),
        false => json("404 Not Found", "{}"),
    });
    let rest =
        "[signals]\nsectors = [\"utilities\", \"tech\"]\n[sentiment]\narticles = false\n[checks]\nmissing = \"warn\"\n";
    place.define("it", &format!("[source]\n{}{rest}", service.source()));
    let shown = of(&place, &["doctor", "it"], &key).expect_success().stdout;
    assert!(shown.contains("warning  missing ") && shown.contains("no signals for sector `tech`"), "{shown}");
    assert!(!place.file("output").exists(), "nothing is kept of what doctor asked");
    of(&place, &["run", "it", "-q"], &key).expect_success();
}

#[test]
fn the_list_of_tickers_is_read_as_a_run_reads_it() {
    let place = Place::new();
    let service = Scripted::start(|request| match request.target.contains("page=1") {
        true => json("200 OK", "{\"tickers\":[\"C\"]}"),
        false => reply("200 OK", "Link: <?page=1>; rel=next\r\n", b"{\"tickers\":[\"A\",\"B\"]}"),
    });
    let source = format!("[source]\n{}unwrap = \"tickers\"\n", service.source());
    place.define("it", &format!("{source}[signals]\ntickers = \"available\"\n"));
    let listed = of(&place, &["list", "tickers", "it"], &[("BELLWETHER_API_KEY", "demo")]).expect_success();
    assert_eq!(listed.stdout, "A\nB\nC\n");
}

/// What is done to a project that a run then refuses.
type Obstacle = (&'static str, fn(&Place));

#[test]
fn what_a_run_would_refuse_doctor_finds() {
    let obstacles: [Obstacle; 12] = [
        ("data is a file", |place| {
            fs::rename(place.file("output"), place.file("aside")).unwrap();
            fs::write(place.file("output"), "").unwrap();
        }),
        ("datasets is a file", |place| {
            fs::rename(place.file("output/datasets"), place.file("aside")).unwrap();
            fs::write(place.file("output/datasets"), "").unwrap();
        }),
        ("the archive is a file", |place| {
            fs::rename(place.file("output/archive"), place.file("aside")).unwrap();
            fs::write(place.file("output/archive"), "").unwrap();
        }),
        ("the archive of the service is a link", |place| {
            fs::rename(place.file("output/archive/vendor"), place.file("aside")).unwrap();
            symlink(place.file("aside"), place.file("output/archive/vendor")).unwrap();
        }),
        ("the folder of unfinished runs is a link", |place| {
            fs::rename(place.file("output/archive/vendor/.partial"), place.file("aside")).unwrap();
            symlink(place.file("aside"), place.file("output/archive/vendor/.partial")).unwrap();
        }),
        ("the dataset is a link", |place| {
            fs::rename(place.file("output/datasets/it"), place.file("aside")).unwrap();
            symlink(place.file("aside"), place.file("output/datasets/it")).unwrap();
        }),
        ("the archive is gone", |place| {
            fs::rename(place.file("output/archive"), place.file("aside")).unwrap();
        }),
        ("a seal is damaged", |place| {
            let run = crate::support::rows::sealed_run(place);
            fs::write(run.join("run.json"), "{").unwrap();
        }),
        ("a run outside the folder of its service", |place| {
            let run = crate::support::rows::sealed_run(place);
            fs::rename(&run, place.file("output/archive").join(run.file_name().unwrap())).unwrap();
        }),
        ("another service", |place| {
            let text = fs::read_to_string(place.file("pipelines/it.toml")).unwrap();
            place.define("it", &text.replace("name = \"vendor\"", "name = \"other\""));
        }),
        ("a store that is a file", |place| {
            let text = fs::read_to_string(place.file("pipelines/it.toml")).unwrap();
            let store = place.file("store");
            fs::write(&store, "").unwrap();
            place.define("it", &format!("{text}[store]\nurl = \"file://{}\"\n", store.display()));
        }),
        ("the lock is a folder", |place| {
            fs::remove_file(place.file("output/archive/.locks/it")).unwrap();
            fs::create_dir(place.file("output/archive/.locks/it")).unwrap();
        }),
    ];
    let key = [("BELLWETHER_API_KEY", "demo")];
    for (what, obstruct) in obstacles {
        let place = Place::new();
        let service = Scripted::of_histories(|_| json("200 OK", &history()));
        define(&place, "it", &service, "");
        of(&place, &["run", "it", "-q"], &key).expect_success();
        of(&place, &["doctor", "it"], &key).expect_success();
        obstruct(&place);
        let outcome = of(&place, &["doctor", "it"], &key);
        assert!(outcome.code == Some(1) && outcome.stdout.contains("\nfailed  "), "{what}: {}", outcome.stdout);
        let run = of(&place, &["run", "it", "-q"], &key);
        assert_ne!(run.code, Some(0), "{what}: {}", run.stderr);
    }
}
