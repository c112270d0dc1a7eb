//! Which rows of a dataset are wanted.

use std::collections::BTreeSet;

use bellwether::interface::{Period, Regime, Sector, Ticker};
use bellwether::load::Selection;
use chrono::NaiveDate;

use super::help::SELECTION;
use super::typed::{day, one_of, service_value};

/// The options that choose rows; without them all are wanted.
#[derive(Debug, clap::Args)]
pub(super) struct WantedRows {
    /// Only these tickers, separated by commas.
    #[arg(long = "ticker", value_name = "TICKER", value_delimiter = ',', value_parser = service_value::<Ticker>, help_heading = SELECTION)]
    pub(super) tickers: Vec<Ticker>,

    /// Only these sectors.
    #[arg(long = "sector", value_name = "SECTOR", value_delimiter = ',', value_parser = service_value::<Sector>, help_heading = SELECTION)]
    pub(super) sectors: Vec<Sector>,

    /// Only these horizons: 1d to 30d, 1m to 6m.
    #[arg(long = "period", value_name = "PERIOD", value_delimiter = ',', value_parser = service_value::<Period>, help_heading = SELECTION)]
    pub(super) periods: Vec<Period>,

    /// Only these market regimes.
    #[arg(long = "regime", value_name = "REGIME", value_delimiter = ',', value_parser = one_of::<Regime>(Regime::ALL.map(Regime::as_str)), help_heading = SELECTION)]
    pub(super) regimes: Vec<Regime>,

    /// Only dates from this day on.
    #[arg(long, value_name = "DAY", value_parser = day, help_heading = SELECTION)]
    pub(super) from: Option<NaiveDate>,

    /// Only dates before this day.
    #[arg(long, value_name = "DAY", value_parser = day, help_heading = SELECTION)]
    pub(super) to: Option<NaiveDate>,
}

impl WantedRows {
    /// The rows, with all columns.
    pub(super) fn selection(&self) -> Selection {
        Selection {
            columns: None,
            tickers: set(&self.tickers),
            sectors: set(&self.sectors),
            periods: set(&self.periods),
            regimes: set(&self.regimes),
            from: self.from,
            to: self.to,
        }
    }
}

/// The values of an option; none if it was not given.
fn set<T: Ord + Clone>(values: &[T]) -> Option<BTreeSet<T>> {
    (!values.is_empty()).then(|| values.iter().cloned().collect())
}
