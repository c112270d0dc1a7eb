//! A key applies or is refused: each key of a definition, in each context that could make it useless.
//!
//! The keys and the values that are tried come from the schema: those of the type, and the examples of the key.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;

use serde_json::Value as Json;

use crate::definition::{DefinitionFile, json_schema};
use crate::plan::Plan;

/// Definitions that each make other keys useless, or not.
const CONTEXTS: [&str; 24] = [
    "signals.sectors = \"energy\"\n",
    "signals.tickers = \"XOM\"\n",
    "signals.sectors = \"energy\"\nsignals.tickers = [\"XOM\", \"CVX\"]\n",
    "signals.history = \"batched\"\n",
    "signals.history = \"ticker\"\nsignals.tickers = \"available\"\n",
    "signals.history = \"ticker\"\nsignals.sectors = \"energy\"\n",
    "signals.history = \"latest\"\nsignals.tickers = [\"XOM\", \"CVX\"]\n",
    "signals.sectors = \"energy\"\ndataset.kind = \"signals\"\n",
    "signals.sectors = \"energy\"\ndataset.kind = \"news\"\n",
    "sentiment.tickers = \"XOM\"\ndataset.kind = \"news\"\n",
    "signals.sectors = \"energy\"\nsentiment.articles = false\n",
    "signals.sectors = \"energy\"\nsentiment.summary = true\njoin.sources = \"summary\"\n",
    "signals.sectors = \"energy\"\njoin.stats = \"last\"\n",
    "signals.sectors = \"energy\"\njoin.stats = \"decay\"\njoin.half_lives = \"9d\"\n",
    "signals.sectors = \"energy\"\nsignals.pairs = [\"5d bear\", \"15d neutral\"]\nsignals.exclude = \"XOM\"\n",
    "signals.sectors = \"energy\"\noutput.format = \"csv\"\n",
    "signals.sectors = \"energy\"\noutput.layout = \"wide\"\n",
    "signals.sectors = \"energy\"\ndataset.add = \"backfilled\"\noutput.format = [\"csv\", \"parquet\"]\n",
    "signals.sectors = \"energy\"\ndataset.columns = [\"ticker\", \"date\"]\n",
    "signals.sectors = \"energy\"\nprices.file = \"closes.csv\"\n",
    "signals.sectors = \"energy\"\ndataset.add = \"tradable_at\"\ncalendar.hours = \"09:30-16:00 America/New_York\"\n",
    "signals.sectors = \"energy\"\nsentiment.historical = true\njoin.sources = \"historical\"\njoin.historical = \"a\"\n",
    "signals.sectors = \"energy\"\nlabels.horizons = \"5d\"\nprices.file = \"closes.csv\"\n",
    "signals.sectors = \"energy\"\nschedule.cron = \"@daily\"\n",
];

/// The sources of the contexts.
const SOURCES: [&str; 2] = [
    "source.service = \"demo\"\n",
    "source.name = \"vendor\"\nsource.base_url = \"https://a.example/\"\nsource.sentiment_base_url = \"https://b.example/\"\n",
];

/// The files that the examples of keys name.
const FILES: [(&str, &str); 3] = [
    ("sessions.csv", include_str!("../sessions/week.csv")),
    ("identity.csv", include_str!("../identity/renames.csv")),
    ("members.csv", include_str!("../universe/members.csv")),
];

/// A change of a definition by a line.
pub(crate) struct Change<'a> {
    /// The key of the line.
    pub(crate) key: &'a str,
    /// The line.
    pub(crate) line: String,
    /// What stands beside it.
    pub(crate) context: String,
    /// The plan without the line.
    pub(crate) before: &'a Plan,
    /// The plan with it; none if it is refused.
    pub(crate) after: Option<Plan>,
}

/// Tries each value of each key in each context.
pub(crate) fn for_each_change(mut visit: impl FnMut(Change<'_>)) {
    let root = tempfile::tempdir().expect("a folder");
    FILES.iter().for_each(|(name, text)| fs::write(root.path().join(name), text).expect("a file"));
    let plan = |text: String| {
        let file = DefinitionFile::new("it.toml".into(), text).expect("a name").below(root.path());
        Plan::of(file)
    };
    let keys = keys();
    for (context, source) in CONTEXTS.iter().flat_map(|context| SOURCES.map(|source| (context, source))) {
        let text = format!("{source}{context}");
        let before = plan(text.clone()).unwrap_or_else(|error| panic!("{context}: {error}"));
        for (key, values) in &keys {
            // A key may stand there already: then its line changes.
            let rest: Vec<&str> = text.lines().filter(|line| line.split(" = ").next() != Some(key.as_str())).collect();
            for value in values {
                let line = format!("{key} = {value}");
                if !text.lines().any(|other| other == line) {
                    let after = plan(format!("{}\n{line}\n", rest.join("\n"))).ok();
                    visit(Change { key, line, context: text.replace('\n', "; "), before: &before, after });
                }
            }
        }
    }
}

/// Every key of a definition, with values that it may have, of which at most one is its default.
fn keys() -> BTreeMap<String, Vec<String>> {
    let root = json_schema();
    let root = root.as_value();
    let mut keys = BTreeMap::new();
    for (name, value) in root["properties"].as_object().expect("keys") {
        match resolved(root, value)["properties"].as_object() {
            Some(inner) => keys.extend(inner.iter().map(|(key, value)| (format!("{name}.{key}"), values(root, value)))),
            None => drop(keys.insert(name.clone(), values(root, value))),
        }
    }
    keys
}

fn resolved<'s>(root: &'s Json, value: &'s Json) -> &'s Json {
    let reference =
        value["$ref"].as_str().or_else(|| value["anyOf"][0]["$ref"].as_str().filter(|_| value["anyOf"][1].is_null()));
    reference.and_then(|reference| root.pointer(reference.trim_start_matches('#'))).unwrap_or(value)
}

/// The values of a key, as TOML: its examples, and those of its type.
fn values(root: &Json, key: &Json) -> Vec<String> {
    let examples = |schema: &Json| schema["examples"].as_array().cloned().unwrap_or_default();
    let inner = resolved(root, key);
    let mut values = of_type(root, key);
    if values.is_empty() && inner != key {
        values = examples(inner);
    }
    values.extend(examples(key));
    let mut values: Vec<String> =
        values.iter().map(|value| toml::Value::try_from(value).expect("a value of TOML").to_string()).collect();
    let mut seen = BTreeSet::new();
    values.retain(|value| seen.insert(value.clone()));
    values
}

fn of_type(root: &Json, schema: &Json) -> Vec<Json> {
    let schema = resolved(root, schema);
    if let Some(alternatives) = schema["anyOf"].as_array() {
        return alternatives.iter().flat_map(|one| of_type(root, one)).collect();
    }
    if let Some(choices) = schema["oneOf"].as_array() {
        return choices.iter().take(3).map(|choice| choice["const"].clone()).collect();
    }
    match schema["type"].as_str() {
        Some("boolean") => vec![false.into(), true.into()],
        Some("integer") => {
            let least = schema["minimum"].as_u64().expect("a bound").max(2);
            vec![least.into(), (least + 1).into()]
        }
        Some("number") if schema["maximum"].is_number() => {
            let most = schema["maximum"].as_f64().expect("a number");
            vec![most.into(), (most / 2.0).into()]
        }
        Some("number" | "string") => schema["examples"].as_array().cloned().unwrap_or_default(),
        _ => Vec::new(),
    }
}

/// What a plan means. Its text is not its meaning.
fn meaning(plan: &Plan) -> String {
    format!("{:?}", Plan { text: String::new(), ..plan.clone() })
}

#[test]
fn a_key_changes_the_plan_or_is_refused_whatever_stands_beside_it() {
    let (mut tried, mut useless, mut effective) = (BTreeMap::new(), BTreeMap::new(), BTreeSet::new());
    for_each_change(|Change { key, line, context, before, after }| {
        *tried.entry((key.to_owned(), context.clone())).or_insert(0) += 1;
        let Some(after) = after else { return };
        if meaning(&after) == meaning(before) {
            useless.entry((key.to_owned(), context)).or_insert_with(Vec::new).push(line);
        } else {
            effective.insert(key.to_owned());
        }
    });
    // One value may be the default.
    let is_default = |at: &(String, String), lines: &Vec<String>| lines.len() == 1 && tried[at] > 1;
    useless.retain(|at, lines| !is_default(at, lines));
    assert!(useless.is_empty(), "{useless:#?}");
    // A key whose only value stands in a context is accepted there.
    let given = SOURCES.concat() + &CONTEXTS.concat();
    effective.extend(given.lines().filter_map(|line| Some(line.split_once(" = ")?.0.to_owned())));
    let keys = keys();
    let without: Vec<&String> = keys.keys().filter(|key| !effective.contains(*key)).collect();
    assert!(without.is_empty(), "without an effect, or without an example: {without:?}");
}

#[test]
fn how_long_a_signal_is_live_applies_where_anything_tells_live_from_backfilled() {
    let live_within = "signals.sectors = \"energy\"\noutput.live_within = \"4d\"\n";
    for used in [
        "dataset.add = \"backfilled\"",
        "prices.file = \"closes.csv\"",
        "prices.columns = { close = \"c\" }",
        "prices.adjusted = true",
    ] {
        for source in SOURCES {
            let text = format!("{source}{live_within}{used}\n");
            let plan = DefinitionFile::new("it.toml".into(), text).and_then(Plan::of).expect(used);
            assert_eq!(plan.dataset.live_within.to_string(), "4d");
        }
    }
    let text = format!("{}{live_within}", SOURCES[0]);
    assert!(DefinitionFile::new("it.toml".into(), text).and_then(Plan::of).is_err());
}
