//! The archive: a folder of sealed runs, each with everything that the service said and when.
//!
//! ```text
//! output/archive/
//!     run=20261120T213000Z-7f3a/
//!         signals.parquet  articles.parquet  summaries.parquet  sentiment_history.parquet
//!         rejects.parquet  requests.parquet
//!         run.json         the seal: versions, the definition's hash, every file with rows, bytes and checksum
//!     .partial/
//!         20261121T213000Z-01c2/
//!             unfinished.json     whose run it is; locked while somebody works on it
//!             answers/9f2c…/      what one answer said: Arrow files and answer.json
//! ```
//!
//! A run begins under `.partial`, where each answer becomes a folder that appears whole. An interrupted run stays there,
//! and the next run of the same definition takes it up: what was answered is not asked for again. When everything is
//! answered the run is sealed: ordered, written as Parquet, and renamed, seal and all, to its place. A folder without a
//! seal is no run; a sealed run never changes, and runs never touch one another. Signals are ordered by ticker, period,
//! regime and source, news by ticker, so that a reader walks both ticker by ticker.

mod answer;
mod draft;
mod seal;
mod sealed;
mod sealing;
mod survey;
mod unfinished;

pub use answer::AnswerRecord;
pub use draft::Draft;
pub use seal::{LAYOUT, Seal};
pub use sealed::SealedRun;
pub use survey::{UnfinishedRun, fault, sealed_runs, unfinished_runs};
pub use unfinished::{Beginning, Interrupted, Unfinished};

const FOLDER_OF_UNFINISHED: &str = ".partial";
const SIGNALS: &str = "signals.parquet";
const ARTICLES: &str = "articles.parquet";
const REJECTS: &str = "rejects.parquet";
const REQUESTS: &str = "requests.parquet";
const SEAL: &str = "run.json";
