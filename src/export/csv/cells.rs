//! The cells of a column as text.

use arrow::array::{Array, ArrayRef, AsArray, Float64Array, Int32Array, StringArray, TimestampMicrosecondArray};
use arrow::buffer::NullBuffer;
use arrow::compute::cast;
use arrow::datatypes::{
    ArrowDictionaryKeyType, ArrowNativeType, DataType, Float64Type, Int8Type, Int32Type, TimeUnit,
    TimestampMicrosecondType,
};
use arrow::error::ArrowError;

use super::numbers::{self, REAL, WHOLE};
use super::shares::{self, Shares};
use super::tape::{self, Tape, ahead, put};
use crate::columns::Column;
use crate::export::moments::{self, MOMENT};
use crate::plan::Guard;

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
    Choices(Choices),
    /// With what follows each.
    Moments(&'a TimestampMicrosecondArray, &'static str),
    Reals(&'a Float64Array),
    Integers(&'a Int32Array),
}

/// Cells that say one of a few texts each.
pub(super) struct Choices {
    /// Which of the texts each is.
    places: Vec<u32>,
    /// The texts with the comma behind them; the last of them stands for null.
    texts: Vec<Tape>,
}

impl<'a> Values<'a> {
    fn of(column: &'a ArrayRef, guard: Guard) -> Result<Self, ArrowError> {
        match column.data_type() {
            DataType::Dictionary(key, _) if column.logical_null_count() == column.null_count() => match **key {
                DataType::Int8 => Ok(Self::Choices(Choices::of::<Int8Type>(column, guard)?)),
                DataType::Int32 => Ok(Self::Choices(Choices::of::<Int32Type>(column, guard)?)),
                _ => Self::texts(column, guard),
            },
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

    /// The most bytes that one of them takes, with the comma.
    fn most(&self) -> usize {
        1 + match self {
            Self::Texts(texts, _) => room(texts.offsets().lengths().max().unwrap_or_default()),
            Self::Choices(choices) => choices.most(),
            Self::Moments(_, after) => MOMENT + after.len(),
            Self::Reals(_) => REAL,
            Self::Integers(_) => WHOLE,
        }
    }
}

impl<'a> Cells<'a> {
    pub(super) fn of(column: &'a Column, guard: Guard) -> Result<Self, ArrowError> {
        Ok(Self { column, values: Values::of(column.values(), guard)? })
    }

    /// Whether these cells and those of the next column are choices that can say little together.
    pub(super) fn goes_with(&self, next: &Self) -> bool {
        let are_each_rows = !self.column.is_shared() && !next.column.is_shared();
        match (&self.values, &next.values) {
            (Values::Choices(one), Values::Choices(next)) => {
                are_each_rows && one.texts.len() * next.texts.len() <= MOST_CHOICES.min(one.places.len())
            }
            _ => false,
        }
    }

    /// Takes the cells of the next column, where these [go with](Self::goes_with) them.
    pub(super) fn join(&mut self, next: Self) {
        if let (Values::Choices(one), Values::Choices(next)) = (&mut self.values, next.values) {
            one.join(&next);
        }
    }

    /// The most bytes that one of them takes, with the comma.
    pub(super) fn most(&self) -> usize {
        self.values.most()
    }

    /// Writes the cell of a row and a comma behind what ends there, and says where they end.
    pub(super) fn write(&self, out: &mut [u8], end: usize, row: usize) -> usize {
        let place = self.column.index(row);
        match &self.values {
            Values::Texts(texts, guard) => write_cell(texts.nulls(), out, end, place, text_of(texts, *guard)),
            Values::Choices(choices) => choices.copy(out, end, place),
            Values::Moments(moments, after) => write_cell(moments.nulls(), out, end, place, moment_of(moments, after)),
            Values::Reals(reals) => write_cell(reals.nulls(), out, end, place, real_of(reals)),
            Values::Integers(integers) => write_cell(integers.nulls(), out, end, place, integer_of(integers)),
        }
    }

    /// The cells of all rows.
    pub(super) fn written(self) -> Written {
        let (column, most) = (self.column, self.most());
        match self.values {
            Values::Texts(texts, guard) => written(column, texts.nulls(), most, text_of(&texts, guard)),
            Values::Choices(choices) if !column.is_shared() => Written::Choices(choices),
            Values::Choices(choices) => {
                lined_up(column.len(), most, |out, row| choices.copy(out, 0, column.index(row)))
            }
            Values::Moments(moments, after) => written(column, moments.nulls(), most, moment_of(moments, after)),
            Values::Reals(reals) => match shares(column, reals) {
                Some(shares) => Written::Shares(shares),
                None => written(column, reals.nulls(), most, real_of(reals)),
            },
            Values::Integers(integers) => written(column, integers.nulls(), most, integer_of(integers)),
        }
    }
}

impl Choices {
    fn of<K: ArrowDictionaryKeyType>(column: &ArrayRef, guard: Guard) -> Result<Self, ArrowError> {
        let choices = column.as_dictionary::<K>();
        let written = |text: Option<&str>| {
            let text = text.unwrap_or_default();
            Tape::of(room(text.len()) + 1, |out| {
                let end = write_text(out, 0, text, guard);
                put(out, end, b",")
            })
        };
        let texts = cast(choices.values(), &DataType::Utf8)?;
        let mut texts: Vec<Tape> = texts.as_string::<i32>().iter().map(written).collect();
        let mut places: Vec<u32> = choices.keys().values().iter().map(|key| key.as_usize() as u32).collect();
        if let Some(nulls) = column.nulls() {
            let no_text = texts.len() as u32;
            places.iter_mut().zip(nulls).filter(|(_, valid)| !valid).for_each(|(place, _)| *place = no_text);
        }
        texts.push(Tape::of(1, |out| put(out, 0, b",")));
        Ok(Self { places, texts })
    }

    /// The most bytes that one of them takes.
    fn most(&self) -> usize {
        self.texts.iter().map(Tape::room).max().unwrap_or_default()
    }

    fn join(&mut self, next: &Self) {
        let Self { places, texts } = self;
        let count = next.texts.len();
        let mut is_said = vec![false; texts.len() * count];
        for (place, next) in places.iter_mut().zip(&next.places) {
            *place = *place * count as u32 + next;
            is_said[*place as usize] = true;
        }
        // Most of what they could say together they do not.
        let text = |place: usize| {
            if !is_said[place] {
                return Tape::default();
            }
            let (one, next) = (&texts[place / count], &next.texts[place % count]);
            Tape::of(one.room() + next.room(), |out| {
                let end = one.copy(out, 0);
                next.copy(out, end)
            })
        };
        *texts = (0..is_said.len()).map(text).collect();
    }

    #[inline(always)]
    fn copy(&self, out: &mut [u8], end: usize, place: usize) -> usize {
        self.texts[self.places[place] as usize].copy(out, end)
    }
}

/// The cells of all rows, with their commas.
pub(super) enum Written {
    Choices(Choices),
    Shares(Shares),
    /// One behind the other, and where each ends.
    Each(Tape, Vec<usize>),
}

impl Written {
    /// The most bytes that a copy of one needs room for.
    pub(super) fn most(&self) -> usize {
        match self {
            Self::Choices(choices) => choices.most(),
            Self::Shares(_) => shares::MOST,
            Self::Each(_, ends) => {
                let starts = std::iter::once(&0).chain(ends);
                starts.zip(ends).map(|(start, end)| tape::room(end - start)).max().unwrap_or_default()
            }
        }
    }

    /// Copies the cell of a row behind what ends there, and says where it ends.
    #[inline(always)]
    pub(super) fn copy(&self, out: &mut [u8], end: usize, row: usize) -> usize {
        match self {
            Self::Choices(choices) => choices.copy(out, end, row),
            Self::Shares(shares) => shares.copy(out, end, row),
            Self::Each(text, ends) => {
                let start = if row == 0 { 0 } else { ends[row - 1] };
                text.copy_part(start..ends[row], out, end)
            }
        }
    }
}

/// The cells of a column of real numbers, where each row has one of its own and that is a share.
fn shares(column: &Column, reals: &Float64Array) -> Option<Shares> {
    (!column.is_shared() && reals.null_count() == 0).then(|| Shares::of(reals.values())).flatten()
}

/// The cells of a column, by what writes a value that is none of its nulls.
#[inline(always)]
fn written(
    column: &Column,
    nulls: Option<&NullBuffer>,
    most: usize,
    write: impl Fn(&mut [u8], usize, usize) -> usize,
) -> Written {
    lined_up(column.len(), most, |out, row| write_cell(nulls, out, 0, column.index(row), &write))
}

#[inline(always)]
fn lined_up(rows: usize, most: usize, mut write: impl FnMut(&mut [u8], usize) -> usize) -> Written {
    let (mut text, mut ends) = (Tape::default(), Vec::with_capacity(rows));
    for row in 0..rows {
        text.append(most, |out| write(out, row));
        ends.push(text.as_bytes().len());
    }
    Written::Each(text, ends)
}

/// Writes a cell and a comma, by what writes a value.
#[inline(always)]
fn write_cell(
    nulls: Option<&NullBuffer>,
    out: &mut [u8],
    end: usize,
    place: usize,
    write: impl Fn(&mut [u8], usize, usize) -> usize,
) -> usize {
    let is_valid = nulls.is_none_or(|nulls| nulls.is_valid(place));
    let end = if is_valid { write(out, end, place) } else { end };
    out[end] = b',';
    end + 1
}

fn text_of(texts: &StringArray, guard: Guard) -> impl Fn(&mut [u8], usize, usize) -> usize {
    move |out, end, place| write_text(out, end, texts.value(place), guard)
}

fn moment_of(moments: &TimestampMicrosecondArray, after: &'static str) -> impl Fn(&mut [u8], usize, usize) -> usize {
    move |out, end, place| {
        let end = end + moments::write(ahead(out, end), moments.value(place));
        put(out, end, after.as_bytes())
    }
}

fn real_of(reals: &Float64Array) -> impl Fn(&mut [u8], usize, usize) -> usize {
    move |out, end, place| end + numbers::write_real(ahead(out, end), reals.value(place))
}

fn integer_of(integers: &Int32Array) -> impl Fn(&mut [u8], usize, usize) -> usize {
    move |out, end, place| end + numbers::write_whole(ahead(out, end), integers.value(place))
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
