//! The lifetime of a service: its addresses, its key, and how it stops.

use std::io::Read;
use std::net::TcpStream;
use std::time::{Duration, Instant};

use bellwether::interface::ChangeSet;
use bellwether::serve::Service;

use crate::support::service::{KEY, Server, universe, with_key};

#[test]
fn the_base_urls_are_those_of_the_listener_and_the_key_is_never_shown() {
    let server = Server::of(ChangeSet::All);
    assert_eq!(server.running.base_url().as_str(), format!("http://{}/seed-1/api", server.address));
    assert_eq!(server.running.sentiment_base_url().as_str(), format!("http://{}/seed-1/sentiment", server.address));
    assert!(!format!("{:?}", server.running).contains("demo key"));
    let service = Service::new(universe(), ChangeSet::All, KEY.to_owned());
    assert!(!format!("{service:?}").contains("demo key") && !format!("{service:#?}").contains("demo key"));
}

#[test]
fn a_stopped_service_finishes_open_requests_and_accepts_no_more() {
    let server = Server::of(ChangeSet::All);
    let (reply, mut stream) = server.head("GET", &with_key("/api/signals-history-all?sector=financials"));
    assert_eq!(reply.status, 200);
    let silent = TcpStream::connect(server.address).unwrap();
    let begun = Instant::now();
    let Server { running, runtime, address, .. } = server;
    let rest = std::thread::spawn(move || {
        let mut rest = Vec::new();
        stream.read_to_end(&mut rest).map(|_| rest)
    });
    runtime.block_on(running.stop());
    assert!(begun.elapsed() < Duration::from_secs(10));
    let rest = rest.join().unwrap().unwrap();
    assert!(rest.ends_with(b"}\r\n0\r\n\r\n"), "the answer was cut");
    assert!(TcpStream::connect(address).is_err());
    drop(silent);
}
