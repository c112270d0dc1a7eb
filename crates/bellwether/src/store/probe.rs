//! Detects stores that do not honour conditional puts, before anything depends on them.

use bytes::Bytes;
use object_store::ObjectStoreExt;

use super::fault::{is_full, is_refusal, reason};
use super::objects::{MAX_BYTES, Store};
use crate::error::Result;
use crate::time::skew::Skew;
use crate::time::{Clock, random};

/// The prefix of the keys of probes.
pub(super) const PROBE: &str = "datasets/.probe-";

impl Store {
    /// Tests that the store refuses to create an object that exists, and to replace one that has changed since it was read.
    /// Returns how far its clock is from this machine's.
    pub(crate) async fn probe(&self) -> Result<Skew> {
        let at = format!("{PROBE}{:016x}", random());
        let tested = self.test(&at).await;
        // A probe that is left behind is cleared after a day.
        let _ = self.in_turn(self.objects.delete(&self.key(&at)?)).await?;
        tested
    }

    async fn test(&self, at: &str) -> Result<Skew> {
        let [first, second, third, fourth] = [b"1", b"2", b"3", b"4"].map(|text| Bytes::from_static(text));
        let begun = Clock::System.now();
        if !self.create(at, first.clone()).await? {
            return Err(self.unconditional("an object that was just written has another content"));
        }
        let put = self.put_if(at, second, None);
        let overwrote = "it overwrote an object on condition that there is none";
        match self.in_turn(put).await? {
            Ok(_) => return Err(self.unconditional(overwrote)),
            Err(fault) if is_refusal(&fault) => return Err(self.failure("write", at, &fault)),
            Err(_) => {}
        }
        let known = match self.get(at, MAX_BYTES).await? {
            Some(content) if content.bytes == first => content,
            _ => return Err(self.unconditional(overwrote)),
        };
        let skew = Skew::between((begun, Clock::System.now()), known.changed);
        match self.in_turn(self.put_if(at, third.clone(), Some(&known))).await? {
            Ok(()) => {}
            Err(fault) if is_full(&fault) => return Err(self.failure("write", at, &fault)),
            Err(fault) if is_refusal(&fault) => {
                return Err(
                    self.unconditional(format!("it did not replace an object that is unchanged: {}", reason(&fault)))
                );
            }
            Err(_) if self.replace(at, third.clone(), &known).await? => {}
            Err(_) => return Err(self.unconditional("it did not replace an object that is unchanged")),
        }
        let put = self.in_turn(self.put_if(at, fourth, Some(&known))).await?;
        let now = self.get(at, MAX_BYTES).await?.map(|content| content.bytes);
        match put.is_err() && now == Some(third) {
            true => Ok(skew),
            false => Err(self.unconditional("it replaced an object on condition that it is unchanged, and it was not")),
        }
    }
}
