//! Which runs count: those that were sealed by an instant.

use std::collections::BTreeSet;
use std::sync::Arc;

use arrow::array::{AsArray, BooleanArray, RecordBatch};
use arrow::compute::filter_record_batch;
use arrow::datatypes::TimestampMicrosecondType;
use arrow::error::ArrowError;
use chrono::{DateTime, Utc};

use super::seal::Seal;

/// The column of every file that says when the run that a row counts from was sealed. It is the last one.
pub(in crate::archive) const SEALED_AT: &str = "sealed_at";

/// The runs that count.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Horizon {
    as_of: DateTime<Utc>,
    /// When runs were sealed that do not count although they were sealed by then.
    without: Arc<BTreeSet<i64>>,
}

/// How many of a folder's rows count.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::archive) enum CountedShare {
    None,
    Some,
    All,
}

impl Horizon {
    /// The runs sealed by an instant.
    pub(in crate::archive) fn at(as_of: DateTime<Utc>) -> Self {
        Self { as_of, without: Arc::default() }
    }

    /// The same, without runs sealed at some instants.
    pub(in crate::archive) fn without(self, sealed: BTreeSet<i64>) -> Self {
        Self { without: Arc::new(self.without.iter().copied().chain(sealed).collect()), ..self }
    }

    /// When runs were sealed that do not count although they were sealed by then, in microseconds since 1970.
    pub(crate) fn left_out(&self) -> impl Iterator<Item = i64> {
        self.without.iter().copied()
    }

    /// The instant.
    pub(in crate::archive) fn as_of(&self) -> DateTime<Utc> {
        self.as_of
    }

    /// Whether a run counts that was sealed at an instant.
    pub(in crate::archive) fn holds(&self, sealed_at: DateTime<Utc>) -> bool {
        sealed_at <= self.as_of && !self.without.contains(&sealed_at.timestamp_micros())
    }

    /// How many rows of a folder count.
    pub(in crate::archive) fn share(&self, seal: &Seal) -> CountedShare {
        let (first, last) = seal.seal_times();
        let is_without = || self.without.range(first.timestamp_micros()..=last.timestamp_micros()).next().is_some();
        match (first > self.as_of, last > self.as_of || is_without()) {
            (true, _) => CountedShare::None,
            (false, false) => CountedShare::All,
            (false, true) if first == last => CountedShare::None,
            (false, true) => CountedShare::Some,
        }
    }

    /// The rows that count, without the column that says so.
    pub(in crate::archive) fn rows(&self, rows: &RecordBatch) -> Result<RecordBatch, ArrowError> {
        let last = rows.num_columns() - 1;
        let sealed = rows.column(last).as_primitive::<TimestampMicrosecondType>();
        let as_of = self.as_of.timestamp_micros();
        let holds = |sealed: &i64| *sealed <= as_of && !self.without.contains(sealed);
        let kept: BooleanArray = sealed.values().iter().map(|sealed| Some(holds(sealed))).collect();
        filter_record_batch(&rows.project(&Vec::from_iter(0..last))?, &kept)
    }
}
