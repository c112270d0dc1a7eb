//! The service as types: its operations, its parameters, its records, its faults.
//!
//! The client decodes with these types and the built-in service answers with them, so the two cannot diverge. The types
//! add no rules to those of the interface: what it does not document, such as the bounds of a confidence or a score, is
//! not restricted. Nothing here depends on HTTP, files or time zones.

mod change_set;
mod endpoint;
mod fault;
mod history;
mod parameter;
mod sentiment;
mod ticker;

pub use change_set::{ChangeSet, HistoryKey, LatestForm, SummaryForm};
pub use endpoint::{Base, Endpoint};
pub use fault::{Location, ValidationFault, ValidationProblem};
pub use history::{BatchedHistory, HistoryEntry, IndexedSignal, LatestSignal, SectorHistory};
pub use parameter::closed_set;
pub use parameter::{Period, Regime, Sector, Signal, Unknown};
pub use sentiment::{
    ArticleReference, HistoricalSentiment, NewsArticle, Score, SentimentSummary, TrailingSummary, unsigned_zero,
};
pub use ticker::Ticker;
