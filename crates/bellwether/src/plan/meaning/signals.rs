//! The requests of a plan: the ways to get the signals, and the tickers to fetch news for.

use std::collections::BTreeSet;

use super::kinds::kind_of;
use super::{Validator, repetition};
use crate::definition::{
    DatasetKind, DatesPer, DatesSection, Definition, HistoryForm, ListOrder, NaiveRule, Pair, Placed, SignalsSection,
    TickerList, Tickers as TypedTickers,
};
use crate::interface::{Endpoint, Period, Regime, Ticker};
use crate::plan::{OperationRequests, Request, RequestList, TickerSource};
use crate::tables::{Conventions, Table};
use crate::text::problem::{Problem, suggestion};

/// The other operations to request for each ticker.
pub(super) fn of_each_ticker(definition: &Definition) -> Vec<Endpoint> {
    let (kind, section) = (kind_of(definition), &*definition.sentiment);
    if kind == DatasetKind::Signals {
        return Vec::new();
    }
    let is_on = |typed: &Option<Placed<bool>>, otherwise| typed.as_deref().copied().unwrap_or(otherwise);
    let enabled = [
        (is_on(&section.articles, true) && kind != DatasetKind::News, Endpoint::NewsArticles),
        (is_on(&section.summary, false), Endpoint::SocialSentiment),
        (is_on(&section.historical, false), Endpoint::HistoricalSentiment),
    ];
    enabled.into_iter().filter_map(|(is_enabled, endpoint)| is_enabled.then_some(endpoint)).collect()
}

/// The operation to fetch signals from: ticker by ticker if tickers alone are asked for.
pub(super) fn form_of(signals: &SignalsSection) -> HistoryForm {
    let inferred = match (&signals.sectors, &signals.tickers) {
        (None, Some(_)) => HistoryForm::Ticker,
        (..) => HistoryForm::Sector,
    };
    signals.history.as_deref().copied().unwrap_or(inferred)
}

/// The tickers that a definition names for its signals, whatever their sectors.
pub(super) fn named_tickers(signals: &SignalsSection) -> Option<&[Ticker]> {
    match signals.tickers.as_deref() {
        Some(TypedTickers::Written(tickers)) => Some(tickers),
        Some(TypedTickers::Known(_)) | None => None,
    }
}

/// The pairs that a definition names; none if it does not.
pub(super) fn named_pairs(signals: &SignalsSection) -> Option<BTreeSet<(Period, Regime)>> {
    let typed = signals.pairs.as_ref()?;
    Some(typed.iter().map(|pair| (pair.period, pair.regime)).collect())
}

/// The tickers that a definition names for its rows, and the section that names them.
fn listed_tickers(definition: &Definition) -> Option<(&'static str, &[Ticker])> {
    let of_news = definition.sentiment.tickers.as_deref().filter(|_| kind_of(definition) == DatasetKind::News);
    match of_news {
        Some(TypedTickers::Written(tickers)) => Some(("sentiment", tickers)),
        Some(TypedTickers::Known(TickerList::Available)) => None,
        _ => named_tickers(&definition.signals).map(|tickers| ("signals", tickers)),
    }
}

/// A list of tickers without those that are left out.
fn without(list: TickerSource, excluded: &BTreeSet<Ticker>) -> TickerSource {
    match list {
        TickerSource::Listed(mut tickers) => {
            tickers.retain(|ticker| !excluded.contains(ticker));
            TickerSource::Listed(tickers)
        }
        list => list,
    }
}

impl Validator {
    /// The tickers to leave out.
    pub(super) fn excluded_tickers(&mut self, definition: &Definition) -> BTreeSet<Ticker> {
        let Some(typed) = &definition.signals.exclude else { return BTreeSet::new() };
        let excluded = BTreeSet::from_iter(self.distinct("ticker", Some(typed)).unwrap_or_default());
        if let Some((section, listed)) = listed_tickers(definition) {
            let names: Vec<&str> = listed.iter().map(Ticker::as_str).collect();
            for ticker in typed.iter().filter(|ticker| !listed.contains(ticker)) {
                let problem =
                    Problem::new(format!("`[{section}]` does not fetch ticker `{}`", **ticker), ticker.span());
                self.object(problem.with_hint(suggestion(ticker.as_str(), &names, "its tickers are")));
            }
            if listed.iter().all(|ticker| excluded.contains(ticker)) {
                let problem = Problem::new("`exclude` leaves no ticker", typed.span());
                self.object(problem.with_hint("remove some, or add to `tickers`"));
            }
        }
        excluded
    }

    /// The horizons and regimes to request: those named as pairs, or each with each.
    fn pairs(&mut self, section: &SignalsSection) -> Vec<(Period, Regime)> {
        let SignalsSection { periods, regimes, pairs, .. } = section;
        if let Some(pairs) = self.distinct("pair", pairs.as_ref()) {
            let typed =
                [("periods", periods.as_ref().map(Placed::span)), ("regimes", regimes.as_ref().map(Placed::span))];
            for (key, span) in typed.into_iter().filter_map(|(key, span)| Some((key, span?))) {
                let problem = Problem::new(format!("`pairs` and `{key}` are mutually exclusive"), span);
                let hint = format!("remove `{key}`: each pair names a period and a regime; or remove `pairs`");
                self.object(problem.with_hint(hint));
            }
            return pairs.into_iter().map(|Pair { period, regime }| (period, regime)).collect();
        }
        let periods = self.distinct("period", periods.as_ref()).unwrap_or_else(|| vec![Period::default()]);
        let regimes = self.distinct("regime", regimes.as_ref()).unwrap_or_else(|| vec![Regime::default()]);
        periods.iter().flat_map(|&period| regimes.iter().map(move |&regime| (period, regime))).collect()
    }

    /// The ways to get the signals: the requested one first, then its fallbacks.
    pub(super) fn alternatives(
        &mut self,
        definition: &Definition,
        excluded: &BTreeSet<Ticker>,
    ) -> Vec<OperationRequests> {
        if kind_of(definition) == DatasetKind::News {
            return vec![self.news_requests(definition, excluded)];
        }
        let section = &definition.signals;
        let SignalsSection { sectors, tickers, .. } = &**section;
        let history = form_of(section);
        self.check_combination(history, section);
        let pairs = self.pairs(section);
        let sectors = self.distinct("sector", sectors.as_ref()).unwrap_or_default();
        let tickers = self.tickers(tickers.as_ref(), &[TickerList::Available]);
        let tickers = tickers.map(|list| without(list, excluded));
        self.check_lists(history, section, sectors.is_empty() && tickers.is_none());
        let of_sectors: Vec<Request> = sectors
            .iter()
            .flat_map(|sector| pairs.iter().map(|&(period, regime)| Request::of_sector(sector.clone(), period, regime)))
            .collect();
        // One period and regime is enough to list the tickers of a sector.
        let naming: Vec<Request> = of_sectors.iter().step_by(pairs.len().max(1)).cloned().collect();
        let operation = |endpoint, list| OperationRequests { endpoint, list, excluded: excluded.clone() };
        let by_sector = || operation(Endpoint::SignalsHistoryAll, RequestList::Listed(of_sectors.clone()));
        let each_ticker = |endpoint, tickers| operation(endpoint, RequestList::EachTicker(tickers, pairs.clone()));
        let bare = |endpoint| operation(endpoint, RequestList::Listed(vec![Request::bare(endpoint)]));
        // A fallback must give the same tickers.
        let same_tickers = TickerSource::NamedBy(of_sectors.clone());
        match history {
            HistoryForm::Sector => vec![by_sector(), each_ticker(Endpoint::SignalsHistory, same_tickers)],
            HistoryForm::Batched => {
                let whole = [Endpoint::SignalsHistoryBatchedAll, Endpoint::SignalsHistoryBatched].map(bare);
                let tickers = tickers.unwrap_or(TickerSource::Available);
                let last = each_ticker(Endpoint::SignalsHistory, tickers);
                whole.into_iter().chain([last]).collect()
            }
            HistoryForm::Ticker | HistoryForm::Latest => {
                let is_latest = history == HistoryForm::Latest;
                let endpoint = if is_latest { Endpoint::Signals } else { Endpoint::SignalsHistory };
                let list = if sectors.is_empty() {
                    tickers.unwrap_or(TickerSource::NamedBy(naming))
                } else {
                    TickerSource::NamedBy(naming)
                };
                vec![each_ticker(endpoint, list)]
            }
        }
    }

    /// What the answers mean.
    pub(super) fn conventions(&mut self, definition: &Definition) -> Conventions {
        let SignalsSection { complete, history, tolerance, .. } = &*definition.signals;
        if let (Some(complete), Some(HistoryForm::Latest)) = (complete, history.as_deref()) {
            let problem = Problem::new("`complete` has no effect without histories", complete.span());
            self.object(problem.with_hint("`history = \"latest\"` asks for one signal of each ticker: remove it"));
        }
        let declared = [(Table::Signals, complete), (Table::Articles, &definition.sentiment.complete)];
        let is_whole = |typed: &Option<Placed<bool>>| typed.as_deref().copied().unwrap_or(false);
        let whole = declared.into_iter().filter_map(|(table, typed)| is_whole(typed).then_some(table)).collect();
        let default = Conventions::default();
        if let Some(tolerance) = tolerance.as_ref().filter(|tolerance| !(0.0..=0.01).contains(&***tolerance)) {
            let problem = Problem::new(format!("a tolerance of {} is out of range", **tolerance), tolerance.span());
            self.object(problem.with_hint("use a share of the confidence from 0 to 0.01, such as `1e-6`"));
        }
        let tolerance = tolerance.as_deref().copied().unwrap_or(default.tolerance);
        let order = definition.sentiment.order.as_deref();
        let DatesSection { naive, per } = &*definition.dates;
        let clock = naive.as_deref().copied().unwrap_or(NaiveRule::Utc);
        let day_clock = per.as_deref().filter(|per| **per == DatesPer::Day).map(|_| clock);
        Conventions { whole, tolerance, oldest_first: order.map(|order| *order == ListOrder::OldestFirst), day_clock }
    }

    /// The requests for the tickers that are named beside sectors.
    pub(super) fn further(definition: &Definition, excluded: &BTreeSet<Ticker>) -> Vec<Request> {
        let signals = &definition.signals;
        if signals.sectors.is_none() || form_of(signals) == HistoryForm::Batched {
            return Vec::new();
        }
        let listed = listed_tickers(definition).map_or(&[][..], |(_, tickers)| tickers);
        let tickers = listed.iter().filter(|ticker| !excluded.contains(ticker));
        if kind_of(definition) == DatasetKind::News {
            return tickers.map(|ticker| Request::of_ticker(Endpoint::NewsArticles, ticker.clone())).collect();
        }
        let is_latest = form_of(signals) == HistoryForm::Latest;
        let endpoint = if is_latest { Endpoint::Signals } else { Endpoint::SignalsHistory };
        // Problems of the pairs are told with those of the sectors.
        let pairs = Self { problems: Vec::new(), flawed: BTreeSet::new() }.pairs(signals);
        let of_ticker = |ticker: &Ticker| {
            let of_pair =
                |&(period, regime): &(Period, Regime)| Request::of_series(endpoint, ticker.clone(), period, regime);
            pairs.iter().map(of_pair).collect::<Vec<_>>()
        };
        tickers.flat_map(of_ticker).collect()
    }

    /// The articles of each ticker that the definition names.
    fn news_requests(&mut self, definition: &Definition, excluded: &BTreeSet<Ticker>) -> OperationRequests {
        let (signals, sentiment) = (&definition.signals, &definition.sentiment);
        let sectors = self.distinct("sector", signals.sectors.as_ref()).unwrap_or_default();
        let of_signals = self.tickers(signals.tickers.as_ref(), &[TickerList::Available]);
        self.check_combination(HistoryForm::Ticker, signals);
        let available =
            sentiment.tickers.as_ref().filter(|typed| ***typed == TypedTickers::Known(TickerList::Available));
        if let (Some(available), Some(_)) = (available, &signals.sectors) {
            let problem =
                Problem::new("`tickers = \"available\"` has no effect together with `sectors`", available.span());
            self.object(problem.with_hint("remove it, or list the tickers to keep"));
        }
        let of_news = self.tickers(sentiment.tickers.as_ref(), TickerList::ALL);
        let named = of_news.filter(|tickers| *tickers != TickerSource::Signals).or(of_signals);
        if named.is_none() && sectors.is_empty() {
            let problem = Problem::new("no tickers to fetch news for", signals.span());
            let hint = "add `sectors = [\"energy\"]` to `[signals]`, or `tickers` to `[sentiment]`";
            self.miss(if self.flawed.contains("sentiment") { "sentiment" } else { "signals" }, problem.with_hint(hint));
        }
        if let (Some(unused), Some(_)) = (&signals.tickers, &sentiment.tickers) {
            let problem =
                Problem::new("`tickers` in `[signals]` has no effect beside those in `[sentiment]`", unused.span());
            self.object(problem.with_hint("remove one of them"));
        }
        let naming: Vec<Request> = sectors
            .into_iter()
            .map(|sector| Request::of_sector(sector, Period::default(), Regime::default()))
            .collect();
        let tickers = named.filter(|_| naming.is_empty()).unwrap_or(TickerSource::NamedBy(naming));
        let list = RequestList::EachTicker(without(tickers, excluded), Vec::new());
        OperationRequests { endpoint: Endpoint::NewsArticles, list, excluded: excluded.clone() }
    }

    fn check_lists(&mut self, history: HistoryForm, section: &Placed<SignalsSection>, requests_nothing: bool) {
        let problem = match history {
            HistoryForm::Batched => return,
            HistoryForm::Sector if section.sectors.is_some() => return,
            HistoryForm::Sector if section.history.is_some() => Problem::new("no sectors to fetch", section.span())
                .with_hint("add `sectors = [\"energy\", \"healthcare\"]` to `[signals]`"),
            HistoryForm::Sector => Problem::new("no signals to fetch", section.span())
                .with_hint("add `sectors = [\"energy\"]`, `tickers = [\"AAPL\"]` or both to `[signals]`"),
            HistoryForm::Ticker | HistoryForm::Latest if !requests_nothing => return,
            HistoryForm::Ticker | HistoryForm::Latest => Problem::new("no tickers to fetch", section.span())
                .with_hint("add `tickers = [\"AAPL\"]`, `tickers = \"available\"` or `sectors` to `[signals]`"),
        };
        self.miss("signals", problem);
    }

    /// Reports keys that another one makes useless.
    fn check_combination(&mut self, history: HistoryForm, section: &SignalsSection) {
        let SignalsSection { sectors, tickers, .. } = section;
        let available = tickers.as_ref().filter(|typed| ***typed == TypedTickers::Known(TickerList::Available));
        if let (HistoryForm::Batched, Some(sectors)) = (history, sectors) {
            let problem = Problem::new("`sectors` has no effect on a batch, which has all tickers", sectors.span());
            self.object(problem.with_hint("remove `history` to fetch these sectors, or remove `sectors`"));
        }
        let by = match (history, sectors) {
            (HistoryForm::Batched, _) => "on a batch, which has all tickers",
            (_, Some(_)) => "together with `sectors`",
            (..) => return,
        };
        if let Some(available) = available {
            let problem = Problem::new(format!("`tickers = \"available\"` has no effect {by}"), available.span());
            self.object(problem.with_hint("remove it, or list the tickers to keep"));
        }
    }

    /// A list of tickers; none if it was not given.
    fn tickers(&mut self, typed: Option<&Placed<TypedTickers>>, known: &[TickerList]) -> Option<TickerSource> {
        let typed = typed?;
        match &**typed {
            TypedTickers::Known(list) if !known.contains(list) => {
                let problem =
                    Problem::new(format!("`{list}` cannot be used for the tickers of the signals"), typed.span());
                self.object(problem.with_hint("list the tickers, or use `\"available\"`"));
                None
            }
            TypedTickers::Known(TickerList::Available) => Some(TickerSource::Available),
            TypedTickers::Known(TickerList::Signals) => Some(TickerSource::Signals),
            TypedTickers::Written(tickers) => {
                let mut seen = BTreeSet::new();
                if let Some(ticker) = tickers.iter().find(|ticker| !seen.insert(*ticker)) {
                    self.object(repetition("ticker", ticker, typed.span()));
                }
                if tickers.is_empty() {
                    let problem = Problem::new("empty list: at least one ticker is required", typed.span());
                    self.object(problem.with_hint("remove the key to get its default, or add a value"));
                }
                Some(TickerSource::Listed(tickers.clone()))
            }
        }
    }

    pub(super) fn news_tickers(&mut self, definition: &Definition) -> TickerSource {
        match kind_of(definition) {
            DatasetKind::News => TickerSource::Signals,
            DatasetKind::Joined | DatasetKind::Signals => {
                let typed = definition.sentiment.tickers.as_ref();
                self.tickers(typed, TickerList::ALL).unwrap_or(TickerSource::Signals)
            }
        }
    }
}
