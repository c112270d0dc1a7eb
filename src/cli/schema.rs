//! `bellwether schema`: the JSON Schema of a definition.

use super::outcome::Result;
use super::say;
use crate::definition::Definition;

/// Print the JSON Schema of a definition, for editors.
#[derive(Debug, clap::Args)]
pub(super) struct Schema {}

impl Schema {
    pub(super) fn execute(self) -> Result<()> {
        say(&format!("{:#}\n", Definition::json_schema().as_value()))
    }
}
