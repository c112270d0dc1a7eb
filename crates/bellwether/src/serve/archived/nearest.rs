//! The nearest request that can be answered, for one that cannot.

use super::Asked;
use super::state::{ArchiveState, OpenedArchive};
use url::form_urlencoded;

use crate::error::Result;
use crate::interface::{Endpoint, Period, Ticker};
use crate::plan::Request;
use crate::tables::Table;
use crate::text::problem::nearest;

/// The target of the nearest request that a state can answer.
pub(super) fn of(opened: &OpenedArchive, state: &ArchiveState, asked: &Asked) -> Result<Option<String>> {
    if let Some(key) = asked.series() {
        let tickers = state.view.listed_tickers()?;
        let like = nearest(key.ticker.as_str(), tickers.iter().map(Ticker::as_str));
        let meant = like.and_then(|symbol| symbol.parse::<Ticker>().ok());
        let ticker = if tickers.binary_search(&key.ticker).is_ok() { Some(key.ticker.clone()) } else { meant };
        let series = ticker.map(|ticker| state.view.series_of(&ticker)).transpose()?.unwrap_or_default();
        let signals = series.into_iter().map(|(key, _)| key).filter(|key| key.table == Some(Table::Signals));
        let index_of = |period: Option<Period>| period.map_or(0, Period::index);
        let near =
            signals.min_by_key(|one| (index_of(one.period).abs_diff(index_of(key.period)), one.regime != key.regime));
        if let Some(near) = near {
            let (period, regime) = (near.period.unwrap_or_default(), near.regime.unwrap_or_default());
            return Ok(Some(Request::of_series(asked.endpoint, near.ticker, period, regime).target()));
        }
    }
    let by_then = opened.answered.iter().filter(|(_, (_, watch))| watch.since <= state.at);
    let mut targets: Vec<(Endpoint, String)> =
        by_then.map(|(words, (endpoint, _))| (*endpoint, target_of(words))).collect();
    targets.sort_unstable();
    let table = Table::of(asked.endpoint);
    let kinds: [&dyn Fn(Endpoint) -> bool; 3] =
        [&|endpoint| endpoint == asked.endpoint, &|endpoint| Table::of(endpoint) == table, &|_| true];
    let of_kind = |is_of_kind: &dyn Fn(Endpoint) -> bool| {
        let some: Vec<&str> =
            targets.iter().filter(|(endpoint, _)| is_of_kind(*endpoint)).map(|(_, target)| target.as_str()).collect();
        nearest(&asked.target, some.iter().copied()).or_else(|| some.first().copied()).map(ToOwned::to_owned)
    };
    Ok(kinds.into_iter().find_map(of_kind))
}

/// The target of a request in words.
pub(super) fn target_of(words: &str) -> String {
    let (mut path, mut query) = (words, Vec::new());
    for name in ["regime", "period", "sector"] {
        if let Some((before, value)) = path.rsplit_once(&format!(" {name}=")) {
            path = before;
            query.push((name, value));
        }
    }
    let query = form_urlencoded::Serializer::new(String::new()).extend_pairs(query.into_iter().rev()).finish();
    if query.is_empty() { path.to_owned() } else { format!("{path}?{query}") }
}

#[cfg(test)]
mod tests {
    use super::target_of;

    #[test]
    fn a_request_in_words_becomes_its_target() {
        for (words, target) in [
            ("signals-history-batched-all", "signals-history-batched-all"),
            ("signals/XOM period=15d regime=bear", "signals/XOM?period=15d&regime=bear"),
            (
                "signals-history-all sector=real estate period=1m regime=bull",
                "signals-history-all?sector=real+estate&period=1m&regime=bull",
            ),
            (
                "signals-history-all sector=oil & gas+#1 period=1m",
                "signals-history-all?sector=oil+%26+gas%2B%231&period=1m",
            ),
        ] {
            assert_eq!(target_of(words), target);
        }
    }
}
