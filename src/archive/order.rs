//! The order of observations: by series, then by cell, and those of a cell by when they were made.
//!
//! Each run has the rows of a series in one piece, nearly always in this order. Where there are many runs, most of the
//! rows stand in one of them, and the others have a few each. So a series is put in order by laying the few between the
//! many, of which whole stretches stay together; that takes a fraction of sorting them all.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::ops::Range;

use arrow::array::{Array, ArrayRef, AsArray, RecordBatch, TimestampMicrosecondArray};
use arrow::datatypes::TimestampMicrosecondType;
use arrow::error::ArrowError;
use arrow::row::{RowConverter, SortField};

use super::cells::observed;
use super::keys;
use crate::tables::{SeriesKey, Table};

/// The order of some observations.
#[derive(Default)]
pub(super) struct Order {
    /// The rows, in order.
    pub(super) rows: Vec<u32>,
    /// Where those of each cell begin and end among them.
    pub(super) cells: Vec<Range<usize>>,
}

impl Order {
    /// Puts the rows of some batches, which begin at some of them, in order. Of those of one instant the earlier row
    /// comes first.
    pub(super) fn of(table: Table, rows: &RecordBatch, starts: &[u32]) -> Result<Self, ArrowError> {
        let mut series: BTreeMap<SeriesKey, Vec<Range<u32>>> = BTreeMap::new();
        for (key, range) in keys::ranges(rows).map_err(ArrowError::from_external_error)? {
            let (start, end) = (range.start as u32, range.end as u32);
            let inner = starts.partition_point(|&cut| cut <= start)..starts.partition_point(|&cut| cut < end);
            let cuts = starts[inner].iter().copied();
            let pieces = series.entry(key).or_default();
            let last = cuts.fold(start, |start, cut| {
                pieces.push(start..cut);
                cut
            });
            pieces.push(last..end);
        }
        let places = Places::of(table, rows)?;
        let count = rows.num_rows();
        let mut order = Self { rows: Vec::with_capacity(count), cells: Vec::with_capacity(count) };
        series.values().for_each(|pieces| order.add_series(pieces, &places));
        Ok(order)
    }

    /// Whether the rows stood in order before.
    pub(super) fn is_given(&self) -> bool {
        self.rows.is_sorted()
    }

    /// Adds the rows of a series, which stand in some pieces.
    fn add_series(&mut self, pieces: &[Range<u32>], places: &Places<'_>) {
        let longest = pieces.iter().max_by_key(|piece| piece.len()).filter(|piece| places.ascend(piece));
        let others = pieces.iter().filter(|piece| longest != Some(piece));
        let mut few: Vec<Place> = others.cloned().flatten().map(|row| places.place(row)).collect();
        // Each piece is in order, as a rule: what is left to do is a merge, which this sort finds out.
        few.sort();
        let start = self.rows.len();
        let mut many = longest.cloned().unwrap_or_default();
        for place in few {
            let before = first_row_where(&many, |row| places.place(row) > place);
            self.add_cells(many.start..before, start, places);
            self.add(place.3, start, places);
            many.start = before;
        }
        self.add_cells(many, start, places);
    }

    /// Adds rows that are each of another cell; the first may be of the cell of the row before it.
    fn add_cells(&mut self, mut rows: Range<u32>, start: usize, places: &Places<'_>) {
        if let Some(first) = rows.next() {
            self.add(first, start, places);
            let at = self.rows.len();
            self.cells.extend((at..at + rows.len()).map(|at| at..at + 1));
            self.rows.extend(rows);
        }
    }

    /// Adds a row of the series that begins at a place.
    fn add(&mut self, row: u32, start: usize, places: &Places<'_>) {
        let at = self.rows.len();
        let before = self.rows[start..].last();
        match self.cells.last_mut().filter(|_| before.is_some_and(|&before| places.cell(before) == places.cell(row))) {
            Some(cell) => cell.end = at + 1,
            None => self.cells.push(at..at + 1),
        }
        self.rows.push(row);
    }
}

/// The first row of a range for which something holds that holds for all rows after it.
fn first_row_where(rows: &Range<u32>, holds: impl Fn(u32) -> bool) -> u32 {
    let (mut low, mut high) = (rows.start, rows.end);
    while low < high {
        let middle = low + (high - low) / 2;
        if holds(middle) {
            high = middle;
        } else {
            low = middle + 1;
        }
    }
    low
}

/// What the rows of a series are ordered by: the date, the rest of the cell's identity, when it was observed, and the row.
type Place = (i64, u32, i64, u32);

struct Places<'a> {
    /// The date of each row; none where no cell has one.
    dates: Option<Cow<'a, [i64]>>,
    /// The rank of what, beside its date, tells a row's cell from others; none where the date is all.
    ranks: Option<Vec<u32>>,
    seen: &'a [i64],
}

impl<'a> Places<'a> {
    fn of(table: Table, rows: &'a RecordBatch) -> Result<Self, ArrowError> {
        let dates = rows.column_by_name("date").filter(|_| table.is_dated());
        let dates = dates.map(|column| known_dates(column.as_primitive::<TimestampMicrosecondType>()));
        Ok(Self { dates, ranks: ranks(table, rows)?, seen: observed(rows).values() })
    }

    fn cell(&self, row: u32) -> (i64, u32) {
        let row = row as usize;
        (self.dates.as_ref().map_or(0, |dates| dates[row]), self.ranks.as_ref().map_or(0, |ranks| ranks[row]))
    }

    fn place(&self, row: u32) -> Place {
        let (date, rank) = self.cell(row);
        (date, rank, self.seen[row as usize], row)
    }

    /// Whether some rows are each of a later cell than the one before.
    fn ascend(&self, rows: &Range<u32>) -> bool {
        match (&self.dates, &self.ranks) {
            (Some(dates), None) => dates[rows.start as usize..rows.end as usize].is_sorted_by(|date, next| date < next),
            _ => rows.clone().is_sorted_by(|&row, &next| self.cell(row) < self.cell(next)),
        }
    }
}

/// Dates; those that are not known come first.
fn known_dates(dates: &TimestampMicrosecondArray) -> Cow<'_, [i64]> {
    match dates.null_count() {
        0 => Cow::Borrowed(dates.values()),
        _ => dates.iter().map(|date| date.unwrap_or(i64::MIN)).collect(),
    }
}

fn ranks(table: Table, rows: &RecordBatch) -> Result<Option<Vec<u32>>, ArrowError> {
    let names = table.identity().iter().filter(|name| **name != "date");
    let columns: Vec<ArrayRef> = names.filter_map(|name| rows.column_by_name(name).cloned()).collect();
    if columns.is_empty() {
        return Ok(None);
    }
    let fields = columns.iter().map(|column| SortField::new(column.data_type().clone())).collect();
    let identities = RowConverter::new(fields)?.convert_columns(&columns)?;
    let mut order: Vec<u32> = (0..rows.num_rows() as u32).collect();
    order.sort_unstable_by(|&one, &other| identities.row(one as usize).cmp(&identities.row(other as usize)));
    let mut ranks = vec![0; order.len()];
    let mut rank = 0;
    for pair in 0..order.len() {
        let is_next = pair > 0 && identities.row(order[pair] as usize) != identities.row(order[pair - 1] as usize);
        rank += u32::from(is_next);
        ranks[order[pair] as usize] = rank;
    }
    Ok(Some(ranks))
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use arrow::array::{ArrayRef, Int32Array, RecordBatch, StringArray, TimestampMicrosecondArray, new_null_array};
    use arrow::compute::concat_batches;
    use chrono::DateTime;

    use super::Order;
    use crate::interface::{Endpoint, Period, Regime};
    use crate::tables::{Change, Changes, SeriesKey, Table};

    /// A series, a date, a title, and when it was observed.
    type Row = (usize, Option<i64>, usize, i64);

    const TITLES: [&str; 3] = ["", "a", "a longer one"];

    fn key(table: Table, series: usize) -> SeriesKey {
        let ticker = ["A", "BRK.B", "Z"][series / 4].parse().unwrap();
        match table {
            Table::Signals => SeriesKey {
                ticker,
                period: Period::all().nth(series / 2 % 2 * 30),
                regime: Some(Regime::ALL[series % 2]),
                source: Endpoint::SignalsHistoryAll,
            },
            _ => SeriesKey::of_ticker(Endpoint::NewsArticles, ticker),
        }
    }

    fn batch(table: Table, rows: &[Row]) -> RecordBatch {
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
                observed_at: DateTime::from_timestamp_micros(seen).unwrap(),
                kinds: vec![Change::Added],
                rows: RecordBatch::try_new(Arc::clone(&schema), columns).unwrap(),
            }
        };
        table.batch(&rows.iter().map(of_row).collect::<Vec<_>>()).unwrap()
    }

    #[test]
    fn rows_of_many_batches_are_put_in_the_order_that_sorting_puts_them_in() {
        let mut state = 7_u64;
        let mut random = |below: u64| {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            (state >> 33) % below
        };
        for (round, table) in [Table::Signals, Table::Articles].into_iter().cycle().take(120).enumerate() {
            let mut all: Vec<Vec<Row>> = Vec::new();
            for place in 0..=random(5) {
                let (series, dates) = (random(12) + 1, random(40) + 1);
                let mut rows: Vec<Row> = (0..random(300))
                    .map(|_| {
                        let date = (table == Table::Articles || random(50) > 0).then(|| random(dates) as i64);
                        let title = if table == Table::Articles { random(3) as usize } else { 0 };
                        (random(series) as usize, date, title, (place + random(3)) as i64)
                    })
                    .collect();
                // In order by series at least, as files are; most of them by cell, and most have a cell once.
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
            let cell = |row: u32| {
                let (series, date, title, _) = rows[row as usize];
                (key(table, series), date, TITLES[title])
            };
            let mut expected: Vec<u32> = (0..rows.len() as u32).collect();
            expected.sort_by_key(|&row| (cell(row), rows[row as usize].3, row));
            let order = Order::of(table, &concat_batches(&table.schema(), &batches).unwrap(), &starts).unwrap();
            assert_eq!(order.rows, expected, "round {round}");
            let mut at = 0;
            for of_cell in expected.chunk_by(|&one, &other| cell(one) == cell(other)) {
                let found = order.cells.iter().find(|found| found.start == at);
                assert_eq!(found.map(|found| found.end), Some(at + of_cell.len()), "round {round}");
                at += of_cell.len();
            }
            assert_eq!(order.is_given(), order.rows.iter().copied().eq(0..rows.len() as u32));
        }
    }
}
