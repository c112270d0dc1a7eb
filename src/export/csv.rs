//! CSV as RFC 4180 has it, with lines that end in a line feed: a header, ISO dates, the shortest numbers that read back
//! equal. Null is nothing, an empty text is `""`, so that a reader can tell them apart.
//!
//! With [`Guard::Formulas`] a text that a spreadsheet would take for a formula gets a `'` before it, names of columns
//! too. Numbers are left alone: `-0.5` is one.

use std::io::{self, Write};

use arrow::array::{Array, ArrayRef, AsArray, RecordBatch, StringArray, TimestampMicrosecondArray};
use arrow::compute::cast;
use arrow::datatypes::{DataType, Schema, TimeUnit, TimestampMicrosecondType};
use arrow::error::ArrowError;
use arrow::util::display::{ArrayFormatter, FormatOptions};
use rayon::prelude::*;

use super::moments;
use crate::plan::Guard;

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
        let mut header = String::new();
        for (place, field) in schema.fields().iter().enumerate() {
            header.push_str(if place == 0 { "" } else { "," });
            push_text(&mut header, field.name(), guard);
        }
        header.push('\n');
        out.write_all(header.as_bytes())?;
        Ok(Self { out, guard })
    }

    pub(super) fn write(&mut self, rows: &RecordBatch) -> Result<(), ArrowError> {
        let count = rows.num_rows();
        let starts: Vec<usize> = (0..count).step_by(STRETCH_ROWS).collect();
        let written = |&from: &usize| lines(&rows.slice(from, STRETCH_ROWS.min(count - from)), self.guard);
        // Some stretches at a time: a text takes more room than its numbers do.
        for starts in starts.chunks(16) {
            let stretches = starts.par_iter().map(written).collect::<Result<Vec<String>, ArrowError>>()?;
            stretches.iter().try_for_each(|stretch| self.out.write_all(stretch.as_bytes()))?;
        }
        Ok(())
    }

    pub(super) fn finish(mut self) -> io::Result<()> {
        self.out.flush()
    }
}

fn lines(rows: &RecordBatch, guard: Guard) -> Result<String, ArrowError> {
    let columns = rows.columns().iter().map(|column| Cells::of(column, guard)).collect::<Result<Vec<_>, _>>()?;
    let mut out = String::with_capacity(rows.num_rows() * LINE_BYTES);
    for row in 0..rows.num_rows() {
        for (place, cells) in columns.iter().enumerate() {
            if place > 0 {
                out.push(',');
            }
            cells.push(&mut out, row)?;
        }
        out.push('\n');
    }
    Ok(out)
}

/// The cells of a column.
enum Cells<'a> {
    Texts(StringArray, Guard),
    /// Which of some texts each is, and the texts as they are written.
    Choices(&'a ArrayRef, Vec<usize>, Vec<String>),
    /// With what follows each.
    Moments(&'a TimestampMicrosecondArray, &'static str),
    /// Numbers, and true or false: nothing of theirs needs quotes.
    Plain(ArrayFormatter<'a>),
}

impl<'a> Cells<'a> {
    fn of(column: &'a ArrayRef, guard: Guard) -> Result<Self, ArrowError> {
        match column.data_type() {
            DataType::Dictionary(_, _) if column.logical_null_count() == column.null_count() => {
                let choices = column.as_any_dictionary();
                let texts = cast(choices.values(), &DataType::Utf8)?;
                let written = |text: Option<&str>| {
                    let mut out = String::new();
                    push_text(&mut out, text.unwrap_or_default(), guard);
                    out
                };
                let texts = texts.as_string::<i32>().iter().map(written).collect();
                Ok(Self::Choices(column, choices.normalized_keys(), texts))
            }
            DataType::Timestamp(TimeUnit::Microsecond, zone) => {
                let after = if zone.is_some() { "Z" } else { "" };
                Ok(Self::Moments(column.as_primitive::<TimestampMicrosecondType>(), after))
            }
            data_type if data_type.is_numeric() || *data_type == DataType::Boolean => {
                const OPTIONS: FormatOptions<'static> = FormatOptions::new().with_display_error(true);
                ArrayFormatter::try_new(column, &OPTIONS).map(Self::Plain)
            }
            _ => Ok(Self::Texts(cast(column, &DataType::Utf8)?.as_string::<i32>().clone(), guard)),
        }
    }

    fn push(&self, out: &mut String, row: usize) -> Result<(), ArrowError> {
        match self {
            Self::Texts(texts, guard) if texts.is_valid(row) => push_text(out, texts.value(row), *guard),
            Self::Choices(column, places, texts) if column.is_valid(row) => out.push_str(&texts[places[row]]),
            Self::Moments(moments, after) if moments.is_valid(row) => {
                moments::push(out, moments.value(row));
                out.push_str(after);
            }
            Self::Plain(cells) => cells.value(row).write(out)?,
            Self::Texts(..) | Self::Choices(..) | Self::Moments(..) => {}
        }
        Ok(())
    }
}

fn push_text(out: &mut String, text: &str, guard: Guard) {
    let is_formula = guard == Guard::Formulas && text.starts_with(['=', '+', '-', '@', '\t', '\r']);
    let guarded = if is_formula { "'" } else { "" };
    if !text.is_empty() && !text.contains([',', '"', '\r', '\n']) {
        out.push_str(guarded);
        out.push_str(text);
        return;
    }
    out.push('"');
    out.push_str(guarded);
    for (place, part) in text.split('"').enumerate() {
        out.push_str(if place == 0 { "" } else { "\"\"" });
        out.push_str(part);
    }
    out.push('"');
}
