//! Finds quotes, brackets and backslashes in blocks of 64 bytes, with one bit per byte.

use crate::columns::pack_bits;

/// Bytes per block.
pub(super) const BLOCK: usize = 64;

/// The positions of quotes and brackets in a block, also of those inside strings; the first byte has the lowest bit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Marks {
    pub(super) quotes: u64,
    /// `[` and `{`.
    pub(super) opens: u64,
    /// `]` and `}`.
    pub(super) closes: u64,
    pub(super) has_backslash: bool,
}

/// The bit that turns `[` into `{` and `]` into `}`, and no other byte into either.
const CURLY: u8 = 0x20;

impl Marks {
    /// The marks of a block, on any processor.
    #[inline]
    pub(super) fn of(block: &[u8; BLOCK]) -> Self {
        Self {
            quotes: pack_bits(block.map(|byte| byte == b'"')),
            opens: pack_bits(block.map(|byte| byte | CURLY == b'{')),
            closes: pack_bits(block.map(|byte| byte | CURLY == b'}')),
            // Not `contains`: it stops at the first match and so is not vectorized.
            has_backslash: block.iter().fold(false, |found, &byte| found | (byte == b'\\')),
        }
    }

    /// The same with AVX2, 32 bytes at a time.
    #[cfg(target_arch = "x86_64")]
    #[target_feature(enable = "avx2")]
    #[inline]
    pub(super) fn by_avx2(block: &[u8; BLOCK]) -> Self {
        use std::arch::x86_64::{_mm256_cmpeq_epi8, _mm256_movemask_epi8, _mm256_or_si256, _mm256_set1_epi8};

        let (halves, _) = block.as_chunks::<32>();
        let [low, high] = [load(&halves[0]), load(&halves[1])];
        let [low_curly, high_curly] = [low, high].map(|half| _mm256_or_si256(half, _mm256_set1_epi8(CURLY as i8)));
        let places = |low, high, byte: u8| {
            let bits = |half| _mm256_movemask_epi8(_mm256_cmpeq_epi8(half, _mm256_set1_epi8(byte as i8))) as u32;
            u64::from(bits(low)) | u64::from(bits(high)) << 32
        };
        Self {
            quotes: places(low, high, b'"'),
            opens: places(low_curly, high_curly, b'{'),
            closes: places(low_curly, high_curly, b'}'),
            has_backslash: places(low, high, b'\\') != 0,
        }
    }
}

#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx2")]
#[inline]
fn load(bytes: &[u8; 32]) -> std::arch::x86_64::__m256i {
    let (words, _) = bytes.as_chunks::<8>();
    let word = |index: usize| i64::from_le_bytes(words[index]);
    std::arch::x86_64::_mm256_set_epi64x(word(3), word(2), word(1), word(0))
}

#[cfg(test)]
mod tests {
    use super::{BLOCK, Marks};

    #[test]
    fn every_byte_is_classified() {
        let mut state = 1_u64;
        for round in 0..2_000 {
            let block: [u8; BLOCK] = std::array::from_fn(|at| {
                state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
                // Each byte at each position first, then only relevant ones.
                let any = (at + round) as u8;
                if round < 256 { any } else { br#""[]{}_y\"#[(state >> 61) as usize] }
            });
            let bits =
                |bytes: &[u8]| (0..BLOCK).fold(0, |bits, at| bits | (u64::from(bytes.contains(&block[at])) << at));
            let expected = Marks {
                quotes: bits(b"\""),
                opens: bits(b"[{"),
                closes: bits(b"]}"),
                has_backslash: block.contains(&b'\\'),
            };
            assert_eq!(Marks::of(&block), expected);
            #[cfg(target_arch = "x86_64")]
            if is_x86_feature_detected!("avx2") {
                #[expect(unsafe_code, reason = "a function with a target feature")]
                // SAFETY: the feature was just detected.
                let found = unsafe { Marks::by_avx2(&block) };
                assert_eq!(found, expected);
            }
        }
    }
}
