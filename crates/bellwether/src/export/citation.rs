//! The citation of a version: which data it is, whose, as of when, and the command that builds it again.
//!
//! Everything comes from the version's own record, so any version that is kept can be cited, on any machine and without a
//! network.

use schemars::JsonSchema;
use serde::Serialize;

use super::record::VersionRecord;
use crate::definition::changed_keys;
use crate::text::escape::{escape, shell};
use crate::text::human::count_of;
use crate::time::to_record;

/// The citation of a version: `bellwether cite --json` prints it.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct Citation {
    /// The dataset.
    name: String,
    dataset_version: String,
    /// The description of its definition.
    description: Option<String>,
    /// The license that its definition states.
    license: Option<String>,
    /// The service whose data it holds.
    service: String,
    /// Observations after this instant are ignored.
    as_of: String,
    rows: u64,
    /// The BLAKE3 of its content.
    content: String,
    /// The release of the program that built it.
    bellwether: String,
    /// The command that builds it again.
    command: String,
    /// What the command needs besides the archive.
    pub notes: Vec<String>,
}

impl Citation {
    /// The citation of the version that a record describes.
    pub fn new(record: VersionRecord) -> Self {
        let VersionRecord { name, description, license, rows, content, bellwether, ad_hoc, .. } = record;
        let (dataset_version, as_of, options) = (record.version, to_record(record.as_of), ad_hoc.unwrap_or_default());
        let alike = "the command gives the same rows only with the same definition, runs and claims";
        let (state, note) = match (record.rebuilt_as_of, options.get("as-of")) {
            (Some(run), _) => (run, None),
            // What an ad hoc build read was sealed by its instant.
            (None, given) if !options.is_empty() => (given.map_or(as_of.clone(), |at| at.concat()), Some(alike)),
            (None, _) => (dataset_version.clone(), Some("the command works only where this version is kept")),
        };
        let mut notes = Vec::from_iter(note.map(str::to_owned));
        let mut command = format!("bellwether build {name} --as-of {}", shell(&state));
        for (option, values) in options.iter().filter(|(option, _)| *option != "as-of") {
            values.iter().for_each(|value| command += &format!(" --{option} {}", shell(value)));
        }
        for key in changed_keys("", &record.definition) {
            if let ("calendar.sessions" | "identity.file", Some(file)) = (key.key.as_str(), key.after) {
                notes.push(format!("the command needs {file} of `{}` as it was then: no version keeps it", key.key));
            }
        }
        let service = record.service.name;
        Self { name, dataset_version, description, license, service, as_of, rows, content, bellwether, command, notes }
    }

    /// It, for a footnote.
    pub fn text(&self) -> String {
        let Self { name, dataset_version, service, as_of, content, bellwether, command, .. } = self;
        let description = self.description.iter().map(|text| format!(" ({})", escape(text))).collect::<String>();
        let license = self.license.iter().map(|text| format!(" License: {}.", escape(text))).collect::<String>();
        format!(
            "Dataset {name}{description}, version {dataset_version}: {} of service {service}, as of {as_of}.{license}\n\
             BLAKE3 of the content: {content}\nTo build it again with bellwether {bellwether}: {command}\n",
            count_of(self.rows, "row", "rows")
        )
    }
}
