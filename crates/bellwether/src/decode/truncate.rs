//! Truncates text that may be long.

/// The most characters of a text in a message.
const IN_MESSAGES: usize = 40;

/// The most bytes to keep of a rejected record.
pub(super) const RAW: usize = 64 << 10;

/// A text for a message.
pub(super) fn excerpt(text: &str) -> String {
    match text.char_indices().nth(IN_MESSAGES) {
        Some((end, _)) => format!("{}…", &text[..end]),
        None => text.to_owned(),
    }
}

/// At most the first `bytes` bytes of a text, cut between characters, with an ellipsis if it was longer.
pub(super) fn beginning(text: &str, bytes: usize) -> String {
    if text.len() <= bytes {
        return text.to_owned();
    }
    format!("{}…", &text[..text.floor_char_boundary(bytes)])
}

/// The text to keep of a rejected record; bytes that are not UTF-8 are replaced.
pub(super) fn raw(text: &[u8]) -> String {
    // A character has at most four bytes, so a whole one follows the cut if any text does.
    beginning(&String::from_utf8_lossy(&text[..text.len().min(RAW + 4)]), RAW)
}

#[cfg(test)]
mod tests {
    use super::{RAW, beginning, excerpt, raw};

    #[test]
    fn a_long_text_is_truncated_between_characters() {
        assert_eq!(excerpt(&"ä".repeat(41)), format!("{}…", "ä".repeat(40)));
        assert_eq!(excerpt("short"), "short");
        assert_eq!(beginning("aäb", 2), "a…");
        assert_eq!(beginning("aäb", 3), "aä…");
        assert_eq!(beginning("aäb", 4), "aäb");
    }

    #[test]
    fn invalid_utf_8_is_shown_lossily() {
        assert_eq!(raw(b"a\xffb"), "a\u{fffd}b");
        for length in 0..40 {
            let text = "x".repeat(RAW - length) + &"a€😀ö".repeat(8);
            assert!(raw(text.as_bytes()) == beginning(&text, RAW), "{length}");
        }
    }
}
