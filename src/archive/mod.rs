//! The archive: a folder of sealed runs, each with what it changed in all that is known.
//!
//! It is the only state that there is. A run without a seal does not exist, a sealed run never changes, and runs never
//! touch one another. Any tool reads it as it stands: `read_parquet('output/archive/run=*/signals.parquet')`.
//!
//! ```text
//! output/archive/
//!     run=20261120T213000Z-7f3a/
//!         signals.parquet  articles.parquet  summaries.parquet  sentiment_history.parquet     what changed
//!         listings.parquet     which request was answered with which series, and since when
//!         series.parquet       the fingerprints of each series as this run left it
//!         rejects.parquet      what could not be typed, with reason, place and raw text
//!         requests.parquet     a row for each request that was answered, with the fields that nobody knows
//!         bundle-*.parquet     of a few runs: what it and the runs right before it changed, once more
//!         run.json             the seal: versions, the definition's hash, every file with rows, bytes and checksum
//!     .partial/
//!         20261121T213000Z-01c2/
//!             unfinished.json     whose run it is; locked while somebody works on it
//!             0.answers           what answers said, one after another; a few such files
//!             answers.jsonl       a line for each answer that is complete: what it is, and where its rows stand
//! ```
//!
//! # A run's way
//!
//! A run begins under `.partial`, where each answer is complete with its line, which is written last. An interrupted run
//! stays there, and the next run of the same definition takes it up: what was answered is not asked for again. When everything is
//! answered, each series is held against the fingerprints that the runs before it left, and what changed is written down.
//! The seal is written last, and the folder is renamed to its place. Names that begin with a dot are nobody's business.
//!
//! # Observations (layout 9)
//!
//! A *series* is what one operation says of one ticker, and of one period and regime where it is of signals. A *cell* is
//! one thing that it says something of. A row of the four tables is an observation: what became of a cell, and when.
//!
//! | table | a cell of a series is | what is said of it |
//! |---|---|---|
//! | `signals` | `date` | `utc_offset_minutes`, `signal`, `confidence`, `extra` |
//! | `articles` | `date`, `title`, `link`, `copy` | `place`, `score`, `extra` |
//! | `summaries` | the series itself | everything else, `extra` |
//! | `sentiment_history` | `record` (JSON text), `copy` | that it is there |
//!
//! Before these stand the columns that name the series, `ticker`, `period` and `regime` (of signals) and `source`, which
//! is the operation. After them stand `change` and `observed_at`. Names that repeat and closed sets are dictionaries;
//! `date` and other dates are microseconds without a zone, `observed_at` is microseconds in UTC.
//!
//! - `date` is the instant in UTC where the service wrote an offset, which `utc_offset_minutes` keeps, and as written
//!   where it wrote none. It is null in a latest signal that has no date.
//! - `place` counts the articles of a date that were known before this one: of those of one date the service lists the
//!   last one known first. `copy` counts articles with the same date, title and link, and records with the same text.
//! - `extra` holds fields that nobody knows as a JSON object, where a definition keeps them.
//! - `change` is `added`, `revised` or `withdrawn`; nothing is said of a cell that is withdrawn, but that it was.
//! - `observed_at` is when the response that said it was complete.
//!
//! Only changes are stored. So what is known as of an instant is, for each cell, the row with the greatest `observed_at`
//! that is not after it, unless that row is `withdrawn`; of rows of one instant the one of the run that was sealed last.
//! The value before a revision is the row before it. [`View`] is this filter and fold.
//!
//! A response covers everything from its oldest date on: a cell of that span which it does not have is withdrawn, and a
//! window that slides forward withdraws nothing. Of articles, whose lists may be cut off at a number, the oldest date
//! itself is not covered. An empty history covers nothing, and a series that is missing altogether loses no cell: that is
//! in `listings`, whose rows say with `added` that the answer to a `request` began to have a series, and with
//! `withdrawn` that it no longer has it.
//!
//! Rows are ordered by ticker, period (shortest first), regime and source (each in the order of its dictionary), then by
//! cell and instant; articles of one date may also stand in the order of their answer. Row groups are small and have statistics, so one ticker is read without the others.
//!
//! # Fingerprints
//!
//! `series.parquet` has a row for each calendar quarter of each series, named by its first day in `quarter`, and one for
//! the cells without a date, where `quarter` is null. `rows` counts the cells that are known and not withdrawn, `digest`
//! is the first 16 bytes of a BLAKE3 over them, and `runs` names the runs whose observations they follow from. The row
//! without a quarter has the `requests` whose last answers listed the series.
//!
//! The digest is taken over the cells of the quarter in order, of articles by date and place. The columns of the table
//! above, the cell's first, follow one another. Of a column that may be null: a byte, 0 where there is no value and 1
//! where each row has one; else a 2, and a byte for each row, 1 where there is a value. Then the values that there are,
//! numbers with their lowest bytes first:
//!
//! - timestamps: a byte, 1 where each is the beginning of a day after the one before it and within 128 days from the
//!   first, then the days since 1970 of the first in four bytes, and the days that there are in 16: bit `n` of the number
//!   is set where day `n` from the first is one; else a 0, and the eight bytes of each;
//! - real numbers: a byte, 1 where each is the number nearest to so many ten-thousandths, from -32768 to 32767, and these
//!   in two bytes each; else a 0, and the eight bytes of each;
//! - `signal`: how many different ones there are in a byte, these as texts in the order in which they first stand, and
//!   the place of each row's among them: in a bit where there are two at most, eight in a byte, the first in its lowest
//!   bit; else in a byte;
//! - integers: a byte, 1 where all are the same, and the bytes of one; else a 0, and the bytes of each;
//! - a text: the number of its bytes in four bytes, and its bytes in UTF-8.
//!
//! Those that may be null are `date` of signals, `utc_offset_minutes`, `score`, `extra`, and all of a summary. Where there
//! are no rows the digest is zeros, and it is null where runs that were made at once disagree, until a later run has
//! looked.
//!
//! A file lists all series, or those rows alone that were touched since the run which the seal names in `since`; and so
//! may that run's file, since a run before it. As a rule it has half the rows of that one at most: a few files say
//! all that is remembered, however many runs there are. Of a row that several list the newest counts. Equal digests
//! prove, without reading an observation, that a quarter is as it was; a quarter that begins as it was has new rows; any
//! other is read back, from the runs that its row names.
//!
//! # Bundles
//!
//! A daily run finds little, and a year has hundreds of them. A run that comes after 32 that found little, and that are in
//! no bundle yet, bundles them: `bundle-signals.parquet` has the rows of their `signals.parquet` and of its own in one
//! order, and so for each table. Readers that want all of these runs may read the bundle in their stead, and do here. So
//! the files that are read follow the rows that there are, and not the number of runs. From the next run on, `runs` of
//! `series.parquet` names the bundling run where rows of any run in its bundle are meant.
//!
//! # The seal
//!
//! `run.json` names in `files` every other file with its rows, bytes and BLAKE3, in `after` the runs that came before it,
//! in `replaces` those whose place it takes, which nobody reads any more, and in `bundles` the runs that are in its bundle,
//! itself among them. `seal` is the BLAKE3 of the file's own text with 64 zeros in its place. A file that is not as its
//! seal says is never read.
//!
//! Runs may be made at once, by one machine or many. None waits for another: the next run goes on from both.

mod answer;
mod bundle;
mod by_ticker;
mod cells;
mod compacting;
mod draft;
mod fingerprint;
mod histories;
mod index;
mod keys;
mod lanes;
mod levels;
mod listings;
mod logbook;
mod members;
mod merged;
mod order;
mod packed;
mod past;
mod quarter;
mod remembered;
mod rowfile;
#[cfg(test)]
mod samples;
mod seal;
mod sealing;
mod settling;
mod source;
mod spool;
mod survey;
mod tables;
mod unfinished;
mod verifying;
mod view;

pub use answer::{AnswerRecord, Oddities};
pub use compacting::{compact, prune};
pub use draft::Draft;
pub use histories::{Histories, History};
pub use index::{Archive, SealedRun};
pub use seal::{Counts, Definition, LAYOUT, Seal};
pub use survey::{UnfinishedRun, unfinished_runs};
pub use unfinished::{Beginning, Interrupted, Unfinished};
pub use verifying::{Verified, fault, verify};
pub use view::{Asked, Scope, View};

const FOLDER_OF_UNFINISHED: &str = ".partial";
const REJECTS: &str = "rejects.parquet";
const REQUESTS: &str = "requests.parquet";
