//! How the service of a plan is reached. The demo service runs in this process, for as long as it is needed.

use chrono::NaiveDate;

use super::blocking;
use super::observer::CancellationToken;
use crate::error::Result;
use crate::fetch::Addresses;
use crate::interface::ChangeSet;
use crate::key::ApiKey;
use crate::net::address::host_of;
use crate::plan::{Asking, Plan, Source};
use crate::serve::{self, RunningService, Service, Universe};

/// The seed of the demo universe.
pub const DEMO_SEED: u64 = 500;

/// The addresses and the key of a service; and the demo service as of a day, if it is the one. It is to be stopped: if it is
/// dropped, it stays until the end of the process.
pub(super) async fn connect(
    plan: &Plan,
    today: NaiveDate,
    stop: &CancellationToken,
) -> Result<(Addresses, ApiKey, Option<RunningService>)> {
    match &plan.source {
        Source::Demo { .. } => {
            let key = ApiKey::of_the_demo();
            let service = Service::new(Universe::new(DEMO_SEED, today), ChangeSet::All, key.expose().to_owned());
            // On a free port of the loopback address.
            let demo = serve::start(service, 0).await?;
            let (signals, sentiment) = (demo.base_url().clone(), demo.sentiment_base_url().clone());
            Ok((Addresses { signals, sentiment, asking: Asking::default() }, key, Some(demo)))
        }
        Source::Remote(remote) => {
            // It chooses the source of the key, and whom the key is sent to.
            plan.require_trust()?;
            let (source, host, stop) = (remote.key.clone(), host_of(&remote.base_url), stop.clone());
            let key = blocking(move || source.read(&host, &|| stop.is_cancelled())).await?;
            let (signals, sentiment) = (remote.base_url.clone(), remote.sentiment_base_url.clone());
            Ok((Addresses { signals, sentiment, asking: remote.asking.clone() }, key, None))
        }
    }
}
