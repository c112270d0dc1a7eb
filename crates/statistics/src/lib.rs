//! The statistics by which signals are judged.
//!
//! Numbers in, plain structs out: nothing here knows what a signal, a price or an archive is. Every result names how it
//! was computed and what it rests on. What cannot be computed is `None` or a [`Refusal`], never zero. Nothing depends
//! on the order of a hash or on an unseeded generator: the same input gives the same bytes.
//!
//! | question | module |
//! |---|---|
//! | does one column order names as another does? | [`ranks`] |
//! | is a mean different from zero, although the horizons of its values overlap? | [`mean`] |
//! | how much of the best of many is luck? | [`multiple`] |
//! | do two shares differ, although their cases repeat one another? do two agree more often than by chance? | [`shares`] |
//! | does a confidence of 70 % come true in 70 % of the cases? | [`calibration`] |

pub mod calibration;
pub mod distributions;
pub mod mean;
pub mod multiple;
mod random;
pub mod ranks;
pub mod shares;

pub use calibration::isotonic_regression;
pub use mean::{Estimator, MeanTest, OverlappingSeries, Refusal, Windows};
pub use random::Random;
pub use ranks::{RankedCases, Ranks, rank_correlation};
pub use shares::{ClusteredShare, PairedAnswers, Share, ShareDifference};

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
