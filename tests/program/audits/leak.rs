//! `audit leak` on data that does not allow a trial, and on data that does.

use std::sync::atomic::{AtomicUsize, Ordering};

use crate::support::program::{Outcome, Place};
use crate::support::scripted::{Scripted, json};

const KEY: (&str, &str) = ("BELLWETHER_API_KEY", "demo");

/// The output of the audit for a dataset of one ticker, whose signals and articles have these dates.
fn audit_output(signals: &[&str], articles: &[&str], rest: &str) -> String {
    let place = pull(1, [signals, articles], rest);
    place.run(["audit", "leak", "it"]).expect_success().stdout
}

/// A dataset of one ticker, pulled a few times. Its records of historical sentiment are its articles.
fn pull(times: usize, [signals, articles]: [&[&str]; 2], rest: &str) -> Place {
    let entry = |date: &&str| serde_json::json!({ "date": date, "signal": "buy", "confidence": 0.5 });
    let entries: Vec<_> = signals.iter().map(entry).collect();
    let history = serde_json::json!({
        "AAA": { "ticker": "AAA", "regime": "bear", "period": "5d", "predictions": entries }
    })
    .to_string();
    let latest = serde_json::json!({
        "ticker": "AAA", "regime": "bear", "period": "5d", "date": signals[0], "signal": "buy", "confidence": 0.5
    })
    .to_string();
    let article = |date: &&str| serde_json::json!({ "date": date, "title": date, "score": 0.25, "link": "l" });
    let news = serde_json::Value::Array(articles.iter().map(article).collect()).to_string();
    let service = Scripted::start(move |request| {
        let body = if request.target.starts_with("/b/") {
            &news
        } else if request.target.contains("signals/AAA") {
            &latest
        } else {
            &history
        };
        json("200 OK", body)
    });
    let place = Place::new();
    let signals = if rest.contains("latest") { "tickers = [\"AAA\"]" } else { "sectors = [\"x\"]" };
    place.define(
        "it",
        &format!(
            "[source]\n{}[signals]\n{signals}\nperiods = [\"5d\"]\nregimes = [\"bear\"]\n{rest}",
            service.source()
        ),
    );
    (0..times).for_each(|_| drop(Outcome::of(place.command(["run", "it", "-q"]).envs([KEY])).expect_success()));
    place
}

/// News known before a canary is planted must still be known after.
const RECORDS: &str = "[sentiment]\nhistorical = true\n\
                       [join]\nsources = [\"historical\"]\nhistorical = [\"score\"]\n";

#[test]
fn clean_data_passes_however_small() {
    let news = ["2025-10-01", "2025-10-08", "2025-10-14"];
    let few = ["2025-10-06", "2025-10-07", "2025-10-08", "2025-10-09", "2025-10-10"];
    let weekly = ["2025-10-03", "2025-10-10", "2025-10-17", "2025-10-24"];
    let week = "[join]\nlag = \"7d\"\n";
    let day = "[join]\nwindows = [\"1d\"]\nstats = [\"min\"]\n";
    for (signals, rest) in [
        (&few[..1], ""),
        (&few[..2], ""),
        (&few[..], ""),
        (&few[..], week),
        (&few[..1], "history = \"latest\"\n"),
        (&weekly[..], day),
        (&few[..], "[join]\nlag = \"0d\"\n"),
        (&few[..], RECORDS),
        (&few[..], "made_at = \"16:00 America/New_York\"\n[sentiment]\ndelay = \"15m\"\n[join]\nlag = \"0d\"\n"),
        (&few[..], "[calendar]\nholidays = \"2025-10-08\"\n[join]\nlag = \"1 trading day\"\n"),
        (&few[..], "[join]\nwindows = [\"30d\"]\nstats = [\"count\"]\n"),
    ] {
        let message = audit_output(signals, &news, rest);
        assert!(message.ends_with(": no look-ahead found\n") && !message.contains("LEAK"), "{rest} {message}");
        assert!(message.contains("show up in later rows\n"), "a canary can be seen: {rest} {message}");
    }
}

#[test]
fn a_trial_that_does_not_apply_has_a_reason() {
    let signals = ["2025-10-06", "2025-10-07", "2025-10-08"];
    let observed = audit_output(&signals, &["2025-10-01"], "[join]\navailability = \"observed\"\n");
    assert!(observed.contains("not applicable") && observed.contains("canaries are observed now"), "{observed}");
    let early = audit_output(&signals[..1], &["2025-10-01"], "[join]\nlag = \"5 trading days\"\n");
    assert!(early.contains("no signal has a UTC offset or `made_at`, so no instant is known"), "{early}");
    assert!(early.ends_with(" trials, 1 of them not applicable: no look-ahead found\n"), "{early}");
    let offset = audit_output(&["2025-10-06T16:00:00Z"], &["2025-10-01"], "");
    assert!(offset.contains("at 2025-10-06T16:00:01.000000Z, signals before"), "{offset}");
    assert!(!offset.contains("not applicable"), "{offset}");
    let unasked = audit_output(&signals, &["2025-10-01"], "[sentiment]\ntickers = [\"OTHER\"]\n");
    assert!(unasked.contains("rows  dates: ") && unasked.contains("canaries: the news of none"), "{unasked}");
}

#[test]
fn what_became_of_a_row_since_is_no_look_ahead() {
    let signals = ["2025-10-06", "2025-10-07", "2025-10-08"];
    let rest = "[dataset]\nadd = [\"revisions\", \"watched_until\"]\n[output]\nvintage = \"first\"\n";
    let place = pull(2, [&signals, &["2025-10-01"]], rest);
    let message = place.run(["audit", "leak", "it"]).expect_success().stdout;
    assert!(message.contains("walk forward: ") && message.ends_with(": no look-ahead found\n"), "{message}");
}

#[test]
fn a_ticker_that_changes_its_sector_is_no_look_ahead() {
    let (place, asked) = (Place::new(), AtomicUsize::new(0));
    // AAA is listed by x in the first run, and by y in the second.
    let service = Scripted::start(move |request| {
        if request.target.starts_with("/b/") {
            return json("200 OK", "[]");
        }
        let is_later = request.target.contains("sector=") && asked.fetch_add(1, Ordering::SeqCst) >= 2;
        let listed = |ticker: &str| {
            let entry = serde_json::json!({ "date": "2025-10-06", "signal": "buy", "confidence": 0.5 });
            serde_json::json!({ "ticker": ticker, "regime": "bear", "period": "5d", "predictions": [entry] })
        };
        let tickers: &[&str] = match (request.target.contains("sector=x"), is_later) {
            (true, false) => &["AAA", "XXX"],
            (true, true) => &["XXX"],
            (false, false) => &["YYY"],
            (false, true) => &["AAA", "YYY"],
        };
        let body = tickers.iter().map(|ticker| ((*ticker).to_owned(), listed(ticker))).collect();
        json("200 OK", &serde_json::Value::Object(body).to_string())
    });
    let rest = "[dataset]\nadd = [\"sector_latest\"]\n[output]\nvintage = \"first\"\n";
    let signals = "[signals]\nsectors = [\"x\", \"y\"]\nperiods = [\"5d\"]\nregimes = [\"bear\"]\n";
    place.define("it", &format!("[source]\n{}{signals}{rest}", service.source()));
    let run = || Outcome::of(place.command(["run", "it", "-q"]).envs([KEY])).expect_success();
    let sectors = || place.run(["show", "it", "--ticker", "AAA", "--format", "csv"]).expect_success().stdout;
    run();
    let before = sectors();
    run();
    assert_ne!(sectors(), before, "the sector is another one");
    let message = place.run(["audit", "leak", "it"]).expect_success().stdout;
    assert!(message.contains("walk forward: ") && message.ends_with(": no look-ahead found\n"), "{message}");
}

#[test]
fn an_instant_inside_a_pack_is_reported_as_not_applicable() {
    let signals = ["2025-10-06", "2025-10-07", "2025-10-08"];
    let place = pull(3, [&signals, &["2025-10-01"]], "");
    let audit = || place.run(["audit", "leak", "it"]).expect_success().stdout;
    let apart = audit();
    assert!(apart.contains("rows  instants: ") && !apart.contains("share a pack"), "{apart}");
    place.pack();
    place.prune_packed();
    let packed = audit();
    assert!(packed.contains("not applicable             - rows  instants: as of "), "{packed}");
    assert!(packed.contains(", without the runs after it: these runs share a pack with later ones\n"), "{packed}");
    assert!(packed.ends_with(": no look-ahead found\n"), "{packed}");
}

#[test]
fn a_forgotten_run_inside_a_pack_prevents_no_trial() {
    let signals = ["2025-10-06", "2025-10-07", "2025-10-08"];
    let place = pull(3, [&signals, &["2025-10-01"]], "");
    let listed = place.run(["list", "runs"]).expect_success().stdout;
    let last = listed.lines().rfind(|line| line.starts_with("20")).expect("a run");
    let last = last.split_whitespace().next().expect("its name");
    place.run(["forget", last, "--reason", "a test"]).expect_success();
    place.pack();
    let audit = || place.run(["audit", "leak", "it"]).expect_success().stdout;
    let apart = audit();
    assert!(apart.contains("rows  canaries: ") && apart.ends_with(": no look-ahead found\n"), "{apart}");
    place.prune_packed();
    let packed = audit();
    let canaries =
        |text: &str| text.lines().filter(|line| line.contains(" canaries: ")).map(str::to_owned).collect::<Vec<_>>();
    assert_eq!(canaries(&packed), canaries(&apart));
}
