//! The JSON form of facts, stored beside a dataset so that a version that reuses another one's files does not count
//! again. Days are text.

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

/// A list of days.
pub(super) mod days {
    use chrono::NaiveDate;
    use serde::{Deserialize, Deserializer, Serializer, de};

    pub(crate) fn serialize<S: Serializer>(days: &[NaiveDate], serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_seq(days.iter().map(NaiveDate::to_string))
    }

    pub(crate) fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Vec<NaiveDate>, D::Error> {
        let texts = Vec::<String>::deserialize(deserializer)?;
        texts.iter().map(|text| text.parse().map_err(de::Error::custom)).collect()
    }
}

/// Days with their rows.
pub(super) mod rows_by_day {
    use chrono::NaiveDate;
    use serde::{Deserialize, Deserializer, Serializer, de};

    pub(crate) fn serialize<S: Serializer>(rows: &[(NaiveDate, u32)], serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_seq(rows.iter().map(|(day, rows)| (day.to_string(), rows)))
    }

    pub(crate) fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Vec<(NaiveDate, u32)>, D::Error> {
        let texts = Vec::<(String, u32)>::deserialize(deserializer)?;
        texts.iter().map(|(day, rows)| Ok((day.parse().map_err(de::Error::custom)?, *rows))).collect()
    }
}

/// A day.
pub(super) mod day {
    use chrono::NaiveDate;
    use serde::{Deserialize, Deserializer, Serializer, de};

    pub(crate) fn serialize<S: Serializer>(day: &NaiveDate, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(day)
    }

    pub(crate) fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<NaiveDate, D::Error> {
        String::deserialize(deserializer)?.parse().map_err(de::Error::custom)
    }
}

/// Counts per day.
pub(super) mod count_by_day {
    use std::collections::BTreeMap;

    use chrono::NaiveDate;
    use serde::{Deserialize, Deserializer, Serializer, de};

    pub(crate) fn serialize<S: Serializer>(days: &BTreeMap<NaiveDate, u64>, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_seq(days.iter().map(|(day, count)| (day.to_string(), count)))
    }

    pub(crate) fn deserialize<'de, D: Deserializer<'de>>(
        deserializer: D,
    ) -> Result<BTreeMap<NaiveDate, u64>, D::Error> {
        let texts = Vec::<(String, u64)>::deserialize(deserializer)?;
        texts.iter().map(|(day, count)| Ok((day.parse().map_err(de::Error::custom)?, *count))).collect()
    }
}
