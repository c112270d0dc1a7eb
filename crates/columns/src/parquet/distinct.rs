//! The distinct values of a column, each with an index in order of first appearance.

use std::collections::HashMap;

use parquet::data_type::ByteArray;

/// Maximum bytes of a dictionary: the limit of other writers, since readers keep it in memory.
pub(super) const MAX_BYTES: usize = 1 << 20;

/// Slots per number, at least: so few are taken that the first one is usually right.
const SLOTS_PER_NUMBER: usize = 3;

/// Distinct numbers, given as bits: an open-addressing hash table, as the lookup is most of the work for a column that
/// changes at every row.
#[derive(Debug)]
pub(super) struct DistinctNumbers {
    /// One more than the index of the number in each slot, or zero for a free slot.
    slots: Vec<u32>,
    numbers: Vec<u64>,
    limit: usize,
    /// How far a hash is shifted to give a slot.
    shift: u32,
}

impl DistinctNumbers {
    pub(super) fn with_limit(limit: usize) -> Self {
        const SLOTS: u32 = 10;
        Self { slots: vec![0; 1 << SLOTS], numbers: Vec::new(), limit, shift: u64::BITS - SLOTS }
    }

    /// The index of a number; none if there are too many.
    #[inline]
    pub(super) fn index(&mut self, number: u64) -> Option<u32> {
        let mask = self.slots.len() - 1;
        let mut slot = self.first_slot(number);
        loop {
            match self.slots[slot] {
                0 => return self.add(number, slot),
                taken if self.numbers[taken as usize - 1] == number => return Some(taken - 1),
                _ => slot = (slot + 1) & mask,
            }
        }
    }

    /// The numbers in the order of their indices.
    pub(super) fn into_numbers(self) -> Vec<u64> {
        self.numbers
    }

    /// The slot to look at first. Multiplying by the golden ratio spreads numbers at regular distances evenly, as days and
    /// decimals are.
    #[inline]
    fn first_slot(&self, number: u64) -> usize {
        (number.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> self.shift) as usize
    }

    #[cold]
    fn add(&mut self, number: u64, slot: usize) -> Option<u32> {
        if self.numbers.len() == self.limit {
            return None;
        }
        self.numbers.push(number);
        self.slots[slot] = self.numbers.len() as u32;
        if self.numbers.len() * SLOTS_PER_NUMBER > self.slots.len() {
            self.grow();
        }
        Some(self.numbers.len() as u32 - 1)
    }

    fn grow(&mut self) {
        let mask = self.slots.len() * 4 - 1;
        self.slots = vec![0; mask + 1];
        self.shift -= 2;
        for (index, &number) in self.numbers.iter().enumerate() {
            let mut slot = self.first_slot(number);
            while self.slots[slot] != 0 {
                slot = (slot + 1) & mask;
            }
            self.slots[slot] = index as u32 + 1;
        }
    }
}

/// Distinct texts, and their bounds.
#[derive(Debug, Default)]
pub(super) struct DistinctTexts<'a> {
    indices: HashMap<&'a str, u32>,
    /// The texts in Parquet's plain encoding.
    plain: Vec<u8>,
    min: Option<&'a str>,
    max: Option<&'a str>,
}

impl<'a> DistinctTexts<'a> {
    /// The index of a text; none if there are too many.
    pub(super) fn index(&mut self, text: &'a str) -> Option<u32> {
        if let Some(&index) = self.indices.get(text) {
            return Some(index);
        }
        if self.plain.len() + text.len() > MAX_BYTES {
            return None;
        }
        self.plain.extend_from_slice(&(text.len() as u32).to_le_bytes());
        self.plain.extend_from_slice(text.as_bytes());
        // Texts are ordered by their bytes, in Parquet as in Rust.
        self.min = Some(self.min.map_or(text, |min| min.min(text)));
        self.max = Some(self.max.map_or(text, |max| max.max(text)));
        let index = self.indices.len() as u32;
        self.indices.insert(text, index);
        Some(index)
    }

    pub(super) fn len(&self) -> usize {
        self.indices.len()
    }

    /// The first and the last text in order of their bytes.
    pub(super) fn bounds(&self) -> (Option<ByteArray>, Option<ByteArray>) {
        (self.min.map(ByteArray::from), self.max.map(ByteArray::from))
    }

    pub(super) fn into_plain(self) -> Vec<u8> {
        self.plain
    }
}

#[cfg(test)]
mod tests {
    use super::DistinctNumbers;

    #[test]
    fn a_number_keeps_the_index_of_its_first_occurrence() {
        let mut numbers = DistinctNumbers::with_limit(4000);
        let decimals = || (0..4000).map(|number| (f64::from(number) / 1e4).to_bits());
        assert!(decimals().enumerate().all(|(index, number)| numbers.index(number) == Some(index as u32)));
        assert!(decimals().enumerate().rev().all(|(index, number)| numbers.index(number) == Some(index as u32)));
        assert_eq!(numbers.index(u64::MAX), None);
        assert!(numbers.into_numbers().into_iter().eq(decimals()));
    }
}
