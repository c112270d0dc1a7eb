//! Escapes text from outside before it is shown.
//!
//! Much of what is shown comes from outside: a service's messages and field names, definitions, file names. Some
//! characters control a terminal instead of being shown: they move the cursor, set colours, or reverse the direction of
//! text, so that a line reads differently. Such characters are escaped as in JSON, `\u001b`: escaped JSON is still the
//! same JSON, and people and programs can tell what was there. Line breaks of our own layout are kept, those inside a
//! value are escaped: see [`escape()`]. Our own text needs no colour.

use std::borrow::Cow;
use std::fmt::Write as _;

/// Escapes a value from outside, for use within a line.
pub fn escape(text: &str) -> Cow<'_, str> {
    escape_where(text, is_hidden)
}

/// Escapes text, keeping its line breaks.
pub fn laid_out(text: &str) -> Cow<'_, str> {
    escape_where(text, |letter| letter != '\n' && is_hidden(letter))
}

fn escape_where(text: &str, is_escaped: impl Fn(char) -> bool) -> Cow<'_, str> {
    let Some(first) = text.find(&is_escaped) else { return text.into() };
    let mut shown = text[..first].to_owned();
    for letter in text[first..].chars() {
        match letter {
            _ if !is_escaped(letter) => shown.push(letter),
            '\n' => shown.push_str("\\n"),
            '\r' => shown.push_str("\\r"),
            '\t' => shown.push_str("\\t"),
            _ => {
                for unit in letter.encode_utf16(&mut [0; 2]) {
                    write!(shown, "\\u{unit:04x}").expect("a string takes any text");
                }
            }
        }
    }
    shown.into()
}

/// A word for a POSIX shell.
pub fn shell(word: &str) -> String {
    let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || b"/._-+=:,@".contains(&byte);
    if !word.is_empty() && word.bytes().all(is_plain) {
        return word.to_owned();
    }
    format!("'{}'", word.replace('\'', "'\\''"))
}

/// Whether a character is invisible or controls the terminal: control characters, direction marks, invisible format
/// characters and line separators, as of Unicode 17.
pub(crate) fn is_hidden(letter: char) -> bool {
    letter.is_control()
        || matches!(letter,
            '\u{ad}'
            | '\u{600}'..='\u{605}'
            | '\u{61c}'
            | '\u{6dd}'
            | '\u{70f}'
            | '\u{890}'..='\u{891}'
            | '\u{8e2}'
            | '\u{115f}'..='\u{1160}'
            | '\u{17b4}'..='\u{17b5}'
            | '\u{180b}'..='\u{180f}'
            | '\u{200b}'..='\u{200f}'
            | '\u{2028}'..='\u{202e}'
            | '\u{2060}'..='\u{206f}'
            | '\u{3164}'
            | '\u{feff}'
            | '\u{ffa0}'
            | '\u{fff0}'..='\u{fffb}'
            | '\u{110bd}'
            | '\u{110cd}'
            | '\u{13430}'..='\u{1343f}'
            | '\u{1bca0}'..='\u{1bca3}'
            | '\u{1d173}'..='\u{1d17a}'
            | '\u{e0000}'..='\u{e0fff}')
}

#[cfg(test)]
mod tests {
    use super::{escape, laid_out};

    #[test]
    fn control_characters_are_escaped_and_other_text_is_kept() {
        for (text, shown) in [
            ("größer, 東京, שלום, 👍", "größer, 東京, שלום, 👍"),
            ("\u{1b}[31mred\u{1b}[0m", "\\u001b[31mred\\u001b[0m"),
            ("a\nb\r\tc\u{7f}\u{0}", "a\\nb\\r\\tc\\u007f\\u0000"),
            ("\u{9b}31m", "\\u009b31m"),
            ("\u{202e}txt.exe\u{2066}", "\\u202etxt.exe\\u2066"),
            ("a\u{2028}b\u{200b}c\u{feff}", "a\\u2028b\\u200bc\\ufeff"),
            ("\u{e0041}", "\\udb40\\udc41"),
        ] {
            assert_eq!(escape(text), shown);
        }
        assert_eq!(laid_out("a\n\u{1b}b\n"), "a\n\\u001bb\n");
    }

    #[test]
    fn escaping_keeps_json_equivalent() {
        let value = serde_json::json!({ "\u{202e}\u{9b}": ["\u{1b}\n\t\u{7f}", "\u{e0041}\u{2029}\"\\"] });
        for text in [value.to_string(), format!("{value:#}\n")] {
            let shown = laid_out(&text);
            assert!(shown.chars().all(|letter| letter == '\n' || !super::is_hidden(letter)), "{shown}");
            assert_eq!(serde_json::from_str::<serde_json::Value>(&shown).unwrap(), value);
        }
    }
}
