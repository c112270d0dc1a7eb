//! A horizon and a market regime as one value: `5d bull`.

use std::fmt;
use std::str::FromStr;

use schemars::json_schema;

use super::values::{Refusal, parsed_from_text};
use crate::interface::{Period, Regime, Unknown};
use crate::text::problem::suggestion;

/// A period and a regime.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Pair {
    pub(crate) period: Period,
    pub(crate) regime: Regime,
}

impl fmt::Display for Pair {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{} {}", self.period, self.regime)
    }
}

impl FromStr for Pair {
    type Err = Refusal;

    fn from_str(text: &str) -> Result<Self, Refusal> {
        let words: Vec<&str> = text.split(' ').collect();
        let [period, regime] = words[..] else {
            return Err(format!("`{text}` is not a pair\nuse a period and a regime, such as `5d bull`"));
        };
        if let (Ok(regime), Ok(period)) = (period.parse::<Regime>(), regime.parse::<Period>()) {
            return Err(format!("`{text}` is not a pair\nthe period comes first: `{period} {regime}`"));
        }
        let period = period.parse().map_err(|unknown: Unknown| format!("{unknown} in `{text}`\n{}", unknown.hint))?;
        let regime = regime.parse().map_err(|unknown: Unknown| {
            format!("{unknown} in `{text}`\n{}", suggestion(regime, &Regime::ALL.map(Regime::as_str), "regimes are"))
        })?;
        Ok(Self { period, regime })
    }
}

parsed_from_text!(Pair, {
    let pattern = "^([1-9]d|[12][0-9]d|30d|[1-6]m) (bear|bull|neutral)$";
    json_schema!({ "type": "string", "pattern": pattern, "examples": ["5d bull", "1m neutral"] })
});
