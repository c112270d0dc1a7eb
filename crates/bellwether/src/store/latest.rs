//! The two files of a dataset in a store that machines replace: `latest.json` names the latest version, since a store has no
//! links; `pruned.json` names the oldest version that was kept, so that no machine sends those before it again.
//!
//! The second is only ever moved forward. One that cannot be read says nothing: at worst, versions are sent again.

use bytes::Bytes;
use chrono::{DateTime, Utc};
use serde::{Deserialize, Serialize};

use super::list::Object;
use super::objects::Store;
use crate::disk::names;
use crate::error::Result;
use crate::time::as_record;

/// Version of the layout of both files.
const LAYOUT: u32 = 1;

/// The largest file that is read: it has a line.
const MAX_BYTES: u64 = 64 << 10;

/// The most attempts to replace a file while other machines are faster.
const ATTEMPTS: u32 = 64;

/// The contents of `latest.json`, on one line.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Latest {
    layout: u32,
    /// Name of the dataset.
    pub name: String,
    /// Name of the version.
    pub version: String,
    /// Observations after this instant are ignored.
    #[serde(with = "as_record")]
    pub as_of: DateTime<Utc>,
    /// When it was built.
    #[serde(with = "as_record")]
    pub built_at: DateTime<Utc>,
    /// The digest of its content.
    pub content: String,
}

impl Latest {
    pub(crate) fn new(name: &str, version: &str, instants: (DateTime<Utc>, DateTime<Utc>), content: &str) -> Self {
        let (as_of, built_at) = instants;
        let [name, version, content] = [name, version, content].map(str::to_owned);
        Self { layout: LAYOUT, name, version, as_of, built_at, content }
    }

    /// A version is later if it has a later instant, or the same one and was built later.
    fn order(&self) -> (DateTime<Utc>, DateTime<Utc>, &str) {
        (self.as_of, self.built_at, &self.version)
    }
}

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

    fn parse(name: &str, bytes: &[u8]) -> Option<Self> {
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
    fn at(name: &str) -> String {
        format!("datasets/{name}/latest.json")
    }

    /// The latest version of a dataset.
    pub(crate) async fn latest(&self, name: &str) -> Result<Option<Latest>> {
        match self.get(&Self::at(name), MAX_BYTES).await? {
            Some(content) => self.parse(name, &content.bytes).map(Some),
            None => Ok(None),
        }
    }

    fn parse(&self, name: &str, bytes: &[u8]) -> Result<Latest> {
        let damaged = |reason: String| self.damage(&Self::at(name), reason);
        let latest: Latest = serde_json::from_slice(bytes).map_err(|error| damaged(error.to_string()))?;
        if latest.layout != LAYOUT {
            let reason = format!("it has layout {}; this version reads layout {LAYOUT}", latest.layout);
            return Err(damaged(reason));
        }
        match latest.name == name && names::is_unique(&latest.version) {
            true => Ok(latest),
            false => Err(damaged("it does not name a version of this dataset".to_owned())),
        }
    }

    /// Makes a version the latest, or returns the later one that the store has, unless that is one that does not count any
    /// more. Of several writers at once, the one with the latest version wins.
    pub(crate) async fn name_latest(&self, latest: &Latest, discounted: Option<&str>) -> Result<Option<Latest>> {
        let may_stay = |there: &[u8]| {
            let there = self.parse(&latest.name, there)?;
            let is_later = there.order() > latest.order() && discounted != Some(&*there.version);
            Ok(is_later || there.version == latest.version)
        };
        let there = self.replace_unless(&Self::at(&latest.name), latest, may_stay).await?;
        let there = there.map(|there| self.parse(&latest.name, &there)).transpose()?;
        Ok(there.filter(|there| there.version != latest.version))
    }

    /// Which versions of a dataset were pruned, given the objects of the dataset.
    pub(crate) async fn pruned_before(&self, name: &str, listed: &[Object]) -> Result<Option<PrunedBefore>> {
        let at = format!("datasets/{name}/pruned.json");
        if !listed.iter().any(|object| object.key == at) {
            return Ok(None);
        }
        let content = self.get(&at, MAX_BYTES).await?;
        Ok(content.and_then(|content| PrunedBefore::parse(name, &content.bytes)))
    }

    /// Says that the versions before one are pruned, unless more are.
    pub(crate) async fn note_pruned(&self, name: &str, before: &str) -> Result<()> {
        let note = PrunedBefore { layout: LAYOUT, name: name.to_owned(), before: before.to_owned() };
        let may_stay = |there: &[u8]| {
            Ok(PrunedBefore::parse(name, there).is_some_and(|known| second(&known.before) >= second(before)))
        };
        self.replace_unless(&format!("datasets/{name}/pruned.json"), &note, may_stay).await.map(drop)
    }

    /// Puts a line in place of what is there, unless that may stay: then it is returned.
    async fn replace_unless(
        &self,
        at: &str,
        line: &impl Serialize,
        may_stay: impl Fn(&[u8]) -> Result<bool>,
    ) -> Result<Option<Bytes>> {
        let mut text = serde_json::to_vec(line).expect("it is text");
        text.push(b'\n');
        let text = Bytes::from(text);
        for attempt in 0..ATTEMPTS {
            let is_done = match self.get(at, MAX_BYTES).await? {
                None => self.create(at, text.clone()).await?,
                Some(there) if may_stay(&there.bytes)? => return Ok(Some(there.bytes)),
                Some(there) => self.replace(at, text.clone(), &there).await?,
            };
            if is_done {
                return Ok(None);
            }
            self.pause(attempt).await?;
        }
        Err(self.later("write", at, "other machines keep replacing it"))
    }
}
