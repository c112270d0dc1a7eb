//! A hundred definitions that people plausibly write: what they mean, or the message that refuses them.

use std::path::Path;

use crate::definition::DefinitionFile;
use crate::error::Error;
use crate::plan::{Plan, RequestList, TickerSource};

/// The definitions, each after a line with its title.
const ALL: &str = include_str!("plausible.toml");

fn definitions() -> impl Iterator<Item = (&'static str, &'static str)> {
    ALL.split("\n### ").skip(1).map(|part| part.split_once('\n').expect("a title and a definition"))
}

fn plan(text: &str) -> Result<Plan, Error> {
    DefinitionFile::new("it.toml".into(), text.to_owned()).and_then(Plan::of)
}

/// What follows a mark, on each line that has it.
fn expectations(definition: &'static str, mark: &str) -> Vec<&'static str> {
    definition.lines().filter_map(|line| line.strip_prefix("# ")?.strip_prefix(mark)?.strip_prefix(": ")).collect()
}

/// The number of requests for signals.
fn requests(plan: &Plan) -> Option<usize> {
    match &plan.alternatives.first()?.list {
        RequestList::Listed(requests) => Some(requests.len()),
        RequestList::EachTicker(TickerSource::Listed(tickers), pairs) => Some(tickers.len() * pairs.len().max(1)),
        RequestList::EachTicker(..) => None,
    }
}

#[test]
fn a_hundred_plausible_definitions_are_planned_or_refused_in_words() {
    let mut planned = 0;
    for (title, definition) in definitions() {
        let [refused, hints, columns, counts] =
            ["refused", "hint", "columns", "requests"].map(|mark| expectations(definition, mark));
        match plan(definition) {
            Ok(plan) => {
                planned += 1;
                assert!(refused.is_empty(), "{title} is planned");
                let fields = plan.dataset.written.schema().fields();
                let names: Vec<&str> = fields.iter().map(|field| field.name().as_str()).collect();
                assert!(columns.is_empty() || columns == [names.join(", ")], "{title}: {names:?}");
                let count = requests(&plan).map(|count| count.to_string());
                assert!(counts.is_empty() || count.as_deref() == Some(counts[0]), "{title}: {count:?}");
            }
            Err(error) => {
                let Some(problems) = error.problems() else { panic!("{title}: {error}") };
                let problems = problems.list();
                let messages: Vec<&str> = problems.iter().map(|problem| problem.message.as_str()).collect();
                assert_eq!(messages, refused, "{title}");
                let found: Vec<&str> = problems.iter().filter_map(|problem| problem.hint.as_deref()).collect();
                // A hint that lists all columns is long.
                let are_equal =
                    found.len() == hints.len() && found.iter().zip(&hints).all(|(one, it)| one.starts_with(it));
                assert!(are_equal, "{title}: {found:?}");
            }
        }
    }
    let all = definitions().count();
    assert!(all >= 100 && planned >= 70 && planned < all, "{planned} of {all}");
}

#[test]
fn the_definition_of_the_documentation_is_planned_also_with_what_it_comments_out() {
    let page = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/definitions.md");
    let page = std::fs::read_to_string(page).expect("the page");
    let (_, rest) = page.split_once("```toml\n").expect("a definition");
    let (definition, _) = rest.split_once("\n```").expect("its end");
    plan(definition).expect("the definition of the documentation");
    // A key that is commented out may exclude another, but it is known, and its value as well.
    for line in definition.lines().filter(|line| line.starts_with("# ") && line.contains(" = ")) {
        let tried = plan(&definition.replace(line, line.trim_start_matches("# ")));
        let refused = tried.err().map_or_else(String::new, |error| error.to_string());
        assert!(!refused.contains("unknown") && !refused.contains(" takes "), "{line}: {refused}");
    }
}
