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
//! | do two shares differ, although their cases repeat one another? | [`clusters`] |
//! | do two agree more often than by chance? | [`agreement`] |
//! | does a confidence of 70 % come true in 70 % of the cases? | [`calibration`] |

pub mod agreement;
pub mod calibration;
pub mod clusters;
mod cosines;
pub mod counts;
pub mod distributions;
mod eigenvalues;
mod interval;
mod isotonic;
pub mod mean;
pub mod multiple;
mod random;
pub mod ranks;
mod windows;

pub use agreement::PairedAnswers;
pub use clusters::{ClusteredShare, ShareDifference};
pub use counts::Share;
pub use interval::{CONFIDENCE, Interval};
pub use isotonic::isotonic_regression;
pub use mean::{Estimator, MeanTest, OverlappingSeries, Refusal};
pub use random::Random;
pub use ranks::{RankedCases, Ranks, rank_correlation};
pub use windows::Windows;
