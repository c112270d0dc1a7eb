//! Mends damaged folders: moves what is damaged out of the way, and sends good copies in its place.
//!
//! Nothing is overwritten or lost. A damaged object is copied below `damaged/` and only then deleted, so it can be
//! repeated after it was interrupted. What takes its place is put only if absent, like every file of a folder.

use std::path::Path;

use bytes::Bytes;
use object_store::ObjectStoreExt;

use super::folder::Sealed;
use super::objects::{Created, Store};
use crate::disk::file::FileRecord;
use crate::disk::links;
use crate::disk::names::is_unique;
use crate::error::Result;

/// The folder of a store with what was damaged, each repair in a folder of its own.
pub(super) const DAMAGED: &str = "damaged";

/// The key that an object had before it was moved aside; its own if it was not.
pub(super) fn key_before(key: &str) -> &str {
    let moved = || {
        let (repair, before) = key.strip_prefix(DAMAGED)?.strip_prefix('/')?.split_once('/')?;
        is_unique(repair).then_some(before)
    };
    moved().unwrap_or(key)
}

impl Store {
    /// Moves an object below `damaged/REPAIR/`. It is not an error if there is none.
    pub(crate) async fn set_aside(&self, at: &str, repair: &str) -> Result<()> {
        let (from, to) = (self.key(at)?, self.key(&format!("{DAMAGED}/{repair}/{at}"))?);
        match self.in_turn(self.objects.copy(&from, &to)).await? {
            Ok(()) => self.delete(at).await,
            Err(object_store::Error::NotFound { .. }) => Ok(()),
            Err(fault) => Err(self.failure("move", at, &fault).into()),
        }
    }

    /// Moves a folder aside, its record first: from then on, no reader takes it for a run or a version.
    pub(crate) async fn set_folder_aside(&self, at: &str, record: &str, repair: &str) -> Result<()> {
        self.set_aside(&format!("{at}/{record}"), repair).await?;
        for object in self.list(at).await? {
            self.set_aside(&object.key, repair).await?;
        }
        Ok(())
    }

    /// Replaces the damaged and missing files of a folder whose record is in the store, from a local folder with the same
    /// record.
    pub(crate) async fn mend(&self, sealed: &Sealed, files: &[&FileRecord], folder: &Path, repair: &str) -> Result<()> {
        for file in files {
            self.set_aside(&format!("{}/{}", sealed.at, file.name), repair).await?;
            self.send_file(sealed, file, folder, None).await?;
        }
        Ok(())
    }

    /// Replaces a damaged record with that of a local folder.
    pub(crate) async fn mend_record(&self, sealed: &Sealed, folder: &Path, repair: &str) -> Result<()> {
        let record: Bytes = links::read(&folder.join(sealed.record))?.into();
        let at = format!("{}/{}", sealed.at, sealed.record);
        self.set_aside(&at, repair).await?;
        match self.create(&at, record).await? {
            Created::Ours => Ok(()),
            Created::Another => Err(self.conflict(&sealed.at).into()),
        }
    }
}
