//! What an answer changes in a series: its rows held against what is remembered of it.
//!
//! First by fingerprints, which takes no reading: a quarter whose fingerprint is as before has not changed, and one that
//! begins as it was and goes on has new rows. Only of a quarter that is neither are the old rows needed.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::ops::Range;
use std::sync::Arc;

use arrow::array::{
    Array, ArrayRef, AsArray, Int32Array, RecordBatch, RecordBatchOptions, UInt32Array, new_null_array,
};
use arrow::compute::{concat_batches, filter_record_batch, take_record_batch};
use arrow::datatypes::{Field, Int32Type, TimestampMicrosecondType};
use arrow::error::ArrowError;
use arrow::row::{RowConverter, Rows, SortField};
use chrono::{DateTime, Utc};

use super::cells::{Cells, changes, rows_of};
use super::fingerprint::{Fingerprints, fingerprint};
use super::quarter::{Quarter, Stretch, stretches};
use super::remembered::{Bucket, Memory, NEW, Name, Runs};
use crate::tables::{Change, Changes, SeriesKey, Table};

/// What an answer says of a series.
#[derive(Clone, Debug)]
pub(super) struct Said {
    pub(super) key: SeriesKey,
    pub(super) table: Table,
    /// When the answer was complete.
    pub(super) observed_at: DateTime<Utc>,
    /// In the columns and the order of [`Table::row_schema`].
    pub(super) rows: RecordBatch,
    /// The run that was answered.
    pub(super) run: Name,
}

/// What an answer changed, as far as fingerprints tell.
#[derive(Debug)]
pub(super) struct Compared {
    said: Said,
    memory: Memory,
    /// The rows that are new, by quarter.
    fresh: Vec<Stretch>,
    /// The quarters whose old rows are needed, with the rows that are said of them now.
    doubtful: BTreeMap<Option<Quarter>, Range<usize>>,
}

/// A series whose changes are known.
#[derive(Debug)]
pub(super) struct Settled {
    pub(super) changes: Vec<Changes>,
    pub(super) memory: Memory,
}

impl Said {
    /// Holds the rows against the fingerprints. A series that has none is new as a whole.
    pub(super) fn compare(self, mut memory: Memory) -> Compared {
        let (mut fresh, mut doubtful) = (Vec::new(), BTreeMap::new());
        let stretches = stretches(&self.rows);
        let mut fingerprints = Fingerprints::of(&self.rows);
        let own = Runs::new(BTreeSet::from([Arc::clone(&self.run)]));
        for (quarter, range) in &stretches {
            let mut digest = |rows: Range<usize>| Some(fingerprints.of_stretch(rows));
            let Some(bucket) = memory.buckets.get_mut(quarter).filter(|bucket| bucket.rows > 0) else {
                fresh.push((*quarter, range.clone()));
                let (rows, digest) = (range.len() as u64, digest(range.clone()));
                let bucket = Bucket { rows, digest, runs: Arc::clone(&own), level: NEW };
                memory.buckets.insert(*quarter, bucket);
                continue;
            };
            let known = usize::try_from(bucket.rows).unwrap_or(usize::MAX);
            if bucket.digest.is_some() && known == range.len() && bucket.digest == digest(range.clone()) {
                continue;
            }
            if bucket.digest.is_some()
                && known < range.len()
                && bucket.digest == digest(range.start..range.start + known)
            {
                fresh.push((*quarter, range.start + known..range.end));
                (bucket.rows, bucket.digest, bucket.level) = (range.len() as u64, digest(range.clone()), NEW);
                bucket.held_by_too(&own);
                continue;
            }
            doubtful.insert(*quarter, range.clone());
        }
        let is_said = |quarter: &Option<Quarter>| stretches.iter().any(|(said, _)| said == quarter);
        // What is covered and not said is withdrawn; what is before the oldest date that is said is not covered.
        if let Some((Some(first), _)) = stretches.iter().find(|(quarter, _)| quarter.is_some()) {
            let silent =
                memory.buckets.range(Some(*first)..).filter(|(quarter, bucket)| bucket.rows > 0 && !is_said(quarter));
            let silent: Vec<Option<Quarter>> = silent.map(|(quarter, _)| *quarter).collect();
            doubtful.extend(silent.into_iter().map(|quarter| (quarter, 0..0)));
        }
        memory.buckets.entry(None).or_insert_with(Bucket::empty);
        Compared { said: self, memory, fresh, doubtful }
    }
}

impl Compared {
    pub(super) fn key(&self) -> &SeriesKey {
        &self.said.key
    }

    pub(super) fn table(&self) -> Table {
        self.said.table
    }

    /// The runs whose rows of this series are needed.
    pub(super) fn needed(&self) -> BTreeSet<Name> {
        let buckets = self.doubtful.keys().filter_map(|quarter| self.memory.buckets.get(quarter));
        buckets.flat_map(|bucket| bucket.runs.iter().map(Arc::clone)).collect()
    }

    /// The new rows, those of quarters that follow each other in one piece under the first of these.
    fn joined_fresh(&self) -> Vec<Stretch> {
        let mut joined: Vec<Stretch> = Vec::new();
        for (quarter, range) in &self.fresh {
            match joined.last_mut() {
                Some((first, last))
                    if last.end == range.start && self.doubtful.range(*first..*quarter).next().is_none() =>
                {
                    last.end = range.end;
                }
                _ => joined.push((*quarter, range.clone())),
            }
        }
        joined
    }

    /// What became of the series, given its observations in each of the runs that are needed.
    pub(super) fn settle(mut self, past: &[(Name, RecordBatch)]) -> Result<Settled, ArrowError> {
        let Said { key, table, observed_at, rows, run } = &self.said;
        let one = |kinds: Vec<Change>, rows: RecordBatch| Changes {
            key: key.clone(),
            observed_at: *observed_at,
            kinds,
            rows,
        };
        let mut pieces: Vec<(Option<Quarter>, Changes)> = Vec::new();
        for (quarter, range) in self.joined_fresh() {
            let rows = rows.slice(range.start, range.len());
            pieces.push((quarter, one(vec![Change::Added; range.len()], rows)));
        }
        let covered_from = oldest(rows);
        for (quarter, range) in &self.doubtful {
            let bucket = self.memory.buckets.get_mut(quarter).expect("a doubtful quarter is one that is remembered");
            // Of the runs that were read for other quarters, some may say what later ones of this quarter took back.
            let own = past.iter().filter(|(run, _)| bucket.runs.contains(run));
            let old = Old::of(*table, in_quarter(own, *quarter)?)?;
            let said = rows.slice(range.start, range.len());
            let said = if range.start == 0 { aligned(*table, said, &old.latest)? } else { said };
            let difference = Difference::of(*table, &old.latest, &said, covered_from)?;
            if difference.is_none() {
                if bucket.digest.is_none() {
                    bucket.refresh(&old.latest);
                }
                continue;
            }
            let changed = one(difference.kinds(), difference.rows(*table, &old.latest, &said)?);
            let (now, runs) = old.with(*table, run, &changed)?;
            bucket.refresh(&now);
            bucket.runs = Runs::new(runs);
            pieces.push((*quarter, changed));
        }
        pieces.sort_by_key(|(quarter, _)| *quarter);
        Ok(Settled { changes: pieces.into_iter().map(|(_, changes)| changes).collect(), memory: self.memory })
    }
}

impl Bucket {
    fn empty() -> Self {
        Self { rows: 0, digest: Some(NOTHING), runs: Runs::default(), level: NEW }
    }

    /// Some runs hold observations of the rows, too.
    pub(super) fn held_by_too(&mut self, runs: &Runs) {
        if !runs.is_subset(&self.runs) {
            Arc::make_mut(&mut self.runs).extend(runs.iter().map(Arc::clone));
        }
    }

    /// What the rows are is known again.
    fn refresh(&mut self, rows: &RecordBatch) {
        let digest = if rows.num_rows() == 0 { NOTHING } else { fingerprint(rows) };
        (self.rows, self.digest, self.level) = (rows.num_rows() as u64, Some(digest), NEW);
    }
}

/// The fingerprint of no rows is never compared; it is zeros, so that a reader need not compute it.
pub(super) const NOTHING: [u8; 16] = [0; 16];

impl Memory {
    /// What is remembered of a series that was never heard of.
    pub(super) fn empty() -> Self {
        Self { requests: BTreeSet::new(), buckets: BTreeMap::from([(None, Bucket::empty())]) }
    }
}

/// What was known of a quarter.
struct Old {
    observations: Vec<(Name, RecordBatch)>,
    /// The latest values, in the columns and the order of the table's rows.
    latest: RecordBatch,
}

impl Old {
    fn of(table: Table, observations: Vec<(Name, RecordBatch)>) -> Result<Self, ArrowError> {
        let latest = match &observations[..] {
            // One run, and nothing but first observations: they are what is known, as they stand.
            [(_, only)] if table == Table::Signals && is_all_added(only) => rows_of(table, only)?,
            _ => Cells::of(table, observations.iter().map(|(_, rows)| rows))?.latest()?,
        };
        Ok(Self { observations, latest })
    }

    /// What is known with some changes more, and which runs hold the last word on a cell.
    fn with(self, table: Table, run: &Name, changed: &Changes) -> Result<(RecordBatch, BTreeSet<Name>), ArrowError> {
        let mut observations = self.observations;
        observations.push((Arc::clone(run), table.batch(std::slice::from_ref(changed))?));
        let cells = Cells::of(table, observations.iter().map(|(_, rows)| rows))?;
        let runs = cells.last_words().into_iter().map(|batch| Arc::clone(&observations[batch].0)).collect();
        Ok((cells.latest()?, runs))
    }
}

fn is_all_added(rows: &RecordBatch) -> bool {
    changes(rows).iter().all(|change| *change == Change::Added) && {
        let dates = rows.column_by_name("date").map(|column| column.as_primitive::<TimestampMicrosecondType>());
        dates.is_some_and(|dates| dates.values().is_sorted_by(|one, next| one < next))
    }
}

/// The oldest date that is said.
fn oldest(rows: &RecordBatch) -> Option<i64> {
    let dates = rows.column_by_name("date")?.as_primitive::<TimestampMicrosecondType>();
    dates.iter().flatten().next()
}

/// What some runs observed of a quarter, those that did.
pub(super) fn in_quarter<'a>(
    observed: impl Iterator<Item = &'a (Name, RecordBatch)>,
    quarter: Option<Quarter>,
) -> Result<Vec<(Name, RecordBatch)>, ArrowError> {
    let of_run = |(run, rows): &'a (Name, RecordBatch)| match of_quarter(rows, quarter) {
        Ok(rows) => rows.map(|rows| Ok((Arc::clone(run), rows))),
        Err(error) => Some(Err(error)),
    };
    observed.filter_map(of_run).collect()
}

/// The rows of a quarter, or those without a date; none where there are none, as in most runs.
fn of_quarter(rows: &RecordBatch, quarter: Option<Quarter>) -> Result<Option<RecordBatch>, ArrowError> {
    let some = |rows: RecordBatch| (rows.num_rows() > 0).then_some(rows);
    let Some(dates) = rows.column_by_name("date") else { return Ok(some(rows.clone())) };
    let dates = dates.as_primitive::<TimestampMicrosecondType>();
    let is_wanted = |date: Option<i64>| match (quarter, date) {
        (Some(quarter), Some(date)) => quarter.micros().contains(&date),
        (None, None) => true,
        _ => false,
    };
    if dates.null_count() == 0
        && let Some(quarter) = quarter
        && dates.values().is_sorted()
    {
        let micros = quarter.micros();
        let start = dates.values().partition_point(|&date| date < micros.start);
        let end = dates.values().partition_point(|&date| date < micros.end);
        return Ok((start < end).then(|| rows.slice(start, end - start)));
    }
    filter_record_batch(rows, &dates.iter().map(|date| Some(is_wanted(date))).collect()).map(some)
}

/// The first articles of a list, their places going on from where they were: it may begin in the middle of a date.
fn aligned(table: Table, said: RecordBatch, old: &RecordBatch) -> Result<RecordBatch, ArrowError> {
    if table != Table::Articles || said.num_rows() == 0 || old.num_rows() == 0 {
        return Ok(said);
    }
    let text =
        |rows: &RecordBatch, column: usize, row: usize| rows.column(column).as_string::<i32>().value(row).to_owned();
    let date = |rows: &RecordBatch, row: usize| rows.column(0).as_primitive::<TimestampMicrosecondType>().value(row);
    let copies = old.column(3).as_primitive::<Int32Type>();
    let is_first = |row: &usize| {
        copies.value(*row) == 0
            && date(old, *row) == date(&said, 0)
            && (1..=2).all(|column| text(old, column, *row) == text(&said, column, 0))
    };
    let places = |rows: &RecordBatch| rows.column(4).as_primitive::<Int32Type>().values().to_vec();
    let shift = (0..old.num_rows()).find(is_first).map_or(0, |row| places(old)[row]);
    if shift == 0 {
        return Ok(said);
    }
    let of_row = |(row, place): (usize, i32)| if date(&said, row) == date(&said, 0) { place + shift } else { place };
    let places: ArrayRef = Arc::new(places(&said).into_iter().enumerate().map(of_row).collect::<Int32Array>());
    let mut columns = said.columns().to_vec();
    columns[4] = places;
    RecordBatch::try_new(said.schema(), columns)
}

/// In what a quarter differs from what it was.
#[derive(Default)]
struct Difference {
    /// Rows of what is said, and whether their cells are added or revised.
    said: Vec<(u32, Change)>,
    /// Rows of what was, whose cells are gone.
    gone: Vec<u32>,
}

impl Difference {
    fn of(table: Table, old: &RecordBatch, said: &RecordBatch, covered_from: Option<i64>) -> Result<Self, ArrowError> {
        // A history that slid forward and is otherwise as it was: the rest of what was is what is said.
        if table == Table::Signals
            && ends_with(old, said)
            && is_uncovered(old, old.num_rows() - said.num_rows(), covered_from)
        {
            return Ok(Self::default());
        }
        let identity = Comparison::of(old, said, table.identity())?;
        let values = Comparison::of(old, said, table.values())?;
        let extra = table.has_extra().then(|| said.num_columns() - 1);
        let known: HashMap<&[u8], usize> = (0..old.num_rows()).map(|row| (identity.old(row), row)).collect();
        let (mut difference, mut met) = (Self::default(), vec![false; old.num_rows()]);
        for row in 0..said.num_rows() {
            let Some(&before) = known.get(identity.said(row)) else {
                difference.said.push((row as u32, Change::Added));
                continue;
            };
            met[before] = true;
            let is_same_extra = extra.is_none_or(|column| {
                let (old, said) = (old.column(column).as_string::<i32>(), said.column(column).as_string::<i32>());
                // An answer whose unknown fields were not kept says nothing of them.
                said.is_null(row) || (old.is_valid(before) && old.value(before) == said.value(row))
            });
            if values.old(before) != values.said(row) || !is_same_extra {
                difference.said.push((row as u32, Change::Revised));
            }
        }
        let is_gone = |row: &usize| !met[*row] && is_covered(table, old, *row, covered_from);
        difference.gone = (0..old.num_rows()).filter(is_gone).map(|row| row as u32).collect();
        Ok(difference)
    }

    fn is_none(&self) -> bool {
        self.said.is_empty() && self.gone.is_empty()
    }

    fn kinds(&self) -> Vec<Change> {
        let said = self.said.iter().map(|(_, change)| *change);
        said.chain(self.gone.iter().map(|_| Change::Withdrawn)).collect()
    }

    /// The rows that changed; of those that are gone only what tells them apart.
    fn rows(&self, table: Table, old: &RecordBatch, said: &RecordBatch) -> Result<RecordBatch, ArrowError> {
        let schema = table.open_row_schema();
        let said = take_record_batch(said, &self.said.iter().map(|(row, _)| *row).collect::<UInt32Array>())?;
        let gone = take_record_batch(old, &UInt32Array::from(self.gone.clone()))?;
        let column = |(place, field): (usize, &Arc<Field>)| {
            if table.identity().contains(&field.name().as_str()) {
                Arc::clone(gone.column(place))
            } else {
                new_null_array(field.data_type(), gone.num_rows())
            }
        };
        let columns: Vec<ArrayRef> = schema.fields().iter().enumerate().map(column).collect();
        let options = RecordBatchOptions::new().with_row_count(Some(gone.num_rows()));
        let gone = RecordBatch::try_new_with_options(schema.clone(), columns, &options)?;
        concat_batches(&schema, [&said.with_schema(schema.clone())?, &gone])
    }
}

/// Some columns of old rows and of rows that are said, as bytes that can be compared.
struct Comparison {
    old: Option<Rows>,
    said: Option<Rows>,
}

impl Comparison {
    fn of(old: &RecordBatch, said: &RecordBatch, names: &[&str]) -> Result<Self, ArrowError> {
        let columns = |rows: &RecordBatch| -> Vec<ArrayRef> {
            names.iter().filter_map(|name| rows.column_by_name(name).cloned()).collect()
        };
        if names.is_empty() {
            return Ok(Self { old: None, said: None });
        }
        let (old, said) = (columns(old), columns(said));
        let converter =
            RowConverter::new(said.iter().map(|column| SortField::new(column.data_type().clone())).collect())?;
        Ok(Self { old: Some(converter.convert_columns(&old)?), said: Some(converter.convert_columns(&said)?) })
    }

    fn old(&self, row: usize) -> &[u8] {
        self.old.as_ref().map_or(&[], |rows| rows.row(row).data())
    }

    fn said(&self, row: usize) -> &[u8] {
        self.said.as_ref().map_or(&[], |rows| rows.row(row).data())
    }
}

/// Whether the last of some rows are others.
fn ends_with(rows: &RecordBatch, others: &RecordBatch) -> bool {
    let Some(start) = rows.num_rows().checked_sub(others.num_rows()) else { return false };
    rows.slice(start, others.num_rows()).columns() == others.columns()
}

/// Whether the first of some rows are from before what an answer covers.
fn is_uncovered(rows: &RecordBatch, count: usize, covered_from: Option<i64>) -> bool {
    (0..count).all(|row| !is_covered(Table::Signals, rows, row, covered_from))
}

/// Whether an answer would have a cell if it still were: from its oldest date on it has all. Of articles the oldest date
/// may be there in part, where their number is limited.
fn is_covered(table: Table, rows: &RecordBatch, row: usize, covered_from: Option<i64>) -> bool {
    if !table.is_dated() {
        return true;
    }
    let dates = rows.column(0).as_primitive::<TimestampMicrosecondType>();
    match (covered_from, dates.is_valid(row)) {
        (Some(from), true) if table == Table::Articles => dates.value(row) > from,
        (Some(from), true) => dates.value(row) >= from,
        // What has no date is heard of only in answers that have it.
        (_, false) => false,
        (None, true) => false,
    }
}
