//! The requests of a plan: the ways to get the signals, the tickers to fetch news for, and what the answers mean.

use std::collections::BTreeSet;

use super::{Filter, Request, Validator};
use crate::definition::{DatasetKind, DatesPer, HistoryForm, ListOrder, NaiveRule, Pair, TickerList, Tickers};
use crate::interface::{Endpoint, Period, Regime, Ticker};
use crate::tables::{Conventions, SeriesKey, Table};
use crate::text::problem::suggestion;

/// A way to get the signals.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OperationRequests {
    /// The operation that returns them.
    pub endpoint: Endpoint,
    /// The requests.
    pub list: RequestList,
    /// The tickers that have no request of their own, whatever the list.
    pub excluded: BTreeSet<Ticker>,
}

/// The requests of an operation.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum RequestList {
    /// These requests, in order.
    Listed(Vec<Request>),
    /// Each ticker of a list with each period and regime; alone if there are none.
    EachTicker(TickerSource, Vec<(Period, Regime)>),
}

/// Where a list of tickers comes from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum TickerSource {
    /// The definition lists them.
    Listed(Vec<Ticker>),
    /// The service lists them as available.
    Available,
    /// The answers to these requests name them.
    NamedBy(Vec<Request>),
    /// The signals name them.
    Signals,
}

impl TickerSource {
    /// The requests whose answers name the tickers; none if they are listed or follow the signals.
    pub fn listing(&self) -> Vec<Request> {
        match self {
            Self::Listed(_) | Self::Signals => Vec::new(),
            Self::Available => vec![Request::bare(Endpoint::TickersAvailable)],
            Self::NamedBy(requests) => requests.clone(),
        }
    }

    /// The same list without those that are left out.
    fn without(mut self, excluded: &BTreeSet<Ticker>) -> Self {
        if let Self::Listed(tickers) = &mut self {
            tickers.retain(|ticker| !excluded.contains(ticker));
        }
        self
    }
}

impl OperationRequests {
    /// The requests of the way, once its tickers are known.
    pub fn requests(&self, tickers: &[Ticker]) -> Vec<Request> {
        match &self.list {
            RequestList::Listed(requests) => requests.clone(),
            RequestList::EachTicker(_, pairs) => {
                let tickers = tickers.iter().filter(|ticker| !self.excluded.contains(*ticker));
                tickers.flat_map(|ticker| of_each_pair(self.endpoint, ticker, pairs)).collect()
            }
        }
    }

    /// Whether each ticker in its answer has its own period and regime.
    pub(crate) fn is_batch(&self) -> bool {
        matches!(self.endpoint, Endpoint::SignalsHistoryBatchedAll | Endpoint::SignalsHistoryBatched)
    }

    /// The requests in place of a batch: for what it had of each ticker, as far as a filter takes it.
    pub(crate) fn requests_of<'k>(&self, series: impl Iterator<Item = &'k SeriesKey>, filter: &Filter) -> Vec<Request> {
        series
            .filter(|key| !self.excluded.contains(&key.ticker) && filter.takes(&key.ticker, key.period, key.regime))
            .filter_map(|key| Some(Request::of_series(self.endpoint, key.ticker.clone(), key.period?, key.regime?)))
            .collect()
    }
}

/// A request for a ticker with each pair; one without a pair if there are none.
fn of_each_pair(endpoint: Endpoint, ticker: &Ticker, pairs: &[(Period, Regime)]) -> Vec<Request> {
    if pairs.is_empty() {
        return vec![Request::of_ticker(endpoint, ticker.clone())];
    }
    pairs.iter().map(|&(period, regime)| Request::of_series(endpoint, ticker.clone(), period, regime)).collect()
}

const BATCH: &str = "on a batch, which has all tickers";

impl<'d> Validator<'d> {
    /// The operation to fetch signals from: ticker by ticker if tickers alone are asked for.
    pub(super) fn form(&self) -> HistoryForm {
        let signals = &self.definition.signals;
        signals.history.unwrap_or(match (&signals.sectors, &signals.tickers) {
            (None, Some(_)) => HistoryForm::Ticker,
            (..) => HistoryForm::Sector,
        })
    }

    /// The tickers that the definition names for its signals, whatever their sectors.
    pub(super) fn named_tickers(&self) -> Option<&'d [Ticker]> {
        match &self.definition.signals.tickers {
            Some(Tickers::Written(tickers)) => Some(tickers),
            Some(Tickers::Known(_)) | None => None,
        }
    }

    /// The tickers that the definition names for its rows, and the section that names them.
    pub(super) fn listed_tickers(&self) -> Option<(&'static str, &'d [Ticker])> {
        match &self.definition.sentiment.tickers {
            Some(Tickers::Written(tickers)) if self.kind() == DatasetKind::News => Some(("sentiment", tickers)),
            Some(Tickers::Known(TickerList::Available)) if self.kind() == DatasetKind::News => None,
            _ => self.named_tickers().map(|tickers| ("signals", tickers)),
        }
    }

    /// The pairs that the definition names; none if it does not.
    pub(super) fn named_pairs(&self) -> Option<BTreeSet<(Period, Regime)>> {
        let typed = self.definition.signals.pairs.as_ref()?;
        Some(typed.iter().map(|pair| (pair.period, pair.regime)).collect())
    }

    /// The other operations to request for each ticker.
    pub(super) fn of_each_ticker(&self) -> Vec<Endpoint> {
        let (kind, section) = (self.kind(), &self.definition.sentiment);
        let enabled = [
            (section.articles.unwrap_or(true) && kind != DatasetKind::News, Endpoint::NewsArticles),
            (section.summary.unwrap_or(false), Endpoint::SocialSentiment),
            (section.historical.unwrap_or(false), Endpoint::HistoricalSentiment),
        ];
        let enabled = enabled.into_iter().filter(|(is_enabled, _)| *is_enabled && kind != DatasetKind::Signals);
        enabled.map(|(_, endpoint)| endpoint).collect()
    }

    /// The tickers to leave out.
    pub(super) fn excluded_tickers(&mut self) -> BTreeSet<Ticker> {
        let typed = self.definition.signals.exclude.as_ref();
        let typed = self.distinct("ticker", "signals.exclude", typed).unwrap_or_default();
        if let Some((section, listed)) = self.listed_tickers() {
            let names: Vec<&str> = listed.iter().map(Ticker::as_str).collect();
            for (index, ticker) in typed.iter().enumerate().filter(|(_, ticker)| !listed.contains(ticker)) {
                let what = format!("`[{section}]` does not fetch ticker `{ticker}`");
                let hint = suggestion(ticker.as_str(), &names, "its tickers are");
                self.object(&format!("signals.exclude.{index}"), what, hint);
            }
            if !typed.is_empty() && listed.iter().all(|ticker| typed.contains(ticker)) {
                self.object("signals.exclude", "`exclude` leaves no ticker", "remove some, or add to `tickers`");
            }
        }
        BTreeSet::from_iter(typed)
    }

    /// The horizons and regimes to request: those named as pairs, or each with each.
    fn pairs(&mut self) -> Vec<(Period, Regime)> {
        let section = &self.definition.signals;
        if let Some(pairs) = self.distinct("pair", "signals.pairs", section.pairs.as_ref()) {
            for key in ["periods", "regimes"] {
                let at = format!("signals.{key}");
                if self.has(&at) {
                    let hint = format!("remove `{key}`: each pair names a period and a regime; or remove `pairs`");
                    self.object(&at, format!("`pairs` and `{key}` are mutually exclusive"), hint);
                }
            }
            return pairs.into_iter().map(|Pair { period, regime }| (period, regime)).collect();
        }
        let periods = self.distinct("period", "signals.periods", section.periods.as_ref());
        let regimes = self.distinct("regime", "signals.regimes", section.regimes.as_ref());
        let (periods, regimes) =
            (periods.unwrap_or(vec![Period::default()]), regimes.unwrap_or(vec![Regime::default()]));
        periods.iter().flat_map(|&period| regimes.iter().map(move |&regime| (period, regime))).collect()
    }

    /// The ways to get the signals, the requested one first, then its fallbacks; and the requests for the tickers that are
    /// named beside sectors.
    pub(super) fn requests(&mut self, excluded: &BTreeSet<Ticker>) -> (Vec<OperationRequests>, Vec<Request>) {
        if self.kind() == DatasetKind::News {
            let news = self.news_requests(excluded);
            return (vec![news], self.further(Endpoint::NewsArticles, &[], excluded));
        }
        let section = &self.definition.signals;
        let history = self.form();
        self.check_combination(history);
        let pairs = self.pairs();
        let sectors = self.distinct("sector", "signals.sectors", section.sectors.as_ref()).unwrap_or_default();
        let tickers = self.tickers("signals.tickers", section.tickers.as_ref(), &[TickerList::Available]);
        let tickers = tickers.map(|list| list.without(excluded));
        self.check_lists(history, sectors.is_empty() && tickers.is_none());
        let of_sectors: Vec<Request> = sectors
            .iter()
            .flat_map(|sector| pairs.iter().map(|&(period, regime)| Request::of_sector(sector.clone(), period, regime)))
            .collect();
        // One period and regime is enough to list the tickers of a sector.
        let naming: Vec<Request> = of_sectors.iter().step_by(pairs.len().max(1)).cloned().collect();
        let of_ticker = if history == HistoryForm::Latest { Endpoint::Signals } else { Endpoint::SignalsHistory };
        let further = self.further(of_ticker, &pairs, excluded);
        let ways = match history {
            // A fallback must give the same tickers.
            HistoryForm::Sector => vec![
                (Endpoint::SignalsHistoryAll, RequestList::Listed(of_sectors.clone())),
                (of_ticker, RequestList::EachTicker(TickerSource::NamedBy(of_sectors), pairs)),
            ],
            HistoryForm::Batched => {
                let [all, batched] = [Endpoint::SignalsHistoryBatchedAll, Endpoint::SignalsHistoryBatched]
                    .map(|endpoint| (endpoint, RequestList::Listed(vec![Request::bare(endpoint)])));
                let tickers = tickers.unwrap_or(TickerSource::Available);
                vec![all, batched, (of_ticker, RequestList::EachTicker(tickers, pairs))]
            }
            HistoryForm::Ticker | HistoryForm::Latest => {
                let tickers = tickers.filter(|_| sectors.is_empty()).unwrap_or(TickerSource::NamedBy(naming));
                vec![(of_ticker, RequestList::EachTicker(tickers, pairs))]
            }
        };
        let ways = ways.into_iter();
        (
            ways.map(|(endpoint, list)| OperationRequests { endpoint, list, excluded: excluded.clone() }).collect(),
            further,
        )
    }

    /// The requests for the tickers that are named beside sectors.
    fn further(&self, endpoint: Endpoint, pairs: &[(Period, Regime)], excluded: &BTreeSet<Ticker>) -> Vec<Request> {
        if self.definition.signals.sectors.is_none() || self.form() == HistoryForm::Batched {
            return Vec::new();
        }
        let listed = self.listed_tickers().map_or(&[][..], |(_, tickers)| tickers);
        let tickers = listed.iter().filter(|ticker| !excluded.contains(ticker));
        tickers.flat_map(|ticker| of_each_pair(endpoint, ticker, pairs)).collect()
    }

    /// The articles of each ticker that the definition names.
    fn news_requests(&mut self, excluded: &BTreeSet<Ticker>) -> OperationRequests {
        let (signals, sentiment) = (&self.definition.signals, &self.definition.sentiment);
        let sectors = self.distinct("sector", "signals.sectors", signals.sectors.as_ref()).unwrap_or_default();
        let of_signals = self.tickers("signals.tickers", signals.tickers.as_ref(), &[TickerList::Available]);
        self.check_combination(HistoryForm::Ticker);
        if sentiment.tickers == Some(Tickers::Known(TickerList::Available)) && signals.sectors.is_some() {
            let what = "`tickers = \"available\"` has no effect together with `sectors`";
            self.object("sentiment.tickers", what, "remove it, or list the tickers to keep");
        }
        let of_news = self.tickers("sentiment.tickers", sentiment.tickers.as_ref(), TickerList::ALL);
        let named = of_news.filter(|tickers| *tickers != TickerSource::Signals).or(of_signals);
        if named.is_none() && sectors.is_empty() {
            let section = if self.flawed.contains("sentiment") { "sentiment" } else { "signals" };
            let hint = "add `sectors = [\"energy\"]` to `[signals]`, or `tickers` to `[sentiment]`";
            self.miss(section, "signals", "no tickers to fetch news for", hint);
        }
        if signals.tickers.is_some() && sentiment.tickers.is_some() {
            let what = "`tickers` in `[signals]` has no effect beside those in `[sentiment]`";
            self.object("signals.tickers", what, "remove one of them");
        }
        let naming: Vec<Request> = sectors
            .into_iter()
            .map(|sector| Request::of_sector(sector, Period::default(), Regime::default()))
            .collect();
        let tickers = named.filter(|_| naming.is_empty()).unwrap_or(TickerSource::NamedBy(naming));
        let list = RequestList::EachTicker(tickers.without(excluded), Vec::new());
        OperationRequests { endpoint: Endpoint::NewsArticles, list, excluded: excluded.clone() }
    }

    /// The tickers of the requests for news.
    pub(super) fn news_tickers(&mut self) -> TickerSource {
        if self.kind() == DatasetKind::News {
            return TickerSource::Signals;
        }
        let typed = self.definition.sentiment.tickers.as_ref();
        self.tickers("sentiment.tickers", typed, TickerList::ALL).unwrap_or(TickerSource::Signals)
    }

    /// What the answers mean.
    pub(super) fn conventions(&mut self) -> Conventions {
        let (signals, sentiment) = (&self.definition.signals, &self.definition.sentiment);
        if signals.history == Some(HistoryForm::Latest) {
            let hint = "`history = \"latest\"` asks for one signal of each ticker: remove it";
            self.without_effect(&["signals.complete"], "without histories", hint);
        }
        let tolerance = signals.tolerance.unwrap_or(Conventions::default().tolerance);
        if !(0.0..=0.01).contains(&tolerance) {
            let what = format!("a tolerance of {tolerance} is out of range");
            self.object("signals.tolerance", what, "use a share of the confidence from 0 to 0.01, such as `1e-6`");
        }
        let declared = [(Table::Signals, signals.complete), (Table::Articles, sentiment.complete)];
        let clock = self.definition.dates.naive.unwrap_or(NaiveRule::Utc);
        Conventions {
            whole: declared.into_iter().filter(|(_, typed)| *typed == Some(true)).map(|(table, _)| table).collect(),
            tolerance,
            oldest_first: sentiment.order.map(|order| order == ListOrder::OldestFirst),
            day_clock: (self.definition.dates.per == Some(DatesPer::Day)).then_some(clock),
        }
    }

    /// Reports that the definition does not say what to fetch.
    fn check_lists(&mut self, history: HistoryForm, requests_nothing: bool) {
        let section = &self.definition.signals;
        let (what, hint) = match history {
            HistoryForm::Batched => return,
            HistoryForm::Sector if section.sectors.is_some() => return,
            HistoryForm::Sector if section.history.is_some() => {
                ("no sectors to fetch", "add `sectors = [\"energy\", \"healthcare\"]` to `[signals]`")
            }
            HistoryForm::Sector => {
                ("no signals to fetch", "add `sectors = [\"energy\"]`, `tickers = [\"AAPL\"]` or both to `[signals]`")
            }
            HistoryForm::Ticker | HistoryForm::Latest if !requests_nothing => return,
            HistoryForm::Ticker | HistoryForm::Latest => (
                "no tickers to fetch",
                "add `tickers = [\"AAPL\"]`, `tickers = \"available\"` or `sectors` to `[signals]`",
            ),
        };
        self.miss("signals", "signals", what, hint);
    }

    /// Reports keys that another one makes useless.
    fn check_combination(&mut self, history: HistoryForm) {
        let section = &self.definition.signals;
        let by = match history {
            HistoryForm::Batched => BATCH,
            _ if section.sectors.is_some() => "together with `sectors`",
            _ => return,
        };
        if history == HistoryForm::Batched {
            let hint = "remove `history` to fetch these sectors, or remove `sectors`";
            self.without_effect(&["signals.sectors"], BATCH, hint);
        }
        if section.tickers == Some(Tickers::Known(TickerList::Available)) {
            let what = format!("`tickers = \"available\"` has no effect {by}");
            self.object("signals.tickers", what, "remove it, or list the tickers to keep");
        }
    }

    /// A list of tickers; none if it was not given.
    fn tickers(&mut self, key: &str, typed: Option<&Tickers>, known: &[TickerList]) -> Option<TickerSource> {
        match typed? {
            Tickers::Known(list) if !known.contains(list) => {
                let what = format!("`{list}` cannot be used for the tickers of the signals");
                self.object(key, what, "list the tickers, or use `\"available\"`");
                None
            }
            Tickers::Known(TickerList::Available) => Some(TickerSource::Available),
            Tickers::Known(TickerList::Signals) => Some(TickerSource::Signals),
            Tickers::Written(tickers) => self.distinct("ticker", key, Some(tickers)).map(TickerSource::Listed),
        }
    }
}
