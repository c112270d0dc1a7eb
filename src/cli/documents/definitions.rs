//! Definitions: whether they are correct, what they mean, and whether they can be run here.

use schemars::JsonSchema;
use serde::Serialize;

use crate::cli::plan::Unknown;
use crate::interface::Endpoint;
use crate::plan::{self, Request, RequestList, Source, TickerSource, Way, describe};
use crate::problem::Problems;
use crate::run::Diagnosis;

/// Definitions that were checked.
#[derive(Debug, Serialize, JsonSchema)]
pub(in crate::cli) struct Checked {
    pub(in crate::cli) definitions: Vec<Definition>,
}

/// A definition that was checked.
#[derive(Debug, Serialize, JsonSchema)]
pub(in crate::cli) struct Definition {
    /// Its file.
    path: String,
    /// Whether it can be run.
    ok: bool,
    /// Warnings.
    warnings: Vec<String>,
    /// What is wrong.
    problems: Vec<Problem>,
}

/// Something wrong with a definition.
#[derive(Debug, Serialize, JsonSchema)]
struct Problem {
    /// What is wrong.
    message: String,
    /// What to do about it.
    hint: Option<String>,
    /// The line, from 1; none if it is about the whole file.
    line: Option<usize>,
    /// The column, from 1.
    column: Option<usize>,
}

/// What a definition means.
#[derive(Debug, Serialize, JsonSchema)]
pub(in crate::cli) struct Plan {
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
    /// The ways to get the signals: the first that the service offers is used.
    signals: Vec<WayToGet>,
    /// The operations requested for each ticker.
    of_each_ticker: Vec<String>,
    /// The columns.
    columns: Vec<Column>,
    /// The columns that rows are sorted by.
    sort: Vec<String>,
    /// The formats.
    formats: Vec<String>,
    /// When it is run.
    schedule: Option<Schedule>,
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
struct Column {
    /// Its name.
    name: String,
    /// Its type.
    r#type: String,
    /// What it holds.
    meaning: String,
    /// When it is null; none if it never is.
    null: Option<String>,
    /// A value, as CSV has it.
    example: String,
    /// The share of the rows of the latest version for which it is unknown; none without a version, and for columns that
    /// are always known.
    unknown: Option<f64>,
}

/// When a definition is run.
#[derive(Debug, Serialize, JsonSchema)]
struct Schedule {
    /// The five fields.
    cron: String,
    /// Their time zone.
    timezone: String,
}

/// The checks of everything that a run needs.
#[derive(Debug, Serialize, JsonSchema)]
pub(in crate::cli) struct Diagnoses {
    checks: Vec<Check>,
}

/// A check.
#[derive(Debug, Serialize, JsonSchema)]
struct Check {
    /// What was checked.
    check: String,
    /// `ok`, `warning`, `failed` or `not applicable`.
    health: String,
    /// What was found.
    found: String,
    /// What to do about it.
    remedy: Option<String>,
}

impl Definition {
    pub(in crate::cli) fn right(plan: &plan::Plan, warnings: Vec<String>) -> Self {
        let path = plan.path.display().to_string();
        Self { path, ok: true, warnings, problems: Vec::new() }
    }

    /// A definition whose text has problems.
    pub(in crate::cli) fn wrong(given: &str, problems: &Problems) -> Self {
        let problem = |problem: &crate::problem::Problem| {
            let (line, column) = problems.place(problem);
            let (message, hint) = (problem.message.clone(), problem.hint.clone());
            Problem { message, hint, line: Some(line), column: Some(column) }
        };
        let problems = problems.list().iter().map(problem).collect();
        Self { path: given.to_owned(), ok: false, warnings: Vec::new(), problems }
    }

    /// A definition that cannot be read.
    pub(in crate::cli) fn unreadable(given: &str, message: String, hint: Option<String>) -> Self {
        let problem = Problem { message, hint, line: None, column: None };
        Self { path: given.to_owned(), ok: false, warnings: Vec::new(), problems: vec![problem] }
    }
}

impl Plan {
    pub(in crate::cli) fn of(plan: &plan::Plan, unknown: &Unknown) -> Self {
        let remote = match &plan.source {
            Source::Remote(remote) => Some(remote),
            Source::Demo => None,
        };
        let columns = plan.dataset.written.schema().fields().iter();
        Self {
            name: plan.name.clone(),
            description: plan.description.clone(),
            path: plan.path.display().to_string(),
            base_url: remote.map(|remote| remote.base_url.to_string()),
            sentiment_base_url: remote.map(|remote| remote.sentiment_base_url.to_string()),
            signals: plan.ways.iter().map(WayToGet::of).collect(),
            of_each_ticker: plan.of_each_ticker.iter().map(Endpoint::to_string).collect(),
            columns: columns
                .map(|it| {
                    let meaning = plan.dataset.meaning(it.name()).expect("each column has one");
                    Column {
                        name: it.name().clone(),
                        r#type: describe(it),
                        meaning: meaning.what,
                        null: meaning.null.map(str::to_owned),
                        example: meaning.example.to_owned(),
                        unknown: unknown.share(&plan.dataset, it.name()),
                    }
                })
                .collect(),
            sort: plan.dataset.written.sort.clone(),
            formats: plan.files.formats.iter().map(|format| format.as_str().to_owned()).collect(),
            schedule: plan
                .schedule
                .as_ref()
                .map(|schedule| Schedule { cron: schedule.cron.to_string(), timezone: schedule.timezone.to_string() }),
        }
    }
}

impl WayToGet {
    fn of(way: &Way) -> Self {
        let targets = |requests: &[Request]| requests.iter().map(Request::target).collect();
        let (requests, is_of_each_ticker) = match &way.list {
            RequestList::Listed(requests) => (targets(requests), false),
            RequestList::EachTicker(TickerSource::Listed(tickers), _) => (targets(&way.requests(tickers)), false),
            RequestList::EachTicker(TickerSource::NamedBy(requests), _) => (targets(requests), true),
            RequestList::EachTicker(TickerSource::Available, _) => {
                (targets(&[Request::bare(Endpoint::TickersAvailable)]), true)
            }
            RequestList::EachTicker(TickerSource::Signals, _) => (Vec::new(), true),
        };
        Self { operation: way.endpoint.to_string(), requests, is_of_each_ticker }
    }
}

impl Diagnoses {
    pub(in crate::cli) fn of(found: &[Diagnosis]) -> Self {
        let check = |one: &Diagnosis| Check {
            check: one.check.to_owned(),
            health: one.health.as_str().to_owned(),
            found: one.found.clone(),
            remedy: one.remedy.clone(),
        };
        Self { checks: found.iter().map(check).collect() }
    }
}
