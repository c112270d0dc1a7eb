//! `bellwether plan`: what would be asked, and what would come out.

use std::fmt::Write;

use super::say;
use crate::error::Result;
use crate::interface::Endpoint;
use crate::plan::{self, Source, describe};

/// Print the requests of a definition and the columns of its dataset.
#[derive(Debug, clap::Args)]
pub(super) struct Plan {
    /// A definition: its name in `pipelines/`, or a path.
    definition: String,
}

impl Plan {
    pub(super) fn execute(self) -> Result<()> {
        say(&told(&plan::Plan::find(&self.definition)?))
    }
}

fn told(plan: &plan::Plan) -> String {
    let mut text = String::new();
    let described = plan.description.as_ref().map_or_else(String::new, |it| format!(": {it}"));
    line(&mut text, format_args!("{}{described}\n", plan.name));
    match &plan.source {
        Source::Demo => line(&mut text, format_args!("service: demo, built in")),
        Source::Remote(remote) => {
            line(&mut text, format_args!("base_url: {}", remote.base_url));
            line(&mut text, format_args!("sentiment_base_url: {}", remote.sentiment_base_url));
        }
    }
    line(&mut text, format_args!("dates: naive by {}", plan.dates));
    if let Some(schedule) = &plan.schedule {
        line(&mut text, format_args!("schedule: {} in {}", schedule.cron, schedule.timezone));
    }
    line(&mut text, format_args!("\nrequests: {}", number(plan)));
    for request in &plan.requests {
        line(&mut text, format_args!("  GET {}/{request}", request.endpoint.base().placeholder()));
    }
    for endpoint in &plan.of_each_ticker {
        line(&mut text, format_args!("  GET {} for each ticker", address(*endpoint)));
    }
    let columns = plan.dataset.schema.fields();
    line(&mut text, format_args!("\ncolumns: {}", columns.len()));
    let width = columns.iter().map(|column| column.name().len()).max().unwrap_or_default();
    for column in columns {
        line(&mut text, format_args!("  {:width$}  {}", column.name(), describe(column)));
    }
    let sort: Vec<&str> = plan.dataset.sort.iter().map(|column| column.name()).collect();
    line(&mut text, format_args!("\nsorted by: {}", sort.join(", ")));
    let formats: Vec<&str> = plan.formats.iter().map(|format| format.as_str()).collect();
    line(&mut text, format_args!("written as: {}", formats.join(", ")));
    text
}

fn number(plan: &plan::Plan) -> String {
    match plan.of_each_ticker.len() {
        0 => plan.requests.len().to_string(),
        each => format!("{}, and {each} for each ticker that their answers name", plan.requests.len()),
    }
}

fn address(endpoint: Endpoint) -> String {
    format!("{}/{}", endpoint.base().placeholder(), endpoint.path())
}

fn line(text: &mut String, content: std::fmt::Arguments<'_>) {
    writeln!(text, "{content}").expect("a string takes any text");
}
