//! Every entry of a body is decoded or rejected, exactly once.
//!
//! The bytes choose how a body of several tickers is written: which tickers, the valid or invalid fields of each
//! history, and its entries in many spellings. Each entry has a unique confidence, by which it is found again: in a row
//! of its ticker with the values that were written, or in the text of one rejected record. Nothing else comes out.

use std::collections::{BTreeMap, BTreeSet};
use std::convert::Infallible;
use std::io::BufReader;

use arrow::array::AsArray;
use arrow::datatypes::{Float64Type, Int8Type, TimestampMicrosecondType};
use chrono::NaiveDateTime;

use super::super::{Answer, AnswerPart, DecodeFault, Rules};
use crate::interface::Endpoint;
use crate::plan::Request;
use crate::tables::Reject;

/// Keys as written, and their tickers.
const KEYS: [(&str, &str); 4] = [("AAPL", "AAPL"), ("BRK.B", "BRK.B"), ("A\\u0041", "AA"), ("T1", "T1")];

/// Dates as written, and their instants; `None` if invalid.
const DATES: [(&str, Option<&str>); 12] = [
    ("\"2026-11-20\"", Some("2026-11-20T00:00:00")),
    ("\"2026-11-20T00:00:00\"", Some("2026-11-20T00:00:00")),
    ("\"2026-11-19T00:00:00Z\"", Some("2026-11-19T00:00:00")),
    ("\"2026-11-19t00:00:00z\"", Some("2026-11-19T00:00:00")),
    ("\"2026-11-18T19:00:00-05:00\"", Some("2026-11-19T00:00:00")),
    ("\"2026-11-17 09:30:00.25\"", Some("2026-11-17T09:30:00.25")),
    ("\"0001-01-01\"", Some("0001-01-01T00:00:00")),
    ("\"9999-12-31\"", Some("9999-12-31T00:00:00")),
    ("\"0000-01-01\"", None),
    ("\"2026-02-30\"", None),
    ("null", None),
    ("20261120", Some("2026-11-20T00:00:00")),
];

const SIGNALS: [(&str, Option<&str>); 6] = [
    ("\"buy\"", Some("buy")),
    ("\"sell\"", Some("sell")),
    ("\"SELL\"", Some("sell")),
    ("\"b\\u0075y\"", Some("buy")),
    ("\"hold\"", None),
    ("true", None),
];

/// Additional members, and whether an entry with them is valid.
const BESIDE: [(&str, bool); 5] = [
    ("", true),
    ("\"model\":{\"name\":\"a/b~c\"},", true),
    ("\"x\\\"]}\":\"]}[{\\\\\",", true),
    ("\"signal\":\"buy\",", false),
    ("\"x\":nul,", false),
];

/// Faults of a history around its entries, as members that replace the valid ones.
const FLAWS: [&str; 6] = [
    "\"period\":\"15d\",\"regime\":\"bear\"",
    "\"period\":\"45d\",\"regime\":\"bull\"",
    "\"regime\":\"bull\"",
    "\"period\":\"15d\",\"period\":\"15d\",\"regime\":\"bull\"",
    "\"period\":\"15d\",\"regime\":\"bull\",\"note\":nul",
    "\"period\":\"15d\",\"regime\":null",
];

/// Choices made by bytes; the first option once they are used up.
struct Choices<'a>(&'a [u8]);

impl Choices<'_> {
    fn below(&mut self, bound: usize) -> usize {
        let Some((&first, rest)) = self.0.split_first() else { return 0 };
        self.0 = rest;
        usize::from(first) % bound
    }

    fn of<T: Copy>(&mut self, list: &[T]) -> T {
        list[self.below(list.len())]
    }
}

/// An entry written into a body.
#[derive(Debug)]
struct Entry {
    ticker: &'static str,
    /// The instant and signal of its row, if it is valid.
    row: Option<(i64, &'static str)>,
    /// Whether the entry can be rejected only for its own faults.
    is_alone: bool,
}

/// A body being written.
struct Writing<'a> {
    choices: Choices<'a>,
    /// The tickers that have a history.
    seen: BTreeSet<&'static str>,
    /// Every entry by its number.
    entries: BTreeMap<u32, Entry>,
}

impl Writing<'_> {
    /// Numbers have the same length, so none is part of another.
    const FIRST: u32 = 7_000_000;

    fn history(&mut self) -> String {
        let (key, ticker) = self.choices.of(&KEYS);
        let (name, other) = self.choices.of(&[("predictions", "items"), ("items", "predictions")]);
        let flaw = self.choices.below(3 * FLAWS.len());
        let members = FLAWS.get(flaw).copied().unwrap_or("\"period\":\"15d\",\"regime\":\"bull\"");
        let layout = self.choices.below(4);
        // Invalid JSON in the repeated list rejects the whole history, and so does an earlier history of the ticker.
        let is_first = self.seen.insert(ticker);
        let entries = self.list(ticker, flaw >= FLAWS.len() && layout != 2 && is_first);
        let head = format!("\"ticker\":\"{ticker}\",{members}");
        let list = format!("\"{name}\":[{entries}]");
        let value = match layout {
            0 => format!("{{{list},{head}}}"),
            1 => format!("{{ {head} ,\n {list} }}"),
            // The second list is rejected with all its entries.
            2 => format!("{{{head},{list},\"{other}\":[{}]}}", self.list(ticker, false)),
            _ => format!("{{{head},{list}}}"),
        };
        format!("\"{key}\":{value}")
    }

    /// Entries of one list; an entry is alone if no other in the list has its instant.
    fn list(&mut self, ticker: &'static str, is_good: bool) -> String {
        let first = self.entries.len();
        let count = self.choices.below(12);
        let texts: Vec<String> = (0..count).map(|_| self.entry(ticker)).collect();
        let instants: Vec<i64> = self.entries.values().skip(first).filter_map(|one| Some(one.row?.0)).collect();
        for entry in self.entries.values_mut().skip(first) {
            let is_once = |instant| instants.iter().filter(|other| **other == instant).count() == 1;
            entry.is_alone = is_good && entry.row.is_some_and(|(instant, _)| is_once(instant));
        }
        texts.join(self.choices.of(&[",", ", ", " ,\n"]))
    }

    fn entry(&mut self, ticker: &'static str) -> String {
        let number = Self::FIRST + self.entries.len() as u32;
        let (date, instant) = self.choices.of(&DATES);
        let (signal, is) = self.choices.of(&SIGNALS);
        let (beside, is_typed) = if self.choices.below(3) > 0 { BESIDE[0] } else { self.choices.of(&BESIDE) };
        let (confidence, is_number) = match self.choices.below(12) {
            0 => (format!("\"{number}\""), true),
            1 => (format!("0{number}"), false),
            2 => (format!("{number}.0"), true),
            3 => (format!("{number}e0"), true),
            _ => (number.to_string(), true),
        };
        let micros = |text: &str| text.parse::<NaiveDateTime>().expect("an instant").and_utc().timestamp_micros();
        let row = instant.map(micros).zip(is).filter(|_| is_typed && is_number);
        self.entries.insert(number, Entry { ticker, row, is_alone: false });
        match self.choices.below(6) {
            0 => format!("{{{beside}\"confidence\":{confidence},\"signal\":{signal},\"date\":{date}}}"),
            1 => format!("{{ \"date\" : {date} , {beside}\n\"signal\": {signal}, \"confidence\": {confidence} }}"),
            _ => format!("{{\"date\":{date},\"signal\":{signal},{beside}\"confidence\":{confidence}}}"),
        }
    }
}

/// Every entry of a body is in one row or in one rejected record, and no truncated body is accepted.
pub fn conserve(data: &[u8]) {
    let mut writing = Writing { choices: Choices(data), seen: BTreeSet::new(), entries: BTreeMap::new() };
    let endpoint = writing.choices.of(&[
        Endpoint::SignalsHistoryAll,
        Endpoint::SignalsHistoryBatchedAll,
        Endpoint::SignalsHistoryBatched,
        Endpoint::LegacyHistoryAll,
        Endpoint::LegacyHistoryBatched,
    ]);
    let (portion, cut) = (writing.choices.below(256) + 1, writing.choices.below(256));
    let count = writing.choices.below(7);
    let histories: Vec<String> = (0..count).map(|_| writing.history()).collect();
    let body = format!("{{{}}}", histories.join(","));
    let request =
        Request { endpoint, ticker: None, sector: None, period: "15d".parse().ok(), regime: "bull".parse().ok() };
    let answer = Answer { request: &request, rules: &Rules { keep_extra: portion % 2 == 0, ..Rules::default() } };
    let cut = cut * body.len() / 256;
    assert!(read(&answer, &body.as_bytes()[..cut], portion).is_err(), "cut at byte {cut}: {body}");
    let found = read(&answer, body.as_bytes(), portion).unwrap_or_else(|fault| panic!("{fault}: {body}"));
    found.accounts_for(&writing.entries, &body);
}

/// The decoded contents of a body.
#[derive(Debug, Default)]
struct Found {
    /// Ticker, number, instant and signal of each row.
    rows: Vec<(String, u32, i64, String)>,
    rejects: Vec<Reject>,
    records: u64,
    rejected: u64,
}

fn read(answer: &Answer<'_>, body: &[u8], portion: usize) -> Result<Found, String> {
    let mut found = Found::default();
    let decoded = answer.decode(BufReader::with_capacity(portion, body), |decoded| {
        for part in decoded.parts {
            let AnswerPart::Series(series) = part else { panic!("an answer with histories lists no tickers") };
            let dates = series.rows.column(0).as_primitive::<TimestampMicrosecondType>();
            let signals = series.rows.column(2).as_dictionary::<Int8Type>();
            let confidences = series.rows.column(3).as_primitive::<Float64Type>();
            for row in 0..series.rows.num_rows() {
                let signal = signals.values().as_string::<i32>().value(signals.keys().value(row) as usize);
                let number = confidences.value(row) as u32;
                found.rows.push((series.key.ticker.to_string(), number, dates.value(row), signal.to_owned()));
            }
        }
        found.rejects.extend(decoded.rejects);
        found.records += decoded.records;
        found.rejected += decoded.rejected;
        Ok::<(), Infallible>(())
    });
    match decoded {
        Ok(()) => Ok(found),
        Err(DecodeFault::Malformed { offset, reason }) => Err(format!("{reason} at byte {offset}")),
        Err(fault) => panic!("reading a slice cannot fail: {fault:?}"),
    }
}

impl Found {
    fn accounts_for(&self, entries: &BTreeMap<u32, Entry>, body: &str) {
        // A reject counts all of its records, and at least one.
        let has_no_entry = |reject: &&Reject| entries.keys().all(|number| !reject.raw.contains(&number.to_string()));
        let empty = self.rejects.iter().filter(has_no_entry).count();
        assert_eq!(self.records, (entries.len() + empty) as u64, "each is counted: {body}");
        assert_eq!(self.records, self.rows.len() as u64 + self.rejected, "{body}");
        let numbers: BTreeSet<u32> = self.rows.iter().map(|(_, number, ..)| *number).collect();
        assert_eq!(numbers.len(), self.rows.len(), "in two rows: {self:?}: {body}");
        for (ticker, number, instant, signal) in &self.rows {
            let entry = entries.get(number).unwrap_or_else(|| panic!("{number} was never written: {body}"));
            assert_eq!((entry.ticker, entry.row), (ticker.as_str(), Some((*instant, signal.as_str()))), "{body}");
        }
        for (number, entry) in entries {
            let text = number.to_string();
            let rejected = self.rejects.iter().filter(|reject| reject.raw.contains(&text)).count();
            let is_row = numbers.contains(number);
            assert_eq!(usize::from(is_row) + rejected, 1, "{number} is lost or decoded twice: {self:?}: {body}");
            assert!(is_row || !entry.is_alone, "{number} is rejected without a reason: {self:?}: {body}");
        }
    }
}
