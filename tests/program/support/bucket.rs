//! A bucket of an S3 server: moto, a Python package, as a process on loopback.

use std::net::SocketAddr;
use std::process::{Command, Stdio};

use super::server_process::ServerProcess;
use super::tools::PYTHON;

/// The secret key for signing requests; it must never be shown.
pub(crate) const SECRET: &str = "store-secret-0123456789abcdef";

/// The variable with the store of a test that another one runs.
const STORE_OF_TEST: &str = "BELLWETHER_STORE_OF_TEST";

/// The store of a test that [`Bucket::run_test`] runs.
pub(crate) fn store_of_test() -> String {
    std::env::var(STORE_OF_TEST).expect("the address of a store")
}

pub(crate) struct Bucket(ServerProcess);

impl Bucket {
    pub(crate) const NAME: &'static str = "signals";

    /// The test needs [`PYTHON`].
    #[track_caller]
    pub(crate) fn start() -> Self {
        let mut command = Command::new(PYTHON.path().with_file_name("moto_server"));
        command.args(["-H", "127.0.0.1", "-p", "0"]).stdout(Stdio::null()).stderr(Stdio::piped());
        let bucket = Self(ServerProcess::start(&mut command, "* Running on http://"));
        let reply = bucket.request("PUT", &format!("/{}", Self::NAME));
        assert!(reply.starts_with("HTTP/1.1 200"), "{reply}");
        bucket
    }

    pub(crate) fn address(&self) -> SocketAddr {
        self.0.address()
    }

    /// The URL of a folder in the bucket.
    pub(crate) fn url(&self, prefix: &str) -> String {
        format!("s3://{}/{prefix}", Self::NAME)
    }

    /// The environment variables with the server's address and keys.
    pub(crate) fn environment(&self) -> [(&'static str, String); 4] {
        environment(self.address())
    }

    /// Runs a test that needs a store in a process of its own, which alone may have the keys in its environment.
    #[track_caller]
    pub(crate) fn run_test(&self, name: &str, prefix: &str) {
        let mut child = Command::new(std::env::current_exe().expect("this program"));
        child.args(["--exact", name, "--ignored"]).envs(self.environment()).env(STORE_OF_TEST, self.url(prefix));
        let output = child.output().expect("it starts");
        let message = [output.stdout, output.stderr].concat();
        let message = String::from_utf8_lossy(&message);
        assert!(output.status.success() && message.contains("1 passed"), "{message}");
    }

    /// Puts an object.
    pub(crate) fn put(&self, key: &str, bytes: &[u8]) {
        let reply = self.0.send("PUT", &format!("/{}/{key}", Self::NAME), bytes);
        assert!(reply.starts_with("HTTP/1.1 200"), "{reply}");
    }

    /// Sends a request without a body, and returns the response as text.
    pub(crate) fn request(&self, method: &str, target: &str) -> String {
        self.0.send(method, target, &[])
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

/// The environment variables with a server's address and keys.
pub(crate) fn environment(address: SocketAddr) -> [(&'static str, String); 4] {
    [
        ("AWS_ENDPOINT_URL", format!("http://{address}")),
        ("AWS_ACCESS_KEY_ID", "tester".to_owned()),
        ("AWS_SECRET_ACCESS_KEY", SECRET.to_owned()),
        ("AWS_REGION", "us-east-1".to_owned()),
    ]
}
