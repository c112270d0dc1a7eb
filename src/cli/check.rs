//! `bellwether check`: the problems of definitions; without any, their requests and the columns of their datasets.

use std::collections::BTreeSet;

use bellwether::definition;
use bellwether::interface::Endpoint;
use bellwether::plan::{DatasetPlan, Plan, Request, RequestList, Source, TickerSource};
use bellwether::run::{CheckedDefinition, ColumnDocument};
use bellwether::text::human::span;

use super::complain;
use super::prelude::*;
use super::schedule::next_times;

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

impl Check {
    pub(super) fn execute(mut self, project: &Project) -> Result<()> {
        if self.definitions.is_empty() {
            self.definitions = definition::names(&project.definitions())?;
        }
        if self.definitions.is_empty() {
            plan_of(None, project)?;
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
            return if is_ok { Ok(()) } else { Err(Failure::Told(USAGE)) };
        }
        let mut last = None;
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
                    say(&format!("{gap}{path}: ok\n{}", summary(&plan, self.requests, &columns)))?;
                }
                Err(error) => {
                    if let Some(earlier) = last.replace(error) {
                        complain(&earlier);
                        note("");
                    }
                }
            }
        }
        last.map_or(Ok(()), |error| Err(error.into()))
    }
}

/// The warnings apart, what a check says of a valid definition.
fn summary(plan: &Plan, are_listed: bool, columns: &[ColumnDocument]) -> String {
    let mut text = String::new();
    if let Some(description) = &plan.description {
        text += &format!("{}\n\n", escape(description));
    }
    match &plan.source {
        Source::Demo { .. } => text += "service: demo, built in\n",
        Source::Remote(remote) => {
            let (signals, sentiment) = (&remote.base_url, &remote.sentiment_base_url);
            text += &format!("base_url: {signals}\nsentiment_base_url: {sentiment}\n");
            if !plan.address_variables.is_empty() {
                text += &format!("  from the environment: {}\n", plan.address_variables.join(", "));
            }
        }
    }
    text += &dates(&plan.dataset);
    if let Some(schedule) = &plan.schedule {
        text += &format!("schedule: {} in {}\n{}", schedule.cron, schedule.timezone, next_times(schedule));
    }
    text += &requests(plan, are_listed);
    text += &format!("\ncolumns: {}\n", columns.len());
    let width = columns.iter().map(|column| column.name.chars().count()).max().unwrap_or_default();
    for ColumnDocument { name, r#type, unknown, .. } in columns {
        let unknown = unknown.filter(|share| *share > 0.0);
        let unknown = unknown.map(|share| format!(", unknown for {} of the latest version", percent(share)));
        text += &format!("  {name}{}  {type}{}\n", padding(name, width), unknown.unwrap_or_default());
    }
    let formats: Vec<&str> = plan.files.formats.iter().map(|format| format.as_str()).collect();
    let sort = plan.dataset.written.sort.join(", ");
    text + &format!("\nsorted by: {sort}\nwritten as: {}\n", formats.join(", "))
}

/// Which clock dates are on, when signals are made and news is known, the trading days, and which tickers are the same
/// security.
fn dates(dataset: &DatasetPlan) -> String {
    let DatasetPlan { dates, made_at, news_delay, sessions, identity, .. } = dataset;
    let mut text = format!("dates: naive by {dates}\n");
    if let Some(made_at) = made_at {
        text += &format!("signals without a time: made at {made_at}\n");
    }
    if !news_delay.is_zero() {
        text += &format!("news: known {} after its date\n", span(*news_delay));
    }
    text += &format!("trading days: {sessions}\n");
    if identity.is_given() {
        let [ids, tickers] = identity.counts();
        let (ids, tickers) = (count_of(ids, "id", "ids"), count_of(tickers, "ticker", "tickers"));
        let rest = "none on their other days; any other ticker is its own id";
        text += &format!("identity: {ids} of {tickers} on the days of the file, {rest}\n");
    }
    text
}

/// The requests of the first way, as far as they are known before the first answer, and the fallbacks if the service does
/// not offer it.
fn requests(plan: &Plan, are_listed: bool) -> String {
    let Some((first, others)) = plan.alternatives.split_first() else { return String::new() };
    let (path, address_of_first) = (first.endpoint.path(), address(first.endpoint));
    let target = |request: &Request| format!("{}/{}", request.endpoint.base().placeholder(), request.target());
    // How many requests each operation has, and each of them.
    let (mut counts, mut listed) = (Vec::new(), Vec::new());
    let mut number = match &first.list {
        RequestList::Listed(requests) => {
            counts.push((path, product(requests)));
            listed.extend(requests.iter().map(target));
            requests.len().to_string()
        }
        RequestList::EachTicker(tickers, pairs) => {
            let (listing, each, named) = (tickers.listing(), pairs.len().max(1), in_words(tickers));
            if let Some(naming) = listing.first() {
                let name = if listing.len() == 1 { "names" } else { "name" };
                let count = format!("{}, which {name} the tickers", request_count(listing.len()));
                counts.push((naming.endpoint.path(), count));
            }
            counts.push((path, of_tickers(tickers, each)));
            listed.extend(listing.iter().map(target));
            for (period, regime) in pairs {
                listed.push(format!("{address_of_first}?period={period}&regime={regime} for {named}"));
            }
            if pairs.is_empty() {
                listed.push(format!("{address_of_first} for {named}"));
            }
            match tickers {
                TickerSource::Listed(tickers) => (tickers.len() * each).to_string(),
                TickerSource::NamedBy(_) => format!("{}, then {each} for each ticker in the answers", listing.len()),
                _ => format!("1, then {each} for each ticker in the answer"),
            }
        }
    };
    if !plan.of_each_ticker.is_empty() {
        number += &format!(", and {} for each ticker", plan.of_each_ticker.len());
    }
    counts.extend(plan.of_each_ticker.iter().map(|endpoint| (endpoint.path(), of_tickers(&plan.news_tickers, 1))));
    let mut text = format!("\nrequests: {number}\n");
    if are_listed {
        listed.iter().for_each(|request| text += &format!("  GET {request}\n"));
    } else {
        let width = counts.iter().map(|(path, _)| path.len()).max().unwrap_or_default();
        counts.iter().for_each(|(path, count)| text += &format!("  {path:width$}  {count}\n"));
    }
    if !plan.further.is_empty() {
        text += &format!("  and {} for the tickers that are named\n", request_count(plan.further.len()));
    }
    if !plan.excluded.is_empty() {
        let excluded: Vec<&str> = plan.excluded.iter().map(|ticker| ticker.as_str()).collect();
        text += &format!("  without {}\n", excluded.join(", "));
    }
    for endpoint in plan.of_each_ticker.iter().filter(|_| are_listed) {
        text += &format!("  GET {} for {}\n", address(*endpoint), in_words(&plan.news_tickers));
    }
    for other in others {
        text += &format!("  or, if the service does not offer that, {}\n", address(other.endpoint));
        match &other.list {
            RequestList::EachTicker(tickers @ TickerSource::Listed(_), _) => {
                text += &format!("    for {}\n", in_words(tickers));
            }
            RequestList::EachTicker(..) => text += "    for the same tickers, as listed in the archive\n",
            RequestList::Listed(_) => {}
        }
    }
    text
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
        other => format!("{} for {}", request_count(each), in_words(other)),
    }
}

fn in_words(tickers: &TickerSource) -> String {
    match tickers {
        TickerSource::Listed(tickers) => tickers.iter().map(|ticker| ticker.as_str()).collect::<Vec<_>>().join(", "),
        TickerSource::Available => "each available ticker".to_owned(),
        TickerSource::NamedBy(_) => "each ticker in these answers".to_owned(),
        TickerSource::Signals => "each ticker with signals".to_owned(),
    }
}

fn address(endpoint: Endpoint) -> String {
    format!("{}/{}", endpoint.base().placeholder(), endpoint.path())
}
