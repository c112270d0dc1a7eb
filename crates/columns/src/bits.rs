//! Packs 64 flags into a word.

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
    use super::pack_bits;

    #[test]
    fn each_flag_has_its_bit() {
        assert_eq!(pack_bits([true; 64]), u64::MAX);
        for word in (0..64).map(|bit| 1 << bit).chain([0, 0x9e37_79b9_7f4a_7c15]) {
            assert_eq!(pack_bits(std::array::from_fn(|bit| (word >> bit) & 1 == 1)), word);
        }
    }
}
