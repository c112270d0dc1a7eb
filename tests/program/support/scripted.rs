//! A service that answers what a test tells it to, byte for byte, on a real socket.

use std::io::{BufRead, BufReader, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::Duration;

/// What to do with a request.
pub(crate) enum Act {
    /// Send these bytes and close.
    Send(Vec<u8>),
    /// Send nothing for a while, then close.
    Hang(Duration),
}

/// A scripted service.
pub(crate) struct Scripted {
    address: SocketAddr,
    targets: Arc<Mutex<Vec<String>>>,
}

impl Scripted {
    /// Starts it. The script is given the target of a request and how often that target was asked before.
    pub(crate) fn start(script: impl Fn(&str, usize) -> Act + Send + Sync + 'static) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a free port");
        let address = listener.local_addr().expect("an address");
        let targets = Arc::new(Mutex::new(Vec::new()));
        let (script, seen) = (Arc::new(script), Arc::clone(&targets));
        thread::spawn(move || {
            // Enough for any test, and an end.
            for stream in listener.incoming().take(10_000).flatten() {
                let (script, seen) = (Arc::clone(&script), Arc::clone(&seen));
                thread::spawn(move || converse(stream, script.as_ref(), &seen));
            }
        });
        Self { address, targets }
    }

    /// The lines of a definition's `[source]`.
    pub(crate) fn source(&self) -> String {
        let address = self.address;
        format!("base_url = \"http://{address}/a\"\nsentiment_base_url = \"http://{address}/b\"\n")
    }

    pub(crate) fn address(&self) -> SocketAddr {
        self.address
    }

    /// The targets that were asked for, in order.
    pub(crate) fn targets(&self) -> Vec<String> {
        self.targets.lock().expect("no test panicked").clone()
    }
}

fn converse(stream: TcpStream, script: &dyn Fn(&str, usize) -> Act, seen: &Mutex<Vec<String>>) {
    let mut reader = BufReader::new(stream);
    let mut first = String::new();
    let mut line = String::new();
    if reader.read_line(&mut first).is_err() {
        return;
    }
    while reader.read_line(&mut line).is_ok_and(|count| count > 2) {
        line.clear();
    }
    let target = first.split(' ').nth(1).unwrap_or_default().to_owned();
    let before = {
        let mut seen = seen.lock().expect("no test panicked");
        let before = seen.iter().filter(|one| **one == target).count();
        seen.push(target.clone());
        before
    };
    match script(&target, before) {
        Act::Send(bytes) => {
            let _ = reader.get_mut().write_all(&bytes);
        }
        Act::Hang(time) => thread::sleep(time),
    }
}

/// An answer with a status and a JSON body.
pub(crate) fn json(status: &str, body: &str) -> Act {
    let length = body.len();
    Act::Send(
        format!(
            "HTTP/1.1 {status}\r\nContent-Type: application/json\r\nContent-Length: {length}\r\nConnection: close\r\n\r\n{body}"
        )
        .into_bytes(),
    )
}
