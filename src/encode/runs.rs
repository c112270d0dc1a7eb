//! A column as runs of equal values, and a dictionary of its distinct ones in the order in which they first stand.

use std::collections::HashMap;

use arrow::array::{Array, ArrayRef, ArrowPrimitiveType, AsArray, PrimitiveArray, StringArray};
use arrow::buffer::NullBuffer;
use arrow::datatypes::{
    ArrowNativeType, DataType, Float64Type, Int8Type, Int16Type, Int32Type, Int64Type, TimeUnit,
    TimestampMicrosecondType,
};
use parquet::data_type::ByteArray;
use parquet::file::statistics::Statistics;

/// The bytes that a dictionary may take: what others write at most, and readers keep at hand.
const MOST_BYTES: usize = 1 << 20;

/// Rows that hold the same.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Run {
    /// The place of their value in the dictionary; none for null.
    pub(super) code: Option<u32>,
    pub(super) rows: u32,
}

/// A column that stands in runs.
#[derive(Debug)]
pub(super) struct Runs {
    pub(super) runs: Vec<Run>,
    /// The distinct values, as Parquet writes them plainly.
    pub(super) dictionary: Vec<u8>,
    /// How many they are.
    pub(super) values: u32,
    pub(super) rows: usize,
    pub(super) statistics: Statistics,
}

impl Runs {
    /// The runs of a column; none where its values are too many, or of a type that is left to others.
    pub(super) fn of(column: &ArrayRef) -> Option<Self> {
        match column.data_type() {
            DataType::Int8 => of_integers(column.as_primitive::<Int8Type>(), i32::from),
            DataType::Int16 => of_integers(column.as_primitive::<Int16Type>(), i32::from),
            DataType::Int32 => of_integers(column.as_primitive::<Int32Type>(), |value| value),
            DataType::Int64 => of_longs(column.as_primitive::<Int64Type>()),
            DataType::Timestamp(TimeUnit::Microsecond, _) => {
                of_longs(column.as_primitive::<TimestampMicrosecondType>())
            }
            DataType::Float64 => of_floats(column.as_primitive::<Float64Type>()),
            DataType::Utf8 => of_texts(column.as_string::<i32>()),
            DataType::Dictionary(_, values) if **values == DataType::Utf8 => of_dictionary(column),
            _ => None,
        }
    }
}

fn of_integers<T: ArrowPrimitiveType>(array: &PrimitiveArray<T>, widened: fn(T::Native) -> i32) -> Option<Runs> {
    let distinct = |value: T::Native| widened(value) as u32 as u64;
    let (runs, keys) = coded(array, distinct, size_of::<i32>())?;
    let value = |key: &u64| *key as u32 as i32;
    let statistics = |nulls| {
        let values = || keys.iter().map(value);
        Statistics::int32(values().min(), values().max(), None, Some(nulls), false)
    };
    Some(finished(runs, keys.iter().flat_map(|key| value(key).to_le_bytes()).collect(), keys.len(), statistics))
}

fn of_longs<T: ArrowPrimitiveType<Native = i64>>(array: &PrimitiveArray<T>) -> Option<Runs> {
    let (runs, keys) = coded(array, |value| value as u64, size_of::<i64>())?;
    let statistics = |nulls| {
        let values = || keys.iter().map(|key| *key as i64);
        Statistics::int64(values().min(), values().max(), None, Some(nulls), false)
    };
    Some(finished(runs, keys.iter().flat_map(|key| key.to_le_bytes()).collect(), keys.len(), statistics))
}

fn of_floats(array: &PrimitiveArray<Float64Type>) -> Option<Runs> {
    let (runs, keys) = coded(array, f64::to_bits, size_of::<f64>())?;
    let statistics = |nulls| {
        let values = || keys.iter().map(|key| f64::from_bits(*key)).filter(|value| !value.is_nan());
        // The two zeros are equal and stand in any order: the bounds hold both.
        let least = values().min_by(f64::total_cmp).map(|least| if least == 0.0 { -0.0 } else { least });
        let largest = values().max_by(f64::total_cmp).map(|largest| if largest == 0.0 { 0.0 } else { largest });
        Statistics::double(least, largest, None, Some(nulls), false)
    };
    Some(finished(runs, keys.iter().flat_map(|key| key.to_le_bytes()).collect(), keys.len(), statistics))
}

fn of_texts(array: &StringArray) -> Option<Runs> {
    let mut texts = Texts::default();
    let mut runs = Lengths::with_capacity(array.len().min(1 << 12));
    let mut last: Option<&str> = None;
    for row in 0..array.len() {
        if array.is_null(row) {
            runs.push(None);
            continue;
        }
        let text = array.value(row);
        if last == Some(text) && runs.is_value() {
            runs.again();
            continue;
        }
        runs.push(Some(texts.code(text)?));
        last = Some(text);
    }
    Some(texts.finished(runs))
}

fn of_dictionary(column: &ArrayRef) -> Option<Runs> {
    let array = column.as_any_dictionary();
    if array.logical_null_count() != array.null_count() {
        return None;
    }
    let values = array.values().as_string::<i32>();
    let mut texts = Texts::default();
    let mut codes: Vec<Option<u32>> = vec![None; values.len()];
    let mut code = |place: usize| match codes[place] {
        Some(code) => Some(code),
        None => {
            codes[place] = Some(texts.code(values.value(place))?);
            codes[place]
        }
    };
    let runs = match array.keys().data_type() {
        DataType::Int8 => of_places(array.keys().as_primitive::<Int8Type>(), &mut code),
        DataType::Int16 => of_places(array.keys().as_primitive::<Int16Type>(), &mut code),
        DataType::Int32 => of_places(array.keys().as_primitive::<Int32Type>(), &mut code),
        _ => None,
    }?;
    Some(texts.finished(runs))
}

fn of_places<T: ArrowPrimitiveType>(
    places: &PrimitiveArray<T>,
    code: &mut impl FnMut(usize) -> Option<u32>,
) -> Option<Lengths> {
    let mut runs = Lengths::with_capacity(places.len());
    let mut last = None;
    for (row, &place) in places.values().iter().enumerate() {
        if places.is_null(row) {
            runs.push(None);
        } else if last == Some(place) && runs.is_value() {
            runs.again();
        } else {
            runs.push(Some(code(place.as_usize())?));
            last = Some(place);
        }
    }
    Some(runs)
}

/// Runs of numbers, and the distinct ones, as bits.
fn coded<T: ArrowPrimitiveType>(
    array: &PrimitiveArray<T>,
    distinct: impl Fn(T::Native) -> u64,
    width: usize,
) -> Option<(Lengths, Vec<u64>)> {
    let mut numbers = Numbers::with_most(MOST_BYTES / width);
    let mut runs = Lengths::with_capacity(array.len());
    let values = array.values().iter().map(|&value| distinct(value));
    match array.nulls().filter(|nulls| nulls.null_count() > 0) {
        None => {
            let mut last = None;
            for key in values {
                if last == Some(key) {
                    runs.again();
                } else {
                    runs.push(Some(numbers.code(key)?));
                    last = Some(key);
                }
            }
        }
        Some(nulls) => coded_with_nulls(values, nulls, &mut numbers, &mut runs)?,
    }
    Some((runs, numbers.keys))
}

fn coded_with_nulls(
    values: impl Iterator<Item = u64>,
    nulls: &NullBuffer,
    numbers: &mut Numbers,
    runs: &mut Lengths,
) -> Option<()> {
    let mut last = None;
    for (key, is_valid) in values.zip(nulls.iter()) {
        if !is_valid {
            runs.push(None);
        } else if last == Some(key) && runs.is_value() {
            runs.again();
        } else {
            runs.push(Some(numbers.code(key)?));
            last = Some(key);
        }
    }
    Some(())
}

fn finished(runs: Lengths, dictionary: Vec<u8>, values: usize, statistics: impl Fn(u64) -> Statistics) -> Runs {
    let nulls = runs.0.iter().filter(|run| run.code.is_none()).map(|run| u64::from(run.rows)).sum();
    let rows = runs.0.iter().map(|run| run.rows as usize).sum();
    Runs { runs: runs.0, dictionary, values: values as u32, rows, statistics: statistics(nulls) }
}

/// Runs that are being gathered.
#[derive(Debug)]
struct Lengths(Vec<Run>);

impl Lengths {
    fn with_capacity(runs: usize) -> Self {
        Self(Vec::with_capacity(runs))
    }

    /// One row more.
    fn push(&mut self, code: Option<u32>) {
        match self.0.last_mut() {
            Some(last) if last.code == code => last.rows += 1,
            _ => self.0.push(Run { code, rows: 1 }),
        }
    }

    /// One row more that is like the last.
    fn again(&mut self) {
        if let Some(last) = self.0.last_mut() {
            last.rows += 1;
        }
    }

    /// Whether the last row is not null.
    fn is_value(&self) -> bool {
        self.0.last().is_some_and(|last| last.code.is_some())
    }
}

/// Distinct numbers, each under its place in the order in which they came.
#[derive(Debug)]
struct Numbers {
    /// A place and one for each slot that is taken, zero for one that is free.
    slots: Vec<u32>,
    keys: Vec<u64>,
    most: usize,
}

impl Numbers {
    fn with_most(most: usize) -> Self {
        Self { slots: vec![0; 1 << 10], keys: Vec::new(), most }
    }

    /// The place of a number; none where there are too many.
    fn code(&mut self, key: u64) -> Option<u32> {
        let mask = self.slots.len() - 1;
        let mut slot = scattered(key) & mask;
        loop {
            match self.slots[slot] {
                0 => break,
                taken if self.keys[taken as usize - 1] == key => return Some(taken - 1),
                _ => slot = (slot + 1) & mask,
            }
        }
        if self.keys.len() == self.most {
            return None;
        }
        self.keys.push(key);
        self.slots[slot] = self.keys.len() as u32;
        if self.keys.len() * 2 > self.slots.len() {
            self.grow();
        }
        Some(self.keys.len() as u32 - 1)
    }

    fn grow(&mut self) {
        let mask = self.slots.len() * 2 - 1;
        self.slots = vec![0; mask + 1];
        for (place, &key) in self.keys.iter().enumerate() {
            let mut slot = scattered(key) & mask;
            while self.slots[slot] != 0 {
                slot = (slot + 1) & mask;
            }
            self.slots[slot] = place as u32 + 1;
        }
    }
}

/// Spreads numbers that differ in few bits, such as the floats of short decimals, which end in zeros.
fn scattered(key: u64) -> usize {
    let product = u128::from(key ^ 0x9e37_79b9_7f4a_7c15) * 0xd6e8_feb8_6659_fd93;
    ((product >> 64) ^ product) as usize
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

    fn finished(self, runs: Lengths) -> Runs {
        let bytes = |text: Option<&str>| text.map(ByteArray::from);
        let (least, largest) = (bytes(self.least), bytes(self.largest));
        let statistics = |nulls| Statistics::byte_array(least.clone(), largest.clone(), None, Some(nulls), false);
        finished(runs, self.plain, self.codes.len(), statistics)
    }
}
