//! Runs that are settled one after the other, against changes that follow from their answers alone.

mod articles;
mod group;
mod listings;
mod overlaps;
mod signals;

use std::path::PathBuf;
use std::sync::Arc;

use arrow::array::{
    Array, ArrayRef, AsArray, Float64Array, Int8Array, RecordBatch, StringArray, TimestampMicrosecondArray,
};
use arrow::compute::{cast, concat_batches};
use arrow::datatypes::{DataType, SchemaRef, TimestampMicrosecondType};
use chrono::{DateTime, Utc};
use tempfile::TempDir;

use super::Settled;
use crate::archive::sealed::sealed_run::SealedRun;
use crate::archive::{Interrupted, NewRun, Oddities, Unfinished};
use crate::interface::Endpoint;
use crate::plan::ServiceIdentity;
use crate::process::cancel::CancellationToken;
use crate::tables::{Conventions, Drift, Reject, RequestRecord, Series, SeriesKey, Table, choices};

const DAY: i64 = 86_400_000_000;

/// The instant of a second.
fn at(second: i64) -> DateTime<Utc> {
    DateTime::from_timestamp(1_770_000_000 + second, 0).unwrap()
}

/// The answer to a request, complete at a second.
struct Told {
    endpoint: Endpoint,
    request: &'static str,
    at: i64,
    /// Its series; a long one comes in several pieces.
    series: Vec<(SeriesKey, RecordBatch)>,
    rejects: Vec<Reject>,
    drift: Vec<Drift>,
}

impl Told {
    fn new(endpoint: Endpoint, request: &'static str, at: i64, series: Vec<(SeriesKey, RecordBatch)>) -> Self {
        Self { endpoint, request, at, series, rejects: Vec::new(), drift: Vec::new() }
    }
}

/// An archive in a folder of its own.
struct Place {
    _folder: TempDir,
    archive: PathBuf,
    conventions: Conventions,
}

impl Place {
    fn new(whole: &[Table]) -> Self {
        let folder = tempfile::tempdir().unwrap();
        Self {
            archive: folder.path().join("archive"),
            _folder: folder,
            conventions: Conventions { whole: whole.to_vec(), ..Conventions::default() },
        }
    }

    /// Begins a run at a second.
    fn begin(&self, second: i64) -> Unfinished {
        self.begin_with(second, "")
    }

    /// The same, with the text of its definition.
    fn begin_with(&self, second: i64, text: &str) -> Unfinished {
        self.begin_as(second, text, Interrupted::Leave)
    }

    fn begin_as(&self, second: i64, text: &str, interrupted: Interrupted) -> Unfinished {
        let beginning = NewRun {
            definition: "it",
            text,
            service: &ServiceIdentity::demo(),
            conventions: &self.conventions,
            now: at(second),
            interrupted,
            stop: &CancellationToken::new(),
        };
        Unfinished::begin(&self.archive, beginning).unwrap()
    }

    /// A whole run, sealed at a second.
    fn run(&self, second: i64, answers: Vec<Told>) -> Settled {
        let run = self.begin(second - 1);
        answers.into_iter().for_each(|answer| tell(&run, answer));
        seal(&run, second)
    }
}

/// Adds an answer to a run.
fn tell(run: &Unfinished, Told { endpoint, request, at: second, series, rejects, drift }: Told) {
    let mut draft = run.draft();
    for (key, rows) in series {
        draft.add_series(Series { key, rows }).unwrap();
    }
    draft.add_rejects(&rejects, rejects.len() as u64).unwrap();
    draft.add_oddities(Oddities { drift, ..Oddities::default() });
    let (rows, rejects) = draft.counts();
    let record = RequestRecord {
        endpoint,
        request: request.to_owned(),
        status: 200,
        attempts: 1,
        bytes: 0,
        digest: String::new(),
        rows,
        rejects,
        validator: None,
        unknown_fields: Vec::new(),
        observed_at: at(second),
    };
    run.commit(draft, record).unwrap();
}

/// Seals a run at a second.
fn seal(run: &Unfinished, second: i64) -> Settled {
    run.seal(&[], || Ok(at(second)), |_| Ok(true)).unwrap()
}

/// The rows of a run in a file.
fn rows(run: &SealedRun, file: &str, schema: &SchemaRef) -> RecordBatch {
    let pieces: Vec<RecordBatch> = run.rows(file, schema).unwrap().map(Result::unwrap).collect();
    concat_batches(schema, &pieces).unwrap()
}

/// A column of texts.
fn texts(rows: &RecordBatch, name: &str) -> Vec<Option<String>> {
    let column = cast(rows.column_by_name(name).unwrap(), &DataType::Utf8).unwrap();
    column.as_string::<i32>().iter().map(|text| text.map(str::to_owned)).collect()
}

/// A column of instants, as seconds of [`at`].
fn seconds(rows: &RecordBatch, name: &str) -> Vec<i64> {
    let micros = rows.column_by_name(name).unwrap().as_primitive::<TimestampMicrosecondType>().values();
    micros.iter().map(|micros| micros / 1_000_000 - at(0).timestamp()).collect()
}

/// Dates as days.
fn days(rows: &RecordBatch) -> Vec<i64> {
    let micros = rows.column_by_name("date").unwrap().as_primitive::<TimestampMicrosecondType>().values();
    micros.iter().map(|micros| micros / DAY).collect()
}

/// The signals of a ticker and a period.
fn signals_of(ticker: &str, period: &str) -> SeriesKey {
    SeriesKey {
        period: Some(period.parse().unwrap()),
        regime: Some("neutral".parse().unwrap()),
        ..SeriesKey::of_ticker(Endpoint::SignalsHistoryAll, ticker.parse().unwrap())
    }
}

/// A history of signals: days, and whether each is `sell`.
fn history(signals: &[(i64, bool)]) -> RecordBatch {
    let count = signals.len();
    let codes: Int8Array = signals.iter().map(|(_, is_sell)| Some(i8::from(*is_sell))).collect();
    let dates = TimestampMicrosecondArray::from_iter_values(signals.iter().map(|(day, _)| day * DAY));
    let columns: [(&str, ArrayRef); 3] = [
        ("date", Arc::new(dates)),
        ("signal", choices(codes, vec!["buy", "sell"])),
        ("confidence", Arc::new(Float64Array::from(vec![0.5; count]))),
    ];
    Table::Signals.list(&columns).unwrap()
}

/// The stored signals of a run: ticker, period, day, change, signal, and the second of their observation.
type StoredSignal = (String, String, i64, String, Option<String>, i64);

fn stored_signals(run: &SealedRun) -> Vec<StoredSignal> {
    let rows = rows(run, &Table::Signals.file(), &Table::Signals.file_schema());
    let [tickers, periods, changes, signals] =
        ["ticker", "period", "change", "signal"].map(|name| texts(&rows, name).into_iter());
    let some = |text: Option<String>| text.unwrap();
    let cells = tickers.map(some).zip(periods.map(some)).zip(days(&rows));
    let values = changes.map(some).zip(signals).zip(seconds(&rows, "observed_at"));
    cells
        .zip(values)
        .map(|(((ticker, period), day), ((change, signal), at))| (ticker, period, day, change, signal, at))
        .collect()
}

/// A stored signal of ticker `A` and period `5d`.
fn stored_signal(day: i64, change: &str, signal: Option<&str>, at: i64) -> StoredSignal {
    ("A".to_owned(), "5d".to_owned(), day, change.to_owned(), signal.map(str::to_owned), at)
}

#[test]
fn a_run_that_was_due_has_no_answers_from_before() {
    let place = Place::new(&[]);
    let name = |second, interrupted| {
        let run = place.begin_as(second, "", interrupted);
        tell(&run, Told::new(Endpoint::SignalsHistoryAll, "x", second, Vec::new()));
        run.name().to_owned()
    };
    let first = name(10, Interrupted::Leave);
    assert_eq!(name(30, Interrupted::ResumeSince(at(10))), first);
    let second = name(30, Interrupted::ResumeSince(at(20)));
    assert_ne!(second, first);
    assert_eq!(name(40, Interrupted::ResumeSince(at(20))), second);
    assert!([first, second].contains(&name(50, Interrupted::Resume)));
}
