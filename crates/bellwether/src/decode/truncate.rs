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

/// The text to keep of a rejected record.
pub(super) fn raw(text: &[u8]) -> String {
    beginning_of_bytes(text, RAW)
}

/// The same of bytes that may not be UTF-8; invalid ones are replaced.
fn beginning_of_bytes(text: &[u8], bytes: usize) -> String {
    // A character has at most four bytes, so a whole one follows the cut if any text does.
    const CHARACTER: usize = 4;
    let kept = &text[..text.len().min(bytes.saturating_add(CHARACTER))];
    beginning(&String::from_utf8_lossy(kept), bytes)
}

#[cfg(test)]
mod tests {
    use super::{beginning, beginning_of_bytes, excerpt};

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
        assert_eq!(beginning_of_bytes(b"a\xffb", 64), "a\u{fffd}b");
        for length in 0..40 {
            let text = "a€😀ö".repeat(8);
            assert_eq!(beginning_of_bytes(text.as_bytes(), length), beginning(&text, length), "{length}");
        }
    }
}
