//! Sixty-four flags as the bits of a word.

/// The bits of a word, the first flag in the lowest.
#[inline]
pub(crate) fn gathered(flags: [bool; u64::BITS as usize]) -> u64 {
    /// Multiplied by this, eight bytes that are 0 or 1 gather in the highest byte, the first in its lowest bit.
    const GATHER: u64 = 0x0102_0408_1020_4080;
    let bytes = flags.map(u8::from);
    let (words, _) = bytes.as_chunks::<8>();
    let gathered = words.iter().map(|&word| u64::from_le_bytes(word).wrapping_mul(GATHER) >> 56);
    gathered.zip((0..).step_by(8)).fold(0, |bits, (byte, place)| bits | byte << place)
}

#[cfg(test)]
mod tests {
    use super::gathered;

    #[test]
    fn each_flag_has_its_bit() {
        assert_eq!(gathered([true; 64]), u64::MAX);
        for word in (0..64).map(|bit| 1 << bit).chain([0, 0x9e37_79b9_7f4a_7c15]) {
            assert_eq!(gathered(std::array::from_fn(|bit| (word >> bit) & 1 == 1)), word);
        }
    }
}
