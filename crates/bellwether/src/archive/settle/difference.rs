//! The changes that an answer makes to a series: the difference between its rows and the known ones.
//!
//! An answer covers everything from its oldest date on. It usually has everything that was known and a few rows after
//! that, in which case whole columns are compared. Otherwise both sides are merged by cell.
//!
//! A run stores what its answers changed of what it knew. Beside observations that it did not know, that may say too
//! little: an unchanged value, or the absence of a cell, was told by storing nothing. So the answer is stated again, as the
//! difference from what is known with those observations.

use std::cmp::Ordering;
use std::collections::HashMap;
use std::sync::Arc;

use arrow::array::{
    Array, ArrayRef, AsArray, BooleanArray, DictionaryArray, DynComparator, Float64Array, Int16Array, Int32Array,
    RecordBatch, RecordBatchOptions, UInt32Array, make_comparator, new_null_array,
};
use arrow::compute::{SortOptions, concat_batches, filter_record_batch, interleave, take_record_batch};
use arrow::datatypes::{Field, Float64Type, Int8Type, Int16Type, Int32Type, TimestampMicrosecondType};
use arrow::error::ArrowError;
use chrono::{DateTime, Utc};

use crate::archive::coverage::{self, Coverage};
use crate::archive::fold::cells::Cells;
use crate::archive::fold::order::ValueComparator;
use crate::archive::sealed::answers::SeriesAnswer;
use crate::archive::sealed::rows::observation_times;
use crate::tables::{Change, Changes, Table};

/// The changes of a series and their rows, in cell order.
pub(in crate::archive) type Difference = (Vec<Change>, RecordBatch);

/// The difference between what was known of a series and an answer, both in the columns and order of the table's rows;
/// `None` if nothing changed. Both may be a range of whole dates; `covers` is what the whole answer covers. Articles are at
/// their places, as [`continue_places`] gives them.
pub(in crate::archive) fn difference(
    table: Table,
    known: &RecordBatch,
    answered: &RecordBatch,
    covers: Coverage,
) -> Result<Option<Difference>, ArrowError> {
    if answered.num_rows() == 0 && covers == Coverage::Nothing {
        return Ok(None);
    }
    let first_covered = first_covered(table, known, covers.oldest());
    let rest = known.slice(first_covered, known.num_rows() - first_covered);
    let count = rest.num_rows();
    if count <= answered.num_rows() && has_dates(table, answered) && is_same(table, &rest, &answered.slice(0, count)) {
        let added = answered.slice(count, answered.num_rows() - count);
        return Ok((added.num_rows() > 0).then(|| (vec![Change::Added; added.num_rows()], added)));
    }
    Merge::of(table, known, answered)?.difference(covers)
}

/// Signals with the confidences and the offsets that are known of them, where theirs differ by less than a tolerance, or are
/// given otherwise.
pub(super) fn steadied(known: &RecordBatch, answered: &RecordBatch, tolerance: f64) -> Result<RecordBatch, ArrowError> {
    let before: HashMap<i64, usize> =
        dates(known).iter().enumerate().filter_map(|(row, date)| Some((date?, row))).collect();
    let before = |row: usize| dates(answered).is_valid(row).then(|| before.get(&dates(answered).value(row))).flatten();
    let column = |rows: &RecordBatch, name| Arc::clone(rows.column_by_name(name).expect("signals have the column"));
    let [ours, theirs] = [known, answered].map(|rows| column(rows, "confidence"));
    let [ours, theirs] = [&ours, &theirs].map(|column| column.as_primitive::<Float64Type>());
    let confidence = |row: usize| {
        let now = theirs.is_valid(row).then(|| theirs.value(row))?;
        let known = before(row).filter(|known| ours.is_valid(**known)).map(|known| ours.value(*known));
        let is_same = |known: &f64| (known - now).abs() <= tolerance * known.abs().max(now.abs());
        Some(known.filter(is_same).unwrap_or(now))
    };
    let confidences: Float64Array = (0..answered.num_rows()).map(confidence).collect();
    let [ours, theirs] = [known, answered].map(|rows| column(rows, "utc_offset_minutes"));
    let [ours, theirs] = [&ours, &theirs].map(|column| column.as_primitive::<Int16Type>());
    let offset = |row: usize| {
        let now = theirs.is_valid(row).then(|| theirs.value(row))?;
        let known = before(row).filter(|known| ours.is_valid(**known)).map(|known| ours.value(*known));
        Some(known.unwrap_or(now))
    };
    let offsets: Int16Array = (0..answered.num_rows()).map(offset).collect();
    let mut columns = answered.columns().to_vec();
    for (name, column) in [("confidence", Arc::new(confidences) as ArrayRef), ("utc_offset_minutes", Arc::new(offsets))]
    {
        columns[answered.schema_ref().index_of(name)?] = column;
    }
    RecordBatch::try_new(answered.schema(), columns)
}

/// The state of a series after a difference.
pub(in crate::archive) fn apply(
    table: Table,
    known: &RecordBatch,
    (kinds, rows): &Difference,
) -> Result<RecordBatch, ArrowError> {
    let merge = Merge::of(table, known, rows)?;
    let (before, changed) = (by_cell(table, known)?, by_cell(table, rows)?);
    let is_replaced =
        |row: u32| changed.binary_search_by(|&other| compare(&merge.identity, row, other).reverse()).is_ok();
    let kept: UInt32Array = before.into_iter().filter(|&row| !is_replaced(row)).collect();
    let is_value = |row: &u32| kinds[*row as usize] != Change::Withdrawn;
    let changed: UInt32Array = changed.iter().copied().filter(is_value).collect();
    let kept = take_record_batch(known, &kept)?;
    let changed = RecordBatch::try_new(table.row_schema(), take_record_batch(rows, &changed)?.columns().to_vec())?;
    let both = concat_batches(&table.row_schema(), [&kept, &changed])?;
    let order = UInt32Array::from(by_date(&both));
    take_record_batch(&both, &order)
}

/// Signals in the order of their dates.
fn by_date(rows: &RecordBatch) -> Vec<u32> {
    let dates = dates(rows);
    let mut order: Vec<u32> = (0..rows.num_rows() as u32).collect();
    order.sort_by_key(|&row| dates.is_valid(row as usize).then(|| dates.value(row as usize)));
    order
}

/// The first known row that the answer covers.
fn first_covered(table: Table, known: &RecordBatch, covered_from: Option<i64>) -> usize {
    match covered_from.filter(|_| table.is_dated()) {
        Some(oldest) => dates(known).iter().position(|date| date.is_some_and(|date| date >= oldest)),
        None => Some(0),
    }
    .unwrap_or(known.num_rows())
}

/// Whether every row has a date, in tables whose rows have dates.
fn has_dates(table: Table, rows: &RecordBatch) -> bool {
    !table.is_dated() || dates(rows).null_count() == 0
}

fn dates(rows: &RecordBatch) -> &arrow::array::TimestampMicrosecondArray {
    rows.column(0).as_primitive::<TimestampMicrosecondType>()
}

/// Whether rows are equal, column by column.
fn is_same(table: Table, one: &RecordBatch, other: &RecordBatch) -> bool {
    let fields = one.schema_ref().fields().iter();
    fields.zip(one.columns()).zip(other.columns()).all(|((field, one), other)| {
        // Comparing the texts row by row would cost more than everything else.
        let is_null = |column: &ArrayRef| column.null_count() == column.len();
        let is_optional = table.optional().contains(&field.name().as_str());
        match (one.as_dictionary_opt::<Int8Type>(), other.as_dictionary_opt::<Int8Type>()) {
            _ if is_null(one) && is_null(other) => true,
            _ if is_optional && (is_null(one) || is_null(other)) => true,
            (Some(one), Some(other)) => is_same_choice(one, other),
            _ => one == other,
        }
    })
}

/// Whether two columns of choices are equal, whatever the order of their dictionaries.
fn is_same_choice(one: &DictionaryArray<Int8Type>, other: &DictionaryArray<Int8Type>) -> bool {
    let (ones, others) = (one.values().as_string::<i32>(), other.values().as_string::<i32>());
    if ones == others {
        return one.keys() == other.keys();
    }
    let code = |spelling| others.iter().position(|other| other == spelling).map(|index| index as i8);
    let codes: Vec<Option<i8>> = ones.iter().map(code).collect();
    one.keys().iter().zip(other.keys()).all(|(one, other)| one.and_then(|key| codes[key as usize]) == other)
}

/// Moves the places of a list's oldest date so that they continue those that were observed by an instant: a list of limited
/// length may start in the middle of a date, and all of that date may be new. No article falls below a place that it ever
/// had, and those that are not listed come before all that are.
pub(super) fn continue_places(
    answered: RecordBatch,
    covers: Coverage,
    (observations, as_of): (&RecordBatch, i64),
) -> Result<RecordBatch, ArrowError> {
    let is_first = |oldest: &i64| dates(&answered).iter().next() == Some(Some(*oldest));
    let Some(oldest) = covers.oldest().filter(is_first) else { return Ok(answered) };
    let places = |rows: &RecordBatch, counts: &dyn Fn(usize) -> bool| -> HashMap<(String, String, i32), i32> {
        let column = |name: &str| Arc::clone(rows.column_by_name(name).expect("articles have the column"));
        let [date, title, link, copy, place] = ["date", "title", "link", "copy", "place"].map(column);
        let [title, link] = [&title, &link].map(|column| column.as_string::<i32>());
        let [copy, place] = [&copy, &place].map(|column| column.as_primitive::<Int32Type>());
        let date = date.as_primitive::<TimestampMicrosecondType>();
        let mut highest: HashMap<_, i32> = HashMap::new();
        let is_of_oldest = |row: &usize| date.value(*row) == oldest && place.is_valid(*row) && counts(*row);
        for row in (0..rows.num_rows()).filter(is_of_oldest) {
            let article = (title.value(row).to_owned(), link.value(row).to_owned(), copy.value(row));
            let known = highest.entry(article).or_default();
            *known = place.value(row).max(*known);
        }
        highest
    };
    let seen = observation_times(observations).values();
    let listed = places(&answered, &|_| true);
    let ever = places(observations, &|row| seen[row] <= as_of);
    let moved = ever.iter().map(|(article, ever)| listed.get(article).map_or(ever + 1, |place| ever - place));
    let shift = moved.max().unwrap_or(0);
    if shift <= 0 {
        return Ok(answered);
    }
    let dates = dates(&answered);
    let places = answered.column(4).as_primitive::<Int32Type>().values().iter().zip(dates.values());
    let places = places.map(|(place, date)| if *date == oldest { place + shift } else { *place });
    let places: ArrayRef = Arc::new(places.collect::<Int32Array>());
    let mut columns = answered.columns().to_vec();
    columns[4] = places;
    RecordBatch::try_new(answered.schema(), columns)
}

/// A merge of both sides by cell.
struct Merge<'a> {
    table: Table,
    known: &'a RecordBatch,
    answered: &'a RecordBatch,
    /// Comparators of the columns that identify a cell.
    identity: Vec<DynComparator>,
    /// Comparators of a cell's values.
    values: Vec<ValueComparator>,
}

/// A changed row of either side.
enum Changed {
    Added(u32),
    Revised { before: u32, now: u32 },
    Gone(u32),
}

impl<'a> Merge<'a> {
    fn of(table: Table, known: &'a RecordBatch, answered: &'a RecordBatch) -> Result<Self, ArrowError> {
        let compared = |names: &[&str]| -> Result<Vec<DynComparator>, ArrowError> {
            let columns =
                names.iter().filter_map(|name| Some((known.column_by_name(name)?, answered.column_by_name(name)?)));
            columns.map(|(known, answered)| make_comparator(known, answered, SortOptions::default())).collect()
        };
        let values = ValueComparator::of_values(table, table.values().iter().copied(), [known, answered])?;
        Ok(Self { table, known, answered, identity: compared(table.identity())?, values })
    }

    fn difference(&self, covers: Coverage) -> Result<Option<Difference>, ArrowError> {
        let date_of_known = coverage::date_of(self.table, self.known);
        let (known, answered) = (by_cell(self.table, self.known)?, by_cell(self.table, self.answered)?);
        let mut changed = Vec::new();
        let (mut known, mut answered) = (known.into_iter().peekable(), answered.into_iter().peekable());
        loop {
            let order = match (known.peek(), answered.peek()) {
                (Some(&known), Some(&answered)) => compare(&self.identity, known, answered),
                (Some(_), None) => Ordering::Less,
                (None, Some(_)) => Ordering::Greater,
                (None, None) => break,
            };
            let before = if order.is_le() { known.next() } else { None };
            let now = if order.is_ge() { answered.next() } else { None };
            match (before, now) {
                (Some(before), Some(now)) if !self.is_same_value(before, now) => {
                    changed.push(Changed::Revised { before, now });
                }
                (None, Some(now)) => changed.push(Changed::Added(now)),
                (Some(before), None) if covers.holds(self.table, date_of_known(before as usize)) => {
                    changed.push(Changed::Gone(before));
                }
                _ => {}
            }
        }
        if changed.is_empty() { Ok(None) } else { self.rows(&changed).map(Some) }
    }

    fn is_same_value(&self, known: u32, answered: u32) -> bool {
        if !self.values.iter().all(|compared| compared.is_same(known as usize, answered as usize)) {
            return false;
        }
        let (before, now) = (self.known.column_by_name("extra"), self.answered.column_by_name("extra"));
        let (Some(before), Some(now)) = (before, now) else { return true };
        let (before, now) = (before.as_string::<i32>(), now.as_string::<i32>());
        let (known, answered) = (known as usize, answered as usize);
        // An answer whose unknown fields were not kept does not change them.
        now.is_null(answered) || (before.is_valid(known) && before.value(known) == now.value(answered))
    }

    /// Answered rows with what is known of each, where they say nothing.
    fn complete(&self, answered: RecordBatch, before: &[Option<u32>]) -> Result<RecordBatch, ArrowError> {
        let mut columns = answered.columns().to_vec();
        for name in self.table.optional() {
            let (Some((index, _)), Some(known)) =
                (answered.schema_ref().column_with_name(name), self.known.column_by_name(name))
            else {
                continue;
            };
            let column = &columns[index];
            if column.null_count() == 0 || known.null_count() == known.len() {
                continue;
            }
            let from = |(row, before): (usize, &Option<u32>)| match before {
                Some(before) if column.is_null(row) => (1, *before as usize),
                _ => (0, row),
            };
            let from: Vec<(usize, usize)> = before.iter().enumerate().map(from).collect();
            columns[index] = interleave(&[column.as_ref(), known.as_ref()], &from)?;
        }
        RecordBatch::try_new(answered.schema(), columns)
    }

    /// The changed rows. Withdrawn ones keep only what identifies the cell, and revised ones what is known and the answer
    /// says nothing of.
    fn rows(&self, changed: &[Changed]) -> Result<Difference, ArrowError> {
        let (mut answered, mut gone, mut order, mut kinds) = (Vec::new(), Vec::new(), Vec::new(), Vec::new());
        let mut before = Vec::new();
        let count = changed.iter().filter(|changed| !matches!(changed, Changed::Gone(_))).count();
        for changed in changed {
            match changed {
                Changed::Added(row) => {
                    order.push(answered.len() as u32);
                    answered.push(*row);
                    before.push(None);
                    kinds.push(Change::Added);
                }
                Changed::Revised { before: known, now } => {
                    order.push(answered.len() as u32);
                    answered.push(*now);
                    before.push(Some(*known));
                    kinds.push(Change::Revised);
                }
                Changed::Gone(row) => {
                    order.push((count + gone.len()) as u32);
                    gone.push(*row);
                    kinds.push(Change::Withdrawn);
                }
            }
        }
        let schema = self.table.open_row_schema();
        let answered = self.complete(take_record_batch(self.answered, &UInt32Array::from(answered))?, &before)?;
        let answered = answered.with_schema(schema.clone())?;
        if gone.is_empty() {
            return Ok((kinds, answered));
        }
        let gone = take_record_batch(self.known, &UInt32Array::from(gone))?;
        let column = |(index, field): (usize, &Arc<Field>)| {
            if self.table.identity().contains(&field.name().as_str()) {
                Arc::clone(gone.column(index))
            } else {
                new_null_array(field.data_type(), gone.num_rows())
            }
        };
        let columns: Vec<ArrayRef> = schema.fields().iter().enumerate().map(column).collect();
        let options = RecordBatchOptions::new().with_row_count(Some(gone.num_rows()));
        let gone = RecordBatch::try_new_with_options(schema.clone(), columns, &options)?;
        let both = concat_batches(&schema, [&answered, &gone])?;
        Ok((kinds, take_record_batch(&both, &UInt32Array::from(order))?))
    }
}

fn compare(columns: &[DynComparator], one: u32, other: u32) -> Ordering {
    let (one, other) = (one as usize, other as usize);
    columns.iter().fold(Ordering::Equal, |order, compare| order.then_with(|| compare(one, other)))
}

/// Rows in cell order. Articles are in the order in which they became known.
fn by_cell(table: Table, rows: &RecordBatch) -> Result<Vec<u32>, ArrowError> {
    let mut order: Vec<u32> = (0..rows.num_rows() as u32).collect();
    if table == Table::Articles {
        let columns = table.identity().iter().filter_map(|name| rows.column_by_name(name));
        let columns = columns.map(|column| make_comparator(column, column, SortOptions::default()));
        let columns = columns.collect::<Result<Vec<_>, _>>()?;
        order.sort_by(|&one, &other| compare(&columns, one, other));
    }
    Ok(order)
}

/// What an answer changes of what is known with other observations, the cells. `own` is what was known after it without
/// them. The changes count from an instant on.
pub(in crate::archive) fn restate(
    answer: &SeriesAnswer,
    own: &RecordBatch,
    merged: &Cells,
    sealed_at: DateTime<Utc>,
) -> Result<Option<Changes>, ArrowError> {
    let table = answer.table();
    let (key, source, observed_at) = (answer.key.clone(), answer.source, answer.observed_at);
    let as_of = observed_at.timestamp_micros();
    let mut told = rows_of_answer(answer, own)?;
    if table == Table::Articles {
        told = continue_places(told, answer.covers, (&merged.rows, as_of))?;
    }
    let found = difference(table, &merged.values(merged.all(), as_of)?, &told, answer.covers)?;
    Ok(found.map(|(kinds, rows)| Changes { key, source, observed_at, sealed_at, kinds, rows }))
}

/// The rows that an answer listed, of what was known after it.
pub(in crate::archive) fn rows_of_answer(
    answer: &SeriesAnswer,
    known: &RecordBatch,
) -> Result<RecordBatch, ArrowError> {
    let (table, covers) = (answer.table(), answer.covers);
    if covers.is_empty() {
        return Ok(known.slice(0, 0));
    }
    if let (Table::Articles, Some(oldest)) = (table, covers.oldest()) {
        return answer.edge.as_answered(known, oldest);
    }
    let date = coverage::date_of(table, known);
    let are_covered: BooleanArray = (0..known.num_rows()).map(|row| Some(covers.holds(table, date(row)))).collect();
    filter_record_batch(known, &are_covered)
}

#[cfg(test)]
mod tests;
