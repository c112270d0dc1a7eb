//! Rows as lines.
//!
//! Neighbouring columns of closed sets, such as period, regime and signal, are one column of all that they can say
//! together. The features of a date are those of all its signals, so neighbouring columns mostly turn together: their
//! cells are a span, whose text is kept and copied until one of them turns. The cells of the other columns are written
//! column by column, so that putting lines together is copying alone.

use arrow::error::ArrowError;

use super::cells::{Cells, Written};
use super::tape::{self, Tape};
use crate::columns::{Boundaries, Rows};
use crate::plan::Guard;

/// How many copies of a kept text take as long as writing a cell, about.
const COPIES: usize = 8;

/// Appends the lines of some rows.
pub(super) fn push(out: &mut Tape, rows: &Rows, guard: Guard) -> Result<(), ArrowError> {
    let mut columns: Vec<(Cells<'_>, Boundaries)> = Vec::new();
    for column in rows.columns() {
        let (cells, turns) = (Cells::of(column, guard)?, column.boundaries());
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
    let mut parts: Vec<Part<'_>> = spans.into_iter().flat_map(Part::of).collect();
    let most = parts.iter().map(Part::most).sum();
    let turns =
        parts.iter().filter_map(Part::turns).fold(Boundaries::at([], rows.num_rows()), |all, turns| &all | turns);
    for (start, end) in turns.runs() {
        parts.iter_mut().for_each(|part| part.turn(start));
        for row in start..end {
            out.append(most, |out| {
                let end = parts.iter().fold(0, |end, part| part.copy(out, end, row));
                // Each cell has something after it, the last one the line's end.
                out[end - 1] = b'\n';
                end
            });
        }
    }
    Ok(())
}

/// Columns side by side.
struct Span<'a> {
    cells: Vec<Cells<'a>>,
    /// Where any of them turns.
    turns: Boundaries,
}

impl Span<'_> {
    /// Where either of two spans turns, if it is less work to keep one text of both.
    fn turns_with(&self, next: &Self) -> Option<Boundaries> {
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

/// A part of each line, as text.
enum Part<'a> {
    Kept(Kept<'a>),
    Written(Written),
}

/// Columns that turn rarely: their text is kept until one of them does.
struct Kept<'a> {
    cells: Vec<Cells<'a>>,
    /// The most bytes that a row of them takes.
    most: usize,
    turns: Boundaries,
    text: Tape,
}

impl<'a> Part<'a> {
    fn of(span: Span<'a>) -> Vec<Self> {
        if !span.is_kept() {
            return span.cells.into_iter().map(|cells| Self::Written(cells.written())).collect();
        }
        let most = span.cells.iter().map(Cells::most).sum();
        vec![Self::Kept(Kept { cells: span.cells, most, turns: span.turns, text: Tape::default() })]
    }

    /// The most bytes that a copy of it needs room for.
    fn most(&self) -> usize {
        match self {
            Self::Kept(kept) => tape::room(kept.most),
            Self::Written(written) => written.most(),
        }
    }

    fn turns(&self) -> Option<&Boundaries> {
        match self {
            Self::Kept(kept) => Some(&kept.turns),
            Self::Written(_) => None,
        }
    }

    /// Makes it ready for a row and those that follow until it turns.
    fn turn(&mut self, row: usize) {
        if let Self::Kept(Kept { cells, most, turns, text }) = self
            && turns.is_at(row)
        {
            text.clear();
            text.append(*most, |out| cells.iter().fold(0, |end, cells| cells.write(out, end, row)));
        }
    }

    /// Copies the part of a row behind what ends there, and says where it ends.
    #[inline(always)]
    fn copy(&self, out: &mut [u8], end: usize, row: usize) -> usize {
        match self {
            Self::Kept(kept) => kept.text.copy(out, end),
            Self::Written(written) => written.copy(out, end, row),
        }
    }
}
