//! The first half of a run: everything that needs the service.
//!
//! Operations come and go. The ways of a plan are tried in their order; an operation that answers 404 or 405 to the first
//! of its requests, or to the first few tickers, is gone, and is not asked again in this run.

use std::collections::BTreeSet;
use std::sync::Arc;

use futures_util::StreamExt;

use super::Options;
use super::answer::answer;
use super::progress::{Stage, Timing};
use crate::archive::{AnswerRecord, Scope, Unfinished};
use crate::decode::Rules;
use crate::error::{Error, Result};
use crate::fetch::{Answered, Client};
use crate::interface::{Base, Endpoint, Ticker};
use crate::plan::{Asked, Plan, Request, Tickers, Way};

/// How many tickers must be unknown to an operation, and none known, before it is taken for gone.
const UNKNOWN_TICKERS: usize = 5;

/// What was gathered.
pub(super) struct Gathered {
    pub(super) unfinished: Arc<Unfinished>,
    /// The series whose signals make the dataset.
    pub(super) scope: Scope,
    /// What the service lacks, a line each.
    pub(super) notes: Vec<String>,
    /// What each stage took.
    pub(super) timings: Vec<Timing>,
}

/// What came of some requests of one operation.
enum Wave {
    /// The operation is gone.
    Gone {
        /// The HTTP status of the last request.
        status: u16,
    },
    /// The tickers that the answers name.
    Named(BTreeSet<Ticker>),
}

/// The tickers of a list, or why there are none.
enum Listed {
    Tickers(Vec<Ticker>),
    Gone(Gone),
}

/// An operation that the service does not have.
#[derive(Clone, Copy)]
struct Gone {
    endpoint: Endpoint,
    /// What it answers: 404 or 405.
    status: u16,
}

fn names(gone: &[Gone], between: &str) -> String {
    gone.iter().map(|gone| gone.endpoint.as_str()).collect::<Vec<_>>().join(between)
}

pub(super) struct Gathering<'a> {
    plan: &'a Plan,
    client: &'a Client,
    options: &'a Options,
    unfinished: Arc<Unfinished>,
    notes: Vec<String>,
    timings: Vec<Timing>,
}

impl<'a> Gathering<'a> {
    pub(super) fn new(plan: &'a Plan, client: &'a Client, options: &'a Options, unfinished: Unfinished) -> Self {
        let unfinished = Arc::new(unfinished);
        let notes = match unfinished.len() {
            0 => Vec::new(),
            answers => vec![format!("went on with an interrupted run: {answers} answers were there")],
        };
        Self { plan, client, options, unfinished, notes, timings: Vec::new() }
    }

    /// Asks for everything that the plan wants.
    pub(super) async fn gather(mut self) -> Result<Gathered> {
        let (scope, named) = self.signals().await?;
        if !self.plan.of_each_ticker.is_empty() {
            let tickers = match &self.plan.news_tickers {
                Tickers::Signals => named.into_iter().collect(),
                list => match self.list(list).await? {
                    Listed::Tickers(tickers) => tickers,
                    Listed::Gone(gone) => return Err(self.lacking(&[gone])),
                },
            };
            for &endpoint in &self.plan.of_each_ticker {
                self.news(endpoint, &tickers).await?;
            }
        }
        let Self { unfinished, notes, timings, .. } = self;
        Ok(Gathered { unfinished, scope, notes, timings })
    }

    /// Takes the first way that the service still has.
    async fn signals(&mut self) -> Result<(Scope, BTreeSet<Ticker>)> {
        let plan = self.plan;
        let mut lacking: Vec<Gone> = Vec::new();
        for way in &plan.ways {
            let Way { endpoint, asked } = way;
            let tickers = match asked {
                Asked::Listed(_) => Vec::new(),
                Asked::EachTicker(list, _) => match self.list(list).await? {
                    Listed::Tickers(tickers) => tickers,
                    Listed::Gone(gone) => {
                        lacking.push(gone);
                        continue;
                    }
                },
            };
            let requests = way.requests(&tickers);
            let filter = plan.dataset.filter.clone();
            let scope =
                Scope { source: *endpoint, requests: requests.iter().map(Request::to_string).collect(), filter };
            match self.wave("signals", requests).await? {
                Wave::Gone { status } => lacking.push(Gone { endpoint: *endpoint, status }),
                Wave::Named(named) => {
                    if !lacking.is_empty() {
                        self.notes.push(format!("the service has no {}: took {endpoint}", names(&lacking, ", no ")));
                    }
                    return Ok((scope, named));
                }
            }
        }
        Err(self.lacking(&lacking))
    }

    async fn news(&mut self, endpoint: Endpoint, tickers: &[Ticker]) -> Result<()> {
        let requests = tickers.iter().map(|ticker| Request::of_ticker(endpoint, ticker.clone())).collect();
        match self.wave(stage_of(endpoint), requests).await? {
            Wave::Named(_) => Ok(()),
            // A count of no articles would say that there was no news. Nobody knows that.
            Wave::Gone { status } if endpoint == Endpoint::NewsArticles && !self.plan.dataset.features.is_empty() => {
                Err(self.lacking(&[Gone { endpoint, status }]))
            }
            Wave::Gone { .. } => {
                let base = endpoint.base();
                let doubt =
                    if self.is_known(base) { String::new() } else { format!("; is `{}` right?", base.setting()) };
                self.notes.push(format!("the service has no {endpoint}: nothing of it was archived{doubt}"));
                Ok(())
            }
        }
    }

    /// The tickers of a list, as far as the service has it.
    async fn list(&mut self, list: &Tickers) -> Result<Listed> {
        let requests = match list {
            Tickers::Written(tickers) => return Ok(Listed::Tickers(tickers.clone())),
            Tickers::Signals => unreachable!("signals are asked for before they can name a ticker"),
            Tickers::Available => vec![Request::bare(Endpoint::TickersAvailable)],
            Tickers::NamedBy(requests) => requests.clone(),
        };
        let endpoint = requests.first().map_or(Endpoint::TickersAvailable, |request| request.endpoint);
        Ok(match self.wave("tickers", requests).await? {
            Wave::Gone { status } => Listed::Gone(Gone { endpoint, status }),
            Wave::Named(named) => Listed::Tickers(named.into_iter().collect()),
        })
    }

    /// Asks for everything in a list of requests of one operation, a few at a time.
    async fn wave(&mut self, name: &'static str, requests: Vec<Request>) -> Result<Wave> {
        let stage = self.options.progress.stage(name, requests.len());
        let enough = match requests.first() {
            Some(first) if first.endpoint.is_of_one_ticker() => UNKNOWN_TICKERS.min(requests.len()),
            _ => 1,
        };
        let rules = Rules { keep_extra: self.plan.keep_extra };
        let (client, unfinished) = (self.client, &self.unfinished);
        let ask = |request: Request| async move {
            let text = request.to_string();
            (text, answer(client, unfinished, request, rules).await)
        };
        let mut answers = futures_util::stream::iter(requests).map(ask).buffer_unordered(self.plan.manners.connections);
        let (mut named, mut answered, mut missing) = (BTreeSet::new(), 0_usize, Vec::new());
        while let Some((request, answer)) = next(&mut answers, &stage, self.options, client).await? {
            match answer? {
                Answered::Taken(record) => {
                    answered += 1;
                    advance(&stage, &record);
                    named.extend(record.named().cloned());
                }
                Answered::Missing { status } => {
                    missing.push(request);
                    if answered == 0 && missing.len() >= enough {
                        return Ok(Wave::Gone { status });
                    }
                }
            }
        }
        drop(answers);
        self.timings.push(stage.done());
        if !missing.is_empty() {
            missing.sort();
            self.notes.push(format!("nothing was found for {} requests, {} the first", missing.len(), missing[0]));
        }
        Ok(Wave::Named(named))
    }

    /// The failure of a service that has none of these operations. One that has nothing else at that address either is
    /// more likely asked at a wrong one.
    fn lacking(&self, lacking: &[Gone]) -> Error {
        let (first, lacking) = (lacking.first(), names(lacking, ", "));
        match first {
            Some(&Gone { endpoint, status }) if !self.is_known(endpoint.base()) => {
                let (address, setting) = (self.client.address(endpoint), endpoint.base().setting());
                Error::Address { address, status, setting, lacking }
            }
            _ => Error::NoOperation { name: self.plan.name.clone(), lacking },
        }
    }

    /// Whether anything was answered at a base address.
    fn is_known(&self, base: Base) -> bool {
        self.unfinished.records().iter().any(|record| record.request.endpoint.base() == base)
    }
}

/// The next answer; while there is none, the stage shows how it goes.
async fn next<T>(
    answers: &mut (impl futures_util::Stream<Item = T> + Unpin),
    stage: &Stage,
    options: &Options,
    client: &Client,
) -> Result<Option<T>> {
    loop {
        tokio::select! {
            biased;
            () = options.stop.cancelled() => return Err(Error::Interrupted),
            next = answers.next() => return Ok(next),
            () = tokio::time::sleep(stage.interval()) => stage.tell(client.gauge()),
        }
    }
}

fn advance(stage: &Stage, record: &AnswerRecord) {
    stage.answered(record.request.rows, record.request.bytes);
}

fn stage_of(endpoint: Endpoint) -> &'static str {
    match endpoint {
        Endpoint::NewsArticles => "articles",
        Endpoint::SocialSentiment => "summaries",
        _ => "sentiment",
    }
}
