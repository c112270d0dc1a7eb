//! The summary of a run or a build.

use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use chrono::{DateTime, NaiveDate, Utc};
use schemars::JsonSchema;
use serde::Serialize;

use super::gather::SignalSource;
use super::observer::Timing;
use super::store::StoreUpload;
use crate::archive::{AnswerRecord, Counts, Oddities, SealedRun};
use crate::disk::file::{FileRecord, as_text, as_text_if_any};
use crate::error::Result;
use crate::export::Dataset;
use crate::facts::Facts;
use crate::plan::{Format, Plan, Shape};
use crate::process::usage;
use crate::tables::Drift;
use crate::text::escape::{escape, shell};
use crate::text::human::{self, count_of, duration, group_digits};
use crate::time::{as_record, as_seconds, to_record};

/// The result of a run or a build. As JSON, it is the same for `--log json` and for Python.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct Summary {
    /// Its rows, counted once for all formats; the rows of all matrices of a wide dataset.
    pub rows: u64,
    /// Its signals; in a long dataset each is a row.
    pub signals: u64,
    /// The matrices of a wide dataset.
    pub matrices: Option<usize>,
    /// Its tickers.
    pub tickers: usize,
    /// Its first date.
    #[schemars(with = "Option<String>")]
    pub first_date: Option<NaiveDate>,
    /// Its last date.
    #[schemars(with = "Option<String>")]
    pub last_date: Option<NaiveDate>,
    /// The instant as of which it was built.
    #[serde(with = "as_record")]
    #[schemars(with = "String")]
    pub as_of: DateTime<Utc>,
    /// What was fetched for it; none for a build.
    #[serde(flatten)]
    pub fetched: Option<Fetched>,
    /// Notes, one line each.
    pub notes: Vec<String>,
    /// How long it took.
    #[serde(rename = "seconds", serialize_with = "as_seconds")]
    #[schemars(with = "f64")]
    pub elapsed: Duration,
    /// What each stage took.
    #[serde(rename = "stages")]
    pub timings: Vec<Timing>,
    /// The peak memory of the process, if the system provides it.
    pub peak_bytes: Option<u64>,
    /// The folder of the dataset.
    #[serde(serialize_with = "as_text")]
    pub dataset: PathBuf,
    /// The link to it as the latest version; none for an ad hoc build.
    #[serde(serialize_with = "as_text_if_any")]
    pub latest: Option<PathBuf>,
    /// The page of its report; none if the definition does not ask for one.
    #[serde(serialize_with = "as_text_if_any")]
    pub report: Option<PathBuf>,
    /// The dataset's files.
    pub files: Vec<FileRecord>,
    /// The hash of its content.
    pub content: String,
    /// What it is called where a dataset is named.
    #[serde(skip)]
    reference: String,
    /// What was sent to the object store; none without one.
    #[serde(rename = "store")]
    pub stored: Option<StoreUpload>,
}

/// What a run fetched and archived.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct Fetched {
    /// Where the signals came from.
    #[serde(rename = "source")]
    pub signals: SignalSource,
    /// The number of answered requests.
    pub requests: usize,
    /// The number of retries.
    pub retries: u64,
    /// The number of rejected records.
    pub rejects: u64,
    /// How many of them the previous answers did not have; none if there are no previous answers.
    pub new_rejects: Option<u64>,
    /// Unknown fields, unusual values and accepted leniencies.
    #[serde(flatten)]
    pub oddities: Oddities,
    /// The changes to the cells of the archive.
    pub changes: Counts,
    /// The cells that the archive knew before of the series that were answered.
    pub known: u64,
    /// The folder of the sealed run.
    #[serde(rename = "archive", serialize_with = "as_text")]
    pub run: PathBuf,
}

impl Fetched {
    /// What a sealed run has of some answers.
    pub(super) fn of(
        answers: &[Arc<AnswerRecord>],
        signals: SignalSource,
        run: &SealedRun,
        known: u64,
        new_rejects: Option<u64>,
    ) -> Result<Self> {
        let mut oddities = Oddities::default();
        answers.iter().for_each(|answer| oddities.add(answer.oddities.clone()));
        Ok(Self {
            signals,
            requests: answers.len(),
            retries: 0,
            rejects: run.requests()?.iter().map(|record| record.rejects).sum(),
            new_rejects,
            oddities,
            changes: run.seal().changes,
            known,
            run: run.path().to_owned(),
        })
    }
}

/// A published dataset, and the facts counted while its rows were written.
pub(super) struct PublishedDataset {
    pub(super) facts: Facts,
    pub(super) dataset: Dataset,
    pub(super) as_of: DateTime<Utc>,
    /// Notes on it.
    pub(super) notes: Vec<String>,
}

/// What a version in a folder is called: `NAME/VERSION`, or `NAME/builds/VERSION`.
fn reference_of(name: &str, folder: &Path) -> String {
    let version: Vec<_> = folder.iter().rev().take_while(|part| *part != name).collect();
    version.into_iter().rev().fold(name.to_owned(), |all, part| format!("{all}/{}", part.to_string_lossy()))
}

impl Summary {
    pub(super) fn of(plan: &Plan, published: PublishedDataset, timings: Vec<Timing>, elapsed: Duration) -> Self {
        let PublishedDataset { facts, dataset, as_of, notes, .. } = published;
        // The latest version is called by the name of its dataset.
        let reference = match dataset.latest {
            Some(_) => plan.name.clone(),
            None => reference_of(&plan.name, &dataset.path),
        };
        Self {
            rows: dataset.rows,
            signals: facts.rows,
            matrices: match plan.dataset.shape {
                Shape::Wide(_) => Some(dataset.files.len() / plan.files.formats.len()),
                Shape::Long => None,
            },
            tickers: facts.tickers.len(),
            first_date: facts.bounds().map(|(first, _)| first),
            last_date: facts.bounds().map(|(_, last)| last),
            as_of,
            fetched: None,
            notes,
            elapsed,
            timings,
            peak_bytes: usage::peak_memory(),
            dataset: dataset.path,
            latest: dataset.latest,
            report: None,
            files: dataset.files,
            content: dataset.content,
            reference,
            stored: None,
        }
    }

    /// The time of each stage, as a table.
    pub fn timings(&self) -> String {
        let row = |name: &str, wall: f64, processor: Option<f64>| {
            let processor = processor.map_or_else(|| "-".to_owned(), |seconds| format!("{seconds:.2} s"));
            format!("{name:<10}{:>10}{processor:>10}\n", format!("{wall:.2} s"))
        };
        let mut text = format!("{:<10}{:>10}{:>10}\n", "stage", "wall", "cpu");
        for Timing { stage, seconds, cpu_seconds } in &self.timings {
            text.push_str(&row(stage, *seconds, *cpu_seconds));
        }
        let processor = usage::processor_time().map(|time| time.as_secs_f64());
        text.push_str(&row("all", self.elapsed.as_secs_f64(), processor));
        if let Some(bytes) = self.peak_bytes {
            text.push_str(&format!("{:<10}{:>10}\n", "memory", format!("{:.0} MB", bytes as f64 / 1e6)));
        }
        text
    }

    /// The line of Python that reads the dataset, or the first of its files.
    fn python(&self) -> String {
        let file = self.files.first().map_or("", |file| &file.name);
        let path = self.latest.as_ref().unwrap_or(&self.dataset).join(file);
        let (read, options) = match Format::of_file(&path) {
            Some(Format::Csv | Format::CsvGz | Format::CsvZst) => ("read_csv", ", try_parse_dates=True"),
            Some(Format::Arrow) => ("read_ipc", ""),
            Some(Format::Parquet) | None => ("read_parquet", ""),
        };
        let path = path.display().to_string();
        // Polars takes these for patterns, and Python a backslash for an escape.
        let is_pattern = path.contains(['*', '?', '[']);
        let path = format!("\"{}\"", path.replace('\\', "\\\\").replace('"', "\\\""));
        let file = if is_pattern { format!("open({path}, \"rb\")") } else { path };
        format!("polars.{read}({file}{options})")
    }
}

impl fmt::Display for Summary {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let size: u64 = self.files.iter().map(|file| file.bytes).sum();
        match self.matrices {
            None => writeln!(formatter, "rows      {}", group_digits(self.rows))?,
            Some(matrices) => {
                let matrices = count_of(matrices as u64, "matrix", "matrices");
                writeln!(formatter, "rows      {} in {matrices}", group_digits(self.rows))?;
                writeln!(formatter, "signals   {}", group_digits(self.signals))?;
            }
        }
        writeln!(formatter, "tickers   {}", group_digits(self.tickers as u64))?;
        if let (Some(first), Some(last)) = (self.first_date, self.last_date) {
            writeln!(formatter, "dates     {first} to {last}")?;
        }
        if let Some(fetched) = &self.fetched {
            fetched.fmt(formatter)?;
        } else {
            writeln!(formatter, "as of     {}", to_record(self.as_of))?;
        }
        writeln!(formatter, "size      {}", human::bytes(size))?;
        writeln!(formatter, "time      {}", duration(self.elapsed))?;
        if let Some(fetched) = &self.fetched {
            writeln!(formatter, "archive   {}", fetched.run.display())?;
        }
        for file in &self.files {
            writeln!(formatter, "dataset   {}", self.dataset.join(&file.name).display())?;
        }
        if let Some(StoreUpload { url, moved }) = &self.stored {
            writeln!(formatter, "store     {url}, sent {}", human::bytes(moved.bytes))?;
        }
        match &self.report {
            Some(page) => writeln!(formatter, "report    {}", page.display())?,
            None => writeln!(formatter, "report    bellwether report {}", shell(&self.reference))?,
        }
        writeln!(formatter, "python    {}", self.python())?;
        // Last, where they are seen.
        self.notes.iter().try_for_each(|note| writeln!(formatter, "note      {}", escape(note)))
    }
}

impl fmt::Display for Fetched {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let retried =
            if self.retries > 0 { format!(", {}", count_of(self.retries, "retry", "retries")) } else { String::new() };
        writeln!(formatter, "requests  {}{retried}", group_digits(self.requests as u64))?;
        let Counts { added, revised, withdrawn, delisted, .. } = self.changes;
        let [added, revised, withdrawn] = [added, revised, withdrawn].map(group_digits);
        writeln!(formatter, "changes   {added} added, {revised} revised, {withdrawn} withdrawn")?;
        if delisted > 0 {
            writeln!(formatter, "delisted  {} series", group_digits(delisted))?;
        }
        let new = self.new_rejects.filter(|_| self.rejects > 0);
        let new = new.map_or_else(String::new, |new| format!(", {} new", group_digits(new)));
        writeln!(formatter, "rejected  {}{new}", count_of(self.rejects, "record", "records"))?;
        let Oddities { drift, unusual, undated, lenient, oversized } = &self.oddities;
        for oversized in oversized {
            writeln!(formatter, "rejected  {}", escape(&oversized.to_string()))?;
        }
        if *unusual > 0 {
            let unusual = count_of(*unusual, "confidence", "confidences");
            writeln!(formatter, "unusual   {unusual} outside 0 to 1")?;
        }
        if *undated > 0 {
            let undated = count_of(*undated, "latest signal", "latest signals");
            writeln!(formatter, "undated   {undated} without a date, archived and in no dataset")?;
        }
        for (count, [one, many], how) in lenient.in_words().into_iter().filter(|(count, ..)| *count > 0) {
            writeln!(formatter, "lenient   accepted {} {how}", count_of(count, one, many))?;
        }
        if lenient.repeated > 0 {
            let repeated = count_of(lenient.repeated, "signal", "signals");
            writeln!(formatter, "repeated  {repeated} listed more than once, exactly alike, and counted once")?;
        }
        for Drift { endpoint, field, count, example } in drift {
            let (field, times, example) = (escape(field), count_of(*count, "time", "times"), escape(example));
            writeln!(formatter, "unknown   {field} of {endpoint}, {times}, such as {example}")?;
        }
        Ok(())
    }
}
