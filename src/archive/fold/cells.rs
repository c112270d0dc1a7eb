//! Observations grouped by cell, and ordered by when they were made.

use std::ops::Range;
use std::sync::Arc;

use arrow::array::{
    Array, ArrayRef, AsArray, DynComparator, RecordBatch, TimestampMicrosecondArray, UInt32Array, make_comparator,
};
use arrow::compute::{SortOptions, concat_batches, take, take_arrays, take_record_batch};
use arrow::datatypes::{Field, Int32Type, TimestampMicrosecondType};
use arrow::error::ArrowError;

use super::order::Order;
use crate::archive::sealed::keys;
use crate::archive::sealed::rows::{changes, observed};
use crate::error::Reason;
use crate::tables::{Change, SeriesKey, Table};

/// Observations of the cells of some series, in the columns of [`Table::schema`].
pub(in crate::archive) struct Cells {
    pub(in crate::archive) table: Table,
    /// Sorted by series, cell and observation time.
    pub(in crate::archive) rows: RecordBatch,
    /// The rows of each cell.
    bounds: Vec<Range<usize>>,
    /// Observation time and kind of change of each row.
    seen: TimestampMicrosecondArray,
    pub(in crate::archive) changes: Vec<Change>,
    is_same_value: Vec<ValueComparator>,
}

/// Compares the values of a column.
pub(in crate::archive) struct ValueComparator {
    name: &'static str,
    compare: DynComparator,
    /// Whether a row says nothing of the column, for each side; none if every row does.
    says_nothing: Option<[ArrayRef; 2]>,
}

impl ValueComparator {
    /// Compares the columns of a table's values, between two sides.
    pub(in crate::archive) fn of_values(
        table: Table,
        names: impl Iterator<Item = &'static str>,
        sides: [&RecordBatch; 2],
    ) -> Result<Vec<Self>, ArrowError> {
        let columns = names.filter_map(|name| {
            let [one, other] = sides.map(|rows| rows.column_by_name(name));
            Some((name, one?, other?))
        });
        let comparator = |(name, one, other): (&'static str, &ArrayRef, &ArrayRef)| {
            let compare = make_comparator(one, other, SortOptions::default())?;
            let has_nulls = one.null_count() > 0 || other.null_count() > 0;
            let is_optional = table.optional().contains(&name) && has_nulls;
            Ok(Self { name, compare, says_nothing: is_optional.then(|| [Arc::clone(one), Arc::clone(other)]) })
        };
        columns.map(comparator).collect()
    }

    /// Whether two values are equal, or one of them says nothing.
    pub(in crate::archive) fn is_same(&self, one: usize, other: usize) -> bool {
        let says_nothing = |[ones, others]: &[ArrayRef; 2]| ones.is_null(one) || others.is_null(other);
        (self.compare)(one, other).is_eq() || self.says_nothing.as_ref().is_some_and(says_nothing)
    }
}

/// The known state of a cell.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::archive) struct CellState {
    /// The row of its first value.
    pub(in crate::archive) first: u32,
    /// The row of its latest value; `None` if it was withdrawn.
    pub(in crate::archive) latest: Option<u32>,
    /// The row of its latest revision, or its first.
    pub(in crate::archive) revised: u32,
    /// Number of later changes: revised, withdrawn or added again.
    pub(in crate::archive) revisions: u32,
}

/// What counts as a revision of a cell.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::archive) enum Revision {
    /// Another value.
    OfValue,
    /// A value that differs in more than its place among the others of the answer.
    OfContent,
}

/// What is known of a cell.
#[derive(Clone, Copy)]
struct Content {
    row: u32,
    /// The row that its unknown fields are from.
    extra: u32,
}

impl Cells {
    /// Groups observations by cell. What an observation says nothing of is what was known before.
    pub(in crate::archive) fn of<'a>(
        table: Table,
        batches: impl IntoIterator<Item = &'a RecordBatch> + Clone,
    ) -> Result<Self, ArrowError> {
        let cells = Self::as_stored(table, batches)?;
        let has_some = |compared: &ValueComparator| {
            let says_nothing = compared.says_nothing.as_ref();
            says_nothing.is_some_and(|[column, _]| column.null_count() < column.len())
        };
        let has_gaps = cells.is_same_value.iter().any(has_some) && cells.bounds.len() < cells.rows.num_rows();
        if has_gaps { cells.carried() } else { Ok(cells) }
    }

    /// The same with the rows as they are stored.
    pub(in crate::archive) fn as_stored<'a>(
        table: Table,
        batches: impl IntoIterator<Item = &'a RecordBatch> + Clone,
    ) -> Result<Self, ArrowError> {
        let mut starts = Vec::new();
        let mut start = 0;
        for batch in batches.clone() {
            starts.push(start);
            start += batch.num_rows() as u32;
        }
        let schema = batches.clone().into_iter().next().map_or_else(|| table.schema(), |first| first.schema());
        let rows = concat_batches(&schema, batches)?;
        let order = Order::of(table, &rows, &starts)?;
        let is_given = order.is_given();
        let Order { rows: ordered, cells: bounds } = order;
        let rows = if is_given { rows } else { take_record_batch(&rows, &UInt32Array::from(ordered))? };
        let changes = changes(&rows);
        let seen = observed(&rows).clone();
        let is_same_value = Self::comparators(table, &rows)?;
        Ok(Self { table, rows, bounds, seen, changes, is_same_value })
    }

    fn comparators(table: Table, rows: &RecordBatch) -> Result<Vec<ValueComparator>, ArrowError> {
        let is_value = |name: &&str| *name != "extra" || table.has_extra();
        let names = table.values().iter().copied().chain(["extra"]).filter(is_value);
        ValueComparator::of_values(table, names, [rows, rows])
    }

    /// Fills in what rows say nothing of: a row that repeats the known value has that, and a row that changes it has what
    /// was known of the rest.
    fn carried(self) -> Result<Self, ArrowError> {
        let Self { table, rows, bounds, seen, changes, is_same_value } = self;
        let own: Vec<u32> = (0..rows.num_rows() as u32).collect();
        // For each column of a value, the row that its value in each row is from.
        let mut from: Vec<Vec<u32>> = is_same_value.iter().map(|_| own.clone()).collect();
        for cell in bounds.iter().filter(|cell| cell.len() > 1) {
            let mut known: Option<usize> = None;
            for row in cell.clone().filter(|&row| is_last(seen.values(), cell, row)) {
                if changes[row] == Change::Withdrawn {
                    known = None;
                    continue;
                }
                let Some(before) = known.replace(row) else { continue };
                let is_same =
                    |(compared, from): (&ValueComparator, &Vec<u32>)| compared.is_same(from[before] as usize, row);
                let repeats = is_same_value.iter().zip(&from).all(is_same);
                for (compared, from) in is_same_value.iter().zip(&mut from) {
                    let Some([column, _]) = &compared.says_nothing else { continue };
                    if repeats || column.is_null(row) {
                        from[row] = from[before];
                    }
                }
            }
        }
        let mut columns = rows.columns().to_vec();
        for (compared, from) in is_same_value.iter().zip(from).filter(|(_, from)| *from != own) {
            let place = rows.schema_ref().index_of(compared.name)?;
            columns[place] = take(&columns[place], &UInt32Array::from(from), None)?;
        }
        let rows = RecordBatch::try_new(rows.schema(), columns)?;
        let is_same_value = Self::comparators(table, &rows)?;
        Ok(Self { table, rows, bounds, seen, changes, is_same_value })
    }

    /// Number of cells.
    pub(in crate::archive) fn count(&self) -> usize {
        self.bounds.len()
    }

    /// The rows of each cell, in order.
    pub(in crate::archive) fn bounds(&self) -> &[Range<usize>] {
        &self.bounds
    }

    /// The cells of each series, in order.
    pub(in crate::archive) fn series(&self) -> Result<Vec<(SeriesKey, Range<usize>)>, Reason> {
        let mut first = 0;
        let of_series = |(key, rows): (SeriesKey, Range<usize>)| {
            let start = first;
            first += self.bounds[start..].partition_point(|cell| cell.end <= rows.end);
            (key, start..first)
        };
        Ok(keys::ranges(self.table, &self.rows)?.into_iter().map(of_series).collect())
    }

    /// The observations of some cells.
    pub(in crate::archive) fn observations(&self, cells: Range<usize>) -> RecordBatch {
        let (start, end) = match &self.bounds[cells] {
            [] => (0, 0),
            [first, .., last] => (first.start, last.end),
            [only] => (only.start, only.end),
        };
        self.rows.slice(start, end - start)
    }

    /// The known state of some cells as of an instant, in cell order, without cells not yet known.
    pub(in crate::archive) fn known(
        &self,
        cells: Range<usize>,
        as_of_micros: i64,
        revision: Revision,
    ) -> Vec<CellState> {
        let mut all = Vec::with_capacity(cells.len());
        for cell in &self.bounds[cells] {
            if let Some(row) = only(cell) {
                let known = CellState { first: row, latest: Some(row), revised: row, revisions: 0 };
                all.extend(self.has_value(row, as_of_micros).then_some(known));
                continue;
            }
            let (mut known, mut last): (Option<CellState>, Option<u32>) = (None, None);
            let mut content = None;
            for (row, value) in self.timeline(cell, as_of_micros) {
                let before = std::mem::replace(&mut last, value);
                let content_before = content;
                if revision == Revision::OfContent {
                    content = self.content(content, value);
                }
                match (&mut known, value) {
                    (None, Some(_)) => {
                        known = Some(CellState { first: row, latest: value, revised: row, revisions: 0 });
                    }
                    (None, None) => {}
                    (Some(_), _) if self.is_same(before, value) => {}
                    (Some(known), value) => {
                        known.latest = value;
                        if revision == Revision::OfValue || !self.is_same_content(content_before, content) {
                            known.revised = row;
                            known.revisions += 1;
                        }
                    }
                }
            }
            all.extend(known);
        }
        all
    }

    /// Whether a row has a value and was observed by an instant.
    fn has_value(&self, row: u32, as_of_micros: i64) -> bool {
        self.seen.values()[row as usize] <= as_of_micros && self.changes[row as usize] != Change::Withdrawn
    }

    /// Rows of a cell up to an instant, each with itself as value unless it withdraws the cell. Of several rows of one
    /// instant the last one counts: a merge may state an answer again.
    fn timeline(&self, cell: &Range<usize>, as_of_micros: i64) -> impl Iterator<Item = (u32, Option<u32>)> {
        let seen = self.seen.values();
        let rows = cell.clone().take_while(move |&row| seen[row] <= as_of_micros);
        let rows = rows.filter(|&row| is_last(seen, cell, row));
        rows.map(|row| (row as u32, (self.changes[row] != Change::Withdrawn).then_some(row as u32)))
    }

    /// Whether two observations have equal values.
    fn is_same(&self, one: Option<u32>, other: Option<u32>) -> bool {
        match (one, other) {
            (None, None) => true,
            (Some(one), Some(other)) => {
                self.is_same_value.iter().all(|compared| compared.is_same(one as usize, other as usize))
            }
            _ => false,
        }
    }

    /// What an observation says of a cell after what was known.
    fn content(&self, known: Option<Content>, value: Option<u32>) -> Option<Content> {
        let row = value?;
        // An answer whose unknown fields were not kept does not change them.
        let has_extra = self.rows.column_by_name("extra").is_none_or(|extra| extra.is_valid(row as usize));
        let extra = if has_extra { row } else { known.map_or(row, |known| known.extra) };
        Some(Content { row, extra })
    }

    /// Whether two successive states of a cell differ at most in its place among the others.
    fn is_same_content(&self, before: Option<Content>, now: Option<Content>) -> bool {
        let (Some(before), Some(now)) = (before, now) else { return before.is_none() && now.is_none() };
        self.is_same_value.iter().all(|compared| {
            let [one, other] = match compared.name {
                name if self.table.positional().contains(&name) => return true,
                "extra" => [before.extra, now.extra],
                _ => [before.row, now.row],
            };
            compared.is_same(one as usize, other as usize)
        })
    }

    /// Every value of every cell up to an instant that differs from the one before: its row, the time it was observed,
    /// and the time it ended, if it has.
    pub(in crate::archive) fn spans(&self, as_of_micros: i64) -> (Vec<u32>, Vec<i64>, Vec<Option<i64>>) {
        let (mut rows, mut from, mut until) = (Vec::new(), Vec::new(), Vec::new());
        for cell in &self.bounds {
            let mut last: Option<u32> = None;
            for (row, value) in self.timeline(cell, as_of_micros) {
                let before = std::mem::replace(&mut last, value);
                if self.is_same(before, value) {
                    continue;
                }
                let instant = self.seen.value(row as usize);
                if before.is_some() {
                    *until.last_mut().expect("the row before has a value") = Some(instant);
                }
                if let Some(row) = value {
                    rows.push(row);
                    from.push(instant);
                    until.push(None);
                }
            }
        }
        (rows, from, until)
    }

    /// Every row up to an instant whose value differs from the row before, and the range of each cell among them.
    pub(in crate::archive) fn turns(&self, as_of_micros: i64) -> (Vec<u32>, Vec<Range<usize>>) {
        let (mut turns, mut bounds) = (Vec::with_capacity(self.rows.num_rows()), Vec::with_capacity(self.bounds.len()));
        for cell in &self.bounds {
            let start = turns.len();
            if let Some(row) = only(cell) {
                if self.has_value(row, as_of_micros) {
                    turns.push(row);
                    bounds.push(start..start + 1);
                }
                continue;
            }
            let mut last: Option<u32> = None;
            for (row, value) in self.timeline(cell, as_of_micros) {
                if !self.is_same(std::mem::replace(&mut last, value), value) {
                    turns.push(row);
                }
            }
            if turns.len() > start {
                bounds.push(start..turns.len());
            }
        }
        (turns, bounds)
    }

    /// Values of some cells as of an instant, in the columns and order of the table's rows.
    pub(in crate::archive) fn values(&self, cells: Range<usize>, as_of_micros: i64) -> Result<RecordBatch, ArrowError> {
        let known = self.known(cells, as_of_micros, Revision::OfValue);
        let mut rows: Vec<u32> = known.into_iter().filter_map(|known| known.latest).collect();
        if self.table == Table::Articles {
            let dates = self.rows.column_by_name("date").expect("articles have dates");
            let places = self.rows.column_by_name("place").expect("articles have places");
            let dates = dates.as_primitive::<TimestampMicrosecondType>().values();
            let places = places.as_primitive::<Int32Type>().values();
            rows.sort_by_key(|&row| (dates[row as usize], places[row as usize]));
        }
        // Withdrawn cells have no value, so the columns have the types of a table's rows only without them.
        let columns = columns_of(self.table, &self.rows)?;
        let columns = match rows.first() {
            // Most cells are observed once.
            Some(&first) if rows.iter().copied().eq(first..first + rows.len() as u32) => {
                columns.iter().map(|column| column.slice(first as usize, rows.len())).collect()
            }
            _ => take_arrays(&columns, &UInt32Array::from(rows), None)?,
        };
        RecordBatch::try_new(self.table.row_schema(), columns)
    }
}

/// Whether a row of a cell is the last one of its instant.
fn is_last(seen: &[i64], cell: &Range<usize>, row: usize) -> bool {
    row + 1 == cell.end || seen[row + 1] != seen[row]
}

/// The row of a cell observed once, as nearly all are.
fn only(cell: &Range<usize>) -> Option<u32> {
    (cell.len() == 1).then_some(cell.start as u32)
}

/// Selects the columns of a table's rows from those of its file.
pub(in crate::archive) fn rows_of(table: Table, rows: &RecordBatch) -> Result<RecordBatch, ArrowError> {
    RecordBatch::try_new(table.row_schema(), columns_of(table, rows)?)
}

fn columns_of(table: Table, rows: &RecordBatch) -> Result<Vec<ArrayRef>, ArrowError> {
    let column = |field: &Arc<Field>| {
        let column = rows.column_by_name(field.name());
        column.cloned().ok_or_else(|| ArrowError::SchemaError(format!("no column `{}`", field.name())))
    };
    table.row_schema().fields().iter().map(column).collect()
}
