//! The two files of a dataset in a store that machines replace: `latest.json` names the latest version, since a store has no
//! links; `pruned.json` names the oldest version that was kept, so that no machine sends those before it again.
//!
//! The second is only ever moved forward. One that cannot be read says nothing: at worst, versions are sent again.

use bytes::Bytes;
use chrono::{DateTime, Utc};
use serde::{Deserialize, Serialize};

use super::contents::Listing;
use super::objects::Store;
use crate::disk::names;
use crate::error::Result;
use crate::export::VersionRecord;
use crate::time::as_record;

/// Version of the layout of `latest.json`.
const LAYOUT: u32 = 1;

/// The largest file that is read: it has a line.
const MAX_BYTES: u64 = 64 << 10;

/// The contents of `latest.json`, on one line.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Latest {
    pub(super) layout: u32,
    /// Name of the dataset.
    pub(super) name: String,
    /// Name of the version.
    pub(super) version: String,
    /// Observations after this instant are ignored.
    #[serde(with = "as_record")]
    pub(super) as_of: DateTime<Utc>,
    /// When it was built.
    #[serde(with = "as_record")]
    pub(super) built_at: DateTime<Utc>,
    /// The digest of its content.
    pub(super) content: String,
}

impl From<&VersionRecord> for Latest {
    fn from(VersionRecord { name, version, as_of, built_at, content, .. }: &VersionRecord) -> Self {
        let [name, version, content] = [name, version, content].map(String::clone);
        Self { layout: LAYOUT, name, version, as_of: *as_of, built_at: *built_at, content }
    }
}

impl Latest {
    /// A version is later if it has a later instant, or the same one and was built later.
    fn order(&self) -> (DateTime<Utc>, DateTime<Utc>, &str) {
        (self.as_of, self.built_at, &self.version)
    }
}

/// The contents of `pruned.json`, on one line.
#[derive(Serialize, Deserialize)]
struct PrunedBefore {
    /// The oldest version that was kept.
    before: String,
}

impl PrunedBefore {
    fn parse(bytes: &[u8]) -> Option<Self> {
        serde_json::from_slice(bytes).ok().filter(|note: &Self| names::is_unique(&note.before))
    }
}

/// The second that the name of a version begins with.
pub(super) fn second(version: &str) -> &str {
    version.split_once('-').map_or(version, |(second, _)| second)
}

/// The key of what names the latest version of a dataset.
pub(super) fn latest_of(name: &str) -> String {
    format!("datasets/{name}/latest.json")
}

impl Store {
    /// The latest version of a dataset.
    pub(super) async fn latest(&self, name: &str) -> Result<Option<Latest>> {
        let content = self.get(&latest_of(name), MAX_BYTES).await?;
        content.map(|content| self.parse_latest(name, &content.bytes)).transpose()
    }

    fn parse_latest(&self, name: &str, bytes: &[u8]) -> Result<Latest> {
        let at = latest_of(name);
        let latest: Latest = serde_json::from_slice(bytes).map_err(|error| self.damage(&at, error.to_string()))?;
        match latest.layout == LAYOUT && latest.name == name && names::is_unique(&latest.version) {
            true => Ok(latest),
            false => Err(self.damage(&at, format!("it does not name a version of this dataset in layout {LAYOUT}"))),
        }
    }

    /// Makes a version the latest, or returns the later one that the store has, unless that is one that does not count any
    /// more. Of several writers at once, the one with the latest version wins.
    pub(super) async fn name_latest(&self, latest: &Latest, discounted: Option<&str>) -> Result<Option<Latest>> {
        let may_stay = |there: &[u8]| {
            let there = self.parse_latest(&latest.name, there)?;
            let is_later = there.order() > latest.order() && discounted != Some(&*there.version);
            Ok((is_later || there.version == latest.version).then_some(there))
        };
        let there = self.replace_unless(&latest_of(&latest.name), latest, may_stay).await?;
        Ok(there.filter(|there| there.version != latest.version))
    }

    /// The oldest version of a dataset that was kept when others were pruned, given a listing of it.
    pub(super) async fn pruned_before(&self, name: &str, listed: &Listing) -> Result<Option<String>> {
        let at = format!("datasets/{name}/pruned.json");
        let content = if listed.0.contains_key(&at) { self.get(&at, MAX_BYTES).await? } else { None };
        Ok(content.and_then(|content| PrunedBefore::parse(&content.bytes)).map(|note| note.before))
    }

    /// Says that the versions before one are pruned, unless more are.
    pub(super) async fn note_pruned(&self, name: &str, before: &str) -> Result<()> {
        let note = PrunedBefore { before: before.to_owned() };
        let may_stay =
            |there: &[u8]| Ok(PrunedBefore::parse(there).filter(|there| second(&there.before) >= second(before)));
        self.replace_unless(&format!("datasets/{name}/pruned.json"), &note, may_stay).await.map(drop)
    }

    /// Puts a line in place of what is there, unless that may stay: then it is returned.
    async fn replace_unless<T: Serialize>(
        &self,
        at: &str,
        line: &T,
        may_stay: impl Fn(&[u8]) -> Result<Option<T>>,
    ) -> Result<Option<T>> {
        let mut text = serde_json::to_vec(line).expect("it is text");
        text.push(b'\n');
        let text = Bytes::from(text);
        // Other machines may be faster.
        for attempt in 0..64 {
            let there = self.get(at, MAX_BYTES).await?;
            if let Some(there) = &there
                && let Some(stays) = may_stay(&there.bytes)?
            {
                return Ok(Some(stays));
            }
            if self.put(at, text.clone(), there.as_ref()).await? {
                return Ok(None);
            }
            self.pause(attempt).await?;
        }
        Err(self.later("write", at, "other machines keep replacing it"))
    }
}
