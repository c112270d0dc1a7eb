//! Rows as lines.
//!
//! Neighbouring columns of closed sets, such as period, regime and signal, are one column of all that they can say
//! together. The features of a date are those of all its signals, so neighbouring columns mostly turn together: their
//! cells are a span, whose text is kept and copied until one of them turns.

use arrow::error::ArrowError;

use super::cells::Cells;
use crate::export::snippet::Snippet;
use crate::plan::Guard;
use crate::tables::Rows;
use crate::turns::Turns;

/// What a line is thought to take.
const LINE_BYTES: usize = 128;

/// How many copies of a kept text take as long as writing a cell, about.
const COPIES: usize = 8;

/// Appends the lines of some rows.
pub(super) fn push(out: &mut Vec<u8>, rows: &Rows, guard: Guard) -> Result<(), ArrowError> {
    let mut columns: Vec<(Cells<'_>, Turns)> = Vec::new();
    for place in 0..rows.num_columns() {
        let (column, turns) = rows.turning(place);
        let cells = Cells::of(column, guard)?;
        match columns.last_mut() {
            Some((last, last_turns)) if last.goes_with(&cells) => {
                last.join(cells);
                *last_turns = &*last_turns | turns;
            }
            _ => columns.push((cells, turns.clone())),
        }
    }
    let mut spans: Vec<Span<'_>> = Vec::new();
    for (cells, turns) in columns {
        let span = Span { cells: vec![cells], turns, text: Snippet::default() };
        match spans.last_mut() {
            Some(last) if let Some(turns) = last.turns_with(&span) => {
                last.turns = turns;
                last.cells.extend(span.cells);
            }
            _ => spans.push(span),
        }
    }
    out.reserve(rows.num_rows() * LINE_BYTES);
    let mut spans: Vec<_> = spans.into_iter().map(|span| (span.is_kept(), span)).collect();
    for row in 0..rows.num_rows() {
        for (is_kept, span) in &mut spans {
            if !*is_kept {
                push_cells(out, &span.cells, row)?;
                continue;
            }
            if span.turns.is_at(row) {
                let Span { cells, text, .. } = span;
                text.rewrite(|out| push_cells(out, cells, row))?;
            }
            span.text.push(out);
        }
        // Each cell has something after it, the last one the line's end.
        *out.last_mut().expect("a dataset has columns") = b'\n';
    }
    Ok(())
}

/// Columns side by side.
struct Span<'a> {
    cells: Vec<Cells<'a>>,
    /// Where any of them turns.
    turns: Turns,
    /// The cells of the row that turned last.
    text: Snippet,
}

impl Span<'_> {
    /// Where either of two spans turns, if it is less work to keep one text of both.
    fn turns_with(&self, next: &Self) -> Option<Turns> {
        let both = &self.turns | &next.turns;
        let apart = self.work() + next.work() + both.len() / COPIES;
        (both.count() * (self.cells.len() + next.cells.len()) <= apart).then_some(both)
    }

    /// The cells to write.
    fn work(&self) -> usize {
        self.turns.count() * self.cells.len()
    }

    /// Whether it turns so rarely that its text is worth keeping.
    fn is_kept(&self) -> bool {
        self.turns.count() * 2 <= self.turns.len()
    }
}

/// Appends the cells of a row, each with a comma after it.
fn push_cells(out: &mut Vec<u8>, cells: &[Cells<'_>], row: usize) -> Result<(), ArrowError> {
    for cells in cells {
        cells.push(out, row)?;
        out.push(b',');
    }
    Ok(())
}
