//! Reports: their numbers match the archive, vendor text never runs in them, and they are written next to versions.

use std::fs;

use bellwether::archive::Archive;
use bellwether::time::to_record;
use serde_json::Value;

use crate::support::program::{DemoService, Outcome, Place, builds};
use crate::support::python;
use crate::support::scripted::{Scripted, ScriptedRequest, json};

const KEY: (&str, &str) = ("BELLWETHER_API_KEY", "demo");

/// Two sectors on several days, with rewrites in between.
fn run_on<const N: usize>(days: [&str; N]) -> Place {
    let place = Place::new();
    for today in days {
        let service = DemoService::start(&place, &["--today", today]);
        let rest = "[signals]\nsectors = [\"energy\", \"utilities\"]\nperiods = [\"5d\", \"1m\"]\n";
        place.define("it", &format!("description = \"It\"\n[source]\n{}{rest}", service.source));
        Outcome::of(place.command(["run", "it", "-q"]).envs([KEY])).expect_success();
    }
    place
}

/// Recomputes every number of a dataset's report and summary, and returns the summary.
fn check(place: &Place, name: &str) -> String {
    let summary = place.run(["report", "--text", name, "--width", "100"]).expect_success().stdout;
    assert!(summary.lines().all(|line| line.chars().count() <= 100), "{summary}");
    fs::write(place.file("summary.txt"), &summary).expect("a file");
    let document = place.run(["report", "--text", name, "--json"]).expect_success().stdout;
    fs::write(place.file("summary.json"), document).expect("a file");
    place.run(["report", name]).expect_success();
    python::check("check_report.py", [place.path().as_os_str(), name.as_ref()]);
    summary
}

/// The answer for a sector: a history of each ticker, from entries in JSON.
fn histories(tickers: &[(&str, String)]) -> String {
    let history = |(ticker, entries): &(&str, String)| {
        format!(r#""{ticker}":{{"ticker":"{ticker}","regime":"neutral","period":"5d","predictions":[{entries}]}}"#)
    };
    format!("{{{}}}", tickers.iter().map(history).collect::<Vec<_>>().join(","))
}

/// Entries of a history, each from the rest of a date in January 2026, a signal and a confidence.
fn entries(entries: &[(&str, &str, f64)]) -> String {
    let entry = |(date, signal, confidence): &(&str, &str, f64)| {
        let date = if date.len() > 11 { (*date).to_owned() } else { format!("2026-01-{date}") };
        format!(r#"{{"date":"{date}","signal":"{signal}","confidence":{confidence}}}"#)
    };
    entries.iter().map(entry).collect::<Vec<_>>().join(",")
}

/// Three articles about a ticker; from the second answer on, the second article has another score.
fn three_articles(request: &ScriptedRequest) -> String {
    let score = if request.before > 0 { 0.25 } else { 0.125 };
    let article = |(day, score): (&str, f64)| {
        format!(r#"{{"date":"2026-01-{day}","title":"of {day}","score":{score},"link":"https://news.example/{day}"}}"#)
    };
    format!("[{}]", [("05", -0.5), ("06", score), ("08", 0.75)].map(article).join(","))
}

fn run(place: &Place, name: &str) -> Outcome {
    Outcome::of(place.command(["run", name]).envs([KEY])).expect_success()
}

/// A definition of one sector.
fn define(place: &Place, service: &Scripted, name: &str) {
    let rest = "periods = [\"5d\"]\n[rejects]\nmax_share = 0.9\n[checks]\ndates = \"warn\"\n";
    place.define(name, &format!("[source]\n{}[signals]\nsectors = [\"{name}\"]\n{rest}", service.source()));
}

#[test]
fn a_report_covers_only_its_own_definition() {
    // Each answer repeats the invalid records of earlier answers. The third starts with a new one.
    let service = Scripted::start(|request| {
        let target = request.target.as_str();
        let body = match target {
            _ if target.contains("/news_articles/") => three_articles(request),
            _ => {
                let more = if request.before == 2 { "keep" } else { "buy" };
                let days = [("02", "hold", 0.5), ("05", "buy", 0.25), ("06", "sell", 0.5), ("07", "buy", 0.75)];
                let text = entries(&[&[("03", more, 0.5)], &days[..]].concat());
                let text = text.replacen(r#""confidence":0.75"#, r#""model":7,"confidence":0.75"#, 1);
                let tickers = if target.contains("energy") { ["AA", "BB"] } else { ["CC", "DD"] };
                histories(&tickers.map(|ticker| (ticker, text.clone())))
            }
        };
        json("200 OK", &body)
    });
    let place = Place::new();
    define(&place, &service, "energy");
    define(&place, &service, "utilities");
    assert!(run(&place, "energy").stdout.contains("rejected  2 records\n"));
    assert!(run(&place, "energy").stdout.contains("rejected  2 records, 0 new\n"));
    assert!(check(&place, "energy").contains("2 rejected records (none new), 1 unknown field (none new)\n"));
    assert!(run(&place, "energy").stdout.contains("rejected  4 records, 2 new\n"));
    run(&place, "utilities");
    let of_energy = check(&place, "energy");
    assert!(of_energy.contains("4 rejected records (2 new), 1 unknown field (none new)\n"), "{of_energy}");
    let of_utilities = check(&place, "utilities");
    assert!(of_utilities.contains("2 rejected records, 1 unknown field\n"), "{of_utilities}");
    assert!(of_utilities.contains("from      1 run\n"), "{of_utilities}");

    let quality = |arguments: &[&str]| {
        let text = place.run([&["audit", "quality"], arguments].concat()).expect_success().stdout;
        let rows = text.lines().filter(|line| line.starts_with("signals-history-all"));
        let last_words = |line: &str| line.split_whitespace().rev().take(2).collect::<Vec<_>>().join(" of ");
        (text.lines().next().unwrap_or_default().to_owned(), rows.map(last_words).collect::<Vec<_>>())
    };
    // New and total records by reason, and the count and example of the unknown field.
    let own = quality(&["energy"]);
    assert_eq!(
        own,
        ("scope   definition `energy`".to_owned(), ["0 of 2", "2 of 2", "2 of 7"].map(str::to_owned).into())
    );
    let whole = quality(&[]);
    assert_eq!(whole.0, "scope   the whole archive, all definitions");
    assert_eq!(whole.1, ["2 of 4", "2 of 2", "4 of 7"]);

    // The same after packing all runs.
    place.pack();
    for is_pruned in [false, true] {
        if is_pruned {
            place.prune_packed();
        }
        place.run(["build", "energy", "-q"]).expect_success();
        let packed = check(&place, "energy");
        assert!(packed.contains("4 rejected records (2 new), 1 unknown field (none new)\n"), "{packed}");
        assert!(packed.contains("from      3 runs\n"), "{packed}");
        assert_eq!(quality(&["energy"]), own);
    }
}

#[test]
fn shares_and_means_count_all_dates_and_omissions_from_plots_are_stated() {
    let days = [
        ("1850-03-04T00:00:00", "sell", 0.875),
        ("05", "buy", 0.5),
        ("06", "buy", 0.5),
        ("2150-07-08T00:00:00", "sell", 0.875),
    ];
    let far = r#"{"date":"2150-01-01","title":"far","score":0.5,"link":"https://news.example/far"}"#;
    let service = Scripted::start(move |request| {
        let is_of_news = request.target.contains("/news_articles/");
        let news = || three_articles(request).replacen('[', &format!("[{far},"), 1);
        json("200 OK", &if is_of_news { news() } else { histories(&[("AA", entries(&days))]) })
    });
    let place = Place::new();
    define(&place, &service, "energy");
    run(&place, "energy");
    let summary = check(&place, "energy");
    assert!(
        summary.contains("50.0 % of signals are buys") && summary.contains("Mean confidence is 0.688"),
        "{summary}"
    );
    assert!(summary.contains("2 signals are dated before 1900 or after 2099, on 2 days."), "{summary}");
    python::check("check_page.py", [place.file("output/reports/energy.html")]);
}

#[test]
fn several_signals_on_one_day_do_not_fill_a_missing_day() {
    let service = Scripted::start(|request| {
        let twice = [("05T09:00:00", "buy", 0.5), ("05T15:00:00", "sell", 0.5), ("07T09:00:00", "buy", 0.5)];
        let once = [("05T09:00:00", "buy", 0.5), ("06T09:00:00", "sell", 0.5), ("07T09:00:00", "buy", 0.5)];
        let all = histories(&[("AA", entries(&twice)), ("BB", entries(&once))]);
        json("200 OK", &if request.target.contains("/news_articles/") { three_articles(request) } else { all })
    });
    let place = Place::new();
    define(&place, &service, "energy");
    // The hours are kept, so that both signals of the 5th are rows.
    run(&place, "energy");
    let summary = check(&place, "energy");
    assert!(summary.contains("signals   6\n") && summary.contains("1 of 2 tickers has gaps\n"), "{summary}");
    let quality = place.run(["audit", "quality", "energy"]).expect_success().stdout;
    let all = quality.lines().find(|line| line.starts_with("all ")).expect("a line of totals");
    // The two series have signals on five of their six trading days.
    assert_eq!(all.split_whitespace().take(5).collect::<Vec<_>>(), ["all", "6", "83.3", "%", "1"]);
}

#[test]
fn a_report_shows_rewritten_articles_even_if_no_signal_was() {
    let service = Scripted::start(|request| {
        let days = ["05", "06", "07"].map(|day| (day, "buy", 0.5));
        let all = histories(&[("AA", entries(&days)), ("BB", entries(&days))]);
        json("200 OK", &if request.target.contains("/news_articles/") { three_articles(request) } else { all })
    });
    let place = Place::new();
    define(&place, &service, "energy");
    run(&place, "energy");
    assert!(check(&place, "energy").contains("Only one run so far: nothing to compare with\n"));
    run(&place, "energy");
    let summary = check(&place, "energy");
    let sentence = "No signals and 33.3 % of articles changed after they were first seen (";
    let shown = summary.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(shown.contains(sentence) && shown.contains(" from the first answer to the last)"), "{summary}");
    assert!(summary.contains("6 articles: 2 revisions, 0 added late, 0 withdrawn.\n"), "{summary}");
    python::check("check_page.py", [place.file("output/reports/energy.html")]);
}

#[test]
fn a_report_matches_the_archive_and_the_dataset() {
    let place = run_on(["2026-08-03", "2026-11-18", "2026-11-20"]);
    check(&place, "it");
    python::check("check_page.py", [place.file("output/reports/it.html")]);
    let narrow = place.run(["report", "--text", "--width", "20"]).expect_success().stdout;
    assert!(narrow.lines().all(|line| line.chars().count() <= 50), "{narrow}");

    // The same by name, as the last built, and on standard output.
    let message = |arguments: &[&str]| place.run(arguments).expect_success().stdout;
    let beside = fs::read_to_string(place.file("output/reports/it.html")).expect("a report");
    let by_name = message(&["report", "it", "--output", "-"]);
    assert_eq!(beside, by_name, "it is the same page");
    assert_eq!(message(&["report", "--output", "-"]), by_name);
    // As known before any rewrite.
    let archive = Archive::open(&place.file("output/archive/vendor")).expect("an archive");
    let first = to_record(archive.runs()[0].seal().sealed_at);
    let earlier = message(&["report", "it", "--output", "-", "--as-of", &first]);
    assert!(earlier.contains("Only one run so far: nothing to compare with"));
    assert!(by_name.contains("<dt>Content</dt>") && !earlier.contains("<dt>Content</dt>"), "it is of no version");
    let path = place.run(["report", "it"]).expect_success().stdout;
    assert_eq!(path, "report    output/reports/it.html\n");
    assert_eq!(fs::read_to_string(place.file("output/reports/it.html")).expect("a report"), by_name);
    let unknown = place.run(["report", "other"]).failed_with(1).stderr;
    assert!(unknown.starts_with("error: no version `other` in `output/datasets`\nhint: known names: it;"), "{unknown}");
}

#[test]
fn a_report_of_an_ad_hoc_build_is_about_its_rows() {
    let place = run_on(["2026-11-18", "2026-11-19", "2026-11-20"]);
    let known = |name: &str| -> [u64; 2] {
        let summary = place.run(["report", "--text", name, "--json"]).expect_success().stdout;
        let summary: Value = serde_json::from_str(&summary).expect("JSON");
        ["signals", "articles"].map(|of| summary["revisions"][of]["total"]["known"].as_u64().expect("a count"))
    };
    let whole = known("it");
    let ticker = place.run(["show", "it", "--format", "csv", "--columns", "ticker"]).expect_success().stdout;
    let ticker = ticker.lines().nth(1).expect("a row").to_owned();
    for (options, words) in [
        (vec!["--ticker", &ticker], "as they were last revised"),
        (vec!["--period", "5d", "--vintage", "first"], "as they were first published"),
    ] {
        place.run([&["build", "it", "-q"], &options[..]].concat()).expect_success();
        let build = builds(&place, "it").pop().expect("a build");
        let name = format!("it/builds/{}", build.file_name().expect("a name").to_str().expect("text"));
        let part = known(&name);
        assert!(part[0] > 0 && part[0] < whole[0], "{options:?}: {part:?} of {whole:?}");
        let page = place.file("page.html");
        place.run(["report", &name, "--force", "--output", page.to_str().expect("text")]).expect_success();
        let page = fs::read_to_string(page).expect("a page");
        assert!(page.contains(words), "{options:?}");
        place.run(["prune", &name]).expect_success();
    }
}

#[test]
fn a_run_draws_its_report_if_its_definition_asks_for_one() {
    let place = run_on(["2026-11-20"]);
    let page = place.file("output/reports/it.html");
    assert!(!page.exists(), "no report was asked for");
    let said = place.run(["build", "it"]).expect_success().stdout;
    assert!(said.contains("report    bellwether report it\n"), "{said}");
    // Of either layout; matrices cannot be compared.
    for layout in ["", "layout = \"wide\"\nkeep = 1\n"] {
        let text = fs::read_to_string(place.file("pipelines/it.toml")).expect("a definition");
        let text = text.split("[output]").next().expect("a definition").to_owned();
        place.define("it", &format!("{text}[output]\nreport = true\n{layout}"));
        let said = place.run(["build", "it"]).expect_success().stdout;
        assert!(said.contains("report    output/reports/it.html\n"), "{said}");
        let page = fs::read_to_string(&page).expect("a report");
        assert!(page.contains("id=\"plot-tickers\""));
        assert!(layout.is_empty() || !page.contains("bellwether diff"));
    }
    place.run(["verify"]).expect_success();
    let folders = fs::read_dir(place.file("output/datasets/it")).expect("a folder").count();
    assert_eq!(folders, 2, "one version, and the link to it");
}

#[test]
fn a_report_begins_with_what_changed_since_the_version_before() {
    let place = run_on(["2026-11-18", "2026-11-20"]);
    let versions = place.run(["list", "datasets", "it", "--json"]).expect_success().stdout;
    let told = place.run(["report", "it", "--text", "--width", "100"]).expect_success().stdout;
    let told = told.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(
        told.contains(" Since version ") && told.contains("the newest date went from 2026-11-18 to 2026-11-20"),
        "{told} {versions}"
    );
    assert!(told.contains("signals known then revised or withdrawn"), "{told}");
    // The first version has none before.
    let mut folders: Vec<String> = fs::read_dir(place.file("output/datasets/it"))
        .expect("a folder")
        .filter_map(|entry| entry.expect("an entry").file_name().into_string().ok())
        .filter(|name| name.starts_with("20"))
        .collect();
    folders.sort();
    let first = place.run(["report", &format!("it/{}", folders[0]), "--text"]).expect_success().stdout;
    assert!(!first.contains("Since version"), "{first}");
}

/// A service whose texts all contain markup.
fn hostile(target: &str) -> String {
    const WORD: &str = r#"</script></style></td><script>window.hostileScript=1</script><img src=https://evil.example/x onerror='hostileImage=1'>\" onfocus=\"hostileFocus=1"#;
    if let Some(rest) = target.strip_prefix("/b/news_articles/") {
        let links = [
            "javascript:hostileLink()",
            "https://news.example/a?b=c&d=\\\"e",
            "data:text/html,<script>1</script>",
            "//x",
        ];
        let articles = links.iter().enumerate().map(|(number, link)| {
            let (day, score) = (number + 2, number as f64 / 4.0 - 0.5);
            let title = format!("{WORD} {rest} \\u202e{}", "long".repeat(60));
            format!(r#"{{"date":"2026-10-{day:02}","title":"{title}","score":{score},"link":"{link}"}}"#)
        });
        return format!("[{}]", articles.collect::<Vec<_>>().join(","));
    }
    let entries = (1..28).map(|day| {
        let signal = if day % 9 == 0 { WORD } else { ["buy", "sell"][day % 2] };
        format!(
            r#"{{"date":"2026-10-{day:02}T00:00:00","signal":"{signal}","confidence":0.{day:02},"{WORD}":"{WORD}"}}"#
        )
    });
    let entries = entries.collect::<Vec<_>>().join(",");
    let series = |name: &str| {
        format!(r#""{name}":{{"ticker":"{name}","regime":"bear","period":"5d","predictions":[{entries}]}}"#)
    };
    format!("{{{},{},{}}}", series("BRK.B"), series("ABCDEFGHIJKLMNOP"), series(WORD))
}

#[test]
fn vendor_text_never_runs_in_a_report_or_escapes_its_element() {
    let service = Scripted::start(|request| json("200 OK", &hostile(&request.target)));
    let place = Place::new();
    let definition = format!(
        "description = \"<script>hostileDescription=1</script> & {}\"\n[source]\n{}[signals]\nsectors = [\"x'\\\"><b>\"]\n\
         periods = [\"5d\"]\nregimes = [\"bear\"]\n[rejects]\nmax_share = 0.9\n",
        "description".repeat(30),
        service.source()
    );
    place.define("hostile", &definition);
    Outcome::of(place.command(["run", "hostile", "-q"]).envs([KEY])).expect_success();
    place.run(["report", "hostile"]).expect_success();
    let page = place.file("output/reports/hostile.html");
    let shown = "<script>window.hostileScript=1</script>";
    python::check(
        "check_page.py",
        [page.as_os_str(), shown.as_ref(), "<script>hostileDescription=1</script>".as_ref()],
    );
    let summary = place.run(["report", "--text", "hostile"]).expect_success().stdout;
    assert!(!summary.chars().any(|character| character.is_control() && character != '\n'), "{summary:?}");
}
