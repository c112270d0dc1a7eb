//! The seal of a sealed folder, which describes it and every file in it; and which seals count.

use std::collections::BTreeSet;
use std::fs;
use std::io::Read;
use std::path::Path;
use std::sync::Arc;

use arrow::array::{AsArray, BooleanArray, RecordBatch};
use arrow::compute::filter_record_batch;
use arrow::datatypes::TimestampMicrosecondType;
use arrow::error::ArrowError;
use chrono::{DateTime, Utc};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::disk::file::{self, FileError, FileRecord};
use crate::disk::names::{RUN_FILES, is_dataset, is_unique};
use crate::disk::{digest, links};
use crate::error::{Reason, Result};
use crate::interface::Endpoint;
use crate::plan::ServiceIdentity;
use crate::tables::{Drift, Table};
use crate::time::as_record;

/// Version of the layout; readers refuse all others.
pub(crate) const LAYOUT: u32 = 10;

/// Name of the seal's file.
pub(crate) const SEAL: &str = "run.json";

/// The largest seal that is read. A pack of ten years of daily runs takes a tenth of it.
const MAX_BYTES: u64 = 64 << 20;

/// Placeholder for the seal's own digest while it is computed.
pub(in crate::archive) const NO_DIGEST: &str = "0000000000000000000000000000000000000000000000000000000000000000";

/// The contents of `run.json`, for a run, for a pack of several runs, or for a merge of their histories.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Seal {
    /// Version of the layout.
    pub layout: u32,
    /// Name of the run, pack or merge.
    pub run: String,
    /// The service that answered.
    pub service: ServiceIdentity,
    /// Version of the program that wrote it.
    pub bellwether: String,
    /// The definition that was run; `None` for a pack or a merge.
    pub definition: Option<DefinitionRecord>,
    /// When the run, or the first member of the pack, started.
    #[serde(with = "as_record")]
    pub started_at: DateTime<Utc>,
    /// When the run, or the last member of the pack, was sealed.
    #[serde(with = "as_record")]
    pub sealed_at: DateTime<Utc>,
    /// The runs that were known when the run was settled: those that no other of them had known.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub basis: Vec<Parent>,
    /// Runs that were gone by then, and that the run was told to go on without.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub lost: Vec<String>,
    /// The operations that answered.
    pub operations: Vec<Endpoint>,
    /// What the run, or all members of the pack, changed.
    pub changes: Counts,
    /// Unknown fields of the answers.
    pub drift: Vec<Drift>,
    /// Every file of the folder.
    pub files: Vec<FileRecord>,
    /// The seals of a pack's members, in the order in which they were sealed; empty for a run.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub members: Vec<Self>,
    /// The runs whose histories a merge joins, in the order in which they were sealed; empty for a run.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub joins: Vec<Joined>,
    /// What the run was imported from, if it is a claim.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub claimed: Option<Claim>,
    /// Why it was sealed before all requests were answered, if it was.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub in_part: Option<String>,
    /// The BLAKE3 of the seal's text, with 64 zeros in place of this value.
    pub seal: String,
}

/// A run that another one knew.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Parent {
    /// Its name.
    pub run: String,
    /// The digest of its seal.
    pub seal: String,
}

/// A run whose history is merged with others.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Joined {
    /// Its name.
    pub run: String,
    /// When it was sealed.
    #[serde(with = "as_record")]
    pub sealed_at: DateTime<Utc>,
}

/// What a run was imported from that nobody witnessed: its instants are what somebody says.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Claim {
    /// When it was imported.
    #[serde(with = "as_record")]
    pub imported_at: DateTime<Utc>,
    /// The files, in the order of their requests.
    pub files: Vec<ClaimedFile>,
}

/// A file that a run was imported from.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ClaimedFile {
    /// Its name, without its folder.
    pub name: String,
    /// The request whose answer it is taken for.
    pub request: String,
    /// Its size.
    pub bytes: u64,
    /// The BLAKE3 of its bytes.
    pub blake3: String,
}

/// The definition of a run.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct DefinitionRecord {
    /// Its name.
    pub name: String,
    /// The BLAKE3 of its text.
    pub digest: String,
    /// Its text, unless a run that was known then has the same one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub text: Option<String>,
}

/// Changed cells of all tables, and listed and delisted series.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Counts {
    /// New cells.
    pub added: u64,
    /// Cells whose values changed.
    pub revised: u64,
    /// Cells no longer listed.
    pub withdrawn: u64,
    /// Series that an answer listed for the first time, or again.
    pub listed: u64,
    /// Series that an answer to the same request no longer listed.
    pub delisted: u64,
}

/// The fields that every layout has.
#[derive(Deserialize)]
struct SealHead {
    #[serde(default)]
    layout: serde_json::Value,
    #[serde(default)]
    bellwether: serde_json::Value,
}

impl std::ops::AddAssign for Counts {
    fn add_assign(&mut self, other: Self) {
        self.added += other.added;
        self.revised += other.revised;
        self.withdrawn += other.withdrawn;
        self.listed += other.listed;
        self.delisted += other.delisted;
    }
}

impl Seal {
    /// The seal of a folder that is written now, with nothing in it so far.
    pub(in crate::archive) fn new(run: String, service: ServiceIdentity) -> Self {
        Self { layout: LAYOUT, run, service, bellwether: env!("CARGO_PKG_VERSION").to_owned(), ..Self::default() }
    }

    /// Whether the folder is a pack.
    pub fn is_pack(&self) -> bool {
        !self.members.is_empty()
    }

    /// Whether the folder merges the histories of several runs.
    pub fn is_merge(&self) -> bool {
        !self.joins.is_empty()
    }

    /// Whether it is a merge that joins every run of another one, and more.
    pub(in crate::archive) fn replaces(&self, other: &Self) -> bool {
        let is_joined = |run: &Joined| self.joins.iter().any(|own| own.run == run.run);
        other.is_merge() && other.joins.len() < self.joins.len() && other.joins.iter().all(is_joined)
    }

    /// What the folder stands for: the members of a pack, or the run or merge itself.
    pub(crate) fn parts(&self) -> &[Self] {
        if self.is_pack() { &self.members } else { std::slice::from_ref(self) }
    }

    /// The runs in the folder: those of a pack, or the run itself; none for a merge.
    pub(crate) fn runs(&self) -> impl DoubleEndedIterator<Item = &Self> + Clone {
        self.parts().iter().filter(|part| !part.is_merge())
    }

    /// When the first and the last of the runs were sealed that the folder's rows count from.
    pub(in crate::archive) fn seal_times(&self) -> (DateTime<Utc>, DateTime<Utc>) {
        let of_members = self.members.iter().map(|member| member.seal_times().0).min();
        let first = of_members.or(self.joins.first().map(|first| first.sealed_at));
        (first.unwrap_or(self.sealed_at), self.sealed_at)
    }

    /// Name of the folder.
    pub(crate) fn folder_name(&self) -> String {
        let kind = match (self.is_pack(), self.is_merge()) {
            (true, _) => "pack",
            (false, true) => "merge",
            (false, false) => "run",
        };
        format!("{kind}={}", self.run)
    }

    /// It, as another run knows it.
    pub(in crate::archive) fn parent(&self) -> Parent {
        Parent { run: self.run.clone(), seal: self.seal.clone() }
    }

    /// The record of one of its files.
    pub fn file(&self, name: &str) -> Option<&FileRecord> {
        self.files.iter().find(|file| file.name == name)
    }

    /// Rows of one of its files; zero if there is no such file.
    pub fn rows(&self, name: &str) -> u64 {
        self.file(name).map_or(0, |file| file.rows)
    }

    /// Size of all its files.
    pub fn bytes(&self) -> u64 {
        self.files.iter().map(|file| file.bytes).sum()
    }

    /// Number of observations in all its tables.
    pub(in crate::archive) fn observations(&self) -> u64 {
        Table::ALL.iter().map(|table| self.rows(&table.file())).sum()
    }

    /// Seals a folder: writes the seal with its digest, once the files it names are durable.
    pub(in crate::archive) fn write(&mut self, folder: &Path) -> Result<()> {
        file::sync_all(&self.files.iter().map(|file| folder.join(&file.name)).collect::<Vec<_>>())?;
        self.seal = self.digest();
        file::write_bytes(&folder.join(SEAL), self.text().as_bytes())
    }

    /// Its text, as it is written.
    pub(crate) fn text(&self) -> String {
        serde_json::to_string_pretty(self).expect("a seal is text and numbers")
    }

    /// The digest of the seal's text.
    fn digest(&self) -> String {
        // It is the last value of the text, and members have their own.
        let mut text = self.text();
        if let Some(start) = text.rfind(&format!("\"{}\"", self.seal)) {
            text.replace_range(start + 1..=start + self.seal.len(), NO_DIGEST);
        }
        digest::of(text.as_bytes())
    }

    /// Reads the seal of a folder and checks that it is consistent.
    pub(in crate::archive) fn read(folder: &Path) -> Result<Self> {
        Self::of(read_bounded(&folder.join(SEAL))?.as_bytes(), folder)
    }

    /// Parses the seal of a folder, wherever that is, and checks that it is consistent.
    pub(crate) fn of(text: &[u8], folder: &Path) -> Result<Self> {
        let path = folder.join(SEAL);
        let damaged = |source: Reason| FileError::damage(&path, source);
        // Another layout may have another seal, so only its version can be relied on.
        let head: SealHead = serde_json::from_slice(text).map_err(|error| damaged(error.into()))?;
        match head.layout.as_u64() {
            Some(layout) if layout == u64::from(LAYOUT) => {}
            Some(layout) => {
                return Err(FileError::layout(folder, layout, LAYOUT, head.bellwether.as_str()));
            }
            None => return Err(damaged("it has no `layout`".into())),
        }
        let seal: Self = serde_json::from_slice(text).map_err(|error| damaged(error.into()))?;
        seal.check().map_err(damaged)?;
        if folder.file_name().is_none_or(|name| name != seal.folder_name().as_str()) {
            return Err(damaged(format!("it belongs to `{}`", seal.folder_name()).into()));
        }
        Ok(seal)
    }

    /// Checks a seal as far as possible without reading files.
    fn check(&self) -> Result<(), Reason> {
        let digest = self.digest();
        if digest != self.seal {
            return Err(format!("its BLAKE3 checksum is {digest}, expected {}", self.seal).into());
        }
        if !is_unique(&self.run) {
            return Err(format!("`{}` is not the name of a run", self.run).into());
        }
        if self.definition.as_ref().is_some_and(|definition| !is_dataset(&definition.name)) {
            return Err("the name of its definition is not one that a definition can have".into());
        }
        let names: BTreeSet<&str> = self.files.iter().map(|file| file.name.as_str()).collect();
        if names.len() != self.files.len() || names != RUN_FILES.into_iter().filter(|name| *name != SEAL).collect() {
            return Err("it does not list the files of its layout".into());
        }
        if self.is_pack() && self.is_merge() {
            return Err("it is both a pack and a merge".into());
        }
        if !self.joins.is_sorted_by(|one, next| (one.sealed_at, &one.run) < (next.sealed_at, &next.run)) {
            return Err("the runs that it joins are not sorted by when they were sealed".into());
        }
        if self.is_pack() { self.check_members() } else { Ok(()) }
    }

    /// Checks that a pack has the rows of its members, each once and in order.
    fn check_members(&self) -> Result<(), Reason> {
        for member in &self.members {
            if member.is_pack() {
                return Err(format!("its member `{}` is a pack", member.run).into());
            }
            if member.layout != self.layout {
                return Err(format!("its member `{}` has layout {}", member.run, member.layout).into());
            }
            if member.service.name != self.service.name {
                return Err(format!("its member `{}` is of service `{}`", member.run, member.service.name).into());
            }
            member.check().map_err(|reason| format!("member `{}`: {reason}", member.run))?;
        }
        let in_order = |one: &Self, next: &Self| (one.sealed_at, &one.run) < (next.sealed_at, &next.run);
        if !self.members.is_sorted_by(in_order) {
            return Err("its members are not sorted by when they were sealed".into());
        }
        for file in &self.files {
            let rows: u64 = self.members.iter().map(|member| member.rows(&file.name)).sum();
            if rows != file.rows {
                return Err(format!("`{}` has {} rows, but its members have {rows}", file.name, file.rows).into());
            }
        }
        let span = |seal: &Self| (seal.started_at, seal.sealed_at);
        let started_at = self.members.iter().map(|member| member.started_at).min();
        let sealed_at = self.members.last().map(|member| member.sealed_at);
        if (started_at, sealed_at) != (Some(span(self).0), Some(span(self).1)) {
            return Err("it does not span its members".into());
        }
        Ok(())
    }
}

/// The text of a seal, which must be a regular file of bounded size.
pub(in crate::archive) fn read_bounded(path: &Path) -> Result<String> {
    let failed = FileError::read(path);
    let found = fs::symlink_metadata(path).map_err(failed)?;
    if !found.is_file() {
        return Err(FileError::damage(path, "it is not a regular file"));
    }
    let mut text = String::new();
    links::open(path)?.take(MAX_BYTES + 1).read_to_string(&mut text).map_err(failed)?;
    if text.len() as u64 > MAX_BYTES {
        return Err(FileError::damage(path, "it is larger than 64 MiB"));
    }
    Ok(text)
}

/// Owner and start of a run: the contents of `unfinished.json`.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(in crate::archive) struct RunOrigin {
    pub(in crate::archive) layout: u32,
    pub(in crate::archive) run: String,
    pub(in crate::archive) definition: String,
    pub(in crate::archive) definition_digest: String,
    /// The definition's text; none in a run that an older version of the program began.
    #[serde(default)]
    pub(in crate::archive) definition_text: Option<String>,
    /// The service that is asked.
    pub(in crate::archive) service: ServiceIdentity,
    #[serde(with = "as_record")]
    pub(in crate::archive) started_at: DateTime<Utc>,
    /// The number of answers that runs sealed in part have already.
    #[serde(default)]
    pub(in crate::archive) sealed_answers: usize,
}

/// The runs that count.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Horizon {
    as_of: DateTime<Utc>,
    /// When runs were sealed that do not count although they were sealed by then.
    without: Arc<BTreeSet<i64>>,
}

impl Horizon {
    /// The runs sealed by an instant.
    pub(in crate::archive) fn at(as_of: DateTime<Utc>) -> Self {
        Self { as_of, without: Arc::default() }
    }

    /// The same, without runs sealed at some instants.
    pub(in crate::archive) fn without(self, sealed: BTreeSet<i64>) -> Self {
        Self { without: Arc::new(self.without.iter().copied().chain(sealed).collect()), ..self }
    }

    /// When runs were sealed that do not count although they were sealed by then, in microseconds since 1970.
    pub(crate) fn left_out(&self) -> impl Iterator<Item = i64> {
        self.without.iter().copied()
    }

    /// The instant.
    pub(in crate::archive) fn as_of(&self) -> DateTime<Utc> {
        self.as_of
    }

    /// Whether a run counts that was sealed at an instant.
    pub(in crate::archive) fn holds(&self, sealed_at: DateTime<Utc>) -> bool {
        sealed_at <= self.as_of && !self.without.contains(&sealed_at.timestamp_micros())
    }

    /// How many rows of a folder count.
    pub(in crate::archive) fn share(&self, seal: &Seal) -> CountedShare {
        let (first, last) = seal.seal_times();
        let is_without = || self.without.range(first.timestamp_micros()..=last.timestamp_micros()).next().is_some();
        match (first > self.as_of, last > self.as_of || is_without()) {
            (true, _) => CountedShare::None,
            (false, false) => CountedShare::All,
            (false, true) if first == last => CountedShare::None,
            (false, true) => CountedShare::Some,
        }
    }

    /// The rows that count, without the column that says so.
    pub(in crate::archive) fn rows(&self, rows: &RecordBatch) -> Result<RecordBatch, ArrowError> {
        let last = rows.num_columns() - 1;
        let sealed = rows.column(last).as_primitive::<TimestampMicrosecondType>();
        let as_of = self.as_of.timestamp_micros();
        let holds = |sealed: &i64| *sealed <= as_of && !self.without.contains(sealed);
        let kept: BooleanArray = sealed.values().iter().map(|sealed| Some(holds(sealed))).collect();
        filter_record_batch(&rows.project(&Vec::from_iter(0..last))?, &kept)
    }
}

/// How many of a folder's rows count.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::archive) enum CountedShare {
    None,
    Some,
    All,
}
