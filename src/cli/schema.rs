//! `bellwether schema`: JSON Schemas of definitions, and of what commands tell.

use bellwether::archive::{Imported, RunDetails, RunListing};
use bellwether::audit::{Leak, diff, quality, revisions, skill, sources, table};
use bellwether::definition::json_schema;
use bellwether::export::Citation;
use bellwether::report::DatasetSummary;
use bellwether::run::{
    Forgot, OfferedSectors, OfferedTickers, Prunable, StorePruned, StoreVerified, Summary, TransferCounts, Verified,
};
use schemars::SchemaGenerator;

use super::build::Built;
use super::check::Checked;
use super::doctor::Diagnoses;
use super::list::Versions;
use super::log::AnyLine;
use super::prelude::*;
use crate::schedule::StatusDocument;

/// A command, and the schema of its output.
type SchemaOf = (&'static str, fn() -> schemars::Schema);

/// The commands with `--json`, and the schemas of their output.
const SCHEMAS: &[SchemaOf] = &[
    ("audit leak", schema_of::<Leak>),
    ("audit quality", schema_of::<quality::Quality>),
    ("audit revisions", schema_of::<revisions::Revisions>),
    ("audit skill", schema_of::<skill::Skill>),
    ("audit sources", schema_of::<sources::Sources>),
    ("audit table", schema_of::<table::TableAudit>),
    ("build", schema_of::<Built>),
    ("check", schema_of::<Checked>),
    ("cite", schema_of::<Citation>),
    ("diff", schema_of::<diff::Difference>),
    ("doctor", schema_of::<Diagnoses<'_>>),
    ("events", whole_schema_of::<AnyLine<'_>>),
    ("forget", schema_of::<Forgot>),
    ("import", schema_of::<Imported>),
    ("prune", schema_of::<Prunable>),
    ("prune --store", schema_of::<StorePruned>),
    ("list datasets", schema_of::<Versions<'_>>),
    ("list runs", schema_of::<RunListing>),
    ("list runs RUN", schema_of::<RunDetails>),
    ("list sectors", schema_of::<OfferedSectors>),
    ("list tickers", schema_of::<OfferedTickers>),
    ("report", schema_of::<DatasetSummary>),
    ("run", schema_of::<Summary>),
    ("status", whole_schema_of::<StatusDocument>),
    ("store pull", schema_of::<TransferCounts>),
    ("store push", schema_of::<TransferCounts>),
    ("verify", schema_of::<Verified>),
    ("verify --store", schema_of::<StoreVerified>),
];

/// Print the JSON Schema of definitions, or of a command's output.
#[derive(Debug, clap::Args)]
pub(super) struct Schema {
    /// The command: its schema is that of its `--json`.
    #[arg(
        long = "for",
        value_name = "COMMAND",
        value_parser = clap::builder::PossibleValuesParser::new(SCHEMAS.iter().map(|(command, _)| *command))
    )]
    command: Option<String>,
}

impl Schema {
    pub(super) fn execute(self, _: &Project) -> Result<()> {
        let of_command = SCHEMAS.iter().find(|(command, _)| self.command.as_deref() == Some(command));
        let schema = of_command.map_or_else(json_schema, |(_, schema)| schema());
        say(&format!("{:#}\n", schema.as_value()))
    }
}

/// The JSON Schema of a document.
fn schema_of<T: JsonSchema>() -> schemars::Schema {
    whole_schema_of::<Document<T>>()
}

/// The JSON Schema of a versioned document.
fn whole_schema_of<T: JsonSchema>() -> schemars::Schema {
    SchemaGenerator::default().into_root_schema_for::<T>()
}
