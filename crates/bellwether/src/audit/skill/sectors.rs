//! The sectors of the tickers that have prices.

use super::prices::Prices;
use crate::audit::subject::Subject;

/// The sector of each ticker.
pub(super) struct Sectors {
    /// Their names, in order.
    pub(super) names: Vec<String>,
    /// The index of the sector of each ticker.
    of_ticker: Vec<usize>,
}

impl Sectors {
    pub(super) fn of(subject: &Subject, prices: &Prices) -> Self {
        let tickers = prices.tickers();
        let of_tickers: Vec<&str> = tickers.iter().map(|ticker| subject.sector(ticker)).collect();
        let mut names: Vec<String> = of_tickers.iter().map(|sector| (*sector).to_owned()).collect();
        names.sort_unstable();
        names.dedup();
        let index_of = |sector: &&str| names.partition_point(|name| name.as_str() < *sector);
        Self { of_ticker: of_tickers.iter().map(index_of).collect(), names }
    }

    /// The index of the sector of a ticker.
    pub(super) fn index_of(&self, ticker: u16) -> usize {
        self.of_ticker[usize::from(ticker)]
    }
}
