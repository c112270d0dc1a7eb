//! The archive: a folder of sealed runs, each with what it changed in all that is known.
//!
//! It is the only state. A run without a seal does not exist; a sealed run never changes and refers to no other.
//!
//! ```text
//! output/archive/
//!     run=20261120T213000Z-7f3a/
//!         signals.parquet  articles.parquet  summaries.parquet  sentiment_history.parquet     what changed
//!         listings.parquet     which request listed which series, and since when
//!         requests.parquet     a row for each request that was answered, with its unknown fields
//!         rejects.parquet      what could not be typed, with reason, place and raw text
//!         run.json             the seal: what the run was, and every file with rows, bytes and BLAKE3
//!     pack=20261120T213000Z-01c2/
//!         …                    the same files with the rows of several runs, whose seals are in `run.json`
//!     .partial/                runs and packs that are under way, or were interrupted
//!     .locks/                  a file for each definition, locked while a run of it is under way
//!     .locks/                  a file per definition, locked while a run of it is under way
//! ```
//!
//! # Rows (layout 9)
//!
//! A *series* is what one operation says of a ticker, and for signals of a period and a regime. A *cell* is one thing that
//! it says something about. A row of the four tables is an observation: what became of a cell, and when.
//!
//! | table | a cell of a series is | its values |
//! |---|---|---|
//! | `signals` | `date` | `utc_offset_minutes`, `signal`, `confidence`, `extra` |
//! | `articles` | `date`, `title`, `link`, `copy` | `place`, `score`, `utc_offset_minutes`, `repeats`, `extra` |
//! | `summaries` | the series itself | everything else, `extra` |
//! | `sentiment_history` | `record` (JSON text), `copy` | `place` |
//!
//! A row begins with its series (`ticker`, for signals `period` and `regime`, `source`: the operation) and ends with
//! `change` (`added`, `revised`, or `withdrawn`, without values) and `observed_at`, when the response was complete. Dates
//! are naive microseconds, in UTC where the service wrote an offset, which `utc_offset_minutes` keeps. `place` counts the
//! articles of a date (or records of a day) that were known before; the first listed was known last. `copy` counts cells
//! that are otherwise equal, `repeats` those of equal score; `extra` is JSON with the unknown fields. A listing's cell is
//! a `request`; a history without signals is not listed. Rows are sorted by series (periods by length), then by cell.
//!
//! # What is known
//!
//! What is known of a cell as of an instant is its row with the greatest `observed_at` that is not later, unless that is
//! `withdrawn`; of rows of one instant, the greatest by `change`, then by value. A pack repeats the rows of its members,
//! so a row counts once however many folders hold it. Any tool can ask, at any moment:
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
//! An answer covers everything from its oldest date on (for articles, whose lists may be cut off, from the day after): it
//! withdraws each cell of that span that it lacks. What is older than the span, an empty history and a missing series
//! withdraw nothing. A run is written under `.partial`, its seal last, and renamed to its place. Readers take no lock and
//! write nothing; a file is read once its length and BLAKE3 are those of its seal. Small runs are packed as they come, all
//! by `archive compact`; `archive prune` removes the members of a pack once it was found to say what they say.

mod answers;
mod fold;
mod scope;
mod sealed;
mod settle;
mod survey;
mod unfinished;
mod upkeep;
mod view;

pub use answers::answer::{AnswerRecord, Oddities};
pub use answers::draft::Draft;
pub use fold::histories::{Histories, History};
pub use scope::Scope;
pub use sealed::catalog::{Archive, SealedRun};
pub use sealed::seal::{Counts, Definition, LAYOUT, Seal};
pub use survey::{UnfinishedRun, unfinished_runs};
pub use unfinished::{Beginning, Interrupted, Unfinished};
pub use upkeep::{Plan, Removal, Verified, compact, copy, fault, prune, verify};
pub use view::{Asked, View};

const FOLDER_OF_UNFINISHED: &str = ".partial";
