//! Ten days of a service that rewrites its past: each day's run records rewritten and new data, and nothing else.
//!
//! Expected values come from the service's side: [`Universe::rewrites`] names the rewritten cells, the dates of a
//! history are the trading days, and lists of articles are read over plain HTTP.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use arrow::array::{AsArray, RecordBatch};
use arrow::compute::filter_record_batch;
use arrow::datatypes::TimestampMicrosecondType;
use bellwether::plan::StoreUrl;
use bellwether::run::Summary;
use bellwether::tables::Table;
use chrono::{Days, NaiveDate, NaiveDateTime};

use crate::support::bucket::{Bucket, store_of_test};
use crate::support::days::{Day, Scores, Signals, evening, midnight};
use crate::support::program::Place;
use crate::support::rows::{columns, known_rows, numbers, read, texts};
use crate::support::service::day;
use crate::support::tools::{PYTHON, needs};

/// Ten days that include a weekend and the end of a quarter, as do the dates that leave the histories five years
/// earlier; and one more after a pause of a month.
fn days() -> impl Iterator<Item = NaiveDate> {
    day(2026, 9, 28).iter_days().take(10).chain([day(2026, 11, 6)])
}

fn signals(rows: &RecordBatch) -> Signals {
    let values = texts(rows, "signal").into_iter().flatten().zip(numbers(rows, "confidence").flatten());
    let signals: Signals = columns(rows, ["ticker", "period", "regime", "date"]).into_iter().zip(values).collect();
    assert_eq!(signals.len(), rows.num_rows(), "a cell is there twice, or has no value");
    signals
}

fn scores(rows: &RecordBatch) -> Scores {
    let scores: Scores =
        columns(rows, ["ticker", "date", "link"]).into_iter().zip(numbers(rows, "score").flatten()).collect();
    assert_eq!(scores.len(), rows.num_rows(), "an article is there twice, or has no score");
    scores
}

/// The rows that record one kind of change.
fn changes_of(rows: &RecordBatch, kind: &str) -> RecordBatch {
    let is_so = texts(rows, "change").into_iter().map(|change| Some(change.as_deref() == Some(kind)));
    filter_record_batch(rows, &is_so.collect()).expect("as many flags as rows")
}

/// The archive's state of some dates, on an evening.
fn known_on(archive: &Path, table: Table, evening_of: NaiveDate, dates: &BTreeSet<i64>) -> RecordBatch {
    let rows = known_rows(archive, table, evening(evening_of));
    let column = rows.column_by_name("date").expect("it has dates").as_primitive::<TimestampMicrosecondType>();
    let is_wanted = column.iter().map(|date| Some(date.is_some_and(|date| dates.contains(&date))));
    filter_record_batch(&rows, &is_wanted.collect()).expect("as many flags as rows")
}

fn micros<'a>(dates: impl Iterator<Item = &'a String>) -> BTreeSet<i64> {
    let micros = |text: &String| text.parse::<NaiveDateTime>().expect("a date").and_utc().timestamp_micros();
    dates.map(micros).collect()
}

#[test]
fn each_day_records_only_new_and_rewritten_data() {
    let place = Place::new();
    check_days(None, || place.file("output"));
}

/// Started with the address and the keys of a store by [`each_day_may_run_on_a_machine_with_an_empty_disk`].
#[test]
#[ignore = "it needs a store"]
fn days_on_the_store_named_in_the_environment() {
    let machines = Place::new();
    let mut count = 0;
    check_days(Some(store_of_test().parse().expect("an address")), || {
        count += 1;
        machines.file(&format!("machine-{count}"))
    });
}

#[test]
fn each_day_may_run_on_a_machine_with_an_empty_disk() {
    needs!(PYTHON);
    Bucket::start().run_test("days::days_on_the_store_named_in_the_environment", "days");
}

/// Runs on each day with the data folder of that day.
#[track_caller]
fn check_days(store: Option<StoreUrl>, mut folder: impl FnMut() -> PathBuf) {
    let mut listed = Scores::new();
    let mut rewritten = (0, 0);
    let (mut last, mut archive) = (None, PathBuf::new());
    for today in days() {
        let service = Day::new(today);
        let data = folder();
        let summary = service.run_with(&data, store.clone());
        archive = data.join("archive/vendor");
        let earlier = last.as_ref().map(|(before, _): &(Day, Summary)| before.universe.today());

        let recorded = read(&summary.fetched.as_ref().expect("it fetched").run.join("signals.parquet"));
        assert_eq!(
            changes_of(&recorded, "withdrawn").num_rows(),
            0,
            "{today}: what leaves the window is not withdrawn"
        );
        let added = signals(&changes_of(&recorded, "added"));
        let is_new = |date: NaiveDate| earlier.is_none_or(|earlier| date > earlier);
        assert!(added.keys().eq(&service.cells(is_new)), "{today}: {} signals are added", added.len());
        let revised = signals(&changes_of(&recorded, "revised"));

        let articles = read(&summary.fetched.as_ref().expect("it fetched").run.join("articles.parquet"));
        assert_eq!(changes_of(&articles, "withdrawn").num_rows(), 0, "{today}: what leaves the list is not withdrawn");
        let now = service.list();
        let new: Scores =
            now.iter().filter(|(one, _)| !listed.contains_key(*one)).map(|(k, v)| (k.clone(), *v)).collect();
        assert_eq!(scores(&changes_of(&articles, "added")), new, "{today}");
        let rescored = scores(&changes_of(&articles, "revised"));

        if let Some(earlier) = earlier {
            let (before, after) = service.rewritten_signals(earlier);
            assert_eq!(revised, after, "{today}");
            let dates = micros(revised.keys().map(|cell| &cell[3]));
            let mut was = signals(&known_on(&archive, Table::Signals, earlier, &dates));
            was.retain(|cell, _| revised.contains_key(cell));
            assert_eq!(was, before, "{today}");

            let (before, after) = service.rewritten_scores(earlier);
            assert_eq!(rescored, after, "{today}");
            let dates = micros(rescored.keys().map(|article| &article[1]));
            let mut was = scores(&known_on(&archive, Table::Articles, earlier, &dates));
            was.retain(|article, _| rescored.contains_key(article));
            assert_eq!(was, before, "{today}");
        } else {
            assert!(revised.is_empty() && rescored.is_empty(), "there was nothing to revise");
        }
        rewritten = (rewritten.0 + revised.len(), rewritten.1 + rescored.len());
        listed = now;
        last = Some((service, summary));
    }
    assert!(rewritten.0 > 0 && rewritten.1 > 0, "{rewritten:?} rewrites: the test has seen too little");

    let (service, summary) = last.expect("there were days");
    let today = service.universe.today();
    let cells = known_rows(&archive, Table::Signals, evening(today));
    let (all, message) = (signals(&cells), service.histories());
    let of_window = all.iter().filter(|(cell, _)| cell[3] >= midnight(service.universe.trading_days()[0]));
    assert!(of_window.eq(&message), "what is known is what the service says");
    let news = scores(&known_rows(&archive, Table::Articles, evening(today)));
    assert!(listed.iter().all(|(article, score)| news[article] == *score), "what is known is what the service says");
    check_dataset(&read(&summary.dataset.join("days.parquet")), &all, &news);
}

/// Key and signal, confidence, and of the news in a window the count and the largest score.
type DatasetRow = ([String; 5], f64, Option<usize>, Option<f64>);

/// Checks that the published rows are the known signals, each with the news of the seven days before it.
#[track_caller]
fn check_dataset(rows: &RecordBatch, signals: &Signals, news: &Scores) {
    let mut of_tickers: BTreeMap<&str, Vec<(NaiveDate, f64)>> = BTreeMap::new();
    let date = |text: &str| text[..10].parse::<NaiveDate>().expect("a date");
    for ([ticker, published, _], score) in news {
        of_tickers.entry(ticker).or_default().push((date(published), *score));
    }
    let mut expected: Vec<DatasetRow> = Vec::with_capacity(signals.len());
    for ([ticker, period, regime, when], (signal, confidence)) in signals {
        let today = date(when);
        let articles = of_tickers.get(ticker.as_str()).map_or(&[][..], Vec::as_slice);
        let seen = articles.iter().skip_while(|(published, _)| *published < today - Days::new(7));
        let seen = seen.take_while(|(published, _)| *published < today);
        let seen: Vec<f64> = seen.map(|(_, score)| *score).collect();
        // The lists of the service are cut off: there may have been more on their oldest day, and before.
        let is_known = articles.first().is_none_or(|(oldest, _)| *oldest < today - Days::new(7));
        let seen = is_known.then_some(seen);
        let key = [ticker, when, period, regime, signal].map(String::clone);
        let most = seen.as_ref().and_then(|seen| seen.iter().copied().reduce(f64::max));
        expected.push((key, *confidence, seen.map(|seen| seen.len()), most));
    }
    expected.sort_by(|one, other| one.0.cmp(&other.0));
    let keys = columns(rows, ["ticker", "date", "period", "regime", "signal"]);
    let counts = numbers(rows, "news_count_7d").map(|count| count.map(|count| count as usize));
    let values = numbers(rows, "confidence").flatten().zip(counts).zip(numbers(rows, "news_max_7d"));
    let published = keys.into_iter().zip(values).map(|(key, ((confidence, count), max))| (key, confidence, count, max));
    let mut published: Vec<_> = published.collect();
    published.sort_by(|one, other| one.0.cmp(&other.0));
    assert_eq!(published.len(), expected.len());
    assert!(published == expected, "the dataset is not what is known");
}
