//! A key applies or is refused: each key of a definition, in each context that could make it useless.

use std::collections::BTreeSet;

use crate::definition::{Definition, DefinitionFile};
use crate::plan::Plan;

/// Definitions that each make other keys useless, or not.
const CONTEXTS: [&str; 21] = [
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
];

/// The sources of the contexts.
const SOURCES: [&str; 2] = [
    "source.service = \"demo\"\n",
    "source.name = \"vendor\"\nsource.base_url = \"https://a.example/\"\nsource.sentiment_base_url = \"https://b.example/\"\n",
];

/// Each key with a value that is not its default.
pub(super) const KEYS: [(&str, &str); 112] = [
    ("description", "\"a\""),
    ("source.name", "\"other\""),
    ("source.service", "\"demo\""),
    ("source.earlier_runs", "2"),
    ("source.base_url", "\"https://c.example/\""),
    ("source.sentiment_base_url", "\"https://d.example/\""),
    ("source.api_key_file", "\"key\""),
    ("source.api_key_command", "[\"pass\", \"show\"]"),
    ("source.key", "{ header = \"X-Key\" }"),
    ("source.query", "{ tenant = \"7\" }"),
    ("source.paths", "{ signals-history-all = \"v2/all\" }"),
    ("source.unwrap", "\"data\""),
    ("source.fields", "{ confidence = \"probability\" }"),
    ("source.tickers", "{ \"BRK.B\" = \"BRK-B\" }"),
    ("source.clock", "\"ours\""),
    ("source.connections", "2"),
    ("source.requests_per_second", "2"),
    ("source.stall", "\"40s\""),
    ("source.patience", "\"5m\""),
    ("signals.history", "\"batched\""),
    ("signals.history", "\"latest\""),
    ("signals.sectors", "\"utilities\""),
    ("signals.tickers", "\"AAPL\""),
    ("signals.tickers", "\"available\""),
    ("signals.periods", "\"5d\""),
    ("signals.regimes", "\"bull\""),
    ("signals.exclude", "\"CVX\""),
    ("signals.pairs", "[\"5d bull\", \"1m neutral\"]"),
    ("signals.complete", "true"),
    ("signals.tolerance", "1e-6"),
    ("dates.per", "\"day\""),
    ("signals.made_at", "\"16:00 America/New_York\""),
    ("archive.claimed", "true"),
    ("sentiment.articles", "false"),
    ("sentiment.summary", "true"),
    ("sentiment.historical", "true"),
    ("sentiment.tickers", "\"AAPL\""),
    ("sentiment.tickers", "\"available\""),
    ("sentiment.duplicates", "\"keep\""),
    ("sentiment.complete", "true"),
    ("sentiment.order", "\"oldest first\""),
    ("sentiment.delay", "\"15m\""),
    ("dataset.kind", "\"signals\""),
    ("dataset.kind", "\"news\""),
    ("dataset.columns", "[\"date\", \"ticker\"]"),
    ("dataset.add", "\"sector_latest\""),
    ("dataset.add", "\"known_at\""),
    ("dataset.add", "\"tradable_at\""),
    ("dataset.add", "\"id\""),
    ("dataset.rename", "{ date = \"day\" }"),
    ("dataset.license", "\"CC-BY-4.0\""),
    ("rejects.max_share", "0.5"),
    ("rejects.keep_extra", "true"),
    ("dates.naive", "\"wall\""),
    ("calendar.exchange", "\"weekdays\""),
    ("calendar.sessions", "\"src/sessions/week.csv\""),
    ("calendar.hours", "\"09:00-17:30 Europe/Berlin\""),
    ("calendar.holidays", "\"2026-11-26\""),
    ("calendar.trade_at", "\"open\""),
    ("identity.file", "\"src/identity/renames.csv\""),
    ("join.lag", "\"2d\""),
    ("join.availability", "\"observed\""),
    ("join.sources", "[\"articles\", \"summary\"]"),
    ("join.windows", "\"3d\""),
    ("join.stats", "\"std\""),
    ("join.half_lives", "\"3d\""),
    ("join.historical", "\"score\""),
    ("checks.missing", "\"warn\""),
    ("checks.universe", "0.5"),
    ("checks.max_age", "\"3d\""),
    ("checks.dates", "\"warn\""),
    ("checks.rewritten", "0.5"),
    ("checks.rewritten_series", "0.9"),
    ("filter.tickers", "\"XOM\""),
    ("filter.sectors", "\"energy\""),
    ("filter.periods", "\"15d\""),
    ("filter.regimes", "\"neutral\""),
    ("filter.signal", "\"buy\""),
    ("filter.min_confidence", "0.6"),
    ("filter.from", "2026-01-01"),
    ("filter.to", "2026-02-01"),
    ("labels.horizons", "\"5d\""),
    ("labels.lag", "2"),
    ("filter.universe", "\"src/universe/members.csv\""),
    ("prices.file", "\"prices.parquet\""),
    ("prices.columns", "{ close = \"adj_close\" }"),
    ("prices.adjusted", "true"),
    ("output.format", "\"arrow\""),
    ("output.layout", "\"wide\""),
    ("output.sort", "\"date\""),
    ("output.values", "\"signal\""),
    ("output.vintage", "\"first\""),
    ("output.live_within", "\"4d\""),
    ("output.partition_by", "\"ticker\""),
    ("output.index", "[\"date\", \"ticker\"]"),
    ("output.compression", "\"snappy\""),
    ("output.level", "9"),
    ("output.row_group_rows", "1000"),
    ("output.csv_guard", "true"),
    ("output.keep", "9"),
    ("output.report", "true"),
    ("store.url", "\"file:///store\""),
    ("schedule.cron", "\"0 22 * * *\""),
    ("schedule.timezone", "\"Asia/Tokyo\""),
    ("schedule.catch_up", "\"1h\""),
    ("schedule.deadline", "\"1h\""),
    ("schedule.retry_after", "\"2m\""),
    ("hooks.on_success", "\"https://a.example/\""),
    ("hooks.on_failure", "\"https://a.example/\""),
    ("hooks.on_later", "\"https://a.example/\""),
    ("hooks.ping", "\"https://a.example/\""),
    ("hooks.timeout", "\"9s\""),
];

/// What a definition means, or none if it is refused. Its text is not its meaning.
fn meaning(text: &str) -> Option<String> {
    let plan = DefinitionFile::new("it.toml".into(), text.to_owned()).and_then(Plan::of).ok()?;
    Some(format!("{:?}", Plan { text: String::new(), ..plan }))
}

#[test]
fn a_key_changes_the_plan_or_is_refused_whatever_stands_beside_it() {
    let mut without_effect = Vec::new();
    for (context, source) in CONTEXTS.iter().flat_map(|context| SOURCES.map(|source| (context, source))) {
        let before = meaning(&format!("{source}{context}"));
        assert!(before.is_some(), "{context}");
        for (key, value) in KEYS {
            // A key may stand there already: then its line changes.
            let is_other = |line: &&str| line.split(" = ").next() != Some(key);
            let rest: Vec<&str> = source.lines().chain(context.lines()).filter(is_other).collect();
            let is_typed = rest.len() < source.lines().count() + context.lines().count();
            let line = format!("{key} = {value}");
            if is_typed && source.lines().chain(context.lines()).any(|other| other == line) {
                continue;
            }
            let after = meaning(&format!("{}\n{line}\n", rest.join("\n")));
            if after.is_some() && after == before {
                without_effect.push(format!("{line}\n  beside {}{}", source, context.replace('\n', "; ")));
            }
        }
    }
    assert!(without_effect.is_empty(), "{}", without_effect.join("\n"));
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
    assert_eq!(meaning(&format!("{}{live_within}", SOURCES[0])), None);
}

#[test]
fn every_key_is_tried() {
    let schema = Definition::json_schema();
    let schema = schema.as_value();
    let mut keys = BTreeSet::new();
    for (name, value) in schema["properties"].as_object().expect("keys") {
        let any = value["anyOf"].as_array().and_then(|any| any.iter().find(|one| one["$ref"].is_string()));
        let reference = value["$ref"].as_str().or(any.and_then(|one| one["$ref"].as_str()));
        let resolved =
            reference.and_then(|reference| schema.pointer(reference.trim_start_matches('#'))).unwrap_or(value);
        match resolved["properties"].as_object() {
            Some(inner) => keys.extend(inner.keys().map(|key| format!("{name}.{key}"))),
            None => drop(keys.insert(name.clone())),
        }
    }
    assert_eq!(KEYS.iter().map(|(key, _)| (*key).to_owned()).collect::<BTreeSet<_>>(), keys);
}
