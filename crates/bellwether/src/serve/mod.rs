//! The interface of the vendor, answered from a synthetic universe, the demo service, or from an archive.
//!
//! Everything that Bellwether does can be tried and tested without a vendor: [`Universe`] has the value of every cell
//! of the service on a given day, [`Service`] answers the operations of one [`ChangeSet`](crate::interface::ChangeSet)
//! from it, and [`start`] serves that on a listener. The records are the interface's own types, so the answers match
//! what the client reads.
//!
//! Where the interface is not documented, these are the answers:
//!
//! | not documented | here |
//! |---|---|
//! | no key, wrong key | 422 that names `api_key`; 401, regardless of other problems |
//! | unknown ticker, unknown sector | 404; an empty object |
//! | unknown, repeated parameters | ignored; the last one counts |
//! | `signals-history-batched-all` | every ticker, each with its own period and regime, which depend on its symbol |
//! | `signals-history-batched` | the same; `period`, `regime` and `limit` (the newest N entries) are optional |
//! | `tickers/available` | an array of symbols |
//! | `historical_ss_data` | an array with the mean score and the number of articles of each day that has any |
//! | the legacy operations | the shapes of the current ones, the values of an older model that is no longer revised |
//! | a null date | a few (ticker, period) pairs have none, on any day |
//! | an operation that the change set does not have | 404, as for any unknown path |
//!
//! [`Universe::closing_prices`] has a close of every company on each trading day, which no operation gives.
//!
//! `/` says in words what the service is, and `/openapi.json` for other tools.
//!
//! Lists are newest first; objects are in the order of their symbols.
//!
//! [`ArchivedServices`] answer with what an archive knew at an instant, and refuse what no run had asked for.

mod answer;
mod archived;
mod description;
mod question;
mod service;

pub use archived::ArchivedServices;
pub use bellwether_demo::{Prediction, ScoreRewrite, SignalRewrite, Universe, UniverseRewrites, draw, price_schema};
pub use service::{RunningService, ServedAddresses, Service, start};
