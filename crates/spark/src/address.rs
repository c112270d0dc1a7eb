//! The address of a cluster.

use std::fmt;
use std::str::FromStr;

/// The address of a Spark Connect server: `spark://host:15002`, or with TLS `spark://host:15002/;use_ssl=true`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Address(String);

impl Address {
    /// The address as it was typed.
    pub(crate) fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for Address {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(&self.0)
    }
}

impl FromStr for Address {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        // The address is not repeated in the error: it may contain a token.
        let Some(("spark" | "sc", rest)) = text.split_once("://") else {
            return Err("not the address of a cluster".to_owned());
        };
        if rest.contains("token=") || rest.contains('@') {
            return Err("an address with a token".to_owned());
        }
        let host = rest.split(['/', ':', ';']).next().unwrap_or_default();
        if host.is_empty() { Err("an address without a host".to_owned()) } else { Ok(Self(text.to_owned())) }
    }
}
