//! Observations grouped by cell, and ordered by when they were made.

use std::ops::Range;
use std::sync::Arc;

use arrow::array::{Array, ArrayRef, AsArray, RecordBatch, TimestampMicrosecondArray, UInt32Array};
use arrow::compute::{concat_batches, take};
use arrow::datatypes::{Field, Int32Type, TimestampMicrosecondType};
use arrow::error::ArrowError;

use super::order::{Order, RowRanges, ValueComparator};
use crate::archive::fold::order::{Group, Groups};
use crate::archive::sealed::rows::{self, changes, observation_times};
use crate::error::Reason;
use crate::tables::{Change, SeriesKey, Table};

/// Observations of the cells of some series, in the columns of [`Table::schema`].
pub(in crate::archive) struct Cells {
    pub(in crate::archive) table: Table,
    /// Sorted by series, cell and observation time.
    pub(in crate::archive) rows: RecordBatch,
    /// The rows by cell.
    pub(in crate::archive) groups: Groups,
    /// Observation time and kind of change of each row.
    seen: TimestampMicrosecondArray,
    pub(in crate::archive) changes: Vec<Change>,
    is_same_value: Vec<ValueComparator>,
}

/// The known state of a cell.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::archive) struct CellState {
    /// The row of its first value.
    pub(in crate::archive) first: usize,
    /// The row of its latest value; `None` if it was withdrawn.
    pub(in crate::archive) latest: Option<usize>,
    /// The row of its latest revision, or its first.
    pub(in crate::archive) revised: usize,
    /// Number of later changes: revised, withdrawn or added again.
    pub(in crate::archive) revisions: u32,
}

/// What is known of some cells, which come in order.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(in crate::archive) enum KnownCells {
    /// Each was observed once: their rows.
    Once(Range<usize>),
    /// One was observed more often.
    Often(CellState),
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
struct KnownContent {
    row: usize,
    /// The row that its unknown fields are from.
    extra: usize,
}

impl Cells {
    /// Groups observations by cell. What an observation says nothing of is what was known before.
    pub(in crate::archive) fn of<'a>(
        table: Table,
        batches: impl IntoIterator<Item = &'a RecordBatch> + Clone,
    ) -> Result<Self, ArrowError> {
        Self::with_columns(table, batches, |_| true)
    }

    /// The same with some of the columns. What tells cells apart is needed for that alone.
    pub(in crate::archive) fn with_columns<'a>(
        table: Table,
        batches: impl IntoIterator<Item = &'a RecordBatch> + Clone,
        is_kept: impl Fn(&str) -> bool,
    ) -> Result<Self, ArrowError> {
        let cells = Self::gather(table, batches, is_kept)?;
        let has_some = |compared: &ValueComparator| {
            let says_nothing = compared.says_nothing.as_ref();
            says_nothing.is_some_and(|[column, _]| column.null_count() < column.len())
        };
        let has_gaps = cells.is_same_value.iter().any(has_some) && cells.groups.have_several();
        if has_gaps { cells.carry_forward() } else { Ok(cells) }
    }

    /// The same with the rows as they are stored.
    pub(in crate::archive) fn as_stored<'a>(
        table: Table,
        batches: impl IntoIterator<Item = &'a RecordBatch> + Clone,
    ) -> Result<Self, ArrowError> {
        Self::gather(table, batches, |_| true)
    }

    fn gather<'a>(
        table: Table,
        batches: impl IntoIterator<Item = &'a RecordBatch> + Clone,
        is_kept: impl Fn(&str) -> bool,
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
        let fields = schema.fields().iter().enumerate();
        let kept: Vec<usize> = fields.filter(|(_, field)| is_kept(field.name())).map(|(index, _)| index).collect();
        let rows = rows.project(&kept)?;
        Self::of_groups(table, order.rows.of(&rows)?, order.groups())
    }

    /// Cells that were observed once each. They may lack the columns that tell them apart.
    pub(in crate::archive) fn observed_once(table: Table, rows: RecordBatch) -> Result<Self, ArrowError> {
        let groups = Groups::of(rows.num_rows(), &[]);
        Self::of_groups(table, rows, groups)
    }

    fn of_groups(table: Table, rows: RecordBatch, groups: Groups) -> Result<Self, ArrowError> {
        let (changes, seen) = (changes(&rows), observation_times(&rows).clone());
        let is_same_value = Self::comparators(table, &rows)?;
        Ok(Self { table, rows, groups, seen, changes, is_same_value })
    }

    fn comparators(table: Table, rows: &RecordBatch) -> Result<Vec<ValueComparator>, ArrowError> {
        let is_value = |name: &&str| *name != "extra" || table.has_extra();
        let names = table.values().iter().copied().chain(["extra"]).filter(is_value);
        ValueComparator::of_values(table, names, [rows, rows])
    }

    /// Fills in what rows say nothing of: a row that repeats the known value has that, and a row that changes it has what
    /// was known of the rest.
    fn carry_forward(self) -> Result<Self, ArrowError> {
        let Self { table, rows, groups, seen, changes, is_same_value } = self;
        let own: Vec<u32> = (0..rows.num_rows() as u32).collect();
        // For each column of a value, the row that its value in each row is from.
        let mut from: Vec<Vec<u32>> = is_same_value.iter().map(|_| own.clone()).collect();
        for group in groups.iter() {
            let Group::Cell(cell) = group else { continue };
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
            let index = rows.schema_ref().index_of(compared.name)?;
            columns[index] = take(&columns[index], &UInt32Array::from(from), None)?;
        }
        let rows = RecordBatch::try_new(rows.schema(), columns)?;
        let is_same_value = Self::comparators(table, &rows)?;
        Ok(Self { table, rows, groups, seen, changes, is_same_value })
    }

    /// All rows.
    pub(in crate::archive) fn all(&self) -> Range<usize> {
        0..self.rows.num_rows()
    }

    /// The rows of each series, in order.
    pub(in crate::archive) fn series(&self) -> Result<Vec<(SeriesKey, Range<usize>)>, Reason> {
        rows::ranges(self.table, &self.rows)
    }

    /// What is known as of an instant of the cells of some rows, in cell order, without cells not yet known.
    pub(in crate::archive) fn known_cells(
        &self,
        rows: Range<usize>,
        as_of_micros: i64,
        revision: Revision,
    ) -> Vec<KnownCells> {
        let mut all = Vec::new();
        for group in self.groups.within(rows) {
            match group {
                Group::Singles(rows) => all.extend(self.with_values(rows, as_of_micros).map(KnownCells::Once)),
                Group::Cell(cell) => all.extend(self.state(&cell, as_of_micros, revision).map(KnownCells::Often)),
            }
        }
        all
    }

    /// The known state of a cell; `None` if it is not yet known.
    fn state(&self, cell: &Range<usize>, as_of_micros: i64, revision: Revision) -> Option<CellState> {
        let (mut known, mut last): (Option<CellState>, Option<usize>) = (None, None);
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
        known
    }

    /// The ranges of some rows that have a value and were observed by an instant.
    fn with_values(&self, rows: Range<usize>, as_of_micros: i64) -> impl Iterator<Item = Range<usize>> {
        let Range { start: mut next, end } = rows;
        let has_value =
            move |&row: &usize| self.seen.value(row) <= as_of_micros && self.changes[row] != Change::Withdrawn;
        std::iter::from_fn(move || {
            let start = (next..end).find(has_value)?;
            next = (start..end).find(|row| !has_value(row)).unwrap_or(end);
            Some(start..next)
        })
    }

    /// Rows of a cell up to an instant, each with itself as value unless it withdraws the cell. Of several rows of one
    /// instant the last one counts: a merge may state an answer again.
    fn timeline(&self, cell: &Range<usize>, as_of_micros: i64) -> impl Iterator<Item = (usize, Option<usize>)> {
        let seen = self.seen.values();
        let rows = cell.clone().take_while(move |&row| seen[row] <= as_of_micros);
        let rows = rows.filter(|&row| is_last(seen, cell, row));
        rows.map(|row| (row, (self.changes[row] != Change::Withdrawn).then_some(row)))
    }

    /// Whether two observations have equal values.
    fn is_same(&self, one: Option<usize>, other: Option<usize>) -> bool {
        match (one, other) {
            (None, None) => true,
            (Some(one), Some(other)) => self.is_same_value.iter().all(|compared| compared.is_same(one, other)),
            _ => false,
        }
    }

    /// What an observation says of a cell after what was known.
    fn content(&self, known: Option<KnownContent>, value: Option<usize>) -> Option<KnownContent> {
        let row = value?;
        // An answer whose unknown fields were not kept does not change them.
        let has_extra = self.rows.column_by_name("extra").is_none_or(|extra| extra.is_valid(row));
        let extra = if has_extra { row } else { known.map_or(row, |known| known.extra) };
        Some(KnownContent { row, extra })
    }

    /// Whether two successive states of a cell differ at most in its place among the others.
    fn is_same_content(&self, before: Option<KnownContent>, now: Option<KnownContent>) -> bool {
        let (Some(before), Some(now)) = (before, now) else { return before.is_none() && now.is_none() };
        self.is_same_value.iter().all(|compared| {
            let [one, other] = match compared.name {
                name if self.table.positional().contains(&name) => return true,
                "extra" => [before.extra, now.extra],
                _ => [before.row, now.row],
            };
            compared.is_same(one, other)
        })
    }

    /// Every value of every cell up to an instant that differs from the one before.
    pub(in crate::archive) fn spans(&self, as_of_micros: i64) -> Spans {
        let mut spans = Spans::default();
        for group in self.groups.iter() {
            let cell = match group {
                Group::Singles(rows) => {
                    for rows in self.with_values(rows.clone(), as_of_micros) {
                        spans.from.extend_from_slice(&self.seen.values()[rows.clone()]);
                        spans.until.resize(spans.from.len(), None);
                        spans.rows.push(rows);
                    }
                    continue;
                }
                Group::Cell(cell) => cell,
            };
            let mut last: Option<usize> = None;
            for (row, value) in self.timeline(cell, as_of_micros) {
                let before = std::mem::replace(&mut last, value);
                if self.is_same(before, value) {
                    continue;
                }
                let instant = self.seen.value(row);
                if before.is_some() {
                    *spans.until.last_mut().expect("the row before has a value") = Some(instant);
                }
                if let Some(row) = value {
                    spans.rows.push(row..row + 1);
                    spans.from.push(instant);
                    spans.until.push(None);
                }
            }
        }
        spans
    }

    /// Every row up to an instant whose value differs from the row before, and these rows by cell.
    pub(in crate::archive) fn turns(&self, as_of_micros: i64) -> (RowRanges, Groups) {
        let (mut turns, mut repeats) = (RowRanges::default(), Vec::new());
        for group in self.groups.iter() {
            let cell = match group {
                Group::Singles(rows) => {
                    self.with_values(rows.clone(), as_of_micros).for_each(|rows| turns.push(rows));
                    continue;
                }
                Group::Cell(cell) => cell,
            };
            let start = turns.len();
            let mut last: Option<usize> = None;
            for (row, value) in self.timeline(cell, as_of_micros) {
                if !self.is_same(std::mem::replace(&mut last, value), value) {
                    repeats.extend((turns.len() > start).then_some(turns.len()));
                    turns.push(row..row + 1);
                }
            }
        }
        let groups = Groups::of(turns.len(), &repeats);
        (turns, groups)
    }

    /// The values of the cells of some rows as of an instant, in the columns and order of the table's rows.
    pub(in crate::archive) fn values(&self, rows: Range<usize>, as_of_micros: i64) -> Result<RecordBatch, ArrowError> {
        let known = self.known_cells(rows, as_of_micros, Revision::OfValue);
        let latest = known.into_iter().filter_map(|known| match known {
            KnownCells::Once(rows) => Some(rows),
            KnownCells::Often(state) => state.latest.map(|row| row..row + 1),
        });
        let mut rows: RowRanges = latest.collect();
        if self.table == Table::Articles {
            let dates = self.rows.column_by_name("date").expect("articles have dates");
            let places = self.rows.column_by_name("place").expect("articles have places");
            let dates = dates.as_primitive::<TimestampMicrosecondType>().values();
            let places = places.as_primitive::<Int32Type>().values();
            let mut listed: Vec<usize> = rows.iter().collect();
            listed.sort_by_key(|&row| (dates[row], places[row]));
            rows = listed.into_iter().map(|row| row..row + 1).collect();
        }
        // Withdrawn cells have no value, so the columns have the types of a table's rows only without them.
        RecordBatch::try_new(self.table.row_schema(), rows.of_columns(&columns_of(self.table, &self.rows)?)?)
    }
}

/// Values over time.
#[derive(Clone, Debug, Default)]
pub(in crate::archive) struct Spans {
    /// Their rows, in order.
    pub(in crate::archive) rows: RowRanges,
    /// When they were observed.
    pub(in crate::archive) from: Vec<i64>,
    /// When they ended, if they have.
    pub(in crate::archive) until: Vec<Option<i64>>,
}

/// Whether a row of a cell is the last one of its instant.
fn is_last(seen: &[i64], cell: &Range<usize>, row: usize) -> bool {
    row + 1 == cell.end || seen[row + 1] != seen[row]
}

/// The columns of a table's rows among those of its file.
fn columns_of(table: Table, rows: &RecordBatch) -> Result<Vec<ArrayRef>, ArrowError> {
    let column = |field: &Arc<Field>| {
        let column = rows.column_by_name(field.name());
        column.cloned().ok_or_else(|| ArrowError::SchemaError(format!("no column `{}`", field.name())))
    };
    table.row_schema().fields().iter().map(column).collect()
}

#[cfg(test)]
mod tests {
    use super::{Cells, KnownCells, Revision, Spans};
    use crate::archive::fold::histories::Histories;
    use crate::archive::fold::order::tests::{Row, batch};
    use crate::tables::Table;

    #[test]
    fn cells_that_were_observed_once_are_known_alike_whether_they_are_compared_or_not() {
        for table in [Table::Signals, Table::Articles] {
            // Only signals have several series of a ticker.
            let (titles, each) = if table == Table::Articles { (3, 4) } else { (1, 1) };
            let series: Vec<usize> = (0..12).step_by(each).collect();
            let dates = (0..40).flat_map(|date| (0..titles).map(move |title| (date, title)));
            let of_series = |series| dates.clone().map(move |(date, title)| (series, Some(date), title, date % 3));
            let rows: Vec<Row> = series.iter().copied().flat_map(of_series).collect();
            let rows = batch(table, &rows);
            let halves = [rows.slice(0, 100), rows.slice(100, rows.num_rows() - 100)];
            let once = Cells::observed_once(table, rows.clone()).unwrap();
            for compared in [Cells::of(table, [&rows]).unwrap(), Cells::of(table, &halves).unwrap()] {
                assert_eq!((&once.rows, &once.groups), (&compared.rows, &compared.groups));
                for (as_of, share) in [(0, 14), (1, 27), (i64::MAX, 40)] {
                    let known = |cells: &Cells| cells.known_cells(cells.all(), as_of, Revision::OfValue);
                    assert_eq!(known(&once), known(&compared), "{table:?} as of {as_of}");
                    let rows = |known: &KnownCells| if let KnownCells::Once(rows) = known { rows.len() } else { 0 };
                    assert_eq!(known(&once).iter().map(rows).sum::<usize>(), series.len() * titles * share);
                    let spans = |cells: &Cells| {
                        let Spans { rows, from, until } = cells.spans(as_of);
                        (rows, from, until)
                    };
                    assert_eq!(spans(&once), spans(&compared));
                    let histories = [&once, &compared].map(|cells| Histories::of(cells, as_of).unwrap());
                    let [once, compared] = histories.map(|it| (it.rows, it.changes, format!("{:?}", it.series)));
                    assert_eq!(once, compared);
                }
            }
        }
    }
}
