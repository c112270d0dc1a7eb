//! Reports of datasets too large or too odd to fetch in a test.

use std::collections::HashMap;
use std::sync::Arc;

use arrow::array::{ArrayRef, AsArray, Float64Array, Int8Array, RecordBatch, StringArray, TimestampMicrosecondArray};
use arrow::compute::take_record_batch;
use arrow::datatypes::TimestampMicrosecondType;
use chrono::{DateTime, NaiveDate};

use super::facts::{Activity, Facts, SectorFacts, Tally};
use super::{Identity, Report};
use crate::definition::DefinitionFile;
use crate::interface::{Period, Regime, Signal};
use crate::plan::{DatasetPlan, Plan};
use crate::tables::choices;

fn plan() -> DatasetPlan {
    sorted_by("ticker")
}

fn sorted_by(column: &str) -> DatasetPlan {
    let text = format!(
        "[source]\nservice = \"demo\"\n[signals]\nsectors = [\"energy\"]\n[sentiment]\narticles = false\n\
         [output]\nsort = [\"{column}\"]\n"
    );
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
    RecordBatch::try_new(plan().schema, columns).unwrap()
}

fn report(facts: Facts) -> Report {
    let as_of = DateTime::from_timestamp_micros(1_795_210_200_000_000).unwrap();
    let (description, version, watched, definition) = (None, None, None, String::new());
    let in_words = plan().in_words();
    let live_within = plan().live_within;
    let identity =
        Identity { name: "it".into(), description, version, as_of, watched, live_within, definition, in_words };
    Report {
        identity,
        columns: facts.columns.clone(),
        facts,
        sectors: Vec::new(),
        skill: None,
        revisions: None,
        work: Activity::default(),
        unasked: 0,
        stages: Vec::new(),
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
    let mut tally = Tally::new(&plan());
    for first in (0..2000).step_by(50) {
        // Each ticker has no signals before its listing day.
        let pairs = if first == 0 { 108 } else { 3 };
        tally.count(&rows(first..first + 50, &days[first / 50..], pairs).into());
    }
    let report = report(tally.finish());
    let page = report.page();
    assert!(page.len() < 2_000_000, "{} bytes", page.len());
    assert!(page.contains("others have at least") && page.contains("Share of buys by period, regime and quarter"));
    assert_eq!(page.matches("id=\"plot-signals").count(), 1, "so many pairs are rows of one plot");
    assert!(report.text(80).lines().all(|line| line.chars().count() <= 80));
}

#[test]
fn counts_do_not_depend_on_the_order_of_rows() {
    let mut days = months(30);
    days.push("1850-03-04".parse().unwrap());
    let rows = rows(0..7, &days, 9);
    let mut indices: Vec<u64> = (0..rows.num_rows() as u64).collect();
    indices.sort_by_key(|index| index.wrapping_mul(0x9e37_79b9_7f4a_7c15));
    let shuffled = take_record_batch(&rows, &arrow::array::UInt64Array::from(indices)).unwrap();
    // Flips are not counted if rows are not sorted by date.
    let facts = |rows: &RecordBatch| {
        let mut tally = Tally::new(&sorted_by("confidence"));
        (0..rows.num_rows())
            .step_by(100)
            .for_each(|at| tally.count(&rows.slice(at, 100.min(rows.num_rows() - at)).into()));
        tally.finish()
    };
    let (one, other) = (facts(&rows), facts(&shuffled));
    assert_eq!((one.rows, one.tickers.len(), one.days.len(), one.pairs.len()), (7 * 31 * 9, 7, 30, 9));
    assert_eq!((one.undrawn, one.undrawn_days, one.day_count(), one.totals().rows), (7 * 9, 1, 31, 7 * 31 * 9));
    assert_eq!((one.rows, one.dates, &one.days), (other.rows, other.dates, &other.days));
    assert!(one.persistence.is_none() && one.agreements.is_none());
    assert_eq!(report(one).page(), report(other).page());
}

/// A cluster's files end anywhere, and their record has the checksum of the facts.
#[test]
fn facts_are_the_same_bytes_wherever_batches_end() {
    let rows = rows(0..7, &months(30), 9);
    let facts = |batch: usize| {
        let mut tally = Tally::new(&plan());
        for at in (0..rows.num_rows()).step_by(batch) {
            tally.count(&rows.slice(at, batch.min(rows.num_rows() - at)).into());
        }
        tally.finish().to_json()
    };
    let whole = facts(rows.num_rows());
    assert!([1, 7, 100].into_iter().all(|batch| facts(batch) == whole));
}

#[test]
fn flips_and_agreement_do_not_depend_on_the_order_of_the_series() {
    let days = months(30);
    let rows = rows(0..7, &days, 5);
    let dates = rows.column_by_name("date").unwrap().as_primitive::<TimestampMicrosecondType>();
    let mut by_date: Vec<u64> = (0..rows.num_rows() as u64).collect();
    by_date.sort_by_key(|row| dates.value(*row as usize));
    let by_date = take_record_batch(&rows, &arrow::array::UInt64Array::from(by_date)).unwrap();
    for (column, rows, batch) in [("ticker", &rows, 1000), ("date", &by_date, 1000), ("date", &by_date, 33)] {
        let mut tally = Tally::new(&sorted_by(column));
        for at in (0..rows.num_rows()).step_by(batch) {
            tally.count(&rows.slice(at, batch.min(rows.num_rows() - at)).into());
        }
        let facts = tally.finish();
        // By construction, every signal is the opposite of its predecessor and of the previous pair's signal.
        assert_eq!((facts.flips().followed, facts.flips().flipped), (7 * 29 * 5, 7 * 29 * 5));
        assert_eq!(facts.persistence.unwrap().same.count(), 0);
        let agreements = facts.agreements.unwrap();
        assert_eq!(agreements.len(), 10);
        for agreement in agreements {
            let [one, other] = agreement.pairs;
            let same = if (other - one) % 2 == 0 { 7 * 30 } else { 0 };
            assert_eq!((agreement.both, agreement.same), (7 * 30, same), "{agreement:?}");
        }
    }
}

#[test]
fn a_pair_that_comes_once_a_month_has_no_gaps_on_the_other_days() {
    let monthly = months(12);
    let daily: Vec<NaiveDate> = monthly[0].iter_days().take(340).filter(|day| !monthly.contains(day)).collect();
    let coverage = |without: usize| {
        let mut tally = Tally::new(&plan());
        tally.count(&rows(0..3, &daily, 1).into());
        tally.count(&rows(0..2, &monthly, 2).into());
        tally.count(&rows(2..3, &monthly[without..], 2).into());
        tally.finish().coverage(72)
    };
    assert_eq!((coverage(0).incomplete, coverage(0).all), (0, 3));
    let of_others = coverage(4);
    assert_eq!((of_others.incomplete, of_others.rows[0].ticker.as_str()), (1, "T0002"));
    // Both of its pairs miss four days.
    let due = daily.len() as u64 + 2 * 12;
    assert_eq!(of_others.rows[0].total(), (due - 2 * 4, due));
}

/// Buys in so many of the signals of each of some tickers, by sector.
fn of_sectors(sectors: &[(&str, &[u64])]) -> Vec<SectorFacts> {
    let days = months(40);
    let (mut tally, mut of_tickers, mut ticker) = (Tally::new(&plan()), HashMap::new(), 0);
    for (sector, tickers) in sectors {
        for buys in *tickers {
            let all = rows(ticker..ticker + 1, &days, 1);
            let signal = |row: usize| i8::from((row as u64) < *buys);
            let keys: Int8Array = (0..all.num_rows()).map(|row| Some(signal(row))).collect();
            let mut columns = all.columns().to_vec();
            columns[all.schema().index_of("signal").unwrap()] = choices(keys, ["sell", "buy"]);
            tally.count(&RecordBatch::try_new(all.schema(), columns).unwrap().into());
            of_tickers.insert(format!("T{ticker:04}").parse().unwrap(), sector.parse().unwrap());
            ticker += 1;
        }
    }
    tally.finish().by_sector(&of_tickers)
}

#[test]
fn sectors_differ_only_if_their_tickers_do() {
    let finding = |sectors: &[(&str, &[u64])]| {
        let report = Report { sectors: of_sectors(sectors), ..report(Tally::new(&plan()).finish()) };
        (report.split().unwrap(), report.sector_test())
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
        let mut tally = Tally::new(&plan());
        batches.iter().for_each(|rows| tally.count(&(*rows).clone().into()));
        let covered = tally.finish().coverage(72).rows.into_iter();
        covered.map(|covered| (covered.ticker.clone(), covered.total())).collect::<Vec<_>>()
    };
    let once = coverage(&[&all, &some]);
    assert_eq!(once[0], ("T0003".to_owned(), (7 * 4, 12 * 4)));
    assert_eq!(once[5], ("T0002".to_owned(), (12 * 4, 12 * 4)));
    assert_eq!(coverage(&[&all, &some, &later]), once);
    let singly: Vec<RecordBatch> =
        (0..some.num_rows()).flat_map(|row| [later.slice(row, 1), some.slice(row, 1)]).collect();
    assert_eq!(coverage(&singly.iter().rev().chain([&all]).collect::<Vec<_>>()), once);
}
