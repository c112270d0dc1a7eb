//! Notes that a run is forgotten: from then on, no reader counts it.
//!
//! A sealed run never changes, so a bad one is taken back by a note beside it, `forgotten=RUN/run.json`, which is sealed,
//! sent and fetched like a run. The run itself stays, on every machine and in packs, and so can be examined. What other
//! runs stored is the difference from it, so those that are based on a forgotten run are forgotten with it, whenever
//! they arrive.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::{fmt, fs};

use chrono::{DateTime, Utc};
use serde::{Deserialize, Serialize};

use super::sealed::seal::{NO_DIGEST, SEAL, Seal, read_bounded};
use crate::disk::digest;
use crate::disk::file::{self, Damaged, FileError};
use crate::disk::names::{FORGOTTEN_FOLDER, fits, is_unique};
use crate::error::{Reason, Result};
use crate::time::{as_record, to_record};

/// Version of the note's layout.
const LAYOUT: u32 = 1;

/// The longest reason, in characters.
const MOST_CHARACTERS: usize = 1000;

/// The note that a run is forgotten: the contents of `forgotten=RUN/run.json`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Forgetting {
    layout: u32,
    /// The run.
    pub run: String,
    /// The digest of its seal.
    pub run_seal: String,
    /// When the run was sealed, which its rows in packs have.
    #[serde(with = "as_record")]
    pub sealed_at: DateTime<Utc>,
    /// The name of its service.
    pub service: String,
    /// Why it is forgotten.
    pub reason: String,
    /// Since when.
    #[serde(with = "as_record")]
    pub forgotten_at: DateTime<Utc>,
    /// Version of the program that wrote the note.
    bellwether: String,
    /// The BLAKE3 of the note's text, with 64 zeros in place of this value.
    seal: String,
}

/// A run that does not count.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ForgottenRun {
    /// Its name.
    pub run: String,
    /// When it was sealed; none if it is not in the archive.
    pub sealed_at: Option<DateTime<Utc>>,
    /// Why.
    pub cause: ForgottenCause,
}

/// Why a run does not count.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ForgottenCause {
    /// A note says so.
    Noted(Forgetting),
    /// It is based on this run, which is forgotten.
    BasedOn(String),
    /// It is a claim of an instant when the service was watched already, since then.
    Witnessed(DateTime<Utc>),
}

impl fmt::Display for ForgottenRun {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.cause {
            ForgottenCause::Noted(note) => {
                let (run, at, reason) = (&self.run, to_record(note.forgotten_at), &note.reason);
                write!(formatter, "run `{run}` is left out, forgotten at {at}: {reason}")
            }
            ForgottenCause::BasedOn(run) => {
                write!(formatter, "run `{}` is left out: it is based on `{run}`, which is forgotten", self.run)
            }
            ForgottenCause::Witnessed(since) => {
                let since = to_record(*since);
                write!(
                    formatter,
                    "run `{}` is left out: it is a claim, and the service was watched since {since}",
                    self.run
                )
            }
        }
    }
}

impl Forgetting {
    pub(super) fn new(seal: &Seal, reason: &str, now: DateTime<Utc>) -> Self {
        let mut note = Self {
            layout: LAYOUT,
            run: seal.run.clone(),
            run_seal: seal.seal.clone(),
            sealed_at: seal.sealed_at,
            service: seal.service.name.clone(),
            reason: reason.to_owned(),
            forgotten_at: now,
            bellwether: env!("CARGO_PKG_VERSION").to_owned(),
            seal: NO_DIGEST.to_owned(),
        };
        note.seal = digest::of(note.text().as_bytes());
        note
    }

    /// Parses the note in a folder, wherever that is, and checks that it is consistent.
    pub(crate) fn parse(text: &[u8], folder: &Path) -> Result<Self> {
        let path = folder.join(SEAL);
        let damaged = |source: Reason| FileError::damage(&path, source);
        let note: Self = serde_json::from_slice(text).map_err(|error| damaged(error.into()))?;
        let unsealed = Self { seal: NO_DIGEST.to_owned(), ..note.clone() };
        let found = digest::of(unsealed.text().as_bytes());
        if found != note.seal {
            return Err(damaged(format!("its BLAKE3 checksum is {found}, expected {}", note.seal).into()));
        }
        if note.layout != LAYOUT {
            let layout = u64::from(note.layout);
            return Err(FileError::layout(&path, layout, LAYOUT, Some(&note.bellwether)));
        }
        let is_own = folder.file_name().is_some_and(|name| name == note.folder_name().as_str());
        if !is_unique(&note.run) || !is_own || check_reason(&note.reason).is_err() {
            return Err(damaged("it is not a note of this run".into()));
        }
        Ok(note)
    }

    /// The name of its folder.
    pub(crate) fn folder_name(&self) -> String {
        format!("forgotten={}", self.run)
    }

    /// Its text, as it is written.
    pub(crate) fn text(&self) -> String {
        serde_json::to_string_pretty(self).expect("a note is text and numbers")
    }

    /// Reads the note in a folder.
    pub(crate) fn read(folder: &Path) -> Result<Self> {
        if !fs::symlink_metadata(folder).map_err(FileError::read(folder))?.is_dir() {
            return Err(FileError::damage(folder, "it is not a folder"));
        }
        Self::parse(read_bounded(&folder.join(SEAL))?.as_bytes(), folder)
    }

    /// The folders of damaged notes in an archive, and what is wrong with each.
    pub(crate) fn damaged(archive: &Path) -> Result<Vec<Damaged>> {
        let mut damaged = Vec::new();
        for path in folders_of_notes(archive)? {
            match Self::read(&path) {
                Ok(_) => {}
                Err(error) if FileError::is_missing(&error) || FileError::is_damage(&error) => {
                    damaged.push((path.clone(), file::fault_of(&path.join(SEAL), &error)));
                }
                Err(error) => return Err(error),
            }
        }
        Ok(damaged)
    }
}

/// Refuses a reason that nobody could read.
fn check_reason(reason: &str) -> Result<(), String> {
    match reason.chars().count() {
        _ if reason.trim().is_empty() => Err("say why: the reason is shown wherever the run is left out".to_owned()),
        _ if reason.chars().any(char::is_control) => Err("use one line without control characters".to_owned()),
        count if count > MOST_CHARACTERS => Err(format!("use at most {MOST_CHARACTERS} characters")),
        _ => Ok(()),
    }
}

/// A reason to forget a run.
#[derive(Clone, Debug)]
pub struct ForgetReason(pub(super) String);

impl std::str::FromStr for ForgetReason {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        check_reason(text).map(|()| Self(text.trim().to_owned()))
    }
}

/// The notes in an archive, by run.
pub(super) fn notes(archive: &Path) -> Result<BTreeMap<String, Forgetting>> {
    let notes = folders_of_notes(archive)?.into_iter().map(|path| Forgetting::read(&path));
    notes.map(|note| note.map(|note| (note.run.clone(), note))).collect()
}

/// The folders of notes in an archive.
fn folders_of_notes(archive: &Path) -> Result<Vec<PathBuf>> {
    let is_note = |path: &PathBuf| {
        path.file_name().and_then(|name| name.to_str()).is_some_and(|name| fits(name, FORGOTTEN_FOLDER))
    };
    let mut folders: Vec<PathBuf> = file::entries(archive)?.into_iter().filter(is_note).collect();
    folders.sort();
    Ok(folders)
}

/// The runs that do not count, by name: those of the notes, claims of instants since when the service was watched, and of
/// some runs those that are based on them.
pub(super) fn forgotten_runs<'s>(
    notes: BTreeMap<String, Forgetting>,
    late: BTreeMap<String, DateTime<Utc>>,
    runs: impl Iterator<Item = &'s Seal> + Clone,
) -> BTreeMap<String, ForgottenRun> {
    let mut forgotten: BTreeMap<String, ForgottenRun> = BTreeMap::new();
    let late = late.into_iter().map(|(run, since)| (run, ForgottenCause::Witnessed(since)));
    for (run, cause) in late.chain(notes.into_iter().map(|(run, note)| (run, ForgottenCause::Noted(note)))) {
        let sealed_at = runs.clone().find(|seal| seal.run == run).map(|seal| seal.sealed_at);
        forgotten.insert(run.clone(), ForgottenRun { run, sealed_at, cause });
    }
    if forgotten.is_empty() {
        return forgotten;
    }
    // Clocks of machines differ, so a run may come before one that it is based on.
    loop {
        let is_forgotten = |run: &str| forgotten.contains_key(run);
        let more: Vec<ForgottenRun> = runs
            .clone()
            .filter(|seal| !is_forgotten(&seal.run))
            .filter_map(|seal| {
                let parent = seal.basis.iter().find(|parent| is_forgotten(&parent.run))?;
                let cause = ForgottenCause::BasedOn(parent.run.clone());
                Some(ForgottenRun { run: seal.run.clone(), sealed_at: Some(seal.sealed_at), cause })
            })
            .collect();
        if more.is_empty() {
            return forgotten;
        }
        forgotten.extend(more.into_iter().map(|run| (run.run.clone(), run)));
    }
}
