//! `pruned.json`: the file that says which versions of a dataset were pruned, so that no machine sends them again.
//!
//! It names the oldest version that was kept, and is only ever moved forward. One that cannot be read says nothing: at worst,
//! versions are sent again.

use serde::{Deserialize, Serialize};

use super::list::Object;
use super::objects::{Created, Store};
use crate::disk::names;
use crate::error::Result;

/// Version of the file's layout.
const LAYOUT: u32 = 1;

/// The largest file that is read: it has a line.
const MOST_BYTES: u64 = 64 << 10;

/// The most attempts to replace the file while other machines are faster.
const ATTEMPTS: u32 = 16;

/// The contents of `pruned.json`, on one line.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct PrunedBefore {
    layout: u32,
    /// Name of the dataset.
    name: String,
    /// The oldest version that was kept.
    before: String,
}

impl PrunedBefore {
    /// Whether a version is older than what was kept. Versions of the same second are not.
    pub(crate) fn covers(&self, version: &str) -> bool {
        second(version) < second(&self.before)
    }

    fn of(name: &str, bytes: &[u8]) -> Option<Self> {
        let read: Self = serde_json::from_slice(bytes).ok()?;
        let is_valid = read.layout == LAYOUT && read.name == name && names::is_unique(&read.before);
        is_valid.then_some(read)
    }
}

/// The second that a name begins with.
fn second(name: &str) -> &str {
    name.split_once('-').map_or(name, |(second, _)| second)
}

impl Store {
    /// Which versions of a dataset were pruned, given the objects of the dataset.
    pub(crate) async fn pruned_before(&self, name: &str, listed: &[Object]) -> Result<Option<PrunedBefore>> {
        let at = key(name);
        if !listed.iter().any(|object| object.key == at) {
            return Ok(None);
        }
        let content = self.get(&at, MOST_BYTES).await?;
        Ok(content.and_then(|content| PrunedBefore::of(name, &content.bytes)))
    }

    /// Says that the versions before one are pruned, unless more are.
    pub(crate) async fn note_pruned(&self, name: &str, before: &str) -> Result<()> {
        let (at, note) = (key(name), PrunedBefore { layout: LAYOUT, name: name.to_owned(), before: before.to_owned() });
        let mut text = serde_json::to_vec(&note).expect("it is text");
        text.push(b'\n');
        for attempt in 0..ATTEMPTS {
            let is_done = match self.get(&at, MOST_BYTES).await? {
                None => self.create(&at, text.clone().into()).await? == Created::Ours,
                Some(there) => {
                    let known = PrunedBefore::of(name, &there.bytes);
                    known.is_some_and(|known| second(&known.before) >= second(before))
                        || self.replace(&at, text.clone().into(), &there).await?
                }
            };
            if is_done {
                return Ok(());
            }
            self.pause(attempt).await?;
        }
        Err(self.later("write", &at, "other machines keep replacing it").into())
    }
}

fn key(name: &str) -> String {
    format!("datasets/{name}/pruned.json")
}
