//! Which tickers: an explicit list, its only ticker, or a list by name.

use std::borrow::Cow;
use std::fmt;

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::de::{self, IntoDeserializer, SeqAccess, Visitor};
use serde::{Deserialize, Deserializer};

use super::choices::TickerList;
use crate::interface::Ticker;
use crate::text::problem::nearest;

/// `"available"`, `["AAPL", "BRK.B"]`, or `"AAPL"`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Tickers {
    /// A list by name.
    Known(TickerList),
    /// An explicit list.
    Written(Vec<Ticker>),
}

impl<'de> Deserialize<'de> for Tickers {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct TickersForm;

        impl<'de> Visitor<'de> for TickersForm {
            type Value = Tickers;

            fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
                formatter.write_str("the name of a list or a list of tickers")
            }

            fn visit_str<E: de::Error>(self, text: &str) -> Result<Tickers, E> {
                // Tickers may have any letters: a text close to the name of a list is taken for a typo.
                let is_list = nearest(text, TickerList::ALL.iter().map(|list| list.as_str())).is_some();
                match text.parse() {
                    Ok(ticker) if !is_list => Ok(Tickers::Written(vec![ticker])),
                    _ => TickerList::deserialize(text.into_deserializer()).map(Tickers::Known),
                }
            }

            fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<Tickers, A::Error> {
                let mut tickers = Vec::new();
                while let Some(ticker) = list.next_element()? {
                    tickers.push(ticker);
                }
                Ok(Tickers::Written(tickers))
            }
        }

        deserializer.deserialize_any(TickersForm)
    }
}

impl JsonSchema for Tickers {
    fn inline_schema() -> bool {
        true
    }

    fn schema_name() -> Cow<'static, str> {
        "Tickers".into()
    }

    fn json_schema(generator: &mut SchemaGenerator) -> Schema {
        let list = generator.subschema_for::<TickerList>();
        let ticker = generator.subschema_for::<Ticker>();
        json_schema!({ "anyOf": [list, ticker, { "type": "array", "items": ticker, "minItems": 1 }] })
    }
}
