//! The cells of a column as text.

use std::io::Write;

use arrow::array::{Array, ArrayRef, AsArray, Float64Array, Int32Array, StringArray, TimestampMicrosecondArray};
use arrow::compute::cast;
use arrow::datatypes::{DataType, Float64Type, Int32Type, TimeUnit, TimestampMicrosecondType};
use arrow::error::ArrowError;
use arrow::util::display::{ArrayFormatter, FormatOptions};

use crate::export::snippet::Snippet;
use crate::export::{moments, numbers};
use crate::plan::Guard;

/// The most that columns of closed sets may be able to say together, to be one.
const MOST_CHOICES: usize = 1 << 10;

/// The cells of a column.
pub(super) enum Cells<'a> {
    Texts(StringArray, Guard),
    /// Which of some texts each is, and the texts as they are written; the last of them stands for null.
    Choices(Vec<usize>, Vec<Snippet>),
    /// With what follows each.
    Moments(&'a TimestampMicrosecondArray, &'static str),
    Reals(&'a Float64Array),
    Integers(&'a Int32Array),
    /// Other numbers, and true or false: nothing of theirs needs quotes.
    Plain(ArrayFormatter<'a>),
}

impl<'a> Cells<'a> {
    pub(super) fn of(column: &'a ArrayRef, guard: Guard) -> Result<Self, ArrowError> {
        match column.data_type() {
            DataType::Dictionary(_, _) if column.logical_null_count() == column.null_count() => {
                let choices = column.as_any_dictionary();
                let texts = cast(choices.values(), &DataType::Utf8)?;
                let written = |text: Option<&str>| {
                    let mut out = Vec::new();
                    push_text(&mut out, text.unwrap_or_default(), guard);
                    Snippet::of(&out)
                };
                let mut texts: Vec<Snippet> = texts.as_string::<i32>().iter().map(written).collect();
                let mut places = choices.normalized_keys();
                if let Some(nulls) = column.nulls() {
                    let no_text = texts.len();
                    places.iter_mut().zip(nulls).filter(|(_, valid)| !valid).for_each(|(place, _)| *place = no_text);
                }
                texts.push(Snippet::default());
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

    /// Whether these cells and those of the next column are choices that can say little together.
    pub(super) fn goes_with(&self, next: &Self) -> bool {
        let (Self::Choices(places, texts), Self::Choices(_, next_texts)) = (self, next) else { return false };
        texts.len() * next_texts.len() <= MOST_CHOICES.min(places.len())
    }

    /// Takes the cells of the next column, where these [go with](Self::goes_with) them.
    pub(super) fn join(&mut self, next: Self) {
        let (Self::Choices(places, texts), Self::Choices(next_places, next_texts)) = (self, next) else { return };
        let count = next_texts.len();
        let mut is_said = vec![false; texts.len() * count];
        for (place, next) in places.iter_mut().zip(next_places) {
            *place = *place * count + next;
            is_said[*place] = true;
        }
        // Most of what they could say together they do not.
        let text = |place: usize| match is_said[place] {
            true => {
                Snippet::of(&[texts[place / count].as_bytes(), b",", next_texts[place % count].as_bytes()].concat())
            }
            false => Snippet::default(),
        };
        *texts = (0..is_said.len()).map(text).collect();
    }

    /// Appends a cell.
    #[inline]
    pub(super) fn push(&self, out: &mut Vec<u8>, row: usize) -> Result<(), ArrowError> {
        match self {
            Self::Texts(texts, guard) if texts.is_valid(row) => push_text(out, texts.value(row), *guard),
            Self::Choices(places, texts) => texts[places[row]].push(out),
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

pub(super) fn push_text(out: &mut Vec<u8>, text: &str, guard: Guard) {
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
