//! `latest.json`: the file that names the latest version of a dataset, since a store has no links.

use chrono::{DateTime, Utc};
use serde::{Deserialize, Serialize};

use super::objects::{Created, Store};
use crate::disk::names;
use crate::error::Result;
use crate::time::as_record;

/// Version of the file's layout.
const LAYOUT: u32 = 1;

/// The largest file that is read: it has a line.
const MOST_BYTES: u64 = 64 << 10;

/// The most attempts to replace the file while other writers are faster.
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

impl Store {
    fn at(name: &str) -> String {
        format!("datasets/{name}/latest.json")
    }

    /// The latest version of a dataset.
    pub(crate) async fn latest(&self, name: &str) -> Result<Option<Latest>> {
        match self.get(&Self::at(name), MOST_BYTES).await? {
            Some(content) => self.parse(name, &content.bytes).map(Some),
            None => Ok(None),
        }
    }

    fn parse(&self, name: &str, bytes: &[u8]) -> Result<Latest> {
        let damaged = |reason: String| self.damage(&Self::at(name), reason);
        let latest: Latest = serde_json::from_slice(bytes).map_err(|error| damaged(error.to_string()))?;
        if latest.layout != LAYOUT {
            let reason = format!("it has layout {}; this version reads layout {LAYOUT}", latest.layout);
            return Err(damaged(reason).into());
        }
        match latest.name == name && names::is_unique(&latest.version) {
            true => Ok(latest),
            false => Err(damaged("it does not name a version of this dataset".to_owned()).into()),
        }
    }

    /// Makes a version the latest, or returns the later one that the store has, unless that is one that does not count any
    /// more. Of several writers at once, the one with the latest version wins.
    pub(crate) async fn name_latest(&self, latest: &Latest, discounted: Option<&str>) -> Result<Option<Latest>> {
        let at = Self::at(&latest.name);
        let mut text = serde_json::to_vec(latest).expect("it is text");
        text.push(b'\n');
        for attempt in 0..ATTEMPTS {
            let Some(content) = self.get(&at, MOST_BYTES).await? else {
                match self.create(&at, text.clone().into()).await? {
                    Created::Ours => return Ok(None),
                    Created::Another => continue,
                }
            };
            let there = self.parse(&latest.name, &content.bytes)?;
            if there.version == latest.version {
                return Ok(None);
            }
            if there.order() > latest.order() && discounted != Some(&*there.version) {
                return Ok(Some(there));
            }
            if self.replace(&at, text.clone().into(), &content).await? {
                return Ok(None);
            }
            self.pause(attempt).await?;
        }
        Err(self.later("write", &at, "other machines keep replacing it").into())
    }
}
