//! The two values of a cell that are compared: as first published or as known at an instant, and as it stands.

use std::mem;
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
    /// Whether the last direction that it had is a sell, and the day on which that was first seen.
    pub(super) last_is_sell: bool,
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
                    let (latest, last_is_sell, is_new) = (Some(value), value.1, false);
                    found =
                        Some(Observed { first: value, first_seen: seen, latest, last_is_sell, turned: day, is_new });
                }
                Some(found) => {
                    if found.last_is_sell != value.1 {
                        (found.last_is_sell, found.turned) = (value.1, day);
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

impl Observed {
    /// What is known of a day with two cells, as if they were one: a vendor that writes another time of the day has taken no
    /// signal back. What was published is the one that was seen first; what stands is that one, or else the other.
    pub(super) fn join(&mut self, mut other: Self) {
        if other.is_before(self) {
            mem::swap(self, &mut other);
        }
        if self.latest.is_none()
            && let Some(latest) = other.latest
        {
            self.latest = Some(latest);
            if self.is_new {
                self.first = latest;
            }
            if self.last_is_sell != latest.1 {
                (self.last_is_sell, self.turned) = (latest.1, other.turned);
            }
        }
    }

    /// Whether it was published before another one of its day.
    pub(super) fn is_before(&self, other: &Self) -> bool {
        (self.is_new, self.first_seen) < (other.is_new, other.first_seen)
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

    #[test]
    fn two_cells_of_a_day_are_one_signal() {
        let cell = |values: &[(i64, Option<f64>)]| {
            let signed = |value: f64| (value, value < 0.0);
            let values = values.iter().map(|(day, value)| (day * MICROS_PER_DAY, value.map(signed)));
            Earlier::FirstPublished.compare(values).unwrap()
        };
        let join = |one: &[(i64, Option<f64>)], other: &[(i64, Option<f64>)]| {
            let [mut forth, mut back] = [cell(one), cell(other)];
            forth.join(cell(other));
            back.join(cell(one));
            let both = [forth, back]
                .map(|it| (it.first.0, it.first_seen / MICROS_PER_DAY, it.latest.map(|latest| latest.0), it.turned));
            assert_eq!(both[0], both[1], "the order of the cells says nothing");
            both[0]
        };
        // Dated anew on the 30th, with the same value; it had turned on the 2nd.
        let before = [(1, Some(0.7)), (2, Some(-0.7)), (30, None)];
        assert_eq!(join(&before, &[(30, Some(-0.7))]), (0.7, 1, Some(-0.7), 2));
        assert_eq!(join(&before, &[(30, Some(0.7))]), (0.7, 1, Some(0.7), 30), "it turned when it was dated anew");
        // Both are listed: the one that was published stands.
        assert_eq!(join(&[(1, Some(0.7))], &[(2, Some(-0.6))]), (0.7, 1, Some(0.7), 1));
        assert_eq!(join(&[(1, Some(0.7)), (3, None)], &[(2, Some(-0.6)), (3, None)]), (0.7, 1, None, 1));
    }
}
