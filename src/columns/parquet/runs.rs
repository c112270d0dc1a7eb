//! A column as runs of equal values, and a dictionary of its distinct ones in the order in which they first stand.

use std::collections::HashMap;

use arrow::array::{Array, ArrowPrimitiveType, AsArray, BooleanBufferBuilder, PrimitiveArray};
use arrow::buffer::BooleanBuffer;
use arrow::datatypes::{
    ArrowNativeType, DataType, Float64Type, Int8Type, Int16Type, Int32Type, Int64Type, TimeUnit,
    TimestampMicrosecondType,
};
use parquet::data_type::ByteArray;
use parquet::file::statistics::Statistics;

use super::distinct::Numbers;
use super::rle::bits;
use crate::columns::{Column, Turns};

/// The bytes that a dictionary may take: what others write at most, and readers keep at hand.
const MOST_BYTES: usize = 1 << 20;

/// Stands for null, where a place in the dictionary is expected: none has so many values.
pub(super) const NULL: u32 = u32::MAX;

/// For each value of a column its place in the dictionary, or [`NULL`].
#[derive(Debug)]
pub(super) enum Places {
    /// Of each row: most differ from the one before.
    OfRows(Vec<u32>),
    /// Of each run, and where the runs begin.
    OfRuns(Vec<u32>, Turns),
}

impl Places {
    /// Those of rows, in the form that suits the column.
    fn of_rows(codes: Vec<u32>) -> Self {
        let runs = 1 + codes.windows(2).filter(|pair| pair[0] != pair[1]).count();
        if is_of_rows(runs, codes.len()) {
            return Self::OfRows(codes);
        }
        let turns: Turns =
            BooleanBuffer::collect_bool(codes.len(), |row| row == 0 || codes[row] != codes[row - 1]).into();
        Self::OfRuns(turns.starts().map(|row| codes[row]).collect(), turns)
    }
}

/// Whether a place for each row is quicker written than one for each run.
fn is_of_rows(runs: usize, rows: usize) -> bool {
    runs * 2 > rows
}

/// A column that stands in runs.
#[derive(Debug)]
pub(super) struct Runs {
    pub(super) places: Places,
    /// The distinct values, as Parquet writes them plainly.
    pub(super) dictionary: Vec<u8>,
    /// How many they are.
    pub(super) values: u32,
    /// How many rows are null.
    pub(super) nulls: u64,
    pub(super) statistics: Statistics,
}

impl Runs {
    /// The runs of a column that came in pieces; none where its values are too many, or of a type that is left to
    /// others.
    pub(super) fn of(pieces: &[&Column]) -> Option<Self> {
        match pieces.first()?.data_type() {
            DataType::Int8 => of_integers::<Int8Type>(pieces, i32::from),
            DataType::Int16 => of_integers::<Int16Type>(pieces, i32::from),
            DataType::Int32 => of_integers::<Int32Type>(pieces, |value| value),
            DataType::Int64 => of_longs::<Int64Type>(pieces),
            DataType::Timestamp(TimeUnit::Microsecond, _) => of_longs::<TimestampMicrosecondType>(pieces),
            DataType::Float64 => of_floats(pieces),
            DataType::Utf8 => of_texts(pieces),
            DataType::Dictionary(_, values) if **values == DataType::Utf8 => of_dictionaries(pieces),
            _ => None,
        }
    }

    /// The bytes that its dictionary and its places take, at most.
    pub(super) fn bytes(&self) -> usize {
        self.dictionary.len() + (self.rows() * bits(self.values.saturating_sub(1)) as usize).div_ceil(8)
    }

    pub(super) fn rows(&self) -> usize {
        match &self.places {
            Places::OfRows(codes) => codes.len(),
            Places::OfRuns(_, turns) => turns.len(),
        }
    }
}

fn of_integers<T: ArrowPrimitiveType>(pieces: &[&Column], widened: fn(T::Native) -> i32) -> Option<Runs> {
    let distinct = |value: T::Native| widened(value) as u32 as u64;
    let (gathered, keys) = coded::<T>(pieces, distinct, size_of::<i32>())?;
    let value = |key: &u64| *key as u32 as i32;
    let values = || keys.iter().map(value);
    let statistics = Statistics::int32(values().min(), values().max(), None, Some(gathered.nulls), false);
    Some(gathered.finish(keys.iter().flat_map(|key| value(key).to_le_bytes()).collect(), keys.len(), statistics))
}

fn of_longs<T: ArrowPrimitiveType<Native = i64>>(pieces: &[&Column]) -> Option<Runs> {
    let (gathered, keys) = coded::<T>(pieces, |value| value as u64, size_of::<i64>())?;
    let values = || keys.iter().map(|key| *key as i64);
    let statistics = Statistics::int64(values().min(), values().max(), None, Some(gathered.nulls), false);
    Some(gathered.finish(keys.iter().flat_map(|key| key.to_le_bytes()).collect(), keys.len(), statistics))
}

fn of_floats(pieces: &[&Column]) -> Option<Runs> {
    let (gathered, keys) = coded::<Float64Type>(pieces, f64::to_bits, size_of::<f64>())?;
    let values = || keys.iter().map(|key| f64::from_bits(*key)).filter(|value| !value.is_nan());
    // The two zeros are equal and stand in any order: the bounds hold both.
    let least = values().min_by(f64::total_cmp).map(|least| if least == 0.0 { -0.0 } else { least });
    let largest = values().max_by(f64::total_cmp).map(|largest| if largest == 0.0 { 0.0 } else { largest });
    let statistics = Statistics::double(least, largest, None, Some(gathered.nulls), false);
    Some(gathered.finish(keys.iter().flat_map(|key| key.to_le_bytes()).collect(), keys.len(), statistics))
}

/// Runs of numbers, and the distinct ones, as bits.
fn coded<T: ArrowPrimitiveType>(
    pieces: &[&Column],
    distinct: impl Fn(T::Native) -> u64,
    width: usize,
) -> Option<(Gathered, Vec<u64>)> {
    let mut numbers = Numbers::with_most(MOST_BYTES / width);
    let mut gathered = Gathered::with_rows_of(pieces);
    for piece in pieces {
        let values: &PrimitiveArray<T> = piece.values().as_primitive();
        let values = values.values();
        gathered.push(piece, |place| numbers.code(distinct(values[place])))?;
    }
    Some((gathered, numbers.into_keys()))
}

fn of_texts(pieces: &[&Column]) -> Option<Runs> {
    let mut texts = Texts::default();
    let mut gathered = Gathered::with_rows_of(pieces);
    for piece in pieces {
        let values = piece.values().as_string::<i32>();
        gathered.push(piece, |place| texts.code(values.value(place)))?;
    }
    Some(texts.finish(gathered))
}

fn of_dictionaries(pieces: &[&Column]) -> Option<Runs> {
    let mut texts = Texts::default();
    let mut gathered = Gathered::with_rows_of(pieces);
    for piece in pieces {
        let array = piece.values().as_any_dictionary();
        if array.logical_null_count() != array.null_count() {
            return None;
        }
        let values = array.values().as_string::<i32>();
        let mut codes: Vec<u32> = vec![NULL; values.len()];
        let mut code = |key: usize| {
            if codes[key] == NULL {
                codes[key] = texts.code(values.value(key))?;
            }
            Some(codes[key])
        };
        match array.keys().data_type() {
            DataType::Int8 => {
                let keys = array.keys().as_primitive::<Int8Type>().values();
                gathered.push(piece, |place| code(keys[place].as_usize()))
            }
            DataType::Int16 => {
                let keys = array.keys().as_primitive::<Int16Type>().values();
                gathered.push(piece, |place| code(keys[place].as_usize()))
            }
            DataType::Int32 => {
                let keys = array.keys().as_primitive::<Int32Type>().values();
                gathered.push(piece, |place| code(keys[place].as_usize()))
            }
            _ => None,
        }?;
    }
    Some(texts.finish(gathered))
}

/// Runs that are being gathered.
#[derive(Debug)]
struct Gathered {
    /// Where the runs begin; none where each row has a place.
    turns: Option<BooleanBufferBuilder>,
    codes: Vec<u32>,
    nulls: u64,
}

impl Gathered {
    fn with_rows_of(pieces: &[&Column]) -> Self {
        let rows = pieces.iter().map(|piece| piece.len()).sum();
        // There are no more runs than that, and fewer where pieces begin in the middle of one.
        let turns = 1 + pieces.iter().map(|piece| piece.turns().count()).sum::<usize>();
        if is_of_rows(turns, rows) {
            return Self { turns: None, codes: Vec::with_capacity(rows), nulls: 0 };
        }
        let codes = Vec::with_capacity(turns + pieces.len());
        Self { turns: Some(BooleanBufferBuilder::new(rows)), codes, nulls: 0 }
    }

    /// Adds a piece of the column, by the codes of its values; none where one of them has none.
    fn push(&mut self, piece: &Column, mut code: impl FnMut(usize) -> Option<u32>) -> Option<()> {
        let nulls = piece.values().nulls().filter(|nulls| nulls.null_count() > 0);
        let is_null = |place: usize| nulls.is_some_and(|nulls| nulls.is_null(place));
        self.nulls += piece.null_count() as u64;
        let mut code = |place: usize| if is_null(place) { Some(NULL) } else { code(place) };
        let Some(known) = &mut self.turns else {
            let mut are_few = true;
            self.codes.extend((0..piece.len()).map(|row| {
                code(piece.place(row)).unwrap_or_else(|| {
                    are_few = false;
                    NULL
                })
            }));
            return are_few.then_some(());
        };
        let from = known.len();
        known.append_buffer(piece.turns().bits());
        let mut last = self.codes.last().copied();
        let mut are_few = true;
        piece.turns().starts().for_each(|row| {
            let Some(code) = code(piece.place(row)) else {
                are_few = false;
                return;
            };
            // A piece may go on with the run before it, and a dictionary may hold a text twice.
            let is_new = last != Some(code);
            if is_new {
                self.codes.push(code);
                last = Some(code);
            }
            if row == 0 || !is_new {
                known.set_bit(from + row, is_new);
            }
        });
        are_few.then_some(())
    }

    fn finish(self, dictionary: Vec<u8>, values: usize, statistics: Statistics) -> Runs {
        let places = match self.turns {
            Some(mut turns) => Places::OfRuns(self.codes, turns.finish().into()),
            None => Places::of_rows(self.codes),
        };
        Runs { places, dictionary, values: values as u32, nulls: self.nulls, statistics }
    }
}

/// Distinct texts, each under its place in the order in which they came.
#[derive(Debug, Default)]
struct Texts<'a> {
    codes: HashMap<&'a str, u32>,
    plain: Vec<u8>,
    least: Option<&'a str>,
    largest: Option<&'a str>,
}

impl<'a> Texts<'a> {
    /// The place of a text; none where there are too many.
    fn code(&mut self, text: &'a str) -> Option<u32> {
        if let Some(&code) = self.codes.get(text) {
            return Some(code);
        }
        if self.plain.len() + text.len() > MOST_BYTES {
            return None;
        }
        self.plain.extend_from_slice(&(text.len() as u32).to_le_bytes());
        self.plain.extend_from_slice(text.as_bytes());
        // Texts are ordered by their bytes, in Parquet as in Rust.
        self.least = Some(self.least.map_or(text, |least| least.min(text)));
        self.largest = Some(self.largest.map_or(text, |largest| largest.max(text)));
        let code = self.codes.len() as u32;
        self.codes.insert(text, code);
        Some(code)
    }

    fn finish(self, gathered: Gathered) -> Runs {
        let bytes = |text: Option<&str>| text.map(ByteArray::from);
        let (least, largest) = (bytes(self.least), bytes(self.largest));
        let statistics = Statistics::byte_array(least, largest, None, Some(gathered.nulls), false);
        gathered.finish(self.plain, self.codes.len(), statistics)
    }
}
