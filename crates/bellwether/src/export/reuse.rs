//! Reuses an earlier build if nothing that determines it has changed.
//!
//! A dataset is determined by its plan and by the archive files of its view; the digest of both is its *basis*. If the
//! latest version has the same basis, its files are byte for byte what a build would write, so the next version links
//! them and they take space only once. An ad hoc build with the same basis, instant, runs and options is returned as it
//! is, and nothing is written.
//!
//! The two never share files: an ad hoc build belongs to its owner, who may open it in a spreadsheet and save it.
//!
//! Every file is verified first. If one does not match its record, the dataset is built.

use std::fs;
use std::path::{Path, PathBuf};

use rayon::prelude::*;

use super::publication::Provenance;
use super::record::{FACTS, VersionRecord, options};
use super::retention;
use super::staged::{Dataset, Staged, TargetFolder};
use super::table::make_durable;
use crate::disk::digest;
use crate::disk::file::{self, FileError, FileRecord};
use crate::disk::links;
use crate::error::Result;
use crate::plan::Plan;
use crate::process::cancel::{self, CancellationToken};
use crate::process::trace::work;

/// The outcome of reusing a version.
pub(crate) enum ReuseOutcome {
    /// One of its files does not match its record.
    Damaged(PathBuf),
    /// A version with its files.
    Reused {
        /// The new version.
        staged: Staged,
        /// Name of the previous version.
        from: String,
        /// The facts about its rows.
        facts: Vec<u8>,
    },
}

/// A published version being reused.
struct PreviousVersion {
    path: PathBuf,
    known: VersionRecord,
    facts: Vec<u8>,
}

/// Makes a version from the latest one of a dataset in a folder of datasets, if that is intact; `None` if there is none with
/// this basis.
pub(crate) fn reuse_latest(
    datasets: &Path,
    plan: &Plan,
    provenance: &Provenance,
    stop: &CancellationToken,
) -> Result<Option<ReuseOutcome>> {
    let home = TargetFolder::of(datasets, &provenance.name, &provenance.ad_hoc)?;
    // The folder itself, not the link, which may move meanwhile.
    let before = retention::latest_version(&home.folder).and_then(PreviousVersion::read);
    let Some(before) = before.filter(|before| before.known.basis == provenance.basis) else { return Ok(None) };
    let _work = work!("reuse files");
    if let Some(damaged) = before.damaged_file(stop)? {
        return Ok(Some(ReuseOutcome::Damaged(damaged)));
    }
    let PreviousVersion { path, known, facts } = before;
    let VersionRecord { version: from, columns, rows, content, files, facts: digest, .. } = known;
    let (version, staging) = home.stage(provenance.built_at)?;
    files.par_iter().try_for_each(|file| {
        cancel::check(stop)?;
        let target = staging.file(&file.name);
        if let Some(folder) = target.parent() {
            fs::create_dir_all(folder).map_err(FileError::write(folder))?;
        }
        links::link_or_copy(&path.join(&file.name), &target)
    })?;
    make_durable(&staging.file(""), &files)?;
    file::write_bytes(&staging.file(FACTS), &facts)?;
    let taken_over_from = Some(from.clone());
    let record = VersionRecord::new(plan, provenance.clone(), version);
    let record = Box::new(VersionRecord { columns, rows, content, files, facts: digest, taken_over_from, ..record });
    let staged = Staged { home, staging, record, keep: plan.files.keep };
    Ok(Some(ReuseOutcome::Reused { staged, from, facts }))
}

/// An intact ad hoc build, or the latest version of the definition itself, whose record would differ only in its build time,
/// with its facts.
pub(crate) fn built_before(
    datasets: &Path,
    provenance: &Provenance,
    stop: &CancellationToken,
) -> Result<Option<(Dataset, Vec<u8>)>> {
    let home = TargetFolder::of(datasets, &provenance.name, &provenance.ad_hoc)?;
    let ad_hoc = options(&provenance.ad_hoc);
    let is_same = |PreviousVersion { known, .. }: &PreviousVersion| {
        known.basis == provenance.basis
            && known.ad_hoc == ad_hoc
            && known.as_of == provenance.as_of
            && known.runs == provenance.runs
    };
    let newest_first: Vec<PathBuf> = match provenance.ad_hoc.is_none() {
        true => retention::latest_target(&home.folder).into_iter().map(|latest| home.folder.join(latest)).collect(),
        false => file::folders(&home.folder)?.into_iter().rev().collect(),
    };
    for before in newest_first.into_iter().filter_map(PreviousVersion::read).filter(is_same) {
        if before.damaged_file(stop)?.is_none() {
            let PreviousVersion { path, known: VersionRecord { rows, content, files, .. }, facts } = before;
            return Ok(Some((
                Dataset { path, latest: None, overtaken_by: None, left: None, rows, files, content },
                facts,
            )));
        }
    }
    Ok(None)
}

impl PreviousVersion {
    /// Reads a version; `None` if its record has another layout, or cannot be read.
    fn read(path: PathBuf) -> Option<Self> {
        let known = VersionRecord::open(&path).ok()?;
        Some(Self { facts: links::read(&path.join(FACTS)).unwrap_or_default(), path, known })
    }

    /// A file that does not match the record.
    fn damaged_file(&self, stop: &CancellationToken) -> Result<Option<PathBuf>> {
        let Self { path, known, facts } = self;
        if digest::of(facts) != known.facts {
            return Ok(Some(path.join(FACTS)));
        }
        let is_damaged = |file: &&FileRecord| {
            let written = path.join(&file.name);
            links::refuse_below(path, &written).is_err()
                || FileRecord::of(&written, &file.name, file.rows, stop).ok().as_ref() != Some(*file)
        };
        let damaged = known.files.par_iter().find_first(is_damaged).map(|file| path.join(&file.name));
        cancel::check(stop)?;
        Ok(damaged)
    }
}
