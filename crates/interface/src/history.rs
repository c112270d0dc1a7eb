//! Signals: the history of a ticker in its two shapes, and the latest signal.
//!
//! Text is borrowed from the body if possible. Dates stay text here: their meaning depends on a rule of the definition.

use std::borrow::Cow;

use serde::{Deserialize, Serialize};

use super::parameter::{Period, Regime, Signal};
use super::ticker::Ticker;

/// One prediction of a history.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct HistoryEntry<'a> {
    /// The date-time of the prediction; without an offset in the batched shape.
    #[serde(borrow)]
    pub date: Cow<'a, str>,
    /// Buy or sell.
    pub signal: Signal,
    /// The confidence; its bounds are not documented.
    pub confidence: f64,
}

/// A ticker's history in the sector shape; `E` is [`HistoryEntry`] or its raw text.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct SectorHistory<E> {
    /// The symbol.
    pub ticker: Ticker,
    /// The requested regime.
    pub regime: Regime,
    /// The requested period.
    pub period: Period,
    /// The entries.
    pub predictions: Vec<E>,
}

/// A ticker's history in the batched shape; `E` is [`HistoryEntry`] or its raw text.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct BatchedHistory<E> {
    /// The entries, newest first.
    pub items: Vec<E>,
    /// The period of this ticker's history.
    pub period: Period,
    /// The regime of this ticker's history.
    pub regime: Regime,
    /// The symbol.
    pub ticker: Ticker,
}

/// The latest signal of a ticker.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct LatestSignal<'a> {
    /// The symbol.
    pub ticker: Ticker,
    /// The date-time of the signal; may be null or missing, and what that means is not documented.
    #[serde(borrow)]
    pub date: Option<Cow<'a, str>>,
    /// The requested period.
    pub period: Period,
    /// The requested regime.
    pub regime: Regime,
    /// Buy or sell.
    pub signal: Signal,
    /// The confidence; its bounds are not documented.
    pub confidence: f64,
}

/// The latest signal before change set D, when `signal` and `confidence` were `ei` and `ci`.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct IndexedSignal<'a> {
    /// The symbol.
    pub ticker: Ticker,
    /// The date-time of the signal.
    #[serde(borrow)]
    pub date: Cow<'a, str>,
    /// The requested period.
    pub period: Period,
    /// The requested regime.
    pub regime: Regime,
    /// The older name of `signal`.
    pub ei: Signal,
    /// The older name of `confidence`.
    pub ci: f64,
}
