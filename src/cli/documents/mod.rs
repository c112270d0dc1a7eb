//! What commands tell, as JSON.
//!
//! `--json` prints one document on standard output, and failures as one object on standard error. Each document has the
//! version of its shape: new members and new values of enumerations do not change it; a member that goes, or means
//! something else, does.

pub(super) mod archive;
pub(super) mod datasets;
pub(super) mod definitions;
pub(super) mod import;
pub(super) mod skill;

use schemars::{JsonSchema, Schema, SchemaGenerator};
use serde::Serialize;

use super::outcome::Result;
use super::say;
use crate::audit::documents as audits;
use crate::run::{Repairs, StorePruned, StoreStatus};
use crate::schedule::StatusDocument;

/// The version of every shape.
const VERSION: u32 = 1;

/// A command, and the schema of its output.
type SchemaOf = (&'static str, fn() -> Schema);

/// The commands with `--json`, and the schemas of their output.
pub(super) const SCHEMAS: &[SchemaOf] = &[
    ("archive forget", schema_of::<archive::Forgotten>),
    ("archive repair", schema_of::<Repairs>),
    ("audit leak", schema_of::<audits::Leak>),
    ("audit quality", schema_of::<audits::Quality>),
    ("audit revisions", schema_of::<audits::Revisions>),
    ("audit skill", schema_of::<skill::Skill>),
    ("audit sources", schema_of::<audits::Sources>),
    ("check", schema_of::<definitions::Checked>),
    ("datasets", schema_of::<datasets::Versions>),
    ("datasets remove", schema_of::<datasets::Removed>),
    ("diff", schema_of::<audits::Difference>),
    ("doctor", schema_of::<definitions::Diagnoses>),
    ("import", schema_of::<import::Imported>),
    ("plan", schema_of::<definitions::Plan>),
    ("prune", schema_of::<archive::Pruned>),
    ("runs", schema_of::<archive::Runs>),
    ("runs show", schema_of::<archive::Run>),
    ("status", whole_schema_of::<StatusDocument>),
    ("store prune", schema_of::<StorePruned>),
    ("store repair", schema_of::<Repairs>),
    ("store status", schema_of::<StoreStatus>),
    ("summary", schema_of::<datasets::Summary>),
    ("verify", schema_of::<archive::Verified>),
];

/// Text or JSON.
#[derive(Clone, Copy, Debug, clap::Args)]
pub(super) struct AsJson {
    /// Print JSON; `bellwether schema --for COMMAND` describes it.
    #[arg(long, global = true)]
    json: bool,
}

/// A document: the output of a command, with the version of its shape.
#[derive(Debug, Serialize, JsonSchema)]
struct Document<T> {
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

/// The JSON Schema of a document.
fn schema_of<T: JsonSchema>() -> Schema {
    whole_schema_of::<Document<T>>()
}

/// The JSON Schema of a versioned document.
fn whole_schema_of<T: JsonSchema>() -> Schema {
    SchemaGenerator::default().into_root_schema_for::<T>()
}
