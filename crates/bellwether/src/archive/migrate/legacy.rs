//! Archives of layout 9: one history of all services, in folders of runs and packs.
//!
//! A seal is trusted once its digest matches, and a file once it matches its seal. A run may be in its own folder and in
//! several packs; it is read from its own folder if it has one, or else from the largest pack.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use chrono::{DateTime, Utc};
use serde::{Deserialize, Serialize};

use super::error::MigrateError;
use crate::archive::sealed::answers::ANSWERS;
use crate::archive::sealed::folder::Folder;
use crate::archive::sealed::seal::{Counts, DefinitionRecord, NO_DIGEST, SEAL, Seal, read_bounded};
use crate::archive::sealed::sealed_run::SealedRun;
use crate::archive::services::older_folders;
use crate::disk::digest;
use crate::disk::file::{FileError, FileRecord};
use crate::disk::links;
use crate::disk::names::{RUN_FILES, is_unique};
use crate::error::{Reason, Result};
use crate::plan::ServiceIdentity;
use crate::process::cancel::CancellationToken;
use crate::tables::Drift;
use crate::time::as_record;

/// The layout that is migrated.
pub(crate) const LAYOUT: u32 = 9;

/// The folder in an archive that keeps what was migrated.
pub(crate) const KEPT: &str = ".layout-9";

/// `run.json` of layout 9.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct LegacySeal {
    layout: u32,
    run: String,
    bellwether: String,
    definition: Option<DefinitionRecord>,
    #[serde(with = "as_record")]
    started_at: DateTime<Utc>,
    #[serde(with = "as_record")]
    sealed_at: DateTime<Utc>,
    changes: Counts,
    drift: Vec<Drift>,
    pub(crate) files: Vec<FileRecord>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    members: Vec<Self>,
    seal: String,
}

impl LegacySeal {
    /// Parses the seal of a folder and checks that it is consistent.
    pub(crate) fn of(text: &[u8], folder: &Path) -> Result<Self> {
        let path = folder.join(SEAL);
        let damaged = |source: Reason| MigrateError::of(FileError::damage(&path, source));
        let value: serde_json::Value = serde_json::from_slice(text).map_err(|error| damaged(error.into()))?;
        match value["layout"].as_u64() {
            Some(layout) if layout == u64::from(LAYOUT) => {}
            Some(layout) => return Err(MigrateError::Layout { path: folder.to_owned(), layout, known: LAYOUT }.into()),
            None => return Err(damaged("it has no `layout`".into())),
        }
        let seal: Self = serde_json::from_value(value).map_err(|error| damaged(error.into()))?;
        seal.check().map_err(damaged)?;
        if folder.file_name().is_none_or(|name| name != seal.folder_name().as_str()) {
            return Err(damaged(format!("it belongs to `{}`", seal.folder_name()).into()));
        }
        Ok(seal)
    }

    /// Name of the folder.
    pub(crate) fn folder_name(&self) -> String {
        format!("{}={}", if self.members.is_empty() { "run" } else { "pack" }, self.run)
    }

    /// Name of the run or pack.
    pub(super) fn name(&self) -> &str {
        &self.run
    }

    /// Its text, as it was written.
    fn text(&self) -> String {
        serde_json::to_string_pretty(self).expect("a seal is text and numbers")
    }

    /// Names and digests of the runs in the folder.
    pub(crate) fn runs(&self) -> impl Iterator<Item = (&str, &str)> {
        let runs = if self.members.is_empty() { std::slice::from_ref(self) } else { &self.members };
        runs.iter().map(|run| (run.run.as_str(), run.seal.as_str()))
    }

    fn check(&self) -> Result<(), Reason> {
        let digest = digest::of(Self { seal: NO_DIGEST.to_owned(), ..self.clone() }.text().as_bytes());
        if digest != self.seal {
            return Err(format!("its BLAKE3 checksum is {digest}, expected {}", self.seal).into());
        }
        if !is_unique(&self.run) {
            return Err(format!("`{}` is not the name of a run", self.run).into());
        }
        let is_listed = |name: &&str| *name != SEAL && *name != ANSWERS;
        let names: BTreeSet<&str> = self.files.iter().map(|file| file.name.as_str()).collect();
        if names.len() != self.files.len() || names != RUN_FILES.into_iter().filter(is_listed).collect() {
            return Err("it does not list the files of its layout".into());
        }
        for member in &self.members {
            if !member.members.is_empty() || member.layout != self.layout {
                return Err(format!("its member `{}` is no run of its layout", member.run).into());
            }
            member.check().map_err(|reason| format!("member `{}`: {reason}", member.run))?;
        }
        for file in self.files.iter().filter(|_| !self.members.is_empty()) {
            let in_member =
                |member: &Self| member.files.iter().find(|own| own.name == file.name).map_or(0, |it| it.rows);
            let rows: u64 = self.members.iter().map(in_member).sum();
            if rows != file.rows {
                return Err(format!("`{}` has {} rows, but its members have {rows}", file.name, file.rows).into());
            }
        }
        Ok(())
    }

    /// It, in the form in which the archive reads folders. It is never written.
    fn as_seal(&self) -> Seal {
        Seal {
            layout: self.layout,
            run: self.run.clone(),
            service: ServiceIdentity::demo(),
            bellwether: self.bellwether.clone(),
            definition: self.definition.clone(),
            started_at: self.started_at,
            sealed_at: self.sealed_at,
            basis: Vec::new(),
            lost: Vec::new(),
            operations: Vec::new(),
            changes: self.changes,
            drift: self.drift.clone(),
            files: self.files.clone(),
            members: self.members.iter().map(Self::as_seal).collect(),
            joins: Vec::new(),
            migrated: None,
            claimed: None,
            seal: self.seal.clone(),
        }
    }
}

/// A run of layout 9.
#[derive(Clone, Debug)]
pub(crate) struct LegacyRun {
    pub(super) run: SealedRun,
    /// The index of the folder that it is read from.
    pub(super) folder: usize,
}

impl LegacyRun {
    /// Its name.
    pub(crate) fn name(&self) -> &str {
        self.run.name()
    }

    /// Its definition.
    pub(crate) fn definition(&self) -> Option<&DefinitionRecord> {
        self.run.seal().definition.as_ref()
    }

    pub(super) fn seal(&self) -> &Seal {
        self.run.seal()
    }
}

/// What an archive has of layout 9: in its folder, and in that of what was migrated.
#[derive(Debug)]
pub(crate) struct Legacy {
    pub(super) archive: PathBuf,
    /// The folders that are not moved yet.
    pub(super) unmoved: Vec<PathBuf>,
    pub(super) folders: Vec<Arc<Folder>>,
    /// In the order in which they were sealed.
    runs: Vec<LegacyRun>,
    pub(super) stop: CancellationToken,
}

impl Legacy {
    /// Reads the seals; `elsewhere` are those of folders that are not here, of which only the seals are known.
    pub(crate) fn open(archive: &Path, elsewhere: &[LegacySeal], stop: &CancellationToken) -> Result<Self> {
        let (unmoved, kept) = (older_folders(archive)?, older_folders(&archive.join(KEPT))?);
        let mut folders: Vec<Arc<Folder>> = Vec::new();
        for path in unmoved.iter().chain(&kept) {
            links::refuse(path)?;
            if let Some(twice) = folders.iter().find(|other| other.path().file_name() == path.file_name()) {
                return Err(MigrateError::Twice { path: twice.path().to_owned(), kept: path.clone() }.into());
            }
            let seal = LegacySeal::of(read_bounded(&path.join(SEAL))?.as_bytes(), path)?.as_seal();
            folders.push(Arc::new(Folder::new(path.clone(), seal).until(stop.clone())));
        }
        for seal in elsewhere {
            folders.push(Arc::new(Folder::new(archive.join(KEPT).join(seal.folder_name()), seal.as_seal())));
        }
        // Independent of which of them are moved already.
        folders.sort_by(|one, other| one.path().file_name().cmp(&other.path().file_name()));
        let runs = runs(&folders)?;
        Ok(Self { archive: archive.to_owned(), unmoved, folders, runs, stop: stop.clone() })
    }

    /// The runs, in the order in which they were sealed.
    pub(crate) fn runs(&self) -> &[LegacyRun] {
        &self.runs
    }

    /// Number of folders that are not moved yet.
    pub(crate) fn unmoved_count(&self) -> usize {
        self.unmoved.len()
    }

    /// Size of all folders.
    pub(crate) fn bytes(&self) -> u64 {
        self.folders.iter().map(|folder| folder.seal().bytes()).sum()
    }
}

/// Every run, from its own folder or the largest pack that has it.
fn runs(folders: &[Arc<Folder>]) -> Result<Vec<LegacyRun>> {
    let mut found: HashMap<&str, &Seal> = HashMap::new();
    let mut best: BTreeMap<&str, (bool, usize, usize)> = BTreeMap::new();
    for (index, folder) in folders.iter().enumerate() {
        for seal in folder.seal().parts() {
            if *found.entry(&seal.run).or_insert(seal) != seal {
                let reason = format!("its record of run `{}` differs from that of another folder", seal.run);
                return Err(MigrateError::of(FileError::damage(&folder.path().join(SEAL), reason)));
            }
            let rank = (folder.seal().is_pack(), usize::MAX - folder.seal().parts().len(), index);
            best.entry(&seal.run).and_modify(|known| *known = rank.min(*known)).or_insert(rank);
        }
    }
    let run = |(name, (_, _, folder)): (&str, (bool, usize, usize))| {
        let run = SealedRun::of(found[name].clone(), Arc::clone(&folders[folder]));
        LegacyRun { run, folder }
    };
    let mut runs: Vec<LegacyRun> = best.into_iter().map(run).collect();
    runs.sort_by(|one, other| (one.seal().sealed_at, one.name()).cmp(&(other.seal().sealed_at, other.name())));
    Ok(runs)
}
