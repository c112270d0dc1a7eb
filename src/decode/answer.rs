//! An answer that is to be decoded, and what may be asked of its records.

use super::record::{self, Fields};
use super::truncate;
use crate::interface::Ticker;
use crate::plan::Request;
use crate::tables::SeriesKey;

/// How answers are read.
#[derive(Clone, Copy, Debug)]
pub struct Rules {
    /// Whether fields that the interface does not know are kept, beside being counted.
    pub keep_extra: bool,
}

/// An answer to be decoded: what its meaning depends on.
#[derive(Clone, Copy, Debug)]
pub struct Answer<'a> {
    /// What was asked.
    pub request: &'a Request,
    /// How it is read.
    pub rules: Rules,
}

impl Answer<'_> {
    pub(super) fn asked_ticker(&self) -> &Ticker {
        self.request.ticker.as_ref().expect("an operation of one ticker is asked with its ticker")
    }

    /// The key of rows that are of the asked ticker as a whole.
    pub(super) fn asked_key(&self) -> SeriesKey {
        SeriesKey::of_ticker(self.request.endpoint, self.asked_ticker().clone())
    }

    /// Makes sure that a series is the one that was asked for, as far as the request names it.
    pub(super) fn check(&self, asked: &str, key: &SeriesKey) -> Result<(), String> {
        self.check_ticker(asked, &key.ticker)?;
        if let (Some(asked), Some(period)) = (self.request.period, key.period)
            && asked != period
        {
            return Err(format!("it is of period `{period}`, which was not asked for"));
        }
        if let (Some(asked), Some(regime)) = (self.request.regime, key.regime)
            && asked != regime
        {
            return Err(format!("it is of regime `{regime}`, which was not asked for"));
        }
        Ok(())
    }

    pub(super) fn check_ticker(&self, asked: &str, ticker: &Ticker) -> Result<(), String> {
        let is_asked = ticker.as_str() == asked;
        if is_asked { Ok(()) } else { Err(format!("it is of ticker `{ticker}`, not of `{}`", truncate::shown(asked))) }
    }
}

impl Rules {
    /// Unknown fields as they are kept.
    pub(super) fn extra(&self, unknown: &Fields<'_>) -> Option<String> {
        if self.keep_extra { record::as_object(unknown.iter().map(|(name, json)| (&**name, *json))) } else { None }
    }
}
