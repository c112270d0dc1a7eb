//! A server that others wrote, as a process on loopback.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::process::{Child, Command, Stdio};
use std::thread;

pub(crate) struct ServerProcess {
    process: Child,
    address: SocketAddr,
}

impl ServerProcess {
    /// Starts a server that prints its address after some text, to stdout or stderr, whichever is piped.
    #[track_caller]
    pub(crate) fn start(command: &mut Command, before_address: &str) -> Self {
        let program = command.get_program().to_owned();
        let mut process = command
            .stdin(Stdio::null())
            .spawn()
            .unwrap_or_else(|error| panic!("{} does not start: {error}; `tests/run` installs it", program.display()));
        let log: Box<dyn Read + Send> = match process.stderr.take() {
            Some(stderr) => Box::new(stderr),
            None => Box::new(process.stdout.take().expect("it is piped")),
        };
        let mut log = BufReader::new(log);
        let mut line = String::new();
        let address = loop {
            line.clear();
            assert!(log.read_line(&mut line).expect("it prints text") > 0, "the server ended");
            if let Some((_, address)) = line.trim().split_once(before_address) {
                break address.parse().expect("an address");
            }
        };
        // It writes a line for each request, and would stop if nobody read them.
        thread::spawn(move || std::io::copy(&mut log, &mut std::io::sink()));
        Self { process, address }
    }

    pub(crate) fn address(&self) -> SocketAddr {
        self.address
    }

    /// Sends a request; what came back, as text.
    pub(crate) fn send(&self, method: &str, target: &str, body: &[u8]) -> String {
        let mut stream = TcpStream::connect(self.address).expect("it listens");
        let (host, length) = (self.address, body.len());
        let head = format!(
            "{method} {target} HTTP/1.1\r\nHost: {host}\r\nContent-Length: {length}\r\nConnection: close\r\n\r\n"
        );
        stream.write_all(&[head.as_bytes(), body].concat()).expect("sent");
        let mut reply = Vec::new();
        stream.read_to_end(&mut reply).expect("a reply");
        String::from_utf8_lossy(&reply).into_owned()
    }
}

impl Drop for ServerProcess {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}
