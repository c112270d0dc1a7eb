use std::collections::BTreeSet;

use serde_json::{Value, json};

use super::document as document_of;
use crate::archive::Scope;
use crate::definition::DefinitionFile;
use crate::identity::Identity;
use crate::interface::Endpoint;
use crate::plan::tests::{Change, for_each_change};
use crate::plan::{AdHoc, Claims, Column, Filter, Format, Plan, TickerSource, Vintage};

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

/// A definition with more keys, which may be dotted.
fn of(more: &str) -> Plan {
    plan(&format!("{more}source.service = \"demo\"\nsignals.sectors = [\"energy\", \"utilities\"]\n"))
}

/// The dataset and the files of a plan, without what makes no difference to them.
fn of_dataset(plan: &Plan) -> String {
    let (mut dataset, mut files) = (plan.dataset.clone(), plan.files.clone());
    // They follow from the columns, and from the requests.
    (dataset.written.key, dataset.written.sort) = (None, Vec::new());
    // Without a column of ids, nothing in the rows depends on it.
    if !dataset.columns.contains(&Column::Id) {
        dataset.identity = Identity::default();
    }
    // They decide what happens with the files.
    (files.keep, files.report) = (1, false);
    format!("{dataset:?} {files:?}")
}

#[test]
fn a_key_that_changes_the_dataset_or_its_files_changes_the_document_and_no_other_does() {
    let mut changes = 0;
    for_each_change(|Change { line, context, before, after, .. }| {
        let Some(after) = after else { return };
        let is_change = of_dataset(before) != of_dataset(&after);
        assert_eq!(is_change, meaning(before) != meaning(&after), "{line}, beside {context}");
        changes += u32::from(is_change);
    });
    assert!(changes > 1000, "{changes}");
}

#[test]
fn the_text_of_a_definition_and_the_order_of_formats_and_columns_are_in_the_document() {
    assert_ne!(document(&of("")), document(&of("# a remark\n")), "the text is in the files");
    for (before, after) in [
        ("output.format = [\"csv\", \"arrow\"]\n", "output.format = [\"arrow\", \"csv\"]\n"),
        ("dataset.columns = [\"ticker\", \"date\"]\n", "dataset.columns = [\"date\", \"ticker\"]\n"),
    ] {
        assert_ne!(meaning(&of(before)), meaning(&of(after)), "{after}");
    }
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
