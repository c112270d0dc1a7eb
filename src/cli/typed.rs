//! Parsers of arguments.

use std::str::FromStr;

use crate::error::Error;
use crate::interface::Unknown;
pub(super) use crate::time::instant;

/// Arguments that do not go together.
pub(super) fn usage<E: From<Error>>(what: &str, hint: &'static str) -> E {
    Error::usage(what, hint).into()
}

/// A value from a closed set of the service; an error has its hint.
pub(super) fn known<T: FromStr<Err = Unknown>>(text: &str) -> Result<T, String> {
    text.parse().map_err(|unknown: Unknown| format!("{unknown}; {}", unknown.hint))
}

/// A value from a closed set of definitions; an error has its hint.
pub(super) fn worded<T: FromStr<Err = String>>(text: &str) -> Result<T, String> {
    text.parse().map_err(|refusal: String| refusal.replace('\n', "; "))
}

/// A share: `0.5%`, or `0.005`.
pub(super) fn share(text: &str) -> Result<f64, String> {
    let (number, scale) = text.strip_suffix('%').map_or((text, 1.0), |number| (number.trim_end(), 100.0));
    match number.parse::<f64>().map(|number| number / scale) {
        Ok(share) if (0.0..=1.0).contains(&share) => Ok(share),
        _ => Err("use a percentage such as `0.5%`, or a number from 0 to 1".to_owned()),
    }
}
