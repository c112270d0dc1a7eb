//! Rows as lines.
//!
//! Neighbouring columns of closed sets, such as period, regime and signal, are one column of all that they can say
//! together. The features of a date are those of all its signals, so neighbouring columns mostly turn together: their
//! cells are a span, whose text is kept and copied until one of them turns.

use arrow::error::ArrowError;

use super::cells::Cells;
use super::tape::Tape;
use crate::plan::Guard;
use crate::tables::Rows;
use crate::turns::Turns;

/// How many copies of a kept text take as long as writing a cell, about.
const COPIES: usize = 8;

/// Appends the lines of some rows.
pub(super) fn push(out: &mut Tape, rows: &Rows, guard: Guard) -> Result<(), ArrowError> {
    let mut columns: Vec<(Cells<'_>, Turns)> = Vec::new();
    for column in rows.columns() {
        let (cells, turns) = (Cells::of(column, guard)?, column.turns());
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
        let span = Span { cells: vec![cells], turns };
        match spans.last_mut() {
            Some(last) if let Some(turns) = last.turns_with(&span) => {
                last.turns = turns;
                last.cells.extend(span.cells);
            }
            _ => spans.push(span),
        }
    }
    let mut spans: Vec<Writing<'_>> = spans.into_iter().map(Writing::of).collect();
    let most = spans.iter().map(|span| span.most).sum();
    for row in 0..rows.num_rows() {
        out.append(most, |out| {
            let end = spans.iter_mut().fold(0, |end, span| span.write(out, end, row));
            // Each cell has something after it, the last one the line's end.
            out[end - 1] = b'\n';
            end
        });
    }
    Ok(())
}

/// Columns side by side.
struct Span<'a> {
    cells: Vec<Cells<'a>>,
    /// Where any of them turns.
    turns: Turns,
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

/// Columns that are being written.
struct Writing<'a> {
    cells: Vec<Cells<'a>>,
    /// The most bytes that a row of them takes.
    most: usize,
    kept: Option<Kept>,
}

/// What need not be written again at each row.
struct Kept {
    turns: Turns,
    /// The cells of the row that turned last.
    text: Tape,
}

impl<'a> Writing<'a> {
    fn of(span: Span<'a>) -> Self {
        let most = span.cells.iter().map(|cells| cells.most() + 1).sum();
        let kept = span.is_kept().then(|| Kept { turns: span.turns, text: Tape::default() });
        Self { cells: span.cells, most, kept }
    }

    /// Writes the cells of a row behind what ends there, and says where they end.
    #[inline(always)]
    fn write(&mut self, out: &mut [u8], end: usize, row: usize) -> usize {
        let Self { cells, most, kept } = self;
        let Some(Kept { turns, text }) = kept else { return write_cells(out, end, cells, row) };
        if turns.is_at(row) {
            rewrite(text, *most, cells, row);
        }
        text.copy(out, end)
    }
}

// It is rare, and makes what goes on without it slower where it stands among it.
#[inline(never)]
fn rewrite(text: &mut Tape, most: usize, cells: &[Cells<'_>], row: usize) {
    text.clear();
    text.append(most, |out| write_cells(out, 0, cells, row));
}

/// Writes the cells of a row, each with a comma after it.
#[inline(always)]
fn write_cells(out: &mut [u8], end: usize, cells: &[Cells<'_>], row: usize) -> usize {
    cells.iter().fold(end, |end, cells| {
        let end = cells.write(out, end, row);
        out[end] = b',';
        end + 1
    })
}
