//! `bellwether serve`: the service's interface on this machine, with demo data.

use chrono::NaiveDate;

use super::outcome::Result;
use super::typed::day;
use super::{interruptible, note, say};
use crate::interface::ChangeSet;
use crate::key_source::VARIABLE;
use crate::run::DEMO_SEED;
use crate::secret::ApiKey;
use crate::serve::{self, Service, Universe};
use crate::time::Clock;

/// Serve the service's interface on this machine, with demo data.
///
/// Prints the two base addresses in the form that a definition takes, and serves until stopped.
#[derive(Debug, clap::Args)]
pub(super) struct Serve {
    /// Serve the built-in demo universe.
    #[arg(long, required = true)]
    demo: bool,

    /// The port to listen on; 0 picks a free one.
    #[arg(long, default_value_t = 0)]
    port: u16,

    /// The current day in the demo universe. Default: today in UTC.
    #[arg(long, value_name = "DAY", value_parser = day)]
    today: Option<NaiveDate>,

    /// The seed of the demo universe.
    #[arg(long, default_value_t = DEMO_SEED)]
    seed: u64,

    /// The point of the service's change record: A to G, `origin` (before G), or `all`.
    #[arg(long, default_value = "all", value_name = "SET")]
    change_set: ChangeSet,
}

impl Serve {
    pub(super) fn execute(self) -> Result<()> {
        interruptible(async |stop| {
            let today = self.today.unwrap_or_else(|| Clock::System.now().date_naive());
            let given = std::env::var(VARIABLE).ok().and_then(|text| ApiKey::new(&text));
            let key_is = if given.is_some() { format!("the one in `{VARIABLE}`") } else { "`demo`".to_owned() };
            let key = given.unwrap_or_else(ApiKey::of_the_demo);
            let service = Service::new(Universe::new(self.seed, today), self.change_set, key.expose().to_owned());
            let running = serve::start(service, self.port).await?;
            note(&format!(
                "serving the demo universe of {today}, change set {}; the API key is {key_is}",
                self.change_set
            ));
            let (signals, sentiment) = (running.base_url(), running.sentiment_base_url());
            say(&format!("base_url = \"{signals}\"\nsentiment_base_url = \"{sentiment}\"\n"))?;
            stop.cancelled().await;
            running.stop().await;
            Ok(())
        })
    }
}
