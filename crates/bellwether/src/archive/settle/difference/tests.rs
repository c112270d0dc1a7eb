//! Differences of random answers against a comparison date by date.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use arrow::array::{
    Array, ArrayRef, AsArray, Float64Array, Int16Array, Int32Array, RecordBatch, StringArray, TimestampMicrosecondArray,
};
use arrow::compute::cast;
use arrow::datatypes::{DataType, Float64Type, Int16Type, Int32Type, TimestampMicrosecondType};

use super::{apply, continue_places, difference};
use crate::archive::coverage::{Coverage, Extent};
use crate::interface::Endpoint;
use crate::tables::{Change, Table, choices};

/// What an answer says on a date. Without an offset it says nothing of it, and without unknown fields they may not have
/// been kept.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Value {
    offset: Option<i16>,
    signal: &'static str,
    confidence: f64,
    extra: Option<&'static str>,
}

impl Value {
    fn is_repeated_by(self, answered: Self) -> bool {
        (self.offset == answered.offset || self.offset.is_none() || answered.offset.is_none())
            && (self.signal, self.confidence) == (answered.signal, answered.confidence)
            && (answered.extra.is_none() || answered.extra == self.extra)
    }

    /// An answer after this value.
    fn revised_by(self, answered: Self) -> Self {
        Self { offset: answered.offset.or(self.offset), ..answered }
    }
}

type History = BTreeMap<i64, Value>;

fn rows(history: &History, spellings: [&'static str; 2]) -> RecordBatch {
    let values = || history.values();
    let code = |value: &Value| spellings.iter().position(|spelling| *spelling == value.signal).unwrap() as i8;
    let columns: [(&str, ArrayRef); 5] = [
        ("date", Arc::new(TimestampMicrosecondArray::from_iter_values(history.keys().copied()))),
        ("utc_offset_minutes", Arc::new(values().map(|value| value.offset).collect::<Int16Array>())),
        ("signal", choices(values().map(code).collect::<Vec<i8>>().into(), spellings)),
        ("confidence", Arc::new(values().map(|value| value.confidence).collect::<Float64Array>())),
        ("extra", Arc::new(values().map(|value| value.extra).collect::<StringArray>())),
    ];
    Table::Signals.list(&columns).unwrap()
}

/// The dates and values of rows; no value if a row withdraws its date.
fn read(rows: &RecordBatch) -> Vec<(i64, Option<Value>)> {
    let dates = rows.column(0).as_primitive::<TimestampMicrosecondType>();
    let offsets = rows.column(1).as_primitive::<Int16Type>();
    let signals = cast(rows.column(2), &DataType::Utf8).unwrap();
    let signals = signals.as_string::<i32>();
    let confidences = rows.column(3).as_primitive::<Float64Type>();
    let extras = rows.column(4).as_string::<i32>();
    let row = |row: usize| {
        let value = || Value {
            offset: offsets.is_valid(row).then(|| offsets.value(row)),
            signal: if signals.value(row) == "buy" { "buy" } else { "sell" },
            confidence: confidences.value(row),
            extra: extras.is_valid(row).then(|| if extras.value(row) == "{}" { "{}" } else { "{\"a\":1}" }),
        };
        (dates.value(row), confidences.is_valid(row).then(value))
    };
    (0..rows.num_rows()).map(row).collect()
}

#[test]
fn a_difference_has_each_date_that_changed_and_leads_to_what_was_answered() {
    let mut state = 17_u64;
    let mut random = |below: u64| {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (state >> 33) % below
    };
    let (mut unchanged, mut appended) = (0, 0);
    for round in 0..4_000 {
        // Columns are often empty as a whole, or full.
        let shares = [random(3), random(3), random(3), random(3)];
        let mut value = |offsets: u64, extras: u64| Value {
            offset: (random(2) < offsets).then(|| random(2) as i16 * 60),
            signal: ["buy", "sell"][random(2) as usize],
            confidence: random(2) as f64 / 2.0,
            extra: (random(2) < extras).then(|| ["{}", "{\"a\":1}"][random(2) as usize]),
        };
        let known: History = (0..8).map(|date| (date, value(shares[0], shares[1]))).collect();
        let mut answered: History = (0..10).map(|date| (date, value(shares[2], shares[3]))).collect();
        // Most answers repeat most of what is known, in their own columns, and add some dates.
        let (first, end) = (random(9) as i64, random(11) as i64);
        let changed = random(4) * random(3);
        let known: History = known.into_iter().filter(|_| random(6) > 0).collect();
        for (date, value) in &mut answered {
            if let Some(known) = known.get(date)
                && random(12) >= changed
            {
                (value.signal, value.confidence) = (known.signal, known.confidence);
                value.offset = value.offset.and(known.offset.or(value.offset));
                value.extra = value.extra.and(known.extra);
            }
        }
        answered.retain(|date, _| (first..end).contains(date) && (known.contains_key(date) || *date > 7));

        let spellings = [["buy", "sell"], ["sell", "buy"]];
        let (before, now) =
            (rows(&known, spellings[random(2) as usize]), rows(&answered, spellings[random(2) as usize]));
        let oldest = answered.keys().next().copied();
        let covers = oldest.map_or(Coverage::Nothing, |oldest| {
            Coverage::from(Endpoint::SignalsHistoryAll, oldest, Extent::FromOldest)
        });
        let mut expected: Vec<(Change, i64, Option<Value>)> = Vec::new();
        let mut after = known.clone();
        for date in known.keys().chain(answered.keys()).copied().collect::<BTreeSet<i64>>() {
            match (known.get(&date), answered.get(&date)) {
                (Some(known), Some(answered)) if !known.is_repeated_by(*answered) => {
                    let revised = known.revised_by(*answered);
                    after.insert(date, revised);
                    expected.push((Change::Revised, date, Some(revised)));
                }
                (None, Some(answered)) => {
                    after.insert(date, *answered);
                    expected.push((Change::Added, date, Some(*answered)));
                }
                (Some(_), None) if oldest.is_some_and(|oldest| date >= oldest) => {
                    after.remove(&date);
                    expected.push((Change::Withdrawn, date, None));
                }
                _ => {}
            }
        }
        let about = format!("round {round}: {known:?}, {answered:?}");
        match difference(Table::Signals, &before, &now, covers).unwrap() {
            None => {
                assert_eq!(expected, [], "{about}");
                unchanged += 1;
            }
            Some(found) => {
                let changes = found.0.iter().copied().zip(read(&found.1));
                let changes: Vec<_> = changes.map(|(kind, (date, value))| (kind, date, value)).collect();
                assert_eq!(changes, expected, "{about}");
                let state = read(&apply(Table::Signals, &before, &found).unwrap());
                let after: Vec<_> = after.into_iter().map(|(date, value)| (date, Some(value))).collect();
                assert_eq!(state, after, "{about}");
                appended += usize::from(found.0.iter().all(|kind| *kind == Change::Added));
            }
        }
    }
    assert!(unchanged > 200 && appended > 200, "{unchanged} unchanged, {appended} with new dates alone");
}

/// Articles with their date, title, copy, place (none if withdrawn), and when they were observed.
fn articles(articles: &[(i64, &str, i32, Option<i32>, i64)]) -> RecordBatch {
    let each = || articles.iter();
    let columns: [(&str, ArrayRef); 6] = [
        ("date", Arc::new(TimestampMicrosecondArray::from_iter_values(each().map(|article| article.0)))),
        ("title", Arc::new(StringArray::from_iter_values(each().map(|article| article.1)))),
        ("link", Arc::new(StringArray::from_iter_values(each().map(|_| "link")))),
        ("copy", Arc::new(Int32Array::from_iter_values(each().map(|article| article.2)))),
        ("place", Arc::new(each().map(|article| article.3).collect::<Int32Array>())),
        (
            "observed_at",
            Arc::new(TimestampMicrosecondArray::from_iter_values(each().map(|article| article.4)).with_timezone("UTC")),
        ),
    ];
    RecordBatch::try_from_iter_with_nullable(columns.map(|(name, column)| (name, column, name == "place"))).unwrap()
}

#[test]
fn a_list_that_begins_within_a_date_continues_the_places_of_that_date() {
    let ever = [(10, "a", 0, Some(0), 1), (10, "b", 0, Some(1), 1), (10, "c", 0, Some(2), 3), (11, "x", 0, Some(9), 1)];
    let answer = |places: &[(i64, &'static str, i32, i32)]| -> Vec<(i64, &'static str, i32, Option<i32>, i64)> {
        places.iter().map(|&(date, title, copy, place)| (date, title, copy, Some(place), 5)).collect()
    };
    let all = |from| Coverage::Dates { from, until: i64::MAX };
    for (about, observed, answered, covers, as_of, expected) in [
        ("nothing was observed", &[][..], answer(&[(10, "b", 0, 0), (11, "x", 0, 0)]), all(10), 5, &[0, 0][..]),
        ("all are listed", &ever, answer(&[(10, "a", 0, 0), (10, "b", 0, 1), (10, "c", 0, 2)]), all(10), 5, &[0, 1, 2]),
        (
            "`a` was cut off",
            &ever,
            answer(&[(10, "b", 0, 0), (10, "c", 0, 1), (11, "x", 0, 0)]),
            all(10),
            5,
            &[1, 2, 0],
        ),
        ("all before were cut off", &ever, answer(&[(10, "d", 0, 0), (11, "x", 0, 0)]), all(10), 5, &[3, 0]),
        ("`b` is gone from within", &ever, answer(&[(10, "d", 0, 0), (10, "c", 0, 1)]), all(10), 5, &[2, 3]),
        ("`c` was not observed by then", &ever, answer(&[(10, "d", 0, 0), (10, "e", 0, 1)]), all(10), 2, &[2, 3]),
        ("it is higher than ever", &ever[..1], answer(&[(10, "d", 0, 0), (10, "a", 0, 1)]), all(10), 5, &[0, 1]),
        ("the date is covered whole", &ever, answer(&[(10, "d", 0, 0)]), all(9), 5, &[0]),
        ("nothing is covered", &ever, answer(&[(10, "d", 0, 0)]), Coverage::Nothing, 5, &[0]),
        (
            "a copy is another article, and a withdrawal has no place",
            &[(10, "a", 0, Some(0), 1), (10, "a", 1, Some(1), 1), (10, "z", 0, None, 1)],
            answer(&[(10, "a", 0, 0)]),
            all(10),
            5,
            &[2],
        ),
        (
            "the highest place that it ever had counts",
            &[(10, "a", 0, Some(4), 1), (10, "a", 0, Some(1), 2)],
            answer(&[(10, "a", 0, 0), (10, "b", 0, 1)]),
            all(10),
            5,
            &[4, 5],
        ),
    ] {
        let found = continue_places(articles(&answered), covers, (&articles(observed), as_of)).unwrap();
        assert_eq!(found.column(4).as_primitive::<Int32Type>().values(), expected, "{about}");
        assert_eq!(found.column(1), articles(&answered).column(1), "{about}");
    }
}
