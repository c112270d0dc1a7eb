//! The split of a dataset by sector.

use std::collections::{BTreeMap, HashMap};

use bellwether_statistics::ClusteredShare;
use bellwether_statistics::counts::Share;

use super::{Facts, Flips, ShareDifference, SignalTotals};
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
    /// The buys of each of its tickers.
    buys: Vec<Share>,
}

/// The two sectors that are furthest apart in their share of buys.
#[derive(Clone, Copy, Debug)]
pub struct SectorExtremes<'a> {
    /// The one with the lowest share.
    pub lowest: &'a SectorFacts,
    /// The one with the highest.
    pub highest: &'a SectorFacts,
    /// Whether they differ by more than luck; none if too few tickers tell.
    ///
    /// The clusters are tickers: the signals of one repeat one another from date to date and from pair to pair. Dates do
    /// not separate sectors, since each has them all.
    pub test: Option<ShareDifference>,
}

impl<'a> SectorExtremes<'a> {
    /// Those of some sectors; `None` with fewer than two that have a name.
    pub fn of(sectors: &'a [SectorFacts]) -> Option<Self> {
        let known: Vec<&SectorFacts> = sectors.iter().filter(|sector| sector.name.is_some()).collect();
        let share = |sector: &&SectorFacts| sector.totals.buy_share().unwrap_or_default();
        let lowest = known.iter().copied().min_by(|one, other| share(one).total_cmp(&share(other)))?;
        let highest = known.iter().copied().max_by(|one, other| share(one).total_cmp(&share(other)))?;
        let count = known.len() as u64;
        let clustered = |sector: &SectorFacts| ClusteredShare::of(sector.buys.iter().copied());
        let test = || clustered(lowest)?.difference(&clustered(highest)?, count * (count - 1) / 2);
        (count > 1).then(|| Self { lowest, highest, test: test() })
    }
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
                buys: Vec::new(),
            });
            of_sector.tickers += 1;
            of_sector.totals = of_sector.totals + ticker.totals;
            of_sector.buys.push(Share { hits: ticker.totals.buys, of: ticker.totals.rows });
            of_sector.flips = [of_sector.flips, ticker.flips].into_iter().sum();
        }
        let unknown = split.remove(&None);
        match split.is_empty() {
            true => Vec::new(),
            false => split.into_values().chain(unknown).collect(),
        }
    }
}
