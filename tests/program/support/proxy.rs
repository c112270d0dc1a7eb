//! A proxy on loopback that opens tunnels to one address, or none, and records its requests.

use std::io::{self, BufRead, BufReader, Write};
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};
use std::sync::{Arc, Mutex};
use std::thread;

pub(crate) struct Proxy {
    pub(crate) address: SocketAddr,
    heads: Arc<Mutex<Vec<String>>>,
}

impl Proxy {
    /// A proxy whose tunnels all lead to one address, or that refuses all of them.
    pub(crate) fn start(to: Option<SocketAddr>) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a free port");
        let address = listener.local_addr().expect("an address");
        let heads = Arc::new(Mutex::new(Vec::new()));
        let seen = Arc::clone(&heads);
        thread::spawn(move || {
            for stream in listener.incoming().take(10_000).flatten() {
                let seen = Arc::clone(&seen);
                thread::spawn(move || converse(stream, to, &seen));
            }
        });
        Self { address, heads }
    }

    /// The heads of its requests.
    pub(crate) fn heads(&self) -> Vec<String> {
        self.heads.lock().expect("no test panicked").clone()
    }
}

fn converse(stream: TcpStream, to: Option<SocketAddr>, seen: &Mutex<Vec<String>>) {
    // Byte by byte: bytes after the head belong to the tunnel.
    let mut reader = BufReader::with_capacity(1, stream);
    let mut head = String::new();
    while !head.ends_with("\r\n\r\n") {
        if !reader.read_line(&mut head).is_ok_and(|count| count > 0) {
            break;
        }
    }
    let is_tunnel = head.starts_with("CONNECT ");
    seen.lock().expect("no test panicked").push(head);
    let mut near = reader.into_inner();
    let Some(mut far) = to.filter(|_| is_tunnel).and_then(|to| TcpStream::connect(to).ok()) else {
        let _ = near.write_all(b"HTTP/1.1 403 Forbidden\r\nContent-Length: 0\r\n\r\n");
        return;
    };
    let _ = near.write_all(b"HTTP/1.1 200 OK\r\n\r\n");
    let (Ok(mut near_too), Ok(mut far_too)) = (near.try_clone(), far.try_clone()) else { return };
    thread::spawn(move || {
        let _ = io::copy(&mut near_too, &mut far_too);
        let _ = far_too.shutdown(Shutdown::Write);
    });
    let _ = io::copy(&mut far, &mut near);
    let _ = near.shutdown(Shutdown::Write);
}
