//! The licence of a dataset: an identifier of SPDX's list, or the address of its text.

use std::borrow::Cow;
use std::fmt;
use std::str::FromStr;

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Deserializer, Serialize, Serializer, de};
use url::Url;

use super::values::{Refusal, parsed_from_text};
use crate::net::address;

/// More than any identifier of SPDX's list has.
const MOST_CHARACTERS: usize = 64;

const HINT: &str = "use an identifier of https://spdx.org/licenses, such as `CC-BY-4.0`, `LicenseRef-` and a name of your \
                    own, or the address of the text";

/// What a dataset may be used for: who cites it, says so.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum License {
    /// An identifier in SPDX's spelling: `CC-BY-4.0`, or `LicenseRef-vendor` for one that SPDX does not list.
    Identifier(String),
    /// The address of its text.
    Address(Url),
}

impl License {
    /// Where its text is; none for one that SPDX does not list.
    pub fn address(&self) -> Option<String> {
        match self {
            Self::Identifier(name) if name.starts_with("LicenseRef-") => None,
            Self::Identifier(name) => Some(format!("https://spdx.org/licenses/{name}.html")),
            Self::Address(address) => Some(address.to_string()),
        }
    }
}

impl fmt::Display for License {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Identifier(name) => formatter.write_str(name),
            Self::Address(address) => formatter.write_str(address.as_str()),
        }
    }
}

impl FromStr for License {
    type Err = Refusal;

    fn from_str(text: &str) -> Result<Self, Refusal> {
        if text.contains("://") {
            // The address is not repeated in the error: it may contain a password.
            let address = address::parse(text).map_err(|fault| format!("{fault}\n{HINT}"))?;
            return match address.scheme() {
                "http" | "https" if address.username().is_empty() && address.password().is_none() => {
                    Ok(Self::Address(address))
                }
                "http" | "https" => Err(format!("an address that everybody reads has no user and no password\n{HINT}")),
                scheme => Err(format!("unsupported scheme `{scheme}`\n{HINT}")),
            };
        }
        let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'.' | b'-' | b'+');
        let begins = text.as_bytes().first().is_some_and(u8::is_ascii_alphanumeric);
        match begins && text.len() <= MOST_CHARACTERS && text.bytes().all(is_plain) {
            true => Ok(Self::Identifier(text.to_owned())),
            false => Err(format!("not the identifier of a license\n{HINT}")),
        }
    }
}

parsed_from_text!(License);

impl Serialize for License {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl JsonSchema for License {
    fn schema_name() -> Cow<'static, str> {
        "License".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({ "type": "string", "examples": ["CC-BY-4.0", "LicenseRef-vendor", "https://example.com/terms"] })
    }
}

#[cfg(test)]
mod tests {
    use super::License;

    #[test]
    fn a_license_is_an_identifier_or_an_address_and_nothing_else() {
        for (text, address) in [
            ("CC-BY-4.0", Some("https://spdx.org/licenses/CC-BY-4.0.html")),
            ("GPL-2.0+", Some("https://spdx.org/licenses/GPL-2.0+.html")),
            ("LicenseRef-vendor", None),
            ("https://example.com/terms?of=data", Some("https://example.com/terms?of=data")),
        ] {
            let license: License = text.parse().expect(text);
            assert_eq!((license.to_string().as_str(), license.address().as_deref()), (text, address));
        }
        let long = "a".repeat(65);
        for text in ["", "all rights reserved", "-MIT", "MIT\n", "ftp://a.example/", "https://u:p@a.example/", &long] {
            let refusal = text.parse::<License>().expect_err(text);
            assert!(refusal.contains("\nuse an identifier") && !refusal.contains("u:p"), "{refusal}");
        }
    }
}
