//! The journal of a definition's runs: `journal/NAME.jsonl` in the data folder, a line per run, oldest first.
//!
//! A run appends its line in one write after it has ended, and writes nothing else. Once the file has grown it becomes a
//! segment, `journal/NAME.00000001.jsonl`, and the next run begins a new file; of the segments the newest are kept. A file
//! that follows a segment begins with a line of its own: how many runs ended in which way before it. So the number of runs
//! never falls when a segment is removed.
//!
//! A line that was cut off by a crash is skipped, and the next one starts on a line of its own. As long as it is the last
//! one, how the last run ended is unknown. A line that was damaged later is a fault for as long as it is there.

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::thread;
use std::time::Duration;

use bellwether::disk::file::{self, FileError};
use bellwether::disk::links;
use bellwether::disk::names::{self, JOURNAL};
use bellwether::disk::remove;
use bellwether::error::Result;
use bellwether::plan::Plan;
use chrono::{DateTime, Utc};
use serde::{Deserialize, Serialize};

use super::record::{Outcome, RunRecord};

/// How many segments are kept, beside the file that grows.
const MAX_SEGMENTS: usize = 15;

/// How many runs ended in which way.
pub(super) type Counts = BTreeMap<Outcome, u64>;

/// What a journal says.
#[derive(Clone, Debug, Default)]
pub(super) struct Journal {
    /// The runs, oldest first.
    pub(super) runs: Vec<RunRecord>,
    /// The runs before them, by outcome.
    before: Counts,
    /// Why the newest line is not a run.
    pub(super) fault: Option<String>,
    /// A line that was written whole and says nothing now.
    pub(super) damage: Option<String>,
    /// Whether there is a file.
    pub(super) exists: bool,
}

/// The line that a file begins with if it follows a segment.
#[derive(Debug, Serialize, Deserialize)]
struct Beginning {
    definition: String,
    /// The runs of the files before it.
    before: Counts,
}

impl Journal {
    /// How many runs ended in which way, since the journal began.
    pub(super) fn counts(&self) -> Counts {
        let mut counts: Counts = Outcome::ALL.into_iter().map(|outcome| (outcome, 0)).collect();
        self.before.iter().for_each(|(outcome, count)| *counts.entry(*outcome).or_default() += count);
        self.runs.iter().for_each(|run| *counts.entry(run.outcome).or_default() += 1);
        counts
    }

    /// The runs that were sealed in the archive of a plan's service.
    pub(super) fn sealed(&self, plan: &Plan) -> Vec<String> {
        let is_sealed =
            |run: &&RunRecord| run.outcome == Outcome::Success && run.service.as_ref() == Some(&plan.service.name);
        self.runs.iter().filter(is_sealed).filter_map(|run| run.run.clone()).collect()
    }

    /// Whether it says what became of a due time in the end.
    pub(super) fn covers(&self, due: DateTime<Utc>) -> bool {
        let is_it = |run: &RunRecord| run.due.is_some_and(|of| of >= due);
        self.runs.iter().any(|run| match run.outcome {
            Outcome::Success => is_it(run) || run.started_at >= due,
            Outcome::Failure => is_it(run),
            Outcome::Later | Outcome::Interrupted => false,
        })
    }
}

/// The file that grows.
pub(super) fn path(data: &Path, definition: &str) -> PathBuf {
    data.join(JOURNAL).join(format!("{definition}.jsonl"))
}

/// The segments of a definition, oldest first.
fn segments(data: &Path, definition: &str) -> Result<Vec<PathBuf>> {
    let form = format!("{definition}.{}", names::JOURNAL_SEGMENT);
    let is_segment =
        |path: &PathBuf| path.file_name().and_then(|name| name.to_str()).is_some_and(|name| names::fits(name, &form));
    Ok(file::entries(&data.join(JOURNAL))?.into_iter().filter(is_segment).collect())
}

/// Adds the record of a run.
pub(super) fn append(data: &Path, record: &RunRecord) -> Result<()> {
    let (folder, definition) = (data.join(JOURNAL), &record.definition);
    file::create_folders(&folder)?;
    links::refuse(&folder)?;
    let path = path(data, definition);
    let failed = FileError::write(&path);
    let mut file = open_current(&path)?;
    let length = file.metadata().map_err(failed)?.len();
    let mut text = String::new();
    if length == 0 && !segments(data, definition)?.is_empty() {
        let beginning = Beginning { definition: definition.clone(), before: read(data, definition)?.counts() };
        text += &serde_json::to_string(&beginning).expect("a beginning is text and numbers");
        text += "\n";
    }
    if length > 0 && file::read_at(&links::open(&path)?, length - 1, 1).map_err(FileError::read(&path))? != b"\n" {
        text += "\n";
    }
    text += &serde_json::to_string(record).expect("a record is text and numbers");
    text += "\n";
    file.write_all(text.as_bytes()).map_err(failed)?;
    file::sync(&file, &path)?;
    if length == 0 {
        file::sync_folder(&folder)?;
    }
    // Above a mebibyte the file becomes a segment.
    if length + text.len() as u64 > 1 << 20 {
        rotate(data, definition)?;
    }
    Ok(())
}

/// Opens the file that grows and locks it, so that no other run appends to it or makes it a segment meanwhile.
fn open_current(path: &Path) -> Result<File> {
    let number = |found: io::Result<fs::Metadata>| found.ok().map(|found| (found.dev(), found.ino()));
    loop {
        let file = links::append(path)?;
        // Where there are no locks, the runs of one machine still follow each other.
        let is_locked = file.lock().is_ok();
        if !is_locked || number(file.metadata()) == number(fs::symlink_metadata(path)) {
            return Ok(file);
        }
    }
}

/// Makes the file a segment, and removes the oldest segments.
fn rotate(data: &Path, definition: &str) -> Result<()> {
    let all = segments(data, definition)?;
    let newest = all.last().and_then(|path| path.file_stem()?.to_str()?.rsplit('.').next()?.parse::<u32>().ok());
    let path = path(data, definition);
    let segment = path.with_file_name(format!("{definition}.{:08}.jsonl", newest.unwrap_or(0) + 1));
    fs::rename(&path, &segment).map_err(FileError::write(&segment))?;
    let old = all.len().saturating_sub(MAX_SEGMENTS - 1);
    for path in all.into_iter().take(old) {
        // Best effort: the line of the run is written, and the next rotation tries again.
        let _ = remove::file(&path);
    }
    Ok(())
}

/// The names of the runs of a plan that the journal says were sealed in the archive of its service. A journal that cannot
/// be read names none: status and metrics report it.
pub fn sealed_runs(data: &Path, plan: &Plan) -> Vec<String> {
    read(data, &plan.name).map_or_else(|_| Vec::new(), |journal| journal.sealed(plan))
}

/// What the journal of a definition says. Lines that are not records are skipped.
pub(super) fn read(data: &Path, definition: &str) -> Result<Journal> {
    match read_once(data, definition) {
        // A line may be about to be written.
        Ok(Journal { fault: Some(_), .. }) => {
            thread::sleep(Duration::from_millis(50));
            read_once(data, definition)
        }
        read => read,
    }
}

fn read_once(data: &Path, definition: &str) -> Result<Journal> {
    links::refuse(&data.join(JOURNAL))?;
    loop {
        let before = segments(data, definition)?;
        let mut journal = Journal::default();
        for path in before.iter().chain([&path(data, definition)]) {
            match links::open(path) {
                Ok(file) => journal.add(&file, path, definition)?,
                Err(error) if FileError::is_missing(&error) => {}
                Err(error) => return Err(error),
            }
        }
        // A file that has become a segment meanwhile is read as such.
        if segments(data, definition)? == before {
            return Ok(journal);
        }
    }
}

impl Journal {
    /// Adds the lines of a file, of which 16 MiB are read at most, from its end.
    fn add(&mut self, mut file: &File, path: &Path, definition: &str) -> Result<()> {
        const MAX_BYTES: u64 = 16 << 20;
        let failed = FileError::read(path);
        let length = file.metadata().map_err(failed)?.len();
        file.seek(SeekFrom::Start(length.saturating_sub(MAX_BYTES))).map_err(failed)?;
        let mut text = Vec::new();
        file.take(MAX_BYTES).read_to_end(&mut text).map_err(failed)?;
        if text.is_empty() {
            self.fault = Some(format!("`{}` is empty", path.display()));
        }
        for (number, line) in text.split(|byte| *byte == b'\n').enumerate().filter(|(_, line)| !line.is_empty()) {
            if let Ok(record) = serde_json::from_slice::<RunRecord>(line)
                && record.definition == definition
            {
                self.runs.push(record);
                self.fault = None;
            } else if let Ok(beginning) = serde_json::from_slice::<Beginning>(line)
                && beginning.definition == definition
            {
                // The files before it say the same, unless they were removed.
                if !self.exists {
                    self.before = beginning.before;
                }
            } else if line.starts_with(b"{") && !line.ends_with(b"}") {
                // A process that was killed leaves the beginning of its line, and nothing else.
                self.fault = Some(format!("the last line of `{}` is damaged", path.display()));
            } else {
                let what = format!("line {} of `{}` is damaged", number + 1, path.display());
                let until = "how that run ended is unknown until the line is restored or removed";
                self.damage = Some(format!("{what}: {until}"));
            }
        }
        self.exists = true;
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use tempfile::tempdir;

    use super::{MAX_SEGMENTS, Outcome, RunRecord, append, path, read};
    use bellwether::time::Clock;

    #[test]
    fn the_number_of_runs_never_falls_and_each_run_writes_its_line_alone() {
        let folder = tempdir().unwrap();
        let now = Clock::System.now();
        let mut record = RunRecord::begin("energy", None, now);
        record.reasons = vec!["x".repeat(300_000)];
        let (mut written, mut most) = ([0, 0], 0);
        for number in 0..100_u64 {
            let outcome = [Outcome::Success, Outcome::Failure][usize::from(number % 3 == 0)];
            record.outcome = outcome;
            written[usize::from(number % 3 == 0)] += 1;
            let before = fs::metadata(path(folder.path(), "energy")).map_or(0, |found| found.len());
            append(folder.path(), &record).unwrap();
            let after = fs::metadata(path(folder.path(), "energy")).map_or(0, |found| found.len());
            assert!(after == 0 || after - before < 301_000, "{before} {after}");
            let journal = read(folder.path(), "energy").unwrap();
            let counts = journal.counts();
            assert_eq!([counts[&Outcome::Success], counts[&Outcome::Failure]], written);
            assert_eq!((journal.runs.last().unwrap().outcome, journal.fault), (outcome, None));
            most = most.max(fs::read_dir(folder.path().join("journal")).unwrap().count());
        }
        assert_eq!(most, MAX_SEGMENTS + 1);
        assert!(read(folder.path(), "energy").unwrap().runs.len() < 100);
    }

    #[test]
    fn a_journal_in_one_large_file_becomes_the_first_segment() {
        let folder = tempdir().unwrap();
        let mut record = RunRecord::begin("energy", None, Clock::System.now());
        record.reasons = vec!["x".repeat(1000)];
        let line = serde_json::to_string(&record).unwrap() + "\n";
        fs::create_dir(folder.path().join("journal")).unwrap();
        fs::write(path(folder.path(), "energy"), line.repeat(5000)).unwrap();
        for number in 5001..5004 {
            append(folder.path(), &record).unwrap();
            assert_eq!(read(folder.path(), "energy").unwrap().counts()[&Outcome::Interrupted], number);
        }
        assert!(folder.path().join("journal/energy.00000001.jsonl").exists());
        // Another definition's journal is its own.
        assert!(!read(folder.path(), "energy-2").unwrap().exists);
    }
}
