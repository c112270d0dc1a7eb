//! A container of a real Azure Blob server: Azurite, an npm package, as a process on loopback.

use std::process::{Command, Stdio};

use super::server_process::ServerProcess;
use super::tools::Tool;

/// The server.
pub(crate) const AZURITE: Tool = Tool::Installed("azurite/node_modules/.bin/azurite-blob");

/// The account that every Azurite has, and its key, which Microsoft publishes.
const ACCOUNT: &str = "devstoreaccount1";
pub(crate) const ACCOUNT_KEY: &str =
    "Eby8vdM02xNOcqFlqUwJPLlmEtlCDXJ1OUzFT50uSRZ6IFsuFq2UVErCz4I6tq/K1SZFPTOtr/KBHBeksoGMGw==";

/// A token for all that the account has, signed with that key.
const TOKEN: &str = "sv=2021-08-06&ss=b&srt=sco&sp=rwdlac&se=2099-01-01T00:00:00Z\
                     &sig=96c2EygB3PgwPw%2FPybbUy3WlHCPrp0h%2FIdLehWe2UEU%3D";

pub(crate) struct Azurite(ServerProcess);

impl Azurite {
    pub(crate) const CONTAINER: &'static str = "signals";

    /// The test needs [`AZURITE`].
    #[track_caller]
    pub(crate) fn start() -> Self {
        let mut command = Command::new(AZURITE.path());
        command.args(["--blobPort", "0", "--inMemoryPersistence", "--disableTelemetry", "--skipApiVersionCheck"]);
        let server = ServerProcess::start(command.stdout(Stdio::piped()), "successfully listens on http://");
        let target = format!("/{ACCOUNT}/{}?restype=container&{TOKEN}", Self::CONTAINER);
        let reply = server.send("PUT", &target, &[]);
        assert!(reply.starts_with("HTTP/1.1 201"), "{reply}");
        Self(server)
    }

    /// The address of a folder in the container.
    pub(crate) fn url(&self, prefix: &str) -> String {
        format!("az://{}/{prefix}", Self::CONTAINER)
    }

    /// The variables by which programs find the server and the account.
    pub(crate) fn environment(&self) -> [(&'static str, String); 3] {
        [
            ("AZURE_STORAGE_ENDPOINT", format!("http://{}/{ACCOUNT}", self.0.address())),
            ("AZURE_STORAGE_ACCOUNT_NAME", ACCOUNT.to_owned()),
            ("AZURE_STORAGE_ACCOUNT_KEY", ACCOUNT_KEY.to_owned()),
        ]
    }

    /// The same with a token instead of the account's key, and what of the token must not be shown.
    pub(crate) fn environment_with_token(&self) -> ([(&'static str, String); 3], &'static str) {
        let [endpoint, account, _] = self.environment();
        ([endpoint, account, ("AZURE_STORAGE_SAS_KEY", TOKEN.to_owned())], "PybbUy3WlHCPrp0h")
    }

    /// The names of all blobs, in order.
    pub(crate) fn keys(&self) -> Vec<String> {
        let target = format!("/{ACCOUNT}/{}?restype=container&comp=list&{TOKEN}", Self::CONTAINER);
        let listed = self.0.send("GET", &target, &[]);
        let found = listed.split("<Name>").skip(1).filter_map(|rest| rest.split("</Name>").next());
        found.map(str::to_owned).collect()
    }
}
