//! The tickers seen so far, each with a number.

use std::collections::HashMap;

/// Tickers in the order in which they were first seen.
///
/// Rows come ticker by ticker, or in rounds of all tickers. The ticker that followed last time is tried first, so few
/// rows need a lookup.
#[derive(Debug, Default)]
pub(super) struct TickerNumbers {
    names: Vec<String>,
    numbers: HashMap<String, usize>,
    /// For each ticker, the one that came after it.
    followers: Vec<usize>,
    current: usize,
}

impl TickerNumbers {
    /// The number of a ticker; a new ticker gets the next one.
    pub(super) fn number(&mut self, name: &str) -> usize {
        if self.names.get(self.current).is_some_and(|current| current == name) {
            return self.current;
        }
        let follower = self.followers.get(self.current).copied().unwrap_or_default();
        let number = match self.names.get(follower) {
            Some(expected) if expected == name => follower,
            _ => self.look_up(name),
        };
        if let Some(follower) = self.followers.get_mut(self.current) {
            *follower = number;
        }
        self.current = number;
        number
    }

    fn look_up(&mut self, name: &str) -> usize {
        if let Some(&number) = self.numbers.get(name) {
            return number;
        }
        let number = self.names.len();
        self.names.push(name.to_owned());
        self.followers.push(number);
        self.numbers.insert(name.to_owned(), number);
        number
    }

    pub(super) fn into_names(self) -> Vec<String> {
        self.names
    }
}

#[cfg(test)]
mod tests {
    use super::TickerNumbers;

    #[test]
    fn a_ticker_has_the_same_number_in_any_order() {
        let mut tickers = TickerNumbers::default();
        let met: Vec<usize> = "A A B C A B C C A D B A D".split(' ').map(|name| tickers.number(name)).collect();
        assert_eq!(met, [0, 0, 1, 2, 0, 1, 2, 2, 0, 3, 1, 0, 3]);
        assert_eq!(tickers.into_names(), ["A", "B", "C", "D"]);
    }
}
