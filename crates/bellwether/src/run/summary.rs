//! The summary of a run or a build.

use std::fmt;
use std::path::PathBuf;
use std::time::Duration;

use chrono::{DateTime, NaiveDate, Utc};
use schemars::JsonSchema;
use serde::Serialize;

use super::builder::Builder;
use super::gather::SignalSource;
use super::observer::Timing;
use super::store::StoreUpload;
use crate::archive::{Counts, Oddities};
use crate::disk::file::{FileRecord, as_text, as_text_if_any};
use crate::export::Dataset;
use crate::facts::Facts;
use crate::plan::{DatasetPlan, Format, Plan, Shape};
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

impl Summary {
    /// The summary of a published dataset by the facts counted while its rows were written. How long it took is not in it yet.
    pub(super) fn new(
        work: &Builder,
        facts: &Facts,
        dataset: Dataset,
        notes: Vec<String>,
        timings: Vec<Timing>,
    ) -> Self {
        let Plan { name, files, dataset: DatasetPlan { shape, .. }, .. } = &*work.plan;
        let (first_date, last_date) = facts.bounds().unzip();
        // The latest version is called by the name of its dataset, others `NAME/VERSION` or `NAME/builds/VERSION`.
        let folders: Vec<_> = dataset.path.iter().rev().take_while(|part| **part != **name).collect();
        let mut reference = name.clone();
        for folder in folders.iter().rev().filter(|_| dataset.latest.is_none()) {
            reference += &format!("/{}", folder.to_string_lossy());
        }
        Self {
            rows: dataset.rows,
            signals: facts.rows,
            matrices: matches!(shape, Shape::Wide(_)).then(|| dataset.files.len() / files.formats.len()),
            tickers: facts.tickers.len(),
            first_date,
            last_date,
            as_of: work.view.as_of(),
            fetched: None,
            notes,
            elapsed: Duration::ZERO,
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
        let quoted = format!("\"{}\"", path.replace('\\', "\\\\").replace('"', "\\\""));
        // Polars takes these for patterns, and Python a backslash for an escape.
        match path.contains(['*', '?', '[']) {
            true => format!("polars.{read}(open({quoted}, \"rb\"){options})"),
            false => format!("polars.{read}({quoted}{options})"),
        }
    }
}

impl fmt::Display for Summary {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let rows = group_digits(self.rows);
        let mut lines = match self.matrices {
            None => vec![("rows", rows)],
            Some(matrices) => {
                let matrices = count_of(matrices as u64, "matrix", "matrices");
                vec![("rows", format!("{rows} in {matrices}")), ("signals", group_digits(self.signals))]
            }
        };
        lines.push(("tickers", group_digits(self.tickers as u64)));
        if let (Some(first), Some(last)) = (self.first_date, self.last_date) {
            lines.push(("dates", format!("{first} to {last}")));
        }
        match &self.fetched {
            Some(fetched) => lines.extend(fetched.lines()),
            None => lines.push(("as of", to_record(self.as_of))),
        }
        lines.push(("size", human::bytes(self.files.iter().map(|file| file.bytes).sum())));
        lines.push(("time", duration(self.elapsed)));
        lines.extend(self.fetched.iter().map(|fetched| ("archive", fetched.run.display().to_string())));
        lines.extend(self.files.iter().map(|file| ("dataset", self.dataset.join(&file.name).display().to_string())));
        if let Some(StoreUpload { url, moved }) = &self.stored {
            lines.push(("store", format!("{url}, sent {}", human::bytes(moved.bytes))));
        }
        lines.push(match &self.report {
            Some(page) => ("report", page.display().to_string()),
            None => ("report", format!("bellwether report {}", shell(&self.reference))),
        });
        lines.push(("python", self.python()));
        // Last, where they are seen.
        lines.extend(self.notes.iter().map(|note| ("note", escape(note).into())));
        lines.iter().try_for_each(|(name, line)| writeln!(formatter, "{name:<10}{line}"))
    }
}

impl Fetched {
    /// It as lines of a summary, each with its name.
    fn lines(&self) -> Vec<(&'static str, String)> {
        let mut requests = group_digits(self.requests as u64);
        if self.retries > 0 {
            requests += &format!(", {}", count_of(self.retries, "retry", "retries"));
        }
        let Counts { added, revised, withdrawn, delisted, .. } = self.changes;
        let [added, revised, withdrawn] = [added, revised, withdrawn].map(group_digits);
        let changes = format!("{added} added, {revised} revised, {withdrawn} withdrawn");
        let mut lines = vec![("requests", requests), ("changes", changes)];
        if delisted > 0 {
            lines.push(("delisted", format!("{} series", group_digits(delisted))));
        }
        let mut rejected = count_of(self.rejects, "record", "records");
        if let Some(new) = self.new_rejects.filter(|_| self.rejects > 0) {
            rejected += &format!(", {} new", group_digits(new));
        }
        lines.push(("rejected", rejected));
        let Oddities { drift, unusual, undated, lenient, oversized } = &self.oddities;
        lines.extend(oversized.iter().map(|oversized| ("rejected", escape(&oversized.to_string()).into())));
        if *unusual > 0 {
            let unusual = count_of(*unusual, "confidence", "confidences");
            lines.push(("unusual", format!("{unusual} outside 0 to 1")));
        }
        if *undated > 0 {
            let undated = count_of(*undated, "latest signal", "latest signals");
            lines.push(("undated", format!("{undated} without a date, archived and in no dataset")));
        }
        for (count, [one, many], how) in lenient.in_words().into_iter().filter(|(count, ..)| *count > 0) {
            lines.push(("lenient", format!("accepted {} {how}", count_of(count, one, many))));
        }
        if lenient.repeated > 0 {
            let repeated = count_of(lenient.repeated, "signal", "signals");
            lines.push(("repeated", format!("{repeated} listed more than once, exactly alike, and counted once")));
        }
        for Drift { endpoint, field, count, example } in drift {
            let (field, times, example) = (escape(field), count_of(*count, "time", "times"), escape(example));
            lines.push(("unknown", format!("{field} of {endpoint}, {times}, such as {example}")));
        }
        lines
    }
}
