//! Memory does not follow the size of an answer.

use std::fs;
use std::io::{Read, Write};
use std::net::TcpListener;
use std::process::Stdio;
use std::thread;
use std::time::Duration;

use crate::support::program::Place;

/// The history of one ticker in a batch, as text, with a hole for the symbol.
fn history() -> (String, String) {
    let entry = |day: usize| {
        let (month, day) = (1 + day / 28 % 12, 1 + day % 28);
        let signal = if day % 3 == 0 { "buy" } else { "sell" };
        format!("{{\"date\":\"2025-{month:02}-{day:02}T00:00:00\",\"signal\":\"{signal}\",\"confidence\":0.7{day}}}")
    };
    let entries: Vec<String> = (0..336).map(entry).collect();
    let head = format!("{{\"items\":[{}],\"period\":\"15d\",\"regime\":\"neutral\",\"ticker\":\"", entries.join(","));
    (head, "\"}".to_owned())
}

/// A service with one answer, made while it is sent, of about so many bytes.
fn serve(bytes: usize) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a free port");
    let address = listener.local_addr().expect("an address");
    thread::spawn(move || {
        let (mut stream, _) = listener.accept().expect("a request");
        let mut asked = [0; 4096];
        let _ = stream.read(&mut asked).expect("a request");
        stream.write_all(b"HTTP/1.1 200 OK\r\nConnection: close\r\n\r\n{").expect("it is taken");
        let (head, tail) = history();
        for ticker in 0..bytes / head.len() {
            let comma = if ticker == 0 { "" } else { "," };
            let piece = format!("{comma}\"T{ticker}\":{head}T{ticker}{tail}");
            stream.write_all(piece.as_bytes()).expect("it is taken");
        }
        stream.write_all(b"}").expect("it is taken");
    });
    format!("[source]\nbase_url = \"http://{address}/a\"\nsentiment_base_url = \"http://{address}/b\"\n")
}

/// The most memory that a run of one answer of so many bytes ever held.
fn peak(bytes: usize) -> u64 {
    let place = Place::new();
    place.define("it", &format!("{}[signals]\nhistory = \"batched\"\n[sentiment]\narticles = false\n", serve(bytes)));
    let mut command = place.command(["run", "it", "-q"]);
    let mut child = command.env("BELLWETHER_API_KEY", "demo").stderr(Stdio::inherit()).spawn().expect("it starts");
    let status = format!("/proc/{}/status", child.id());
    let mut peak = 0;
    while child.try_wait().expect("it can be asked").is_none() {
        let text = fs::read_to_string(&status).unwrap_or_default();
        let line = text.lines().find_map(|line| line.strip_prefix("VmHWM:"));
        let kilobytes = line.and_then(|line| line.trim().trim_end_matches(" kB").parse().ok());
        peak = kilobytes.unwrap_or(peak).max(peak);
        thread::sleep(Duration::from_millis(10));
    }
    assert!(child.wait().expect("it ended").success());
    peak / 1024
}

#[test]
fn a_body_of_many_times_the_memory_is_decoded_and_written_within_a_bound() {
    let small = peak(8 << 20);
    let large = peak(320 << 20);
    assert!(large < 250, "320 MB of answer took {large} MB of memory");
    assert!(large < small + 150, "8 MB took {small} MB, 320 MB took {large} MB");
}
