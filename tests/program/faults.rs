//! A faulty service: the reaction of a run, its messages, and the data that it keeps.

use std::fs;
use std::io::Write;
use std::time::{Duration, Instant, SystemTime};

use crate::support::program::{Outcome, Place};
use crate::support::scripted::{Scripted, Step, json, reply};

/// A history with two entries.
pub(super) const GOOD: &str = r#"{"XOM":{"ticker":"XOM","regime":"neutral","period":"15d","predictions":[
    {"date":"2026-11-20T00:00:00+00:00","signal":"buy","confidence":0.5},
    {"date":"2026-11-19T00:00:00+00:00","signal":"sell","confidence":0.75}]}}"#;

const ONLY_SIGNALS: &str = "[sentiment]\narticles = false\n";

/// Runs a definition of one sector against a service.
pub(super) fn run(place: &Place, service: &Scripted, source: &str, rest: &str) -> Outcome {
    let source = format!("[source]\n{}{source}", service.source());
    place.define("it", &format!("{source}[signals]\nsectors = [\"energy\"]\n{ONLY_SIGNALS}{rest}"));
    Outcome::of(place.command(["run", "it"]).env("BELLWETHER_API_KEY", "demo"))
}

/// A service whose first answers are scripted; later ones are valid.
fn recovering(first: Vec<Vec<Step>>) -> Scripted {
    Scripted::of_histories(move |request| first.get(request.before).cloned().unwrap_or_else(|| json("200 OK", GOOD)))
}

pub(super) fn rows(outcome: &Outcome) -> &str {
    outcome.stdout.lines().next().unwrap_or_default()
}

#[test]
fn transient_failures_are_retried_until_they_pass() {
    let cut = || GOOD.as_bytes()[..60].to_vec();
    let declared = |length: usize| format!("HTTP/1.1 200 OK\r\nContent-Length: {length}\r\n\r\n").into_bytes();
    let faults: Vec<(&str, Vec<Step>)> = vec![
        ("408", json("408 Request Timeout", "{}")),
        ("429", json("429 Too Many Requests", "{}")),
        ("500", json("500 Internal Server Error", "oops")),
        ("502", reply("502 Bad Gateway", "Content-Type: text/html\r\n", b"<html>")),
        ("503", json("503 Service Unavailable", "{}")),
        ("504", json("504 Gateway Timeout", "{}")),
        ("no answer", vec![]),
        ("a reset", vec![Step::Reset]),
        ("a reset in the middle", vec![Step::Send(declared(GOOD.len())), Step::Send(cut()), Step::Reset]),
        ("a body shorter than its length", vec![Step::Send(declared(GOOD.len())), Step::Send(cut())]),
        (
            "a chunk that breaks off",
            vec![Step::Send(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n10\r\n{\"XOM\":".to_vec())],
        ),
        ("a body that is cut and says so", json("200 OK", &GOOD[..60])),
        ("a page instead of data", reply("200 OK", "Content-Type: text/html\r\n", b"<html>busy</html>")),
    ];
    for (name, fault) in faults {
        let place = Place::new();
        let service = recovering(vec![fault]);
        let outcome = run(&place, &service, "", "").expect_success();
        assert_eq!(rows(&outcome), "rows      2", "{name}");
        assert!(outcome.stdout.contains("requests  1, 1 retry\n"), "{name}: {}", outcome.stdout);
        assert_eq!(service.histories(), 2, "{name}");
        assert!(!place.file("output/evidence").exists(), "{name}: nothing is evidence of what has passed");
    }
}

#[test]
fn permanent_failures_are_not_retried() {
    for (status, said) in [
        ("400 Bad Request", "with status 400\n"),
        (
            "401 Unauthorized",
            "refused the API key for `signals-history-all sector=energy period=15d regime=neutral` with status 401\n",
        ),
        ("403 Forbidden", "with status 403\nhint: check the key in `BELLWETHER_API_KEY`, "),
        ("301 Moved Permanently", "with status 301\nhint: redirects to another address are not followed, "),
    ] {
        let place = Place::new();
        let service = Scripted::of_histories(move |_| json(status, "{}"));
        let outcome = run(&place, &service, "", "").failed_with(1);
        assert!(outcome.stderr.contains(said), "{}", outcome.stderr);
        assert_eq!(service.histories(), 1, "{status}");
    }
}

#[test]
fn a_requested_wait_is_honoured_unless_it_is_over() {
    let busy = |wait: &str| reply("503 Service Unavailable", &format!("Retry-After: {wait}\r\n"), b"");
    let date = |seconds: i64| {
        let then = chrono::DateTime::<chrono::Utc>::from(SystemTime::now()) + chrono::TimeDelta::seconds(seconds);
        then.to_rfc2822().replace("+0000", "GMT")
    };
    for (name, expected) in [("2", 2..30), ("in 3 s", 1..30), ("0", 0..8), ("an hour ago", 0..8), ("soon", 0..8)] {
        let wait = match name {
            "in 3 s" => date(3),
            "an hour ago" => date(-3600),
            as_it_is => as_it_is.to_owned(),
        };
        let place = Place::new();
        let service = recovering(vec![busy(&wait)]);
        let begun = Instant::now();
        run(&place, &service, "", "").expect_success();
        let waited = begun.elapsed().as_secs();
        assert!(expected.contains(&waited), "{name}: `{wait}` took {waited} s");
    }
}

#[test]
fn a_service_that_stays_down_stops_the_run_and_the_next_one_resumes() {
    let place = Place::new();
    let service = Scripted::of_histories(|request| match request.target.contains("sector=energy") {
        true => json("200 OK", GOOD),
        false if request.before < 2 => reply("503 Service Unavailable", "Retry-After: 1\r\n", b""),
        false => json("200 OK", &GOOD.replace("XOM", "AAPL")),
    });
    let sectors = format!(
        "[source]\n{}patience = \"2s\"\n[signals]\nsectors = [\"energy\", \"technology\"]\n{ONLY_SIGNALS}",
        service.source()
    );
    place.define("it", &sectors);
    let go = || Outcome::of(place.command(["run", "it"]).env("BELLWETHER_API_KEY", "demo"));
    let shown = go().failed_with(75).stderr;
    let expected = format!(
        "error: {} did not answer `signals-history-all sector=technology period=15d regime=neutral` in 2 attempts\n  \
         because: status 503\n\
         hint: it asks to wait 1.0 s: run the same command then to resume; what was fetched is kept; nothing was published; run `",
        service.address()
    );
    assert!(shown.contains(&expected), "{shown}");
    assert!(shown.ends_with("` is sealed in part, with 1 answer, and the next run asks for the rest\n"), "{shown}");
    assert_eq!(service.histories(), 3);
    let outcome = go().expect_success();
    assert_eq!(service.histories(), 4, "answered requests are not repeated");
    assert_eq!(rows(&outcome), "rows      4");
    assert!(outcome.stdout.contains("note      resumed an interrupted run with 1 answer\n"));
    assert_eq!(fs::read_dir(place.file("output/archive/vendor/.partial")).unwrap().count(), 0);
    Outcome::of(place.command(["run", "it", "--fresh"]).env("BELLWETHER_API_KEY", "demo")).expect_success();
    assert_eq!(service.histories(), 6);
}

#[test]
fn requested_waits_never_exceed_the_patience() {
    let place = Place::new();
    let service = Scripted::of_histories(|_| reply("429 Too Many Requests", "Retry-After: 30\r\n", b""));
    let begun = Instant::now();
    run(&place, &service, "patience = \"2s\"\n", "").failed_with(75);
    assert!(begun.elapsed() < Duration::from_secs(20));
    assert_eq!(service.histories(), 1);
}

#[test]
fn a_silent_service_times_out() {
    let place = Place::new();
    let head = b"HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\n{".to_vec();
    let service = recovering(vec![
        vec![Step::Wait(Duration::from_secs(20))],
        vec![Step::Send(head), Step::Wait(Duration::from_secs(20))],
    ]);
    let begun = Instant::now();
    let outcome = run(&place, &service, "stall = \"1s\"\n", "").expect_success();
    assert!(begun.elapsed() < Duration::from_secs(15));
    assert!(outcome.stdout.contains("2 retries"), "{}", outcome.stdout);
}

#[test]
fn an_endless_body_times_out() {
    let drops = Step::Repeat(b" ".to_vec(), 200, Duration::from_millis(200));
    let head = |status: &str| Step::Send(format!("HTTP/1.1 {status}\r\nContent-Length: 100000\r\n\r\n{{").into_bytes());
    for (status, code, said) in
        [("200 OK", 75, "because: the answer was cut short: "), ("422 Unprocessable Entity", 1, "with status 422\n")]
    {
        let place = Place::new();
        let steps = vec![head(status), drops.clone()];
        let service = Scripted::of_histories(move |_| steps.clone());
        let begun = Instant::now();
        let shown = run(&place, &service, "stall = \"1s\"\npatience = \"1s\"\n", "").failed_with(code).stderr;
        assert!(begun.elapsed() < Duration::from_secs(20), "{status}");
        assert!(shown.contains(said), "{shown}");
        assert_eq!(shown.contains(" s, less than 1 KiB per second\n"), code == 75, "{shown}");
    }
}

#[test]
fn endless_whitespace_is_bounded() {
    for begin in ["", "{", "{\"XOM\":", "{}"] {
        let place = Place::new();
        let head = format!("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n{:x}\r\n{begin}\r\n", begin.len());
        let head =
            if begin.is_empty() { "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n".to_owned() } else { head };
        let blanks = format!("10000\r\n{}\r\n", " ".repeat(1 << 16)).into_bytes();
        let steps = vec![Step::Send(head.into_bytes()), Step::Repeat(blanks, 100_000, Duration::ZERO)];
        let service = Scripted::of_histories(move |_| steps.clone());
        let shown = run(&place, &service, "", "").failed_with(1).stderr;
        let expected = format!("whitespace of more than 1 MiB at byte {}\n", begin.len());
        assert!(shown.contains(&expected), "{begin}: {shown}");
    }
}

#[test]
fn a_slow_answer_is_accepted() {
    let place = Place::new();
    let service = Scripted::of_histories(|_| {
        let head = format!("HTTP/1.1 200 OK\r\nContent-Length: {}\r\n\r\n", GOOD.len()).into_bytes();
        let drops = GOOD
            .as_bytes()
            .chunks(7)
            .flat_map(|drop| [Step::Send(drop.to_vec()), Step::Wait(Duration::from_millis(2))]);
        std::iter::once(Step::Send(head)).chain(drops).collect()
    });
    assert_eq!(rows(&run(&place, &service, "stall = \"1s\"\n", "").expect_success()), "rows      2");
}

#[test]
fn a_body_malformed_twice_is_kept_and_reported_with_its_byte_offset() {
    let cases = [
        ("<html>down</html>".to_owned(), 0),
        (GOOD[..60].to_owned(), 60),
        (format!("{GOOD} x"), GOOD.len() + 1),
        (String::new(), 0),
        ("[1, 2]".to_owned(), 0),
        (GOOD.replacen("\"XOM\":", "\"XOM\" ", 1), 7),
    ];
    for (body, offset) in cases {
        let place = Place::new();
        let sent = body.clone();
        let service = Scripted::of_histories(move |_| json("200 OK", &sent));
        let shown = run(&place, &service, "", "").failed_with(1).stderr;
        let request = "signals-history-all sector=energy period=15d regime=neutral";
        assert!(shown.contains(&format!("error: cannot parse the answer to `{request}`: ")), "{shown}");
        assert!(shown.contains(&format!(" at byte {offset}\n")), "{body}: {shown}");
        assert_eq!(service.histories(), 2);
        let kept: Vec<_> =
            fs::read_dir(place.file("output/evidence")).unwrap().map(|file| file.unwrap().path()).collect();
        assert_eq!(kept.len(), 1);
        assert_eq!(fs::read_to_string(&kept[0]).unwrap(), body);
        let name = kept[0].file_name().unwrap().to_str().unwrap();
        assert!(shown.contains(&format!("hint: the body is kept in `output/evidence/{name}`")), "{shown}");
    }
}

/// A Brotli stream that stores its bytes as they are: a window of 2^16, one stored block, an empty last one.
fn brotli(body: &[u8]) -> Vec<u8> {
    let length = (body.len() - 1) as u32;
    // One bit for the window, one for "not the last", two for four nibbles of length, sixteen for the length, and one
    // for "stored".
    let head = (length << 4) | (1 << 20);
    [&head.to_le_bytes()[..3], body, &[3]].concat()
}

fn gzip(body: &[u8]) -> Vec<u8> {
    let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::best());
    encoder.write_all(body).expect("memory takes any bytes");
    encoder.finish().expect("memory takes any bytes")
}

#[test]
fn compressed_answers_are_decompressed() {
    let packed: [(&str, Vec<u8>); 3] = [
        ("GZIP", gzip(GOOD.as_bytes())),
        ("br", brotli(GOOD.as_bytes())),
        ("zstd", zstd::encode_all(GOOD.as_bytes(), 3).unwrap()),
    ];
    for (encoding, body) in packed {
        let place = Place::new();
        let headers = format!("Content-Encoding: {encoding}\r\n");
        let service = Scripted::of_histories(move |_| reply("200 OK", &headers, &body));
        assert_eq!(rows(&run(&place, &service, "", "").expect_success()), "rows      2", "{encoding}");
    }
}

#[test]
fn bytes_after_a_compressed_answer_are_malformed() {
    let packed: [(&str, &str, Vec<u8>); 3] = [
        ("gzip", "gzip", gzip(GOOD.as_bytes())),
        ("br", "Brotli", brotli(GOOD.as_bytes())),
        ("zstd", "zstd", zstd::encode_all(GOOD.as_bytes(), 3).unwrap()),
    ];
    for (encoding, name, body) in packed {
        let place = Place::new();
        let headers = format!("Content-Encoding: {encoding}\r\n");
        let body = [&body[..], b"}, and more"].concat();
        let service = Scripted::of_histories(move |_| reply("200 OK", &headers, &body));
        let shown = run(&place, &service, "", "").failed_with(1).stderr;
        let expected = format!(": the {name} stream is corrupt or followed by other bytes at byte ");
        assert!(shown.contains(&expected), "{shown}");
        assert_eq!(service.histories(), 2, "a body that is malformed twice is not requested again");
        assert!(!place.file("output/datasets/it").exists());
    }
}

#[test]
fn a_decompression_bomb_is_refused_and_not_retried() {
    let place = Place::new();
    let bomb = gzip(&[b"{\"XOM\":\"".to_vec(), vec![b'x'; 20 << 20]].concat());
    assert!(bomb.len() < 50_000);
    let service = Scripted::of_histories(move |_| reply("200 OK", "Content-Encoding: gzip\r\n", &bomb));
    let shown = run(&place, &service, "", "").failed_with(1).stderr;
    assert!(shown.contains("\n  because: its body expands too much when decompressed"), "{shown}");
    assert_eq!(service.histories(), 1);
    let place = Place::new();
    let service = Scripted::of_histories(move |_| reply("200 OK", "Content-Encoding: lzw\r\n", b"?"));
    let shown = run(&place, &service, "", "").failed_with(1).stderr;
    assert!(shown.contains("because: its content encoding is not supported\n"), "{shown}");
}

#[test]
fn redirects_are_not_followed() {
    let place = Place::new();
    let elsewhere = Scripted::of_histories(|_| json("200 OK", GOOD));
    let location = format!("Location: http://{}/a/signals-history-all\r\n", elsewhere.address());
    let service = Scripted::of_histories(move |_| reply("307 Temporary Redirect", &location, b""));
    let shown = run(&place, &service, "", "").failed_with(1).stderr;
    assert!(shown.contains("` with status 307\n"), "{shown}");
    assert!(elsewhere.targets().is_empty());
}

#[test]
fn a_wrong_content_type_is_accepted() {
    let place = Place::new();
    let service = Scripted::of_histories(|_| reply("200 OK", "Content-Type: text/plain\r\n", GOOD.as_bytes()));
    run(&place, &service, "", "").expect_success();
}
