//! The fold against a replay of the observations of each cell, one after the other.

use std::sync::Arc;

use arrow::array::{
    Array, ArrayRef, AsArray, Float64Array, Int16Array, Int32Array, RecordBatch, StringArray,
    TimestampMicrosecondArray, new_null_array,
};
use arrow::datatypes::{Float64Type, Int16Type, Int32Type, TimestampMicrosecondType};
use chrono::DateTime;

use super::cells::{Cells, Revision};
use crate::interface::Endpoint;
use crate::plan::Vintage;
use crate::tables::{Change, Changes, SeriesKey, Table};

const TITLES: [&str; 2] = ["one", "two"];

/// Date and title of an article.
type Cell = (i64, usize);

/// What an answer says of an article. Without an offset, it says nothing of it.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Value {
    score: Option<f64>,
    offset: Option<i16>,
    place: i32,
}

/// An article as it was observed at an instant, unless it was gone.
#[derive(Clone, Copy, Debug)]
struct Observation {
    cell: Cell,
    at: i64,
    value: Option<Value>,
}

impl Observation {
    fn changes(&self) -> Changes {
        let schema = Table::Articles.open_row_schema();
        let column = |name: &str| -> ArrayRef {
            match name {
                "date" => Arc::new(TimestampMicrosecondArray::from(vec![self.cell.0])),
                "title" => Arc::new(StringArray::from(vec![TITLES[self.cell.1]])),
                "link" => Arc::new(StringArray::from(vec!["link"])),
                "copy" => Arc::new(Int32Array::from(vec![0])),
                "place" => Arc::new(Int32Array::from(vec![self.value.map(|value| value.place)])),
                "score" => Arc::new(Float64Array::from(vec![self.value.and_then(|value| value.score)])),
                "utc_offset_minutes" => Arc::new(Int16Array::from(vec![self.value.and_then(|value| value.offset)])),
                "repeats" => Arc::new(Int32Array::from(vec![self.value.map(|_| 0)])),
                name => new_null_array(schema.field_with_name(name).unwrap().data_type(), 1),
            }
        };
        let columns = schema.fields().iter().map(|field| column(field.name())).collect();
        Changes {
            key: SeriesKey::of_ticker(Endpoint::NewsArticles, "A".parse().unwrap()),
            source: Endpoint::NewsArticles,
            observed_at: DateTime::from_timestamp_micros(self.at).unwrap(),
            sealed_at: DateTime::UNIX_EPOCH,
            kinds: vec![if self.value.is_some() { Change::Added } else { Change::Withdrawn }],
            rows: RecordBatch::try_new(Arc::clone(&schema), columns).unwrap(),
        }
    }
}

/// Observations as a run stores them, in the columns that are folded.
fn batch(observations: &[Observation]) -> RecordBatch {
    let rows = Table::Articles.batch(&observations.iter().map(Observation::changes).collect::<Vec<_>>()).unwrap();
    let columns: Vec<usize> = (0..Table::Articles.schema().fields().len()).collect();
    rows.project(&columns).unwrap()
}

fn is_same_offset(one: Value, other: Value) -> bool {
    one.offset == other.offset || one.offset.is_none() || other.offset.is_none()
}

/// Whether nothing but the place differs.
fn is_same_content(one: Option<Value>, other: Option<Value>) -> bool {
    match (one, other) {
        (Some(one), Some(other)) => one.score == other.score && is_same_offset(one, other),
        _ => one.is_none() && other.is_none(),
    }
}

/// The values of a cell over time, each with its instant; none while it is gone. An observation without an offset leaves
/// the known one as it is.
fn replay(observations: &[Observation], cell: Cell, as_of: i64) -> Vec<(i64, Option<Value>)> {
    let mut values: Vec<(i64, Option<Value>)> = Vec::new();
    for seen in observations.iter().filter(|seen| seen.cell == cell && seen.at <= as_of) {
        let before = values.last().and_then(|(_, value)| *value);
        let has_same_place = before.map(|value| value.place) == seen.value.map(|value| value.place);
        if is_same_content(before, seen.value) && has_same_place {
            continue;
        }
        let offset = before.and_then(|before| before.offset);
        values.push((seen.at, seen.value.map(|value| Value { offset: value.offset.or(offset), ..value })));
    }
    values
}

/// The articles in some rows.
fn articles(rows: &RecordBatch) -> Vec<(Cell, Value)> {
    let column = |name: &str| rows.column_by_name(name).unwrap();
    let (dates, titles) =
        (column("date").as_primitive::<TimestampMicrosecondType>(), column("title").as_string::<i32>());
    let scores = column("score").as_primitive::<Float64Type>();
    let offsets = column("utc_offset_minutes").as_primitive::<Int16Type>();
    let places = column("place").as_primitive::<Int32Type>();
    let article = |row: usize| {
        let title = TITLES.iter().position(|title| *title == titles.value(row)).unwrap();
        let score = scores.is_valid(row).then(|| scores.value(row));
        let offset = offsets.is_valid(row).then(|| offsets.value(row));
        ((dates.value(row), title), Value { score, offset, place: places.value(row) })
    };
    (0..rows.num_rows()).map(article).collect()
}

/// What a fold must give for each cell: value, when it was first seen and last revised, and the number of revisions.
fn oracle(
    observations: &[Observation],
    cells: &[Cell],
    as_of: i64,
    (revision, vintage): (Revision, Vintage),
) -> Vec<(Cell, Value, i64, i64, i32)> {
    let mut expected = Vec::new();
    for &cell in cells {
        let values = replay(observations, cell, as_of);
        let (Some(&(first, original)), Some(&(_, latest))) = (values.first(), values.last()) else { continue };
        let counts =
            |pair: &&[(i64, Option<Value>)]| revision == Revision::OfValue || !is_same_content(pair[0].1, pair[1].1);
        let revised: Vec<i64> = values.windows(2).filter(counts).map(|pair| pair[1].0).collect();
        let revisions = revised.len() as i32;
        match vintage {
            Vintage::First => expected.push((cell, original.unwrap(), first, first, revisions)),
            Vintage::Latest => {
                let revised = revised.last().copied().unwrap_or(first);
                expected.extend(latest.map(|latest| (cell, latest, first, revised, revisions)));
            }
        }
    }
    expected
}

#[test]
fn the_known_state_and_the_values_over_time_are_those_of_a_replay() {
    let mut state = 3_u64;
    let mut random = |below: u64| {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (state >> 33) % below
    };
    for round in 0..150 {
        let cells: Vec<Cell> = (0..3).flat_map(|date| (0..2).map(move |title| (date, title))).collect();
        let mut observations = Vec::new();
        for &cell in &cells {
            let mut at = random(3) as i64;
            for _ in 0..random(6) {
                let score = (random(4) > 0).then(|| random(2) as f64 / 2.0);
                let offset = (random(2) > 0).then(|| random(2) as i16 * 60);
                let value = Value { score, offset, place: random(2) as i32 };
                observations.push(Observation { cell, at, value: (random(4) > 0).then_some(value) });
                at += 1 + random(3) as i64;
            }
        }
        // Each run has its rows in order.
        let mut runs: Vec<Vec<Observation>> = vec![Vec::new(); 1 + random(4) as usize];
        for observation in &observations {
            let run = random(runs.len() as u64) as usize;
            runs[run].push(*observation);
        }
        let batches: Vec<RecordBatch> = runs.iter().map(|run| batch(run)).collect();
        let folded = Cells::of(Table::Articles, &batches).unwrap();
        for as_of in (0..20).chain([i64::MAX]) {
            for revision in [Revision::OfValue, Revision::OfContent] {
                for vintage in [Vintage::First, Vintage::Latest] {
                    let known = folded.known_rows(as_of, revision, vintage).unwrap();
                    let instants =
                        |name: &str| known.column_by_name(name).unwrap().as_primitive::<TimestampMicrosecondType>();
                    let (first, seen) = (instants("first_observed_at"), instants("observed_at"));
                    let revisions = known.column_by_name("revisions").unwrap().as_primitive::<Int32Type>();
                    let found: Vec<_> = articles(&known)
                        .into_iter()
                        .enumerate()
                        .map(|(row, (cell, value))| {
                            (cell, value, first.value(row), seen.value(row), revisions.value(row))
                        })
                        .collect();
                    let expected = oracle(&observations, &cells, as_of, (revision, vintage));
                    assert_eq!(found, expected, "round {round} as of {as_of}, {revision:?}, {vintage:?}: {runs:?}");
                }
            }
            let spans = folded.spans(as_of);
            let values = articles(&spans.rows.of(&folded.rows).unwrap());
            let found: Vec<_> = values.into_iter().zip(spans.from).zip(spans.until).collect();
            let mut expected = Vec::new();
            for &cell in &cells {
                let values = replay(&observations, cell, as_of);
                for (index, &(from, value)) in values.iter().enumerate() {
                    let until = values.get(index + 1).map(|(until, _)| *until);
                    expected.extend(value.map(|value| (((cell, value), from), until)));
                }
            }
            assert_eq!(found, expected, "round {round} as of {as_of}: {runs:?}");
        }
    }
}
