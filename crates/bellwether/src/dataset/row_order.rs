//! Sorts rows by columns, returning row numbers.
//!
//! Columns become integers that compare like their values, packed into as few words as hold them. Most orders fit into
//! one word of few bits, which is radix-sorted together with the row numbers, without comparisons.

/// Bits per digit: small enough for the fastest caches, and two digits are enough for most orders.
const DIGIT: u32 = 11;

/// The columns to sort by, most significant first.
#[derive(Debug)]
pub(crate) struct RowOrder {
    rows: usize,
    /// Packed columns, least significant first.
    words: Vec<Word>,
}

#[derive(Debug)]
struct Word {
    bits: u32,
    values: Vec<u64>,
}

impl RowOrder {
    /// An order of some rows without any columns yet.
    pub(crate) fn new(rows: usize) -> Self {
        Self { rows, words: Vec::new() }
    }

    /// Adds a column that is more significant than those added so far.
    pub(crate) fn before(&mut self, numbers: impl Iterator<Item = u64> + Clone) {
        let (least, most) =
            numbers.clone().fold((u64::MAX, 0), |(least, most), number| (least.min(number), most.max(number)));
        if least >= most {
            // It has the same value in every row.
            return;
        }
        let bits = u64::BITS - (most - least).leading_zeros();
        let numbers = numbers.map(|number| number - least);
        match self.words.last_mut() {
            Some(word) if word.bits + bits <= u64::BITS => {
                word.values.iter_mut().zip(numbers).for_each(|(value, number)| *value |= number << word.bits);
                word.bits += bits;
            }
            _ => self.words.push(Word { bits, values: numbers.collect() }),
        }
    }

    /// The rows in order. The sort is stable.
    pub(crate) fn rows(self) -> Vec<u32> {
        let mut rows: Vec<u32> = (0..self.rows as u32).collect();
        for Word { bits, values } in self.words {
            if bits <= u32::BITS {
                let mut keyed: Vec<u64> =
                    rows.iter().map(|&row| (values[row as usize] << u32::BITS) | u64::from(row)).collect();
                sort_by_digits(&mut keyed, bits);
                rows.iter_mut().zip(keyed).for_each(|(row, key)| *row = key as u32);
            } else {
                let mut keyed: Vec<(u64, u32)> = rows.iter().map(|&row| (values[row as usize], row)).collect();
                keyed.sort_by_key(|&(value, _)| value);
                rows.iter_mut().zip(keyed).for_each(|(row, (_, now))| *row = now);
            }
        }
        rows
    }
}

/// A stable sort by the lowest bits of the upper half of each number.
fn sort_by_digits(keyed: &mut Vec<u64>, bits: u32) {
    let mut sorted = vec![0; keyed.len()];
    for shift in (0..bits).step_by(DIGIT as usize).map(|shift| shift + u32::BITS) {
        let digit = |key: u64| (key >> shift) as usize & ((1 << DIGIT) - 1);
        let mut indices = vec![0_usize; 1 << DIGIT];
        keyed.iter().for_each(|&key| indices[digit(key)] += 1);
        let mut next = 0;
        for index in &mut indices {
            next += std::mem::replace(index, next);
        }
        for &key in &*keyed {
            let index = &mut indices[digit(key)];
            sorted[*index] = key;
            *index += 1;
        }
        std::mem::swap(keyed, &mut sorted);
    }
}

/// Maps a float to an unsigned number with the same order; both zeros are equal.
pub(super) fn real(number: f64) -> u64 {
    let bits = if number == 0.0 { 0 } else { number.to_bits() };
    if bits >> 63 == 0 { bits | (1 << 63) } else { !bits }
}

#[cfg(test)]
mod tests {
    use super::{RowOrder, real};

    #[test]
    fn rows_are_ordered_by_the_first_column_that_differs() {
        let tickers = [1_u64, 0, 1, 0, 1, 0];
        let dates = [5_i64, -7, i64::MIN, i64::MAX, 5, -7];
        let scores = [0.5, -0.0, 1e300, 2.0, -0.25, 0.0];
        let mut order = RowOrder::new(6);
        order.before(scores.iter().map(|&score| real(score)));
        order.before(dates.iter().map(|&date| date as u64 ^ (1 << 63)));
        order.before(tickers.iter().copied());
        assert_eq!(order.rows(), [1, 5, 3, 2, 4, 0]);
    }

    #[test]
    fn keys_of_several_words_keep_the_order() {
        let mut state = 9_u64;
        let mut random = |below: u64| {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            (state >> 33) % below
        };
        let rows: Vec<[u64; 5]> = (0..2000)
            .map(|_| [random(3), random(4) << 60, random(2), random(5).wrapping_mul(1 << 62 | 1), random(4)])
            .collect();
        let mut order = RowOrder::new(rows.len());
        for column in (0..5).rev() {
            order.before(rows.iter().map(move |row| row[column]));
        }
        let mut expected: Vec<u32> = (0..2000).collect();
        expected.sort_by_key(|&row| rows[row as usize]);
        assert_eq!(order.rows(), expected);
    }

    #[test]
    fn zero_rows_are_ordered() {
        let mut order = RowOrder::new(0);
        order.before([].into_iter());
        assert!(order.rows().is_empty());
    }
}
