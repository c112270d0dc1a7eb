//! Memory does not follow the size of an answer, and takes a bounded number of bytes for each ticker and each article of
//! a ticker.

use std::io::{self, BufRead, BufReader, BufWriter, Write};
use std::net::{TcpListener, TcpStream};
use std::process::Stdio;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;

use crate::support::peak::Peak;
use crate::support::program::{DemoService, Place};

/// The history of one ticker in a batch, as text, with a placeholder for the symbol.
fn history(days: usize) -> (String, String) {
    let entry = |day: usize| {
        let (month, day) = (1 + day / 28 % 12, 1 + day % 28);
        let signal = if day % 3 == 0 { "buy" } else { "sell" };
        format!("{{\"date\":\"2025-{month:02}-{day:02}T00:00:00\",\"signal\":\"{signal}\",\"confidence\":0.7{day}}}")
    };
    let entries: Vec<String> = (0..days).map(entry).collect();
    let head = format!("{{\"items\":[{}],\"period\":\"15d\",\"regime\":\"neutral\",\"ticker\":\"", entries.join(","));
    (head, "\"}".to_owned())
}

/// Writes histories, given the numbers of tickers and days.
fn histories(tickers: usize, days: usize, out: &mut impl Write) -> io::Result<()> {
    let (head, tail) = history(days);
    out.write_all(b"{")?;
    for ticker in 0..tickers {
        let comma = if ticker == 0 { "" } else { "," };
        write!(out, "{comma}\"T{ticker}\":{head}T{ticker}{tail}")?;
    }
    out.write_all(b"}")
}

/// Writes a number of articles, newest first; one in a hundred has another title the next time.
fn articles(count: usize, time: usize, out: &mut impl Write) -> io::Result<()> {
    out.write_all(b"[")?;
    for article in 0..count {
        let comma = if article == 0 { "" } else { "," };
        let day = 28 - article * 28 / count;
        let time = if article % 100 == 0 { time } else { 0 };
        write!(
            out,
            "{comma}{{\"date\":\"2025-01-{day:02}\",\"title\":\"headline {article}, {time}\",\"score\":0.{},\
             \"link\":\"https://a.example/{article}\"}}",
            article % 1000
        )?;
    }
    out.write_all(b"]")
}

/// The size of a service's answers: numbers of tickers, days per ticker, and articles per ticker.
#[derive(Clone, Copy)]
struct Answers {
    tickers: usize,
    days: usize,
    articles: usize,
}

/// A service that generates answers while sending them.
fn serve(answers: Answers) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a free port");
    let address = listener.local_addr().expect("an address");
    let articles_requested = AtomicUsize::new(0);
    let answer = Arc::new(move |stream: TcpStream| -> io::Result<()> {
        let mut reader = BufReader::new(stream.try_clone()?);
        let (mut first, mut line) = (String::new(), String::new());
        reader.read_line(&mut first)?;
        while reader.read_line(&mut line)? > 2 {
            line.clear();
        }
        let mut out = BufWriter::new(stream);
        out.write_all(b"HTTP/1.1 200 OK\r\nConnection: close\r\n\r\n")?;
        match first.contains("/news_articles/") {
            true => articles(answers.articles, articles_requested.fetch_add(1, Ordering::Relaxed), &mut out)?,
            false => histories(answers.tickers, answers.days, &mut out)?,
        }
        out.flush()
    });
    thread::spawn(move || {
        for stream in listener.incoming().flatten() {
            let answer = Arc::clone(&answer);
            // The program may close the connection early.
            thread::spawn(move || drop(answer(stream)));
        }
    });
    format!(
        "[source]\nname = \"vendor\"\nbase_url = \"http://{address}/a\"\nsentiment_base_url = \"http://{address}/b\"\n"
    )
}

/// Peak memory of a run in MiB, until it prints a line with this prefix, or ends.
fn peak_until(answers: Answers, said: Option<&str>) -> u64 {
    let place = place(answers);
    peak_in(&place, said)
}

/// A place with a definition for a service with such answers.
fn place(answers: Answers) -> Place {
    let place = Place::new();
    let sentiment = format!("[sentiment]\narticles = {}\n", answers.articles > 0);
    place.define("it", &format!("{}[signals]\nhistory = \"batched\"\n{sentiment}", serve(answers)));
    place
}

/// Peak memory of the next run in a place in MiB, until it prints a line with this prefix, or ends.
fn peak_in(place: &Place, said: Option<&str>) -> u64 {
    peak_of(place, &["run", "it"], said)
}

/// The same for any command.
fn peak_of(place: &Place, arguments: &[&str], said: Option<&str>) -> u64 {
    let mut command = place.command(arguments);
    command.env("BELLWETHER_API_KEY", "demo").stdout(Stdio::null()).stderr(Stdio::piped());
    let mut child = command.spawn().expect("it starts");
    let peak = Peak::of(&child);
    let mut lines = BufReader::new(child.stderr.take().expect("it is piped")).lines().map_while(Result::ok);
    let is_said = lines.any(|line| said.is_some_and(|said| line.starts_with(said)));
    let peak = peak.end();
    assert_eq!(is_said, said.is_some());
    thread::spawn(move || lines.for_each(drop));
    assert!(child.wait().expect("it ended").success());
    peak
}

/// Peak memory of a run with one answer, in MiB.
fn peak(tickers: usize, days: usize) -> u64 {
    peak_until(Answers { tickers, days, articles: 0 }, None)
}

/// The number of tickers with 336 days each that take this many bytes.
fn tickers_of(bytes: usize) -> usize {
    bytes / history(336).0.len()
}

#[test]
fn a_body_larger_than_memory_is_decoded_within_the_limit() {
    let small = peak(tickers_of(8 << 20), 336);
    let large = peak(tickers_of(320 << 20), 336);
    assert!(large < 250, "320 MB of answer took {large} MB of memory");
    assert!(large < small + 150, "8 MB took {small} MB, 320 MB took {large} MB");
}

#[test]
fn many_short_histories_take_few_bytes_each() {
    let small = peak(2_000, 2);
    let large = peak(200_000, 2);
    let each = (large.saturating_sub(small) << 20) / 198_000;
    assert!(each < 1_400, "{each} bytes for each ticker: 2,000 took {small} MB, 200,000 took {large} MB");
}

#[test]
fn endless_articles_are_decoded_within_the_memory_limit() {
    let of = |articles| peak_until(Answers { tickers: 1, days: 20, articles }, Some("articles: 1 request,"));
    let (small, large) = (of(2_000), of(400_000));
    assert!(large < small + 100, "2,000 articles took {small} MB, 400,000 took {large} MB");
}

/// The articles of a ticker are compared all at once, so the memory follows their number: at most so many bytes each.
fn assert_bytes_per_article<const N: usize>(most: u64, of: impl Fn(usize) -> [u64; N]) {
    let (few, many) = (2_000, 400_000);
    for (small, large) in of(few).into_iter().zip(of(many)) {
        let each = (large.saturating_sub(small) << 20) / (many - few) as u64;
        assert!(each < most, "{each} bytes for each article: {few} took {small} MB, {many} took {large} MB");
    }
}

#[test]
fn many_articles_of_a_ticker_are_archived_in_a_few_hundred_bytes_each() {
    assert_bytes_per_article(800, |articles| {
        let place = place(Answers { tickers: 1, days: 20, articles });
        [peak_in(&place, Some("archive: ")), peak_in(&place, Some("archive: "))]
    });
}

#[test]
fn many_articles_of_a_ticker_are_joined_and_reported_in_a_few_hundred_bytes_each() {
    assert_bytes_per_article(800, |articles| {
        let place = place(Answers { tickers: 1, days: 336, articles });
        [peak_in(&place, None), peak_in(&place, None)]
    });
}

#[test]
fn many_articles_of_a_ticker_are_audited_in_a_few_hundred_bytes_each() {
    assert_bytes_per_article(800, |articles| {
        let place = place(Answers { tickers: 1, days: 20, articles });
        for _ in 0..2 {
            peak_in(&place, None);
        }
        ["quality", "revisions", "sources"].map(|audit| peak_of(&place, &["audit", audit, "it"], None))
    });
}

#[test]
fn a_batch_is_served_from_the_archive_within_the_memory_limit() {
    let of = |bytes: usize| {
        let place = place(Answers { tickers: tickers_of(bytes), days: 336, articles: 0 });
        peak_in(&place, None);
        let server = DemoService::serve(&place, &["--archive"]);
        let peak = Peak::of(server.process());
        let (host, path) = server.address("base_url").trim_start_matches("http://").split_once('/').expect("a path");
        let mut stream = TcpStream::connect(host).expect("it listens");
        let target = format!("/{path}/signals-history-batched-all?api_key=demo");
        write!(stream, "GET {target} HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\n\r\n").expect("sent");
        let mut reply = BufReader::new(stream);
        let mut line = String::new();
        reply.read_line(&mut line).expect("a status");
        assert!(line.starts_with("HTTP/1.1 200 "), "{line}");
        let read = io::copy(&mut reply, &mut io::sink()).expect("a whole answer");
        assert!(read as usize > bytes * 9 / 10, "{read} of {bytes} bytes");
        peak.end()
    };
    let (small, large) = (of(4 << 20), of(64 << 20));
    assert!(large < small + 60, "4 MB took {small} MB, 64 MB took {large} MB");
}
