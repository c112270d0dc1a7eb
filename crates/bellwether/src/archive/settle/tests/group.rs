//! How much is settled at a time, and when that ends.

use std::collections::HashMap;
use std::fs::{self, File};

use arrow::array::Int32Array;

use super::*;
use crate::archive::Archive;
use crate::archive::answers::answer_files::AnswerFiles;
use crate::archive::answers::{Answer, Draft, EarlierAnswers};
use crate::archive::sealed::seal::{LAYOUT, RunOrigin};
use crate::archive::settle::by_series::{AnswersBySeries, KnownReader};
use crate::archive::settle::{PIECE_ROWS, SealedAs, Settling, batches, whole_tickers};
use crate::tables::{Change, Changes};

const CONVENTIONS: &Conventions =
    &Conventions { whole: Vec::new(), tolerance: 1e-9, oldest_first: None, day_clock: None };

/// A list of one article with a title of some letters.
fn article(ticker: &str, letters: usize) -> (SeriesKey, RecordBatch) {
    let columns: [(&str, ArrayRef); 5] = [
        ("position", Arc::new(Int32Array::from(vec![0]))),
        ("date", Arc::new(TimestampMicrosecondArray::from(vec![DAY]))),
        ("title", Arc::new(StringArray::from(vec!["x".repeat(letters)]))),
        ("score", Arc::new(Float64Array::from(vec![1.0]))),
        ("link", Arc::new(StringArray::from(vec!["link"]))),
    ];
    let key = SeriesKey::of_ticker(Endpoint::NewsArticles, ticker.parse().unwrap());
    (key, Table::Articles.list(&columns).unwrap())
}

/// An answer in a folder.
fn answer(folder: &TempDir, endpoint: Endpoint, series: Vec<(SeriesKey, RecordBatch)>) -> Answer {
    let mut draft = Draft::on(&Arc::new(AnswerFiles::of(folder.path().to_owned())));
    for (key, rows) in series {
        draft.add_series(Series { key, rows }).unwrap();
    }
    let record = RequestRecord {
        endpoint,
        request: "x".to_owned(),
        status: 200,
        attempts: 1,
        bytes: 0,
        digest: String::new(),
        rows: 0,
        rejects: 0,
        validator: None,
        unknown_fields: Vec::new(),
        observed_at: at(10),
    };
    Answer { folder: folder.path().to_owned(), record: Arc::new(draft.complete(record).unwrap()) }
}

#[test]
fn enough_whole_tickers_are_settled_at_a_time_by_their_series_and_by_their_bytes() {
    let stop = CancellationToken::new();
    let count = |endpoint, series: Vec<(SeriesKey, RecordBatch)>| {
        let folder = tempfile::tempdir().unwrap();
        let answers = [answer(&folder, endpoint, series)];
        let by_series = AnswersBySeries::of(&answers, EarlierAnswers::default(), CONVENTIONS, &stop);
        whole_tickers(&by_series, &by_series.series())
    };
    let signals = |periods: &[&str], tickers: usize| {
        let of_ticker = |ticker: usize| {
            let key = move |period: &&str| signals_of(&format!("T{ticker:03}"), period);
            periods.iter().map(move |period| (key(period), history(&[(1, false)]))).collect::<Vec<_>>()
        };
        (0..tickers).flat_map(of_ticker).collect::<Vec<_>>()
    };
    assert_eq!(count(Endpoint::SignalsHistoryAll, Vec::new()), 0);
    assert_eq!(count(Endpoint::SignalsHistoryAll, signals(&["5d"], 10)), 10);
    assert_eq!(count(Endpoint::SignalsHistoryAll, signals(&["5d"], 100)), 64);
    assert_eq!(count(Endpoint::SignalsHistoryAll, signals(&["5d", "15d", "2m"], 100)), 66);
    let articles = |letters: &[usize]| {
        let tickers = ["A", "B", "C", "D"].into_iter().zip(letters);
        tickers.map(|(ticker, letters)| article(ticker, *letters)).collect::<Vec<_>>()
    };
    let (small, half, large) = (10, 600_000, 1_100_000);
    for (letters, expected) in [
        ([small, small, small, small], 4),
        ([large, small, small, small], 1),
        ([small, large, small, small], 2),
        ([half, half, half, small], 2),
        ([half, small, half, half], 3),
    ] {
        assert_eq!(count(Endpoint::NewsArticles, articles(&letters)), expected, "{letters:?}");
    }
}

#[test]
fn the_changes_of_a_series_stay_in_one_piece_and_pieces_begin_once_there_are_enough_rows() {
    let changes = |ticker: &str, second: i64, rows: i64| Changes {
        key: signals_of(ticker, "5d"),
        source: Endpoint::SignalsHistoryAll,
        observed_at: at(second),
        sealed_at: at(100),
        kinds: vec![Change::Revised; rows as usize],
        rows: history(&(0..rows).map(|day| (day, false)).collect::<Vec<_>>()),
    };
    let rows = PIECE_ROWS as i64;
    let all = vec![
        changes("A", 1, rows - 1),
        changes("A", 2, 2),
        changes("A", 3, 5),
        changes("B", 1, rows - 10),
        changes("C", 1, 9),
        changes("C", 2, 9),
        changes("D", 1, rows),
        changes("E", 1, 1),
    ];
    let pieces = batches(all).unwrap();
    let lengths: Vec<usize> = pieces.iter().map(|(_, rows)| rows.num_rows()).collect();
    assert_eq!(lengths, [PIECE_ROWS + 6, PIECE_ROWS + 8, PIECE_ROWS, 1]);
    let first = pieces[0].1.flat().unwrap();
    // The observations of a cell come together.
    assert_eq!(days(&first)[..8], [0, 0, 0, 1, 1, 1, 2, 2]);
    assert_eq!(seconds(&first, "observed_at")[..8], [1, 2, 3, 1, 2, 3, 1, 3]);
}

/// Compares an answer, of whose file a share is left, with an empty archive. Returns how many groups were sent to a
/// receiver that takes some, and whether the last of them is an error.
fn groups_sent(
    (endpoint, series): (Endpoint, Vec<(SeriesKey, RecordBatch)>),
    share: f64,
    taken: usize,
) -> (usize, bool) {
    let (folder, stop) = (tempfile::tempdir().unwrap(), CancellationToken::new());
    let answers = [answer(&folder, endpoint, series)];
    let file = File::options().write(true).open(folder.path().join("0.answers")).unwrap();
    file.set_len((file.metadata().unwrap().len() as f64 * share) as u64).unwrap();
    let mut by_series = AnswersBySeries::of(&answers, EarlierAnswers::default(), CONVENTIONS, &stop);
    let series = by_series.series();
    let archive = folder.path().join("archive");
    fs::create_dir(&archive).unwrap();
    let archive = Archive::open(&archive).unwrap();
    let (known, later) = (KnownReader::open(&archive).unwrap(), HashMap::new());
    let (mut sent, mut has_failed) = (0, false);
    let origin = RunOrigin {
        layout: LAYOUT,
        run: "x".to_owned(),
        definition: "x".to_owned(),
        definition_digest: String::new(),
        definition_text: None,
        service: ServiceIdentity::default(),
        started_at: at(0),
        sealed_answers: 0,
    };
    let settling = Settling {
        before: &archive,
        origin: &origin,
        answers: &answers,
        sealed_at: at(20),
        conventions: CONVENTIONS,
        sealed_as: SealedAs::default(),
    };
    settling.settle_groups(known, &mut by_series, &series, &later, |group| {
        (sent, has_failed) = (sent + 1, group.is_err());
        sent < taken
    });
    (sent, has_failed)
}

#[test]
fn nothing_is_compared_once_the_receiver_stops_or_an_answer_cannot_be_read() {
    let signals = || {
        let series = (0..200).map(|number| (signals_of(&format!("T{number:03}"), "5d"), history(&[(1, false)])));
        (Endpoint::SignalsHistoryAll, series.collect())
    };
    // Four times up to 64 series.
    assert_eq!(groups_sent(signals(), 1.0, usize::MAX), (4, false));
    for taken in 1..=4 {
        assert_eq!(groups_sent(signals(), 1.0, taken), (taken, false));
    }
    // The error is sent instead of the group whose rows are not there.
    assert_eq!(groups_sent(signals(), 0.5, usize::MAX), (2, true));
    assert_eq!(groups_sent(signals(), 0.0, usize::MAX), (1, true));
}
