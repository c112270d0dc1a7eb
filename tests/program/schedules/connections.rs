//! Clients of the status server that stay silent, are slow, or come by a name of their own.

use std::fs;
use std::io::{Read, Write};
use std::net::TcpStream;
use std::process::{Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use super::process::{KEY, Process, define, history, journal, wait_until};
use crate::support::program::Place;
use crate::support::scripted::{Scripted, json};

/// A scheduler that may have so many descriptors, and its port.
fn scheduler(place: &Place, descriptors: u32, more: &[&str]) -> (Process, u16) {
    let port = std::net::TcpListener::bind("127.0.0.1:0")
        .expect("as the test expects")
        .local_addr()
        .expect("as the test expects")
        .port();
    let mut command = Command::new("sh");
    command.args(["-c", &format!("ulimit -n {descriptors}; exec \"$0\" \"$@\"")]).arg(env!("CARGO_BIN_EXE_bellwether"));
    command.args(["schedule", "--log", "json", "--listen", &format!("127.0.0.1:{port}")]).args(more);
    command
        .current_dir(place.path())
        .env_clear()
        .env("PATH", std::env::var_os("PATH").expect("as the test expects"))
        .envs([KEY]);
    command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::piped());
    let process = Process(command.spawn().expect("the program starts"));
    wait_until(|| TcpStream::connect(("127.0.0.1", port)).is_ok());
    (process, port)
}

/// What a server sends until it closes the connection, after some bytes.
fn exchange(port: u16, sent: &str) -> String {
    let mut stream = TcpStream::connect(("127.0.0.1", port)).expect("it listens");
    stream.set_read_timeout(Some(Duration::from_secs(60))).expect("as the test expects");
    stream.write_all(sent.as_bytes()).expect("as the test expects");
    let mut text = String::new();
    let _ = stream.read_to_string(&mut text);
    text
}

fn status_of(port: u16, headers: &str) -> String {
    let text = exchange(port, &format!("GET /healthz HTTP/1.1\r\n{headers}\r\n"));
    text.lines().next().unwrap_or_default().to_owned()
}

#[test]
fn silent_and_slow_clients_never_stop_runs_or_other_clients() {
    let place = Place::new();
    let service = Scripted::of_histories(|_| json("200 OK", &history()));
    define(&place, "energy", &service, "[schedule]\ncron = \"*/2 * * * * *\"\n");
    let (process, port) = scheduler(&place, 256, &[]);
    let open = |sent: &str| {
        let mut stream = TcpStream::connect(("127.0.0.1", port)).expect("it listens");
        let _ = stream.write_all(sent.as_bytes());
        stream
    };
    // Silent; cut off in the first line and in a header; a body that never comes; an answer that is never read.
    let kinds = [
        "",
        "GET /sta",
        "GET /status HTTP/1.1\r\nHost: localhost\r\nX-Half: y",
        "POST /status HTTP/1.1\r\nHost: localhost\r\nContent-Length: 1000000\r\n\r\n",
        "GET / HTTP/1.1\r\nHost: localhost\r\n\r\n",
    ];
    let clients: Vec<TcpStream> = (0..400).map(|number| open(kinds[number % kinds.len()])).collect();
    let before = journal(&place, "energy").len();
    wait_until(|| journal(&place, "energy").len() > before + 2);
    for path in ["/healthz", "/status", "/metrics", "/"] {
        let begun = Instant::now();
        let text = exchange(port, &format!("GET {path} HTTP/1.1\r\nHost: localhost:{port}\r\n\r\n"));
        assert!(text.starts_with("HTTP/1.1 200 OK\r\n"), "{path}: {text}");
        assert!(begun.elapsed() < Duration::from_secs(8), "{path} took {:?}", begun.elapsed());
    }
    if let Ok(descriptors) = fs::read_dir(format!("/proc/{}/fd", process.0.id())) {
        let count = descriptors.count();
        assert!(count < 128, "{count} of 256 descriptors are open");
    }
    drop(clients);
    let (code, events) = process.stop("-TERM");
    assert_eq!(code, Some(0));
    let of = |kind: &str| events.iter().filter(|event| event["event"] == kind).collect::<Vec<_>>();
    let told = of("unanswered");
    assert_eq!(told.len(), 1, "{told:?}");
    assert_eq!(told[0]["reason"], "more than 32 were open at once");
    assert!(of("ended").iter().all(|event| event["outcome"] == "success" || event["outcome"] == "interrupted"));
    assert!(of("broken").is_empty(), "{events:?}");
}

#[test]
fn a_connection_without_a_request_is_closed_after_ten_seconds() {
    let place = Place::new();
    place.define("it", "source.service = \"demo\"\nsignals.sectors = \"energy\"\nschedule.cron = \"@yearly\"\n");
    let (process, port) = scheduler(&place, 256, &[]);
    let begun = Instant::now();
    // One byte a second does not keep it open either.
    let mut trickling = TcpStream::connect(("127.0.0.1", port)).unwrap();
    let mut writer = trickling.try_clone().unwrap();
    let trickle = thread::spawn(move || {
        while begun.elapsed() < Duration::from_secs(40) && writer.write_all(b"G").is_ok() {
            thread::sleep(Duration::from_secs(1));
        }
    });
    assert!(!exchange(port, "").starts_with("HTTP/1.1 200"));
    let _ = trickling.read_to_string(&mut String::new());
    assert!((8..25).contains(&begun.elapsed().as_secs()), "{:?}", begun.elapsed());
    drop(trickling);
    trickle.join().unwrap();
    assert_eq!(process.stop("-TERM").0, Some(0));
}

#[test]
fn a_request_must_name_this_machine_its_address_or_a_given_host() {
    let place = Place::new();
    place.define("it", "source.service = \"demo\"\nsignals.sectors = \"energy\"\nschedule.cron = \"@yearly\"\n");
    let (process, port) = scheduler(&place, 256, &["--listen-host", "status.example.com"]);
    let is_answered = |headers: &str| match status_of(port, headers).as_str() {
        "HTTP/1.1 200 OK" => true,
        "HTTP/1.1 421 Misdirected Request" => false,
        other => panic!("{headers}: {other}"),
    };
    for host in ["localhost", "127.0.0.1", &format!("127.0.0.1:{port}"), "[::1]:80", "Status.Example.com:443"] {
        assert!(is_answered(&format!("Host: {host}\r\n")), "{host}");
    }
    for headers in [
        "Host: evil.example\r\n",
        "Host: localhost.evil.example\r\n",
        "Host: 127.0.0.1.evil.example\r\n",
        "Host: 192.0.2.1\r\n",
        "Host: me@localhost\r\n",
        "Host: localhost\r\nHost: evil.example\r\n",
        "Host: \r\n",
        "X-Forwarded-Host: localhost\r\n",
    ] {
        assert!(!is_answered(headers), "{headers}");
    }
    for (path, host) in [("/status", "evil.example"), ("/metrics", "evil.example"), ("/", "evil.example")] {
        let text = exchange(port, &format!("GET {path} HTTP/1.1\r\nHost: {host}\r\n\r\n"));
        assert!(text.starts_with("HTTP/1.1 421 ") && text.contains("`--listen-host NAME`"), "{path}: {text}");
    }
    assert_eq!(process.stop("-TERM").0, Some(0));
    let shown = place.run(["schedule", "--listen-host", "status.example.com"]).failed_with(2).stderr;
    assert!(shown.contains("needs `--listen`"), "{shown}");
}
