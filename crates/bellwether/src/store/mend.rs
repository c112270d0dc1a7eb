//! Moves what is damaged out of the way, so that a good copy can be sent in its place.
//!
//! Nothing is overwritten or lost. A damaged object is copied below `damaged/` and only then deleted, so it can be
//! repeated after it was interrupted.

use object_store::ObjectStoreExt;

use super::leftovers::is_key;
use super::objects::Store;
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

    /// Moves the objects of ours in a folder aside, its record first: from then on, no reader takes it for a run or a
    /// version.
    pub(crate) async fn set_folder_aside(&self, at: &str, record: &str, repair: &str) -> Result<()> {
        self.set_aside(&format!("{at}/{record}"), repair).await?;
        for object in self.list(at).await?.into_iter().filter(|object| is_key(&object.key)) {
            self.set_aside(&object.key, repair).await?;
        }
        Ok(())
    }
}
