//! A ticker symbol that is safe to put into a path, a file name and a query.

use std::borrow::Cow;
use std::fmt;
use std::str::FromStr;

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Deserializer, Serialize, Serializer, de};

use super::parameter::{Unknown, spelled};

/// A stock ticker symbol: `AAPL`, `BRK.B`.
///
/// The interface does not list the valid tickers, so any plausible symbol is taken: letters, digits, `.`, `-`, `^` and `=`,
/// at most 16 of them, the first a letter, a digit or `^`. What it keeps out is text that would be
/// something else where a ticker is used: `../../x`, an empty name, a line break.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Ticker(String);

impl Ticker {
    /// The longest symbol taken, in bytes.
    pub const MAX_LEN: usize = 16;

    /// The symbol.
    pub fn as_str(&self) -> &str {
        &self.0
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
                Ok(Self(text.to_owned()))
            }
            _ => Err(Unknown {
                kind: "ticker",
                given: text.chars().take(64).collect(),
                hint: "a ticker is a symbol such as AAPL or BRK.B, of at most 16 letters, digits, `.`, `-`, `^` and `=`",
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
    fn symbols_are_taken_and_paths_are_not() {
        for text in ["A", "AAPL", "BRK.B", "BF.B", "BRK-B", "^GSPC", "7203", "ES=F"] {
            assert!(text.parse::<Ticker>().is_ok(), "{text}");
        }
        for text in ["", ".", "..", "../../x", "A/B", "A B", "A\n", "-A", "ABCDEFGHIJKLMNOPQ", "Ä", "A?x=1", "A%2F"] {
            assert!(text.parse::<Ticker>().is_err(), "{text:?}");
        }
    }
}
