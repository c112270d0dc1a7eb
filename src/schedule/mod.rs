//! When what runs, and what became of it: schedules, records of runs, status, hooks and metrics.
//!
//! This is a door: it knows [`run`](bellwether::run), and only the command line and the Python package know it. [`execute`] is a run with its
//! record, its journal and its hooks; a [`Scheduler`] executes each definition of a folder at its times; a [`StatusDocument`]
//! says how they are doing. Four kinds of files in the data folder belong to this room:
//!
//! ```text
//! output/
//!     journal/NAME.jsonl        a line per run: when, how it ended and why, what it published
//!     journal/NAME.#.jsonl      older lines
//!     schedule/NAME.json        up to which time the schedule is done, and the run to try again, if any
//!     schedule/.locks/NAME      held by the scheduler that is running the definition
//!     schedule/.look.json       what the scheduler that is running found when it last looked
//! ```
//!
//! Nothing else is remembered. Without the memory a definition owes nothing, and after a crash the archive and the
//! published version tell whether a due time was run.

mod basis;
mod event;
mod execute;
mod journal;
mod listen;
mod look;
mod memory;
pub mod metrics;
mod page;
mod record;
mod scheduler;
mod status;

use std::path::PathBuf;

pub use bellwether::freshness::Age;
pub use bellwether::net::listen::HostName;
pub use event::{ScheduleEvent, Watcher};
pub use execute::{Execution, execute, run_recorded};
pub use journal::sealed_runs;
pub use listen::{Listening, StatusSite, listen};
pub use look::{LookFault, LookRecord};
pub use memory::{Times, upcoming};
pub use page::{Links, page};
pub use record::{Fault, Outcome, PublishedRecord, RunRecord, to_minute};
pub use scheduler::{Scheduler, SchedulerOptions};
pub(crate) use scheduler::{files, nothing_scheduled};
pub use status::{Disk, Status, StatusDocument, Verdict};

/// The folders of a project.
#[derive(Clone, Debug)]
pub struct Folders {
    /// The definitions.
    pub definitions: PathBuf,
    /// The datasets, the journals, and what schedulers remember.
    pub data: PathBuf,
    /// The archive.
    pub archive: PathBuf,
}
