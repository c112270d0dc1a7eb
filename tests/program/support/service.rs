//! A demo service on loopback, and a client that writes and parses HTTP itself, independently of the service's types.
//! It panics if a reply has no status, is truncated, or has the wrong length; tests check the status. It does not
//! follow redirects, retry, or reuse connections.

use std::collections::{BTreeMap, BTreeSet};
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::path::Path;
use std::time::Duration;

use bellwether::interface::ChangeSet;
use bellwether::run::{CancellationToken, past};
use bellwether::serve::{RunningService, Service, Universe, start};
use chrono::NaiveDate;
use serde_json::Value;
use serde_json::value::RawValue;
use tokio::runtime::Runtime;

/// The key of every server, with characters that a query must escape.
pub(crate) const KEY: &str = "demo key/ü&+";
const KEY_IN_QUERY: &str = "api_key=demo+key%2F%C3%BC%26%2B";

/// A service on a free port of this machine.
pub(crate) struct Server {
    // Declared before the runtime, so that it is dropped first.
    pub(crate) running: RunningService,
    pub(crate) runtime: Runtime,
    pub(crate) address: SocketAddr,
    /// What its paths begin with.
    prefix: String,
}

/// A reply.
#[derive(Debug)]
pub(crate) struct Reply {
    pub(crate) status: u16,
    pub(crate) headers: BTreeMap<String, String>,
    pub(crate) body: Vec<u8>,
}

pub(crate) fn day(year: i32, month: u32, day: u32) -> NaiveDate {
    NaiveDate::from_ymd_opt(year, month, day).expect("a day of the calendar")
}

/// The default universe.
pub(crate) fn universe() -> Universe {
    Universe::new(1, day(2026, 11, 20))
}

impl Server {
    /// A service with the default universe, at a change set.
    pub(crate) fn of(change_set: ChangeSet) -> Self {
        Self::new(universe(), change_set)
    }

    pub(crate) fn new(universe: Universe, change_set: ChangeSet) -> Self {
        Self::start(Service::new(universe, change_set, KEY.to_owned()))
    }

    /// The first service of an archive, in the shapes of a change set.
    pub(crate) fn of_archive(archive: &Path, change_set: ChangeSet) -> Self {
        let services = past(archive, Vec::new(), None, &CancellationToken::new()).expect("services");
        Self::start(Service::of_archive(services, change_set, KEY.to_owned()))
    }

    fn start(service: Service) -> Self {
        let runtime = Runtime::new().expect("a runtime");
        let running = runtime.block_on(start(service, 0)).expect("it starts");
        let address = running.base_url().socket_addrs(|| None).expect("an address")[0];
        let prefix = running.base_url().path().trim_end_matches("/api").to_owned();
        Self { running, runtime, address, prefix }
    }

    /// The same server with another beginning of its paths.
    pub(crate) fn below(self, before: &str) -> Self {
        Self { prefix: format!("{before}{}", self.prefix), ..self }
    }

    /// What its paths begin with.
    pub(crate) fn prefix(&self) -> &str {
        &self.prefix
    }

    /// Sends a request without a body.
    fn send(&self, method: &str, target: &str) -> BufReader<TcpStream> {
        let mut stream = TcpStream::connect(self.address).expect("it listens");
        stream.set_read_timeout(Some(Duration::from_secs(60))).expect("a timeout");
        let (prefix, address) = (&self.prefix, self.address);
        write!(stream, "{method} {prefix}{target} HTTP/1.1\r\nHost: {address}\r\nConnection: close\r\n\r\n")
            .expect("sent");
        BufReader::new(stream)
    }

    /// Reads the status and the headers; the body is still in the stream.
    pub(crate) fn head(&self, method: &str, target: &str) -> (Reply, BufReader<TcpStream>) {
        let mut stream = self.send(method, target);
        let status = line(&mut stream);
        let status = status.split(' ').nth(1).and_then(|code| code.parse().ok()).expect("a status");
        let lines = std::iter::from_fn(|| Some(line(&mut stream)).filter(|line| !line.is_empty()));
        let headers = lines.filter_map(|line| line.split_once(": ").map(|(n, v)| (n.to_lowercase(), v.to_owned())));
        let headers = headers.collect();
        (Reply { status, headers, body: Vec::new() }, stream)
    }

    /// Reads the whole reply, chunked or of the announced length.
    pub(crate) fn request(&self, method: &str, target: &str) -> Reply {
        let (mut reply, mut stream) = self.head(method, target);
        if reply.headers.get("transfer-encoding").is_some_and(|encoding| encoding == "chunked") {
            loop {
                let size = usize::from_str_radix(&line(&mut stream), 16).expect("the size of a chunk");
                let begin = reply.body.len();
                reply.body.resize(begin + size, 0);
                stream.read_exact(&mut reply.body[begin..]).expect("a chunk");
                assert_eq!(line(&mut stream), "", "a chunk ends with a line break");
                if size == 0 {
                    return reply;
                }
            }
        }
        stream.read_to_end(&mut reply.body).expect("a body");
        if reply.status == 304 {
            return reply;
        }
        let length = reply.headers.get("content-length").expect("a length").parse::<usize>().expect("a number");
        assert!(method == "HEAD" || length == reply.body.len(), "{length} bytes were announced");
        reply
    }

    /// The reply to a GET with the key.
    pub(crate) fn get(&self, target: &str) -> Reply {
        self.request("GET", &with_key(target))
    }

    /// The JSON of a reply, which must be a 200.
    pub(crate) fn json(&self, target: &str) -> Value {
        let reply = self.get(target);
        assert_eq!((reply.status, reply.content_type()), (200, "application/json"), "{target}: {reply:?}");
        reply.json()
    }

    /// The members of a large object, unparsed.
    pub(crate) fn members(&self, target: &str) -> BTreeMap<String, Box<RawValue>> {
        let reply = self.get(target);
        assert_eq!((reply.status, reply.content_type()), (200, "application/json"), "{target}");
        serde_json::from_slice(&reply.body).expect("an object")
    }
}

impl Reply {
    pub(crate) fn content_type(&self) -> &str {
        self.headers.get("content-type").map_or("", String::as_str)
    }

    pub(crate) fn json(&self) -> Value {
        serde_json::from_slice(&self.body).expect("JSON")
    }
}

fn line(stream: &mut impl BufRead) -> String {
    let mut line = String::new();
    stream.read_line(&mut line).expect("a line");
    line.trim_end().to_owned()
}

/// The target with the key in its query.
pub(crate) fn with_key(target: &str) -> String {
    let separator = if target.contains('?') { '&' } else { '?' };
    format!("{target}{separator}{KEY_IN_QUERY}")
}

/// The names of an object's members, sorted.
pub(crate) fn fields(record: &Value) -> Vec<&str> {
    record.as_object().expect("an object").keys().map(String::as_str).collect::<BTreeSet<_>>().into_iter().collect()
}

pub(crate) fn list(value: &Value) -> &[Value] {
    value.as_array().expect("an array")
}

pub(crate) fn text(value: &Value) -> &str {
    value.as_str().expect("a string")
}

/// The `date` of each entry, in order.
pub(crate) fn dates(entries: &Value) -> Vec<&str> {
    list(entries).iter().map(|entry| text(&entry["date"])).collect()
}
