//! The order of observations: by series, cell and observation time. Observations of one instant are ordered by change
//! and value, so the order never depends on the folder that an observation was read from.
//!
//! Each run has the rows of a series in one piece, by date, and with many runs, most rows are in one of them and the others
//! have a few each. So the few are merged into the many date by date: ranges of the many without a date of the few stay
//! together, at a fraction of the cost of sorting all rows, and only rows of one date are compared by more than that.

use std::borrow::Cow;
use std::cmp::Ordering;
use std::ops::Range;
use std::sync::Arc;

use arrow::array::{
    Array, ArrayRef, AsArray, DynComparator, MutableArrayData, RecordBatch, TimestampMicrosecondArray, UInt32Array,
    make_array, make_comparator, new_null_array,
};
use arrow::compute::{SortOptions, take};
use arrow::datatypes::TimestampMicrosecondType;
use arrow::error::ArrowError;

use crate::archive::sealed::layout::SEALED_AT;
use crate::archive::sealed::rows::{self, first_where, observation_times};
use crate::columns::Boundaries;
use crate::tables::Table;

/// What orders observations that differ in nothing else.
const TIES: [&str; 3] = ["extra", "source", SEALED_AT];

/// An order of observations.
#[derive(Default)]
pub(in crate::archive) struct Order {
    /// The rows, in order.
    pub(in crate::archive) rows: RowRanges,
    /// The indices at which a row is of the same cell as the one before it.
    repeats: Vec<usize>,
}

impl Order {
    /// Orders the rows of some batches; `starts` has the first row of each.
    pub(in crate::archive) fn of(table: Table, rows: &RecordBatch, starts: &[u32]) -> Result<Self, ArrowError> {
        let count = rows.num_rows();
        let boundaries = rows::boundaries(rows).map_err(ArrowError::from_external_error)?;
        let cuts = starts.iter().map(|&start| start as usize).filter(|&start| start < count);
        let boundaries = &boundaries | &Boundaries::at(cuts, count);
        let ranks = rows::ranks(rows, &boundaries.starts().collect::<Vec<_>>());
        let piece = |(series, (start, end))| RowsOfSeries { series, rows: start..end };
        let mut pieces: Vec<RowsOfSeries> = ranks.into_iter().zip(boundaries.runs()).map(piece).collect();
        // Each batch is sorted by series, and the sort is stable.
        pieces.sort_by_key(|piece| piece.series);
        let columns = SortColumns::of(table, rows)?;
        let mut order = Self::default();
        let of_series = pieces.chunk_by(|one, other| one.series == other.series);
        of_series.for_each(|pieces| order.add_series(pieces, &columns));
        Ok(order)
    }

    /// The cells of the rows, once these are in order.
    pub(in crate::archive) fn groups(&self) -> Groups {
        Groups::of(self.rows.len(), &self.repeats)
    }

    /// Adds the rows of a series, given as pieces.
    fn add_series(&mut self, pieces: &[RowsOfSeries], columns: &SortColumns<'_>) {
        let longest = pieces.iter().max_by_key(|piece| piece.rows.len());
        let many = longest.map(|piece| piece.rows.clone()).filter(|rows| columns.are_by_date(rows)).unwrap_or_default();
        let others = pieces.iter().map(|piece| piece.rows.clone()).filter(|rows| *rows != many);
        let mut few: Vec<usize> = others.flatten().collect();
        // Each piece is usually sorted, which makes this sort a merge.
        few.sort_by(|&row, &other| columns.order(row, other));
        let mut rest = many;
        for of_date in few.chunk_by(|&one, &next| columns.date(one) == columns.date(next)) {
            let date = columns.date(of_date[0]);
            let start = first_where(rest.clone(), |row| columns.date(row) >= date);
            let end = first_where(start..rest.end, |row| columns.date(row) > date);
            self.add_by_date(rest.start..start, columns);
            self.add_date((start..end).chain(of_date.iter().copied()).collect(), columns);
            rest.start = end;
        }
        self.add_by_date(rest, columns);
    }

    /// Adds rows that are sorted by date.
    fn add_by_date(&mut self, rows: Range<usize>, columns: &SortColumns<'_>) {
        let mut start = rows.start;
        while let Some(first) = columns.first_of_several(start..rows.end) {
            self.rows.push(start..first);
            let date = columns.date(first);
            start = first_where(first..rows.end, |row| columns.date(row) > date);
            self.add_date((first..start).collect(), columns);
        }
        self.rows.push(start..rows.end);
    }

    /// Adds all rows of a series that have one date.
    fn add_date(&mut self, mut rows: Vec<usize>, columns: &SortColumns<'_>) {
        rows.sort_by(|&row, &other| columns.order(row, other));
        let first = self.rows.len();
        let is_repeat = |pair: &[usize]| columns.order_of_cells(pair[0], pair[1]).is_eq();
        let repeats = rows.windows(2).enumerate().filter(|(_, pair)| is_repeat(pair));
        self.repeats.extend(repeats.map(|(index, _)| first + index + 1));
        rows.into_iter().for_each(|row| self.rows.push(row..row + 1));
    }
}

/// Contiguous rows of one series in one batch.
struct RowsOfSeries {
    /// Rank of the series.
    series: u64,
    rows: Range<usize>,
}

/// The sort key within a series: date, rest of the cell's identity, observation time, and then the value.
struct SortColumns<'a> {
    /// The date of each row; `None` if no cell has one.
    dates: Option<Cow<'a, [i64]>>,
    /// The other columns that identify a cell.
    others: Vec<DynComparator>,
    seen: &'a [i64],
    /// The tie-breakers between observations of one instant.
    ties: Vec<DynComparator>,
}

impl<'a> SortColumns<'a> {
    fn of(table: Table, rows: &'a RecordBatch) -> Result<Self, ArrowError> {
        let dates = rows.column_by_name("date").filter(|_| table.is_dated());
        let dates = dates.map(|column| known_dates(column.as_primitive::<TimestampMicrosecondType>()));
        let compared = |names: &mut dyn Iterator<Item = &str>| {
            let columns = names.filter_map(|name| rows.column_by_name(name));
            columns.map(|column| make_comparator(column, column, SortOptions::default())).collect::<Result<_, _>>()
        };
        let others = compared(&mut table.identity().iter().copied().filter(|name| *name != "date"))?;
        let ties = compared(&mut ["change"].into_iter().chain(table.values().iter().copied()).chain(TIES))?;
        Ok(Self { dates, others, seen: observation_times(rows).values(), ties })
    }

    /// The date of a row; all rows of tables without dates have the same one.
    fn date(&self, row: usize) -> i64 {
        self.dates.as_ref().map_or(i64::MIN, |dates| dates[row])
    }

    fn order_of_cells(&self, row: usize, other: usize) -> Ordering {
        let by_date = self.date(row).cmp(&self.date(other));
        self.others.iter().fold(by_date, |order, compare| order.then_with(|| compare(row, other)))
    }

    fn order(&self, row: usize, other: usize) -> Ordering {
        let order = self.order_of_cells(row, other).then_with(|| self.seen[row].cmp(&self.seen[other]));
        let order = self.ties.iter().fold(order, |order, compare| order.then_with(|| compare(row, other)));
        order.then(row.cmp(&other))
    }

    /// Whether rows are sorted by date.
    fn are_by_date(&self, rows: &Range<usize>) -> bool {
        self.dates.as_ref().is_none_or(|dates| dates[rows.clone()].is_sorted())
    }

    /// The first row that has the date of the row after it.
    fn first_of_several(&self, rows: Range<usize>) -> Option<usize> {
        match &self.dates {
            Some(dates) => dates[rows.clone()].windows(2).position(|pair| pair[0] == pair[1]).map(|at| rows.start + at),
            None => (rows.len() > 1).then_some(rows.start),
        }
    }
}

/// Dates; unknown ones come first.
fn known_dates(dates: &TimestampMicrosecondArray) -> Cow<'_, [i64]> {
    match dates.null_count() {
        0 => Cow::Borrowed(dates.values()),
        _ => dates.iter().map(|date| date.unwrap_or(i64::MIN)).collect(),
    }
}

/// Compares the values of a column.
pub(in crate::archive) struct ValueComparator {
    pub(super) name: &'static str,
    compare: DynComparator,
    /// Whether a row says nothing of the column, for each side; none if every row does.
    pub(super) says_nothing: Option<[ArrayRef; 2]>,
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

/// From this many rows per range on, ranges are copied faster than rows.
const ROWS_PER_RANGE: usize = 16;

/// Some rows of a batch, in an order.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(in crate::archive) struct RowRanges {
    ranges: Vec<Range<usize>>,
    rows: usize,
}

impl RowRanges {
    /// Adds rows after the others.
    pub(in crate::archive) fn push(&mut self, rows: Range<usize>) {
        self.rows += rows.len();
        match self.ranges.last_mut() {
            Some(last) if last.end == rows.start => last.end = rows.end,
            _ if rows.is_empty() => {}
            _ => self.ranges.push(rows),
        }
    }

    /// Number of rows.
    pub(in crate::archive) fn len(&self) -> usize {
        self.rows
    }

    /// The rows, in order.
    pub(in crate::archive) fn iter(&self) -> impl Iterator<Item = usize> {
        self.ranges.iter().cloned().flatten()
    }

    /// The values of these rows among those of all.
    pub(in crate::archive) fn values<T: Copy>(&self, all: &[T]) -> Vec<T> {
        let mut values = Vec::with_capacity(self.rows);
        self.ranges.iter().for_each(|range| values.extend_from_slice(&all[range.clone()]));
        values
    }

    /// These rows of a batch.
    pub(in crate::archive) fn of(&self, rows: &RecordBatch) -> Result<RecordBatch, ArrowError> {
        match &self.ranges[..] {
            [] => Ok(rows.slice(0, 0)),
            [only] => Ok(rows.slice(only.start, only.len())),
            _ => RecordBatch::try_new(rows.schema(), self.of_columns(rows.columns())?),
        }
    }

    /// These rows of some columns.
    pub(in crate::archive) fn of_columns(&self, columns: &[ArrayRef]) -> Result<Vec<ArrayRef>, ArrowError> {
        match &self.ranges[..] {
            [] => Ok(columns.iter().map(|column| column.slice(0, 0)).collect()),
            [only] => Ok(columns.iter().map(|column| column.slice(only.start, only.len())).collect()),
            ranges if ranges.len() * ROWS_PER_RANGE > self.rows => {
                let rows: UInt32Array = self.iter().map(|row| row as u32).collect();
                columns.iter().map(|column| take(column, &rows, None)).collect()
            }
            ranges => columns.iter().map(|column| copy_ranges(column, ranges, self.rows)).collect(),
        }
    }
}

/// Some ranges of a column.
fn copy_ranges(column: &ArrayRef, ranges: &[Range<usize>], rows: usize) -> Result<ArrayRef, ArrowError> {
    if column.null_count() == column.len() {
        return Ok(new_null_array(column.data_type(), rows));
    }
    let all = column.to_data();
    let mut copied = MutableArrayData::new(vec![&all], false, rows);
    ranges.iter().try_for_each(|range| copied.try_extend(0, range.start, range.end))?;
    Ok(make_array(copied.freeze()))
}

impl FromIterator<Range<usize>> for RowRanges {
    fn from_iter<I: IntoIterator<Item = Range<usize>>>(ranges: I) -> Self {
        let mut all = Self::default();
        ranges.into_iter().for_each(|rows| all.push(rows));
        all
    }
}

/// Rows in cell order, by cell.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Groups(Vec<Group>);

impl Groups {
    /// A number of rows, of which some are of the same cell as the row before them. These are in order.
    pub(in crate::archive) fn of(rows: usize, repeats: &[usize]) -> Self {
        let mut groups = Vec::new();
        let mut next = 0;
        for of_cell in repeats.chunk_by(|one, next| one + 1 == *next) {
            let cell = of_cell[0] - 1..of_cell[0] + of_cell.len();
            groups.extend((next < cell.start).then_some(Group::Singles(next..cell.start)));
            next = cell.end;
            groups.push(Group::Cell(cell));
        }
        groups.extend((next < rows).then_some(Group::Singles(next..rows)));
        Self(groups)
    }

    /// Whether a cell has several rows.
    pub(in crate::archive) fn have_several(&self) -> bool {
        self.0.iter().any(|group| matches!(group, Group::Cell(_)))
    }

    /// The groups of some whole cells.
    pub(in crate::archive) fn within(&self, rows: Range<usize>) -> impl Iterator<Item = Group> {
        let first = self.0.partition_point(|group| group.rows().end <= rows.start);
        let groups = self.0[first..].iter().take_while(move |group| group.rows().start < rows.end);
        groups.map(move |group| match group {
            Group::Singles(all) => Group::Singles(all.start.max(rows.start)..all.end.min(rows.end)),
            Group::Cell(cell) => Group::Cell(cell.clone()),
        })
    }

    /// The groups, in order.
    pub fn iter(&self) -> impl Iterator<Item = &Group> {
        self.0.iter()
    }

    /// The rows of each cell, in order.
    pub fn cells(&self) -> impl Iterator<Item = Range<usize>> {
        self.0.iter().flat_map(|group| {
            let (rows, each) = match group {
                Group::Singles(rows) => (rows, 1),
                Group::Cell(rows) => (rows, rows.len()),
            };
            rows.clone().step_by(each).map(move |row| row..row + each)
        })
    }
}

impl FromIterator<Group> for Groups {
    fn from_iter<I: IntoIterator<Item = Group>>(groups: I) -> Self {
        Self(groups.into_iter().collect())
    }
}

/// Consecutive rows.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Group {
    /// Each is the only one of its cell.
    Singles(Range<usize>),
    /// Together they are those of one cell, which are several.
    Cell(Range<usize>),
}

impl Group {
    /// Its rows.
    pub fn rows(&self) -> &Range<usize> {
        match self {
            Self::Singles(rows) | Self::Cell(rows) => rows,
        }
    }
}

#[cfg(test)]
pub(super) mod tests {
    use std::sync::Arc;

    use arrow::array::{
        ArrayRef, Int32Array, Int64Array, RecordBatch, StringArray, TimestampMicrosecondArray, UInt32Array,
        new_null_array,
    };
    use arrow::compute::{concat_batches, take_record_batch};
    use arrow::datatypes::DataType;
    use chrono::DateTime;

    use super::{Group, Groups, Order, RowRanges};
    use crate::interface::{Endpoint, Period, Regime};
    use crate::tables::{Change, Changes, SeriesKey, Table, symbol_runs};

    /// Series, date, title and observation time.
    pub(in crate::archive::fold) type Row = (usize, Option<i64>, usize, i64);

    const TITLES: [&str; 3] = ["", "a", "a longer one"];

    fn key(table: Table, series: usize) -> SeriesKey {
        let ticker = ["A", "BRK.B", "Z"][series / 4].parse().unwrap();
        match table {
            Table::Signals => SeriesKey {
                ticker,
                period: Period::all().nth(series / 2 % 2 * 30),
                regime: Some(Regime::ALL[series % 2]),
                table: Some(table),
            },
            _ => SeriesKey::of_ticker(Endpoint::NewsArticles, ticker),
        }
    }

    /// Rows that add a cell each.
    pub(in crate::archive::fold) fn batch(table: Table, rows: &[Row]) -> RecordBatch {
        let of_row = |&(series, date, title, seen): &Row| {
            let schema = table.open_row_schema();
            let column = |name: &str| -> ArrayRef {
                match name {
                    "date" => Arc::new(TimestampMicrosecondArray::from(vec![date])),
                    "title" => Arc::new(StringArray::from(vec![TITLES[title]])),
                    "link" => Arc::new(StringArray::from(vec!["link"])),
                    "copy" => Arc::new(Int32Array::from(vec![0])),
                    name => new_null_array(schema.field_with_name(name).unwrap().data_type(), 1),
                }
            };
            let columns = schema.fields().iter().map(|field| column(field.name())).collect();
            Changes {
                key: key(table, series),
                source: Endpoint::SignalsHistoryAll,
                observed_at: DateTime::from_timestamp_micros(seen).unwrap(),
                sealed_at: DateTime::UNIX_EPOCH,
                kinds: vec![Change::Added],
                rows: RecordBatch::try_new(Arc::clone(&schema), columns).unwrap(),
            }
        };
        table.batch(&rows.iter().map(of_row).collect::<Vec<_>>()).unwrap()
    }

    #[test]
    fn merging_batches_gives_the_same_order_as_sorting() {
        let mut state = 7_u64;
        let mut random = |below: u64| {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            (state >> 33) % below
        };
        for (round, table) in [Table::Signals, Table::Articles].into_iter().cycle().take(120).enumerate() {
            let mut all: Vec<Vec<Row>> = Vec::new();
            for index in 0..=random(5) {
                let (series, dates) = (random(12) + 1, random(40) + 1);
                let count = if random(4) > 0 { random(300) } else { 0 };
                let mut rows: Vec<Row> = (0..count)
                    .map(|_| {
                        let date = (table == Table::Articles || random(50) > 0).then(|| random(dates) as i64);
                        let title = if table == Table::Articles { random(3) as usize } else { 0 };
                        (random(series) as usize, date, title, (index + random(3)) as i64)
                    })
                    .collect();
                // Sorted at least by series, as files are; usually also by cell, with each cell once.
                if random(4) > 0 {
                    rows.sort();
                } else {
                    rows.sort_by_key(|row| key(table, row.0));
                }
                if random(3) > 0 {
                    rows.dedup_by_key(|row| (key(table, row.0), row.1, row.2));
                }
                all.push(rows);
            }
            let batches: Vec<RecordBatch> = all.iter().map(|rows| batch(table, rows)).collect();
            let mut starts = Vec::new();
            let rows: Vec<Row> = all.into_iter().fold(Vec::new(), |mut before, rows| {
                starts.push(before.len() as u32);
                before.extend(rows);
                before
            });
            let cell = |row: usize| {
                let (series, date, title, _) = rows[row];
                (key(table, series), date, TITLES[title])
            };
            let mut expected: Vec<usize> = (0..rows.len()).collect();
            expected.sort_by_key(|&row| (cell(row), rows[row].3, row));
            let order = Order::of(table, &concat_batches(&table.file_schema(), &batches).unwrap(), &starts).unwrap();
            assert_eq!(order.rows.iter().collect::<Vec<_>>(), expected, "round {round}");
            let lengths = expected.chunk_by(|&one, &other| cell(one) == cell(other)).map(<[usize]>::len);
            assert!(order.groups().cells().map(|cell| cell.len()).eq(lengths), "round {round}");
        }
    }

    #[test]
    fn ranges_of_rows_are_the_rows_taken_one_by_one() {
        let numbers: ArrayRef = Arc::new(Int64Array::from_iter((0..500).map(|row| (row % 7 > 0).then_some(row))));
        let texts: ArrayRef = Arc::new(StringArray::from_iter_values((0..500).map(|row| "x".repeat(row % 5))));
        let names = symbol_runs((0..100).map(|name| (["A", "B", "C"][name % 3], 5)));
        let nothing = new_null_array(&DataType::Float64, 500);
        let columns = [("numbers", numbers), ("texts", texts), ("names", names), ("nothing", nothing)];
        let rows =
            RecordBatch::try_from_iter_with_nullable(columns.map(|(name, column)| (name, column, true))).unwrap();
        for ranges in [
            &[][..],
            &[0..500, 500..500],
            &[20..20, 7..7],
            &[20..200, 200..310, 311..400],
            &[400..450, 3..303, 1..2],
            &[5..6, 9..10, 7..9, 499..500],
        ] {
            let some: RowRanges = ranges.iter().cloned().collect();
            let each: UInt32Array = ranges.iter().cloned().flatten().map(|row| row as u32).collect();
            assert_eq!((some.len(), some.iter().count()), (each.len(), each.len()));
            assert_eq!(some.of(&rows).unwrap(), take_record_batch(&rows, &each).unwrap(), "{ranges:?}");
            assert_eq!(some.values(&Vec::from_iter(0..500)), Vec::from_iter(some.iter()));
        }
    }

    #[test]
    fn groups_have_each_row_once_and_cells_of_several_rows_whole() {
        let groups = Groups::of(9, &[2, 5, 6]);
        let cells: Vec<_> = groups.cells().collect();
        assert_eq!(cells, [0..1, 1..3, 3..4, 4..7, 7..8, 8..9]);
        assert_eq!(groups.within(0..9).collect::<Groups>(), groups);
        let within: Vec<Group> = groups.within(3..8).collect();
        assert_eq!(within, [Group::Singles(3..4), Group::Cell(4..7), Group::Singles(7..8)]);
        assert_eq!(groups.within(3..3).count(), 0);
        assert_eq!(Groups::of(2, &[1]).iter().collect::<Vec<_>>(), [&Group::Cell(0..2)]);
        assert_eq!((Groups::of(0, &[]).cells().count(), Groups::of(3, &[]).cells().count()), (0, 3));
        assert!(groups.have_several() && !Groups::of(3, &[]).have_several());
    }
}
