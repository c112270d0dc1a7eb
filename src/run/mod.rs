//! Wires the stages: fetch, decode, archive, dataset, export. They meet here and nowhere else.
//!
//! Answers are taken in the order in which they were asked for, so what a run writes does not depend on which came
//! first. A run that is stopped, or that fails, leaves what was published before as it was, and nothing half-written.

mod demo;
mod progress;
mod summary;

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Instant;

use chrono::{DateTime, Utc};
use futures_util::StreamExt;
use tokio::task::spawn_blocking;
use tokio_util::sync::CancellationToken;

pub use demo::{DEMO_SEED, Demo};
pub use progress::Progress;
pub use summary::Summary;

use crate::archive::{Origin, RunWriter, SealedRun};
use crate::dataset;
use crate::decode::{Answer, Decoded};
use crate::error::{Error, Result};
use crate::export::{Provenance, Publication};
use crate::fetch::{Addresses, CONNECTIONS, Client, host_of};
use crate::file;
use crate::interface::Ticker;
use crate::plan::{Plan, Remote, Request, Source};
use crate::tables::{NewsTable, RequestRecord};
use crate::time::Clock;

use progress::Stage;
use summary::Tally;

/// How a run is made, beside what its plan says.
#[derive(Clone, Debug)]
pub struct Options {
    /// The folder that archive and datasets are in.
    pub output: PathBuf,
    /// Where the time comes from.
    pub clock: Clock,
    /// How the run shows what it does.
    pub progress: Progress,
    /// What tells it to stop.
    pub stop: CancellationToken,
}

/// Fetches, archives, joins and publishes what a plan asks for.
///
/// # Errors
///
/// Whatever a stage fails with; [`Error::Interrupted`] when it was told to stop.
///
/// # Cancel safety
///
/// Not cancel safe: use [`Options::stop`], and what was begun is cleared away.
pub async fn run(plan: Plan, options: Options) -> Result<Summary> {
    let begun = Instant::now();
    let plan = Arc::new(plan);
    let started_at = options.clock.now();
    // Before anything is asked for: an output that cannot be written is no reason to trouble the service.
    let archive = RunWriter::create(&options.output.join("archive"), started_at)?;
    let demo = match plan.source {
        Source::Demo => Some(Demo::start(started_at.date_naive()).await?),
        Source::Remote(_) => None,
    };
    let client = client(&plan, demo.as_ref(), options.clock)?;
    let gathered = Gathering { plan: &plan, client: &client, options: &options, archive }.gather().await;
    if let Some(demo) = demo {
        demo.stop().await;
    }
    let archive = gathered?;
    let summary = finish(Arc::clone(&plan), options, archive).await?;
    Ok(Summary { elapsed: begun.elapsed(), ..summary })
}

fn client(plan: &Plan, demo: Option<&Demo>, clock: Clock) -> Result<Client> {
    let (addresses, key) = match (&plan.source, demo) {
        (Source::Remote(remote), _) => {
            let Remote { base_url, sentiment_base_url, key } = &**remote;
            let addresses = Addresses { signals: base_url.clone(), sentiment: sentiment_base_url.clone() };
            (addresses, key.read(&host_of(base_url))?)
        }
        (Source::Demo, Some(demo)) => (demo.addresses(), demo.key()),
        (Source::Demo, None) => unreachable!("the demo service is started for a plan that asks for it"),
    };
    Client::new(addresses, key, clock)
}

/// The first half of a run: everything that needs the service.
struct Gathering<'a> {
    plan: &'a Arc<Plan>,
    client: &'a Client,
    options: &'a Options,
    archive: RunWriter,
}

impl Gathering<'_> {
    async fn gather(mut self) -> Result<RunWriter> {
        let stage = self.options.progress.stage("signals", self.plan.requests.len());
        let mut tickers = BTreeSet::new();
        self.wave(self.plan.requests.clone(), &stage, &mut tickers).await?;
        stage.done();
        let of_each = |ticker: &Ticker| {
            let ask = |&endpoint| Request::of_ticker(endpoint, ticker.clone());
            self.plan.of_each_ticker.iter().map(ask).collect::<Vec<_>>()
        };
        let requests: Vec<Request> = tickers.iter().flat_map(of_each).collect();
        if !requests.is_empty() {
            let stage = self.options.progress.stage("news", requests.len());
            self.wave(requests, &stage, &mut BTreeSet::new()).await?;
            stage.done();
        }
        Ok(self.archive)
    }

    /// Asks for everything in a list, a few at a time, and archives the answers in the order of the list.
    async fn wave(&mut self, requests: Vec<Request>, stage: &Stage, tickers: &mut BTreeSet<Ticker>) -> Result<()> {
        let ask = |request| answered(self.client, self.plan, request);
        let mut answers = futures_util::stream::iter(requests).map(ask).buffered(CONNECTIONS);
        loop {
            let next = tokio::select! {
                biased;
                () = self.options.stop.cancelled() => return Err(Error::Interrupted),
                next = answers.next() => next,
            };
            let Some(answer) = next else { return Ok(()) };
            let (record, decoded) = answer?;
            stage.advance(record.rows, record.bytes);
            tickers.extend(decoded.tickers().cloned());
            self.archive.add_request(record);
            self.archive.add_series(decoded.series);
            self.archive.add_news(NewsTable::Articles, decoded.articles);
            self.archive.add_news(NewsTable::Summaries, decoded.summaries);
            self.archive.add_rejects(decoded.rejects);
        }
    }
}

/// Fetches and decodes the answer to one request.
async fn answered(client: &Client, plan: &Arc<Plan>, request: Request) -> Result<(RequestRecord, Decoded)> {
    let reply = client.get(&request).await?;
    let dates = plan.dates;
    let work = move || {
        let answer = Answer { request: &request, body: &reply.body, observed_at: reply.observed_at, dates };
        let decoded = answer.decode()?;
        let record = RequestRecord {
            endpoint: request.endpoint.name(),
            request: request.to_string(),
            status: reply.status,
            attempts: reply.attempts,
            bytes: reply.body.len() as u64,
            digest: file::digest(&reply.body),
            rows: decoded.rows() as u64,
            rejects: decoded.rejects.len() as u64,
            observed_at: reply.observed_at,
        };
        Ok((record, decoded))
    };
    blocking(work).await
}

/// The second half of a run: everything that needs only what was gathered.
async fn finish(plan: Arc<Plan>, options: Options, archive: RunWriter) -> Result<Summary> {
    blocking(move || {
        let stage = options.progress.stage("archive", 0);
        let sealed_at = options.clock.now();
        let mut tally = Tally::new(archive.rejects());
        let origin = Origin { definition: &plan.name, text: &plan.text, sealed_at };
        let run = archive.seal(origin)?;
        stage.done();
        let stage = options.progress.stage("dataset", 0);
        let datasets = options.output.join("datasets");
        let dataset = publish(&plan, &run, &datasets, sealed_at, |rows| {
            if options.stop.is_cancelled() {
                return Err(Error::Interrupted);
            }
            tally.count(rows);
            stage.advance(rows.num_rows() as u64, 0);
            Ok(())
        })?;
        stage.done();
        Ok(tally.summary(&plan, &run, dataset))
    })
    .await
}

/// Builds the dataset of a sealed run and publishes it; `watch` sees every batch before it is written.
fn publish(
    plan: &Plan,
    run: &SealedRun,
    datasets: &Path,
    built_at: DateTime<Utc>,
    mut watch: impl FnMut(&arrow::array::RecordBatch) -> Result<()>,
) -> Result<crate::export::Dataset> {
    let provenance =
        Provenance { name: plan.name.clone(), definition: plan.text.clone(), run: run.seal().run.clone(), built_at };
    let mut publication = Publication::begin(datasets, plan, provenance)?;
    dataset::build(run.slabs()?, &plan.dataset, |rows| {
        watch(&rows)?;
        publication.write(&rows)
    })?;
    if publication.rows() == 0 {
        return Err(Error::Empty { name: plan.name.clone() });
    }
    publication.publish(plan)
}

/// Does work that would hold up the runtime's own threads.
async fn blocking<T: Send + 'static>(work: impl FnOnce() -> Result<T> + Send + 'static) -> Result<T> {
    spawn_blocking(work).await.unwrap_or_else(|panic| Err(Error::Worker { source: panic.into() }))
}
