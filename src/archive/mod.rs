//! The archive: a folder of sealed runs, each with its changes.
//!
//! It is the only state. A run without a seal does not exist; a sealed run never changes and refers to no other.
//!
//! ```text
//! output/archive/
//!     run=20261120T213000Z-7f3a/
//!         signals.parquet  articles.parquet  summaries.parquet  sentiment_history.parquet     what changed
//!         listings.parquet     which request listed which series, and since when
//!         requests.parquet     a row per answered request, with its unknown fields
//!         rejects.parquet      rejected records, with reason, place and raw text
//!         run.json             the seal: the run, and rows, bytes and BLAKE3 of every file
//!     pack=20261120T213000Z-01c2/
//!         …                    the same files for several runs, whose seals are in `run.json`
//!     .partial/                runs and packs in progress, or interrupted
//!     .locks/                  a file per definition, locked while a run of it is in progress
//! ```
//!
//! # Rows (layout 9)
//!
//! A *series* is what one operation returns for a ticker, and for signals for a period and regime. A *cell* is one item
//! of it: a date, an article, a summary. A row of the four tables is an observation: how a cell changed, and when.
//!
//! | table | a cell of a series is | its values |
//! |---|---|---|
//! | `signals` | `date` | `utc_offset_minutes`, `signal`, `confidence`, `extra` |
//! | `articles` | `date`, `title`, `link`, `copy` | `place`, `score`, `utc_offset_minutes`, `repeats`, `extra` |
//! | `summaries` | the series itself | everything else, `extra` |
//! | `sentiment_history` | `record` (JSON text), `copy` | `place` |
//!
//! A row starts with its series (`ticker`, for signals `period` and `regime`, `source`: the operation) and ends with
//! `change` (`added`, `revised`, or `withdrawn`, without values) and `observed_at`, when the response was complete.
//! Dates are naive microseconds, in UTC if the service wrote an offset, which `utc_offset_minutes` keeps. `place`
//! numbers the articles of a date (or records of a day) from the oldest; lists have the newest first. `copy` numbers
//! cells that are otherwise equal, `repeats` those of equal score; `extra` is JSON with the unknown fields. A listing's
//! cell is its `request`; empty histories are not listed. Rows are sorted by series (periods by length), then by cell.
//!
//! # Known values
//!
//! The known value of a cell as of an instant is its latest row by `observed_at` up to that instant, unless it is
//! `withdrawn`; rows of one instant are ordered by `change`, then by value. A pack repeats the rows of its members, so
//! identical rows count once. Any tool can query this at any time, and `bellwether sql` prints a statement that
//! computes a whole dataset from it:
//!
//! ```sql
//! select * exclude (change, newest) from (
//!     select *, row_number() over (partition by ticker, period, regime, source, date
//!                                  order by observed_at desc, change desc) as newest
//!     from read_parquet('output/archive/*=*/signals.parquet', hive_partitioning = false)
//!     where observed_at <= '2026-03-31T23:59:59Z'
//! ) where newest = 1 and change <> 'withdrawn'
//! ```
//!
//! An answer covers everything from its oldest date on (for articles, whose lists may be cut off, from the day after)
//! and withdraws each cell in that range that it lacks. Older cells, an empty history and a missing series withdraw
//! nothing. A run is written under `.partial`, its seal last, and renamed into place. Readers take no lock and write
//! nothing; a file is read once its length and BLAKE3 match the seal. Small runs are packed automatically, all by
//! `archive compact`; `archive prune` removes the members of a pack once it is verified to hold their rows.

mod answers;
pub(crate) mod coverage;
mod error;
pub(crate) mod fold;
mod lineage;
mod migrate;
pub(crate) mod scope;
mod sealed;
mod sealing;
mod services;
mod settle;
pub(crate) mod unfinished;
mod upkeep;
pub(crate) mod view;

pub use answers::answer::Oddities;
pub use sealed::catalog::{Archive, SealedRun};
pub use sealed::seal::{Counts, Definition, Joined, Migrated, Parent, Seal};
pub use services::{of_service, open_all, services};
pub use settle::Settled;
pub use unfinished::Interrupted;
pub use upkeep::{Removal, Verified};

pub(crate) use answers::answer::AnswerRecord;
pub(crate) use answers::draft::Draft;
pub(crate) use error::ArchiveError;
pub(crate) use fold::histories::{Histories, History};
pub(crate) use fold::observed::ViewOptions;
pub(crate) use lineage::missing;
pub(crate) use migrate::{
    IncomingLegacy, KEPT, Legacy, LegacyRun, LegacySeal, MigrateError, has_kept, known, migrate, migrated, pending,
    remove_kept,
};
pub(crate) use scope::Scope;
pub(crate) use sealed::answers::SeriesAnswer;
pub(crate) use sealed::listings::LISTINGS;
pub(crate) use sealed::seal::SEAL;
pub(crate) use sealing::wait_for_seal;
pub(crate) use unfinished::{NewRun, Unfinished, UnfinishedRun, abandoned_runs, remove_abandoned, unfinished_runs};
pub(crate) use upkeep::{Incoming, Pruning, compact, copy, fault, open_merged, prune, verify, wanted};
pub(crate) use view::{ArticleHistories, View};

const FOLDER_OF_UNFINISHED: &str = ".partial";
