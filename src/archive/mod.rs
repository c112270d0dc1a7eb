//! The archive: a folder of sealed runs, each with everything that the service said and when.
//!
//! ```text
//! output/archive/
//!     run=20261120T213000Z-7f3a/
//!         signals.parquet  articles.parquet  summaries.parquet
//!         rejects.parquet  requests.parquet
//!         run.json         the seal: versions, the definition's hash, every file with rows, bytes and checksum
//! ```
//!
//! A run is written under a hidden name and appears whole, with its seal in it; a folder without a seal is no run. A
//! sealed run never changes, and runs never touch one another. Signals are ordered by ticker, period, regime, source and
//! date, articles and summaries by ticker, so that a reader walks both ticker by ticker.

mod seal;
mod sealed;
mod writer;

pub use seal::{LAYOUT, Seal};
pub use sealed::SealedRun;
pub use writer::{Origin, RunWriter};

const SIGNALS: &str = "signals.parquet";
const ARTICLES: &str = "articles.parquet";
const SUMMARIES: &str = "summaries.parquet";
const REJECTS: &str = "rejects.parquet";
const REQUESTS: &str = "requests.parquet";
const SEAL: &str = "run.json";
