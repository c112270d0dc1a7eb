//! CSV as RFC 4180 has it, with lines that end in a line feed: a header, ISO dates, the shortest numbers that read back
//! equal. Null is nothing, an empty text is `""`, so that a reader can tell them apart.
//!
//! With [`Guard::Formulas`] a text that a spreadsheet would take for a formula gets a `'` before it, names of columns
//! too. Numbers are left alone: `-0.5` is one.
//!
//! `lines` puts together what `cells` say, real numbers by `numbers` and `shares`, on a `tape`.

mod cells;
mod lines;
mod numbers;
mod shares;
mod tape;

use std::io::{self, Write};

use arrow::datatypes::Schema;
use arrow::error::ArrowError;
use rayon::prelude::*;

use tape::Tape;

use crate::columns::Rows;
use crate::plan::Guard;
use crate::trace::work;

/// The lines that one thread writes at once.
const STRETCH_ROWS: usize = 1 << 13;

/// The stretches that are written at once: a text takes more room than its numbers do.
const STRETCHES: usize = 8;

/// A CSV file that is being written.
pub(super) struct Writer<W: Write> {
    out: W,
    guard: Guard,
    /// Room for the lines that are being written and for those that are handed on meanwhile.
    room: [Vec<Tape>; 2],
}

impl<W: Write + Send> Writer<W> {
    pub(super) fn create(mut out: W, schema: &Schema, guard: Guard) -> io::Result<Self> {
        let names = || schema.fields().iter().map(|field| field.name());
        let most = names().map(|name| cells::room(name.len()) + 1).sum();
        let header = Tape::of(most, |out| {
            let end = names().fold(0, |end, name| {
                let end = cells::write_text(out, end, name, guard);
                tape::put(out, end, b",")
            });
            out[end - 1] = b'\n';
            end
        });
        out.write_all(header.as_bytes())?;
        Ok(Self { out, guard, room: [(); 2].map(|()| vec![Tape::default(); STRETCHES]) })
    }

    pub(super) fn write(&mut self, pieces: &[Rows]) -> Result<(), ArrowError> {
        let Self { out, guard, room: [ready, next] } = self;
        let stretches: Vec<Rows> = pieces.iter().flat_map(stretches).collect();
        for stretches in stretches.chunks(STRETCHES) {
            next.iter_mut().for_each(Tape::clear);
            let write = |(lines, rows): (&mut Tape, &Rows)| {
                let _work = work!("write lines");
                lines::push(lines, rows, *guard)
            };
            let write = || next.par_iter_mut().zip(stretches).try_for_each(write);
            let (handed_on, written) = rayon::join(|| hand_on(out, ready), write);
            handed_on?;
            written?;
            std::mem::swap(ready, next);
        }
        hand_on(out, ready)?;
        ready.iter_mut().for_each(Tape::clear);
        Ok(())
    }

    pub(super) fn finish(&mut self) -> io::Result<()> {
        self.out.flush()
    }

    pub(super) fn out(&self) -> &W {
        &self.out
    }
}

fn stretches(rows: &Rows) -> impl Iterator<Item = Rows> {
    let count = rows.num_rows();
    (0..count).step_by(STRETCH_ROWS).map(move |from| rows.slice(from, STRETCH_ROWS.min(count - from)))
}

/// Hands on lines; their checksum takes as long as they did.
fn hand_on(out: &mut impl Write, stretches: &[Tape]) -> io::Result<()> {
    let _work = work!("hand lines on");
    stretches
        .iter()
        .filter(|stretch| !stretch.as_bytes().is_empty())
        .try_for_each(|stretch| out.write_all(stretch.as_bytes()))
}
