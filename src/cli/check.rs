//! `bellwether check`: the problems of definitions; without any, their requests and the columns of their datasets.

use std::collections::BTreeSet;
use std::fmt::{self, Write as _};

use bellwether::definition;
use bellwether::interface::Endpoint;
use bellwether::plan::{DatasetPlan, OperationRequests, Plan, Request, RequestList, Source, TickerSource};
use bellwether::project::Project;
use bellwether::run::{CheckedDefinition, ColumnDocument};
use bellwether::text::escape::escape;
use bellwether::text::human::{count_of, group_digits, percent, span};
use bellwether::time::Clock;
use schemars::JsonSchema;
use serde::Serialize;

use super::complain;
use super::options::plan_of;
use super::schedule::next_times;
use super::talk::{AsJson, Failure, Result, USAGE, document, note, padding, say};

/// Definitions that were checked.
#[derive(Debug, Serialize, JsonSchema)]
pub(super) struct Checked {
    definitions: Vec<CheckedDefinition>,
}

/// Check definitions, and print the requests and the columns of each.
#[derive(Debug, clap::Args)]
pub(super) struct Check {
    /// Definitions: names in `pipelines/`, or paths. Default: all of the project.
    #[arg(value_name = "DEFINITION")]
    definitions: Vec<String>,

    /// List every request, as far as they are known before the first answer.
    #[arg(long, conflicts_with = "json")]
    requests: bool,

    #[command(flatten)]
    json: AsJson,
}

/// How requests are told.
#[derive(Clone, Copy, Debug)]
enum Requests {
    /// How many each operation has.
    Counted,
    /// Each of them.
    Listed,
}

impl Check {
    pub(super) fn execute(mut self, project: &Project) -> Result<()> {
        if self.definitions.is_empty() {
            self.definitions = definition::names(&project.definitions())?;
        }
        if self.definitions.is_empty() {
            return plan_of(None, project).map(drop);
        }
        let (data, now) = (project.data(), Clock::System.now());
        if self.json.is_wanted() {
            let definitions = self.definitions.iter().map(|given| match Plan::find(given, project) {
                Ok(plan) => CheckedDefinition::valid(&plan, &data, now),
                Err(error) => CheckedDefinition::invalid(&definition::path_of(given, &project.definitions()), &error),
            });
            let definitions: Vec<CheckedDefinition> = definitions.collect();
            let is_ok = definitions.iter().all(|definition| definition.ok);
            say(&document(Checked { definitions }))?;
            // The document says what is wrong.
            return if is_ok { Ok(()) } else { Err(Failure::Told { code: USAGE }) };
        }
        let requests = if self.requests { Requests::Listed } else { Requests::Counted };
        let mut last: Option<Failure> = None;
        for (index, definition) in self.definitions.iter().enumerate() {
            match plan_of(Some(definition), project) {
                Ok(plan) => {
                    let checked = CheckedDefinition::valid(&plan, &data, now);
                    let path = escape(&checked.path);
                    for warning in &checked.warnings {
                        note(&format!("warning: {path}: {warning}"));
                    }
                    let columns = checked.plan.map(|plan| plan.columns).unwrap_or_default();
                    let gap = if index > 0 { "\n" } else { "" };
                    let summary = summary(&plan, requests, &columns).expect("a string takes any text");
                    say(&format!("{gap}{path}: ok\n{summary}"))?;
                }
                Err(error) => {
                    if let Some(earlier) = last.replace(error) {
                        complain(&earlier);
                        note("");
                    }
                }
            }
        }
        last.map_or(Ok(()), Err)
    }
}

/// The warnings apart, what a check says of a valid definition.
fn summary(plan: &Plan, requests: Requests, columns: &[ColumnDocument]) -> Result<String, fmt::Error> {
    let mut text = String::new();
    if let Some(description) = &plan.description {
        writeln!(text, "{}\n", escape(description))?;
    }
    match &plan.source {
        Source::Demo { .. } => writeln!(text, "service: demo, built in")?,
        Source::Remote(remote) => {
            writeln!(text, "base_url: {}", remote.base_url)?;
            writeln!(text, "sentiment_base_url: {}", remote.sentiment_base_url)?;
            if !plan.address_variables.is_empty() {
                writeln!(text, "  from the environment: {}", plan.address_variables.join(", "))?;
            }
        }
    }
    tell_dates(&mut text, &plan.dataset)?;
    if let Some(schedule) = &plan.schedule {
        writeln!(text, "schedule: {} in {}", schedule.cron, schedule.timezone)?;
        text.push_str(&next_times(schedule));
    }
    tell_requests(&mut text, plan, requests)?;
    writeln!(text, "\ncolumns: {}", columns.len())?;
    let width = columns.iter().map(|column| column.name.chars().count()).max().unwrap_or_default();
    for ColumnDocument { name, r#type, unknown, .. } in columns {
        write!(text, "  {name}{}  {type}", padding(name, width))?;
        if let Some(share) = unknown.filter(|share| *share > 0.0) {
            write!(text, ", unknown for {} of the latest version", percent(share))?;
        }
        text.push('\n');
    }
    writeln!(text, "\nsorted by: {}", plan.dataset.written.sort.join(", "))?;
    let formats: Vec<&str> = plan.files.formats.iter().map(|format| format.as_str()).collect();
    writeln!(text, "written as: {}", formats.join(", "))?;
    Ok(text)
}

/// Which clock dates are on, when signals are made and news is known, the trading days, and which tickers are the same
/// security.
fn tell_dates(text: &mut String, dataset: &DatasetPlan) -> fmt::Result {
    let DatasetPlan { dates, made_at, news_delay, sessions, identity, .. } = dataset;
    writeln!(text, "dates: naive by {dates}")?;
    if let Some(made_at) = made_at {
        writeln!(text, "signals without a time: made at {made_at}")?;
    }
    if !news_delay.is_zero() {
        writeln!(text, "news: known {} after its date", span(*news_delay))?;
    }
    writeln!(text, "trading days: {sessions}")?;
    if identity.is_given() {
        let [ids, tickers] = identity.counts();
        let (ids, tickers) = (count_of(ids, "id", "ids"), count_of(tickers, "ticker", "tickers"));
        let rest = "none on their other days; any other ticker is its own id";
        writeln!(text, "identity: {ids} of {tickers} on the days of the file, {rest}")?;
    }
    Ok(())
}

/// The requests of the first way, and the fallbacks if the service does not offer it.
fn tell_requests(text: &mut String, plan: &Plan, requests: Requests) -> fmt::Result {
    let Some((first, others)) = plan.alternatives.split_first() else { return Ok(()) };
    writeln!(text, "\nrequests: {}", number(first, plan.of_each_ticker.len()))?;
    match requests {
        Requests::Listed => tell_operation(text, first)?,
        Requests::Counted => text.push_str(&counts(plan, first)),
    }
    if !plan.further.is_empty() {
        writeln!(text, "  and {} for the tickers that are named", request_count(plan.further.len()))?;
    }
    if !plan.excluded.is_empty() {
        let excluded: Vec<&str> = plan.excluded.iter().map(|ticker| ticker.as_str()).collect();
        writeln!(text, "  without {}", excluded.join(", "))?;
    }
    for endpoint in plan.of_each_ticker.iter().filter(|_| matches!(requests, Requests::Listed)) {
        writeln!(text, "  GET {} for {}", address(*endpoint), tickers_in_words(&plan.news_tickers))?;
    }
    for OperationRequests { endpoint, list, .. } in others {
        writeln!(text, "  or, if the service does not offer that, {}", address(*endpoint))?;
        match list {
            RequestList::EachTicker(tickers @ TickerSource::Listed(_), _) => {
                writeln!(text, "    for {}", tickers_in_words(tickers))?;
            }
            RequestList::EachTicker(..) => writeln!(text, "    for the same tickers, as listed in the archive")?,
            RequestList::Listed(_) => {}
        }
    }
    Ok(())
}

/// How many requests each operation has, a line each.
fn counts(plan: &Plan, operation: &OperationRequests) -> String {
    let mut rows: Vec<(&str, String)> = Vec::new();
    match &operation.list {
        RequestList::Listed(requests) => rows.push((operation.endpoint.path(), product(requests))),
        RequestList::EachTicker(tickers, pairs) => {
            let listing = tickers.listing();
            if let Some(naming) = listing.first() {
                let name = if listing.len() == 1 { "names" } else { "name" };
                let count = request_count(listing.len());
                rows.push((naming.endpoint.path(), format!("{count}, which {name} the tickers")));
            }
            rows.push((operation.endpoint.path(), of_tickers(tickers, pairs.len().max(1))));
        }
    }
    rows.extend(plan.of_each_ticker.iter().map(|endpoint| (endpoint.path(), of_tickers(&plan.news_tickers, 1))));
    let width = rows.iter().map(|(path, _)| path.len()).max().unwrap_or_default();
    rows.iter().map(|(path, count)| format!("  {path}{}  {count}\n", padding(path, width))).collect()
}

fn request_count(count: usize) -> String {
    count_of(count as u64, "request", "requests")
}

/// The number of some requests, and how it comes about: `3 sectors × 9 pairs = 27 requests`.
fn product(requests: &[Request]) -> String {
    let sectors: BTreeSet<_> = requests.iter().filter_map(|request| request.sector.as_ref()).collect();
    let pairs: BTreeSet<_> = requests.iter().map(|request| (request.period, request.regime)).collect();
    let (sectors, pairs) = (sectors.len(), pairs.len());
    if sectors < 2 || pairs < 2 || sectors * pairs != requests.len() {
        return request_count(requests.len());
    }
    format!("{sectors} sectors × {pairs} pairs = {}", request_count(requests.len()))
}

/// The number of requests for each of some tickers.
fn of_tickers(tickers: &TickerSource, each: usize) -> String {
    match tickers {
        TickerSource::Listed(tickers) if each > 1 && tickers.len() > 1 => {
            let (tickers, all) = (group_digits(tickers.len() as u64), request_count(tickers.len() * each));
            format!("{tickers} tickers × {each} pairs = {all}")
        }
        TickerSource::Listed(tickers) => request_count(tickers.len() * each),
        other => format!("{} for {}", request_count(each), tickers_in_words(other)),
    }
}

/// Each request of an operation, as far as they are known before the first answer.
fn tell_operation(text: &mut String, operation: &OperationRequests) -> fmt::Result {
    let listing;
    let (requests, each) = match &operation.list {
        RequestList::Listed(requests) => (requests, None),
        RequestList::EachTicker(tickers, pairs) => {
            listing = tickers.listing();
            (&listing, Some((tickers, pairs)))
        }
    };
    for request in requests {
        writeln!(text, "  GET {}/{}", request.endpoint.base().placeholder(), request.target())?;
    }
    let Some((tickers, pairs)) = each else { return Ok(()) };
    let (address, tickers) = (address(operation.endpoint), tickers_in_words(tickers));
    for (period, regime) in pairs {
        writeln!(text, "  GET {address}?period={period}&regime={regime} for {tickers}")?;
    }
    if pairs.is_empty() { writeln!(text, "  GET {address} for {tickers}") } else { Ok(()) }
}

fn tickers_in_words(tickers: &TickerSource) -> String {
    match tickers {
        TickerSource::Listed(tickers) => tickers.iter().map(|ticker| ticker.as_str()).collect::<Vec<_>>().join(", "),
        TickerSource::Available => "each available ticker".to_owned(),
        TickerSource::NamedBy(_) => "each ticker in these answers".to_owned(),
        TickerSource::Signals => "each ticker with signals".to_owned(),
    }
}

/// The number of requests, as far as it is known in advance.
fn number(operation: &OperationRequests, of_each: usize) -> String {
    let number = match &operation.list {
        RequestList::Listed(requests) => requests.len().to_string(),
        RequestList::EachTicker(TickerSource::Listed(tickers), pairs) => {
            (tickers.len() * pairs.len().max(1)).to_string()
        }
        RequestList::EachTicker(TickerSource::NamedBy(requests), pairs) => {
            format!("{}, then {} for each ticker in the answers", requests.len(), pairs.len().max(1))
        }
        RequestList::EachTicker(_, pairs) => {
            format!("1, then {} for each ticker in the answer", pairs.len().max(1))
        }
    };
    if of_each > 0 { format!("{number}, and {of_each} for each ticker") } else { number }
}

fn address(endpoint: Endpoint) -> String {
    format!("{}/{}", endpoint.base().placeholder(), endpoint.path())
}
