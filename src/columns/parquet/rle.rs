//! Numbers as Parquet writes levels and places in a dictionary: runs of one number, and groups of eight packed in as
//! few bits as the largest needs.

/// How many groups of eight are written under one head: what other writers write, and a head of one byte.
const MOST_GROUPS: usize = 63;

/// The numbers under one head, at most.
const MOST: usize = MOST_GROUPS * 8;

/// Numbers that are being written.
#[derive(Debug)]
pub(super) struct Hybrid {
    bits: u32,
    out: Vec<u8>,
    /// Numbers to pack, under one head, with room for those that a push may write too many.
    waiting: Box<[u32; MOST + 8]>,
    count: usize,
}

/// The bits that a number needs.
pub(super) fn bits(largest: u32) -> u32 {
    u32::BITS - largest.leading_zeros()
}

impl Hybrid {
    /// Numbers of so many bits, to be written behind some bytes.
    pub(super) fn new(bits: u32, out: Vec<u8>) -> Self {
        Self { bits, out, waiting: Box::new([0; MOST + 8]), count: 0 }
    }

    /// Writes a number so many times.
    #[inline]
    pub(super) fn push(&mut self, number: u32, count: usize) {
        if count < 8 {
            // Eight are quicker to write than as many as there are.
            self.waiting[self.count..][..8].fill(number);
            self.count += count;
            if self.count >= MOST {
                self.pack_most();
            }
        } else {
            self.push_many(number, count);
        }
    }

    /// Writes numbers without looking for runs among them.
    pub(super) fn extend(&mut self, mut numbers: &[u32]) {
        while !numbers.is_empty() {
            let (some, rest) = numbers.split_at(numbers.len().min(MOST - self.count));
            self.waiting[self.count..][..some.len()].copy_from_slice(some);
            self.count += some.len();
            if self.count == MOST {
                self.pack_most();
            }
            numbers = rest;
        }
    }

    fn push_many(&mut self, number: u32, mut count: usize) {
        // What waits must be whole groups before a run may follow it.
        let missing = self.count.next_multiple_of(8) - self.count;
        let mut packed = if count - missing < 8 { count } else { missing };
        count -= packed;
        while packed > 0 {
            let some = packed.min(7);
            self.push(number, some);
            packed -= some;
        }
        if count > 0 {
            self.pack(self.count);
            self.count = 0;
            self.head(count << 1);
            self.out.extend_from_slice(&number.to_le_bytes()[..self.bits.div_ceil(8) as usize]);
        }
    }

    /// The bytes of all numbers, behind those that were there.
    pub(super) fn finish(mut self) -> Vec<u8> {
        // Readers know how many numbers there are.
        let whole = self.count.next_multiple_of(8);
        self.waiting[self.count..whole].fill(0);
        self.pack(whole);
        self.out
    }

    fn pack_most(&mut self) {
        self.pack(MOST);
        self.waiting.copy_within(MOST.., 0);
        self.count -= MOST;
    }

    /// Writes the first numbers that wait, which are whole groups.
    fn pack(&mut self, count: usize) {
        if count == 0 {
            return;
        }
        self.head(((count / 8) << 1) | 1);
        let (groups, _) = self.waiting[..count].as_chunks::<8>();
        if self.bits <= 16 {
            // Each group is written with room behind it, which the next one takes.
            let (mut at, width) = (self.out.len(), self.bits as usize);
            self.out.resize(at + groups.len() * width + 16, 0);
            for group in groups {
                self.out[at..][..16].copy_from_slice(&packed(group, self.bits).to_le_bytes());
                at += width;
            }
            self.out.truncate(at);
            return;
        }
        for group in groups {
            let (mut held, mut length) = (0_u64, 0);
            for &number in group {
                held |= u64::from(number) << length;
                length += self.bits;
                while length >= 8 {
                    self.out.push(held as u8);
                    held >>= 8;
                    length -= 8;
                }
            }
        }
    }

    fn head(&mut self, mut number: usize) {
        while number >= 0x80 {
            self.out.push((number & 0x7f) as u8 | 0x80);
            number >>= 7;
        }
        self.out.push(number as u8);
    }
}

/// Eight numbers of so many bits, sixteen at most: two by two, so that no step waits for the one before it.
fn packed(group: &[u32; 8], bits: u32) -> u128 {
    let [a, b, c, d, e, f, g, h] = group.map(u64::from);
    let (low, high) =
        ((a | (b << bits)) | ((c | (d << bits)) << (2 * bits)), (e | (f << bits)) | ((g | (h << bits)) << (2 * bits)));
    u128::from(low) | (u128::from(high) << (4 * bits))
}

#[cfg(test)]
mod tests {
    use super::{Hybrid, bits};

    /// Reads numbers back, by the words of the format's description.
    fn read(mut bytes: &[u8], width: usize, count: usize) -> Vec<u32> {
        let mut numbers = Vec::new();
        while numbers.len() < count {
            let (mut head, mut shift) = (0_usize, 0);
            loop {
                let byte = bytes[0];
                bytes = &bytes[1..];
                head |= usize::from(byte & 0x7f) << shift;
                shift += 7;
                if byte & 0x80 == 0 {
                    break;
                }
            }
            if head & 1 == 0 {
                let length = width.div_ceil(8);
                let number = (0..length).fold(0, |number, place| number | (u32::from(bytes[place]) << (8 * place)));
                numbers.extend(std::iter::repeat_n(number, head >> 1));
                bytes = &bytes[length..];
            } else {
                let length = (head >> 1) * width;
                for place in 0..(head >> 1) * 8 {
                    let bit = |at: usize| u32::from(bytes[at / 8] >> (at % 8)) & 1;
                    numbers.push((0..width).fold(0, |number, at| number | (bit(place * width + at) << at)));
                }
                bytes = &bytes[length..];
            }
        }
        assert!(bytes.is_empty(), "{} bytes are left", bytes.len());
        numbers.truncate(count);
        numbers
    }

    #[test]
    fn numbers_are_read_back_whatever_their_runs_and_their_width() {
        let mut state = 7_u64;
        let mut random = move |below: u64| {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            (state >> 33) % below
        };
        for largest in [0, 1, 2, 3, 6, 255, 256, 4999, 65_535, 65_536, 131_071, u32::MAX] {
            for longest in [1, 2, 7, 8, 9, 30, 2000] {
                let mut hybrid = Hybrid::new(bits(largest), Vec::new());
                let mut numbers = Vec::new();
                while numbers.len() < 3000 {
                    let number = random(u64::from(largest) + 1) as u32;
                    let count = random(longest) as usize + 1;
                    let some = vec![number; count];
                    match number.is_multiple_of(5) {
                        true => hybrid.extend(&some),
                        false => hybrid.push(number, count),
                    }
                    numbers.extend(some);
                }
                let bytes = hybrid.finish();
                assert_eq!(read(&bytes, bits(largest) as usize, numbers.len()), numbers, "{largest} {longest}");
            }
        }
    }

    #[test]
    fn a_run_takes_a_head_and_a_number() {
        let mut hybrid = Hybrid::new(bits(4000), vec![9]);
        hybrid.push(300, 100_000);
        assert_eq!(hybrid.finish(), [9, 0xc0, 0x9a, 0x0c, 0x2c, 0x01]);
    }
}
