//! The citation of a version: which data it is, whose, as of when, and how to have it again.
//!
//! Everything in it comes from the version's own record, so any version that is kept can be cited, on any machine and
//! without a network. Croissant alone wants SHA-256 digests, which the record does not have: the files are read for them,
//! and have to be those of the record.

mod bibtex;
mod croissant;
mod datacite;

use std::path::{Path, PathBuf};

use super::published::version_of;
use super::record::{VersionRecord, VersionShape};
use crate::definition::changed_keys;
use crate::error::Result;
use crate::text::escape::shell;
use crate::text::human::count_of;
use crate::time::to_record;

/// The form of a citation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CitationFormat {
    /// An entry of a bibliography.
    Bibtex,
    /// DataCite's metadata, as JSON.
    Datacite,
    /// Croissant's description, as JSON-LD.
    Croissant,
}

impl CitationFormat {
    /// Every form.
    pub const ALL: [Self; 3] = [Self::Bibtex, Self::Datacite, Self::Croissant];

    /// Its name.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Bibtex => "bibtex",
            Self::Datacite => "datacite",
            Self::Croissant => "croissant",
        }
    }
}

impl std::str::FromStr for CitationFormat {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let found = Self::ALL.into_iter().find(|format| format.as_str() == text);
        found.ok_or_else(|| format!("`{text}` is not the form of a citation"))
    }
}

/// The keys of files that rows depend on.
const FILES: [&str; 2] = ["calendar.sessions", "identity.file"];

/// A version to cite.
#[derive(Clone, Debug)]
pub struct Citation {
    folder: PathBuf,
    record: VersionRecord,
}

impl Citation {
    /// Of a version: `NAME` for the latest, `NAME/VERSION`, `NAME/builds/VERSION`, or the path of its folder.
    ///
    /// # Errors
    ///
    /// If there is none, or if its record cannot be read or has another layout.
    pub fn find(datasets: &Path, given: &str) -> Result<Self> {
        let (folder, record) = version_of(datasets, Some(given))?;
        Ok(Self { folder, record })
    }

    /// The record of the version.
    pub fn record(&self) -> &VersionRecord {
        &self.record
    }

    /// It, in a form, with the end of the last line.
    ///
    /// # Errors
    ///
    /// If a file cannot be read or is not that of the record, for a form with the digests of files.
    pub fn text(&self, format: CitationFormat) -> Result<String> {
        let as_json = |document: serde_json::Value| format!("{document:#}\n");
        match format {
            CitationFormat::Bibtex => Ok(self.bibtex()),
            CitationFormat::Datacite => Ok(as_json(self.datacite())),
            CitationFormat::Croissant => self.croissant().map(as_json),
        }
    }

    /// Notes on what the form asks for and the version does not say.
    pub fn notes(&self, format: CitationFormat) -> Vec<String> {
        let mut notes = Vec::new();
        if format == CitationFormat::Croissant && self.record.license.is_none() {
            notes.push(
                "Croissant requires a license, and the definition states none: add `license` to `[dataset]`".to_owned(),
            );
        }
        notes.extend(match (&self.record.rebuilt_as_of, &self.record.ad_hoc) {
            (Some(_), _) => None,
            (None, None) => Some(
                "the command works where this version is kept: its runs are not the past of one run of its definition",
            ),
            (None, Some(options)) if options.contains_key("include") => Some(
                "the command gives the same rows with the same definition, where the archive has the same runs of that time, and \
                 the same claims",
            ),
            (None, Some(_)) => Some(
                "the command gives the same rows with the same definition, where the archive has the same runs of that time",
            ),
        }.map(str::to_owned));
        let keys = changed_keys("", &self.record.definition);
        let files: Vec<String> = keys
            .into_iter()
            .filter(|key| FILES.contains(&key.key.as_str()))
            .filter_map(|key| Some(format!("{} of `{}`", key.after?, key.key)))
            .collect();
        if !files.is_empty() {
            notes.push(format!(
                "the version does not keep {}: the command gives the same rows where they are the same",
                files.join(", and ")
            ));
        }
        notes
    }

    /// The command that gives the same files again.
    fn rebuild(&self) -> String {
        let VersionRecord { name, version, ad_hoc, as_of, rebuilt_as_of, .. } = &self.record;
        let state = match (rebuilt_as_of, ad_hoc) {
            (Some(run), _) => run.clone(),
            (None, None) => version.clone(),
            // What such a build read was sealed by then.
            (None, Some(options)) => match options.get("as-of") {
                Some(given) => given.concat(),
                None => to_record(*as_of),
            },
        };
        let mut words = vec!["bellwether build".to_owned(), name.clone(), format!("--as-of {}", shell(&state))];
        for (option, values) in ad_hoc.iter().flatten().filter(|(option, _)| *option != "as-of") {
            words.extend(values.iter().map(|value| format!("--{option} {}", shell(value))));
        }
        words.join(" ")
    }

    /// The service whose data it is.
    fn service(&self) -> &str {
        self.record.service.as_ref().map_or("unknown", |service| service.name.as_str())
    }

    /// What it is, in a sentence.
    fn title(&self) -> String {
        match &self.record.description {
            Some(description) => format!("{}: {description}", self.record.name),
            None => format!("{}: data of the service {}", self.record.name, self.service()),
        }
    }

    /// How many rows it has.
    fn rows(&self) -> String {
        match self.record.shape {
            VersionShape::Long => count_of(self.record.rows, "row", "rows"),
            VersionShape::Wide => format!("{} in matrices", count_of(self.record.rows, "row", "rows")),
        }
    }

    /// Its instant, its digest, and how to have it again.
    fn facts(&self) -> [String; 3] {
        let VersionRecord { as_of, content, bellwether, .. } = &self.record;
        [
            format!("As of {}", to_record(*as_of)),
            format!("BLAKE3 of the content: {content}"),
            format!("To build it again from the archive, with bellwether {bellwether}: {}", self.rebuild()),
        ]
    }
}
