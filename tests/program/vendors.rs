//! Vendors that differ from the interface where real ones do: how they are asked, what they write, and what they say.

use std::sync::Mutex;
use std::time::{Duration, Instant};

use crate::faults::{GOOD, rows, run};
use crate::support::program::{DemoService, Outcome, Place};
use crate::support::rows::{read, sealed_run, texts};
use crate::support::scripted::{Scripted, ScriptedRequest, Step, json, reply};

/// The problems that `check` finds in a `[source]` with some lines.
fn problems(lines: &str) -> String {
    let place = Place::new();
    let addresses = "base_url = \"https://a.example\"\nsentiment_base_url = \"https://b.example\"\n";
    place.define("it", &format!("[source]\n{addresses}{lines}[signals]\nsectors = [\"energy\"]\n"));
    place.run(["check", "it"]).failed_with(2).stderr
}

#[test]
fn how_a_vendor_is_asked_is_what_its_definition_says() {
    let place = Place::new();
    let service = Scripted::of_histories(|_| json("200 OK", GOOD));
    let source = "key = { header = \"X-Api-Key\" }\nquery = { tenant = \"7\", format = \"a b\" }\n\
                  paths = { signals-history-all = \"/v2/history/\" }\n";
    let outcome = run(&place, &service, source, "").expect_success();
    assert_eq!(rows(&outcome), "rows      2");
    let target = "/a/v2/history?sector=energy&period=15d&regime=neutral&format=a+b&tenant=7";
    assert_eq!(service.targets(), [target]);
    assert!(service.heads().iter().any(|line| line == "x-api-key: demo"), "{:?}", service.heads());

    let place = Place::new();
    let service = Scripted::of_histories(|_| json("200 OK", GOOD));
    run(&place, &service, "key = { query = \"apikey\" }\n", "").expect_success();
    assert_eq!(service.targets(), ["/a/signals-history-all?sector=energy&period=15d&regime=neutral&apikey=demo"]);
    assert!(!service.heads().iter().any(|line| line.contains("demo")), "{:?}", service.heads());

    let place = Place::new();
    let service = Scripted::of_histories(|_| json("200 OK", GOOD));
    let source = format!("[source]\n{}key = {{ header = \"X-Key\" }}\n", service.source());
    place.define("it", &format!("{source}[signals]\nsectors = [\"energy\"]\n"));
    let refused = Outcome::of(place.command(["run", "it"]).env("BELLWETHER_API_KEY", "two\u{1}words-9911"));
    assert_ne!(refused.code, Some(0));
    assert!(refused.stderr.contains("the API key cannot be sent in the header `X-Key`"), "{}", refused.stderr);
    assert!(service.count() == 0 && !refused.stderr.contains("9911"), "{}", refused.stderr);

    // An operation that is asked for each ticker.
    for (path, target) in [("news", "/b/news/XOM?api_key=demo"), ("v2/{ticker}/news", "/b/v2/XOM/news?api_key=demo")] {
        let place = Place::new();
        let service = Scripted::of_histories(|_| json("200 OK", GOOD));
        let source = format!("[source]\n{}paths.news_articles = \"{path}\"\n", service.source());
        place.define("it", &format!("{source}[signals]\nsectors = [\"energy\"]\n"));
        Outcome::of(place.command(["run", "it"]).env("BELLWETHER_API_KEY", "demo")).expect_success();
        assert_eq!(service.targets()[1..], [target]);
    }
}

#[test]
fn what_cannot_be_asked_is_refused_with_its_place() {
    for (lines, expected) in [
        ("key = { header = \"a b\" }\n", "`a b` cannot be the name of a header"),
        ("key = { header = \"a\", query = \"b\" }\n", "the key is sent in a header or in the query"),
        ("key = { query = \"sector\" }\n", "the key cannot be sent as `sector`"),
        ("query = { period = \"5d\" }\n", "`period` is sent already"),
        ("query = { api_key = \"mine\" }\n", "`api_key` is sent already"),
        ("paths = { signal-history-all = \"x\" }\n", "did you mean `signals-history-all`?"),
        ("paths = { signals-history-all = \"../x\" }\n", "`../x` is not a path"),
        ("paths = { signals-history-all = \"x?a=1\" }\n", "`x?a=1` is not a path"),
        ("paths = { signals-history-all = \"x/{ticker}\" }\n", "`signals-history-all` is not asked for a ticker"),
        ("clock = \"theirs\"\n", "unknown clock `theirs`"),
    ] {
        let found = problems(lines);
        assert!(found.contains(expected) && found.contains("pipelines/it.toml:4:"), "{lines}{found}");
    }
    let place = Place::new();
    let source = "service = \"demo\"\nclock = \"ours\"\nquery = { a = \"b\" }\n";
    place.define("it", &format!("[source]\n{source}[signals]\nsectors = [\"energy\"]\n"));
    let found = place.run(["check", "it"]).failed_with(2).stderr;
    for key in ["clock", "query"] {
        assert!(found.contains(&format!("`{key}` has no effect on the demo service")), "{found}");
    }
}

/// A service that sends everybody from one path to another.
fn redirecting(status: &'static str, to: String) -> Scripted {
    Scripted::start(move |request: &ScriptedRequest| match request.target.starts_with("/a/signals-history-all?") {
        true => reply(status, &format!("Location: {to}\r\n"), b""),
        false => json("200 OK", GOOD),
    })
}

#[test]
fn a_redirect_within_the_service_is_followed_and_no_other_one() {
    for (status, to) in [
        ("307 Temporary Redirect", "/a/signals-history-all/"),
        ("308 Permanent Redirect", "/a/signals-history-all/?sector=energy&period=15d&regime=neutral&api_key=demo"),
        ("301 Moved Permanently", "signals-history-all/"),
    ] {
        let place = Place::new();
        let service = redirecting(status, to.to_owned());
        assert_eq!(rows(&run(&place, &service, "", "").expect_success()), "rows      2", "{to}");
        let query = "sector=energy&period=15d&regime=neutral&api_key=demo";
        assert_eq!(service.targets()[1], format!("/a/signals-history-all/?{query}"), "{to}");
    }
    let elsewhere = Scripted::of_histories(|_| json("200 OK", GOOD));
    let place = Place::new();
    let to = format!("http://{}/a/signals-history-all", elsewhere.address());
    let shown = run(&place, &redirecting("307 Temporary Redirect", to.clone()), "", "").failed_with(1).stderr;
    assert!(shown.contains("redirects to another address are not followed") && shown.contains(&to), "{shown}");
    assert!(elsewhere.targets().is_empty());

    let place = Place::new();
    let around =
        Scripted::start(|request| reply("307 Temporary Redirect", &format!("Location: {}\r\n", request.target), b""));
    run(&place, &around, "", "").failed_with(1);
    assert_eq!(around.count(), 4, "an endless redirect ends");
}

#[test]
fn the_vendor_s_own_words_are_told() {
    let html = "<html><head><title>Upgrade\n required</title></head><body>demo-key-5521</body></html>";
    type Answer = fn() -> Vec<Step>;
    let cases: [(Answer, i32, &[&str]); 4] = [
        (
            || json("402 Payment Required", r#"{"error":{"message":"Quota exceeded"}}"#),
            1,
            &["it says: Quota exceeded\n"],
        ),
        (
            || json("403 Forbidden", r#"{"detail":"no energy for demo-key-5521\u001b[2J"}"#),
            1,
            &["it says: no energy for "],
        ),
        (
            || reply("429 Too Many Requests", "Retry-After: 7200\r\n", b"slow down"),
            75,
            &["status 429, it says: slow down\n", "it asks to wait 2 h"],
        ),
        (|| json("206 Partial Content", GOOD), 1, &["with status 206", "a part of the answer"]),
    ];
    for (answer, code, expected) in cases {
        let place = Place::new();
        let service = Scripted::of_histories(move |_| answer());
        let source = format!("[source]\n{}patience = \"2s\"\n", service.source());
        place.define("it", &format!("{source}[signals]\nsectors = [\"energy\"]\n[sentiment]\narticles = false\n"));
        let outcome = Outcome::of(place.command(["run", "it"]).env("BELLWETHER_API_KEY", "demo-key-5521"));
        let shown = outcome.failed_with(code).stderr;
        assert!(expected.iter().all(|text| shown.contains(text)), "{shown}");
        assert!(!shown.contains("5521") && !shown.contains('\u{1b}'), "{shown}");
    }
    let place = Place::new();
    let service =
        Scripted::of_histories(move |_| reply("400 Bad Request", "Content-Type: text/html\r\n", html.as_bytes()));
    let shown = run(&place, &service, "", "").failed_with(1).stderr;
    assert!(shown.contains("it says: Upgrade required\n"), "{shown}");
    let place = Place::new();
    let service = Scripted::of_histories(|_| json("200 OK", r#"{"error":"Quota exceeded"}"#));
    let shown = run(&place, &service, "", "").failed_with(4).stderr;
    assert!(shown.contains("the service says \"Quota exceeded\""), "{shown}");
    for (rest, expected) in [
        ("sectors = [\"energy\"]\n", "found `{`, and the service says: Quota exceeded at byte 0"),
        ("tickers = [\"XOM\"]\n", "the service says \"Quota exceeded\""),
        ("history = \"latest\"\ntickers = [\"XOM\"]\n", "the service says \"Quota exceeded\""),
    ] {
        let place = Place::new();
        let service = Scripted::start(|request| match request.target.starts_with("/a/signals-history-all") {
            true => json("200 OK", GOOD),
            false => json("200 OK", r#"{"error":"Quota exceeded"}"#),
        });
        place.define("it", &format!("[source]\n{}[signals]\n{rest}", service.source()));
        let shown = Outcome::of(place.command(["run", "it"]).env("BELLWETHER_API_KEY", "demo"));
        assert!(shown.stderr.contains(expected), "{expected}: {}", shown.stderr);
    }
}

#[test]
fn what_real_stacks_write_is_read_as_what_it_means() {
    let dates = |first: &str, second: &str| {
        GOOD.replace("\"2026-11-20T00:00:00+00:00\"", first).replace("\"2026-11-19T00:00:00+00:00\"", second)
    };
    let bodies = [
        dates("\"2026-11-20T00:00Z\"", "\"2026-11-19 00:00:00 UTC\""),
        dates("\"2026-11-20 00:00:00+00\"", "\"Thu, 19 Nov 2026 00:00:00 GMT\""),
        dates("1795132800", "1795046400000"),
        dates("\" 2026-11-20T00:00:00Z \"", "\"2026-11-19T00:00:00,0Z\""),
        dates("\"2026-11-19T19:00-05:00[America/New_York]\"", "\"2026-11-19T00:00:00Z\"").replace("0.75", "\"0.75\""),
        GOOD.replace("\"15d\"", "\"15D\"").replace("neutral", "Neutral"),
        GOOD.replace("\"15d\"", "15").replace("\"regime\":\"neutral\",", ""),
        GOOD.replace("\"ticker\":\"XOM\",", "").replace("\"15d\"", "null"),
    ];
    let plain = {
        let place = Place::new();
        let service = Scripted::of_histories(|_| json("200 OK", GOOD));
        run(&place, &service, "", "").expect_success();
        read(&place.file("output/datasets/it/latest/it.parquet"))
    };
    for body in bodies {
        let place = Place::new();
        let sent = body.clone();
        let service = Scripted::of_histories(move |_| json("200 OK", &sent));
        let outcome = run(&place, &service, "", "").expect_success();
        assert!(outcome.stdout.contains("lenient   accepted "), "{body}: {}", outcome.stdout);
        let dataset = read(&place.file("output/datasets/it/latest/it.parquet"));
        for column in ["ticker", "date", "period", "regime", "signal", "confidence"] {
            assert_eq!(texts(&dataset, column), texts(&plain, column), "{column}: {body}");
        }
    }
}

#[test]
fn articles_without_all_their_fields_are_kept() {
    let place = Place::new();
    let articles = r#"[{"date":"2026-11-18","title":"a","link":"l","score":""},
        {"date":"20261118","score":" 0.5 ","title":null,"link":"l"},
        {"date":"2026-11-18","title":"b","score":"N/A"},
        {"date":"2026-11-18T12:00Z","title":"c","link":"m","score":0.25}]"#;
    let service =
        Scripted::start(move |request| json("200 OK", if request.target.starts_with("/a/") { GOOD } else { articles }));
    place.define("it", &format!("[source]\n{}[signals]\nsectors = [\"energy\"]\n", service.source()));
    let outcome = Outcome::of(place.command(["run", "it"]).env("BELLWETHER_API_KEY", "demo")).expect_success();
    for line in [
        "rejected  0 records\n",
        "lenient   accepted 2 articles without a title or a link\n",
        "lenient   accepted 3 scores written as text with spaces, or that say there is none, such as `N/A`\n",
        "lenient   accepted 2 dates in another notation, such as `2026-11-20T16:00Z`\n",
    ] {
        assert!(outcome.stdout.contains(line), "{line}{}", outcome.stdout);
    }
    let kept = read(&sealed_run(&place).join("articles.parquet"));
    let mut titles: Vec<String> = texts(&kept, "title").into_iter().flatten().collect();
    titles.sort();
    assert_eq!(titles, ["", "a", "b", "c"]);
    let mut scores: Vec<String> = texts(&kept, "score").into_iter().flatten().collect();
    scores.sort();
    assert_eq!(scores, ["0.25", "0.5"]);
}

#[test]
fn each_reason_of_a_reject_is_told_with_its_number_and_an_example() {
    let place = Place::new();
    let entry = |date: &str| format!("{{\"date\":\"{date}\",\"signal\":\"buy\",\"confidence\":0.5}}");
    let entries = ["2026-11-20", "20/11/2026", "19/11/2026", "2026-11-18"].map(entry).join(",");
    let entries = format!("{entries},{{\"date\":\"2026-11-17\",\"signal\":\"hold\",\"confidence\":0.5}}");
    let body = format!(
        "{{\"XOM\":{{\"ticker\":\"XOM\",\"regime\":\"neutral\",\"period\":\"15d\",\"predictions\":[{entries}]}}}}"
    );
    let service = Scripted::of_histories(move |_| json("200 OK", &body));
    let shown = run(&place, &service, "", "").failed_with(4).stderr;
    let reasons = [
        "2 times: `date`: `20/11/2026` is not a valid date",
        "1 times: `signal`: unknown signal `hold`, at `/XOM/predictions/4` of `signals-history-all sector=energy",
    ];
    assert!(reasons.iter().all(|reason| shown.contains(reason)), "{shown}");
    let folder = sealed_run(&place).file_name().expect("a name").to_string_lossy().into_owned();
    let listed = place.run(["list", "runs", folder.trim_start_matches("run=")]).expect_success().stdout;
    assert!(reasons.iter().all(|reason| listed.contains(reason)), "{listed}");
}

#[test]
fn a_vendor_that_is_asked_too_often_is_asked_less_and_answers_everything() {
    let allowed = Mutex::new((Instant::now(), 0_u32));
    let history = |ticker: String| GOOD.trim_start_matches('{').trim_end_matches('}').replace("XOM", &ticker);
    let body = format!("{{{}}}}}", (0..30).map(|at| history(format!("T{at}"))).collect::<Vec<_>>().join("},"));
    let service = Scripted::start(move |request| {
        if request.target.starts_with("/a/") {
            return json("200 OK", &body);
        }
        // Ten requests a second.
        let mut allowed = allowed.lock().expect("no test panicked");
        if allowed.0.elapsed() >= Duration::from_secs(1) {
            *allowed = (Instant::now(), 0);
        }
        allowed.1 += 1;
        if allowed.1 > 10 { json("429 Too Many Requests", "{}") } else { json("200 OK", "[]") }
    });
    let place = Place::new();
    let source = format!("[source]\n{}patience = \"60s\"\n", service.source());
    place.define("it", &format!("{source}[signals]\nsectors = [\"energy\"]\n[checks]\nmissing = \"warn\"\n"));
    let outcome = Outcome::of(place.command(["run", "it"]).env("BELLWETHER_API_KEY", "demo")).expect_success();
    assert_eq!(rows(&outcome), "rows      60");
    let refused = service.count() - 31;
    assert!((1..60).contains(&refused), "{refused} refusals");
}

#[test]
fn a_vendor_whose_clock_is_wrong_can_be_read_by_ours() {
    let place = Place::new();
    let service =
        Scripted::of_histories(|_| reply("200 OK", "Date: Mon, 02 Mar 2026 10:00:00 GMT\r\n", GOOD.as_bytes()));
    let shown = run(&place, &service, "", "").failed_with(75).stderr;
    assert!(shown.contains("clock"), "{shown}");
    run(&place, &service, "clock = \"ours\"\n", "").expect_success();
}

#[test]
fn a_ticker_of_which_the_vendor_has_nothing_is_no_failure() {
    let place = Place::new();
    let body = format!("{}, \"NONE\": null, \"EMPTY\": []}}", GOOD.trim_end_matches('}').to_owned() + "}");
    let service = Scripted::start(move |request| match request.target.starts_with("/a/") {
        true => json("200 OK", &body),
        false if request.target.contains("XOM") => json("200 OK", "[]"),
        false => reply("204 No Content", "", b""),
    });
    place.define("it", &format!("[source]\n{}[signals]\nsectors = [\"energy\"]\n", service.source()));
    let outcome = Outcome::of(place.command(["run", "it"]).env("BELLWETHER_API_KEY", "demo")).expect_success();
    for line in ["rows      2\n", "rejected  0 records\n", "empty histories for 2 series"] {
        assert!(outcome.stdout.contains(line), "{line}{}", outcome.stdout);
    }
}

#[test]
fn other_names_wrappers_and_lists_are_read_as_a_definition_says() {
    let plain = {
        let place = Place::new();
        let service = Scripted::of_histories(|_| json("200 OK", GOOD));
        run(&place, &service, "", "").expect_success();
        read(&place.file("output/datasets/it/latest/it.parquet"))
    };
    let renamed = GOOD.replace("confidence", "probability").replace("predictions", "history");
    let entries = GOOD[GOOD.find('[').expect("a list")..].trim_end_matches('}').to_owned() + "}";
    let fields = "fields = { confidence = \"probability\", predictions = \"history\" }\n";
    for (source, body, unknown) in [
        (fields, renamed.clone(), 0),
        (fields, renamed.replace("\"signal\"", "\"confidence\":\"high\",\"signal\""), 2),
        ("unwrap = \"data\"\n", format!("{{\"as_of\":\"2026-11-20\",\"data\":{GOOD},\"n\":[1]}}"), 0),
        ("unwrap = [\"rows\", \"data\"]\n", format!(" {{\"data\" : {GOOD}}}"), 0),
        ("", format!("{{\"as_of\":\"2026-11-20\",{}", &GOOD[1..]), 1),
        ("", format!("{{\"meta\":{{\"count\":1}},{}", &GOOD[1..]), 1),
        ("", format!("{{\"XOM\":{}", entries.trim_end_matches('}').to_owned() + "}"), 0),
    ] {
        let place = Place::new();
        let sent = body.clone();
        let service = Scripted::of_histories(move |_| json("200 OK", &sent));
        let outcome = run(&place, &service, source, "").expect_success();
        assert!(outcome.stdout.contains("rejected  0 records\n"), "{body}: {}", outcome.stdout);
        assert_eq!(outcome.stdout.contains("unknown"), unknown > 0, "{body}: {}", outcome.stdout);
        let dataset = read(&place.file("output/datasets/it/latest/it.parquet"));
        for column in ["ticker", "date", "period", "regime", "signal", "confidence"] {
            assert_eq!(texts(&dataset, column), texts(&plain, column), "{column}: {body}");
        }
    }
    let place = Place::new();
    let service = Scripted::of_histories(|_| json("200 OK", GOOD));
    let shown = run(&place, &service, "unwrap = \"data\"\n", "").failed_with(1).stderr;
    assert!(shown.contains("expected an object with `data`, which `unwrap` names"), "{shown}");
}

#[test]
fn tickers_of_any_letters_are_asked_for_and_may_have_other_names_among_news() {
    let place = Place::new();
    let odd = ["BRK/B", "AT&T", "M&M.NS", "NYSE:XOM", "$SPX", "Ä B", "BRK.B"];
    let histories: Vec<String> = odd
        .iter()
        .map(|ticker| GOOD.trim_start_matches('{').strip_suffix('}').expect("an object").replace("XOM", ticker))
        .collect();
    let body = format!("{{{}}}", histories.join(","));
    let article = "[{\"date\":\"2026-11-18\",\"title\":\"a\",\"link\":\"l\",\"score\":0.5}]";
    let service =
        Scripted::start(move |request| json("200 OK", if request.target.starts_with("/a/") { &body } else { article }));
    let source = format!("[source]\n{}tickers = {{ \"BRK.B\" = \"BRK-B\" }}\n", service.source());
    place.define("it", &format!("{source}[signals]\nsectors = [\"energy\"]\n[output]\npartition_by = [\"ticker\"]\n"));
    let outcome = Outcome::of(place.command(["run", "it"]).env("BELLWETHER_API_KEY", "demo")).expect_success();
    assert_eq!(rows(&outcome), "rows      14", "{}", outcome.stdout);
    let mut asked: Vec<String> = service.targets()[1..].to_vec();
    asked.sort();
    let expected = ["%24SPX", "%C3%84%20B", "AT%26T", "BRK%2FB", "BRK-B", "M%26M.NS", "NYSE%3AXOM"];
    assert_eq!(asked, expected.map(|ticker| format!("/b/news_articles/{ticker}?api_key=demo")));
    let shown = place.run(["show", "it", "--ticker", "BRK/B", "--format", "csv"]).expect_success().stdout;
    assert_eq!(shown.lines().filter(|line| line.starts_with("BRK/B,")).count(), 2, "{shown}");
    let listed = place.run(["show", "it", "--ticker", "AT&T", "--format", "csv"]).expect_success().stdout;
    assert!(listed.contains("AT&T,"), "{listed}");
}

#[test]
fn smaller_changes_than_the_tolerance_and_other_offsets_are_none() {
    let place = Place::new();
    let day = std::sync::Arc::new(std::sync::atomic::AtomicUsize::new(0));
    let now = std::sync::Arc::clone(&day);
    let bodies = [
        GOOD.to_owned(),
        GOOD.replace("0.75", "0.7500000000000004").replace("20T00:00:00+00:00", "19T20:00:00-04:00"),
        GOOD.replace("0.75", "0.75000003"),
        GOOD.replace("0.75", "0.7502"),
    ];
    let service =
        Scripted::of_histories(move |_| json("200 OK", &bodies[now.load(std::sync::atomic::Ordering::Relaxed)]));
    let rest = "[checks]\nrewritten = 1.0\nrewritten_series = 1.0\n";
    let mut found = Vec::new();
    for (at, tolerance) in [(0, ""), (1, ""), (2, ""), (2, ""), (0, "tolerance = 1e-6\n"), (3, "tolerance = 1e-6\n")] {
        day.store(at, std::sync::atomic::Ordering::Relaxed);
        let source = format!("[source]\n{}[signals]\nsectors = [\"energy\"]\n{tolerance}", service.source());
        place.define("it", &format!("{source}[sentiment]\narticles = false\n{rest}"));
        let outcome = Outcome::of(place.command(["run", "it"]).env("BELLWETHER_API_KEY", "demo")).expect_success();
        let changes = outcome.stdout.lines().find(|line| line.starts_with("changes")).expect("changes").to_owned();
        found.push(changes.split_once("added, ").expect("counts").1.to_owned());
    }
    let [none, one] = ["0 revised, 0 withdrawn", "1 revised, 0 withdrawn"];
    assert_eq!(found, [none, none, one, none, none, one]);
}

#[test]
fn the_last_article_of_a_day_is_the_last_whatever_the_order_of_the_list() {
    let article = |date: &str, title: &str, score: f64| {
        format!("{{\"date\":\"{date}\",\"title\":\"{title}\",\"link\":\"l\",\"score\":{score}}}")
    };
    let listed = [article("2026-11-17", "a", 0.1), article("2026-11-18", "b", 0.2), article("2026-11-18", "c", 0.3)];
    let reversed: Vec<String> = listed.iter().rev().cloned().collect();
    for (articles, order) in [(&listed[..], ""), (&reversed[..], ""), (&listed[1..], "order = \"oldest first\"\n")] {
        let place = Place::new();
        let articles = format!("[{}]", articles.join(","));
        let service = Scripted::start(move |request| {
            json("200 OK", if request.target.starts_with("/a/") { GOOD } else { &articles })
        });
        let source = format!("[source]\n{}[signals]\nsectors = [\"energy\"]\n[sentiment]\n{order}", service.source());
        place.define("it", &format!("{source}[join]\nstats = [\"last\"]\nlag = \"0d\"\n"));
        Outcome::of(place.command(["run", "it"]).env("BELLWETHER_API_KEY", "demo")).expect_success();
        let dataset = read(&place.file("output/datasets/it/latest/it.parquet"));
        let column =
            dataset.schema().fields().iter().map(|field| field.name().clone()).find(|name| name.contains("last"));
        let last = texts(&dataset, &column.expect("a column"));
        assert_eq!(last.last().expect("a row").as_deref(), Some("0.3"), "{order}");
    }
}

#[test]
fn all_pages_of_a_list_are_read_and_a_list_that_is_too_short_is_none() {
    let article = |number: usize| {
        format!("{{\"date\":\"2026-11-{:02}\",\"title\":\"t{number}\",\"link\":\"l\",\"score\":0.5}}", 18 - number / 2)
    };
    let page = move |number: usize, next: &str, total: &str| {
        let body = format!("[{},{}]", article(2 * number), article(2 * number + 1));
        reply("200 OK", &format!("{next}{total}"), body.as_bytes())
    };
    let of_pages = move |request: &ScriptedRequest, elsewhere: &str, total: &'static str| {
        let number = request.target.split_once("page=").map_or(0, |(_, rest)| rest[..1].parse().expect("a page"));
        let next = match number {
            0 if elsewhere.is_empty() => "Link: </b/first>; rel=first, <?page=1>; rel=\"next\"\r\n".to_owned(),
            0 => format!("Link: <{elsewhere}/b/news?page=1>; rel=\"next\"\r\n"),
            1 => "Link: </b/news_articles/XOM?page=2&api_key=demo>; rel=\"next\"\r\n".to_owned(),
            _ => String::new(),
        };
        page(number, &next, total)
    };
    for (total, code) in [("", 0), ("X-Total-Count: 6\r\n", 0), ("X-Total-Count: 7\r\n", 4)] {
        let place = Place::new();
        let service = Scripted::start(move |request| match request.target.starts_with("/a/") {
            true => json("200 OK", GOOD),
            false => of_pages(request, "", total),
        });
        place.define("it", &format!("[source]\n{}[signals]\nsectors = [\"energy\"]\n", service.source()));
        let outcome = Outcome::of(place.command(["run", "it"]).env("BELLWETHER_API_KEY", "demo")).failed_with(code);
        if code == 4 {
            assert!(
                outcome.stderr.contains("the list has 6 of the 7 entries that `X-Total-Count` tells"),
                "{}",
                outcome.stderr
            );
            continue;
        }
        let asked = service.targets()[1..].to_vec();
        let path = "/b/news_articles/XOM?";
        assert_eq!(
            asked,
            ["api_key=demo", "page=1&api_key=demo", "page=2&api_key=demo"].map(|query| format!("{path}{query}"))
        );
        let kept = read(&sealed_run(&place).join("articles.parquet"));
        let mut titles: Vec<String> = texts(&kept, "title").into_iter().flatten().collect();
        titles.sort();
        assert_eq!(titles, ["t0", "t1", "t2", "t3", "t4", "t5"]);
        // The first of a day in the list is the last of the day, also on later pages.
        let places: Vec<Option<String>> = texts(&kept, "place");
        let of = |title: &str| {
            places[texts(&kept, "title").iter().position(|it| it.as_deref() == Some(title)).expect("it")].clone()
        };
        assert_eq!([of("t4"), of("t5")].map(|place| place.expect("a place")), ["1", "0"]);
    }
    let elsewhere = Scripted::of_histories(|_| json("200 OK", "[]"));
    let address = format!("http://{}", elsewhere.address());
    let place = Place::new();
    let service = Scripted::start(move |request| match request.target.starts_with("/a/") {
        true => json("200 OK", GOOD),
        false => of_pages(request, &address, ""),
    });
    place.define("it", &format!("[source]\n{}[signals]\nsectors = [\"energy\"]\n", service.source()));
    let outcome = Outcome::of(place.command(["run", "it"]).env("BELLWETHER_API_KEY", "demo")).failed_with(4);
    assert!(outcome.stderr.contains("its next page is at another address"), "{}", outcome.stderr);
    assert_eq!(elsewhere.count(), 0);
}

#[test]
fn days_are_counted_back_from_the_day_of_the_run() {
    let place = Place::new();
    let today = chrono::Utc::now().date_naive();
    let entry = |days: u64| {
        let date = today - chrono::Days::new(days);
        format!("{{\"date\":\"{date}\",\"signal\":\"buy\",\"confidence\":0.5}}")
    };
    let entries: Vec<String> = (1..=100).step_by(9).map(entry).collect();
    let body = format!(
        "{{\"XOM\":{{\"ticker\":\"XOM\",\"regime\":\"neutral\",\"period\":\"15d\",\"predictions\":[{}]}}}}",
        entries.join(",")
    );
    let service = Scripted::of_histories(move |_| json("200 OK", &body));
    let outcome = run(&place, &service, "", "[filter]\nfrom = \"-30d\"\n").expect_success();
    assert_eq!(rows(&outcome), "rows      4", "1, 10, 19 and 28 days ago");
    assert_eq!(
        rows(&run(&place, &service, "", "[filter]\nfrom = \"-1y\"\nto = \"-30d\"\n").expect_success()),
        "rows      8"
    );
    let shown = run(&place, &service, "", "[filter]\nfrom = \"-2w\"\n").failed_with(2).stderr;
    assert!(shown.contains("`-2w` is not a day") && shown.contains("`-6m`"), "{shown}");
}

#[test]
fn the_demo_describes_itself_and_doctor_reads_what_a_vendor_says_of_its_operations() {
    let place = Place::new();
    let demo = DemoService::start(&place, &["--today", "2026-11-20", "--change-set", "B"]);
    let address = demo.address("base_url");
    let root = address[..address.find("/seed-").expect("a path")].trim_start_matches("http://").to_owned();
    let words = http_get(&root, "/");
    assert!(
        words.contains("base_url = /seed-500/api") && words.contains("GET signals-history-all  sector, period, regime"),
        "{words}"
    );
    let described: serde_json::Value = serde_json::from_str(&http_get(&root, "/openapi.json")).expect("JSON");
    let paths: Vec<&String> = described["paths"].as_object().expect("paths").keys().collect();
    assert!(paths.iter().any(|path| *path == "/seed-500/api/signals/{ticker}"), "{paths:?}");
    assert!(!paths.iter().any(|path| path.ends_with("tickers/available")), "set B has none: {paths:?}");

    let described = |paths: &'static str| {
        Scripted::start(move |request| match &*request.target {
            "/openapi.json" => json("200 OK", paths),
            target if target.ends_with("openapi.json") => json("404 Not Found", "{}"),
            target if target.starts_with("/a/") => json("200 OK", GOOD),
            _ => json("200 OK", "[]"),
        })
    };
    for (paths, expected) in [
        (
            r#"{"paths":{"/a/signals-history-all":{},"/b/news_articles/{symbol}":{}}}"#,
            "has all operations that are used",
        ),
        (r#"{"paths":{"/signals-history-all":{},"/articles/{symbol}":{}}}"#, "does not have news_articles"),
    ] {
        let place = Place::new();
        let service = described(paths);
        place.define("it", &format!("[source]\n{}[signals]\nsectors = [\"energy\"]\n", service.source()));
        let shown =
            Outcome::of(place.command(["doctor", "it"]).env("BELLWETHER_API_KEY", "demo")).expect_success().stdout;
        let words: String = shown.split_whitespace().collect::<Vec<_>>().join(" ");
        assert!(words.contains(expected), "{expected}: {shown}");
        assert!(!service.targets().iter().any(|target| target.contains("openapi") && target.contains("demo")));
    }
}

/// The body of an answer.
fn http_get(host: &str, path: &str) -> String {
    use std::io::{Read as _, Write as _};
    let mut stream = std::net::TcpStream::connect(host).expect("it listens");
    write!(stream, "GET {path} HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\n\r\n").expect("it reads");
    let mut answer = String::new();
    stream.read_to_string(&mut answer).expect("it answers");
    answer.split_once("\r\n\r\n").expect("a body").1.to_owned()
}

#[test]
fn a_time_of_generation_is_no_other_signal_if_a_day_has_one() {
    let place = Place::new();
    let fetch = std::sync::Arc::new(std::sync::atomic::AtomicUsize::new(0));
    let now = std::sync::Arc::clone(&fetch);
    // Each answer stamps every day anew; today's signal changes during the day.
    let service = Scripted::of_histories(move |_| {
        let fetch = now.load(std::sync::atomic::Ordering::Relaxed);
        let entry = |day: usize, hour: usize, confidence: f64| {
            format!(
                "{{\"date\":\"2026-10-{day:02}T{hour:02}:3{fetch}:07.12345{fetch}Z\",\"signal\":\"buy\",\"confidence\":{confidence}}}"
            )
        };
        let mut entries = vec![entry(7, 14, 0.5 + fetch as f64 / 8.0), entry(6, 20, 0.25), entry(5, 20, 0.25)];
        if fetch == 2 {
            // Two of the day, the later one first.
            entries.insert(0, entry(7, 20, 0.875));
        }
        let body = format!(
            "{{\"XOM\":{{\"ticker\":\"XOM\",\"regime\":\"neutral\",\"period\":\"15d\",\"predictions\":[{}]}}}}",
            entries.join(",")
        );
        json("200 OK", &body)
    });
    let rest = "[dates]\nnaive = \"America/New_York\"\nper = \"day\"\n";
    let mut changes = Vec::new();
    for number in 0..3 {
        fetch.store(number, std::sync::atomic::Ordering::Relaxed);
        let outcome = run(&place, &service, "", &format!("{rest}[checks]\nrewritten = 0.4\n")).expect_success();
        let line = outcome.stdout.lines().find(|line| line.starts_with("changes")).expect("changes").to_owned();
        changes.push(line.trim_start_matches("changes").trim().to_owned());
    }
    let [first, then] = ["3 added, 0 revised, 0 withdrawn", "0 added, 1 revised, 0 withdrawn"];
    assert_eq!(changes, [first, then, then]);
    let rows = read(&place.file("output/datasets/it/latest/it.parquet"));
    let dates = ["2026-10-05T00:00:00", "2026-10-06T00:00:00", "2026-10-07T00:00:00"];
    assert_eq!(texts(&rows, "date"), dates.map(|date| Some(date.to_owned())));
    assert_eq!(texts(&rows, "confidence"), ["0.25", "0.25", "0.875"].map(|value| Some(value.to_owned())));
    place.run(["build", "it", "--vintage", "first", "--output", "first.parquet"]).expect_success();
    let first = read(&place.file("first.parquet"));
    assert_eq!(texts(&first, "confidence"), ["0.25", "0.25", "0.5"].map(|value| Some(value.to_owned())));
    // Without the key, a run says what is odd.
    let place = Place::new();
    let entries: Vec<String> = (1..=20)
        .filter(|day| ![3, 4, 10, 11, 17, 18].contains(day))
        .map(|day| format!("{{\"date\":\"2026-10-{day:02}T00:{day:02}:07Z\",\"signal\":\"buy\",\"confidence\":0.5}}"))
        .collect();
    let body = format!("{{\"XOM\":[{}]}}", entries.join(","));
    let service = Scripted::of_histories(move |_| json("200 OK", &body));
    let shown = run(&place, &service, "", "[dates]\nnaive = \"America/New_York\"\n").expect_success().stdout;
    assert!(shown.contains("1 ticker is dated at many times of day") && shown.contains("`per = \"day\"`"), "{shown}");
    assert!(shown.contains("there are signals of Sundays and none of Fridays"), "{shown}");
}
