//! Short texts that are written again and again.

/// The bytes that are copied at once.
const STRIDE: usize = 32;

/// A text with room behind it, so that it is copied in strides whose length is known when the program is compiled.
#[derive(Clone, Debug, Default)]
pub(super) struct Snippet {
    padded: Vec<u8>,
    length: usize,
}

impl Snippet {
    pub(super) fn of(text: &[u8]) -> Self {
        let mut snippet = Self::default();
        snippet.rewrite(|out| out.extend_from_slice(text));
        snippet
    }

    pub(super) fn as_bytes(&self) -> &[u8] {
        &self.padded[..self.length]
    }

    /// Makes it another text.
    pub(super) fn rewrite<T>(&mut self, write: impl FnOnce(&mut Vec<u8>) -> T) -> T {
        self.padded.clear();
        let written = write(&mut self.padded);
        self.length = self.padded.len();
        self.padded.resize(self.length.next_multiple_of(STRIDE), 0);
        written
    }

    /// Appends it.
    #[inline]
    pub(super) fn push(&self, out: &mut Vec<u8>) {
        let end = out.len() + self.length;
        for stride in self.padded.as_chunks::<STRIDE>().0 {
            out.extend_from_slice(stride);
        }
        out.truncate(end);
    }
}

#[cfg(test)]
mod tests {
    use super::Snippet;

    #[test]
    fn a_text_of_any_length_is_appended_whole() {
        let mut snippet = Snippet::default();
        for length in [0, 1, 31, 32, 33, 64, 100, 5] {
            let text: Vec<u8> = (0..length).collect();
            snippet.rewrite(|out| out.extend_from_slice(&text));
            let mut out = b"before".to_vec();
            snippet.push(&mut out);
            Snippet::of(&text).push(&mut out);
            assert_eq!(out, [b"before", &text[..], &text[..]].concat());
        }
    }
}
