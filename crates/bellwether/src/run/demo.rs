//! The demo service, in this process, for as long as a run needs it.

use chrono::NaiveDate;

use crate::error::Result;
use crate::fetch::Addresses;
use crate::interface::ChangeSet;
use crate::key::ApiKey;
use crate::plan::Asking;
use crate::serve::{self, RunningService, Service, Universe};

/// The seed of the demo universe.
pub const DEMO_SEED: u64 = 500;

/// A demo service on a free port of the loopback address.
#[derive(Debug)]
pub(super) struct Demo {
    running: RunningService,
    key: ApiKey,
}

impl Demo {
    /// Starts the service as of a day.
    pub(super) async fn start(today: NaiveDate) -> Result<Self> {
        let key = ApiKey::of_the_demo();
        let service = Service::new(Universe::new(DEMO_SEED, today), ChangeSet::All, key.expose().to_owned());
        Ok(Self { running: serve::start(service, 0).await?, key })
    }

    /// Its base addresses.
    pub(super) fn addresses(&self) -> Addresses {
        Addresses {
            signals: self.running.base_url().clone(),
            sentiment: self.running.sentiment_base_url().clone(),
            asking: Asking::default(),
        }
    }

    /// Its key.
    pub(super) fn key(&self) -> ApiKey {
        self.key.clone()
    }

    /// Stops it. Dropping the future leaves the service to the end of the process.
    pub(super) async fn stop(self) {
        self.running.stop().await;
    }
}
