//! Numbers of cases out of all of them.

use std::ops::AddAssign;

/// A number of cases out of all of them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Share {
    /// Number of cases where it holds.
    pub hits: u64,
    /// Number of all cases.
    pub of: u64,
}

impl Share {
    /// The share of the cases that a condition holds for.
    pub fn of(cases: impl IntoIterator<Item = bool>) -> Self {
        let mut share = Self::default();
        for holds in cases {
            share.hits += u64::from(holds);
            share.of += 1;
        }
        share
    }

    /// The share as a number; `None` without cases.
    #[must_use]
    pub fn rate(self) -> Option<f64> {
        (self.of > 0).then(|| self.hits as f64 / self.of as f64)
    }
}

impl AddAssign for Share {
    fn add_assign(&mut self, other: Self) {
        self.hits += other.hits;
        self.of += other.of;
    }
}
