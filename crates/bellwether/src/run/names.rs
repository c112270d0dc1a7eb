//! Lists of names in messages: the count, and the first few.

use std::fmt::Display;

use crate::tables::SeriesKey;
use crate::text::human::group_digits;

/// How many names are listed.
const SHOWN: usize = 8;

/// `1 ticker: A`; `12 tickers: A, B, C, D, E, F, G, H and 4 more`.
pub(super) fn some_of(one: &str, names: impl ExactSizeIterator<Item = impl Display>) -> String {
    let (count, plural) = (names.len() as u64, if one.ends_with("s") { "" } else { "s" });
    let ending = if count == 1 { "" } else { plural };
    format!("{} {one}{ending}: {}", group_digits(count), list(names))
}

/// `A, B, C, D, E, F, G, H and 4 more`.
pub(super) fn list(names: impl ExactSizeIterator<Item = impl Display>) -> String {
    let more = names.len().saturating_sub(SHOWN);
    let shown: Vec<String> = names.take(SHOWN).map(|name| name.to_string()).collect();
    let shown = shown.join(", ");
    if more == 0 { shown } else { format!("{shown} and {} more", group_digits(more as u64)) }
}

/// A series, from any operation: `XOM 5d bull`.
pub(super) fn in_words(key: &SeriesKey) -> String {
    let part = |part: Option<&'static str>| part.map_or_else(String::new, |part| format!(" {part}"));
    let (period, regime) = (part(key.period.map(|it| it.as_str())), part(key.regime.map(|it| it.as_str())));
    format!("{}{period}{regime}", key.ticker)
}

#[cfg(test)]
mod tests {
    use super::some_of;

    #[test]
    fn the_first_names_are_listed_and_the_rest_counted() {
        assert_eq!(some_of("ticker", ["A"].iter()), "1 ticker: A");
        assert_eq!(some_of("series", ["A 5d bull", "B 5d bull"].iter()), "2 series: A 5d bull, B 5d bull");
        assert_eq!(some_of("ticker", 0..1_500), "1,500 tickers: 0, 1, 2, 3, 4, 5, 6, 7 and 1,492 more");
    }
}
