//! A version out of the one before it, where nothing has changed that either is made of.
//!
//! What a dataset holds follows from its definition and from the files of the archive that its view is drawn from; the
//! digest of both is its *basis*. Where the latest version has the same, its files are what building it anew would write,
//! byte for byte, but for what Parquet says of the runs and the instant. So a Parquet file is copied, with that told
//! anew, and any other file is linked: it has two names then and takes its room once. Each is read through before: what is
//! not as its record says is not taken over, and the dataset is built.

use std::fs::{self, File};
use std::path::{Component, Path, PathBuf};

use parquet::file::metadata::KeyValue;
use rayon::prelude::*;
use serde::Deserialize;

use super::link::{self, LATEST};
use super::parquet::labels;
use super::publication::Provenance;
use super::published;
use super::record::{ColumnRecord, FACTS, LAYOUT, RECORD, Record, Written, metadata};
use super::staged::Staged;
use super::table::{Finished, settled};
use crate::digest;
use crate::encode::relabel;
use crate::error::{Error, Result};
use crate::file::{self, Described, FileRecord, Staging};
use crate::plan::Plan;
use crate::time::free_name;
use crate::trace::work;

/// The latest version of a dataset, where it was made of what the next one shall be made of.
pub struct Latest {
    folder: PathBuf,
    before: PathBuf,
    known: Known,
    facts: Vec<u8>,
}

/// What came of a version that was to be taken over.
pub enum Takeover {
    /// A file of it is not as it was written.
    Damaged(PathBuf),
    /// A version was made out of it.
    Taken(Taken),
}

/// A version that took over the files of another one.
pub struct Taken {
    /// The version.
    pub staged: Staged,
    /// The name of the one before.
    pub from: String,
    /// Its rows; of a wide dataset those of all its matrices.
    pub rows: u64,
}

/// What the record of the latest version says, as far as it is needed.
#[derive(Deserialize)]
struct Known {
    layout: u32,
    version: String,
    basis: String,
    columns: Vec<ColumnRecord>,
    rows: u64,
    content: String,
    files: Vec<FileRecord>,
    facts: String,
}

impl Latest {
    /// The latest version of a dataset below a folder of datasets; none where there is none of this basis.
    ///
    /// # Errors
    ///
    /// When something stands where a version or `latest` would.
    pub fn of_basis(datasets: &Path, plan: &Plan, basis: &str) -> Result<Option<Self>> {
        let folder = datasets.join(&plan.name);
        link::check(&folder)?;
        // The folder itself, and not the link: that may move meanwhile.
        let Ok(before) = fs::canonicalize(folder.join(LATEST)) else { return Ok(None) };
        let Some(known) = known(&before).filter(|known| known.basis == basis) else { return Ok(None) };
        let facts = fs::read(before.join(FACTS)).unwrap_or_default();
        Ok(Some(Self { folder, before, known, facts }))
    }

    /// What was counted of its rows; whether that is as it was written is seen when it is taken over.
    pub fn facts(&self) -> &[u8] {
        &self.facts
    }

    /// Makes a version out of it, where it is whole.
    ///
    /// # Errors
    ///
    /// When the folder cannot be written.
    pub fn take_over(self, plan: &Plan, provenance: &Provenance) -> Result<Takeover> {
        let _work = work!("take over files");
        let Self { folder, before, known, facts } = self;
        let damaged = |name: &str| Ok(Takeover::Damaged(before.join(name)));
        if digest::of(&facts) != known.facts {
            return damaged(FACTS);
        }
        let version = free_name(provenance.built_at, |name| !folder.join(name).exists());
        let staging = Staging::create(&folder, &version)?;
        let labels = labels(&metadata(provenance));
        let taken = known.files.par_iter().map(|file| Ok((file, taken(file, &before, &staging, &labels)?)));
        let mut files = Vec::with_capacity(known.files.len());
        for (file, taken) in taken.collect::<Result<Vec<_>>>()? {
            match taken {
                Some(taken) => files.push(taken),
                None => return damaged(&file.name),
            }
        }
        let files = settled(&staging.file(""), vec![Finished(files)])?;
        file::write_bytes(&staging.file(FACTS), &facts)?;
        let Known { version: from, columns, rows, content, facts: digest, .. } = known;
        let written = Written {
            version: &version,
            provenance,
            taken_over_from: Some(&from),
            columns: &columns,
            rows,
            content: &content,
            files: &files,
            facts: &digest,
        };
        file::write_json(&staging.file(RECORD), &Record::of(plan, written))?;
        let staged = Staged { folder, version, staging, files, content, keep: plan.files.keep };
        Ok(Takeover::Taken(Taken { staged, from, rows }))
    }
}

/// What the record in a folder says; none where it is of another form, or names files that are not in the folder.
fn known(folder: &Path) -> Option<Known> {
    let known: Known = published::read(folder).ok()?;
    let is_inside = |file: &FileRecord| {
        Path::new(&file.name).components().all(|component| matches!(component, Component::Normal(_)))
    };
    (known.layout == LAYOUT && known.files.iter().all(is_inside)).then_some(known)
}

/// A file of the version before as one of the new version; none where it is not as its record says.
fn taken(file: &FileRecord, before: &Path, staging: &Staging, labels: &[KeyValue]) -> Result<Option<FileRecord>> {
    let (from, to) = (before.join(&file.name), staging.file(&file.name));
    if FileRecord::of(&from, &file.name, file.rows).ok().as_ref() != Some(file) {
        return Ok(None);
    }
    if let Some(folder) = to.parent() {
        fs::create_dir_all(folder).map_err(|source| Error::Write { path: folder.to_owned(), source })?;
    }
    if to.extension().is_some_and(|ending| ending == "parquet") {
        return labelled(file, &from, to, labels).map(Some);
    }
    // Not every file system has links, and none has any number of them.
    if fs::hard_link(&from, &to).is_err() {
        fs::copy(&from, &to).map_err(|source| Error::Write { path: to, source })?;
    }
    Ok(Some(file.clone()))
}

fn labelled(file: &FileRecord, from: &Path, to: PathBuf, labels: &[KeyValue]) -> Result<FileRecord> {
    let mut out: Described<File> = Described::new(file::create(&to)?);
    relabel(&mut file::open(from)?, &mut out, labels).map_err(|error| file::encoding_failed(&to, error.into()))?;
    Ok(out.record(&file.name, file.rows))
}
