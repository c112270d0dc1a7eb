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

use super::record::{FACTS, Provenance, VersionRecord, options};
use super::retention;
use super::staged::{Dataset, Staged, TargetFolder};
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
    let Some(path) = retention::latest_version(&home.folder) else { return Ok(None) };
    let known = VersionRecord::open(&path).ok().filter(|known| known.basis == provenance.basis);
    let Some(known) = known else { return Ok(None) };
    let _work = work!("reuse files");
    let facts = match verify(&path, &known, stop)? {
        Ok(facts) => facts,
        Err(damaged) => return Ok(Some(ReuseOutcome::Damaged(damaged))),
    };
    let VersionRecord { version: from, columns, rows, content, files, facts: digest, .. } = known;
    let (version, staging) = home.stage(provenance.built_at)?;
    files.par_iter().try_for_each(|file| {
        cancel::check(stop)?;
        let target = staging.file(&file.name);
        let folder = file::folder_of(&target);
        fs::create_dir_all(folder).map_err(FileError::write(folder))?;
        links::link_or_copy(&path.join(&file.name), &target)
    })?;
    file::sync_below(&staging.file(""), files.iter().map(|file| file.name.as_str()))?;
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
    let TargetFolder { folder, .. } = TargetFolder::of(datasets, &provenance.name, &provenance.ad_hoc)?;
    let Provenance { basis, as_of, runs, .. } = provenance;
    let ad_hoc = options(&provenance.ad_hoc);
    let newest_first: Vec<PathBuf> = match provenance.ad_hoc.is_none() {
        true => retention::latest_target(&folder).into_iter().map(|latest| folder.join(latest)).collect(),
        false => file::folders(&folder)?.into_iter().rev().collect(),
    };
    for path in newest_first {
        let Ok(known) = VersionRecord::open(&path) else { continue };
        let is_same = known.basis == *basis && known.ad_hoc == ad_hoc && known.as_of == *as_of && known.runs == *runs;
        if is_same && let Ok(facts) = verify(&path, &known, stop)? {
            let VersionRecord { rows, content, files, .. } = known;
            let dataset = Dataset { path, latest: None, overtaken_by: None, left: None, rows, files, content };
            return Ok(Some((dataset, facts)));
        }
    }
    Ok(None)
}

/// The facts of a version, or the first of its files that does not match its record.
fn verify(path: &Path, known: &VersionRecord, stop: &CancellationToken) -> Result<Result<Vec<u8>, PathBuf>> {
    let Ok(facts) = known.facts_in(path) else { return Ok(Err(path.join(FACTS))) };
    let is_damaged = |file: &&FileRecord| {
        let written = path.join(&file.name);
        links::refuse_below(path, &written).is_err()
            || FileRecord::of(&written, &file.name, file.rows, stop).ok().as_ref() != Some(*file)
    };
    let damaged = known.files.par_iter().find_first(is_damaged).map(|file| path.join(&file.name));
    cancel::check(stop)?;
    Ok(damaged.map_or(Ok(facts), Err))
}
