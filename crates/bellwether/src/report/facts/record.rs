//! The JSON form of facts, stored beside a dataset so that a version that reuses another one's files does not count
//! again.

use super::{Facts, SignalTotals};
use crate::error::Reason;

impl Facts {
    /// The facts as JSON.
    pub fn to_json(&self) -> Vec<u8> {
        let mut text = serde_json::to_vec(self).expect("facts are text and numbers");
        text.push(b'\n');
        text
    }

    /// Facts from JSON.
    ///
    /// # Errors
    ///
    /// If the text is not the JSON of facts.
    pub fn from_json(text: &[u8]) -> Result<Self, Reason> {
        Ok(serde_json::from_slice(text)?)
    }
}

impl From<SignalTotals> for (u64, u64, f64) {
    fn from(totals: SignalTotals) -> Self {
        (totals.rows, totals.buys, totals.confidence)
    }
}

impl From<(u64, u64, f64)> for SignalTotals {
    fn from((rows, buys, confidence): (u64, u64, f64)) -> Self {
        Self { rows, buys, confidence }
    }
}

/// Counts per day, as a list of pairs.
pub(super) mod count_by_day {
    use std::collections::BTreeMap;

    use chrono::NaiveDate;
    use serde::{Deserialize, Deserializer, Serializer};

    pub(crate) fn serialize<S: Serializer>(days: &BTreeMap<NaiveDate, u64>, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_seq(days)
    }

    pub(crate) fn deserialize<'de, D: Deserializer<'de>>(
        deserializer: D,
    ) -> Result<BTreeMap<NaiveDate, u64>, D::Error> {
        Ok(Vec::deserialize(deserializer)?.into_iter().collect())
    }
}
