//! Inspects the folders of an archive one by one, so that one with a damaged seal hides no other, and sets damaged ones
//! aside.

use std::fs;
use std::path::{Path, PathBuf};

use rayon::prelude::*;

use super::verify::difference;
use crate::archive::sealed::seal::{SEAL, Seal};
use crate::disk::file::{self, FileError};
use crate::disk::links;
use crate::disk::names::{MERGE_FOLDER, PACK_FOLDER, RUN_FOLDER, fits};
use crate::error::Result;
use crate::process::cancel::CancellationToken;
use crate::time::random;

/// The hidden folder that damaged folders are moved to.
const DAMAGED: &str = ".damaged";

/// A folder with the name of a run, a pack or a merge.
#[derive(Clone, Debug)]
pub(crate) struct Inspected {
    /// The folder.
    pub path: PathBuf,
    /// Its seal, if that can be read.
    pub seal: Option<Seal>,
    /// What is wrong with it, a line each.
    pub faults: Vec<String>,
}

impl Inspected {
    /// Its name.
    pub(crate) fn name(&self) -> &str {
        self.path.file_name().and_then(|name| name.to_str()).unwrap_or_default()
    }

    /// Its seal, if the folder is intact.
    pub(crate) fn intact(&self) -> Option<&Seal> {
        self.seal.as_ref().filter(|_| self.faults.is_empty())
    }

    /// The runs that an intact folder has the rows of.
    pub(crate) fn runs(&self) -> impl Iterator<Item = &str> {
        self.intact().into_iter().flat_map(Seal::runs).map(|run| run.run.as_str())
    }
}

/// Whether a folder has the name of a run, a pack or a merge.
pub(super) fn has_sealed_name(path: &Path) -> bool {
    let name = path.file_name().and_then(|name| name.to_str()).unwrap_or_default();
    [RUN_FOLDER, PACK_FOLDER, MERGE_FOLDER].iter().any(|form| fits(name, form))
}

/// Inspects every folder of an archive: its seal, and the size, checksum and row count of each file.
pub(crate) fn inspect(archive: &Path, stop: &CancellationToken) -> Result<Vec<Inspected>> {
    let folders: Vec<PathBuf> = file::entries(archive)?.into_iter().filter(|path| has_sealed_name(path)).collect();
    folders.into_par_iter().map(|path| inspect_folder(path, stop)).collect()
}

fn inspect_folder(path: PathBuf, stop: &CancellationToken) -> Result<Inspected> {
    let seal = match Seal::read(&path) {
        Ok(seal) => seal,
        // What cannot be read for now, for want of a permission, is not damaged.
        Err(error)
            if FileError::is_missing(&error) || matches!(error.downcast_ref(), Some(FileError::Damaged { .. })) =>
        {
            let fault = file::fault_of(&path.join(SEAL), &error);
            return Ok(Inspected { path, seal: None, faults: vec![fault] });
        }
        Err(error) => return Err(error),
    };
    let faults = seal.files.iter().map(|file| difference(&path.join(&file.name), file, stop));
    let faults: Vec<String> = faults.collect::<Result<Vec<_>>>()?.into_iter().flatten().collect();
    Ok(Inspected { path, seal: Some(seal), faults })
}

/// Moves a damaged folder or version to the hidden folder beside it, and returns where it is now.
pub(crate) fn set_aside(path: &Path) -> Result<PathBuf> {
    let hidden = file::folder_of(path).join(DAMAGED);
    links::folder(&hidden)?;
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    let mut target = hidden.join(&*name);
    if !file::is_gone(&target) {
        target = hidden.join(format!("{name}-{:08x}", random() as u32));
    }
    fs::rename(path, &target).map_err(FileError::write(&target))?;
    file::sync_folder(&hidden)?;
    file::sync_folder(file::folder_of(path))?;
    Ok(target)
}
