//! A scripted service on a real socket, byte for byte.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::Duration;

/// A step of a connection. It is closed after the last one.
#[derive(Clone, Debug)]
pub(crate) enum Step {
    /// Send these bytes.
    Send(Vec<u8>),
    /// Send these bytes a number of times, with a pause in between.
    Repeat(Vec<u8>, usize, Duration),
    /// Pause.
    Wait(Duration),
    /// Reset the connection.
    Reset,
    /// Send a JSON body with a validator, `ETag: "a"`, or 304 to a request that has it as a condition.
    Validated(String, String),
}

/// The parts of a request that scripts use.
#[derive(Clone, Debug)]
pub(crate) struct ScriptedRequest {
    pub(crate) target: String,
    /// Number of earlier requests for the same target.
    pub(crate) before: usize,
}

/// A scripted service.
pub(crate) struct Scripted {
    address: SocketAddr,
    targets: Arc<Mutex<Vec<String>>>,
    heads: Arc<Mutex<Vec<String>>>,
}

impl Scripted {
    pub(crate) fn start(script: impl Fn(&ScriptedRequest) -> Vec<Step> + Send + Sync + 'static) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a free port");
        let address = listener.local_addr().expect("an address");
        let targets = Arc::new(Mutex::new(Vec::new()));
        let heads = Arc::new(Mutex::new(Vec::new()));
        let (script, seen, lines) = (Arc::new(script), Arc::clone(&targets), Arc::clone(&heads));
        thread::spawn(move || {
            // Enough for any test, but bounded.
            for stream in listener.incoming().take(1_000_000).flatten() {
                let (script, seen, lines) = (Arc::clone(&script), Arc::clone(&seen), Arc::clone(&lines));
                thread::spawn(move || converse(stream, script.as_ref(), (&seen, &lines)));
            }
        });
        Self { address, targets, heads }
    }

    /// A service that answers all histories alike, and has no news.
    pub(crate) fn of_histories(script: impl Fn(&ScriptedRequest) -> Vec<Step> + Send + Sync + 'static) -> Self {
        Self::start(
            move |request| if request.target.starts_with("/a/") { script(request) } else { json("200 OK", "[]") },
        )
    }

    /// The lines of a definition's `[source]`.
    pub(crate) fn source(&self) -> String {
        let address = self.address;
        format!("name = \"vendor\"\nbase_url = \"http://{address}/a\"\nsentiment_base_url = \"http://{address}/b\"\n")
    }

    pub(crate) fn address(&self) -> SocketAddr {
        self.address
    }

    /// The requested targets, in order.
    pub(crate) fn targets(&self) -> Vec<String> {
        self.targets.lock().expect("no test panicked").clone()
    }

    /// The lines of the headers of all requests.
    pub(crate) fn heads(&self) -> Vec<String> {
        self.heads.lock().expect("no test panicked").clone()
    }

    /// Number of requests.
    pub(crate) fn count(&self) -> usize {
        self.targets.lock().expect("no test panicked").len()
    }

    /// The requested targets after the first few, in order.
    pub(crate) fn targets_after(&self, count: usize) -> Vec<String> {
        self.targets.lock().expect("no test panicked")[count..].to_vec()
    }

    /// Number of requests for histories.
    pub(crate) fn histories(&self) -> usize {
        self.targets().iter().filter(|target| target.starts_with("/a/")).count()
    }
}

fn converse(
    stream: TcpStream,
    script: &dyn Fn(&ScriptedRequest) -> Vec<Step>,
    (seen, heads): (&Mutex<Vec<String>>, &Mutex<Vec<String>>),
) {
    // Byte by byte, so that the headers stay in the socket: closing it with unread bytes resets the connection.
    let mut reader = BufReader::with_capacity(1, stream);
    let mut first = String::new();
    if reader.read_line(&mut first).is_err() {
        return;
    }
    let target = first.split(' ').nth(1).unwrap_or_default().to_owned();
    let before = {
        let mut seen = seen.lock().expect("no test panicked");
        let before = seen.iter().filter(|one| **one == target).count();
        seen.push(target.clone());
        before
    };
    let steps = script(&ScriptedRequest { target, before });
    let is_reset = steps.iter().any(|step| matches!(step, Step::Reset));
    let (mut line, mut lines) = (String::new(), Vec::new());
    while !is_reset && reader.read_line(&mut line).is_ok_and(|count| count > 2) {
        lines.push(line.trim_end().to_owned());
        line.clear();
    }
    heads.lock().expect("no test panicked").extend(lines.iter().cloned());
    for step in steps {
        match step {
            Step::Validated(validator, body) => {
                let (_, value) = validator.split_once(": ").expect("a header");
                let is_same =
                    |line: &String| line.starts_with("if-") && line.split_once(": ").is_some_and(|(_, it)| it == value);
                let answer = match lines.iter().any(is_same) {
                    true => format!("HTTP/1.1 304 Not Modified\r\n{validator}\r\nConnection: close\r\n\r\n"),
                    false => format!(
                        "HTTP/1.1 200 OK\r\nDate: {}\r\n{validator}\r\nContent-Length: {}\r\nConnection: close\r\n\r\n{body}",
                        chrono::Utc::now().format("%a, %d %b %Y %H:%M:%S GMT"),
                        body.len()
                    ),
                };
                if reader.get_mut().write_all(answer.as_bytes()).is_err() {
                    return;
                }
            }
            Step::Send(bytes) => {
                if reader.get_mut().write_all(&bytes).is_err() {
                    return;
                }
            }
            Step::Repeat(bytes, times, wait) => {
                for _ in 0..times {
                    if reader.get_mut().write_all(&bytes).is_err() {
                        return;
                    }
                    thread::sleep(wait);
                }
            }
            Step::Wait(time) => thread::sleep(time),
            Step::Reset => return,
        }
    }
    // The client closes first, so that nothing sent is lost.
    let _ = reader.get_mut().shutdown(std::net::Shutdown::Write);
    let _ = reader.get_mut().set_read_timeout(Some(Duration::from_secs(5)));
    let _ = reader.read_to_end(&mut Vec::new());
}

/// An answer with a status, some headers (each with its line end) and a body.
pub(crate) fn reply(status: &str, headers: &str, body: &[u8]) -> Vec<Step> {
    let head = format!("HTTP/1.1 {status}\r\n{headers}Content-Length: {}\r\nConnection: close\r\n\r\n", body.len());
    vec![Step::Send([head.as_bytes(), body].concat())]
}

/// An answer with a status and a JSON body.
pub(crate) fn json(status: &str, body: &str) -> Vec<Step> {
    reply(status, "Content-Type: application/json\r\n", body.as_bytes())
}
