//! The address of a service as typed: itself, or the variable of the environment that holds it.
//!
//! A variable is always the whole address. What it holds is read by the plan, and shown only once it is known to be an
//! address: it may be a secret that was named by mistake.

use std::str::FromStr;

use schemars::json_schema;

use super::values::{BaseUrl, Refusal, parsed_from_text};

/// `https://api.example.com/v1`, or `$VENDOR_URL`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Address {
    /// An address.
    Written(BaseUrl),
    /// The name of the variable that holds it.
    Variable(String),
}

impl FromStr for Address {
    type Err = Refusal;

    fn from_str(text: &str) -> Result<Self, Refusal> {
        const WHOLE: &str = "use `$` and the name of a variable that holds the whole address, such as `$VENDOR_URL`";
        if let Some(name) = text.strip_prefix('$') {
            let is_letter = |byte: u8| byte.is_ascii_alphabetic() || byte == b'_';
            let is_name = name.bytes().next().is_some_and(is_letter)
                && name.bytes().all(|byte| is_letter(byte) || byte.is_ascii_digit());
            let variable = is_name.then(|| Self::Variable(name.to_owned()));
            return variable.ok_or_else(|| format!("no name of a variable\n{WHOLE}"));
        }
        let host = text.split_once("://").map(|(_, rest)| rest.split('/').next().unwrap_or(rest));
        if host.is_some_and(|host| host.contains('$')) {
            return Err(format!("a variable in an address\n{WHOLE}"));
        }
        text.parse().map(Self::Written)
    }
}

parsed_from_text!(Address, {
    let pattern = "^(https?://.+|\\$[A-Za-z_][A-Za-z0-9_]*)$";
    json_schema!({ "type": "string", "pattern": pattern, "examples": ["https://api.example.com/v1", "$VENDOR_URL"] })
});
