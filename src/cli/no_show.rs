//! `bellwether show` in a build without Polars: says where to find it.

use std::ffi::OsString;

use bellwether::error::Error;
use bellwether::project::Project;

use super::outcome::Result;

/// Print rows of a published dataset. Not in this build.
#[derive(Debug, clap::Args)]
pub(super) struct Show {
    #[arg(value_name = "DATASET", trailing_var_arg = true, allow_hyphen_values = true)]
    _arguments: Vec<OsString>,
}

impl Show {
    pub(super) fn execute(self, _project: &Project) -> Result<()> {
        let hint = "in Python, `bellwether.load(\"NAME\").to_polars()`; for `show`, `cargo install --locked --path .`";
        Err(Error::usage("this build has no `show`: it was built without Polars", hint).into())
    }
}
