//! Whether the service has the sectors of a plan.

use std::collections::BTreeMap;

use super::Diagnosis;
use crate::error::{ErrorKind, Result};
use crate::fetch::Client;
use crate::interface::{Endpoint, Sector};
use crate::plan::{Plan, RequestList};
use crate::run::offers::has_signals;

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
