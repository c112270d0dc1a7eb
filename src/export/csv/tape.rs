//! Text that is written into room which is there before it: one look at its length serves a whole line.
//!
//! Whoever writes is told where the text ends, and says where it ends then: a number that never leaves the processor,
//! while what a `Vec` knows of its length is stored and loaded again with each of a line's parts.

use std::ops::Range;

/// The bytes that are copied at once.
const STRIDE: usize = 32;

/// A text, and room behind it.
#[derive(Clone, Debug, Default)]
pub(super) struct Tape {
    room: Vec<u8>,
    end: usize,
}

impl Tape {
    /// A text of its own, given the most bytes that it takes.
    pub(super) fn of(most: usize, write: impl FnOnce(&mut [u8]) -> usize) -> Self {
        let mut tape = Self::default();
        tape.append(most, write);
        tape
    }

    pub(super) fn as_bytes(&self) -> &[u8] {
        &self.room[..self.end]
    }

    /// The bytes that a copy of it needs room for.
    pub(super) fn room(&self) -> usize {
        room(self.end)
    }

    pub(super) fn clear(&mut self) {
        self.end = 0;
    }

    /// Appends what is written, given the most bytes that it takes; how many it took is returned.
    #[inline(always)]
    pub(super) fn append(&mut self, most: usize, write: impl FnOnce(&mut [u8]) -> usize) {
        // Room for the last stride of a copy, too.
        let needed = self.end + most + STRIDE;
        if self.room.len() < needed {
            grow(&mut self.room, needed);
        }
        self.end += write(&mut self.room[self.end..]);
    }

    /// Writes it once more.
    #[inline(always)]
    pub(super) fn copy(&self, out: &mut [u8], end: usize) -> usize {
        self.copy_part(0..self.end, out, end)
    }

    /// Writes a part of it once more, in strides whose length is known when the program is compiled.
    #[inline(always)]
    pub(super) fn copy_part(&self, part: Range<usize>, out: &mut [u8], end: usize) -> usize {
        let mut at = 0;
        while at < part.len() {
            // Behind each text there is room for a stride.
            let stride = self.room[part.start + at..].first_chunk::<STRIDE>();
            *ahead(out, end + at) = *stride.expect("a tape has room behind its text");
            at += STRIDE;
        }
        end + part.len()
    }
}

/// The bytes that a copy of so many needs room for.
pub(super) fn room(length: usize) -> usize {
    length.next_multiple_of(STRIDE)
}

#[cold]
fn grow(room: &mut Vec<u8>, needed: usize) {
    room.resize(needed.max(room.len() * 2), 0);
}

/// The bytes from a place on, which is within the room that was asked for.
#[inline(always)]
pub(super) fn ahead<const COUNT: usize>(out: &mut [u8], at: usize) -> &mut [u8; COUNT] {
    out[at..].first_chunk_mut().expect("nobody writes more than was said")
}

/// Writes some bytes.
#[inline]
pub(super) fn put(out: &mut [u8], end: usize, bytes: &[u8]) -> usize {
    out[end..end + bytes.len()].copy_from_slice(bytes);
    end + bytes.len()
}

#[cfg(test)]
mod tests {
    use super::{Tape, ahead, put};

    #[test]
    fn a_text_of_any_length_is_copied_whole() {
        let mut tape = Tape::default();
        for length in [0, 1, 31, 32, 33, 64, 100, 5] {
            let text: Vec<u8> = (0..length).collect();
            tape.clear();
            tape.append(text.len(), |out| put(out, 0, &text));
            assert_eq!(tape.as_bytes(), text);
            let both = Tape::of(6 + tape.room() + 1, |out| {
                let end = put(out, 0, b"before");
                let end = tape.copy(out, end);
                put(out, end, b"!")
            });
            assert_eq!(both.as_bytes(), [b"before", &text[..], b"!"].concat());
        }
    }

    #[test]
    fn a_tape_grows_with_what_is_appended() {
        let mut tape = Tape::default();
        for number in 0..1_000_u32 {
            tape.append(4, |out| {
                *ahead(out, 0) = number.to_le_bytes();
                4
            });
        }
        assert_eq!(tape.as_bytes(), (0..1_000_u32).flat_map(u32::to_le_bytes).collect::<Vec<u8>>());
    }
}
