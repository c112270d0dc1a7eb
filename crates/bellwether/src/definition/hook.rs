//! What to call after a run: a command, or an address.

use std::borrow::Cow;
use std::fmt;
use std::str::FromStr;

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::de::{self, SeqAccess, Visitor};
use serde::{Deserialize, Deserializer};
use url::Url;

use super::values::{Refusal, parsed_from_text};
use crate::net::address;

/// What is called after a run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Hook {
    /// A program and its arguments, run without a shell.
    Command(Vec<String>),
    /// An address that gets the record of the run by POST.
    Address(HookUrl),
}

/// An address of a web service. Its path or query may be a secret, so that only its host is ever shown.
#[derive(Clone, PartialEq, Eq)]
pub struct HookUrl(Url);

impl HookUrl {
    /// The address.
    pub fn as_url(&self) -> &Url {
        &self.0
    }
}

impl fmt::Debug for HookUrl {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "HookUrl({})", self.0.host_str().unwrap_or_default())
    }
}

impl FromStr for HookUrl {
    type Err = Refusal;

    fn from_str(text: &str) -> Result<Self, Refusal> {
        // The address is not repeated in the error: it may contain a token.
        let hint = "use a full address, such as `https://hooks.example.com/nightly`";
        let url = address::parse(text).map_err(|fault| format!("{fault}\n{hint}"))?;
        match url.scheme() {
            "http" | "https" if url.has_host() => Ok(Self(url)),
            scheme => Err(format!("unsupported scheme `{scheme}`\n{hint}, or a list for a command")),
        }
    }
}

parsed_from_text!(
    HookUrl,
    json_schema!({ "type": "string", "format": "uri", "examples": ["https://hc-ping.com/0c6e"] })
);

impl<'de> Deserialize<'de> for Hook {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct HookForm;

        impl<'de> Visitor<'de> for HookForm {
            type Value = Hook;

            fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
                formatter.write_str("an address, or a command as a list of strings")
            }

            fn visit_str<E: de::Error>(self, text: &str) -> Result<Hook, E> {
                if !text.contains("://") {
                    return Err(E::custom(
                        "neither an address nor a list\na command is a list of the program and its arguments: \
                         `[\"notify\", \"--done\"]`; an address begins with `https://`",
                    ));
                }
                text.parse().map(Hook::Address).map_err(E::custom)
            }

            fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<Hook, A::Error> {
                let mut words = Vec::new();
                while let Some(word) = list.next_element()? {
                    words.push(word);
                }
                match words.first() {
                    Some(_) => Ok(Hook::Command(words)),
                    None => Err(de::Error::custom("an empty command\nput the program first, then its arguments")),
                }
            }
        }

        deserializer.deserialize_any(HookForm)
    }
}

impl JsonSchema for Hook {
    fn schema_name() -> Cow<'static, str> {
        "Hook".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({
            "anyOf": [
                { "type": "array", "items": { "type": "string" }, "minItems": 1 },
                { "type": "string", "format": "uri" },
            ],
            "examples": [["logger", "--tag", "bellwether"], "https://hooks.example.com/nightly"],
        })
    }
}
