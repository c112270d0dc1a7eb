use std::collections::BTreeSet;

use serde_json::{Value, json};

use super::document as document_of;
use crate::archive::Scope;
use crate::definition::{Definition, DefinitionFile};
use crate::interface::Endpoint;
use crate::plan::{AdHoc, Claims, Filter, Format, Plan, TickerSource, Vintage};

fn plan(text: &str) -> Plan {
    Plan::of(DefinitionFile::new("demo.toml".into(), text.into()).unwrap())
        .unwrap_or_else(|error| panic!("{text}: {error}"))
}

fn scope() -> Scope {
    let request = "signals-history-all sector=energy period=15d regime=neutral".to_owned();
    Scope {
        source: Endpoint::SignalsHistoryAll,
        requests: [request].into(),
        excluded: BTreeSet::new(),
        filter: Filter::default(),
        news: TickerSource::Signals,
    }
}

fn document(plan: &Plan) -> Value {
    let observations = ["20261120T213000Z-7f3a signals.parquet 0123".to_owned()];
    document_of(plan, &scope(), &observations, "program")
}

/// What the document says of the rows and the files, without the text of the definition.
fn meaning(plan: &Plan) -> Value {
    let document = document(plan);
    json!([document["dataset"], document["files"]])
}

/// A change of this text rebuilds every dataset at the next run. If it is meant, the test follows.
#[test]
fn the_document_of_a_definition_is_this_text() {
    let text = "[source]\nservice = \"demo\"\n[signals]\nsectors = \"energy\"\n[dataset]\nadd = \"sector\"\n\
                rename = { ticker = \"asset\" }\n[join]\nlag = \"1 trading day\"\nwindows = \"7d\"\n\
                stats = [\"count\", \"last\"]\n[filter]\nperiods = \"15d\"\nfrom = \"2026-01-01\"\n";
    let plan = plan(text);
    let (scope, observations) = (scope(), ["20261120T213000Z-7f3a signals.parquet 0123".to_owned()]);
    let found = document_of(&plan, &scope, &observations, "program");
    let expected = r#"{
  "version": 3,
  "bellwether": "VERSION",
  "writer": "program",
  "name": "demo",
  "definition": TEXT,
  "service": "demo",
  "source": "signals-history-all",
  "requests": [
    "signals-history-all sector=energy period=15d regime=neutral"
  ],
  "excluded": [],
  "watched": {},
  "dataset": {
    "rows": "signals",
    "dates": "utc",
    "made_at": null,
    "news_delay_secs": 0,
    "calendar": "f02b80f71faddff006ca44fd1dce40d066bbcc2227231745331e8053e5d653c5",
    "identity": null,
    "trade_at": "either",
    "lag": "1 trading day",
    "availability": "dated",
    "duplicates": "once",
    "complete": false,
    "features": [
      "news_count_7d",
      "news_last_score",
      "news_last_date"
    ],
    "columns": [
      "ticker",
      "date",
      "period",
      "regime",
      "signal",
      "confidence",
      "score",
      "sector"
    ],
    "written": [
      [
        "ticker",
        "asset"
      ],
      [
        "date",
        "date"
      ],
      [
        "period",
        "period"
      ],
      [
        "regime",
        "regime"
      ],
      [
        "signal",
        "signal"
      ],
      [
        "confidence",
        "confidence"
      ],
      [
        "score",
        "score"
      ],
      [
        "news_count_7d",
        "news_count_7d"
      ],
      [
        "news_last_score",
        "news_last_score"
      ],
      [
        "news_last_date",
        "news_last_date"
      ],
      [
        "sector",
        "sector"
      ]
    ],
    "sort": [
      "ticker",
      "date",
      "period",
      "regime"
    ],
    "filter": {
      "tickers": null,
      "sectors": null,
      "periods": [
        "15d"
      ],
      "regimes": null,
      "pairs": null,
      "signals": null,
      "min_confidence": null,
      "from": "2026-01-01",
      "to": null,
      "universe": null
    },
    "vintage": "latest",
    "live_within": "2 trading days",
    "entry_lag": 1,
    "prices": [],
    "matrices": null
  },
  "files": {
    "formats": [
      "parquet"
    ],
    "compression": "zstd 3",
    "row_group_rows": 262144,
    "partition_by": [],
    "index": [],
    "csv_guard": false
  },
  "observations": [
    "20261120T213000Z-7f3a signals.parquet 0123"
  ]
}"#;
    let expected = expected.replace("VERSION", env!("CARGO_PKG_VERSION")).replace("TEXT", &json!(text).to_string());
    assert_eq!(found, serde_json::from_str::<Value>(&expected).unwrap());
}

/// The keys that determine rows or files, each in a definition that differs from another one in it alone.
const OF_THE_DATASET: [(&str, &str, &str); 50] = [
    ("archive.claimed", "", "archive.claimed = true\n"),
    ("sentiment.articles", "", "sentiment.articles = false\n"),
    ("sentiment.complete", "", "sentiment.complete = true\n"),
    ("sentiment.duplicates", "", "sentiment.duplicates = \"keep\"\n"),
    ("dataset.kind", "", "dataset.kind = \"signals\"\n"),
    ("dataset.columns", "", "dataset.columns = [\"ticker\", \"date\"]\n"),
    ("dataset.add", "", "dataset.add = \"source\"\n"),
    ("dataset.rename", "", "dataset.rename = { date = \"day\" }\n"),
    ("dates.naive", "", "dates.naive = \"wall\"\n"),
    ("signals.made_at", "", "signals.made_at = \"16:00 America/New_York\"\n"),
    ("sentiment.delay", "", "sentiment.delay = \"15m\"\n"),
    ("calendar.exchange", "", "calendar.exchange = \"weekdays\"\n"),
    ("labels.horizons", "", "labels.horizons = \"5d\"\n"),
    ("labels.lag", "labels.horizons = \"5d\"\n", "labels.horizons = \"5d\"\nlabels.lag = 2\n"),
    ("calendar.sessions", "", "calendar.sessions = \"src/sessions/week.csv\"\n"),
    ("calendar.holidays", "", "calendar.holidays = \"2026-11-26\"\n"),
    (
        "calendar.hours",
        "dataset.add = \"tradable_at\"\ncalendar.hours = \"09:30-16:00 America/New_York\"\n",
        "dataset.add = \"tradable_at\"\ncalendar.hours = \"09:30-13:00 America/New_York\"\n",
    ),
    (
        "calendar.trade_at",
        "dataset.add = \"tradable_at\"\ncalendar.hours = \"09:30-16:00 America/New_York\"\n",
        "dataset.add = \"tradable_at\"\ncalendar.hours = \"09:30-16:00 America/New_York\"\ncalendar.trade_at = \"open\"\n",
    ),
    (
        "identity.file",
        "dataset.add = \"id\"\nidentity.file = \"src/identity/renames.csv\"\n",
        "dataset.add = \"id\"\nidentity.file = \"src/identity/one.csv\"\n",
    ),
    ("join.lag", "", "join.lag = \"2d\"\n"),
    ("join.availability", "", "join.availability = \"observed\"\n"),
    ("join.sources", "sentiment.summary = true\n", "sentiment.summary = true\njoin.sources = \"summary\"\n"),
    ("join.windows", "", "join.windows = \"3d\"\n"),
    ("join.stats", "", "join.stats = \"std\"\n"),
    (
        "join.half_lives",
        "join.stats = \"decay\"\njoin.half_lives = \"2d\"\n",
        "join.stats = \"decay\"\njoin.half_lives = \"3d\"\n",
    ),
    (
        "join.historical",
        "sentiment.historical = true\njoin.sources = \"historical\"\njoin.historical = \"a\"\n",
        "sentiment.historical = true\njoin.sources = \"historical\"\njoin.historical = \"b\"\n",
    ),
    ("filter.tickers", "", "filter.tickers = \"XOM\"\n"),
    ("filter.sectors", "", "filter.sectors = \"energy\"\n"),
    ("filter.periods", "", "filter.periods = \"15d\"\n"),
    ("filter.regimes", "", "filter.regimes = \"neutral\"\n"),
    ("filter.signal", "", "filter.signal = \"buy\"\n"),
    ("filter.min_confidence", "", "filter.min_confidence = 0.6\n"),
    ("filter.from", "", "filter.from = \"2026-01-01\"\n"),
    ("filter.to", "", "filter.to = \"2026-01-01\"\n"),
    ("filter.universe", "", "filter.universe = \"src/universe/members.csv\"\n"),
    ("output.format", "", "output.format = \"csv\"\n"),
    ("output.layout", "", "output.layout = \"wide\"\n"),
    ("output.sort", "", "output.sort = \"date\"\n"),
    (
        "output.values",
        "output.layout = \"wide\"\noutput.values = \"signal\"\n",
        "output.layout = \"wide\"\noutput.values = \"confidence\"\n",
    ),
    ("output.vintage", "", "output.vintage = \"first\"\n"),
    (
        "output.live_within",
        "dataset.add = \"backfilled\"\n",
        "dataset.add = \"backfilled\"\noutput.live_within = \"4d\"\n",
    ),
    ("output.partition_by", "", "output.partition_by = \"period\"\n"),
    ("output.compression", "", "output.compression = \"snappy\"\n"),
    ("output.compression", "", "output.compression = \"none\"\n"),
    ("output.level", "", "output.level = 9\n"),
    ("output.row_group_rows", "", "output.row_group_rows = 1000\n"),
    ("output.index", "", "output.index = \"date\"\n"),
    ("output.csv_guard", "output.format = \"csv\"\n", "output.format = \"csv\"\noutput.csv_guard = true\n"),
    ("output.format", "output.format = [\"csv\", \"arrow\"]\n", "output.format = [\"arrow\", \"csv\"]\n"),
    ("dataset.columns", "dataset.columns = [\"ticker\", \"date\"]\n", "dataset.columns = [\"date\", \"ticker\"]\n"),
];

/// The keys that determine what is requested: the document has the service and the requests, and what was observed.
const OF_REQUESTS: [&str; 21] = [
    "source.name",
    "source.service",
    "source.base_url",
    "source.sentiment_base_url",
    "source.query",
    "source.paths",
    "signals.history",
    "signals.sectors",
    "signals.tickers",
    "signals.exclude",
    "signals.periods",
    "signals.regimes",
    "signals.pairs",
    "signals.complete",
    "signals.tolerance",
    "dates.per",
    "sentiment.order",
    "sentiment.summary",
    "sentiment.historical",
    "sentiment.tickers",
    "rejects.keep_extra",
];

/// The keys that determine when and how something is fetched, checked, kept or told.
const OF_NEITHER: [(&str, &str); 37] = [
    ("description", "description = \"a\"\n"),
    ("dataset.license", "dataset.license = \"CC-BY-4.0\"\n"),
    // The demo has no key.
    ("source.api_key_file", ""),
    ("source.api_key_command", ""),
    ("source.key", ""),
    ("source.unwrap", ""),
    ("source.fields", ""),
    ("source.tickers", ""),
    ("source.clock", ""),
    ("source.earlier_runs", "source.earlier_runs = 2\n"),
    ("source.connections", "source.connections = 2\n"),
    ("source.requests_per_second", "source.requests_per_second = 2\n"),
    ("source.stall", "source.stall = \"40s\"\n"),
    ("source.patience", "source.patience = \"5m\"\n"),
    ("rejects.max_share", "rejects.max_share = 0.5\n"),
    ("prices.file", "prices.file = \"prices.parquet\"\n"),
    ("prices.columns", "prices.columns = { close = \"adj_close\" }\n"),
    ("prices.adjusted", "prices.adjusted = true\n"),
    ("checks.missing", "checks.missing = \"warn\"\n"),
    ("checks.universe", "checks.universe = 0.5\n"),
    ("checks.max_age", "checks.max_age = \"3d\"\n"),
    ("checks.dates", "checks.dates = \"warn\"\n"),
    ("checks.rewritten", "checks.rewritten = 0.5\n"),
    ("checks.rewritten_series", "checks.rewritten_series = 0.9\n"),
    ("output.keep", "output.keep = 9\n"),
    ("output.report", "output.report = true\n"),
    ("store.url", "store.url = \"file:///store\"\n"),
    ("schedule.cron", "schedule.cron = \"0 22 * * *\"\n"),
    ("schedule.timezone", "schedule.cron = \"0 22 * * *\"\nschedule.timezone = \"Asia/Tokyo\"\n"),
    ("schedule.catch_up", "schedule.cron = \"0 22 * * *\"\nschedule.catch_up = \"1h\"\n"),
    ("schedule.deadline", "schedule.cron = \"0 22 * * *\"\nschedule.deadline = \"1h\"\n"),
    ("schedule.retry_after", "schedule.cron = \"0 22 * * *\"\nschedule.retry_after = \"1m\"\n"),
    ("hooks.on_success", "hooks.on_success = \"https://a.example/\"\n"),
    ("hooks.on_failure", "hooks.on_failure = \"https://a.example/\"\n"),
    ("hooks.on_later", "hooks.on_later = \"https://a.example/\"\n"),
    ("hooks.ping", "hooks.ping = \"https://a.example/\"\n"),
    ("hooks.timeout", "hooks.timeout = \"9s\"\n"),
];

/// A definition with more keys, which may be dotted.
fn of(more: &str) -> Plan {
    plan(&format!("{more}source.service = \"demo\"\nsignals.sectors = [\"energy\", \"utilities\"]\n"))
}

#[test]
fn every_key_that_determines_rows_or_files_changes_the_document_and_no_other_does() {
    for (key, before, after) in OF_THE_DATASET {
        assert_ne!(meaning(&of(before)), meaning(&of(after)), "{key}");
    }
    for (key, more) in OF_NEITHER {
        assert_eq!(meaning(&of("")), meaning(&of(more)), "{key}");
    }
    assert_ne!(document(&of("")), document(&of("# a remark\n")), "the text is in the files");
    let known: BTreeSet<String> = OF_THE_DATASET
        .map(|(key, ..)| key)
        .into_iter()
        .chain(OF_REQUESTS)
        .chain(OF_NEITHER.map(|(key, _)| key))
        .map(str::to_owned)
        .collect();
    assert_eq!(known, keys(), "each key of a definition is in one of the lists");
}

/// Every key of a definition, by its schema.
fn keys() -> BTreeSet<String> {
    let schema = Definition::json_schema();
    let schema = schema.as_value();
    let resolve = |value: &Value| -> Value {
        let of_any = value["anyOf"].as_array().and_then(|any| any.iter().find(|one| one["$ref"].is_string()));
        let reference = value["$ref"].as_str().or(of_any.and_then(|one| one["$ref"].as_str()));
        let pointed = reference.and_then(|reference| schema.pointer(reference.trim_start_matches('#')));
        pointed.unwrap_or(value).clone()
    };
    let mut keys = BTreeSet::new();
    for (section, value) in schema["properties"].as_object().unwrap() {
        let resolved = resolve(value);
        match resolved["properties"].as_object() {
            Some(inner) => keys.extend(inner.keys().map(|key| format!("{section}.{key}"))),
            None => drop(keys.insert(section.clone())),
        }
    }
    keys
}

#[test]
fn what_was_requested_and_observed_and_what_writes_the_files_is_in_the_document() {
    let (plan, scope, observations) = (of(""), scope(), ["a".to_owned()]);
    let text =
        |scope: &Scope, observations: &[String], writer| document_of(&plan, scope, observations, writer).to_string();
    let of_more = Scope { requests: ["a".to_owned(), "b".to_owned()].into(), ..scope.clone() };
    let of_fewer = Scope { excluded: ["XOM".parse().unwrap()].into(), ..scope.clone() };
    let of_another = Scope { source: Endpoint::SignalsHistory, ..scope.clone() };
    let texts: BTreeSet<String> = [
        text(&scope, &observations, "program"),
        text(&of_more, &observations, "program"),
        text(&of_another, &observations, "program"),
        text(&of_fewer, &observations, "program"),
        text(&scope, &["b".to_owned()], "program"),
    ]
    .into();
    assert_eq!(texts.len(), 5);
    assert!(!texts.contains(&text(&scope, &observations, "spark")));
    let renamed = Plan { name: "other".to_owned(), ..plan.clone() };
    let mut of_other_service = plan.clone();
    of_other_service.service.name = "other".to_owned();
    assert_ne!(document(&renamed), document(&plan));
    assert_ne!(document(&of_other_service), document(&plan));
}

#[test]
fn an_option_of_a_build_that_changes_the_dataset_changes_the_document() {
    let filtered = |filter: Filter| AdHoc { filter, ..AdHoc::default() };
    let formats = |formats: &[Format]| AdHoc { formats: formats.to_vec(), ..AdHoc::default() };
    let options = [
        AdHoc::default(),
        AdHoc { vintage: Some(Vintage::First), ..AdHoc::default() },
        AdHoc { claims: Claims::Included, ..AdHoc::default() },
        filtered(Filter { tickers: Some(BTreeSet::from(["XOM".parse().unwrap()])), ..Filter::default() }),
        filtered(Filter { signals: Some(BTreeSet::from(["buy".parse().unwrap()])), ..Filter::default() }),
        filtered(Filter { min_confidence: "0.6".parse().ok(), ..Filter::default() }),
        filtered(Filter { from: "2026-01-01".parse().ok(), ..Filter::default() }),
        filtered(Filter { to: "2026-01-01".parse().ok(), ..Filter::default() }),
        formats(&[Format::Csv]),
        formats(&[Format::Csv, Format::Parquet]),
        formats(&[Format::Parquet, Format::Csv]),
    ];
    let with = |ad_hoc: &AdHoc| {
        let mut plan = of("");
        ad_hoc.apply(&mut plan).unwrap();
        document(&plan).to_string()
    };
    let documents: BTreeSet<String> = options.iter().map(with).collect();
    assert_eq!(documents.len(), options.len());
    assert_eq!(with(&formats(&[Format::Parquet])), document(&of("")).to_string(), "the format of the definition");
}
