//! A bucket of a real S3 server: moto, a Python package, as a process on loopback.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::thread;

/// The secret key that programs sign with; nothing may ever show it.
pub(crate) const SECRET: &str = "store-secret-0123456789abcdef";

pub(crate) struct Bucket {
    process: Child,
    address: SocketAddr,
}

impl Bucket {
    pub(crate) const NAME: &'static str = "signals";

    #[track_caller]
    pub(crate) fn start() -> Self {
        let server = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/.venv/bin/moto_server");
        assert!(server.exists(), "{} is missing: `tests/run` installs it", server.display());
        let mut command = Command::new(server);
        command.args(["-H", "127.0.0.1", "-p", "0"]).stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::piped());
        let mut process = command.spawn().expect("the server starts");
        let mut log = BufReader::new(process.stderr.take().expect("it is piped"));
        let mut line = String::new();
        let address = loop {
            line.clear();
            assert!(log.read_line(&mut line).expect("it prints text") > 0, "the server ended");
            if let Some(address) = line.trim().strip_prefix("* Running on http://") {
                break address.parse().expect("an address");
            }
        };
        // It writes a line for each request, and would stop if nobody read them.
        thread::spawn(move || std::io::copy(&mut log, &mut std::io::sink()));
        let bucket = Self { process, address };
        let reply = bucket.request("PUT", &format!("/{}", Self::NAME));
        assert!(reply.starts_with("HTTP/1.1 200"), "{reply}");
        bucket
    }

    pub(crate) fn address(&self) -> SocketAddr {
        self.address
    }

    /// The address of a folder in the bucket.
    pub(crate) fn url(&self, prefix: &str) -> String {
        format!("s3://{}/{prefix}", Self::NAME)
    }

    /// The variables by which programs find the server and the keys.
    pub(crate) fn environment(&self) -> [(&'static str, String); 4] {
        environment(self.address)
    }

    /// Puts an object.
    pub(crate) fn put(&self, key: &str, bytes: &[u8]) {
        let reply = self.sent("PUT", &format!("/{}/{key}", Self::NAME), bytes);
        assert!(reply.starts_with("HTTP/1.1 200"), "{reply}");
    }

    /// Sends a request without a body; what came back, as text.
    pub(crate) fn request(&self, method: &str, target: &str) -> String {
        self.sent(method, target, &[])
    }

    fn sent(&self, method: &str, target: &str, body: &[u8]) -> String {
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

    /// The keys of all objects, in order.
    pub(crate) fn keys(&self) -> Vec<String> {
        let (mut keys, mut after) = (Vec::new(), String::new());
        loop {
            let listed = self.request("GET", &format!("/{}?list-type=2{after}", Self::NAME));
            let found = listed.split("<Key>").skip(1).filter_map(|rest| rest.split("</Key>").next());
            keys.extend(found.map(str::to_owned));
            let Some(token) = listed.split("<NextContinuationToken>").nth(1) else { return keys };
            after = format!("&continuation-token={}", token.split('<').next().unwrap_or_default());
        }
    }
}

/// The variables by which programs find a server and the keys for it.
pub(crate) fn environment(address: SocketAddr) -> [(&'static str, String); 4] {
    [
        ("AWS_ENDPOINT_URL", format!("http://{address}")),
        ("AWS_ACCESS_KEY_ID", "tester".to_owned()),
        ("AWS_SECRET_ACCESS_KEY", SECRET.to_owned()),
        ("AWS_REGION", "us-east-1".to_owned()),
    ]
}

impl Drop for Bucket {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}
