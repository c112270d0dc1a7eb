//! Python arguments as values of the library.

use std::str::FromStr;

use bellwether::error::{Error, Result};
use bellwether::interface::{ChangeSet, Unknown};
use bellwether::load::Selection;
use bellwether::plan::Vintage;
use bellwether::time::{Clock, as_of};
use chrono::{DateTime, NaiveDate, Utc};
use pyo3::prelude::*;

/// A part of a dataset, as a Python argument.
#[derive(FromPyObject)]
#[pyo3(from_item_all)]
pub(crate) struct Part {
    pub(crate) columns: Option<Vec<String>>,
    tickers: Option<Vec<String>>,
    start: Option<String>,
    end: Option<String>,
}

impl Part {
    pub(crate) fn selection(&self) -> Result<Selection> {
        let date = |text: &Option<String>| text.as_deref().map(day).transpose();
        Ok(Selection {
            columns: self.columns.clone(),
            tickers: self.tickers.as_ref().map(|names| names.iter().map(|name| known(name)).collect()).transpose()?,
            from: date(&self.start)?,
            to: date(&self.end)?,
        })
    }
}

/// A point of the service's change record.
pub(crate) fn known_change_set(text: &str) -> Result<ChangeSet> {
    known(text)
}

/// A value of a closed set.
fn known<T: FromStr<Err = Unknown>>(text: &str) -> Result<T> {
    text.parse().map_err(|unknown: Unknown| usage(format!("{unknown}; {}", unknown.hint)))
}

/// A calendar day.
pub(crate) fn day(text: &str) -> Result<NaiveDate> {
    text.parse().map_err(|_| usage(format!("`{text}` is not a day: use `2026-03-31`")))
}

/// An instant, or the end of a day.
pub(crate) fn moment(text: Option<&str>) -> Result<Option<DateTime<Utc>>> {
    text.map(|text| as_of(text, Clock::System.now()).map_err(usage)).transpose()
}

/// Which observation of a signal to take.
pub(crate) fn vintage_of(text: Option<&str>) -> Result<Option<Vintage>> {
    text.map(|text| text.parse().map_err(|refusal: String| usage(refusal.replace('\n', "; ")))).transpose()
}

fn usage(what: String) -> Error {
    Error::usage(what, "check the arguments")
}
