//! The two values of a cell that are compared: as first published or as known at an instant, and as it stands.

use std::ops::Range;

use super::prices::Day;
use crate::audit::observed::{ObservedColumns, Value};
use crate::interface::Signal;
use crate::time::MICROS_PER_DAY;

/// What the latest value of a cell is compared with.
#[derive(Clone, Copy, Debug)]
pub(super) enum Earlier {
    /// Its first value.
    FirstPublished,
    /// The value that was known at an instant, in microseconds.
    KnownAt(i64),
}

/// What is known of a cell over time.
pub(super) struct Observed {
    /// The earlier value; the latest one if there was none.
    pub(super) first: (f64, bool),
    /// When it was first seen.
    pub(super) first_seen: i64,
    /// The latest value; none if it is no longer listed.
    pub(super) latest: Option<(f64, bool)>,
    /// The day on which its latest direction was first seen.
    pub(super) turned: Day,
    /// Whether there was no earlier value.
    pub(super) is_new: bool,
}

impl Earlier {
    /// What is known of a cell over time; none if one of its values has no direction or confidence.
    pub(super) fn observe(self, observed: &ObservedColumns<'_>, rows: Range<usize>) -> Option<Observed> {
        let is_withdrawn = |row: usize| observed.is_withdrawn(row);
        let last = rows.end - 1;
        let mut listed = rows.clone().filter(|row| !is_withdrawn(*row));
        let first_row = listed.next()?;
        let (mut first, first_seen) = (signed(observed.value(first_row))?, observed.seen.value(first_row));
        let (mut latest, mut turned) = (first, first_seen);
        for row in listed {
            let value = signed(observed.value(row))?;
            if value.1 != latest.1 {
                turned = observed.seen.value(row);
            }
            latest = value;
        }
        let mut is_new = false;
        if let Self::KnownAt(instant) = self {
            let then = rows.rev().find(|row| observed.seen.value(*row) <= instant).filter(|row| !is_withdrawn(*row));
            is_new = then.is_none();
            first = then.map_or(Some(latest), |row| signed(observed.value(row)))?;
        }
        let turned = turned.div_euclid(MICROS_PER_DAY) as Day;
        Some(Observed { first, first_seen, latest: (!is_withdrawn(last)).then_some(latest), turned, is_new })
    }
}

/// The confidence of a signal, negative for a sell, and whether it is one.
fn signed(value: Value) -> Option<(f64, bool)> {
    let is_sell = value.signal? == Signal::Sell;
    let confidence = value.number.filter(|number| number.is_finite())?;
    Some((if is_sell { -confidence } else { confidence }, is_sell))
}
