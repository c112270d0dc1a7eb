//! The archive: a folder of sealed runs, each with what it changed in all that is known.
//!
//! LAYOUT GOES HERE

mod answer;
mod by_ticker;
mod cells;
mod compacting;
mod draft;
mod fingerprint;
mod index;
mod keys;
mod listings;
mod merged;
mod past;
mod quarter;
mod remembered;
mod rowfile;
mod seal;
mod sealing;
mod settling;
mod spool;
mod survey;
mod tables;
mod unfinished;
mod verifying;
mod view;

pub use answer::AnswerRecord;
pub use compacting::{compact, prune};
pub use draft::Draft;
pub use index::{Archive, SealedRun};
pub use seal::{Counts, Definition, LAYOUT, Seal};
pub use survey::{UnfinishedRun, unfinished_runs};
pub use unfinished::{Beginning, Interrupted, Unfinished};
pub use verifying::{Verified, fault, verify};
pub use view::{Asked, Scope, View, Vintage};

const FOLDER_OF_UNFINISHED: &str = ".partial";
const REJECTS: &str = "rejects.parquet";
const REQUESTS: &str = "requests.parquet";
