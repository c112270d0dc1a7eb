//! An interval of confidence.

use schemars::JsonSchema;
use serde::Serialize;

/// The confidence of every interval: 95 %.
pub const CONFIDENCE: f64 = 0.95;

/// The values that the data does not rule out, at [`CONFIDENCE`]. Both ends belong to it.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, JsonSchema)]
pub struct Interval {
    /// The smallest of them.
    pub lower: f64,
    /// The largest of them.
    pub upper: f64,
}

impl Interval {
    /// Whether the interval holds a value.
    #[must_use]
    pub fn contains(self, value: f64) -> bool {
        (self.lower..=self.upper).contains(&value)
    }
}
