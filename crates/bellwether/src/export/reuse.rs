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

use super::link;
use super::publication::Provenance;
use super::record::{FACTS, RecordContents, VersionRecord, options};
use super::staged::{Dataset, Staged};
use super::table::{Finished, make_durable};
use super::target_folder::TargetFolder;
use crate::disk::digest;
use crate::disk::file::{self, FileError, FileRecord};
use crate::disk::links;
use crate::error::Result;
use crate::plan::Plan;
use crate::process::cancel::{self, CancellationToken};
use crate::process::trace::work;

/// The latest version of a dataset, if it has the files that the next one needs.
pub(crate) struct LatestVersion {
    home: TargetFolder,
    before: PreviousVersion,
}

/// The outcome of reusing a version.
pub(crate) enum ReuseOutcome {
    /// One of its files does not match its record.
    Damaged(PathBuf),
    /// A version was made from it.
    Reused(ReusedVersion),
}

/// A version with the files of another one.
pub(crate) struct ReusedVersion {
    /// The new version.
    pub staged: Staged,
    /// Name of the previous version.
    pub from: String,
}

/// A published version being reused.
struct PreviousVersion {
    path: PathBuf,
    known: VersionRecord,
    facts: Vec<u8>,
}

impl LatestVersion {
    /// The latest version of a dataset in a folder of datasets; `None` if there is none with this basis.
    pub(crate) fn of_basis(datasets: &Path, provenance: &Provenance) -> Result<Option<Self>> {
        let home = TargetFolder::of(datasets, &provenance.name, &provenance.ad_hoc)?;
        // The folder itself, not the link, which may move meanwhile.
        let Some(path) = link::version(&home.folder) else { return Ok(None) };
        let before = PreviousVersion::read(path).filter(|before| before.known.basis == provenance.basis);
        Ok(before.map(|before| Self { home, before }))
    }

    /// The facts about its rows, verified on reuse.
    pub(crate) fn facts(&self) -> &[u8] {
        &self.before.facts
    }

    /// Makes a version from it, if it is intact.
    pub(crate) fn take_over(
        self,
        plan: &Plan,
        provenance: &Provenance,
        stop: &CancellationToken,
    ) -> Result<ReuseOutcome> {
        let _work = work!("reuse files");
        let Self { home, before } = self;
        if let Some(damaged) = before.damaged_file(stop)? {
            return Ok(ReuseOutcome::Damaged(damaged));
        }
        let PreviousVersion { path, known, facts } = before;
        let VersionRecord { version: from, columns, rows, content, files, facts: digest, .. } = known;
        let (version, staging) = home.stage(provenance.built_at)?;
        files.par_iter().try_for_each(|file| {
            cancel::check(stop)?;
            take(&path.join(&file.name), &staging.file(&file.name))
        })?;
        let files = make_durable(&staging.file(""), vec![Finished(files)])?;
        file::write_bytes(&staging.file(FACTS), &facts)?;
        let written = RecordContents {
            version: &version,
            provenance,
            taken_over_from: Some(&from),
            columns: &columns,
            rows,
            content: &content,
            files: &files,
            facts: &digest,
        };
        let record = Box::new(VersionRecord::of(plan, written));
        let staged = Staged { home, staging, record, keep: plan.files.keep };
        Ok(ReuseOutcome::Reused(ReusedVersion { staged, from }))
    }
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
        true => link::latest_target(&home.folder).into_iter().map(|latest| home.folder.join(latest)).collect(),
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

/// Links or copies a file of the previous version into the new one.
fn take(from: &Path, to: &Path) -> Result<()> {
    if let Some(folder) = to.parent() {
        fs::create_dir_all(folder).map_err(FileError::write(folder))?;
    }
    links::link_or_copy(from, to)
}
