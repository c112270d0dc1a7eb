//! Distinct numbers, each under its place in the order in which they came.

/// How many slots there are for each number, at least: so few are taken that the first one mostly decides.
const SLOTS_PER_NUMBER: usize = 3;

/// Numbers and their places.
#[derive(Debug)]
pub(super) struct Numbers {
    /// A place and one for each slot that is taken, zero for one that is free.
    slots: Vec<u32>,
    keys: Vec<u64>,
    most: usize,
    /// How far a scattered number is shifted to be a slot.
    shift: u32,
}

impl Numbers {
    /// Room for so many.
    pub(super) fn with_most(most: usize) -> Self {
        const SLOTS: u32 = 10;
        Self { slots: vec![0; 1 << SLOTS], keys: Vec::new(), most, shift: u64::BITS - SLOTS }
    }

    /// The place of a number; none where there are too many.
    #[inline]
    pub(super) fn code(&mut self, key: u64) -> Option<u32> {
        let mask = self.slots.len() - 1;
        let mut slot = self.first_slot(key);
        loop {
            match self.slots[slot] {
                0 => return self.add(key, slot),
                taken if self.keys[taken as usize - 1] == key => return Some(taken - 1),
                _ => slot = (slot + 1) & mask,
            }
        }
    }

    /// The numbers in their order.
    pub(super) fn into_keys(self) -> Vec<u64> {
        self.keys
    }

    /// Where a number is looked for first: numbers that follow each other at some distance, as days and decimals do, are
    /// spread evenly by the golden ratio.
    #[inline]
    fn first_slot(&self, key: u64) -> usize {
        (key.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> self.shift) as usize
    }

    #[cold]
    fn add(&mut self, key: u64, slot: usize) -> Option<u32> {
        if self.keys.len() == self.most {
            return None;
        }
        self.keys.push(key);
        self.slots[slot] = self.keys.len() as u32;
        if self.keys.len() * SLOTS_PER_NUMBER > self.slots.len() {
            self.grow();
        }
        Some(self.keys.len() as u32 - 1)
    }

    fn grow(&mut self) {
        let mask = self.slots.len() * 4 - 1;
        self.slots = vec![0; mask + 1];
        self.shift -= 2;
        for (place, &key) in self.keys.iter().enumerate() {
            let mut slot = self.first_slot(key);
            while self.slots[slot] != 0 {
                slot = (slot + 1) & mask;
            }
            self.slots[slot] = place as u32 + 1;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::Numbers;

    #[test]
    fn a_number_has_one_place_in_the_order_in_which_it_came() {
        let mut numbers = Numbers::with_most(4000);
        let decimals = || (0..4000).map(|number| (f64::from(number) / 1e4).to_bits());
        assert!(decimals().enumerate().all(|(place, key)| numbers.code(key) == Some(place as u32)));
        assert!(decimals().enumerate().rev().all(|(place, key)| numbers.code(key) == Some(place as u32)));
        assert_eq!(numbers.code(u64::MAX), None);
        assert!(numbers.into_keys().into_iter().eq(decimals()));
    }
}
