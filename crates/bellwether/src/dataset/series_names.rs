//! The names of closed sets that the series of a dataset have.
//!
//! A dictionary has these alone, since frame libraries make categories of its names: an Arrow file has one dictionary for
//! all of its rows, which is written before they are known.

use std::collections::{BTreeSet, HashSet};

use super::slab_columns::Ranked;
use crate::interface::{Endpoint, Period, Regime};
use crate::tables::SeriesKey;

/// The periods, regimes and operations of some series; empty for all that there are.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SeriesNames {
    pub(super) periods: BTreeSet<Period>,
    pub(super) regimes: BTreeSet<Regime>,
    pub(super) sources: BTreeSet<Endpoint>,
}

impl SeriesNames {
    /// The names of some series, and of the operations that gave them.
    pub fn of(series: &HashSet<SeriesKey>, sources: BTreeSet<Endpoint>) -> Self {
        Self {
            periods: series.iter().filter_map(|key| key.period).collect(),
            regimes: series.iter().filter_map(|key| key.regime).collect(),
            sources,
        }
    }
}

/// Names in order, and the code of each rank among all spellings of the set.
pub(super) fn dictionary<T: Ranked + Ord>(
    occurring: &BTreeSet<T>,
    spelled: fn(T) -> &'static str,
) -> (Vec<&'static str>, Vec<i8>) {
    let all = T::spellings();
    let names: BTreeSet<&str> = occurring.iter().map(|&value| spelled(value)).collect();
    if names.is_empty() {
        let codes = (0..all.len()).map(|rank| rank as i8).collect();
        return (all, codes);
    }
    let kept: Vec<&'static str> = all.iter().copied().filter(|name| names.contains(name)).collect();
    let code = |name: &&'static str| kept.binary_search(name).map_or(0, |code| code as i8);
    let codes = all.iter().map(code).collect();
    (kept, codes)
}
