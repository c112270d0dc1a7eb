//! Ticker symbols, as any vendor writes them.

use std::borrow::Cow;
use std::fmt;
use std::str::FromStr;

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Deserializer, Serialize, Serializer, de};

use super::parameter::{Unknown, spelled};

/// A stock ticker symbol: `AAPL`, `BRK.B`, `BRK/B`, `NYSE:XOM`.
///
/// The interface does not list the valid tickers, so any short text is accepted that can be printed in a line, without
/// spaces around it. It is escaped where it becomes part of an address or of a path.
///
/// The letters are stored inline: there may be hundreds of thousands of tickers, and a `String` takes three times as
/// much. Zeros follow the letters, so tickers order like their symbols.
#[derive(Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Ticker([u8; Ticker::MAX_LEN]);

impl Ticker {
    /// Maximum length of a symbol, in bytes.
    pub const MAX_LEN: usize = 24;

    /// The symbol.
    pub fn as_str(&self) -> &str {
        let length = self.0.iter().position(|byte| *byte == 0).unwrap_or(Self::MAX_LEN);
        std::str::from_utf8(&self.0[..length]).expect("symbols are text")
    }
}

impl fmt::Debug for Ticker {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_tuple("Ticker").field(&self.as_str()).finish()
    }
}

impl FromStr for Ticker {
    type Err = Unknown;

    fn from_str(text: &str) -> Result<Self, Unknown> {
        let bytes = text.as_bytes();
        match bytes.len() {
            1..=Self::MAX_LEN if is_printable(text) && !matches!(text, "." | "..") => {
                let mut letters = [0; Self::MAX_LEN];
                letters[..bytes.len()].copy_from_slice(bytes);
                Ok(Self(letters))
            }
            _ => Err(Unknown {
                kind: "ticker",
                given: text.chars().take(64).collect(),
                hint: "a ticker is a symbol such as AAPL or BRK.B: at most 24 bytes in a line, without spaces around them",
            }),
        }
    }
}

/// Whether text can be seen in a line: no character in it breaks lines, turns their direction or has no width.
fn is_printable(text: &str) -> bool {
    let is_hidden = |letter: char| {
        letter.is_control()
            || matches!(letter, '\u{ad}' | '\u{61c}' | '\u{180e}' | '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}')
            || matches!(letter, '\u{2060}'..='\u{206f}' | '\u{feff}' | '\u{fff0}'..='\u{fffb}')
    };
    text.trim() == text && !text.contains(is_hidden)
}

spelled!(Ticker);

impl JsonSchema for Ticker {
    fn schema_name() -> Cow<'static, str> {
        "Ticker".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({ "type": "string", "minLength": 1, "maxLength": 24, "examples": ["AAPL", "BRK.B"] })
    }
}

#[cfg(test)]
mod tests {
    use super::Ticker;

    #[test]
    fn tickers_order_and_print_like_their_symbols() {
        let mut symbols = ["A", "AA", "A.B", "AB", "B", "^GSPC", "7203", "ES=F", "ABCDEFGHIJKLMNOP", "ABCDEFGHIJKLMNO"];
        let mut tickers = symbols.map(|symbol| symbol.parse::<Ticker>().unwrap());
        tickers.sort();
        symbols.sort_unstable();
        assert_eq!(tickers.each_ref().map(Ticker::as_str), symbols);
    }

    #[test]
    fn short_text_in_a_line_is_a_symbol() {
        for text in ["A", "BRK.B", "BRK-B", "BRK/B", "BRK_B", "BRK B", "^GSPC", "7203", "ES=F", "AT&T", "M&M.NS"] {
            assert!(text.parse::<Ticker>().is_ok(), "{text}");
        }
        for text in
            ["NYSE:XOM", "$SPX", ".SPX", "Ä", "トヨタ", "../../x", "A?x=1", "A%2F", "-A", "ABCDEFGHIJKLMNOPQRSTUVWX"]
        {
            assert!(text.parse::<Ticker>().is_ok(), "{text}");
        }
        for text in [
            "",
            ".",
            "..",
            " A",
            "A ",
            "A\n",
            "A\0",
            "A\u{202e}B",
            "A\u{200b}",
            "A\u{2028}B",
            "ABCDEFGHIJKLMNOPQRSTUVWXY",
        ] {
            assert!(text.parse::<Ticker>().is_err(), "{text:?}");
        }
    }
}
