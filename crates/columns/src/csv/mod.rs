//! CSV by RFC 4180, with lines that end in a line feed: a header, ISO dates, and the shortest numbers that read back
//! equal. Null is empty and an empty text is `""`, so that a reader can tell them apart.
//!
//! With [`FormulaGuard::Formulas`], text that a spreadsheet would take for a formula gets a leading `'`, column names
//! included. Numbers such as `-0.5` do not.
//!
//! A file may be compressed while it is written (`coding`). `lines` joins the `fields` of a row, whose numbers are written by
//! `numbers`, all into one buffer.

mod coding;
mod fields;
mod lines;
mod numbers;

use std::io::{self, Write};

use arrow::datatypes::Schema;
use arrow::error::ArrowError;
use rayon::prelude::*;

use coding::Coded;
pub use coding::Coding;
pub use fields::{FormulaGuard, unguarded};
use lines::Lines;

use crate::Rows;

/// Rows per block; a thread writes one block at a time.
const BLOCK_ROWS: usize = 1 << 12;

/// Blocks held as text at once.
const BLOCKS: usize = 8;

/// Writes a CSV file.
pub struct CsvWriter<W: Write> {
    out: Coded<W>,
    guard: FormulaGuard,
    /// Lines being sent to the output, and lines being written meanwhile.
    buffers: [Vec<Lines>; 2],
}

impl<W: Write + Send> CsvWriter<W> {
    /// Begins a file with its header.
    ///
    /// # Errors
    ///
    /// If the output fails.
    pub fn create(out: W, coding: Coding, schema: &Schema, guard: FormulaGuard) -> io::Result<Self> {
        let mut out = coding.to(out)?;
        let names = schema.fields().iter().map(|field| fields::quote(field.name(), guard));
        let mut header = names.collect::<Vec<_>>().join(&b',');
        header.push(b'\n');
        out.write_all(&header)?;
        Ok(Self { out, guard, buffers: [(); 2].map(|()| vec![Lines::default(); BLOCKS]) })
    }

    /// Writes rows.
    ///
    /// # Errors
    ///
    /// If a column has a type that CSV has no text for, or the output fails.
    pub fn write(&mut self, pieces: &[Rows]) -> Result<(), ArrowError> {
        let Self { out, guard, buffers: [ready, next] } = self;
        let mut blocks: Vec<Rows> = Vec::new();
        for rows in pieces {
            let count = rows.num_rows();
            let starts = (0..count).step_by(BLOCK_ROWS);
            blocks.extend(starts.map(|from| rows.slice(from, BLOCK_ROWS.min(count - from))));
        }
        for blocks in blocks.chunks(BLOCKS) {
            next.iter_mut().for_each(Lines::clear);
            let write = || {
                next.par_iter_mut().zip(blocks).try_for_each(|(lines, rows)| {
                    let _work = work!("write lines");
                    lines.extend(rows, *guard)
                })
            };
            let (handed_on, written) = rayon::join(|| hand_on(out, ready), write);
            handed_on?;
            written?;
            std::mem::swap(ready, next);
        }
        hand_on(out, ready)?;
        ready.iter_mut().for_each(Lines::clear);
        Ok(())
    }

    /// Completes the file.
    ///
    /// # Errors
    ///
    /// If the output fails.
    pub fn finish(&mut self) -> io::Result<()> {
        self.out.finish()
    }

    /// The output.
    pub fn out(&self) -> &W {
        self.out.inner()
    }
}

/// Sends lines to the output. Computing its checksum takes about as long as writing the lines.
fn hand_on(out: &mut impl Write, lines: &[Lines]) -> io::Result<()> {
    let _work = work!("send lines");
    lines.iter().map(Lines::as_bytes).filter(|lines| !lines.is_empty()).try_for_each(|lines| out.write_all(lines))
}
