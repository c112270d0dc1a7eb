//! The names that a selection may have: those that occur in the rows.

use std::collections::BTreeSet;
use std::fmt::Display;

use arrow::array::AsArray;
use arrow::compute::cast;
use arrow::datatypes::DataType;

use super::{Dataset, DatasetOrigin, Selection};
use crate::disk::file::FileError;
use crate::error::{Error, Result};
use crate::export::{PublishedReader, is_of_news};
use crate::facts::Facts;
use crate::interface::{Period, Regime, Sector, Ticker};
use crate::plan::Column;
use crate::run::{absent_sector, absent_tickers};

/// The names in the rows of a dataset.
#[derive(Default)]
struct Names {
    tickers: BTreeSet<Ticker>,
    pairs: BTreeSet<(Period, Regime)>,
}

impl Dataset {
    /// The tickers that it has rows of, whichever are selected.
    ///
    /// # Errors
    ///
    /// When its record or the archive cannot be read.
    pub fn tickers(&self) -> Result<BTreeSet<Ticker>> {
        Ok(self.names_of_rows()?.tickers)
    }

    /// The pairs of period and regime that it has rows of, as far as they are selected.
    pub(super) fn selected_pairs(&self) -> Result<impl Iterator<Item = (Period, Regime)>> {
        let Selection { periods, regimes, .. } = self.selection().clone();
        let is_selected = move |(period, regime): &(Period, Regime)| {
            periods.as_ref().is_none_or(|periods| periods.contains(period))
                && regimes.as_ref().is_none_or(|regimes| regimes.contains(regime))
        };
        Ok(self.names_of_rows()?.pairs.into_iter().filter(is_selected))
    }

    /// Refuses names that it has no rows of.
    pub(super) fn check_names(&self, selection: &Selection) -> Result<()> {
        let Selection { tickers, sectors, periods, regimes, .. } = selection;
        if tickers.is_some() || periods.is_some() || regimes.is_some() {
            let known = self.names_of_rows()?;
            if let Some(tickers) = tickers {
                self.check_tickers(tickers, &known.tickers)?;
            }
            absent("period", periods.as_ref(), &known.pairs.iter().map(|(period, _)| *period).collect())?;
            absent("regime", regimes.as_ref(), &known.pairs.iter().map(|(_, regime)| *regime).collect())?;
        }
        let Some(sectors) = sectors else { return Ok(()) };
        let known = self.sectors()?;
        let Some(sector) = sectors.iter().find(|sector| !known.contains(*sector)) else { return Ok(()) };
        Err(Error::usage(absent_sector(sector, known), "correct the sector, or leave it out"))
    }

    fn check_tickers(&self, named: &BTreeSet<Ticker>, known: &BTreeSet<Ticker>) -> Result<()> {
        let absent: Vec<&Ticker> = named.difference(known).collect();
        if absent.is_empty() {
            return Ok(());
        }
        let what = if is_of_news(&self.schema_of_all(), self.names()) { "no articles" } else { "no signals" };
        Err(Error::usage(absent_tickers(what, &absent, known.iter()), "correct the ticker, or leave it out"))
    }

    fn names_of_rows(&self) -> Result<Names> {
        match &self.0 {
            DatasetOrigin::Published(reading) => {
                let facts = Facts::from_json(&reading.facts()?);
                let facts = facts.map_err(|source| FileError::damage(reading.folder(), source))?;
                Ok(Names {
                    tickers: facts.tickers.iter().filter_map(|name| name.parse().ok()).collect(),
                    pairs: facts.pairs.into_iter().collect(),
                })
            }
            DatasetOrigin::Built(built) => {
                let mut names = Names::default();
                for series in built.series()? {
                    names.tickers.insert(series.ticker);
                    names.pairs.extend(series.period.zip(series.regime));
                }
                Ok(names)
            }
        }
    }

    /// The sectors in the rows. No facts tell them, so a version is read.
    fn sectors(&self) -> Result<BTreeSet<Sector>> {
        let reading = match &self.0 {
            DatasetOrigin::Published(reading) => reading,
            DatasetOrigin::Built(built) => return built.sectors(),
        };
        let column = self.names().of(Column::Sector.name()).to_owned();
        let alone = Selection { columns: Some(vec![column]), ..Selection::default() };
        let mut sectors = BTreeSet::new();
        for batch in PublishedReader::clone(reading).select(alone)?.rows()? {
            let texts = cast(batch?.column(0), &DataType::Utf8).map_err(Error::frame)?;
            let found: BTreeSet<&str> = texts.as_string::<i32>().iter().flatten().collect();
            sectors.extend(found.into_iter().filter_map(|name| name.parse().ok()));
        }
        Ok(sectors)
    }
}

/// Refuses periods or regimes that are not known.
pub(super) fn absent<T: Ord + Display>(what: &str, named: Option<&BTreeSet<T>>, known: &BTreeSet<T>) -> Result<()> {
    let Some(other) = named.and_then(|named| named.difference(known).next()) else { return Ok(()) };
    let all: Vec<String> = known.iter().map(|value| format!("`{value}`")).collect();
    let hint = format!("the {what}s of the dataset are {}", all.join(", "));
    Err(Error::usage(format!("no signals for {what} `{other}`"), hint))
}
