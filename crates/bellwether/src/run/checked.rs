//! A checked definition: its problems, or its requests and columns. `bellwether check --json` and Python give the same document.

use std::path::Path;

use chrono::{DateTime, Utc};
use schemars::JsonSchema;
use serde::Serialize;

use super::report::latest_facts;
use crate::disk::file;
use crate::error::Error;
use crate::facts::Facts;
use crate::freshness::today;
use crate::interface::Endpoint;
use crate::plan::{OperationRequests, Plan, Request, RequestList, Source, TickerSource, describe};
use crate::text::problem::PlacedProblem;

/// A definition that was checked.
#[derive(Debug, Serialize, JsonSchema)]
pub struct CheckedDefinition {
    /// Its file.
    pub path: String,
    /// Whether it can be run.
    pub ok: bool,
    /// Warnings.
    pub warnings: Vec<String>,
    /// Its problems.
    pub problems: Vec<PlacedProblem>,
    /// Its requests, and the columns of its dataset; none with problems.
    pub plan: Option<PlanDocument>,
}

impl CheckedDefinition {
    /// A valid definition, whose dataset is published in a data folder.
    pub fn valid(plan: &Plan, data: &Path, now: DateTime<Utc>) -> Self {
        let facts = latest_facts(data, &plan.name);
        let mut warnings = plan.dataset.warnings();
        let split = facts.as_ref().and_then(|facts| facts.split_days.as_ref());
        warnings.extend(split.map(|split| split.in_words(plan.dataset.dates)));
        warnings.extend(plan.dataset.calendar_note(today(plan, now)));
        // A pattern stands for files that will be there.
        let files = plan.prices.files.iter().filter(|path| !path.to_string_lossy().contains('*'));
        for missing in files.filter(|path| file::is_gone(path)).take(1) {
            let missing = missing.display();
            warnings.push(format!("there is no `{missing}`, which `[prices]` names: `audit skill` needs it"));
        }
        let document = PlanDocument::new(plan, facts.as_ref());
        Self { path: document.path.clone(), ok: true, warnings, problems: Vec::new(), plan: Some(document) }
    }

    /// A definition with problems: all those of its text, or the one reason for which it cannot be read.
    pub fn invalid(path: &Path, error: &Error) -> Self {
        let (message, hint) = (error.to_string(), error.hint().map(str::to_owned));
        let problems = match error.problems() {
            Some(problems) => problems.list(),
            None => vec![PlacedProblem { message, hint, line: None, column: None }],
        };
        Self { path: path.display().to_string(), ok: false, warnings: Vec::new(), problems, plan: None }
    }
}

/// What a definition means.
#[derive(Debug, Serialize, JsonSchema)]
pub struct PlanDocument {
    /// The name of the definition, and of its dataset.
    name: String,
    /// Its description.
    description: Option<String>,
    /// Its file.
    path: String,
    /// The base address of the signals; none for the demo service.
    base_url: Option<String>,
    /// The base address of news and sentiment; none for the demo service.
    sentiment_base_url: Option<String>,
    /// The variables of the environment that the addresses come from.
    address_variables: Vec<String>,
    /// The tickers whose signals are left out.
    excluded: Vec<String>,
    /// The requests for the tickers that are named beside sectors.
    further: Vec<String>,
    /// The ways to get the signals: the first that the service offers is used.
    signals: Vec<WayToGet>,
    /// The operations requested for each ticker.
    of_each_ticker: Vec<String>,
    /// The columns.
    pub columns: Vec<ColumnDocument>,
    /// What the file of `[identity]` names; none without one.
    identity: Option<IdentityDocument>,
    /// The columns that rows are sorted by.
    sort: Vec<String>,
    /// The formats.
    formats: Vec<String>,
    /// When it is run.
    schedule: Option<Schedule>,
    /// The text of the definition.
    text: String,
}

/// A way to get the signals.
#[derive(Debug, Serialize, JsonSchema)]
struct WayToGet {
    /// The operation.
    operation: String,
    /// The requests, as far as they are known before the first answer.
    requests: Vec<String>,
    /// Whether there is a request for each ticker that the service lists.
    is_of_each_ticker: bool,
}

/// A column.
#[derive(Debug, Serialize, JsonSchema)]
pub struct ColumnDocument {
    /// Its name.
    pub name: String,
    /// Its type.
    pub r#type: String,
    /// What it holds.
    pub meaning: String,
    /// Its unit; none if it has none.
    pub unit: Option<String>,
    /// When it is null; none if it never is.
    pub null: Option<String>,
    /// A value, as CSV has it.
    pub example: String,
    /// The share of the rows of the latest version for which it is unknown; none without a version, and for columns that
    /// are always known.
    pub unknown: Option<f64>,
}

/// What a file says of the identity of tickers.
#[derive(Debug, Serialize, JsonSchema)]
struct IdentityDocument {
    /// The number of ids.
    ids: u64,
    /// The number of tickers that have one.
    tickers: u64,
    /// The digest of what it says.
    blake3: String,
}

/// When a definition is run.
#[derive(Debug, Serialize, JsonSchema)]
struct Schedule {
    /// The five fields.
    cron: String,
    /// Their time zone.
    timezone: String,
}

impl PlanDocument {
    fn new(plan: &Plan, facts: Option<&Facts>) -> Self {
        let remote = match &plan.source {
            Source::Remote(remote) => Some(remote),
            Source::Demo { .. } => None,
        };
        let mut columns = Vec::new();
        for field in plan.dataset.written.schema().fields() {
            let meaning = plan.dataset.meaning(field.name()).expect("each column has one");
            columns.push(ColumnDocument {
                name: field.name().clone(),
                r#type: describe(field),
                meaning: meaning.what,
                unit: meaning.unit.map(str::to_owned),
                null: meaning.null.map(str::to_owned),
                example: meaning.example.to_owned(),
                unknown: facts.and_then(|facts| unknown_share(facts, plan, field.name())),
            });
        }
        let [ids, tickers] = plan.dataset.identity.counts();
        let identity = plan.dataset.identity.digest().map(ToOwned::to_owned);
        Self {
            name: plan.name.clone(),
            description: plan.description.clone(),
            path: plan.path.display().to_string(),
            base_url: remote.map(|remote| remote.base_url.to_string()),
            sentiment_base_url: remote.map(|remote| remote.sentiment_base_url.to_string()),
            address_variables: plan.address_variables.clone(),
            excluded: plan.excluded.iter().map(ToString::to_string).collect(),
            signals: plan.alternatives.iter().map(WayToGet::new).collect(),
            further: plan.further.iter().map(Request::target).collect(),
            of_each_ticker: plan.of_each_ticker.iter().map(Endpoint::to_string).collect(),
            columns,
            identity: identity.map(|blake3| IdentityDocument { ids, tickers, blake3 }),
            sort: plan.dataset.written.sort.clone(),
            formats: plan.files.formats.iter().map(|format| format.as_str().to_owned()).collect(),
            schedule: plan
                .schedule
                .as_ref()
                .map(|schedule| Schedule { cron: schedule.cron.to_string(), timezone: schedule.timezone.to_string() }),
            text: plan.text.clone(),
        }
    }
}

impl WayToGet {
    fn new(operation: &OperationRequests) -> Self {
        let (requests, is_of_each_ticker) = match &operation.list {
            RequestList::Listed(requests) => (requests.clone(), false),
            RequestList::EachTicker(TickerSource::Listed(tickers), _) => (operation.requests(tickers), false),
            RequestList::EachTicker(list, _) => (list.listing(), true),
        };
        let requests = requests.iter().map(Request::target).collect();
        Self { operation: operation.endpoint.to_string(), requests, is_of_each_ticker }
    }
}

/// The share of rows for which a column is unknown; none if it cannot be.
fn unknown_share(facts: &Facts, plan: &Plan, column: &str) -> Option<f64> {
    let own = plan.dataset.written.names().own(column);
    let feature = plan.dataset.features.iter().find(|feature| feature.to_string() == own)?;
    let (_, unknown) = facts.windows.iter().find(|(length, _)| Some(*length) == feature.window())?;
    (facts.rows > 0).then(|| *unknown as f64 / facts.rows as f64)
}
