//! The split of a dataset by sector.

use std::collections::{BTreeMap, HashMap};

use super::{Facts, Flips, SignalTotals};
use crate::interface::{Sector, Ticker};

/// The signals of the tickers of a sector.
#[derive(Clone, Debug)]
pub struct SectorFacts {
    /// Its name; `None` for tickers that the service lists in no sector.
    pub name: Option<Sector>,
    /// Number of tickers.
    pub tickers: u64,
    /// Totals of their signals.
    pub totals: SignalTotals,
    /// How often they flip.
    pub flips: Flips,
}

impl Facts {
    /// The dataset by sector, tickers without a sector last; empty if no sector is known.
    pub fn by_sector(&self, sectors: &HashMap<Ticker, Sector>) -> Vec<SectorFacts> {
        let mut split: BTreeMap<Option<&Sector>, SectorFacts> = BTreeMap::new();
        for ticker in &self.tickers {
            let name = ticker.name.parse::<Ticker>().ok().and_then(|ticker| sectors.get(&ticker));
            let of_sector = split.entry(name).or_insert_with(|| SectorFacts {
                name: name.cloned(),
                tickers: 0,
                totals: SignalTotals::default(),
                flips: Flips::default(),
            });
            of_sector.tickers += 1;
            of_sector.totals = of_sector.totals + ticker.totals;
            of_sector.flips = [of_sector.flips, ticker.flips].into_iter().sum();
        }
        let unknown = split.remove(&None);
        match split.is_empty() {
            true => Vec::new(),
            false => split.into_values().chain(unknown).collect(),
        }
    }
}
