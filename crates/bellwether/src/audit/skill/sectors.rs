//! The sectors of the tickers that have prices.

use bellwether_statistics::rank_correlation;

use super::measures::LEAST_NAMES;
use super::prices::Prices;
use crate::audit::subject::Subject;

/// The sector of each ticker.
pub(super) struct Sectors {
    /// Their names, in order.
    pub(super) names: Vec<String>,
    /// The place of the sector of each ticker.
    of_ticker: Vec<usize>,
}

impl Sectors {
    pub(super) fn of(subject: &Subject, prices: &Prices) -> Self {
        let tickers = prices.tickers();
        let of_tickers: Vec<&str> = tickers.iter().map(|ticker| subject.sector(ticker)).collect();
        let mut names: Vec<String> = of_tickers.iter().map(|sector| (*sector).to_owned()).collect();
        names.sort_unstable();
        names.dedup();
        let place = |sector: &&str| names.partition_point(|name| name.as_str() < *sector);
        Self { of_ticker: of_tickers.iter().map(place).collect(), names }
    }

    /// The place of the sector of a ticker.
    pub(super) fn place(&self, ticker: u16) -> usize {
        self.of_ticker[usize::from(ticker)]
    }

    /// The number of names of each sector among some, and their rank correlation; none with too few names.
    pub(super) fn correlations(&self, sectors: &[usize], values: &[f64], returns: &[f64]) -> Vec<(u64, Option<f64>)> {
        let mut split = vec![(Vec::new(), Vec::new()); self.names.len()];
        for ((sector, value), of) in sectors.iter().zip(values).zip(returns) {
            split[*sector].0.push(*value);
            split[*sector].1.push(*of);
        }
        let correlation = |(values, returns): &(Vec<f64>, Vec<f64>)| {
            let is_enough = returns.len() >= LEAST_NAMES;
            (returns.len() as u64, is_enough.then(|| rank_correlation(values, returns)).flatten())
        };
        split.iter().map(correlation).collect()
    }
}
