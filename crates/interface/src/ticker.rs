//! Ticker symbols that are safe in paths, file names and queries.

use std::borrow::Cow;
use std::fmt;
use std::str::FromStr;

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Deserializer, Serialize, Serializer, de};

use super::parameter::{Unknown, spelled};

/// A stock ticker symbol: `AAPL`, `BRK.B`.
///
/// The interface does not list the valid tickers, so any plausible symbol is accepted: at most 16 letters, digits, `.`,
/// `-`, `^` and `=`, the first a letter, a digit or `^`. This excludes text that would be unsafe in a path or a query:
/// `../../x`, an empty name, a line break.
///
/// The letters are stored inline: there may be hundreds of thousands of tickers, and a `String` takes three times as
/// much. Zeros follow the letters, so tickers order like their symbols.
#[derive(Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Ticker([u8; Ticker::MAX_LEN]);

impl Ticker {
    /// Maximum length of a symbol, in bytes.
    pub const MAX_LEN: usize = 16;

    /// The symbol.
    pub fn as_str(&self) -> &str {
        let length = self.0.iter().position(|byte| *byte == 0).unwrap_or(Self::MAX_LEN);
        std::str::from_utf8(&self.0[..length]).expect("symbols are ASCII")
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
        let opens = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'^';
        let goes_on = |byte: u8| opens(byte) || matches!(byte, b'.' | b'-' | b'=');
        let bytes = text.as_bytes();
        match bytes.split_first() {
            Some((&first, rest))
                if bytes.len() <= Self::MAX_LEN && opens(first) && rest.iter().all(|&byte| goes_on(byte)) =>
            {
                let mut letters = [0; Self::MAX_LEN];
                letters[..bytes.len()].copy_from_slice(bytes);
                Ok(Self(letters))
            }
            _ => Err(Unknown {
                kind: "ticker",
                given: text.chars().take(64).collect(),
                hint: "a ticker is a symbol such as AAPL or BRK.B: at most 16 letters, digits, `.`, `-`, `^` and `=`",
            }),
        }
    }
}

spelled!(Ticker);

impl JsonSchema for Ticker {
    fn schema_name() -> Cow<'static, str> {
        "Ticker".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({ "type": "string", "pattern": "^[A-Za-z0-9^][A-Za-z0-9^.=-]{0,15}$", "examples": ["AAPL", "BRK.B"] })
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
    fn symbols_are_accepted_and_paths_are_not() {
        for text in ["A", "AAPL", "BRK.B", "BF.B", "BRK-B", "^GSPC", "7203", "ES=F"] {
            assert!(text.parse::<Ticker>().is_ok(), "{text}");
        }
        for text in ["", ".", "..", "../../x", "A/B", "A B", "A\n", "-A", "ABCDEFGHIJKLMNOPQ", "Ä", "A?x=1", "A%2F"] {
            assert!(text.parse::<Ticker>().is_err(), "{text:?}");
        }
    }
}
