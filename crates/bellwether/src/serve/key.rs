//! The key of the service: compared in constant time, never shown.

use std::fmt;
use std::hint::black_box;

/// The key that the service accepts.
pub(super) struct Key(String);

impl Key {
    pub(super) fn new(key: String) -> Self {
        Self(key)
    }

    /// Whether the given key is this one. The time does not depend on the first different byte or the length, so the
    /// key cannot be guessed byte by byte.
    pub(super) fn is(&self, given: &str) -> bool {
        let given = given.as_bytes();
        let mut difference = self.0.len() ^ given.len();
        for (position, byte) in self.0.bytes().enumerate() {
            difference |= usize::from(byte ^ given.get(position).copied().unwrap_or(0));
        }
        black_box(difference) == 0
    }
}

impl fmt::Debug for Key {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("Key(…)")
    }
}

#[cfg(test)]
mod tests {
    use super::Key;

    #[test]
    fn only_the_whole_key_matches() {
        let key = Key::new("s3cret".to_owned());
        assert!(key.is("s3cret"));
        for other in ["", "s", "s3cre", "s3cret ", "s3crets3cret", "S3cret", "s3creT", "s3cret\0"] {
            assert!(!key.is(other), "{other:?}");
        }
        assert!(Key::new(String::new()).is("") && !Key::new(String::new()).is("\0"));
    }

    #[test]
    fn a_key_is_not_shown() {
        assert_eq!(format!("{:?}", Key::new("s3cret".to_owned())), "Key(…)");
    }
}
