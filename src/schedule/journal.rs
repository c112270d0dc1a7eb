//! The journal of a definition's runs: `journal/NAME.jsonl` in the data folder, a line per run, oldest first.
//!
//! A line is appended in one write after the run has ended. A line that was cut off by a crash is ignored, and the next
//! one starts on a line of its own. When the file grows, the runs of the last 400 days are kept.

use std::io::{Read, Write};
use std::path::{Path, PathBuf};

use chrono::TimeDelta;

use super::record::{Outcome, RunRecord};
use crate::error::Result;
use crate::file::{self, FileError};
use crate::links;
use crate::plan::Plan;
use crate::time::Clock;

/// The folder of journals in the data folder.
const FOLDER: &str = "journal";

/// How long runs are kept.
const KEPT: TimeDelta = TimeDelta::days(400);

/// Above this size old runs are removed.
const LARGE: u64 = 4 << 20;

/// The most that is read, from the end of the file.
const MOST_BYTES: u64 = 16 << 20;

fn path(data: &Path, definition: &str) -> PathBuf {
    data.join(FOLDER).join(definition).with_extension("jsonl")
}

/// Adds the record of a run.
///
/// # Errors
///
/// If the file cannot be written.
pub(super) fn append(data: &Path, record: &RunRecord, clock: Clock) -> Result<()> {
    let folder = data.join(FOLDER);
    file::create_folders(&folder)?;
    links::refuse(&folder)?;
    let path = path(data, &record.definition);
    let failed = FileError::write(&path);
    let mut file = links::append(&path)?;
    let mut text = serde_json::to_vec(record).expect("a record is text and numbers");
    text.push(b'\n');
    if !ends_a_line(&path)? {
        text.insert(0, b'\n');
    }
    file.write_all(&text).map_err(failed)?;
    file::sync(&file, &path)?;
    if file.metadata().map_err(failed)?.len() > LARGE {
        shorten(data, &record.definition, clock)?;
    }
    Ok(())
}

/// Whether the file is empty or ends with a line break.
fn ends_a_line(path: &Path) -> Result<bool> {
    let file = links::open(path)?;
    let failed = FileError::read(path);
    let length = file.metadata().map_err(failed)?.len();
    Ok(length == 0 || file::read_at(&file, length - 1, 1).map_err(failed)? == b"\n")
}

/// Keeps the newer runs.
fn shorten(data: &Path, definition: &str, clock: Clock) -> Result<()> {
    let from = clock.now() - KEPT;
    let mut text = Vec::new();
    for record in read(data, definition)?.iter().filter(|record| record.ended_at >= from) {
        serde_json::to_writer(&mut text, record).expect("a record is text and numbers");
        text.push(b'\n');
    }
    file::replace(&path(data, definition), &text)
}

/// The names of the runs of a plan that the journal says were sealed in the archive of its service. A journal that cannot
/// be read names none: status and metrics report it.
pub fn sealed_runs(data: &Path, plan: &Plan) -> Vec<String> {
    let is_sealed =
        |record: &RunRecord| record.outcome == Outcome::Success && record.service.as_ref() == Some(&plan.service.name);
    let records = read(data, &plan.name).unwrap_or_default();
    records.into_iter().filter(is_sealed).filter_map(|record| record.run).collect()
}

/// The runs of a definition, oldest first. Lines that are not records are ignored.
///
/// # Errors
///
/// If the file cannot be read.
pub(super) fn read(data: &Path, definition: &str) -> Result<Vec<RunRecord>> {
    use std::io::{Seek, SeekFrom};
    let path = path(data, definition);
    links::refuse(&data.join(FOLDER))?;
    if !path.exists() && !path.is_symlink() {
        return Ok(Vec::new());
    }
    let mut file = links::open(&path)?;
    let failed = FileError::read(&path);
    let length = file.metadata().map_err(failed)?.len();
    file.seek(SeekFrom::Start(length.saturating_sub(MOST_BYTES))).map_err(failed)?;
    let mut text = Vec::new();
    file.take(MOST_BYTES).read_to_end(&mut text).map_err(failed)?;
    let lines = text.split(|byte| *byte == b'\n');
    Ok(lines
        .filter_map(|line| serde_json::from_slice(line).ok())
        .filter(|record: &RunRecord| record.definition == definition)
        .collect())
}
