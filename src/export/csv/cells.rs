//! The cells of a column as text.

use arrow::array::{Array, ArrayRef, AsArray, Float64Array, Int32Array, StringArray, TimestampMicrosecondArray};
use arrow::compute::cast;
use arrow::datatypes::{DataType, Float64Type, Int32Type, TimeUnit, TimestampMicrosecondType};
use arrow::error::ArrowError;

use super::numbers::{self, REAL, WHOLE};
use super::tape::{Tape, ahead, put};
use crate::export::moments::{self, MOMENT};
use crate::plan::Guard;
use crate::tables::Column;

/// The most that columns of closed sets may be able to say together, to be one.
const MOST_CHOICES: usize = 1 << 10;

/// The cells of a column.
pub(super) struct Cells<'a> {
    column: &'a Column,
    values: Values<'a>,
}

/// The values of a column.
enum Values<'a> {
    Texts(StringArray, Guard),
    /// Which of some texts each is, and the texts as they are written; the last of them stands for null.
    Choices(Vec<usize>, Vec<Tape>),
    /// With what follows each.
    Moments(&'a TimestampMicrosecondArray, &'static str),
    Reals(&'a Float64Array),
    Integers(&'a Int32Array),
}

impl<'a> Values<'a> {
    fn of(column: &'a ArrayRef, guard: Guard) -> Result<Self, ArrowError> {
        match column.data_type() {
            DataType::Dictionary(_, _) if column.logical_null_count() == column.null_count() => {
                let choices = column.as_any_dictionary();
                let texts = cast(choices.values(), &DataType::Utf8)?;
                let written = |text: Option<&str>| {
                    let text = text.unwrap_or_default();
                    Tape::of(room(text.len()), |out| write_text(out, 0, text, guard))
                };
                let mut texts: Vec<Tape> = texts.as_string::<i32>().iter().map(written).collect();
                let mut places = choices.normalized_keys();
                if let Some(nulls) = column.nulls() {
                    let no_text = texts.len();
                    places.iter_mut().zip(nulls).filter(|(_, valid)| !valid).for_each(|(place, _)| *place = no_text);
                }
                texts.push(Tape::default());
                Ok(Self::Choices(places, texts))
            }
            DataType::Timestamp(TimeUnit::Microsecond, zone) => {
                let after = if zone.is_some() { "Z" } else { "" };
                Ok(Self::Moments(column.as_primitive::<TimestampMicrosecondType>(), after))
            }
            DataType::Float64 => Ok(Self::Reals(column.as_primitive::<Float64Type>())),
            DataType::Int32 => Ok(Self::Integers(column.as_primitive::<Int32Type>())),
            // Numbers are no formulas, whatever sign they begin with.
            data_type if data_type.is_numeric() => Self::texts(column, Guard::None),
            _ => Self::texts(column, guard),
        }
    }

    fn texts(column: &ArrayRef, guard: Guard) -> Result<Self, ArrowError> {
        Ok(Self::Texts(cast(column, &DataType::Utf8)?.as_string::<i32>().clone(), guard))
    }

    /// The most bytes that one of them takes.
    fn most(&self) -> usize {
        match self {
            Self::Texts(texts, _) => room(texts.offsets().lengths().max().unwrap_or_default()),
            Self::Choices(_, texts) => texts.iter().map(Tape::room).max().unwrap_or_default(),
            Self::Moments(_, after) => MOMENT + after.len(),
            Self::Reals(_) => REAL,
            Self::Integers(_) => WHOLE,
        }
    }

    /// Writes a value behind what ends there, and says where it ends.
    #[inline(always)]
    fn write(&self, out: &mut [u8], end: usize, place: usize) -> usize {
        match self {
            Self::Texts(texts, guard) if texts.is_valid(place) => write_text(out, end, texts.value(place), *guard),
            Self::Choices(places, texts) => texts[places[place]].copy(out, end),
            Self::Moments(moments, after) if moments.is_valid(place) => {
                let end = end + moments::write(ahead(out, end), moments.value(place));
                put(out, end, after.as_bytes())
            }
            Self::Reals(reals) if reals.is_valid(place) => {
                end + numbers::write_real(ahead(out, end), reals.value(place))
            }
            Self::Integers(integers) if integers.is_valid(place) => {
                end + numbers::write_whole(ahead(out, end), integers.value(place))
            }
            Self::Texts(..) | Self::Moments(..) | Self::Reals(_) | Self::Integers(_) => end,
        }
    }
}

impl<'a> Cells<'a> {
    pub(super) fn of(column: &'a Column, guard: Guard) -> Result<Self, ArrowError> {
        Ok(Self { column, values: Values::of(column.values(), guard)? })
    }

    /// Whether these cells and those of the next column are choices that can say little together.
    pub(super) fn goes_with(&self, next: &Self) -> bool {
        let (Values::Choices(places, texts), Values::Choices(_, next_texts)) = (&self.values, &next.values) else {
            return false;
        };
        // What neighbours share is written rarely.
        !self.column.is_shared()
            && !next.column.is_shared()
            && texts.len() * next_texts.len() <= MOST_CHOICES.min(places.len())
    }

    /// Takes the cells of the next column, where these [go with](Self::goes_with) them.
    pub(super) fn join(&mut self, next: Self) {
        let (Values::Choices(places, texts), Values::Choices(next_places, next_texts)) =
            (&mut self.values, next.values)
        else {
            return;
        };
        let count = next_texts.len();
        let mut is_said = vec![false; texts.len() * count];
        for (place, next) in places.iter_mut().zip(next_places) {
            *place = *place * count + next;
            is_said[*place] = true;
        }
        // Most of what they could say together they do not.
        let text = |place: usize| {
            if !is_said[place] {
                return Tape::default();
            }
            let (one, next) = (&texts[place / count], &next_texts[place % count]);
            Tape::of(one.room() + 1 + next.room(), |out| {
                let end = one.copy(out, 0);
                let end = put(out, end, b",");
                next.copy(out, end)
            })
        };
        *texts = (0..is_said.len()).map(text).collect();
    }

    /// The most bytes that one of them takes.
    pub(super) fn most(&self) -> usize {
        self.values.most()
    }

    /// Writes a cell behind what ends there, and says where it ends.
    #[inline(always)]
    pub(super) fn write(&self, out: &mut [u8], end: usize, row: usize) -> usize {
        self.values.write(out, end, self.column.place(row))
    }
}

/// The most bytes that a text of some length takes: each may be a quote, and is doubled then.
pub(super) fn room(length: usize) -> usize {
    2 * length + 3
}

/// Writes a text, in quotes where it needs them.
pub(super) fn write_text(out: &mut [u8], end: usize, text: &str, guard: Guard) -> usize {
    let is_formula = guard == Guard::Formulas && text.starts_with(['=', '+', '-', '@', '\t', '\r']);
    let guarded: &[u8] = if is_formula { b"'" } else { b"" };
    if !text.is_empty() && !text.contains([',', '"', '\r', '\n']) {
        let end = put(out, end, guarded);
        return put(out, end, text.as_bytes());
    }
    let end = put(out, end, b"\"");
    let mut end = put(out, end, guarded);
    for (place, part) in text.split('"').enumerate() {
        end = put(out, end, if place == 0 { b"" } else { b"\"\"" });
        end = put(out, end, part.as_bytes());
    }
    put(out, end, b"\"")
}
