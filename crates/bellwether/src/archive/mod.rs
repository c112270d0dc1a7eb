//! The archive: a folder per service, of sealed runs, each with its changes.
//!
//! It is the only state. A run without a seal does not exist, a sealed run never changes, and services never meet.
//!
//! ```text
//! output/archive/
//!     acme/                        a service: `name` in `[source]`, or made from its address
//!         run=20261120T213000Z-7f3a/
//!             signals.parquet  articles.parquet  summaries.parquet  sentiment_history.parquet     what changed
//!             listings.parquet     which request listed which series, and since when
//!             answers.parquet      a row per series in an answer: the request, its cells, the dates that it covers
//!             requests.parquet     a row per answered request, with its unknown fields
//!             rejects.parquet      rejected records, with reason, place and raw text
//!             run.json             the seal: the run, its basis, and rows, bytes and BLAKE3 of every file
//!         merge=20261120T213000Z-5e0d/    the same files: what histories that met must say of one another
//!         pack=20261120T213000Z-01c2/     the same files for several runs, whose seals are in `run.json`
//!         forgotten=20261120T213000Z-7f3a/    a note in `run.json`: that run does not count, and why
//!         .partial/                runs and packs in progress, or interrupted
//!         .locks/.seal             locked while a run is sealed
//!     acme.claimed/                what was imported from earlier downloads: the same folders, which only who asks for claims reads
//!         joined/                  merges of claims and runs
//!     .locks/                      a file per definition, locked while it runs
//! ```
//!
//! # Rows (layout 10)
//!
//! A *series* is what the service says of a ticker, for signals of a period and regime, whichever operation said it. A
//! *cell* is one item of it: a date, an article, a summary. A row is an observation: how a cell changed, and when.
//!
//! | table | a cell of a series is | its values (*optional*) |
//! |---|---|---|
//! | `signals` | `date` | *`utc_offset_minutes`*, `signal`, `confidence`, `extra` |
//! | `articles` | `date`, `title`, `link`, `copy` | `place`, `score`, *`utc_offset_minutes`*, `repeats`, `extra` |
//! | `summaries` | the series itself | *dates* and *summaries*, everything else, `extra` |
//! | `sentiment_history` | `record` (JSON text), `copy` | `place` |
//!
//! A row starts with its series (`ticker`, for signals `period` and `regime`) and ends with `source` (the operation),
//! `change` (`added`, `revised`, or `withdrawn`, without values), `observed_at`, when the response was complete, and
//! `sealed_at`, when the run was sealed that it counts from. Only some forms of an answer have the *optional* values:
//! null says nothing, so it differs from no other value. A revised row keeps what was known and the answer does not say;
//! an offset that comes later is stored with the next revision.
//!
//! Dates are naive microseconds, in UTC if the service wrote an offset, which `utc_offset_minutes` keeps. `place`
//! numbers the articles of a date (or records of a day) from the oldest; lists have the newest first, and if one begins
//! within a date, its places there continue the highest known ones. `copy` numbers cells that are otherwise equal, and
//! there continues those with the same scores; `repeats` numbers those of equal score; `extra` is JSON with the unknown fields. A listing's cell is its `request`; empty
//! histories are not listed. Rows are sorted by series (periods by length), then by cell.
//!
//! # Known values
//!
//! As of an instant, a run counts if it was sealed by then. The known value of a cell is its latest row by
//! `observed_at` among those that count, unless it is `withdrawn`; of rows of one instant the last by `change`, then by
//! value, counts. A pack repeats the rows of its members, so identical rows count once. Those of a forgotten run, which its
//! `sealed_at` tells, do not count. Any tool can query this at any time, and `bellwether sql` prints a statement that
//! computes a whole dataset from it, without forgotten runs:
//!
//! ```sql
//! select * exclude (change, sealed_at, newest) from (
//!     select *, row_number() over (partition by ticker, period, regime, date
//!                                  order by observed_at desc, change desc) as newest
//!     from read_parquet('output/archive/acme/*=*/signals.parquet', hive_partitioning = false, union_by_name = true)
//!     where sealed_at <= '2026-03-31T23:59:59Z'
//! ) where newest = 1 and change <> 'withdrawn'
//! ```
//!
//! An answer covers everything from its oldest date on (for articles, whose lists may be cut off, from the day after;
//! for a latest signal, its own date; for records of historical sentiment, the dates that they say) and withdraws each
//! cell in that range that it lacks, or has only as a rejected record. Older cells, an empty history and a missing series
//! withdraw nothing. An answer that changes nothing has a row in `answers.parquet` alone. Its
//! `edge` says which articles of its oldest date a list had, from the oldest: 8 digits each of the BLAKE3 of title, link and
//! copy on a line each.
//!
//! # Seals and histories
//!
//! `run.json` has the `layout`, the `run`, its `service` (name and addresses), the version of `bellwether`, the
//! `definition` (name and BLAKE3), `started_at`, `sealed_at`, the `basis`, runs that it went on without (`lost`), the
//! `operations` that answered, the number of `changes`, unknown fields (`drift`), `files`, and its own BLAKE3 (`seal`).
//! A pack has `members`, a merge `joins`, an imported run when and from which files (`claimed`).
//!
//! One run is sealed at a time, later than every run that it knows. Its `basis` names the heads, with their seals: the
//! runs known then that no other one knew. So it names its whole past, and a run that is gone is missed. Runs of
//! machines that had not met do not know each other, and each holds differences from its own past alone. The first
//! command that sees both writes a merge: the answers that would read differently after the other's rows, stated again
//! at their own `observed_at`, with the later `sealed_at` of the two. A merge depends on nothing but its runs, so every
//! machine writes the same bytes; one that joins all runs of another replaces it. The query reads it like a run. Where
//! machines saw the same value, a row repeats the one before. The query takes the last of such rows, but `build` and
//! `sql` the first, since the value is known from then on: they differ in `observed_at`, `source` and optional values.
//!
//! So the seals of the heads stand for every run, forgotten ones included, and so does the SHA-256 of a text that names them: a
//! line `bellwether archive SERVICE`, and one `run NAME SEAL` for each head, by name.
//!
//! A run is written under `.partial`, its seal last, and renamed into place. A file is read once its length and BLAKE3
//! match the seal. Readers write nothing but merges. Small runs are packed automatically; `prune`
//! removes the members of a pack once it is verified to hold their rows.
//!
//! Other layouts are refused. `sealed/layout.txt` lists every column, and the fields of a seal. A column may be added to a
//! layout if its null says nothing (*optional*): readers fill in null where an earlier run lacks it.

mod answers;
pub(crate) mod coverage;
mod error;
pub(crate) mod fold;
mod forget;
mod forgotten;
mod import;
mod lineage;
mod listing;
mod sealed;
mod services;
mod settle;
mod tickers;
mod unfinished;
mod upkeep;
mod view;
mod watched;

pub use answers::Oddities;
pub use forgotten::{ForgetReason, Forgetting, ForgottenCause, ForgottenRun};
pub use import::{ImportOptions, Imported, import};
pub use listing::{LeftOut, ListedRun, Past, RejectGroup, RunDetails, RunListing};
pub use sealed::catalog::Archive;
pub(crate) use sealed::catalog::claims_of;
pub use sealed::seal::{Claim, ClaimedFile, Counts, DefinitionRecord, Joined, Parent, Seal};
pub(crate) use sealed::sealed_run::AnsweredRequest;
pub use sealed::sealed_run::SealedRun;
pub use services::{folders, of_service, open_all, services};
pub(crate) use settle::SealedAs;
pub use settle::Settled;
pub use unfinished::{Interrupted, UnfinishedRun};
pub use upkeep::Removal;

// For tests and benchmarks, and no part of the interface.
#[doc(hidden)]
pub use unfinished::{NewRun, Unfinished};
#[doc(hidden)]
pub use upkeep::open_merged;
#[doc(hidden)]
pub use view::{Scope, View};

pub(crate) use answers::AnswerRecord;
pub(crate) use coverage::Coverage;
pub(crate) use error::{
    lost_runs, merge_failed, no_archive, no_data, no_runs, some_names, too_early, unknown_run, unwatched,
};
pub(crate) use fold::histories::{Histories, History, StoredObservations};
pub(crate) use fold::order::Groups;
pub(crate) use forget::forget;
pub(crate) use lineage::contradictions;
pub(crate) use sealed::answers::{ANSWERS, LISTINGS, SeriesAnswer};
pub(crate) use sealed::seal::SEAL;
pub(crate) use tickers::SeriesReader;
pub(crate) use unfinished::{SEALING_LOCK, SKEW, abandoned_runs, remove_abandoned, unfinished_runs, wait_for_seal};
#[cfg(feature = "harness")]
pub(crate) use upkeep::pack_most;
pub(crate) use upkeep::{
    HiddenFolder, Inspected, Pruning, check_contained, copy, difference, missing_folders, open_merged_with, prune,
    verify_rows, with_source,
};
pub(crate) use view::watches;

pub(crate) const FOLDER_OF_UNFINISHED: &str = ".partial";
