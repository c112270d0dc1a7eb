//! CSV as RFC 4180 has it, with lines that end in a line feed: a header, ISO dates, the shortest numbers that read back
//! equal. Null is nothing, an empty text is `""`, so that a reader can tell them apart.
//!
//! With [`Guard::Formulas`] a text that a spreadsheet would take for a formula gets a `'` before it, names of columns
//! too. Numbers are left alone: `-0.5` is one.

use std::io::{self, Write};

use arrow::array::{
    Array, ArrayRef, AsArray, Float64Array, Int32Array, RecordBatch, StringArray, TimestampMicrosecondArray,
};
use arrow::compute::cast;
use arrow::datatypes::{DataType, Float64Type, Int32Type, Schema, TimeUnit, TimestampMicrosecondType};
use arrow::error::ArrowError;
use arrow::util::display::{ArrayFormatter, FormatOptions};
use rayon::prelude::*;

use super::{moments, numbers};
use crate::plan::Guard;
use crate::trace::work;

/// The lines that one thread writes at once.
const STRETCH_ROWS: usize = 1 << 13;

/// What a line is thought to take.
const LINE_BYTES: usize = 128;

/// A CSV file that is being written.
pub(super) struct Writer<W: Write> {
    out: W,
    guard: Guard,
}

impl<W: Write> Writer<W> {
    pub(super) fn create(mut out: W, schema: &Schema, guard: Guard) -> io::Result<Self> {
        let mut header = Vec::new();
        for (place, field) in schema.fields().iter().enumerate() {
            header.extend_from_slice(if place == 0 { b"" } else { b"," });
            push_text(&mut header, field.name(), guard);
        }
        header.push(b'\n');
        out.write_all(&header)?;
        Ok(Self { out, guard })
    }

    pub(super) fn write(&mut self, rows: &RecordBatch) -> Result<(), ArrowError> {
        let count = rows.num_rows();
        let starts: Vec<usize> = (0..count).step_by(STRETCH_ROWS).collect();
        let written = |&from: &usize| lines(&rows.slice(from, STRETCH_ROWS.min(count - from)), self.guard);
        // Some stretches at a time: a text takes more room than its numbers do.
        for starts in starts.chunks(16) {
            let stretches = starts.par_iter().map(written).collect::<Result<Vec<Vec<u8>>, ArrowError>>()?;
            let _work = work!("hand lines on");
            stretches.iter().try_for_each(|stretch| self.out.write_all(stretch))?;
        }
        Ok(())
    }

    pub(super) fn finish(&mut self) -> io::Result<()> {
        self.out.flush()
    }

    pub(super) fn out(&self) -> &W {
        &self.out
    }
}

fn lines(rows: &RecordBatch, guard: Guard) -> Result<Vec<u8>, ArrowError> {
    let _work = work!("write lines");
    let columns = rows.columns().iter().map(|column| Cells::of(column, guard)).collect::<Result<Vec<_>, _>>()?;
    let mut out = Vec::with_capacity(rows.num_rows() * LINE_BYTES);
    // Where the cells of the row before begin, and where the last one ends, each with what is after it.
    let mut starts = vec![0; columns.len() + 1];
    for row in 0..rows.num_rows() {
        let mut place = 0;
        while place < columns.len() {
            // The features of a date are those of all its signals: cells that stay are copied together.
            let staying = columns[place..].iter().take_while(|cells| row > 0 && cells.is_like_the_last(row)).count();
            if staying > 0 {
                let (from, to) = (starts[place], starts[place + staying]);
                let moved = out.len() - from;
                starts[place..place + staying].iter_mut().for_each(|start| *start += moved);
                out.extend_from_within(from..to);
                place += staying;
            } else {
                starts[place] = out.len();
                columns[place].push(&mut out, row)?;
                out.push(b',');
                place += 1;
            }
        }
        // Each cell has something after it, the last one the line's end.
        *out.last_mut().expect("a dataset has columns") = b'\n';
        starts[place] = out.len();
    }
    Ok(out)
}

/// The cells of a column.
enum Cells<'a> {
    Texts(StringArray, Guard),
    /// Which of some texts each is, and the texts as they are written; the last of them stands for null.
    Choices(Vec<usize>, Vec<Vec<u8>>),
    /// With what follows each.
    Moments(&'a TimestampMicrosecondArray, &'static str),
    Reals(&'a Float64Array),
    Integers(&'a Int32Array),
    /// Other numbers, and true or false: nothing of theirs needs quotes.
    Plain(ArrayFormatter<'a>),
}

impl<'a> Cells<'a> {
    fn of(column: &'a ArrayRef, guard: Guard) -> Result<Self, ArrowError> {
        match column.data_type() {
            DataType::Dictionary(_, _) if column.logical_null_count() == column.null_count() => {
                let choices = column.as_any_dictionary();
                let texts = cast(choices.values(), &DataType::Utf8)?;
                let written = |text: Option<&str>| {
                    let mut out = Vec::new();
                    push_text(&mut out, text.unwrap_or_default(), guard);
                    out
                };
                let mut texts: Vec<Vec<u8>> = texts.as_string::<i32>().iter().map(written).collect();
                let mut places = choices.normalized_keys();
                if let Some(nulls) = column.nulls() {
                    let no_text = texts.len();
                    places.iter_mut().zip(nulls).filter(|(_, valid)| !valid).for_each(|(place, _)| *place = no_text);
                }
                texts.push(Vec::new());
                Ok(Self::Choices(places, texts))
            }
            DataType::Timestamp(TimeUnit::Microsecond, zone) => {
                let after = if zone.is_some() { "Z" } else { "" };
                Ok(Self::Moments(column.as_primitive::<TimestampMicrosecondType>(), after))
            }
            DataType::Float64 => Ok(Self::Reals(column.as_primitive::<Float64Type>())),
            DataType::Int32 => Ok(Self::Integers(column.as_primitive::<Int32Type>())),
            data_type if data_type.is_numeric() || *data_type == DataType::Boolean => {
                const OPTIONS: FormatOptions<'static> = FormatOptions::new().with_display_error(true);
                ArrayFormatter::try_new(column, &OPTIONS).map(Self::Plain)
            }
            _ => Ok(Self::Texts(cast(column, &DataType::Utf8)?.as_string::<i32>().clone(), guard)),
        }
    }

    /// Whether a cell is surely what the one before it is.
    fn is_like_the_last(&self, row: usize) -> bool {
        match self {
            Self::Texts(texts, _) => {
                texts.is_valid(row) && texts.is_valid(row - 1) && texts.value(row) == texts.value(row - 1)
            }
            Self::Moments(moments, _) => {
                let values = moments.values();
                values[row] == values[row - 1] && moments.is_valid(row) && moments.is_valid(row - 1)
            }
            Self::Reals(reals) => {
                let values = reals.values();
                values[row].to_bits() == values[row - 1].to_bits() && reals.is_valid(row) && reals.is_valid(row - 1)
            }
            Self::Integers(integers) => {
                let values = integers.values();
                values[row] == values[row - 1] && integers.is_valid(row) && integers.is_valid(row - 1)
            }
            // These are quick to write.
            Self::Choices(..) | Self::Plain(_) => false,
        }
    }

    fn push(&self, out: &mut Vec<u8>, row: usize) -> Result<(), ArrowError> {
        match self {
            Self::Texts(texts, guard) if texts.is_valid(row) => push_text(out, texts.value(row), *guard),
            Self::Choices(places, texts) => out.extend_from_slice(&texts[places[row]]),
            Self::Moments(moments, after) if moments.is_valid(row) => {
                moments::push(out, moments.value(row));
                out.extend_from_slice(after.as_bytes());
            }
            Self::Reals(reals) if reals.is_valid(row) => numbers::push_real(out, reals.value(row)),
            Self::Integers(integers) if integers.is_valid(row) => numbers::push_whole(out, integers.value(row)),
            Self::Plain(cells) => write!(out, "{}", cells.value(row))?,
            Self::Texts(..) | Self::Moments(..) | Self::Reals(_) | Self::Integers(_) => {}
        }
        Ok(())
    }
}

fn push_text(out: &mut Vec<u8>, text: &str, guard: Guard) {
    let is_formula = guard == Guard::Formulas && text.starts_with(['=', '+', '-', '@', '\t', '\r']);
    let guarded = if is_formula { "'" } else { "" };
    if !text.is_empty() && !text.contains([',', '"', '\r', '\n']) {
        out.extend_from_slice(guarded.as_bytes());
        out.extend_from_slice(text.as_bytes());
        return;
    }
    out.push(b'"');
    out.extend_from_slice(guarded.as_bytes());
    for (place, part) in text.split('"').enumerate() {
        out.extend_from_slice(if place == 0 { b"" } else { b"\"\"" });
        out.extend_from_slice(part.as_bytes());
    }
    out.push(b'"');
}
