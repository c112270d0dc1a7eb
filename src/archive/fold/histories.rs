//! The history of each cell of a table, from its first observation to its last.

use std::ops::Range;

use arrow::array::{RecordBatch, UInt32Array};
use arrow::compute::{concat_batches, take_record_batch};
use arrow::error::ArrowError;

use super::cells::Cells;
use crate::archive::sealed::keys;
use crate::tables::{Change, SeriesKey, Table};

/// Observations of some whole tickers, leaving out those that repeat the one before.
#[derive(Clone, Debug)]
pub struct Histories {
    /// The table.
    pub table: Table,
    /// In the columns of [`Table::schema`], sorted by series, cell and observation time.
    pub rows: RecordBatch,
    /// The kind of change of each row.
    pub changes: Vec<Change>,
    /// The series, in order.
    pub series: Vec<History>,
}

/// The cells of one series.
#[derive(Clone, Debug)]
pub struct History {
    /// The series.
    pub key: SeriesKey,
    /// The rows of each cell, in cell order.
    pub cells: Vec<Range<usize>>,
}

impl Histories {
    /// The history of some cells up to an instant.
    pub(in crate::archive) fn of(cells: &Cells, as_of_micros: i64) -> Result<Self, ArrowError> {
        let (turns, bounds) = cells.turns(as_of_micros);
        let (rows, changes) = if turns.len() == cells.rows.num_rows() {
            (cells.rows.clone(), cells.changes.clone())
        } else {
            let changes = turns.iter().map(|&row| cells.changes[row as usize]).collect();
            (take_record_batch(&cells.rows, &UInt32Array::from(turns))?, changes)
        };
        let ranges = keys::ranges(&rows).map_err(ArrowError::from_external_error)?;
        let mut rest = &bounds[..];
        let of_series = |(key, range): (SeriesKey, Range<usize>)| {
            let (of_series, others) = rest.split_at(rest.partition_point(|cell| cell.end <= range.end));
            rest = others;
            History { key, cells: of_series.to_vec() }
        };
        let series = ranges.into_iter().map(of_series).collect();
        Ok(Self { table: cells.table, rows, changes, series })
    }

    /// Keeps only dates, scores and observation times of articles: the other columns take most of the memory.
    pub(in crate::archive) fn scores(self) -> Result<Self, ArrowError> {
        let schema = self.rows.schema();
        let kept = ["ticker", "source", "date", "score", "observed_at"].into_iter().map(|name| schema.index_of(name));
        let rows = self.rows.project(&kept.collect::<Result<Vec<_>, _>>()?)?;
        Ok(Self { rows, ..self })
    }

    /// Concatenates pieces; a series may continue in the next piece.
    pub(in crate::archive) fn joined(pieces: Vec<Self>) -> Result<Option<Self>, ArrowError> {
        let Some(Self { table, rows, .. }) = pieces.first() else { return Ok(None) };
        let (table, rows) = (*table, concat_batches(rows.schema_ref(), pieces.iter().map(|piece| &piece.rows))?);
        let (mut changes, mut series) = (Vec::with_capacity(rows.num_rows()), Vec::<History>::new());
        for piece in pieces {
            let start = changes.len();
            changes.extend(piece.changes);
            for History { key, cells } in piece.series {
                let cells = cells.into_iter().map(|cell| cell.start + start..cell.end + start);
                match series.last_mut() {
                    Some(last) if last.key == key => last.cells.extend(cells),
                    _ => series.push(History { key, cells: cells.collect() }),
                }
            }
        }
        Ok(Some(Self { table, rows, changes, series }))
    }
}
