//! The demo's market: five hundred companies with five years of signals, news and prices, which exist nowhere.
//!
//! [`Universe`] has the value of every cell of the service on a given day. It is a pure function of its seed and its `today`:
//! it reads no clock and stores nothing. With a later `today` it has the same past except for a small share of rewritten
//! cells, like a vendor's, and [`Universe::rewrites`] lists each of them. So tests know the expected findings.
//! [`Universe::closing_prices`] has a close of every company on each trading day, which the signals predict a little.

mod calendar;
pub mod companies;
pub mod draw;
mod headline;
mod market;
pub mod news;
pub mod prediction;
mod revision;
mod rewrites;
mod universe;

pub use market::price_schema;
pub use prediction::Prediction;
pub use rewrites::{ScoreRewrite, SignalRewrite, UniverseRewrites};
pub use universe::Universe;
