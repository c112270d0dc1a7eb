//! Which sectors a service has. It lists none: each is asked for, and only the beginning of its answer is read.

use std::collections::BTreeMap;
use std::io::BufRead;
use std::time::Duration;

use super::{Diagnosis, DoctorOptions};
use crate::error::{Error, ErrorKind, Result};
use crate::fetch::{Answered, Client, ReadFault};
use crate::interface::{Endpoint, Sector};
use crate::plan::{Plan, Request, RequestLimits, RequestList, Source};
use crate::run::{addresses, key};

/// Names that services have for sectors, as far as they are known.
pub const USUAL_SECTORS: [&str; 20] = [
    "basic-materials",
    "communication-services",
    "communications",
    "consumer-cyclical",
    "consumer-defensive",
    "consumer-discretionary",
    "consumer-staples",
    "energy",
    "financial-services",
    "financials",
    "healthcare",
    "health-care",
    "industrials",
    "information-technology",
    "materials",
    "real-estate",
    "technology",
    "telecommunications",
    "transportation",
    "utilities",
];

/// How long a question may be repeated: a person waits for the answer, where a run has the night.
const PATIENCE: Duration = Duration::from_secs(10);

/// The limits of requests that a person waits for.
pub(super) fn brief(limits: RequestLimits) -> RequestLimits {
    RequestLimits { patience: limits.patience.min(PATIENCE), ..limits }
}

/// Those sectors of a plan that its service has signals of.
///
/// # Errors
///
/// If there is no key for the service, or if it does not answer.
pub async fn offered_sectors(plan: &Plan, options: &DoctorOptions) -> Result<Vec<Sector>> {
    let Source::Remote(remote) = &plan.source else { return Ok(Vec::new()) };
    let key = key(plan, &options.control.stop).await?.expect("a remote service needs a key");
    let evidence = options.data.join("evidence");
    let client = Client::new(addresses(remote), key, brief(plan.limits), options.clock, evidence)?;
    let asking = answers(plan, &client);
    let answers = tokio::select! {
        answers = asking => answers?,
        () = options.control.stop.cancelled() => return Err(Error::interruption()),
    };
    Ok(answers.into_iter().filter_map(|(sector, has_signals)| has_signals.then_some(sector)).collect())
}

/// Whether the service has the sectors of a plan; nothing for a plan without any.
pub(super) async fn diagnosis(plan: &Plan, client: &Client) -> Option<Diagnosis> {
    const CHECK: &str = "sectors";
    let answers = match answers(plan, client).await {
        Ok(answers) if answers.is_empty() => return None,
        Ok(answers) => answers,
        // The check of the clock says so.
        Err(error) if error.kind() == ErrorKind::Clock => return None,
        Err(error) => return Some(Diagnosis::of_error(CHECK, &error)),
    };
    let names = |wanted: bool| {
        let of = answers.iter().filter(|(_, has_signals)| **has_signals == wanted);
        of.map(|(sector, _)| format!("`{sector}`")).collect::<Vec<_>>().join(", ")
    };
    let (here, missing) = (names(true), names(false));
    Some(match missing.is_empty() {
        true => Diagnosis::ok(CHECK, format!("signals of {here}")),
        false => Diagnosis::failure(CHECK, format!("no signals of {missing}"), "correct `sectors` in `[signals]`"),
    })
}

/// The sectors that a plan asks for, and whether there are signals of each.
async fn answers(plan: &Plan, client: &Client) -> Result<BTreeMap<Sector, bool>> {
    let mut found = BTreeMap::new();
    let listed = plan
        .alternatives
        .iter()
        .filter(|operation| operation.endpoint == Endpoint::SignalsHistoryAll)
        .map(|operation| &operation.list);
    let requests =
        listed.filter_map(|list| if let RequestList::Listed(requests) = list { Some(requests) } else { None });
    for request in requests.flatten() {
        let Some(sector) = &request.sector else { continue };
        if !found.contains_key(sector) {
            found.insert(sector.clone(), has_signals(request, client).await?);
        }
    }
    Ok(found)
}

/// Whether the answer to a request for the histories of a sector has any.
async fn has_signals(request: &Request, client: &Client) -> Result<bool> {
    let answered = client.get(request, |body| {
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
        Ok(Answered::Missing { .. }) => Ok(false),
        Err(error) if error.kind() == ErrorKind::Refused => Ok(false),
        Err(error) => Err(error),
    }
}
