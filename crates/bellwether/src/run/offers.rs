//! What a service offers: its sectors and its tickers.

use std::collections::BTreeSet;
use std::io::BufRead as _;
use std::path::PathBuf;
use std::time::Duration;

use schemars::JsonSchema;
use serde::Serialize;

use super::gather::decode_pages;
use super::observer::Control;
use super::start::connect;
use crate::decode::{Answer, AnswerPart, Rules};
use crate::error::{Error, ErrorKind, Result};
use crate::fetch::{Answered, Body, Client, ReadFault};
use crate::interface::{Endpoint, Period, Regime, Sector, Ticker};
use crate::plan::{Plan, Request, RequestLimits, RequestList};
use crate::time::Clock;

/// Names that services have for sectors, as far as they are known.
const USUAL_SECTORS: &str = "basic-materials communication-services communications consumer-cyclical consumer-defensive \
    consumer-discretionary consumer-staples energy financial-services financials healthcare health-care \
    industrials information-technology materials real-estate technology telecommunications \
    transportation utilities";

/// How long a question may be repeated: a person waits for the answer, where a run has the night.
pub(crate) const PATIENCE: Duration = Duration::from_secs(10);

/// The limits of requests that a person waits for.
pub(super) fn brief(limits: RequestLimits) -> RequestLimits {
    RequestLimits { patience: limits.patience.min(PATIENCE), ..limits }
}

/// How to ask a service.
#[derive(Clone, Debug)]
pub struct OfferOptions {
    /// The folder of datasets and evidence.
    pub data: PathBuf,
    /// Where the time comes from.
    pub clock: Clock,
    /// Cancels the questions.
    pub control: Control,
}

/// The sectors of a service.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct OfferedSectors {
    /// Those that it has signals of.
    pub sectors: BTreeSet<Sector>,
    /// All that it was asked for: it lists none.
    pub asked: BTreeSet<Sector>,
}

/// The tickers that a service lists.
#[derive(Clone, Debug, Default, Serialize, JsonSchema)]
pub struct OfferedTickers {
    /// The tickers.
    pub tickers: BTreeSet<Ticker>,
    /// Number of entries that are not tickers.
    pub rejected: u64,
}

/// The sectors that the service of a plan has signals of: of the usual names, and of those in the plan.
///
/// No operation lists sectors. Each is asked for, in the first period and regime of the plan, and only the beginning of
/// its answer is read.
///
/// # Errors
///
/// If there is no key for the service, or if it does not answer; if the questions were cancelled.
pub async fn offered_sectors(plan: &Plan, options: &OfferOptions) -> Result<OfferedSectors> {
    let (mut asked, mut pair) = (BTreeSet::new(), None);
    for operation in &plan.alternatives {
        let requests = match &operation.list {
            RequestList::Listed(requests) => requests.clone(),
            RequestList::EachTicker(tickers, pairs) => {
                pair = pair.or(pairs.first().copied());
                tickers.listing()
            }
        };
        for request in requests {
            pair = pair.or(request.period.zip(request.regime));
            asked.extend(request.sector);
        }
    }
    asked.extend(USUAL_SECTORS.split(' ').map(|name| name.parse::<Sector>().expect("the name of a sector")));
    let (period, regime) = pair.unwrap_or((Period::default(), Regime::default()));
    ask(plan, options, async |client| {
        let mut sectors = BTreeSet::new();
        for sector in &asked {
            if has_signals(&Request::of_sector(sector.clone(), period, regime), client).await? {
                sectors.insert(sector.clone());
            }
        }
        Ok(OfferedSectors { sectors, asked: asked.clone() })
    })
    .await
}

/// The tickers that the service of a plan lists as available.
///
/// # Errors
///
/// If the service does not offer the operation that lists them; if there is no key for it, or if it does not answer; if
/// the question was cancelled.
pub async fn offered_tickers(plan: &Plan, options: &OfferOptions) -> Result<OfferedTickers> {
    let request = Request::bare(Endpoint::TickersAvailable);
    ask(plan, options, async |client| {
        let (asked, rules) = (request.clone(), Rules::from_plan(plan));
        let read = move |body: &mut Body| {
            let mut offered = OfferedTickers::default();
            decode_pages(&Answer { request: &asked, rules: &rules }, body, |decoded| {
                offered.rejected += decoded.rejected;
                for part in decoded.parts {
                    if let AnswerPart::Tickers(tickers) = part {
                        offered.tickers.extend(tickers);
                    }
                }
                Ok(())
            })?;
            Ok(offered)
        };
        match client.get(&request, None, read).await? {
            Answered::Taken(offered) => Ok(offered),
            Answered::Failed(error) => Err(error),
            Answered::Refused(refusal) => {
                let address = client.address(Endpoint::TickersAvailable);
                let what = format!("the service does not list its tickers: `{address}` answers with {refusal}");
                let hint = "take all tickers of its sectors, which `bellwether list sectors` finds, or name tickers in `[signals]`";
                Err(Error::new(ErrorKind::Service, what).with_hint(hint))
            }
        }
    })
    .await
}

/// Asks the service of a plan something that a person waits for.
async fn ask<T>(plan: &Plan, options: &OfferOptions, question: impl AsyncFnOnce(&Client) -> Result<T>) -> Result<T> {
    let today = options.clock.now().date_naive();
    let (addresses, key, demo) = connect(plan, today, &options.control.stop).await?;
    let evidence = options.data.join("evidence");
    let client = Client::new(addresses, key, brief(plan.limits), options.clock, evidence)?;
    let answer = tokio::select! {
        answer = question(&client) => answer,
        () = options.control.stop.cancelled() => Err(Error::interruption()),
    };
    if let Some(demo) = demo {
        demo.stop().await;
    }
    answer
}

/// Whether the answer to a request for the histories of a sector has any.
pub(super) async fn has_signals(request: &Request, client: &Client) -> Result<bool> {
    let answered = client.get(request, None, |body| {
        // An object without a key has no quote.
        loop {
            let part = body.fill_buf().map_err(ReadFault::Broken)?;
            if part.is_empty() || part.contains(&b'"') {
                return Ok(!part.is_empty());
            }
            let length = part.len();
            body.consume(length);
        }
    });
    match answered.await {
        Ok(Answered::Taken(has_signals)) => Ok(has_signals),
        Ok(Answered::Refused(refusal)) if refusal.status == 403 => Err(client.refused(request, &refusal)),
        Ok(Answered::Refused(_)) => Ok(false),
        Ok(Answered::Failed(error)) | Err(error) => Err(error),
    }
}
