//! `bellwether schema`: JSON Schemas of definitions, and of what commands tell.

use super::documents::SCHEMAS;
use super::outcome::Result;
use super::say;
use crate::definition::Definition;

/// Print the JSON Schema of definitions, or of what a command prints with `--json`.
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
    pub(super) fn execute(self) -> Result<()> {
        let of_command = SCHEMAS.iter().find(|(command, _)| self.command.as_deref() == Some(command));
        let schema = of_command.map_or_else(Definition::json_schema, |(_, schema)| schema());
        say(&format!("{:#}\n", schema.as_value()))
    }
}
