//! Reports of datasets too large or too odd to fetch in a test.

use std::collections::HashMap;
use std::sync::Arc;

use arrow::array::{ArrayRef, AsArray, Float64Array, Int8Array, RecordBatch, StringArray, TimestampMicrosecondArray};
use arrow::compute::{SortColumn, concat_batches, lexsort_to_indices, take_record_batch};
use arrow::datatypes::TimestampMicrosecondType;
use chrono::{DateTime, NaiveDate};

use super::numbers::{Counting, Numbers, SectorNumbers};
use super::{Identity, Report};
use crate::audit::answers::Answers;
use crate::definition::DefinitionFile;
use crate::facts::Tally;
use crate::interface::{Period, Regime, Signal};
use crate::plan::{DatasetPlan, Plan};
use crate::tables::choices;

fn plan() -> DatasetPlan {
    let text =
        "[source]\nservice = \"demo\"\n[signals]\nsectors = [\"energy\"]\n[sentiment]\narticles = false\n".to_owned();
    Plan::of(DefinitionFile::new("it.toml".into(), text).unwrap()).unwrap().dataset
}

/// A signal for each ticker, day and pair, whose value follows from its position.
fn rows(tickers: std::ops::Range<usize>, days: &[NaiveDate], pairs: usize) -> RecordBatch {
    let cells =
        tickers.flat_map(|ticker| (0..days.len()).flat_map(move |day| (0..pairs).map(move |pair| (ticker, day, pair))));
    let cells: Vec<(usize, usize, usize)> = cells.collect();
    let column = |code: &dyn Fn(&(usize, usize, usize)) -> usize| {
        cells.iter().map(|cell| Some(code(cell) as i8)).collect::<Int8Array>()
    };
    let micros = |day: usize| days[day].and_hms_opt(0, 0, 0).unwrap().and_utc().timestamp_micros();
    let columns: Vec<ArrayRef> = vec![
        Arc::new(cells.iter().map(|(ticker, ..)| Some(format!("T{ticker:04}"))).collect::<StringArray>()),
        Arc::new(cells.iter().map(|(_, day, _)| Some(micros(*day))).collect::<TimestampMicrosecondArray>()),
        choices(column(&|(.., pair)| pair / 3), Period::all().map(Period::as_str)),
        choices(column(&|(.., pair)| pair % 3), Regime::ALL.map(Regime::as_str)),
        choices(column(&|(ticker, day, pair)| (ticker + day + pair) % 2), Signal::ALL.map(Signal::as_str)),
        Arc::new(
            cells
                .iter()
                .map(|(ticker, day, _)| Some(((ticker * 31 + day) % 100) as f64 / 100.0))
                .collect::<Float64Array>(),
        ),
    ];
    let score = columns[5].clone();
    let sector: ArrayRef = Arc::new(cells.iter().map(|_| Some("energy")).collect::<StringArray>());
    let columns = columns.into_iter().chain([score, sector]).collect();
    RecordBatch::try_new(plan().schema, columns).unwrap()
}

/// The numbers of some rows, which come in any order.
fn numbers(batches: &[&RecordBatch]) -> Numbers {
    let rows = concat_batches(&batches[0].schema(), batches.iter().copied()).unwrap();
    let columns =
        ["ticker", "date"].map(|name| SortColumn { values: rows.column_by_name(name).unwrap().clone(), options: None });
    let rows = take_record_batch(&rows, &lexsort_to_indices(&columns, None).unwrap()).unwrap();
    let mut counting = Counting::new(&plan());
    for at in (0..rows.num_rows()).step_by(100) {
        counting.take(&rows.slice(at, 100.min(rows.num_rows() - at))).unwrap();
    }
    counting.finish()
}

fn report(batches: &[RecordBatch]) -> Report {
    let as_of = DateTime::from_timestamp_micros(1_795_210_200_000_000).unwrap();
    let (mut tally, mut counting) = (Tally::new(&plan()), Counting::new(&plan()));
    for rows in batches {
        tally.count(&rows.clone().into());
        counting.take(rows).unwrap();
    }
    let numbers = counting.finish();
    let identity = Identity {
        name: "it".into(),
        description: None,
        version: None,
        as_of,
        watched: None,
        live_within: plan().live_within,
        age: None,
        definition: String::new(),
        in_words: plan().in_words(),
    };
    Report {
        identity,
        columns: numbers.columns.clone(),
        facts: tally.finish(),
        numbers,
        news: None,
        sectors: Vec::new(),
        skill: None,
        revisions: None,
        work: Answers::default(),
        unasked: 0,
        since: None,
        notes: Vec::new(),
    }
}

fn months(count: u32) -> Vec<NaiveDate> {
    let first = NaiveDate::from_ymd_opt(2021, 1, 4).unwrap();
    (0..count).map(|month| first + chrono::Months::new(month)).collect()
}

#[test]
fn a_page_of_thousands_of_tickers_is_small_and_names_what_it_omits() {
    let days = months(60);
    // Each ticker has no signals before its listing day.
    let batches = (0..2000).step_by(50).map(|first| {
        let pairs = if first == 0 { 108 } else { 3 };
        rows(first..first + 50, &days[first / 50..], pairs)
    });
    let report = report(&batches.collect::<Vec<_>>());
    let page = report.page();
    assert!(page.len() < 2_000_000, "{} bytes", page.len());
    assert!(page.contains("others have at least") && page.contains("Share of buys by period, regime and quarter"));
    assert_eq!(page.matches("id=\"plot-signals").count(), 1, "so many pairs are rows of one plot");
    assert!(page.contains("tickers are in this page.") || page.contains("last signals are in this page."));
    assert!(report.text(80).lines().all(|line| line.chars().count() <= 80));
}

#[test]
fn a_page_that_has_no_room_for_all_tickers_has_those_with_the_strongest_last_signals() {
    let report = report(&[rows(0..40, &months(3), 3)]);
    // By construction, ticker 3 of 40 has the highest last confidence: 3 * 31 + 2 is 95.
    let (.., section) = report.one_ticker(2_000);
    assert!(section.0.contains("of 40 tickers with the strongest last signals are in this page."), "{}", section.0);
    assert!(section.0.contains("&quot;T0003&quot;:") && !section.0.contains("&quot;T0001&quot;:"), "{}", section.0);
}

#[test]
fn flips_and_agreement_are_counted_in_each_series() {
    let mut days = months(30);
    days.push("1850-03-04".parse().unwrap());
    let found = numbers(&[&rows(0..7, &days, 5)]);
    assert_eq!((found.totals().rows, found.tickers.len(), found.days.len(), found.pairs.len()), (7 * 31 * 5, 7, 30, 5));
    assert_eq!((found.undrawn, found.undrawn_days, found.day_count()), (7 * 5, 1, 31));
    let found = numbers(&[&rows(0..7, &months(30), 5)]);
    // By construction, every signal is the opposite of its predecessor and of the previous pair's signal.
    assert_eq!((found.totals().followed, found.totals().flipped), (7 * 29 * 5, 7 * 29 * 5));
    assert_eq!((found.followed.count(), found.flipped.count()), (7 * 29 * 5, 7 * 29 * 5));
    let agreements = found.agreements.unwrap();
    assert_eq!(agreements.len(), 10);
    for agreement in agreements {
        let [one, other] = agreement.pairs;
        let same = if (other - one) % 2 == 0 { 7 * 30 } else { 0 };
        assert_eq!((agreement.answers.both, agreement.answers.same), (7 * 30, same), "{agreement:?}");
    }
}

#[test]
fn the_last_signal_of_a_series_has_the_one_before() {
    let found = numbers(&[&rows(0..2, &months(3), 2)]);
    // The confidence of a ticker on a day is (31 ticker + day) / 100, and its signal a sell where ticker, day and pair are odd
    // in sum.
    let latest = found.tickers[1].latest[0];
    assert_eq!((latest.pair, latest.score, latest.before), (0, -0.33, Some(0.32)));
    assert_eq!(latest.day(), Some("2021-03-04".parse().unwrap()));
    let newest: Vec<(&str, f64)> = found.newest().into_iter().map(|(ticker, latest)| (ticker, latest.score)).collect();
    assert_eq!(newest, [("T0001", -0.33), ("T0001", 0.33), ("T0000", 0.02), ("T0000", -0.02)]);
}

#[test]
fn a_pair_that_comes_once_a_month_has_no_gaps_on_the_other_days() {
    let monthly = months(12);
    let daily: Vec<NaiveDate> = monthly[0].iter_days().take(340).filter(|day| !monthly.contains(day)).collect();
    let coverage = |without: usize| {
        let of_months = [rows(0..2, &monthly, 2), rows(2..3, &monthly[without..], 2)];
        numbers(&[&rows(0..3, &daily, 1), &of_months[0], &of_months[1]]).coverage(72)
    };
    assert_eq!(coverage(0).incomplete.len(), 0);
    let of_others = coverage(4);
    assert_eq!((of_others.incomplete.len(), of_others.incomplete[0].ticker.as_str()), (1, "T0002"));
    // Both of its pairs miss four days.
    let due = daily.len() as u64 + 2 * 12;
    assert_eq!(of_others.incomplete[0].total(), (due - 2 * 4, due));
}

/// Buys in so many of the signals of each of some tickers, by sector.
fn of_sectors(sectors: &[(&str, &[u64])]) -> Vec<SectorNumbers> {
    let days = months(40);
    let (mut counting, mut of_tickers, mut ticker) = (Counting::new(&plan()), HashMap::new(), 0);
    for (sector, tickers) in sectors {
        for buys in *tickers {
            let all = rows(ticker..ticker + 1, &days, 1);
            let signal = |row: usize| i8::from((row as u64) < *buys);
            let keys: Int8Array = (0..all.num_rows()).map(|row| Some(signal(row))).collect();
            let mut columns = all.columns().to_vec();
            columns[all.schema().index_of("signal").unwrap()] = choices(keys, ["sell", "buy"]);
            counting.take(&RecordBatch::try_new(all.schema(), columns).unwrap()).unwrap();
            of_tickers.insert(format!("T{ticker:04}"), (*sector).to_owned());
            ticker += 1;
        }
    }
    counting.finish().by_sector(&of_tickers)
}

#[test]
fn sectors_differ_only_if_their_tickers_do() {
    let finding = |sectors: &[(&str, &[u64])]| {
        let report = Report { sectors: of_sectors(sectors), ..report(&[rows(0..1, &months(1), 1)]) };
        report.sector_finding().unwrap()
    };
    // scipy.stats.ttest_ind([0.3, 0.5, 0.6], [0.5, 0.55, 0.65], equal_var=False).pvalue is 0.386_53.
    let (noise, test) = finding(&[("energy", &[12, 20, 24]), ("utilities", &[20, 22, 26])]);
    assert_eq!(noise, "Sectors differ in their share of buys by no more than noise");
    let expected = [
        "Lowest: 46.7 % in energy. Highest: 56.7 % in utilities.",
        "Welch's test with tickers as clusters gives p = 0.387.",
    ];
    assert_eq!(test, expected);
    let (apart, _) = finding(&[("energy", &[9, 10, 11, 10]), ("utilities", &[30, 31, 29, 30])]);
    assert_eq!(apart, "Buys are 25.0 % in energy and 75.0 % in utilities");
    let (few, test) = finding(&[("energy", &[9]), ("utilities", &[30])]);
    assert_eq!(few, "There are too few tickers to tell whether sectors differ in their share of buys");
    assert_eq!(test, ["Lowest: 22.5 % in energy. Highest: 75.0 % in utilities."]);
    let (only, test) = finding(&[("energy", &[9, 10])]);
    assert_eq!((only.as_str(), test.len()), ("Every ticker with a sector is in energy", 0));
}

#[test]
fn a_day_with_several_signals_counts_once_in_any_order() {
    let days = months(12);
    // The later tickers miss some days, and have two signals on each of the others.
    let (all, some) = (rows(0..3, &days, 4), rows(3..6, &days[2..9], 4));
    let later = {
        let dates = some.column_by_name("date").unwrap().as_primitive::<TimestampMicrosecondType>();
        let mut columns = some.columns().to_vec();
        columns[some.schema().index_of("date").unwrap()] =
            Arc::new(dates.unary::<_, TimestampMicrosecondType>(|micros| micros + 3_600_000_000));
        RecordBatch::try_new(some.schema(), columns).unwrap()
    };
    let coverage = |batches: &[&RecordBatch]| {
        let covered = numbers(batches).coverage(72).incomplete.into_iter();
        covered.map(|covered| (covered.ticker.clone(), covered.total())).collect::<Vec<_>>()
    };
    let once = coverage(&[&all, &some]);
    assert_eq!(once.len(), 3, "the others are complete");
    assert_eq!(once[0], ("T0003".to_owned(), (7 * 4, 12 * 4)));
    assert_eq!(coverage(&[&all, &some, &later]), once);
    assert_eq!(coverage(&[&later, &all, &some]), once);
}
