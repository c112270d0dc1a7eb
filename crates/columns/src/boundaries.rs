//! Where the values of a column change: a bit for each row, set where its value may differ from that of the row before.
//!
//! Most columns of a dataset are runs of equal values, and hashing, encoding or counting a run at a time is fast. Finding
//! the runs row by row would take longer than that work, so 64 rows are compared at once, by their bytes in memory: floats
//! are equal if their bits are, and dictionary entries if their keys are. A clear bit therefore guarantees equal values,
//! null to null. A set bit guarantees a difference for numbers and texts; a dictionary may have one text under two keys.
//! For types that are rare here every bit is set.

use std::ops::BitOr;
use std::{array, mem};

use arrow::array::{Array, AsArray};
use arrow::buffer::{BooleanBuffer, NullBuffer};
use arrow::datatypes::DataType;

/// Rows per word of bits.
const WORD: usize = u64::BITS as usize;

/// The boundaries between the runs of a column. The first row always starts a run.
#[derive(Clone, Debug)]
pub struct Boundaries {
    /// A bit for each row; the first is ignored.
    bits: BooleanBuffer,
}

impl Boundaries {
    /// The boundaries of an array.
    pub fn new(array: &dyn Array) -> Self {
        Self { bits: bits(array) }
    }

    /// Boundaries at the given rows.
    pub fn at(starts: impl IntoIterator<Item = usize>, rows: usize) -> Self {
        let mut words = vec![0_u64; rows.div_ceil(WORD)];
        starts.into_iter().for_each(|row| words[row / WORD] |= 1 << (row % WORD));
        Self { bits: BooleanBuffer::new(words.into(), 0, rows) }
    }

    /// The boundaries of `count` rows from `from` on.
    pub fn slice(&self, from: usize, count: usize) -> Self {
        Self { bits: self.bits.slice(from, count) }
    }

    /// Number of rows.
    #[expect(clippy::len_without_is_empty, reason = "nobody asks whether there are none")]
    pub fn len(&self) -> usize {
        self.bits.len()
    }

    /// Number of boundaries; the first row may or may not count.
    pub fn count(&self) -> usize {
        self.bits.count_set_bits()
    }

    /// Whether a row starts a run.
    #[inline]
    pub fn is_at(&self, row: usize) -> bool {
        row == 0 || self.bits.value(row)
    }

    /// The rows that start a run, in order.
    pub fn starts(&self) -> impl Iterator<Item = usize> {
        self.runs().map(|(start, _)| start)
    }

    /// The first row of each run, and the row after its last.
    pub fn runs(&self) -> impl Iterator<Item = (usize, usize)> {
        let words = self.bits.bit_chunks();
        let words = words.iter().chain([words.remainder_bits()]);
        Runs { words, next: 0, start: 0, ends: [0; WORD], found: 0, given: 0, rows: self.len() }
    }

    /// A bit for each row; the first is meaningless.
    pub(super) fn bits(&self) -> &BooleanBuffer {
        &self.bits
    }
}

impl From<BooleanBuffer> for Boundaries {
    fn from(bits: BooleanBuffer) -> Self {
        Self { bits }
    }
}

/// Iterates over runs. The ends in one word are found together, so that consuming them is a short loop.
struct Runs<W> {
    words: W,
    /// The row of the first bit of the next word.
    next: usize,
    /// Where the next run starts.
    start: usize,
    /// The ends found last, how many there are, and how many of them were consumed.
    ends: [usize; WORD],
    found: usize,
    given: usize,
    rows: usize,
}

impl<W: Iterator<Item = u64>> Runs<W> {
    /// Finds the next ends, if any.
    #[inline(never)]
    fn find(&mut self) {
        (self.found, self.given) = (0, 0);
        while self.found == 0 {
            let Some(word) = self.words.next() else {
                // The last run ends with the rows.
                self.ends[0] = self.rows;
                self.found = usize::from(self.start < self.rows);
                return;
            };
            // No run ends at the first row, whatever its bit.
            let mut word = if self.next == 0 { word & !1 } else { word };
            if word == u64::MAX {
                // A column that changes at every row usually does so for long.
                self.ends = array::from_fn(|at| self.next + at);
                self.found = WORD;
            } else {
                self.found = word.count_ones() as usize;
                for end in &mut self.ends[..self.found] {
                    *end = self.next + word.trailing_zeros() as usize;
                    word &= word - 1;
                }
            }
            self.next += WORD;
        }
    }
}

impl<W: Iterator<Item = u64>> Iterator for Runs<W> {
    type Item = (usize, usize);

    #[inline]
    fn next(&mut self) -> Option<(usize, usize)> {
        if self.given == self.found {
            self.find();
        }
        let end = *self.ends[..self.found].get(self.given)?;
        self.given += 1;
        Some((mem::replace(&mut self.start, end), end))
    }

    #[inline]
    fn fold<B, F: FnMut(B, (usize, usize)) -> B>(mut self, init: B, mut add: F) -> B {
        let mut folded = init;
        loop {
            // A local, which need not be stored in every round.
            let mut start = self.start;
            for &end in &self.ends[self.given..self.found] {
                folded = add(folded, (start, end));
                start = end;
            }
            self.start = start;
            self.find();
            if self.found == 0 {
                return folded;
            }
        }
    }
}

/// Where either column changes.
impl BitOr for &Boundaries {
    type Output = Boundaries;

    fn bitor(self, other: Self) -> Boundaries {
        Boundaries { bits: &self.bits | &other.bits }
    }
}

fn bits(array: &dyn Array) -> BooleanBuffer {
    let (rows, nulls) = (array.len(), array.nulls());
    if array.null_count() == rows {
        return BooleanBuffer::new_unset(rows);
    }
    let data = array.to_data();
    let width = match array.data_type() {
        DataType::Utf8 => {
            let texts = array.as_string::<i32>();
            let (offsets, bytes) = (texts.value_offsets(), texts.value_data());
            return boundary_bits(rows, nulls, |word| texts_apart(offsets, bytes, word * WORD));
        }
        DataType::Boolean => {
            let flags: Vec<u64> = array.as_boolean().values().bit_chunks().iter_padded().collect();
            return boundary_bits(rows, nulls, |word| flags[word] ^ after(&flags, word));
        }
        DataType::Dictionary(key, _) => key.primitive_width(),
        other => other.primitive_width(),
    };
    match width {
        Some(1) => of_numbers(&data.buffer::<u8>(0)[..rows], nulls),
        Some(2) => of_numbers(&data.buffer::<u16>(0)[..rows], nulls),
        Some(4) => of_numbers(&data.buffer::<u32>(0)[..rows], nulls),
        Some(8) => of_numbers(&data.buffer::<u64>(0)[..rows], nulls),
        _ => BooleanBuffer::new_set(rows),
    }
}

/// Shifts the comparisons of neighbours by one row: bit `n` of an `apart` word is set if row `n` of its 64 differs from the
/// next one. The comparison of the last row is ignored.
fn boundary_bits(rows: usize, nulls: Option<&NullBuffer>, apart: impl Fn(usize) -> u64) -> BooleanBuffer {
    let valid: Option<Vec<u64>> =
        nulls.filter(|nulls| nulls.null_count() > 0).map(|nulls| nulls.inner().bit_chunks().iter_padded().collect());
    let mut first = 1;
    let word = |word: usize| {
        let mut apart = apart(word);
        if let Some(valid) = &valid {
            let (this, next) = (valid[word], after(valid, word));
            apart = (apart & this & next) | (this ^ next);
        }
        let starts = (apart << 1) | first;
        first = apart >> (WORD - 1);
        starts
    };
    let words: Vec<u64> = (0..rows.div_ceil(WORD)).map(word).collect();
    BooleanBuffer::new(words.into(), 0, rows)
}

/// The bits of a word, moved on by one row.
fn after(bits: &[u64], word: usize) -> u64 {
    (bits[word] >> 1) | (bits.get(word + 1).copied().unwrap_or_default() << (WORD - 1))
}

fn of_numbers<T: Copy + PartialEq>(values: &[T], nulls: Option<&NullBuffer>) -> BooleanBuffer {
    boundary_bits(values.len(), nulls, |word| {
        let (these, next) = (&values[word * WORD..], &values[word * WORD + 1..]);
        match (these.first_chunk::<WORD>(), next.first_chunk::<WORD>()) {
            (Some(these), Some(next)) => numbers_apart(these, next),
            _ => {
                these.iter().zip(next).enumerate().fold(0, |bits, (at, (this, next))| bits | (bit(this != next) << at))
            }
        }
    })
}

/// Which of these numbers differ from the next one.
fn numbers_apart<T: Copy + PartialEq>(these: &[T; WORD], next: &[T; WORD]) -> u64 {
    if these == next {
        return 0;
    }
    if size_of::<T>() < size_of::<u64>() {
        return pack_bits(array::from_fn(|at| these[at] != next[at]));
    }
    // Not every processor compares 64-bit numbers several at once; eight at a time, no step depends on the one before.
    let eights = these.as_chunks::<8>().0.iter().zip(next.as_chunks::<8>().0);
    let eight =
        |(these, next): (&[T; 8], &[T; 8])| (0..8).fold(0, |bits, at| bits | (bit(these[at] != next[at]) << at));
    eights.map(eight).enumerate().fold(0, |bits, (at, eight)| bits | (eight << (8 * at)))
}

/// Which of the texts from a row on differ from the next one.
fn texts_apart(offsets: &[i32], bytes: &[u8], from: usize) -> u64 {
    let ends = &offsets[from..offsets.len().min(from + WORD + 2)];
    let text = |row: usize| &bytes[ends[row] as usize..ends[row + 1] as usize];
    // Texts of one length are all equal if their bytes are equal to themselves shifted by that length.
    let (first, last, length) = (ends[0] as usize, ends[ends.len() - 1] as usize, text(0).len());
    let is_of_length = |pair: &[i32]| (pair[1] - pair[0]) as usize == length;
    let are_of_length = ends.windows(2).fold(true, |are, pair| are & is_of_length(pair));
    if are_of_length && bytes[first..last - length] == bytes[first + length..last] {
        return 0;
    }
    (0..ends.len() - 2).fold(0, |bits, row| bits | (bit(text(row) != text(row + 1)) << row))
}

fn bit(is_set: bool) -> u64 {
    u64::from(is_set)
}

/// Packs flags into a word; the first flag is the lowest bit.
#[inline]
pub fn pack_bits(flags: [bool; u64::BITS as usize]) -> u64 {
    /// Multiplying eight bytes of 0 or 1 by this collects them in the highest byte, the first as its lowest bit.
    const GATHER: u64 = 0x0102_0408_1020_4080;
    let bytes = flags.map(u8::from);
    let (words, _) = bytes.as_chunks::<8>();
    let packed = words.iter().map(|&word| u64::from_le_bytes(word).wrapping_mul(GATHER) >> 56);
    packed.zip((0..).step_by(8)).fold(0, |bits, (byte, shift)| bits | byte << shift)
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use arrow::array::{
        Array, ArrayRef, BooleanArray, DictionaryArray, Float64Array, Int8Array, Int16Array, Int32Array,
        LargeStringArray, StringArray,
    };

    use super::{Boundaries, pack_bits};

    fn random(seed: u64) -> impl FnMut(u64) -> u64 {
        let mut state = seed;
        move |below| {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            (state >> 33) % below
        }
    }

    /// The value of each row, equal if the module considers it equal.
    fn values(array: &ArrayRef) -> Vec<Option<String>> {
        let reals = array.as_any().downcast_ref::<Float64Array>();
        let keys = array.as_any().downcast_ref::<DictionaryArray<arrow::datatypes::Int8Type>>();
        let value = |row: usize| match (reals, keys) {
            (Some(reals), _) => format!("{:x}", reals.value(row).to_bits()),
            (_, Some(keys)) => keys.keys().value(row).to_string(),
            _ => arrow::util::display::array_value_to_string(array, row).unwrap(),
        };
        (0..array.len()).map(|row| array.is_valid(row).then(|| value(row))).collect()
    }

    fn columns(rows: usize, longest: u64, seed: u64) -> Vec<ArrayRef> {
        let mut random = random(seed);
        let mut numbers = || {
            let mut numbers = Vec::with_capacity(rows);
            while numbers.len() < rows {
                let (number, times) = (random(7), random(longest) + 1);
                numbers.extend(std::iter::repeat_n(number, times as usize));
            }
            numbers.truncate(rows);
            numbers
        };
        let texts = ["", "aa", "a", "aaaa", "BRK.B", "ab", "naïve"];
        let reals = [0.0, -0.0, f64::NAN, -f64::NAN, 0.5, 1e300, 1.0];
        let choices = Arc::new(StringArray::from(vec!["x", "x", "y"]));
        let some = |number: &u64| (*number < 5).then_some(*number as usize);
        vec![
            Arc::new(numbers().iter().map(|number| Some(texts[*number as usize])).collect::<StringArray>()),
            Arc::new(numbers().iter().map(|number| some(number).map(|it| texts[it])).collect::<StringArray>()),
            Arc::new(numbers().iter().map(|number| Some(reals[*number as usize])).collect::<Float64Array>()),
            Arc::new(numbers().iter().map(|number| some(number).map(|it| reals[it])).collect::<Float64Array>()),
            Arc::new(numbers().iter().map(|number| Some(*number as i32)).collect::<Int32Array>()),
            Arc::new(numbers().iter().map(|number| some(number).map(|it| it as i16)).collect::<Int16Array>()),
            Arc::new(numbers().iter().map(|number| some(number).map(|it| it % 2 == 0)).collect::<BooleanArray>()),
            Arc::new(DictionaryArray::new(
                numbers().iter().map(|number| some(number).map(|it| it as i8 % 3)).collect::<Int8Array>(),
                choices,
            )),
        ]
    }

    #[test]
    fn a_run_starts_at_each_row_that_differs_from_the_previous_one() {
        for (seed, rows) in [0, 1, 2, 63, 64, 65, 66, 127, 128, 129, 130, 1000, 5000].into_iter().enumerate() {
            for longest in [1, 3, 40, 700] {
                for column in columns(rows, longest, seed as u64) {
                    for from in [0, 1, 3, 64, 77].into_iter().filter(|from| *from <= rows) {
                        let slice = column.slice(from, rows - from);
                        let values = values(&slice);
                        let expected: Vec<bool> =
                            (0..values.len()).map(|row| row == 0 || values[row] != values[row - 1]).collect();
                        let found =
                            |found: Boundaries| (0..found.len()).map(|row| found.is_at(row)).collect::<Vec<_>>();
                        assert_eq!(
                            found(Boundaries::new(&slice)),
                            expected,
                            "{} {rows} {longest} {from}",
                            column.data_type()
                        );
                        assert_eq!(found(Boundaries::new(&column).slice(from, rows - from)), expected);
                    }
                }
            }
        }
    }

    #[test]
    fn values_under_a_null_are_ignored() {
        let nulls = arrow::buffer::NullBuffer::from(vec![false, false, true, true, false]);
        let numbers = Int32Array::new(vec![1, 2, 2, 2, 2].into(), Some(nulls));
        assert_eq!(Boundaries::new(&numbers).starts().collect::<Vec<_>>(), [0, 2, 4]);
    }

    #[test]
    fn every_row_of_a_rare_type_starts_a_run() {
        let texts = LargeStringArray::from(vec!["a", "a"]);
        assert_eq!(Boundaries::new(&texts).count(), 2);
    }

    #[test]
    fn runs_end_where_the_next_one_starts() {
        let numbers = Int32Array::from(vec![4, 4, 5, 6, 6, 6]);
        let boundaries = Boundaries::new(&numbers);
        assert_eq!(boundaries.runs().collect::<Vec<_>>(), [(0, 2), (2, 3), (3, 6)]);
        assert_eq!(boundaries.slice(1, 3).runs().collect::<Vec<_>>(), [(0, 1), (1, 2), (2, 3)]);
        assert_eq!(boundaries.slice(3, 3).runs().collect::<Vec<_>>(), [(0, 3)]);
        assert_eq!(boundaries.slice(3, 0).runs().count(), 0);
        // One after the other, and all at once.
        for longest in [1, 2, 90] {
            let column = columns(700, longest, 3).swap_remove(4);
            for (from, count) in [(0, 700), (1, 640), (0, 64), (64, 128), (63, 1)] {
                let boundaries = Boundaries::new(&column).slice(from, count);
                let starts: Vec<usize> = (0..count).filter(|&row| boundaries.is_at(row)).collect();
                let expected: Vec<_> = starts.iter().copied().zip(starts[1..].iter().copied().chain([count])).collect();
                let mut runs = boundaries.runs();
                assert!(expected.iter().all(|run| runs.next() == Some(*run)) && runs.next().is_none());
                let mut all = Vec::new();
                boundaries.runs().for_each(|run| all.push(run));
                assert_eq!(all, expected);
            }
        }
    }

    #[test]
    fn each_flag_has_its_bit() {
        assert_eq!(pack_bits([true; 64]), u64::MAX);
        for word in (0..64).map(|bit| 1 << bit).chain([0, 0x9e37_79b9_7f4a_7c15]) {
            assert_eq!(pack_bits(std::array::from_fn(|bit| (word >> bit) & 1 == 1)), word);
        }
    }
}
