//! Parquet's hybrid of run-length encoding and bit packing, for dictionary indices and definition levels: runs of one
//! number, and groups of eight numbers packed in as few bits as the largest needs.

/// The most groups of eight under one header, as other writers have it: the header then takes one byte.
const MAX_GROUPS: usize = 63;

/// The most packed numbers under one header.
const MAX: usize = MAX_GROUPS * 8;

/// Encodes numbers.
#[derive(Debug)]
pub(super) struct RleEncoder {
    bit_width: u32,
    out: Vec<u8>,
    /// Numbers to pack under one header. A push may write up to eight too many.
    pending: Box<[u32; MAX + 8]>,
    count: usize,
}

/// Number of bits that a number needs.
pub(super) fn bit_width(largest: u32) -> u32 {
    u32::BITS - largest.leading_zeros()
}

impl RleEncoder {
    /// Encodes numbers of up to `bit_width` bits, appended to `out`.
    pub(super) fn new(bit_width: u32, out: Vec<u8>) -> Self {
        Self { bit_width, out, pending: Box::new([0; MAX + 8]), count: 0 }
    }

    /// Adds a number `count` times.
    #[inline]
    pub(super) fn push(&mut self, number: u32, count: usize) {
        if count < 8 {
            // Writing eight is faster than writing the exact number.
            self.pending[self.count..][..8].fill(number);
            self.count += count;
            if self.count >= MAX {
                self.pack_max();
            }
        } else {
            self.push_many(number, count);
        }
    }

    /// Adds numbers without looking for runs among them.
    pub(super) fn extend(&mut self, mut numbers: &[u32]) {
        while !numbers.is_empty() {
            let (some, rest) = numbers.split_at(numbers.len().min(MAX - self.count));
            self.pending[self.count..][..some.len()].copy_from_slice(some);
            self.count += some.len();
            if self.count == MAX {
                self.pack_max();
            }
            numbers = rest;
        }
    }

    fn push_many(&mut self, number: u32, mut count: usize) {
        // A run can only follow whole groups.
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
            self.write_header(count << 1);
            self.out.extend_from_slice(&number.to_le_bytes()[..self.bit_width.div_ceil(8) as usize]);
        }
    }

    /// The encoded bytes.
    pub(super) fn finish(mut self) -> Vec<u8> {
        // Readers know how many numbers there are, and ignore the padding.
        let whole = self.count.next_multiple_of(8);
        self.pending[self.count..whole].fill(0);
        self.pack(whole);
        self.out
    }

    fn pack_max(&mut self) {
        self.pack(MAX);
        self.pending.copy_within(MAX.., 0);
        self.count -= MAX;
    }

    /// Packs the first pending numbers, which are whole groups.
    fn pack(&mut self, count: usize) {
        if count == 0 {
            return;
        }
        self.write_header(((count / 8) << 1) | 1);
        let (groups, _) = self.pending[..count].as_chunks::<8>();
        if self.bit_width <= 16 {
            // Each group is written as 16 bytes; the next one overwrites the excess.
            let (mut at, width) = (self.out.len(), self.bit_width as usize);
            self.out.resize(at + groups.len() * width + 16, 0);
            for group in groups {
                self.out[at..][..16].copy_from_slice(&pack_group(group, self.bit_width).to_le_bytes());
                at += width;
            }
            self.out.truncate(at);
            return;
        }
        for group in groups {
            let (mut held, mut length) = (0_u64, 0);
            for &number in group {
                held |= u64::from(number) << length;
                length += self.bit_width;
                while length >= 8 {
                    self.out.push(held as u8);
                    held >>= 8;
                    length -= 8;
                }
            }
        }
    }

    fn write_header(&mut self, mut number: usize) {
        while number >= 0x80 {
            self.out.push((number & 0x7f) as u8 | 0x80);
            number >>= 7;
        }
        self.out.push(number as u8);
    }
}

/// Packs eight numbers of up to 16 bits, in pairs, so that the steps are independent.
fn pack_group(group: &[u32; 8], bits: u32) -> u128 {
    let [a, b, c, d, e, f, g, h] = group.map(u64::from);
    let (low, high) =
        ((a | (b << bits)) | ((c | (d << bits)) << (2 * bits)), (e | (f << bits)) | ((g | (h << bits)) << (2 * bits)));
    u128::from(low) | (u128::from(high) << (4 * bits))
}

#[cfg(test)]
mod tests {
    use super::{RleEncoder, bit_width};

    /// Decodes numbers as the format is specified.
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
                let number = (0..length).fold(0, |number, index| number | (u32::from(bytes[index]) << (8 * index)));
                numbers.extend(std::iter::repeat_n(number, head >> 1));
                bytes = &bytes[length..];
            } else {
                let length = (head >> 1) * width;
                for index in 0..(head >> 1) * 8 {
                    let bit = |at: usize| u32::from(bytes[at / 8] >> (at % 8)) & 1;
                    numbers.push((0..width).fold(0, |number, at| number | (bit(index * width + at) << at)));
                }
                bytes = &bytes[length..];
            }
        }
        assert!(bytes.is_empty(), "{} bytes are left", bytes.len());
        numbers.truncate(count);
        numbers
    }

    #[test]
    fn runs_of_any_length_and_bit_width_round_trip() {
        let mut state = 7_u64;
        let mut random = move |below: u64| {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            (state >> 33) % below
        };
        for largest in [0, 1, 2, 3, 6, 255, 256, 4999, 65_535, 65_536, 131_071, u32::MAX] {
            for longest in [1, 2, 7, 8, 9, 30, 2000] {
                let mut encoder = RleEncoder::new(bit_width(largest), Vec::new());
                let mut numbers = Vec::new();
                while numbers.len() < 3000 {
                    let number = random(u64::from(largest) + 1) as u32;
                    let count = random(longest) as usize + 1;
                    let some = vec![number; count];
                    match number.is_multiple_of(5) {
                        true => encoder.extend(&some),
                        false => encoder.push(number, count),
                    }
                    numbers.extend(some);
                }
                let bytes = encoder.finish();
                assert_eq!(read(&bytes, bit_width(largest) as usize, numbers.len()), numbers, "{largest} {longest}");
            }
        }
    }

    #[test]
    fn a_run_is_encoded_as_a_header_and_a_value() {
        let mut encoder = RleEncoder::new(bit_width(4000), vec![9]);
        encoder.push(300, 100_000);
        assert_eq!(encoder.finish(), [9, 0xc0, 0x9a, 0x0c, 0x2c, 0x01]);
    }
}
