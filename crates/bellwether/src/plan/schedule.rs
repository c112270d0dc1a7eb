//! When a definition is due, what to call after a run, and the prices that its signals are measured against.

use std::path::PathBuf;
use std::time::Duration;

use super::{RowKind, Validator};
use crate::definition::{CatchUp, Cron, Hook, HookUrl, TimeSpan, Zone};
use crate::text::problem::suggestion;

/// When a scheduler should run a definition.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Schedule {
    /// The expression.
    pub cron: Cron,
    /// The time zone of the expression.
    pub timezone: Zone,
    /// How late a run may start.
    pub catch_up: Duration,
    /// How long after its due time a run is retried.
    pub deadline: Duration,
    /// The time before the first retry.
    pub retry_after: Duration,
}

/// What to call after a run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Hooks {
    /// After a version was published.
    pub on_success: Option<Hook>,
    /// After a run failed, or ran out of retries.
    pub on_failure: Option<Hook>,
    /// After a temporary failure.
    pub on_later: Option<Hook>,
    /// The address to GET after each success.
    pub ping: Option<HookUrl>,
    /// How long each may take.
    pub timeout: Duration,
}

impl Hooks {
    /// Whether there is nothing to call.
    pub fn is_empty(&self) -> bool {
        let Self { on_success, on_failure, on_later, ping, timeout: _ } = self;
        [on_success, on_failure, on_later].iter().all(|hook| hook.is_none()) && ping.is_none()
    }
}

/// The prices that signals are measured against.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PricesPlan {
    /// Their files, which may have a `*` in their names; none if they are named when it is measured.
    pub files: Vec<PathBuf>,
    /// The columns of the files.
    pub columns: PriceColumns,
    /// Whether they are adjusted for splits and dividends; none if it is not said.
    pub adjusted: Option<bool>,
}

/// The names of the columns of a file of prices.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PriceColumns {
    /// The tickers.
    pub ticker: String,
    /// The dates of the sessions.
    pub date: String,
    /// The closes.
    pub close: String,
}

impl Default for PriceColumns {
    fn default() -> Self {
        let [ticker, date, close] = ["ticker", "date", "close"].map(str::to_owned);
        Self { ticker, date, close }
    }
}

impl Validator<'_> {
    /// The schedule of a definition, if it has one.
    pub(super) fn schedule(&mut self) -> Option<Schedule> {
        let section = self.definition.schedule.as_ref()?;
        let Some(cron) = section.cron.clone() else {
            let hint = "add five fields, such as `cron = \"30 18 * * MON-FRI\"`";
            self.miss("schedule", "schedule", "`cron` is missing", hint);
            return None;
        };
        Some(Schedule {
            cron,
            timezone: section.timezone.unwrap_or(Zone(chrono_tz::UTC)),
            catch_up: section.catch_up.map_or(Duration::from_secs(24 * 60 * 60), |CatchUp(span)| span),
            deadline: section.deadline.map_or(Duration::from_secs(2 * 60 * 60), |TimeSpan(span)| span),
            retry_after: section.retry_after.map_or(Duration::from_secs(60), |TimeSpan(span)| span),
        })
    }

    /// What to call after a run.
    pub(super) fn hooks(&self) -> Hooks {
        let section = &self.definition.hooks;
        Hooks {
            on_success: section.on_success.clone(),
            on_failure: section.on_failure.clone(),
            on_later: section.on_later.clone(),
            ping: section.ping.clone(),
            timeout: section.timeout.map_or(Duration::from_secs(30), |TimeSpan(span)| span),
        }
    }

    /// The prices of a definition.
    pub(super) fn prices(&mut self, rows: RowKind) -> PricesPlan {
        let section = &self.definition.prices;
        if rows == RowKind::Article {
            let hint = "prices measure signals, and a dataset of news has none: remove it";
            self.without_effect(&["prices.file", "prices.columns", "prices.adjusted"], "without signals", hint);
        }
        let mut columns = PriceColumns::default();
        for (column, name) in section.columns.iter().flatten() {
            let renamed = match column.as_str() {
                "ticker" => &mut columns.ticker,
                "date" => &mut columns.date,
                "close" => &mut columns.close,
                _ => {
                    let hint = suggestion(column, &["ticker", "date", "close"], "the columns are");
                    self.object(&format!("prices.columns.{column}"), format!("prices have no column `{column}`"), hint);
                    continue;
                }
            };
            renamed.clone_from(name);
        }
        let files = self.distinct("file", "prices.file", section.file.as_ref()).unwrap_or_default();
        PricesPlan {
            files: files.into_iter().map(|file| self.root.join(file)).collect(),
            columns,
            adjusted: section.adjusted,
        }
    }
}
