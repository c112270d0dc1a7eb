//! The beginning of a text that may be long.

/// How much of a text stands in a message, in characters.
const IN_MESSAGES: usize = 40;

/// How much is kept of the text of what is set aside, in bytes.
pub(super) const RAW: usize = 64 << 10;

/// A text as messages show it.
pub(super) fn shown(text: &str) -> String {
    match text.char_indices().nth(IN_MESSAGES) {
        Some((end, _)) => format!("{}…", &text[..end]),
        None => text.to_owned(),
    }
}

/// The start of a text, at most a number of bytes, cut between characters, with an ellipsis if something is missing.
pub(super) fn beginning(text: &str, bytes: usize) -> String {
    if text.len() <= bytes {
        return text.to_owned();
    }
    format!("{}…", &text[..text.floor_char_boundary(bytes)])
}

/// What is kept of the text of what is set aside.
pub(super) fn raw(text: &[u8]) -> String {
    beginning_of_bytes(text, RAW)
}

/// The beginning of bytes that may be no text: what cannot be read is replaced, as is usual.
fn beginning_of_bytes(text: &[u8], bytes: usize) -> String {
    // A character is four bytes at most, so a whole one always lies past the cut when any text does.
    const CHARACTER: usize = 4;
    let kept = &text[..text.len().min(bytes.saturating_add(CHARACTER))];
    beginning(&String::from_utf8_lossy(kept), bytes)
}

#[cfg(test)]
mod tests {
    use super::{beginning, beginning_of_bytes, shown};

    #[test]
    fn a_long_text_is_cut_between_characters() {
        assert_eq!(shown(&"ä".repeat(41)), format!("{}…", "ä".repeat(40)));
        assert_eq!(shown("short"), "short");
        assert_eq!(beginning("aäb", 2), "a…");
        assert_eq!(beginning("aäb", 3), "aä…");
        assert_eq!(beginning("aäb", 4), "aäb");
    }

    #[test]
    fn bytes_that_are_no_text_are_shown_as_well_as_they_can_be() {
        assert_eq!(beginning_of_bytes(b"a\xffb", 64), "a\u{fffd}b");
        for length in 0..40 {
            let text = "a€😀ö".repeat(8);
            assert_eq!(beginning_of_bytes(text.as_bytes(), length), beginning(&text, length), "{length}");
        }
    }
}
