//! The service's own interface, answered from a demo universe.
//!
//! Everything that Bellwether does can be tried and tested without a vendor: [`Universe`] knows what every cell of the
//! service holds on a given day, [`Service`] answers the operations of one [`ChangeSet`](crate::interface::ChangeSet)
//! from it, and [`start`] puts that on a listener. The records are the interface's own types, so the answers cannot
//! drift from what the client reads.
//!
//! The universe is a pure function of its seed and its `today`: no clock is read, nothing is stored, nothing is random.
//! A universe of a later `today` has the same past but for a small share of rewritten cells, as a vendor's would, and
//! [`Universe::rewrites`] names each of them. So a test knows the truth that the program has to find.
//!
//! Where the interface is silent, these are the answers:
//!
//! | not shown | here |
//! |---|---|
//! | no key, wrong key | 422 that names `api_key`; 401, whatever else is wrong with the request |
//! | unknown ticker, unknown sector | 404; an empty object |
//! | unknown, repeated parameters | ignored; the last one counts |
//! | `signals-history-batched-all` | every ticker, each with a period and a regime of its own, decided by its symbol |
//! | `signals-history-batched` | the same; `period`, `regime` and `limit` (the newest N entries) are optional |
//! | `tickers/available` | an array of symbols |
//! | `historical_ss_data` | an array with the mean score and the number of articles of each day that has any |
//! | the legacy operations | the shapes of their siblings, the values of an older model that is no longer revised |
//! | a null date | a few (ticker, period) pairs have none, whatever the day |
//! | an operation that the change set does not have | 404, as for a path that never was |
//!
//! Lists are newest first; objects are in the order of their symbols.

mod answer;
mod calendar;
mod companies;
pub(crate) mod draw;
mod headline;
mod key;
mod mood;
mod news;
mod prediction;
mod question;
mod refusal;
mod revision;
mod rewrites;
mod server;
mod service;
mod universe;

pub use prediction::Prediction;
pub use rewrites::{Rewrites, ScoreRewrite, SignalRewrite};
pub use server::{Running, start};
pub use service::Service;
pub use universe::Universe;
