//! The rows of a run's answers by series, in order, and what the archive knows of these, a few whole tickers at a time.

use std::collections::hash_map::Entry;
use std::collections::{BTreeSet, HashMap, HashSet};
use std::ops::Range;
use std::sync::Arc;

use arrow::array::{Array, AsArray, BooleanArray, Int16Array, RecordBatch, TimestampMicrosecondArray, UInt32Array};
use arrow::compute::{concat_batches, filter_record_batch, take_record_batch};
use arrow::datatypes::{Int16Type, TimestampMicrosecondType};
use arrow::error::ArrowError;
use chrono::{DateTime, Utc};

use super::difference::{apply, difference, rows_of_answer};
use crate::archive::answers::answer_files::Files;
use crate::archive::answers::{Answer, AnswerBatches, AnswerRecord, EarlierAnswers, RowKind};
use crate::archive::coverage::Coverage;
use crate::archive::fold::cells::Cells;
use crate::archive::fold::merged::Merged;
use crate::archive::merge_failed;
use crate::archive::sealed::answers::Name;
use crate::archive::sealed::catalog::Archive;
use crate::archive::sealed::folder::Folder;
use crate::definition::NaiveRule;
use crate::disk::file::FileError;
use crate::error::Result;
use crate::interface::Endpoint;
use crate::process::cancel::{self, CancellationToken};
use crate::tables::{Change, Conventions, Reject, RequestRecord, SeriesKey, Table};
use crate::time::MICROS_PER_DAY;

/// The most answers open at once.
const OPEN_ANSWERS: usize = 1 << 12;

/// Location of rows: an answer, and a batch of its file.
#[derive(Clone, Copy, Debug)]
struct RowsPlace {
    answer: usize,
    batch: usize,
}

/// A series in the answers, and the location of its rows.
#[derive(Clone, Debug)]
pub(super) struct AnsweredSeries {
    pub(super) key: SeriesKey,
    places: Vec<RowsPlace>,
}

/// The files of all answers.
pub(super) struct AnswersBySeries<'a> {
    answers: &'a [Answer],
    conventions: &'a Conventions,
    /// What answers that are as before say.
    earlier: EarlierAnswers,
    /// Cancels reading them.
    stop: &'a CancellationToken,
    open: HashMap<usize, AnswerBatches>,
    files: Files,
    /// The requests, shared by many series.
    requests: Vec<Name>,
    /// Histories without signals, with their answers.
    empty: HashSet<(usize, &'a SeriesKey)>,
}

/// The rows of a series in an answer.
#[derive(Clone, Debug)]
pub(super) struct AnswerRows {
    pub(super) table: Table,
    pub(super) source: Endpoint,
    pub(super) request: Name,
    /// When the answer was complete.
    pub(super) observed_at: DateTime<Utc>,
    /// In the columns and order of [`Table::row_schema`].
    pub(super) rows: RecordBatch,
    /// Whether nothing of the ticker was rejected.
    pub(super) is_read: bool,
    /// Whether the next run may ask if the answer is still the same.
    pub(super) has_validator: bool,
}

/// A series that an answer repeats with other values.
#[derive(Clone, Debug)]
pub(in crate::archive) struct Repeated {
    pub(super) reject: Reject,
    /// When the answer was complete.
    pub(super) observed_at: DateTime<Utc>,
    /// Number of repeated records.
    pub(super) records: u64,
}

impl<'a> AnswersBySeries<'a> {
    /// Opens the answers of a run, in request order.
    pub(super) fn of(
        answers: &'a [Answer],
        earlier: EarlierAnswers,
        conventions: &'a Conventions,
        stop: &'a CancellationToken,
    ) -> Self {
        let requests = answers.iter().map(|answer| Name::from(answer.record.request.request.as_str())).collect();
        let of_answer = |(answer, it): (usize, &'a Answer)| it.record.empty.iter().map(move |key| (answer, key));
        let empty = answers.iter().enumerate().flat_map(of_answer).collect();
        Self { answers, earlier, conventions, stop, open: HashMap::new(), files: Files::default(), requests, empty }
    }

    /// Every series in the answers, in order.
    pub(super) fn series(&self) -> Vec<AnsweredSeries> {
        let of_answer = |(answer, it): (usize, &'a Answer)| {
            let with_place = move |(batch, key): (usize, &'a SeriesKey)| (key, RowsPlace { answer, batch });
            it.record.series.iter().enumerate().map(with_place)
        };
        let mut pieces: Vec<(&SeriesKey, RowsPlace)> = self.answers.iter().enumerate().flat_map(of_answer).collect();
        pieces.sort_by_key(|(key, _)| *key);
        let mut series: Vec<AnsweredSeries> = Vec::new();
        for (key, place) in pieces {
            match series.last_mut() {
                Some(last) if last.key == *key => last.places.push(place),
                _ => series.push(AnsweredSeries { key: key.clone(), places: vec![place] }),
            }
        }
        series
    }

    /// The answered requests with their operations, and when.
    pub(super) fn answered_requests(&self) -> impl Iterator<Item = (Name, (Endpoint, DateTime<Utc>))> {
        let records = self.answers.iter().map(|answer| &answer.record.request);
        let answered = records.map(|request| (request.endpoint, request.observed_at));
        self.requests.iter().map(Arc::clone).zip(answered)
    }

    /// The answers with rejected records, by their requests.
    pub(super) fn partly_read(&self) -> HashMap<&str, &AnswerRecord> {
        let partly = self.answers.iter().filter(|answer| !answer.record.unread.is_empty());
        partly.map(|answer| (answer.record.request.request.as_str(), &*answer.record)).collect()
    }

    /// The requests whose answers listed a series. A history without signals is not listed.
    pub(super) fn listing(&self, series: &AnsweredSeries) -> BTreeSet<Name> {
        let listing = series.places.iter().filter(|place| !self.empty.contains(&(place.answer, &series.key)));
        listing.map(|place| Arc::clone(&self.requests[place.answer])).collect()
    }

    /// Opens the answers that have rows of some series.
    pub(super) fn open(&mut self, series: &[AnsweredSeries]) -> Result<()> {
        if self.open.len() > OPEN_ANSWERS {
            self.open.clear();
        }
        let has_rows = |series: &&AnsweredSeries| series.key.table.is_some();
        let is_as_before = |place: &&RowsPlace| self.answers[place.answer].record.as_before.is_some();
        for place in series.iter().filter(has_rows).flat_map(|series| &series.places).filter(|it| !is_as_before(it)) {
            if let Entry::Vacant(open) = self.open.entry(place.answer) {
                let answer = &self.answers[place.answer];
                let batches = AnswerBatches::open(answer, RowKind::Typed, &mut self.files)?;
                let missing = || FileError::damage(&answer.folder, "an answer has no rows");
                open.insert(batches.ok_or_else(missing)?);
            }
        }
        Ok(())
    }

    /// Bytes of a series' rows.
    pub(super) fn bytes(&self, series: &AnsweredSeries) -> u64 {
        let length = |place: &RowsPlace| {
            self.answers[place.answer].record.rows.get(&RowKind::Typed)?.lengths.get(place.batch).copied()
        };
        series.places.iter().filter_map(length).sum()
    }

    /// The locations of a series, grouped by copy: a long list of articles or records comes in pieces; a history comes
    /// whole, possibly twice.
    fn copies<'t>(&self, series: &'t AnsweredSeries) -> impl Iterator<Item = &'t [RowsPlace]> {
        let table = series.key.table;
        let is_continued = move |one: &RowsPlace, next: &RowsPlace| {
            one.answer == next.answer && matches!(table, Some(Table::Articles | Table::SentimentHistory))
        };
        series.places.chunk_by(is_continued)
    }

    /// What each operation answered about a series, in order. The answers are open. Of signals that several answers of an
    /// operation list with different values, the first counts and the others are rejected; so are other copies that differ.
    pub(super) fn first_copies(
        &self,
        series: &AnsweredSeries,
        observations: &Observations,
    ) -> Result<(Vec<AnswerRows>, Vec<Repeated>)> {
        let (mut answers, mut repeated): (Vec<AnswerRows>, Vec<Repeated>) = (Vec::new(), Vec::new());
        let Some(table) = series.key.table else { return Ok((answers, repeated)) };
        for copy in self.copies(series) {
            let index = copy[0].answer;
            let RequestRecord { endpoint: source, observed_at, .. } = self.answers[index].record.request;
            let rows = match self.answers[index].record.as_before {
                Some(_) => self.earlier_rows(table, (index, &series.key), observations)?,
                None => self.rows(table, copy)?,
            };
            match answers.iter_mut().find(|first| first.source == source) {
                Some(first) if first.rows != rows => {
                    let is_history = table == Table::Signals && !source.is_latest();
                    let records = if is_history { first.join(&rows)? } else { rows.num_rows() as u64 };
                    if records > 0 {
                        let reject = repetition(&series.key, &self.answers[index]);
                        repeated.push(Repeated { reject, observed_at, records });
                    }
                }
                Some(_) => {}
                None => {
                    let request = Arc::clone(&self.requests[index]);
                    let is_read = self.answers[index].record.is_read(&series.key.ticker);
                    let has_validator = self.answers[index].record.request.validator.is_some();
                    answers.push(AnswerRows { table, source, request, observed_at, rows, is_read, has_validator });
                }
            }
        }
        answers.sort_by_key(|answer| (answer.observed_at, answer.source));
        Ok((answers, repeated))
    }

    /// The requests with series that several answers of an operation have: each such series is told of once.
    pub(super) fn with_shared_series(&self, series: &[AnsweredSeries]) -> HashSet<Name> {
        let source = |place: &RowsPlace| self.answers[place.answer].record.request.endpoint;
        let of_series = |AnsweredSeries { places, .. }: &'_ AnsweredSeries| -> Vec<Name> {
            let is_shared = |place: &&RowsPlace| {
                places.iter().any(|other| other.answer != place.answer && source(other) == source(place))
            };
            places.iter().filter(is_shared).map(|place| Arc::clone(&self.requests[place.answer])).collect()
        };
        series.iter().flat_map(of_series).collect()
    }

    /// The rows of a series in an answer that is as before.
    fn earlier_rows(
        &self,
        table: Table,
        (index, key): (usize, &SeriesKey),
        observations: &Observations,
    ) -> Result<RecordBatch> {
        let earlier = self.earlier.get(index, key, &self.answers[index])?;
        let known = observations.values(table, key, earlier.observed_at).map_err(merge_failed)?;
        rows_of_answer(earlier, &known).map_err(merge_failed)
    }

    /// The rows of a series, from the pieces of one answer.
    fn rows(&self, table: Table, pieces: &[RowsPlace]) -> Result<RecordBatch> {
        let read = pieces.iter().map(|place| self.piece(*place)).collect::<Result<Vec<_>>>()?;
        let whole = match &read[..] {
            [only] => Ok(only.clone()),
            read => concat_batches(&table.listed_schema(), read),
        };
        drop(read);
        whole
            .and_then(|rows| table.arrange(&rows, self.conventions.oldest_first))
            .and_then(|rows| match self.conventions.day_clock.filter(|_| table == Table::Signals) {
                Some(clock) => one_a_day(&rows, clock),
                None => Ok(rows),
            })
            .map_err(|error| FileError::damage(&self.answers[pieces[0].answer].folder, error))
    }

    /// A piece as the answer lists it.
    fn piece(&self, place: RowsPlace) -> Result<RecordBatch> {
        cancel::check(self.stop)?;
        self.open.get(&place.answer).expect("the answers of a series are open before it is read").get(place.batch)
    }
}

impl AnswerRows {
    /// Adds the signals of another history of the series, whose dates it does not have. Returns the number of those that it
    /// has with other values.
    fn join(&mut self, other: &RecordBatch) -> Result<u64> {
        let joined = difference(self.table, &self.rows, other, Coverage::Nothing).and_then(|found| {
            let Some((kinds, rows)) = found else { return Ok(0) };
            let is_new: BooleanArray = kinds.iter().map(|kind| Some(*kind == Change::Added)).collect();
            let new = filter_record_batch(&rows, &is_new)?;
            self.rows = apply(self.table, &self.rows, &(vec![Change::Added; new.num_rows()], new))?;
            Ok(kinds.len() as u64 - is_new.true_count() as u64)
        });
        joined.map_err(merge_failed)
    }
}

fn repetition(key: &SeriesKey, answer: &Answer) -> Reject {
    let SeriesKey { ticker, period, regime, .. } = key;
    let spelled = |part: Option<&'static str>| part.map_or_else(String::new, |part| format!(" {part}"));
    let (period, regime) = (spelled(period.map(|it| it.as_str())), spelled(regime.map(|it| it.as_str())));
    Reject {
        request: answer.record.request.request.clone(),
        ticker: Some(ticker.to_string()),
        pointer: format!("/{ticker}"),
        reason: format!("another history of the series{period}{regime} has other values; the earlier ones are kept"),
        raw: String::new(),
    }
}

/// One signal a day, where a service stamps each with the time at which it made it: signals with the days of a clock as their
/// dates, of several of a day, the last. One without a date stays without.
fn one_a_day(rows: &RecordBatch, clock: NaiveRule) -> Result<RecordBatch, ArrowError> {
    let column = |name: &str| Arc::clone(rows.column_by_name(name).expect("signals have the column"));
    let (dates, offsets) = (column("date"), column("utc_offset_minutes"));
    let (dates, offsets) = (dates.as_primitive::<TimestampMicrosecondType>(), offsets.as_primitive::<Int16Type>());
    let day = |row: usize| {
        let offset = offsets.is_valid(row).then(|| offsets.value(row));
        dates.is_valid(row).then(|| day_of(dates.value(row), offset, clock))
    };
    let days: Vec<Option<i64>> = (0..rows.num_rows()).map(day).collect();
    // Rows are in the order of their dates, but an offset may take one to the day before.
    let mut order: Vec<u32> = (0..rows.num_rows() as u32).collect();
    order.sort_by_key(|&row| days[row as usize]);
    let is_last =
        |place: &usize| order.get(place + 1).is_none_or(|&next| days[next as usize] != days[order[*place] as usize]);
    let kept: Vec<u32> = (0..order.len()).filter(is_last).map(|place| order[place]).collect();
    let days: TimestampMicrosecondArray = kept.iter().map(|&row| days[row as usize]).collect();
    let kept = take_record_batch(rows, &UInt32Array::from(kept))?;
    let offsets: Int16Array = std::iter::repeat_n(None, kept.num_rows()).collect();
    let mut columns = kept.columns().to_vec();
    columns[kept.schema_ref().index_of("date")?] = Arc::new(days);
    columns[kept.schema_ref().index_of("utc_offset_minutes")?] = Arc::new(offsets);
    RecordBatch::try_new(kept.schema(), columns)
}

/// The day on a clock of a date, as its midnight.
fn day_of(micros: i64, offset: Option<i16>, clock: NaiveRule) -> i64 {
    clock.face(micros, offset).div_euclid(MICROS_PER_DAY) * MICROS_PER_DAY
}

/// A reader of an archive's observations. Tickers are requested in order, so each file is read at most once.
pub(super) struct KnownReader {
    tables: Vec<(Table, Merged)>,
}

/// Observations of some series.
#[derive(Default)]
pub(super) struct Observations {
    /// Their cells, a few series at a time.
    cells: Vec<Cells>,
    /// The index of these, and the rows of a series among theirs.
    ranges: HashMap<SeriesKey, (usize, Range<usize>)>,
}

impl KnownReader {
    pub(super) fn open(archive: &Archive) -> Result<Self> {
        let folders: Vec<&Arc<Folder>> = archive.read().iter().collect();
        let horizon = archive.horizon(DateTime::<Utc>::MAX_UTC);
        let open = |table| Ok((table, Merged::open(table, &folders, &horizon)?));
        let tables: Vec<(Table, Merged)> = Table::ALL.into_iter().map(open).collect::<Result<_>>()?;
        Ok(Self { tables })
    }

    /// Observations of some series, which are of whole tickers and in order.
    pub(super) fn read(&mut self, series: &[AnsweredSeries]) -> Result<Observations> {
        let mut observations = Observations::default();
        for (table, merged) in &mut self.tables {
            let mut tickers: Vec<&str> = series
                .iter()
                .filter(|series| series.key.table == Some(*table))
                .map(|series| series.key.ticker.as_str())
                .collect();
            tickers.dedup();
            observations.add(*table, &merged.of_tickers(tickers.iter().copied())?)?;
        }
        Ok(observations)
    }
}

impl Observations {
    fn add(&mut self, table: Table, batches: &[RecordBatch]) -> Result<()> {
        if batches.is_empty() {
            return Ok(());
        }
        let cells = Cells::of(table, batches).map_err(merge_failed)?;
        let series = cells.series().map_err(merge_failed)?;
        self.ranges.extend(series.into_iter().map(|(key, range)| (key, (self.cells.len(), range))));
        self.cells.push(cells);
        Ok(())
    }

    /// The observations of a series.
    pub(super) fn rows(&self, table: Table, key: &SeriesKey) -> RecordBatch {
        match self.ranges.get(key) {
            Some((index, range)) => self.cells[*index].rows.slice(range.start, range.len()),
            None => RecordBatch::new_empty(table.schema()),
        }
    }

    /// Values of a series as of an instant, in the columns and order of the table's rows.
    pub(super) fn values(
        &self,
        table: Table,
        key: &SeriesKey,
        as_of: DateTime<Utc>,
    ) -> Result<RecordBatch, ArrowError> {
        match self.ranges.get(key) {
            Some((index, range)) => self.cells[*index].values(range.clone(), as_of.timestamp_micros()),
            None => Ok(RecordBatch::new_empty(table.row_schema())),
        }
    }
}

#[cfg(test)]
mod tests {
    use chrono::DateTime;

    use super::day_of;
    use crate::definition::NaiveRule;

    #[test]
    fn the_day_is_that_of_the_clock() {
        let micros = |text: &str| DateTime::parse_from_rfc3339(text).unwrap().timestamp_micros();
        let day = |text: &str, offset, clock: &str| {
            let midnight = day_of(micros(text), offset, clock.parse::<NaiveRule>().unwrap());
            DateTime::from_timestamp_micros(midnight).unwrap().naive_utc().to_string()
        };
        let late = "2026-10-06T02:30:07.123456Z";
        assert_eq!(day(late, Some(0), "utc"), "2026-10-06 00:00:00");
        assert_eq!(day(late, Some(0), "America/New_York"), "2026-10-05 00:00:00");
        assert_eq!(day(late, Some(-240), "wall"), "2026-10-05 00:00:00");
        assert_eq!(day(late, None, "America/New_York"), "2026-10-06 00:00:00", "it is on that clock");
    }
}
