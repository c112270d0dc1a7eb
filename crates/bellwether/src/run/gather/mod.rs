//! The first half of a run: everything that needs the service.
//!
//! It ends with all that the dataset needs, or with why not: what was answered meanwhile is in the run either way.
//!
//! Operations come and go. The ways of a plan are tried in order, until the service offers one (see `operation`).
//!
//! One rule decides what may replace such an operation: *the same tickers, or nothing*. The tickers are those that the
//! archive has from the operation's last answers; if it has none, the definition must list them. So a fallback for
//! single tickers is requested for exactly these tickers, a fallback that answers for many at once must list exactly
//! these, and a list of tickers that the service no longer offers is replaced by its last answer. Otherwise the run
//! fails before requesting every ticker.

mod operation;

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::sync::Arc;

use schemars::JsonSchema;
use serde::Serialize;

pub(super) use self::operation::decode_pages;
use self::operation::{MissingOperation, Offered};
use super::as_of::newest;
use super::missing::{list, some_of};
use super::observer::{Event, Timing};
use super::start::Options;
use crate::archive::{Scope, Unfinished, View, open_merged};
use crate::error::{Error, ErrorKind, Result};
use crate::fetch::{Client, Refusal};
use crate::interface::{Base, Endpoint, Sector, Ticker};
use crate::plan::{OnFinding, OperationRequests, Plan, Request, RequestList, Source, TickerSource};
use crate::process::cancel::CancellationToken;
use crate::tables::SeriesKey;
use crate::text::human::count_of;

/// What is told of a gathering, besides its answers.
#[derive(Default)]
pub(super) struct Gathered {
    /// The requests for what the definition names: each must have data.
    pub(super) demanded: Vec<Request>,
    /// The requests that the service refused.
    pub(super) refusals: BTreeMap<String, Refusal>,
    /// The operations that the service does not offer, one message each.
    pub(super) lacking: Vec<String>,
    /// Notes, one line each.
    pub(super) notes: Vec<String>,
    /// The time of each stage.
    pub(super) timings: Vec<Timing>,
}

/// Where the signals came from.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct SignalSource {
    /// The operation that gave them.
    #[schemars(with = "String")]
    pub operation: Endpoint,
    /// The operations that it replaced.
    pub instead_of: Vec<&'static str>,
    /// The tickers that its answers name.
    pub tickers: BTreeSet<Ticker>,
}

/// A gathering in progress.
pub(super) struct Gathering<'a> {
    plan: &'a Plan,
    client: &'a Client,
    options: &'a Options,
    unfinished: Arc<Unfinished>,
    gone: Vec<MissingOperation>,
    /// Why requests failed.
    failed: Vec<Error>,
    gathered: Gathered,
    /// The most tickers that are asked for, of those that the service names.
    pub(super) most_tickers: usize,
}

impl<'a> Gathering<'a> {
    pub(super) fn new(plan: &'a Plan, client: &'a Client, options: &'a Options, unfinished: Arc<Unfinished>) -> Self {
        let mut notes = Vec::new();
        let answers = unfinished.len();
        if answers > 0 {
            options.control.observe(Event::Resumed { answers });
            let answers = count_of(answers as u64, "answer", "answers");
            notes.push(format!("resumed an interrupted run with {answers}"));
        }
        let gathered = Gathered { notes, ..Gathered::default() };
        let (gone, failed) = (Vec::new(), Vec::new());
        Self { plan, client, options, unfinished, gone, failed, gathered, most_tickers: usize::MAX }
    }

    /// Makes all requests of the plan. Returns the series of the dataset, and where the signals came from, too.
    pub(super) async fn gather(mut self) -> Result<(Scope, SignalSource, Gathered)> {
        let (scope, mut signals) = self.signals().await?;
        signals.tickers.extend(self.further().await?);
        if !self.plan.of_each_ticker.is_empty() {
            let tickers = self.news_tickers(&signals.tickers).await?;
            for &endpoint in &self.plan.of_each_ticker {
                self.news(endpoint, &tickers).await?;
            }
        }
        if self.failed.is_empty() { Ok((scope, signals, self.gathered)) } else { Err(all_of(self.failed)) }
    }

    /// Fetches signals by the first way that the service still offers.
    async fn signals(&mut self) -> Result<(Scope, SignalSource)> {
        let plan = self.plan;
        let mut passed: Vec<&OperationRequests> = Vec::new();
        let mut lacking: Vec<MissingOperation> = Vec::new();
        let mut unlisted = None;
        for operation in &plan.alternatives {
            let endpoint = operation.endpoint;
            let LastListed { tickers: mut known, series, unlisted: sectors } =
                LastListed::of_operations(&passed, &self.options.archive)?;
            let list = match &operation.list {
                RequestList::Listed(_) => None,
                RequestList::EachTicker(list, _) => Some(list),
            };
            if !sectors.is_empty() && matches!(list, Some(TickerSource::Listed(_))) {
                // Tickers named by the definition take precedence over those in the archive.
                known.clear();
            }
            known.retain(|ticker| !plan.excluded.contains(ticker));
            let tickers = match list {
                None => Vec::new(),
                Some(_) if !known.is_empty() => {
                    self.lack(&sectors, &lacking, endpoint)?;
                    known.iter().take(self.most_tickers).cloned().collect()
                }
                Some(list) => match self.list(list).await? {
                    Ok(tickers) => tickers,
                    Err(naming) => {
                        add(&mut lacking, naming);
                        unlisted = Some(format!("no list of tickers for {endpoint}"));
                        continue;
                    }
                },
            };
            let is_of_batch = passed.iter().any(|passed| passed.is_batch());
            let requests = match operation.requests_of(series.iter().take(self.most_tickers), &plan.dataset.filter) {
                of_batch if is_of_batch && endpoint.is_of_one_ticker() && !of_batch.is_empty() => of_batch,
                _ => operation.requests(&tickers),
            };
            let mut offered = match self.run_stage(stage_of(endpoint), &requests).await? {
                Ok(offered) => offered,
                Err(gone) if !gone.refusal.is_absence() => return Err(self.no_operation(&[gone], None)),
                Err(gone) => {
                    add(&mut lacking, gone);
                    passed.push(operation);
                    continue;
                }
            };
            if is_of_batch && self.has_other_series(&requests, &series) {
                self.note(format!("{endpoint} has other periods and regimes than the archive, and is not used"));
                passed.push(operation);
                continue;
            }
            offered.named.retain(|ticker| !plan.excluded.contains(ticker));
            let is_named_by_service =
                known.is_empty() && matches!(list, Some(TickerSource::Available | TickerSource::NamedBy(_)));
            self.demand(is_named_by_service, &requests, &offered.unknown);
            let instead_of = lacking.iter().map(|gone| gone.request.endpoint.as_str()).collect();
            let taken = SignalSource { operation: endpoint, instead_of, tickers: offered.named };
            if !passed.is_empty() {
                self.note_substitute(&taken, &known)?;
            }
            return Ok((Scope::of(plan, endpoint, requests.iter().map(Request::to_string).collect()), taken));
        }
        Err(self.no_operation(&lacking, unlisted))
    }

    /// Whether the answers to some requests have the tickers of known series, but hardly a series itself.
    fn has_other_series(&self, requests: &[Request], known: &BTreeSet<SeriesKey>) -> bool {
        let answers = requests.iter().filter_map(|request| self.unfinished.answer_to(&request.to_string()));
        let mut answered = BTreeSet::new();
        answers.for_each(|answer| answered.extend(answer.listed_series().cloned()));
        tickers_of(&answered) == tickers_of(known) && 2 * known.intersection(&answered).count() < known.len()
    }

    /// Fetches the tickers that are named beside sectors. Returns those that the answers name.
    async fn further(&mut self) -> Result<BTreeSet<Ticker>> {
        let requests = &self.plan.further;
        let Some(first) = requests.first() else { return Ok(BTreeSet::new()) };
        match self.run_stage(stage_of(first.endpoint), requests).await? {
            Ok(offered) => {
                self.demand(false, requests, &[]);
                Ok(offered.named)
            }
            Err(gone) => {
                self.gathered.lacking.push(gone.in_words());
                Ok(BTreeSet::new())
            }
        }
    }

    /// Reports sectors without tickers in the archive, which the fallback operation would need.
    fn lack(&mut self, sectors: &[Sector], gone: &[MissingOperation], instead: Endpoint) -> Result<()> {
        if sectors.is_empty() {
            return Ok(());
        }
        let sectors = some_of("sector", sectors.iter());
        if self.plan.checks.missing == OnFinding::Fail {
            return Err(self.no_operation(gone, Some(format!("no tickers of {sectors} for {instead}"))));
        }
        let gone = names_of(gone);
        self.gathered
            .lacking
            .push(format!("the service no longer offers {gone}, and the archive has no tickers of {sectors}"));
        Ok(())
    }

    /// Checks that a fallback operation returned the known tickers of the operations it replaced, and adds a note on
    /// it.
    fn note_substitute(&mut self, taken: &SignalSource, known: &BTreeSet<Ticker>) -> Result<()> {
        let SignalSource { operation, instead_of, tickers } = taken;
        let lacking = instead_of.join(", ");
        // If each ticker has its own request, those without an answer are reported as missing data.
        if !known.is_empty() && !operation.is_of_one_ticker() && tickers != known {
            let shifts = [("missing", known - tickers), ("new", tickers - known)].into_iter();
            let shifts = shifts.filter(|(_, names)| !names.is_empty());
            let shifts: Vec<String> = shifts.map(|(what, names)| format!("{what} {}", list(names.iter()))).collect();
            let shifts = shifts.join("; ");
            let what =
                format!("the service no longer offers {lacking}, and {operation} lists different tickers: {shifts}");
            return Err(Error::new(ErrorKind::Checks, what)
                .with_hint("if this is expected, choose the operation with `history` in `[signals]`"));
        }
        let whose = if known.is_empty() { "" } else { ", as listed in the archive" };
        let tickers = some_of("ticker", tickers.iter());
        self.note(format!("the service no longer offers {lacking}: used {operation} for {tickers}{whose}"));
        Ok(())
    }

    /// The tickers of a list: those that the service lists or, if it no longer offers the operation that lists them,
    /// those of its last answer. If there is none, that operation.
    async fn list(&mut self, list: &TickerSource) -> Result<Result<Vec<Ticker>, MissingOperation>> {
        if let TickerSource::Listed(tickers) = list {
            return Ok(Ok(tickers.clone()));
        }
        let requests = list.listing();
        let gone = match self.run_stage("tickers", &requests).await? {
            Ok(offered) => {
                self.gathered.demanded.extend(requests);
                return Ok(Ok(offered.named.into_iter().take(self.most_tickers).collect()));
            }
            Err(gone) => gone,
        };
        let known = LastListed::of(&requests, &self.options.archive)?.tickers;
        if known.is_empty() {
            return Ok(Err(gone));
        }
        let naming = gone.request.endpoint;
        let tickers = some_of("ticker", known.iter());
        self.note(format!("the service no longer offers {naming}: used {tickers}, as listed in the archive"));
        Ok(Ok(known.into_iter().take(self.most_tickers).collect()))
    }

    /// The tickers to fetch news for.
    async fn news_tickers(&mut self, of_signals: &BTreeSet<Ticker>) -> Result<Vec<Ticker>> {
        match &self.plan.news_tickers {
            TickerSource::Signals => {
                let is_taken = |ticker: &&Ticker| !self.plan.excluded.contains(*ticker);
                Ok(of_signals.iter().filter(is_taken).take(self.most_tickers).cloned().collect())
            }
            list => self.list(list).await?.map_err(|gone| self.no_operation(&[gone], None)),
        }
    }

    async fn news(&mut self, endpoint: Endpoint, tickers: &[Ticker]) -> Result<()> {
        let requests: Vec<Request> =
            tickers.iter().map(|ticker| Request::of_ticker(endpoint, ticker.clone())).collect();
        match self.run_stage(stage_of(endpoint), &requests).await? {
            Ok(Offered { unknown, .. }) => {
                let is_named_by_service = !matches!(self.plan.news_tickers, TickerSource::Listed(_));
                self.demand(is_named_by_service, &requests, &unknown);
            }
            Err(gone) => {
                let mut lacking = gone.in_words();
                if gone.refusal.is_absence() && !self.is_known(endpoint.base()) {
                    lacking += &format!(" (is `{}` correct?)", endpoint.base().setting());
                }
                self.gathered.lacking.push(lacking);
            }
        }
        Ok(())
    }

    /// Records what the definition names. Tickers that the service listed and then does not know become a note.
    fn demand(&mut self, is_named_by_service: bool, requests: &[Request], unknown: &[Request]) {
        if !is_named_by_service {
            self.gathered.demanded.extend_from_slice(requests);
            return;
        }
        let tickers: BTreeSet<&Ticker> = unknown.iter().filter_map(|request| request.ticker.as_ref()).collect();
        if let Some(first) = unknown.first().filter(|_| !tickers.is_empty()) {
            let why = unknown.iter().filter_map(|request| self.gathered.refusals.get(&request.to_string()));
            let why: BTreeSet<String> = why.filter(|refusal| !refusal.is_absence()).map(Refusal::to_string).collect();
            let why: Vec<String> = why.into_iter().take(3).collect();
            let why = if why.is_empty() { String::new() } else { format!(": {}", why.join("; ")) };
            self.note(format!("no data in {} for {}{why}", first.endpoint, some_of("ticker", tickers.iter())));
        }
    }

    fn note(&mut self, note: String) {
        self.options.control.observe(Event::Note { message: &note });
        self.gathered.notes.push(note);
    }

    /// The error for a service that offers none of these operations, and for an archive without the tickers that a
    /// fallback needs. If nothing else answered at the address either, the address is probably wrong.
    fn no_operation(&self, gone: &[MissingOperation], unknown: Option<String>) -> Error {
        let mut lacking = names_of(gone);
        if let Some(unknown) = unknown {
            lacking += &format!(", and the archive has {unknown}");
        }
        if let Some(MissingOperation { request, refusal }) = gone.first() {
            let is_of_one_ticker = request.endpoint.is_of_one_ticker();
            if !refusal.is_absence() {
                return self.client.refused(request, refusal);
            }
            if is_of_one_ticker && matches!(self.plan.source, Source::Demo { .. }) {
                return Error::new(ErrorKind::Service, "the demo has none of the tickers")
                    .with_hint("it has five hundred American companies, such as `XOM`");
            }
            if !self.is_known(request.endpoint.base()) {
                if is_of_one_ticker {
                    lacking += ", or knows none of the tickers";
                }
                return wrong_address(self.client, request.endpoint, refusal.status, &lacking);
            }
        }
        let what = format!("the service no longer offers operations that `{}` needs: {lacking}", self.plan.name);
        Error::new(ErrorKind::Service, what)
            .with_hint("ask the vendor what replaced it, or change `history` or `[sentiment]`")
    }

    /// Whether a base address has answered any request.
    fn is_known(&self, base: Base) -> bool {
        self.unfinished.records().iter().any(|record| record.request.endpoint.base() == base)
    }
}

/// Why requests failed, as one error.
fn all_of(mut failed: Vec<Error>) -> Error {
    if failed.len() == 1 {
        return failed.remove(0);
    }
    let is_temporary = |error: &Error| error.kind() == ErrorKind::Temporary;
    let kind = failed.iter().find(|error| is_temporary(error)).unwrap_or(&failed[0]).kind();
    let hint = failed[0].hint().map(str::to_owned);
    let what = format!("{} failed", count_of(failed.len() as u64, "request", "requests"));
    let error = Error::new(kind, what).with_reasons(failed.iter().map(Error::in_one_line).collect::<Vec<_>>());
    hint.into_iter().fold(error, Error::with_hint)
}

/// A base address without the service, by what it answered to one of its operations.
pub(super) fn wrong_address(client: &Client, endpoint: Endpoint, status: u16, lacking: &str) -> Error {
    let (address, setting) = (client.address(endpoint), endpoint.base().setting());
    Error::new(ErrorKind::Service, format!("`GET {address}` answered {status}: is `{setting}` correct?"))
        .with_hint(format!("check the address; if it is correct, the service no longer offers {lacking}"))
}

/// Adds an operation that is no longer offered to a list, without duplicates.
fn add(lacking: &mut Vec<MissingOperation>, gone: MissingOperation) {
    if lacking.iter().all(|known| known.request.endpoint != gone.request.endpoint) {
        lacking.push(gone);
    }
}

fn names_of(gone: &[MissingOperation]) -> String {
    gone.iter().map(|gone| gone.request.endpoint.as_str()).collect::<Vec<_>>().join(", ")
}

fn tickers_of(series: &BTreeSet<SeriesKey>) -> BTreeSet<Ticker> {
    series.iter().map(|key| key.ticker.clone()).collect()
}

fn stage_of(endpoint: Endpoint) -> &'static str {
    match endpoint {
        Endpoint::NewsArticles => "articles",
        Endpoint::SocialSentiment => "summaries",
        Endpoint::HistoricalSentiment => "sentiment",
        _ => "signals",
    }
}

/// What the last answers to some requests list.
#[derive(Default)]
struct LastListed {
    /// The tickers.
    tickers: BTreeSet<Ticker>,
    /// Their series.
    series: BTreeSet<SeriesKey>,
    /// The requested sectors without tickers.
    unlisted: Vec<Sector>,
}

impl LastListed {
    /// From the first of some operations that has any.
    fn of_operations(operations: &[&OperationRequests], archive: &Path) -> Result<Self> {
        for operation in operations {
            if let RequestList::Listed(requests) = &operation.list {
                let known = Self::of(requests, archive)?;
                if !known.tickers.is_empty() {
                    return Ok(known);
                }
            }
        }
        Ok(Self::default())
    }

    /// From some requests.
    fn of(requests: &[Request], archive: &Path) -> Result<Self> {
        let archive = open_merged(archive, &CancellationToken::new())?;
        let as_of = newest(&archive).unwrap_or_default();
        let listing = View::of(archive, as_of).listing(&requests.iter().map(Request::to_string).collect())?;
        let (mut listed, mut others) = (BTreeSet::new(), BTreeSet::new());
        for request in requests {
            let sectors = if listing.contains_key(&request.to_string()) { &mut listed } else { &mut others };
            sectors.extend(request.sector.clone());
        }
        let series: BTreeSet<SeriesKey> = listing.into_values().flatten().collect();
        Ok(Self { tickers: tickers_of(&series), series, unlisted: others.difference(&listed).cloned().collect() })
    }
}
