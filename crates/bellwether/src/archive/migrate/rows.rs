//! The rows of layout 9 as rows of the current layout.
//!
//! In layout 9 the operation was part of a cell's key: it came before the cell's columns, and each operation had its own
//! sequence of rows. Here the rows of a cell are one sequence. A row that repeats the one before it, because another
//! operation had said the same, is left out, as a run would have done; the other rows stay as they are, except for the
//! kind of their change.

use std::collections::{BTreeSet, HashMap};
use std::ops::Range;
use std::sync::Arc;

use arrow::array::{
    ArrayRef, AsArray, BooleanArray, DynComparator, Int8Array, RecordBatch, TimestampMicrosecondArray, UInt32Array,
    make_comparator,
};
use arrow::compute::{SortOptions, filter_record_batch, take_record_batch};
use arrow::datatypes::{Field, Schema, SchemaRef, TimestampMicrosecondType};
use arrow::error::ArrowError;

use super::legacy::{Legacy, LegacyRun};
use crate::archive::fold::cells::Cells;
use crate::archive::fold::merged::Merged;
use crate::archive::sealed::file_rows::FileRows;
use crate::archive::sealed::folder::Folder;
use crate::archive::sealed::horizon::SEALED_AT;
use crate::archive::sealed::keys::ParsedDictionary;
use crate::archive::sealed::rows::{observation_times, ticker};
use crate::archive::sealed::sealed_run::SealedRun;
use crate::error::{Reason, Result};
use crate::interface::Endpoint;
use crate::tables::{Change, Table, choices};

/// Which run each row of a folder is from.
#[derive(Clone, Debug)]
pub(super) enum Origins {
    /// All are from one.
    One(usize),
    /// A pack has the rows of several: each is from one that was answered by its operation at its instant, with its
    /// request. Of several, the one counts that asked for the ticker, or that was sealed first.
    Answered(HashMap<(i64, Endpoint), Vec<(usize, String)>>),
}

impl Origins {
    /// Of the rows of a folder, by the indices of its runs.
    pub(super) fn of(folder: &Arc<Folder>, index_of: &HashMap<&str, usize>) -> Result<Self> {
        let seal = folder.seal();
        if !seal.is_pack() {
            return Ok(Self::One(index_of[seal.run.as_str()]));
        }
        let mut answered: HashMap<(i64, Endpoint), Vec<(usize, String)>> = HashMap::new();
        for member in &seal.members {
            let run = index_of[member.run.as_str()];
            for request in SealedRun::of(member.clone(), Arc::clone(folder)).requests()? {
                let answer = (request.observed_at.timestamp_micros(), request.endpoint);
                answered.entry(answer).or_default().push((run, request.request));
            }
        }
        Ok(Self::Answered(answered))
    }

    /// The run of a row.
    pub(super) fn get(&self, observed_at: i64, source: Endpoint, ticker: &str) -> Result<usize, Reason> {
        match self {
            Self::One(run) => Ok(*run),
            Self::Answered(answered) => {
                let answers = answered.get(&(observed_at, source)).map_or(&[][..], Vec::as_slice);
                let asked = answers.iter().find(|(_, request)| answers.len() > 1 && names(request, ticker));
                let run = asked.or(answers.first()).map(|(run, _)| *run);
                run.ok_or_else(|| "a row was observed when none of its runs was answered".into())
            }
        }
    }
}

/// Whether a request is for a ticker.
fn names(request: &str, ticker: &str) -> bool {
    let is_of_ticker = |letter: char| letter.is_ascii_alphanumeric() || matches!(letter, '.' | '-');
    request.split(|letter| !is_of_ticker(letter)).any(|word| word == ticker)
}

/// The runs of one service, and where their rows are.
pub(super) struct LegacySource<'a> {
    pub(super) legacy: &'a Legacy,
    /// The indices of its runs, in the order in which they were sealed.
    pub(super) runs: &'a [usize],
    /// For each folder, which run each row is from.
    pub(super) origins: &'a [Arc<Origins>],
}

impl LegacySource<'_> {
    pub(super) fn run(&self, index: usize) -> &LegacyRun {
        &self.legacy.runs()[index]
    }

    /// The rows of a table, merged, in the current layout.
    pub(super) fn merge(&self, table: Table) -> Result<Merged> {
        let read: BTreeSet<usize> = self.runs.iter().map(|&run| self.run(run).folder).collect();
        let folders: Vec<&Arc<Folder>> = read.iter().map(|&folder| &self.legacy.folders[folder]).collect();
        let index_of: HashMap<_, usize> =
            read.iter().map(|&index| (Arc::as_ptr(&self.legacy.folders[index]), index)).collect();
        Merged::of(table, &folders, |folder| {
            let index = index_of[&Arc::as_ptr(folder)];
            // Only the rows of runs of this service that are read from this folder.
            let sealed: HashMap<usize, i64> = self
                .runs
                .iter()
                .filter(|&&run| self.run(run).folder == index)
                .map(|&run| (run, self.run(run).seal().sealed_at.timestamp_micros()))
                .collect();
            let origins = Arc::clone(&self.origins[index]);
            let convert = move |rows: RecordBatch| convert(table, &rows, &origins, &sealed);
            Ok(FileRows::open(folder, &table.file(), &schema(table))?
                .with_conversion(table.file_schema(), Arc::new(convert)))
        })
    }
}

/// The columns of a table's file in layout 9.
fn schema(table: Table) -> SchemaRef {
    let all = table.schema();
    let (key, rest) = all.fields().split_at(table.key_columns());
    let (row, [source, change, observed_at]) = rest.split_at(rest.len() - 3) else {
        unreachable!("every table ends with these columns")
    };
    let fields: Vec<Field> = key
        .iter()
        .chain([source])
        .chain(row)
        .chain([change, observed_at])
        .map(|field| field.as_ref().clone())
        .collect();
    Arc::new(Schema::new(fields))
}

/// Rows of layout 9 in the columns of the current one, without those of other runs.
fn convert(
    table: Table,
    rows: &RecordBatch,
    origins: &Origins,
    sealed: &HashMap<usize, i64>,
) -> Result<RecordBatch, Reason> {
    let sources = ParsedDictionary::<Endpoint>::of(rows, "source");
    let mut instants: Vec<Option<i64>> = Vec::with_capacity(rows.num_rows());
    for (row, &seen) in observation_times(rows).values().iter().enumerate() {
        let source = sources.get(row)?.ok_or("a row has no operation")?;
        instants.push(sealed.get(&origins.get(seen, source, ticker(rows, row))?).copied());
    }
    let is_kept: BooleanArray = instants.iter().map(|sealed| Some(sealed.is_some())).collect();
    let instants: TimestampMicrosecondArray = instants.into_iter().map(|sealed| Some(sealed.unwrap_or(0))).collect();
    let schema = table.file_schema();
    let column = |field: &Arc<Field>| -> ArrayRef {
        match field.name().as_str() {
            SEALED_AT => Arc::new(instants.clone().with_timezone("UTC")),
            name => Arc::clone(rows.column_by_name(name).expect("both layouts have the same other columns")),
        }
    };
    let columns = schema.fields().iter().map(column).collect();
    Ok(filter_record_batch(&RecordBatch::try_new(Arc::clone(&schema), columns)?, &is_kept)?)
}

/// The rows of some whole cells that say something new, with the kinds of their changes.
pub(super) fn changed_rows(cells: &Cells) -> Result<RecordBatch, ArrowError> {
    let comparing = Comparing::of(cells)?;
    let (mut kept, mut kinds) = (Vec::new(), Vec::new());
    for cell in cells.groups.cells() {
        for row in cell.clone() {
            if let Some(change) = comparing.change(&cell, row) {
                kept.push(row as u32);
                kinds.push(change);
            }
        }
    }
    let rows = take_record_batch(&cells.rows, &UInt32Array::from(kept))?;
    let change = choices(kinds.iter().map(|kind| *kind as i8).collect::<Int8Array>(), Change::ALL.map(Change::as_str));
    let schema = rows.schema();
    let column = |(index, field): (usize, &Arc<Field>)| match field.name().as_str() {
        "change" => Arc::clone(&change),
        _ => Arc::clone(rows.column(index)),
    };
    let columns = schema.fields().iter().enumerate().map(column).collect();
    RecordBatch::try_new(Arc::clone(&schema), columns)
}

/// Compares the rows of a cell, which are in the order of their observation.
struct Comparing<'a> {
    changes: &'a [Change],
    sealed: &'a [i64],
    values: Vec<DynComparator>,
}

impl<'a> Comparing<'a> {
    fn of(cells: &'a Cells) -> Result<Self, ArrowError> {
        let names = cells.table.values().iter().copied().chain(["extra"]);
        let columns = names.filter_map(|name| cells.rows.column_by_name(name));
        let values = columns.map(|column| make_comparator(column, column, SortOptions::default()));
        Ok(Self { changes: &cells.changes, sealed: seal_times(&cells.rows), values: values.collect::<Result<_, _>>()? })
    }

    /// What a row changes; `None` if it repeats the row before it, from whenever it counts.
    fn change(&self, cell: &Range<usize>, row: usize) -> Option<Change> {
        let is_repeated = match row.checked_sub(1).filter(|before| *before >= cell.start) {
            None => self.changes[row] == Change::Withdrawn,
            Some(before) => self.sealed[before] <= self.sealed[row] && self.is_same(before, row),
        };
        if is_repeated {
            return None;
        }
        let known = (cell.start..row).rev().find(|before| self.sealed[*before] <= self.sealed[row]);
        Some(match (self.changes[row], known.map(|known| self.changes[known])) {
            (Change::Withdrawn, _) => Change::Withdrawn,
            (_, None | Some(Change::Withdrawn)) => Change::Added,
            (_, Some(Change::Added | Change::Revised)) => Change::Revised,
        })
    }

    fn is_same(&self, one: usize, other: usize) -> bool {
        let is_withdrawn = |row: usize| self.changes[row] == Change::Withdrawn;
        match (is_withdrawn(one), is_withdrawn(other)) {
            (true, true) => true,
            (false, false) => self.values.iter().all(|compare| compare(one, other).is_eq()),
            _ => false,
        }
    }
}

/// When the run of each row was sealed.
pub(super) fn seal_times(rows: &RecordBatch) -> &[i64] {
    let column = rows.column_by_name(SEALED_AT).expect("every file has the column");
    column.as_primitive::<TimestampMicrosecondType>().values()
}
