//! A store with the interface of S3 or of Google and scripted faults.
//!
//! It keeps objects in memory and honours conditional puts, by the headers of its own interface only. Before and after
//! each request the test's script may refuse it, answer late, cut the answer off, or ignore its conditions.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::atomic::{AtomicI64, AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::Duration;

use chrono::{DateTime, TimeDelta, Utc};

use super::bucket::environment;

/// The fault of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum StoreFault {
    /// It is answered with a status and a header line, and not executed.
    Refused(&'static str, &'static str),
    /// It is executed, but answered with a status.
    Denied(&'static str),
    /// It is executed, but the answer is truncated.
    CutOff,
    /// It is executed after a delay.
    Slow(Duration),
    /// It is executed, ignoring its conditions.
    Unconditional,
    /// It is executed, and answered without an ETag.
    Untagged,
    /// It is answered with a status, header lines with their ends, and a body, and not executed.
    Replied(&'static str, &'static str, &'static str),
    /// It is answered with a status, the beginning of a body, and a piece of it again and again.
    Endless(&'static str, &'static str, &'static str),
}

/// The parts of a request that scripts use.
#[derive(Clone, Debug)]
pub(crate) struct StoreRequest {
    pub(crate) method: String,
    /// The key, without the bucket.
    pub(crate) key: String,
    pub(crate) query: String,
    /// Number of earlier requests.
    pub(crate) number: u64,
}

/// The interface of a store. Google's XML interface is that of S3, except for the conditions of puts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Interface {
    /// `If-None-Match: *` and `If-Match: "TAG"`.
    S3,
    /// `x-goog-if-generation-match: 0` or the generation that is there.
    Google,
}

/// An object: its bytes, its tag, and its modification time.
type Objects = BTreeMap<String, (Vec<u8>, u64, DateTime<Utc>)>;

type Script = dyn Fn(&StoreRequest) -> Option<StoreFault> + Send + Sync;

struct State {
    objects: Mutex<Objects>,
    uploads: Mutex<BTreeMap<String, BTreeMap<u32, Vec<u8>>>>,
    requests: Mutex<Vec<StoreRequest>>,
    tags: AtomicU64,
    page: usize,
    interface: Interface,
    script: Box<Script>,
    /// By how many seconds its clock is ahead.
    ahead: AtomicI64,
}

impl State {
    fn now(&self) -> DateTime<Utc> {
        Utc::now() + TimeDelta::seconds(self.ahead.load(Ordering::Relaxed))
    }
}

pub(crate) struct StubStore {
    address: SocketAddr,
    state: Arc<State>,
}

impl StubStore {
    pub(crate) const BUCKET: &'static str = "signals";

    /// A store like S3 whose listings have pages of this many keys.
    pub(crate) fn start(
        page: usize,
        script: impl Fn(&StoreRequest) -> Option<StoreFault> + Send + Sync + 'static,
    ) -> Self {
        Self::with_interface(Interface::S3, page, script)
    }

    /// A store like Google's.
    pub(crate) fn like_google(script: impl Fn(&StoreRequest) -> Option<StoreFault> + Send + Sync + 'static) -> Self {
        Self::with_interface(Interface::Google, 1000, script)
    }

    fn with_interface(
        interface: Interface,
        page: usize,
        script: impl Fn(&StoreRequest) -> Option<StoreFault> + Send + Sync + 'static,
    ) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a free port");
        let address = listener.local_addr().expect("an address");
        let state = Arc::new(State {
            objects: Mutex::default(),
            uploads: Mutex::default(),
            requests: Mutex::default(),
            tags: AtomicU64::new(1),
            page,
            interface,
            script: Box::new(script),
            ahead: AtomicI64::new(0),
        });
        let shared = Arc::clone(&state);
        thread::spawn(move || {
            for stream in listener.incoming().take(1_000_000).flatten() {
                let state = Arc::clone(&shared);
                thread::spawn(move || while converse(&stream, &state).is_some() {});
            }
        });
        Self { address, state }
    }

    pub(crate) fn url(&self, prefix: &str) -> String {
        let scheme = match self.state.interface {
            Interface::S3 => "s3",
            Interface::Google => "gs",
        };
        format!("{scheme}://{}/{prefix}", Self::BUCKET)
    }

    /// The variables by which programs find the store and the keys.
    pub(crate) fn environment(&self) -> Vec<(&'static str, String)> {
        match self.state.interface {
            Interface::S3 => environment(self.address).into(),
            Interface::Google => {
                let key = format!(
                    "{{\"private_key\":\"none\",\"private_key_id\":\"none\",\"client_email\":\"tester\",\
                     \"disable_oauth\":true,\"gcs_base_url\":\"http://{}\"}}",
                    self.address
                );
                vec![("GOOGLE_SERVICE_ACCOUNT_KEY", key)]
            }
        }
    }

    /// Sets its clock ahead of this machine's.
    pub(crate) fn set_ahead(&self, seconds: i64) {
        self.state.ahead.store(seconds, Ordering::Relaxed);
    }

    /// The keys of all objects, in order.
    pub(crate) fn keys(&self) -> Vec<String> {
        self.state.objects.lock().expect("no test panicked").keys().cloned().collect()
    }

    pub(crate) fn object(&self, key: &str) -> Option<Vec<u8>> {
        self.state.objects.lock().expect("no test panicked").get(key).map(|(bytes, ..)| bytes.clone())
    }

    /// Puts an object with a modification time some hours ago.
    pub(crate) fn put(&self, key: &str, bytes: &[u8], hours_ago: i64) {
        let tag = self.state.tags.fetch_add(1, Ordering::Relaxed);
        let object = (bytes.to_vec(), tag, Utc::now() - TimeDelta::hours(hours_ago));
        self.state.objects.lock().expect("no test panicked").insert(key.to_owned(), object);
    }

    /// The requests so far.
    pub(crate) fn requests(&self) -> Vec<StoreRequest> {
        self.state.requests.lock().expect("no test panicked").clone()
    }
}

/// An answer: status, headers with their line ends, body.
struct Answer(&'static str, String, Vec<u8>);

/// Answers one request of a connection; `None` once it is closed.
fn converse(stream: &TcpStream, state: &State) -> Option<()> {
    let mut reader = BufReader::new(stream);
    let mut line = String::new();
    reader.read_line(&mut line).ok().filter(|count| *count > 0)?;
    let mut words = line.split(' ').map(str::to_owned);
    let (method, target) = (words.next()?, words.next()?);
    let mut headers: BTreeMap<String, String> = BTreeMap::new();
    loop {
        line.clear();
        reader.read_line(&mut line).ok()?;
        let Some((name, value)) = line.trim_end().split_once(':') else { break };
        headers.insert(name.to_lowercase(), value.trim().to_owned());
    }
    let length = headers.get("content-length").map_or(0, |length| length.parse().expect("a number"));
    let mut body = vec![0; length];
    reader.read_exact(&mut body).ok()?;
    let (path, query) = target.split_once('?').unwrap_or((&target, ""));
    let key = decode(path).trim_start_matches(&format!("/{}", StubStore::BUCKET)).trim_start_matches('/').to_owned();
    let request = {
        let mut all = state.requests.lock().expect("no test panicked");
        let request = StoreRequest { method, key, query: query.to_owned(), number: all.len() as u64 };
        all.push(request.clone());
        request
    };
    let fault = (state.script)(&request);
    if let Some(StoreFault::Slow(time)) = fault {
        thread::sleep(time);
    }
    let answer = match fault {
        Some(StoreFault::Replied(status, headers, body)) => Answer(status, headers.to_owned(), body.into()),
        Some(StoreFault::Endless(status, beginning, piece)) => return endless(stream, status, beginning, piece),
        Some(StoreFault::Untagged) => {
            let Answer(status, headers, body) = carried_out(state, &request, &headers, body, true);
            let untagged = headers.split_inclusive("\r\n").filter(|line| !line.starts_with("ETag")).collect();
            Answer(status, untagged, body)
        }
        Some(StoreFault::Refused(status, header)) => {
            let header = if header.is_empty() { String::new() } else { format!("{header}\r\n") };
            Answer(status, header, failure("SlowDown"))
        }
        Some(StoreFault::Denied(status)) => {
            carried_out(state, &request, &headers, body, true);
            Answer(status, String::new(), failure("InternalError"))
        }
        fault => carried_out(state, &request, &headers, body, fault != Some(StoreFault::Unconditional)),
    };
    let Answer(status, headers, body) = answer;
    let body = if request.method == "HEAD" { Vec::new() } else { body };
    let length =
        if headers.contains("Content-Length") { String::new() } else { format!("Content-Length: {}\r\n", body.len()) };
    let mut stream = stream;
    stream.write_all(format!("HTTP/1.1 {status}\r\n{headers}{length}\r\n").as_bytes()).ok()?;
    if fault == Some(StoreFault::CutOff) {
        stream.write_all(&body[..body.len() / 2]).ok()?;
        stream.shutdown(std::net::Shutdown::Both).ok()?;
        return None;
    }
    stream.write_all(&body).ok()
}

/// Sends a body without an end, up to a bound that no client should reach.
fn endless(mut stream: &TcpStream, status: &str, beginning: &str, piece: &str) -> Option<()> {
    let head = format!("HTTP/1.1 {status}\r\nConnection: close\r\n\r\n{beginning}");
    stream.write_all(head.as_bytes()).ok()?;
    let pieces = piece.repeat((1 << 16) / piece.len() + 1);
    for _ in 0..(4 << 30) / pieces.len() as u64 {
        stream.write_all(pieces.as_bytes()).ok()?;
    }
    None
}

fn failure(code: &str) -> Vec<u8> {
    format!("<?xml version=\"1.0\"?><Error><Code>{code}</Code><Message>\u{1b}[31mred</Message></Error>").into_bytes()
}

fn carried_out(
    state: &State,
    request: &StoreRequest,
    headers: &BTreeMap<String, String>,
    body: Vec<u8>,
    heeds: bool,
) -> Answer {
    let parameter = |name: &str| {
        let pairs = request.query.split('&').filter_map(|pair| pair.split_once('='));
        pairs.filter(|(key, _)| *key == name).map(|(_, value)| decode(value)).next()
    };
    let mut objects = state.objects.lock().expect("no test panicked");
    let tagged = |tag: u64, put: DateTime<Utc>| {
        let generation = match state.interface {
            Interface::S3 => String::new(),
            Interface::Google => format!("x-goog-generation: {tag}\r\n"),
        };
        format!("{generation}ETag: \"{tag}\"\r\nLast-Modified: {}\r\n", put.format("%a, %d %b %Y %H:%M:%S GMT"))
    };
    match request.method.as_str() {
        "GET" if request.key.is_empty() => Answer("200 OK", String::new(), listing(&objects, state.page, parameter)),
        "GET" | "HEAD" => match objects.get(&request.key) {
            None => Answer("404 Not Found", String::new(), failure("NoSuchKey")),
            Some((bytes, tag, put)) => match headers.get("range").and_then(|range| span(range)) {
                Some((from, to)) => {
                    let to = to.min(bytes.len() - 1);
                    let range = format!("Content-Range: bytes {from}-{to}/{}\r\n", bytes.len());
                    Answer("206 Partial Content", tagged(*tag, *put) + &range, bytes[from..=to].to_vec())
                }
                None => {
                    let length = format!("Content-Length: {}\r\n", bytes.len());
                    Answer("200 OK", tagged(*tag, *put) + &length, bytes.clone())
                }
            },
        },
        "PUT" if request.query.contains("partNumber") => {
            let part = parameter("partNumber").and_then(|part| part.parse().ok()).expect("a number");
            let mut uploads = state.uploads.lock().expect("no test panicked");
            uploads.entry(parameter("uploadId").expect("an upload")).or_default().insert(part, body);
            Answer("200 OK", format!("ETag: \"part-{part}\"\r\n"), Vec::new())
        }
        "PUT" if headers.contains_key("x-amz-copy-source") => {
            let source = decode(&headers["x-amz-copy-source"]);
            let source = source.trim_start_matches('/').trim_start_matches(StubStore::BUCKET).trim_start_matches('/');
            let Some((bytes, ..)) = objects.get(source).cloned() else {
                return Answer("404 Not Found", String::new(), failure("NoSuchKey"));
            };
            let tag = state.tags.fetch_add(1, Ordering::Relaxed);
            objects.insert(request.key.clone(), (bytes, tag, state.now()));
            let text = format!("<CopyObjectResult><ETag>\"{tag}\"</ETag></CopyObjectResult>");
            Answer("200 OK", String::new(), text.into_bytes())
        }
        "PUT" => {
            let there = objects.get(&request.key).map(|(_, tag, _)| *tag);
            let header = |name: &str| headers.get(name).map(|value| value.trim_matches('"'));
            let (is_new, tag) = match state.interface {
                Interface::S3 => (header("if-none-match") == Some("*"), header("if-match")),
                Interface::Google => {
                    let generation = header("x-goog-if-generation-match");
                    (generation == Some("0"), generation.filter(|generation| *generation != "0"))
                }
            };
            let is_changed = tag.is_some_and(|tag| there.map(|there| there.to_string()).as_deref() != Some(tag));
            let is_met = !(is_new && there.is_some() || is_changed);
            if heeds && !is_met {
                return Answer("412 Precondition Failed", String::new(), failure("PreconditionFailed"));
            }
            let tag = state.tags.fetch_add(1, Ordering::Relaxed);
            objects.insert(request.key.clone(), (body, tag, state.now()));
            Answer("200 OK", tagged(tag, state.now()), Vec::new())
        }
        "POST" if request.query.starts_with("uploads") => {
            let id = state.tags.fetch_add(1, Ordering::Relaxed);
            let text =
                format!("<InitiateMultipartUploadResult><UploadId>{id}</UploadId></InitiateMultipartUploadResult>");
            Answer("200 OK", String::new(), text.into_bytes())
        }
        "POST" => {
            let mut uploads = state.uploads.lock().expect("no test panicked");
            let parts = uploads.remove(&parameter("uploadId").expect("an upload")).unwrap_or_default();
            let tag = state.tags.fetch_add(1, Ordering::Relaxed);
            objects.insert(request.key.clone(), (parts.into_values().flatten().collect(), tag, state.now()));
            let text = format!("<CompleteMultipartUploadResult><ETag>\"{tag}\"</ETag></CompleteMultipartUploadResult>");
            Answer("200 OK", String::new(), text.into_bytes())
        }
        _ => {
            objects.remove(&request.key);
            Answer("204 No Content", String::new(), Vec::new())
        }
    }
}

fn listing(objects: &Objects, page: usize, parameter: impl Fn(&str) -> Option<String>) -> Vec<u8> {
    let (prefix, delimiter) = (parameter("prefix").unwrap_or_default(), parameter("delimiter").unwrap_or_default());
    let after = parameter("continuation-token").or(parameter("start-after")).unwrap_or_default();
    let mut found: BTreeMap<String, Option<(usize, u64, DateTime<Utc>)>> = BTreeMap::new();
    for (key, (bytes, tag, put)) in objects.range(prefix.clone()..).take_while(|(key, _)| key.starts_with(&prefix)) {
        let rest = &key[prefix.len()..];
        match rest.find(&delimiter).filter(|_| !delimiter.is_empty()) {
            Some(end) => _ = found.insert(format!("{prefix}{}", &rest[..=end]), None),
            None => _ = found.insert(key.clone(), Some((bytes.len(), *tag, *put))),
        }
    }
    let mut text = "<ListBucketResult>".to_owned();
    let mut rest = found.range(after.clone()..).filter(|(key, _)| **key > after);
    let mut last = None;
    for (key, object) in rest.by_ref().take(page) {
        match object {
            Some((size, tag, put)) => write!(
                text,
                "<Contents><Key>{key}</Key><Size>{size}</Size><ETag>\"{tag}\"</ETag>\
                 <LastModified>{}</LastModified></Contents>",
                put.format("%Y-%m-%dT%H:%M:%S%.3fZ")
            ),
            None => write!(text, "<CommonPrefixes><Prefix>{key}</Prefix></CommonPrefixes>"),
        }
        .expect("a string takes any text");
        last = Some(key.clone());
    }
    if rest.next().is_some() {
        let token = last.expect("a page has a key");
        write!(text, "<NextContinuationToken>{token}</NextContinuationToken>").expect("a string takes any text");
    }
    text.push_str("</ListBucketResult>");
    text.into_bytes()
}

/// The ends of a range such as `bytes=2-5`.
fn span(range: &str) -> Option<(usize, usize)> {
    let (from, to) = range.strip_prefix("bytes=")?.split_once('-')?;
    Some((from.parse().ok()?, to.parse().unwrap_or(usize::MAX - 1)))
}

fn decode(text: &str) -> String {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.as_bytes();
    while let Some((&byte, after)) = rest.split_first() {
        let digits = after.get(..2).and_then(|digits| std::str::from_utf8(digits).ok());
        match digits.and_then(|digits| u8::from_str_radix(digits, 16).ok()).filter(|_| byte == b'%') {
            Some(byte) => {
                bytes.push(byte);
                rest = &after[2..];
            }
            None => {
                bytes.push(if byte == b'+' { b' ' } else { byte });
                rest = after;
            }
        }
    }
    String::from_utf8_lossy(&bytes).into_owned()
}
