//! A column as a dictionary of its distinct values, in order of first appearance, and an index for each row or run.

use arrow::array::{Array, ArrowPrimitiveType, AsArray, BooleanBufferBuilder, PrimitiveArray, downcast_integer_array};
use arrow::buffer::BooleanBuffer;
use arrow::datatypes::{
    ArrowNativeType, DataType, Float64Type, Int8Type, Int16Type, Int32Type, Int64Type, TimeUnit,
    TimestampMicrosecondType,
};
use parquet::file::statistics::Statistics;

use super::distinct::{DistinctNumbers, DistinctTexts, MAX_BYTES};
use super::rle::bit_width;
use crate::{Boundaries, Column};

/// Takes the place of an index for null; no dictionary has so many values.
pub(super) const NULL: u32 = u32::MAX;

/// Indices into the dictionary, or [`NULL`].
#[derive(Debug)]
pub(super) enum Indices {
    /// One per row, for a column in which most rows differ from the one before.
    PerRow(Vec<u32>),
    /// One per run, and where the runs start.
    PerRun(Vec<u32>, Boundaries),
}

impl Indices {
    /// Indices given per row, in the form that suits the column.
    fn of_rows(indices: Vec<u32>) -> Self {
        let runs = 1 + indices.windows(2).filter(|pair| pair[0] != pair[1]).count();
        if is_better_per_row(runs, indices.len()) {
            return Self::PerRow(indices);
        }
        let starts = |row: usize| row == 0 || indices[row] != indices[row - 1];
        let boundaries = Boundaries::from(BooleanBuffer::collect_bool(indices.len(), starts));
        Self::PerRun(boundaries.starts().map(|row| indices[row]).collect(), boundaries)
    }
}

/// Whether an index per row is faster to write than one per run.
fn is_better_per_row(runs: usize, rows: usize) -> bool {
    runs * 2 > rows
}

/// A column with a dictionary.
#[derive(Debug)]
pub(super) struct DictionaryColumn {
    pub(super) indices: Indices,
    /// The distinct values in Parquet's plain encoding.
    pub(super) dictionary: Vec<u8>,
    /// Number of distinct values.
    pub(super) values: u32,
    /// Number of rows that are null.
    pub(super) nulls: u64,
    pub(super) statistics: Statistics,
}

impl DictionaryColumn {
    /// The dictionary and indices of a column that comes in pieces; none if it has too many distinct values, or is of a
    /// type that is left to the `parquet` crate.
    pub(super) fn new(pieces: &[&Column]) -> Option<Self> {
        match pieces.first()?.data_type() {
            DataType::Int8 => integers::<Int8Type>(pieces, i32::from),
            DataType::Int16 => integers::<Int16Type>(pieces, i32::from),
            DataType::Int32 => integers::<Int32Type>(pieces, |value| value),
            DataType::Int64 => longs::<Int64Type>(pieces),
            DataType::Timestamp(TimeUnit::Microsecond, _) => longs::<TimestampMicrosecondType>(pieces),
            DataType::Float64 => floats(pieces),
            DataType::Utf8 => texts(pieces),
            DataType::Dictionary(_, values) if **values == DataType::Utf8 => dictionaries(pieces),
            _ => None,
        }
    }

    /// The most bytes that its dictionary and its indices take.
    pub(super) fn bytes(&self) -> usize {
        self.dictionary.len() + (self.rows() * bit_width(self.values.saturating_sub(1)) as usize).div_ceil(8)
    }

    pub(super) fn rows(&self) -> usize {
        match &self.indices {
            Indices::PerRow(indices) => indices.len(),
            Indices::PerRun(_, boundaries) => boundaries.len(),
        }
    }
}

fn integers<T: ArrowPrimitiveType>(pieces: &[&Column], widen: fn(T::Native) -> i32) -> Option<DictionaryColumn> {
    let bits = |value: T::Native| widen(value) as u32 as u64;
    let (indices, distinct) = numbers::<T>(pieces, bits, size_of::<i32>())?;
    let value = |bits: &u64| *bits as u32 as i32;
    let values = || distinct.iter().map(value);
    let statistics = Statistics::int32(values().min(), values().max(), None, Some(indices.nulls), false);
    let dictionary = values().flat_map(i32::to_le_bytes).collect();
    Some(indices.finish(dictionary, distinct.len(), statistics))
}

fn longs<T: ArrowPrimitiveType<Native = i64>>(pieces: &[&Column]) -> Option<DictionaryColumn> {
    let (indices, distinct) = numbers::<T>(pieces, |value| value as u64, size_of::<i64>())?;
    let values = || distinct.iter().map(|bits| *bits as i64);
    let statistics = Statistics::int64(values().min(), values().max(), None, Some(indices.nulls), false);
    Some(indices.finish(distinct.iter().flat_map(|bits| bits.to_le_bytes()).collect(), distinct.len(), statistics))
}

fn floats(pieces: &[&Column]) -> Option<DictionaryColumn> {
    let (indices, distinct) = numbers::<Float64Type>(pieces, f64::to_bits, size_of::<f64>())?;
    let values = || distinct.iter().map(|bits| f64::from_bits(*bits)).filter(|value| !value.is_nan());
    // The two zeros are equal and may appear in any order, so the bounds include both.
    let min = values().min_by(f64::total_cmp).map(|min| if min == 0.0 { -0.0 } else { min });
    let max = values().max_by(f64::total_cmp).map(|max| if max == 0.0 { 0.0 } else { max });
    let statistics = Statistics::double(min, max, None, Some(indices.nulls), false);
    Some(indices.finish(distinct.iter().flat_map(|bits| bits.to_le_bytes()).collect(), distinct.len(), statistics))
}

/// The indices of numbers, and the distinct ones as bits.
fn numbers<T: ArrowPrimitiveType>(
    pieces: &[&Column],
    bits: impl Fn(T::Native) -> u64,
    width: usize,
) -> Option<(IndexBuilder, Vec<u64>)> {
    let mut distinct = DistinctNumbers::with_limit(MAX_BYTES / width);
    let mut indices = IndexBuilder::new(pieces);
    for piece in pieces {
        let values: &PrimitiveArray<T> = piece.values().as_primitive();
        let values = values.values();
        indices.push(piece, |at| distinct.index(bits(values[at])))?;
    }
    Some((indices, distinct.into_numbers()))
}

fn texts(pieces: &[&Column]) -> Option<DictionaryColumn> {
    let mut distinct = DistinctTexts::default();
    let mut indices = IndexBuilder::new(pieces);
    for piece in pieces {
        let values = piece.values().as_string::<i32>();
        indices.push(piece, |at| distinct.index(values.value(at)))?;
    }
    Some(finish_texts(indices, distinct))
}

fn dictionaries(pieces: &[&Column]) -> Option<DictionaryColumn> {
    let mut distinct = DistinctTexts::default();
    let mut indices = IndexBuilder::new(pieces);
    for piece in pieces {
        let array = piece.values().as_any_dictionary();
        if array.logical_null_count() != array.null_count() {
            return None;
        }
        let values = array.values().as_string::<i32>();
        let mut known: Vec<u32> = vec![NULL; values.len()];
        let mut index = |key: usize| {
            if known[key] == NULL {
                known[key] = distinct.index(values.value(key))?;
            }
            Some(known[key])
        };
        let keys = array.keys();
        downcast_integer_array!(
            keys => indices.push(piece, |at| index(keys.values()[at].as_usize()))?,
            _ => unreachable!("the keys of a dictionary are integers")
        );
    }
    Some(finish_texts(indices, distinct))
}

fn finish_texts(indices: IndexBuilder, distinct: DistinctTexts<'_>) -> DictionaryColumn {
    let (min, max) = distinct.bounds();
    let statistics = Statistics::byte_array(min, max, None, Some(indices.nulls), false);
    let values = distinct.len();
    indices.finish(distinct.into_plain(), values, statistics)
}

/// Collects the indices of a column.
#[derive(Debug)]
struct IndexBuilder {
    /// Where the runs start; none if each row gets an index.
    boundaries: Option<BooleanBufferBuilder>,
    indices: Vec<u32>,
    nulls: u64,
}

impl IndexBuilder {
    fn new(pieces: &[&Column]) -> Self {
        let rows = pieces.iter().map(|piece| piece.len()).sum();
        // An upper bound: a piece may start in the middle of a run.
        let runs = 1 + pieces.iter().map(|piece| piece.boundaries().count()).sum::<usize>();
        if is_better_per_row(runs, rows) {
            return Self { boundaries: None, indices: Vec::with_capacity(rows), nulls: 0 };
        }
        let indices = Vec::with_capacity(runs + pieces.len());
        Self { boundaries: Some(BooleanBufferBuilder::new(rows)), indices, nulls: 0 }
    }

    /// Adds a piece of the column; `index` gives the index of a value, or none if there are too many.
    fn push(&mut self, piece: &Column, mut index: impl FnMut(usize) -> Option<u32>) -> Option<()> {
        let nulls = piece.values().nulls().filter(|nulls| nulls.null_count() > 0);
        let is_null = |at: usize| nulls.is_some_and(|nulls| nulls.is_null(at));
        self.nulls += piece.null_count() as u64;
        let mut index = |at: usize| if is_null(at) { Some(NULL) } else { index(at) };
        let mut fits = true;
        let Some(boundaries) = &mut self.boundaries else {
            self.indices.extend((0..piece.len()).map(|row| {
                index(piece.index(row)).unwrap_or_else(|| {
                    fits = false;
                    NULL
                })
            }));
            return fits.then_some(());
        };
        let from = boundaries.len();
        boundaries.append_buffer(piece.boundaries().bits());
        let mut last = self.indices.last().copied();
        piece.boundaries().starts().for_each(|row| {
            let Some(index) = index(piece.index(row)) else {
                fits = false;
                return;
            };
            // A piece may continue the last run, and a dictionary may have one text twice.
            let is_new = last != Some(index);
            if is_new {
                self.indices.push(index);
                last = Some(index);
            }
            if row == 0 || !is_new {
                boundaries.set_bit(from + row, is_new);
            }
        });
        fits.then_some(())
    }

    fn finish(self, dictionary: Vec<u8>, values: usize, statistics: Statistics) -> DictionaryColumn {
        let indices = match self.boundaries {
            Some(mut boundaries) => Indices::PerRun(self.indices, boundaries.finish().into()),
            None => Indices::of_rows(self.indices),
        };
        DictionaryColumn { indices, dictionary, values: values as u32, nulls: self.nulls, statistics }
    }
}
