//! What commands tell, as JSON.
//!
//! `--json` prints one document on standard output, and failures as one object on standard error. Each document has the
//! version of its shape: new members and new values of enumerations do not change it; a member that goes, or means
//! something else, does.

use schemars::JsonSchema;
use serde::Serialize;

use super::outcome::Result;
use super::say;

/// The version of every shape.
const VERSION: u32 = 1;

/// Text or JSON.
#[derive(Clone, Copy, Debug, clap::Args)]
pub(super) struct AsJson {
    /// Print JSON.
    ///
    /// `bellwether schema --for COMMAND` describes it.
    #[arg(long, global = true)]
    json: bool,
}

/// A document: the output of a command, with the version of its shape.
#[derive(Debug, Serialize, JsonSchema)]
pub(super) struct Document<T> {
    /// The version of the shape.
    version: u32,
    #[serde(flatten)]
    content: T,
}

impl AsJson {
    /// Whether to print JSON.
    pub(super) fn is_wanted(self) -> bool {
        self.json
    }

    /// Prints the output of a command as text or JSON.
    pub(super) fn say<T: Serialize>(self, content: impl FnOnce() -> T, text: impl FnOnce() -> String) -> Result<()> {
        if self.json { say(&document(content())) } else { say(&text()) }
    }
}

/// A document on its own line.
pub(super) fn document(content: impl Serialize) -> String {
    let document = Document { version: VERSION, content };
    let mut line = serde_json::to_string(&document).expect("a document is text, numbers and lists");
    line.push('\n');
    line
}
