//! The two values of a cell that are compared: as first published or as known at an instant, and as it stands.

use std::ops::Range;

use super::prices::Day;
use crate::audit::observed::ObservedColumns;
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
    /// What is known of a cell over time; none if it never had a direction and a confidence. Where it has none, it says no
    /// more than one that is not listed, and counts as withdrawn.
    pub(super) fn observe(self, observed: &ObservedColumns<'_>, rows: Range<usize>) -> Option<Observed> {
        self.compare(rows.map(|row| (observed.seen.value(row), signed_confidence(observed, row))))
    }

    /// Compares successive values, each with the instant from which on it was seen.
    fn compare(self, values: impl Iterator<Item = (i64, Option<(f64, bool)>)>) -> Option<Observed> {
        let mut found: Option<Observed> = None;
        let (mut before, mut last) = (None, None);
        for (seen, value) in values {
            last = value;
            if matches!(self, Self::KnownAt(instant) if seen <= instant) {
                before = value;
            }
            let Some(value) = value else { continue };
            let day = seen.div_euclid(MICROS_PER_DAY) as Day;
            match &mut found {
                None => {
                    let (latest, is_new) = (Some(value), false);
                    found = Some(Observed { first: value, first_seen: seen, latest, turned: day, is_new });
                }
                Some(found) => {
                    if found.latest.is_some_and(|(_, is_sell)| is_sell != value.1) {
                        found.turned = day;
                    }
                    found.latest = Some(value);
                }
            }
        }
        let mut found = found?;
        if let Self::KnownAt(_) = self {
            found.is_new = before.is_none();
            found.first = before.or(found.latest)?;
        }
        found.latest = last;
        Some(found)
    }
}

/// The confidence of a signal, negative for a sell, and whether it is one; none if it is withdrawn, or says neither.
fn signed_confidence(observed: &ObservedColumns<'_>, row: usize) -> Option<(f64, bool)> {
    if observed.is_withdrawn(row) {
        return None;
    }
    let value = observed.value(row);
    let is_sell = value.signal? == Signal::Sell;
    let confidence = value.number.filter(|number| number.is_finite())?;
    Some((if is_sell { -confidence } else { confidence }, is_sell))
}

#[cfg(test)]
mod tests {
    use super::Earlier;
    use crate::time::MICROS_PER_DAY;

    /// A buy or a sell, seen on a day; none has no direction any more, or is not listed.
    fn compare(earlier: Earlier, values: &[(i64, Option<f64>)]) -> Option<(f64, i64, Option<f64>, i32, bool)> {
        let signed = |value: f64| (value, value < 0.0);
        let values = values.iter().map(|(day, value)| (day * MICROS_PER_DAY, value.map(signed)));
        let found = earlier.compare(values)?;
        let first_seen = found.first_seen / MICROS_PER_DAY;
        Some((found.first.0, first_seen, found.latest.map(|latest| latest.0), found.turned, found.is_new))
    }

    #[test]
    fn a_signal_without_a_direction_is_withdrawn_and_not_forgotten() {
        let published = |values| compare(Earlier::FirstPublished, values);
        // Published as a buy, and without a direction since.
        assert_eq!(published(&[(1, Some(0.7)), (5, None)]), Some((0.7, 1, None, 1, false)));
        // It turned while it had none.
        assert_eq!(published(&[(1, Some(0.7)), (5, None), (9, Some(-0.6))]), Some((0.7, 1, Some(-0.6), 9, false)));
        // It is first published when it first has one.
        assert_eq!(published(&[(1, None), (5, Some(-0.6))]), Some((-0.6, 5, Some(-0.6), 5, false)));
        assert_eq!(published(&[(1, None), (5, None)]), None);
        // Of an instant, the value that was known then.
        let since = |day: i64, values| compare(Earlier::KnownAt(day * MICROS_PER_DAY), values);
        let values = [(1, Some(0.7)), (5, None), (9, Some(-0.6))];
        assert_eq!(since(4, &values), Some((0.7, 1, Some(-0.6), 9, false)));
        assert_eq!(since(5, &values), Some((-0.6, 1, Some(-0.6), 9, true)), "it is added since");
        assert_eq!(since(9, &values), Some((-0.6, 1, Some(-0.6), 9, false)));
        assert_eq!(since(4, &values[..2]), Some((0.7, 1, None, 1, false)), "it is removed since");
    }
}
