//! The tickers seen so far, each with a number.

use std::collections::HashMap;

/// Tickers in the order in which they were first seen.
///
/// Rows come ticker by ticker, or in rounds of all tickers. The ticker that followed last time is tried first, so few
/// rows need a lookup.
#[derive(Debug, Default)]
pub(super) struct Tickers {
    names: Vec<String>,
    places: HashMap<String, usize>,
    /// For each ticker, the one that came after it.
    followers: Vec<usize>,
    current: usize,
}

impl Tickers {
    /// The number of a ticker; a new ticker gets the next one.
    pub(super) fn place(&mut self, name: &str) -> usize {
        if self.names.get(self.current).is_some_and(|current| current == name) {
            return self.current;
        }
        let follower = self.followers.get(self.current).copied().unwrap_or_default();
        let place = match self.names.get(follower) {
            Some(expected) if expected == name => follower,
            _ => self.found(name),
        };
        if let Some(follower) = self.followers.get_mut(self.current) {
            *follower = place;
        }
        self.current = place;
        place
    }

    fn found(&mut self, name: &str) -> usize {
        if let Some(&place) = self.places.get(name) {
            return place;
        }
        let place = self.names.len();
        self.names.push(name.to_owned());
        self.followers.push(place);
        self.places.insert(name.to_owned(), place);
        place
    }

    pub(super) fn into_names(self) -> Vec<String> {
        self.names
    }
}

#[cfg(test)]
mod tests {
    use super::Tickers;

    #[test]
    fn a_ticker_has_one_number_in_whatever_order_it_comes() {
        let mut tickers = Tickers::default();
        let met: Vec<usize> = "A A B C A B C C A D B A D".split(' ').map(|name| tickers.place(name)).collect();
        assert_eq!(met, [0, 0, 1, 2, 0, 1, 2, 2, 0, 3, 1, 0, 3]);
        assert_eq!(tickers.into_names(), ["A", "B", "C", "D"]);
    }
}
