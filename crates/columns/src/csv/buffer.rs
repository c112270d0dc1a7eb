//! Writing into a buffer whose capacity was reserved, at an offset that is passed from write to write.

/// The bytes from an offset on, within the reserved capacity.
#[inline(always)]
pub(super) fn ahead<const COUNT: usize>(out: &mut [u8], at: usize) -> &mut [u8; COUNT] {
    out[at..].first_chunk_mut().expect("the capacity for a line was reserved")
}

/// Writes some bytes at `end`, and returns the new end.
#[inline]
pub(super) fn put(out: &mut [u8], end: usize, bytes: &[u8]) -> usize {
    out[end..end + bytes.len()].copy_from_slice(bytes);
    end + bytes.len()
}
