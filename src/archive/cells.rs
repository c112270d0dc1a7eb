//! Observations put together by what they are about: the cell, and when each observation of it was made.

use std::collections::{BTreeSet, HashMap};
use std::ops::Range;

use arrow::array::{
    Array, ArrayRef, AsArray, DynComparator, RecordBatch, StringArray, TimestampMicrosecondArray, UInt32Array,
    make_comparator,
};
use arrow::compute::{SortOptions, concat_batches, take_record_batch};
use arrow::datatypes::{ArrowDictionaryKeyType, ArrowNativeType, Int8Type, Int32Type, TimestampMicrosecondType};
use arrow::error::ArrowError;
use arrow::row::{RowConverter, SortField};

use crate::interface::{Endpoint, Period, Regime};
use crate::tables::{Change, Table};

/// Observations of the cells of some series, in the columns of [`Table::schema`].
pub(super) struct Cells {
    pub(super) table: Table,
    pub(super) rows: RecordBatch,
    /// Where each batch begins.
    starts: Vec<u32>,
    /// The rows, by cell and then by when they were observed.
    order: Vec<u32>,
    /// Where each cell's rows begin and end in the order.
    bounds: Vec<Range<usize>>,
    withdrawn: Vec<bool>,
    is_same_value: Vec<DynComparator>,
}

/// What is known of a cell.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Known {
    /// The row that it was first told in.
    pub(super) first: u32,
    /// The row that was told last; none when it was withdrawn.
    pub(super) latest: Option<u32>,
    /// How often something else was said after the first time: it was revised, withdrawn or came back.
    pub(super) revisions: u32,
}

/// What rows are sorted by: the series, the date, the rest of the cell's identity, and when it was observed.
type Place = (u64, i64, u32, i64, u32);

impl Cells {
    /// Puts observations together. Of those of one instant the earlier batch comes first.
    pub(super) fn of<'a>(
        table: Table,
        batches: impl IntoIterator<Item = &'a RecordBatch> + Clone,
    ) -> Result<Self, ArrowError> {
        let mut starts = Vec::new();
        let mut start = 0;
        for batch in batches.clone() {
            starts.push(start);
            start += batch.num_rows() as u32;
        }
        let rows = concat_batches(&table.schema(), batches)?;
        let places = sorted_places(table, &rows)?;
        let order: Vec<u32> = places.iter().map(|place| place.4).collect();
        let mut bounds: Vec<Range<usize>> = Vec::with_capacity(order.len());
        for (at, place) in places.iter().enumerate() {
            match bounds.last_mut() {
                Some(cell) if cell_of(&places[cell.start]) == cell_of(place) => cell.end = at + 1,
                _ => bounds.push(at..at + 1),
            }
        }
        let withdrawn = changes(&rows).into_iter().map(|change| change == Change::Withdrawn).collect();
        let is_value = |name: &&str| *name != "extra" || table.has_extra();
        let names = table.values().iter().copied().chain(["extra"]).filter(is_value);
        let columns = names.filter_map(|name| rows.column_by_name(name));
        let is_same_value =
            columns.map(|column| make_comparator(column, column, SortOptions::default())).collect::<Result<_, _>>()?;
        Ok(Self { table, rows, starts, order, bounds, withdrawn, is_same_value })
    }

    /// What is known of each cell by an instant, in the order of the cells; cells that are not known are left out.
    pub(super) fn known(&self, as_of_micros: i64) -> impl Iterator<Item = Known> {
        let seen = observed(&self.rows);
        self.bounds.iter().filter_map(move |cell| {
            let rows = self.order[cell.clone()].iter().copied();
            let mut known: Option<Known> = None;
            for row in rows.take_while(|&row| seen.value(row as usize) <= as_of_micros) {
                let said = (!self.withdrawn[row as usize]).then_some(row);
                match (&mut known, said) {
                    (None, Some(row)) => known = Some(Known { first: row, latest: Some(row), revisions: 0 }),
                    (None, None) => {}
                    (Some(known), said) if self.is_same(known.latest, said) => {}
                    (Some(known), said) => {
                        known.latest = said;
                        known.revisions += 1;
                    }
                }
            }
            known
        })
    }

    /// The batches that hold the last observation of a cell.
    pub(super) fn last_words(&self) -> BTreeSet<usize> {
        let last = self.bounds.iter().map(|cell| self.order[cell.end - 1]);
        last.map(|row| self.starts.partition_point(|&start| start <= row) - 1).collect()
    }

    /// Whether two observations say the same.
    fn is_same(&self, one: Option<u32>, other: Option<u32>) -> bool {
        match (one, other) {
            (None, None) => true,
            (Some(one), Some(other)) => {
                self.is_same_value.iter().all(|compare| compare(one as usize, other as usize).is_eq())
            }
            _ => false,
        }
    }

    /// Every row that says something of its cell which was not said just before, up to an instant; from when on it was
    /// said, and until when, where that is over.
    pub(super) fn told(&self, as_of_micros: i64) -> (Vec<u32>, Vec<i64>, Vec<Option<i64>>) {
        let seen = observed(&self.rows);
        let (mut told, mut from, mut until) = (Vec::new(), Vec::new(), Vec::new());
        for cell in &self.bounds {
            let mut last: Option<u32> = None;
            let rows = self.order[cell.clone()].iter().copied();
            for row in rows.take_while(|&row| seen.value(row as usize) <= as_of_micros) {
                let said = (!self.withdrawn[row as usize]).then_some(row);
                if self.is_same(last, said) {
                    continue;
                }
                let instant = seen.value(row as usize);
                if last.is_some() {
                    *until.last_mut().expect("the row before was told") = Some(instant);
                }
                if let Some(row) = said {
                    told.push(row);
                    from.push(instant);
                    until.push(None);
                }
                last = said;
            }
        }
        (told, from, until)
    }

    /// The rows that say something else of their cell than the row before, up to an instant, and where those of each cell
    /// begin and end among them.
    pub(super) fn turns(&self, as_of_micros: i64) -> (Vec<u32>, Vec<Range<usize>>) {
        let seen = observed(&self.rows);
        let (mut turns, mut bounds) = (Vec::with_capacity(self.order.len()), Vec::with_capacity(self.bounds.len()));
        for cell in &self.bounds {
            let start = turns.len();
            let mut last: Option<u32> = None;
            let rows = self.order[cell.clone()].iter().copied();
            for row in rows.take_while(|&row| seen.value(row as usize) <= as_of_micros) {
                let said = (!self.withdrawn[row as usize]).then_some(row);
                if !self.is_same(last, said) {
                    turns.push(row);
                    last = said;
                }
            }
            if turns.len() > start {
                bounds.push(start..turns.len());
            }
        }
        (turns, bounds)
    }

    /// The latest values of all cells that were not withdrawn, in the columns and the order of the table's rows.
    pub(super) fn latest(&self) -> Result<RecordBatch, ArrowError> {
        let mut rows: Vec<u32> = self.known(i64::MAX).filter_map(|known| known.latest).collect();
        if self.table == Table::Articles {
            let dates = self.rows.column_by_name("date").expect("articles have dates");
            let places = self.rows.column_by_name("place").expect("articles have places");
            let dates = dates.as_primitive::<TimestampMicrosecondType>().values();
            let places = places.as_primitive::<Int32Type>().values();
            rows.sort_by_key(|&row| (dates[row as usize], places[row as usize]));
        }
        rows_of(self.table, &take_record_batch(&self.rows, &UInt32Array::from(rows))?)
    }

    /// All observations, by cell and then by when they were made; those that are there twice once.
    pub(super) fn all(&self) -> Result<RecordBatch, ArrowError> {
        let seen = observed(&self.rows).values();
        let mut rows: Vec<u32> = Vec::with_capacity(self.order.len());
        for cell in &self.bounds {
            let start = rows.len();
            for &row in &self.order[cell.clone()] {
                let said = |row: u32| (!self.withdrawn[row as usize]).then_some(row);
                let is_repeated = rows[start..].last().is_some_and(|&last| {
                    seen[last as usize] == seen[row as usize] && self.is_same(said(last), said(row))
                });
                if !is_repeated {
                    rows.push(row);
                }
            }
        }
        take_record_batch(&self.rows, &UInt32Array::from(rows))
    }
}

/// The columns of a table's rows, out of those of its file, of cells of which something is said.
pub(super) fn rows_of(table: Table, rows: &RecordBatch) -> Result<RecordBatch, ArrowError> {
    let schema = table.row_schema();
    let column = |field: &std::sync::Arc<arrow::datatypes::Field>| {
        let column = rows.column_by_name(field.name());
        column.cloned().ok_or_else(|| ArrowError::SchemaError(format!("no column `{}`", field.name())))
    };
    let columns = schema.fields().iter().map(column).collect::<Result<Vec<ArrayRef>, _>>()?;
    RecordBatch::try_new(schema, columns)
}

/// When each row was observed.
pub(super) fn observed(rows: &RecordBatch) -> &TimestampMicrosecondArray {
    rows.column_by_name("observed_at").expect("every table has the column").as_primitive()
}

/// What became of the cell of each row.
pub(super) fn changes(rows: &RecordBatch) -> Vec<Change> {
    let column = rows.column_by_name("change").expect("every table has the column");
    coded::<Int8Type, _>(column, |text| Change::ALL.into_iter().find(|change| change.as_str() == text))
        .into_iter()
        .map(|change| change.unwrap_or(Change::Added))
        .collect()
}

/// Whether every row added its cell.
pub(super) fn are_added(rows: &RecordBatch) -> bool {
    let column = rows.column_by_name("change").expect("every table has the column").as_dictionary::<Int8Type>();
    let is_added = |text: Option<&str>| text == Some(Change::Added.as_str());
    let are_added: Vec<bool> = column.values().as_string::<i32>().iter().map(is_added).collect();
    column.null_count() == 0 && column.keys().values().iter().all(|key| are_added[key.as_usize()])
}

fn cell_of(place: &Place) -> (u64, i64, u32) {
    (place.0, place.1, place.2)
}

fn sorted_places(table: Table, rows: &RecordBatch) -> Result<Vec<Place>, ArrowError> {
    let series = series_codes(rows);
    let rank = identity_ranks(table, rows)?;
    let dates = rows.column_by_name("date").filter(|_| table.is_dated());
    let dates = dates.map(|column| column.as_primitive::<TimestampMicrosecondType>());
    let seen = observed(rows).values();
    let date = |row: usize| dates.map_or(0, |dates| if dates.is_valid(row) { dates.value(row) } else { i64::MIN });
    let place = |row: usize| {
        let rank = rank.as_ref().map_or(0, |rank| rank[row]);
        (series[row], date(row), rank, seen[row], row as u32)
    };
    let mut places: Vec<Place> = (0..rows.num_rows()).map(place).collect();
    // Each batch is in order: what is left to do is a merge, which this sort finds out.
    places.sort();
    Ok(places)
}

/// A number for each row that orders by ticker, period, regime and source.
fn series_codes(rows: &RecordBatch) -> Vec<u64> {
    let column = |name: &str| rows.column_by_name(name);
    let tickers = column("ticker").expect("every table has the column").as_dictionary::<Int32Type>();
    let mut names: Vec<&str> = tickers.values().as_string::<i32>().iter().flatten().collect();
    names.sort_unstable();
    names.dedup();
    let ranks: HashMap<&str, u64> = names.into_iter().zip(0..).collect();
    let tickers = coded::<Int32Type, _>(column("ticker").expect("it is there"), |name| ranks.get(name).copied());
    let periods = column("period").map(|column| coded::<Int8Type, _>(column, |text| text.parse::<Period>().ok()));
    let regimes = column("regime").map(|column| coded::<Int8Type, _>(column, |text| text.parse::<Regime>().ok()));
    let sources = column("source").expect("every table has the column");
    let sources = coded::<Int8Type, _>(sources, |text| text.parse::<Endpoint>().ok());
    let code = |row: usize| {
        let period = periods.as_ref().and_then(|periods| periods[row]).map_or(0, |period| period.index() as u64);
        let regime = regimes.as_ref().and_then(|regimes| regimes[row]).map_or(0, |regime| regime as u64);
        let source = sources[row].map_or(0, |source| source as u64);
        (tickers[row].unwrap_or(0) << 24) | (period << 16) | (regime << 8) | source
    };
    (0..rows.num_rows()).map(code).collect()
}

/// The rank of what, beside its date, tells a row's cell from others; none where the date is all.
fn identity_ranks(table: Table, rows: &RecordBatch) -> Result<Option<Vec<u32>>, ArrowError> {
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

/// What each row of a column of spellings means, found once for each spelling.
fn coded<K: ArrowDictionaryKeyType, T: Copy>(column: &ArrayRef, meaning: impl Fn(&str) -> Option<T>) -> Vec<Option<T>> {
    let dictionary = column.as_dictionary::<K>();
    let spellings: &StringArray = dictionary.values().as_string::<i32>();
    let meanings: Vec<Option<T>> = spellings.iter().map(|text| meaning(text?)).collect();
    dictionary.keys().iter().map(|key| key.and_then(|key| meanings[key.as_usize()])).collect()
}
