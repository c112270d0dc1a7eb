//! The trials must detect leaks: datasets that read their news wrongly are caught.

use std::collections::BTreeSet;
use std::path::Path;
use std::sync::Arc;

use arrow::array::{
    ArrayRef, AsArray, Float64Array, Int8Array, Int16Array, Int32Array, RecordBatch, StringArray,
    TimestampMicrosecondArray,
};
use chrono::DateTime;

use super::{Experiment, Leak, TrialOutcome, all_of};
use crate::archive::{Archive, Interrupted, NewRun, Scope, Unfinished};
use crate::definition::DefinitionFile;
use crate::interface::Endpoint;
use crate::plan::{Filter, Plan, ServiceIdentity, TickerSource};
use crate::process::cancel::CancellationToken;
use crate::tables::dates::{self, Date};
use crate::tables::{Conventions, Leniencies, RequestRecord, Series, SeriesKey, Slab, Table, choices};

const REQUEST: &str = "signals-history-all sector=x period=5d regime=neutral";

fn dates(texts: &[String]) -> Vec<Date> {
    texts.iter().map(|text| dates::read(text, &mut Leniencies::default()).expect("a date")).collect()
}

fn micros(dates: &[Date]) -> ArrayRef {
    Arc::new(TimestampMicrosecondArray::from_iter_values(dates.iter().map(|date| date.micros)))
}

fn offsets(dates: &[Date]) -> ArrayRef {
    Arc::new(dates.iter().map(|date| date.offset_minutes).collect::<Int16Array>())
}

fn signals(dates: &[Date]) -> Vec<(&'static str, ArrayRef)> {
    let count = dates.len();
    let signals = choices(Int8Array::from(vec![0; count]), vec!["buy", "sell"]);
    let confidences = Arc::new(Float64Array::from(vec![0.5; count]));
    vec![
        ("date", micros(dates)),
        ("utc_offset_minutes", offsets(dates)),
        ("signal", signals),
        ("confidence", confidences),
    ]
}

fn articles(dates: &[Date]) -> Vec<(&'static str, ArrayRef)> {
    let count = dates.len();
    vec![
        ("position", Arc::new(Int32Array::from_iter_values(0..count as i32))),
        ("date", micros(dates)),
        ("title", Arc::new(StringArray::from_iter_values((0..count).map(|number| format!("t{number}"))))),
        ("score", Arc::new(Float64Array::from(vec![0.25; count]))),
        ("link", Arc::new(StringArray::from(vec!["l"; count]))),
        ("utc_offset_minutes", offsets(dates)),
    ]
}

/// Runs the trials on a dataset of one ticker whose slabs are read by `read`.
fn run_trials(rest: &str, times: [&str; 2], read: fn(Slab) -> Slab) -> Leak {
    let folder = tempfile::tempdir().unwrap();
    let text = format!("source.service = \"demo\"\nsignals.sectors = [\"x\"]\nsentiment.historical = true\n{rest}");
    let plan = Plan::of(DefinitionFile::new("it.toml".into(), text).unwrap()).unwrap();
    let archive = seal_days(&folder.path().join("archive"), times);
    let scope = Scope {
        source: Endpoint::SignalsHistoryAll,
        requests: BTreeSet::from([REQUEST.to_owned()]),
        excluded: BTreeSet::new(),
        filter: Filter::default(),
        news: TickerSource::Signals,
    };
    let scratch = folder.path().join(".scratch-20261120T213000Z-7f3a");
    std::fs::create_dir(&scratch).unwrap();
    let work = Experiment { scope: &scope, plan: &plan.dataset, scratch: &scratch, view: &all_of(&archive), read };
    work.leak().unwrap()
}

/// An archive of twelve days of signals and articles, each at a time of day.
fn seal_days(path: &Path, [signal, article]: [&str; 2]) -> Archive {
    let now = DateTime::from_timestamp(1_770_000_000, 0).unwrap();
    let beginning = NewRun {
        definition: "it",
        text: "",
        service: &ServiceIdentity::demo(),
        conventions: &Conventions::default(),
        now,
        interrupted: Interrupted::Leave,
        stop: &CancellationToken::new(),
    };
    let run = Unfinished::begin(path, beginning).unwrap();
    let key = |endpoint| SeriesKey::of_ticker(endpoint, "AAA".parse().unwrap());
    let of_signals = SeriesKey {
        period: Some("5d".parse().unwrap()),
        regime: Some("neutral".parse().unwrap()),
        ..key(Endpoint::SignalsHistoryAll)
    };
    let of_days = |time: &str| dates(&(10..22).map(|day| format!("2025-10-{day}{time}")).collect::<Vec<_>>());
    for (endpoint, key, request, columns) in [
        (Endpoint::SignalsHistoryAll, of_signals, REQUEST, signals(&of_days(signal))),
        (Endpoint::NewsArticles, key(Endpoint::NewsArticles), "news_articles/AAA", articles(&of_days(article))),
    ] {
        let rows = Table::of(endpoint).unwrap().list(&columns).unwrap();
        let mut draft = run.draft();
        draft.add_series(Series { key, rows }).unwrap();
        let (rows, rejects) = draft.counts();
        let (request, digest) = (request.to_owned(), String::new());
        let record = RequestRecord {
            endpoint,
            request,
            status: 200,
            attempts: 1,
            bytes: 0,
            digest,
            rows,
            rejects,
            validator: None,
            unknown_fields: Vec::new(),
            observed_at: now,
        };
        run.commit(draft, record).unwrap();
    }
    run.seal(&[], || Ok(now), |_| Ok(true)).unwrap();
    Archive::open(path).unwrap()
}

/// Assigns articles to their UTC day, whatever the clock of the signals.
fn without_offsets(mut slab: Slab) -> Slab {
    slab.articles = slab.articles.map(|articles| {
        let index = articles.schema().index_of("utc_offset_minutes").unwrap();
        let mut columns = articles.columns().to_vec();
        columns[index] = Arc::new(Int16Array::new_null(articles.num_rows()));
        Ok(RecordBatch::try_new(articles.schema(), columns).unwrap())
    });
    slab
}

/// Assigns records to the day that their date text starts with.
fn first_ten_characters(mut slab: Slab) -> Slab {
    let records = &slab.records;
    let index = records.schema().index_of("record").unwrap();
    let mut columns = records.columns().to_vec();
    let cut = |text: Option<&str>| {
        let mut record: serde_json::Value = serde_json::from_str(text.unwrap()).unwrap();
        record["date"] = record["date"].as_str().unwrap()[..10].into();
        record.to_string()
    };
    columns[index] = Arc::new(StringArray::from_iter_values(columns[index].as_string::<i32>().iter().map(cut)));
    slab.records = RecordBatch::try_new(records.schema(), columns).unwrap();
    slab
}

const TOKYO: &str = "dates.naive = \"Asia/Tokyo\"\n";
const WALL: &str = "dates.naive = \"wall\"\n";
const RECORDS: &str = "[join]\nsources = [\"articles\", \"historical\"]\nhistorical = [\"score\"]\n";

#[test]
fn articles_dated_by_their_utc_day_leak() {
    for (rest, times) in [(TOKYO, ["T16:00:00Z", "T20:00:00Z"]), (WALL, ["T00:30:00+05:30", "T20:00:00Z"])] {
        let sound = run_trials(rest, times, |slab| slab);
        assert_eq!(
            (sound.count(TrialOutcome::Leak), sound.count(TrialOutcome::NotApplicable)),
            (0, 0),
            "{rest} {sound:?}"
        );
        assert!(run_trials(rest, times, without_offsets).count(TrialOutcome::Leak) > 0, "{rest}");
    }
}

#[test]
fn records_dated_by_the_prefix_of_their_date_leak() {
    let times = ["T00:00:00Z", ""];
    let sound = run_trials(RECORDS, times, |slab| slab);
    assert_eq!((sound.count(TrialOutcome::Leak), sound.count(TrialOutcome::NotApplicable)), (0, 0), "{sound:?}");
    assert!(run_trials(RECORDS, times, first_ten_characters).count(TrialOutcome::Leak) > 0);
}

#[test]
fn dates_from_one_clock_never_leak_at_any_lag() {
    for naive in ["utc", "wall", "America/St_Johns"] {
        for lag in ["0d", "7d", "2 trading days"] {
            let rest = format!("dates.naive = \"{naive}\"\njoin.lag = \"{lag}\"\n");
            for times in [["", ""], ["T23:30:00-05:00", "T01:00:00Z"], ["T12:00:00", "T12:00:00+09:00"]] {
                let found = run_trials(&rest, times, |slab| slab);
                assert_eq!(found.count(TrialOutcome::Leak), 0, "{rest} {times:?} {found:?}");
            }
        }
    }
}
