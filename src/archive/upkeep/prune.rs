//! Removes the folders that a pack stands for: a plan first, then what it says.

use std::fs;
use std::path::Path;
use std::sync::Arc;

use super::verify::says_what_its_members_say;
use crate::archive::FOLDER_OF_UNFINISHED;
use crate::archive::sealed::catalog::Archive;
use crate::archive::sealed::folder::Folder;
use crate::error::{Error, Result};

/// What pruning removes.
#[derive(Clone, Debug)]
pub struct Plan {
    archive: Archive,
    /// The folders that go, in the order of their names.
    pub removals: Vec<Removal>,
}

/// A folder that is removed.
#[derive(Clone, Debug)]
pub struct Removal {
    /// Its name: `run=…` or `pack=…`.
    pub folder: String,
    /// The pack that stands for it.
    pub pack: String,
    /// Its size.
    pub bytes: u64,
}

impl Plan {
    /// What pruning an archive would remove.
    ///
    /// # Errors
    ///
    /// When the archive cannot be read.
    pub fn of(archive: &Path) -> Result<Self> {
        let archive = Archive::open(archive)?;
        let removal = |folder: &&Arc<Folder>| {
            let seal = folder.seal();
            let pack = pack_for(&archive, folder)?.seal().folder_name();
            Some(Removal { folder: seal.folder_name(), pack, bytes: seal.bytes() })
        };
        let removals = archive.superseded().iter().filter_map(removal).collect();
        Ok(Self { archive, removals })
    }
}

/// The pack that is read in the place of a folder, and holds every run of it.
fn pack_for<'a>(archive: &'a Archive, folder: &Folder) -> Option<&'a Arc<Folder>> {
    let holds = |pack: &&Arc<Folder>| {
        folder.seal().runs().iter().all(|run| pack.seal().members.iter().any(|member| member.seal == run.seal))
    };
    archive.read().iter().filter(|read| read.seal().is_pack()).find(holds)
}

/// Removes what a plan says, once each pack was found to say what its members say.
///
/// # Errors
///
/// When a pack is not what it should be, and when a folder cannot be removed.
pub fn prune(plan: &Plan) -> Result<()> {
    let archive = &plan.archive;
    for pack in archive.read().iter().filter(|folder| folder.seal().is_pack()) {
        if let Some(fault) = says_what_its_members_say(archive, pack)?.into_iter().next() {
            return Err(Error::Damaged { path: pack.path().to_owned(), source: fault.into() });
        }
    }
    let hidden = archive.path().join(FOLDER_OF_UNFINISHED);
    fs::create_dir_all(&hidden).map_err(|source| Error::Write { path: hidden.clone(), source })?;
    for removal in &plan.removals {
        // In one step: a folder is there or it is not.
        let (from, aside) =
            (archive.path().join(&removal.folder), hidden.join(format!(".removing-{}", removal.folder)));
        fs::rename(&from, &aside).map_err(|source| Error::Write { path: from, source })?;
        fs::remove_dir_all(&aside).map_err(|source| Error::Write { path: aside, source })?;
    }
    Ok(())
}
