//! Signals: the history of a ticker in its two forms, and the latest signal.
//!
//! Text is borrowed from the body where it can be. Dates stay text here: what they mean depends on the definition's
//! rule, which this room does not know.

use std::borrow::Cow;

use serde::{Deserialize, Serialize};

use super::parameter::{Period, Regime, Signal};
use super::ticker::Ticker;

/// One prediction of a history.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct HistoryEntry<'a> {
    /// The date-time of the prediction; without an offset in the batched form.
    #[serde(borrow)]
    pub date: Cow<'a, str>,
    /// Buy or sell.
    pub signal: Signal,
    /// The confidence; its bounds are not shown.
    pub confidence: f64,
}

/// A ticker's history in sector form; `E` is [`HistoryEntry`] or a body's raw text of one.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct SectorHistory<E> {
    /// The symbol.
    pub ticker: Ticker,
    /// The regime asked for.
    pub regime: Regime,
    /// The period asked for.
    pub period: Period,
    /// The entries.
    pub predictions: Vec<E>,
}

/// A ticker's history in batched form; `E` is [`HistoryEntry`] or a body's raw text of one.
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
    /// The date-time of the signal; may be null or missing, and what that means is not shown.
    #[serde(borrow)]
    pub date: Option<Cow<'a, str>>,
    /// The period asked for.
    pub period: Period,
    /// The regime asked for.
    pub regime: Regime,
    /// Buy or sell.
    pub signal: Signal,
    /// The confidence; its bounds are not shown.
    pub confidence: f64,
}

/// The latest signal as it was written before change set D, when `ei` and `ci` stood for signal and confidence.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct IndexedSignal<'a> {
    /// The symbol.
    pub ticker: Ticker,
    /// The date-time of the signal.
    #[serde(borrow)]
    pub date: Cow<'a, str>,
    /// The period asked for.
    pub period: Period,
    /// The regime asked for.
    pub regime: Regime,
    /// What `signal` was called.
    pub ei: Signal,
    /// What `confidence` was called.
    pub ci: f64,
}
