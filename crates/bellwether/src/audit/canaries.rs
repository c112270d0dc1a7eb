//! Canaries: news with impossible values, sealed into a copy of an archive like any answer.

use std::cmp::Reverse;
use std::collections::BTreeSet;
use std::path::Path;
use std::sync::Arc;

use arrow::array::{
    ArrayRef, AsArray, Float64Array, Int16Array, Int32Array, RecordBatch, StringArray, TimestampMicrosecondArray,
    UInt32Array,
};
use arrow::compute::{concat, take_record_batch};
use arrow::error::ArrowError;
use chrono::{DateTime, FixedOffset, Utc};

use super::subject::instant_of;
use crate::archive::{Interrupted, NewRun, Unfinished, View};
use crate::dataset::join_failed;
use crate::error::Result;
use crate::interface::{Endpoint, Ticker};
use crate::plan::{Column, Vintage};
use crate::tables::dates::Date;
use crate::tables::{Conventions, RequestRecord, Series, SeriesKey, Slab, Table, TypedRows};

/// Scores of canaries, which no vendor gives. The pair moves both minimum and maximum.
const VALUES: [f64; 2] = [1.0e12, -2.0e12];

/// The canaries to plant.
pub(super) struct Canaries {
    pub(super) tickers: BTreeSet<Ticker>,
    /// Dates: an article each, and a record each if there are fields.
    pub(super) dates: Vec<Date>,
    /// Fields of historical sentiment to fill as well.
    pub(super) fields: Vec<String>,
    pub(super) observed_at: DateTime<Utc>,
}

impl Canaries {
    /// Seals a run whose answers list each ticker's canaries followed by all known news, since an answer withdraws what
    /// it leaves out.
    pub(super) fn seal(&self, archive: &Path, known: &View) -> Result<()> {
        let now = self.observed_at;
        let (interrupted, stop) = (Interrupted::Leave, known.archive().stop());
        let last = known.archive().runs().last().expect("an archive with news has a run");
        let service = &last.seal().service;
        let conventions = &Conventions::default();
        let beginning = NewRun { definition: "canaries", text: "", service, conventions, now, interrupted, stop };
        let unfinished = Unfinished::begin(archive, beginning)?;
        self.answer_all(&unfinished, known, Endpoint::NewsArticles, &self.articles())?;
        if !self.fields.is_empty() {
            self.answer_all(&unfinished, known, Endpoint::HistoricalSentiment, &self.records())?;
        }
        unfinished.seal(&[], || Ok(now), |_| Ok(true)).map(drop)
    }

    /// Answers an operation for every ticker.
    fn answer_all(
        &self,
        run: &Unfinished,
        known: &View,
        endpoint: Endpoint,
        columns: &[(&str, ArrayRef)],
    ) -> Result<()> {
        let table = Table::of(endpoint).expect("these operations have tables");
        let canaries = table.list(columns).map_err(join_failed)?;
        let mut unknown = self.tickers.clone();
        for cells in known.cells(table, Vintage::Latest)? {
            for (ticker, known) in by_ticker(&cells?) {
                if unknown.remove(&ticker) {
                    self.answer(run, ticker, endpoint, list_with_canaries(&canaries, &known).map_err(join_failed)?)?;
                }
            }
        }
        unknown.into_iter().try_for_each(|ticker| self.answer(run, ticker, endpoint, canaries.clone()))
    }

    fn answer(&self, run: &Unfinished, ticker: Ticker, endpoint: Endpoint, rows: RecordBatch) -> Result<()> {
        let request = format!("{endpoint}/{ticker}");
        let mut draft = run.draft();
        draft.add_series(Series { key: SeriesKey::of_ticker(endpoint, ticker), rows })?;
        let (rows, rejects) = draft.counts();
        let record = RequestRecord {
            endpoint,
            request,
            status: 200,
            attempts: 1,
            bytes: 0,
            digest: String::new(),
            rows,
            rejects,
            validator: None,
            unknown_fields: Vec::new(),
            observed_at: self.observed_at,
        };
        run.commit(draft, record).map(drop)
    }

    /// The dates of the canaries, each with its number and its score.
    fn numbered(&self) -> impl Iterator<Item = (usize, &Date, f64)> {
        self.dates.iter().enumerate().map(|(number, date)| (number, date, VALUES[number % VALUES.len()]))
    }

    fn articles(&self) -> [(&'static str, ArrayRef); 6] {
        let titles = StringArray::from_iter_values(self.numbered().map(|(number, ..)| format!("canary {number}")));
        let scores = Float64Array::from_iter_values(self.numbered().map(|(.., score)| score));
        let offsets: Int16Array = self.dates.iter().map(|date| date.offset_minutes).collect();
        let dates = TimestampMicrosecondArray::from_iter_values(self.dates.iter().map(|date| date.micros));
        [
            ("position", positions(self.dates.len())),
            ("date", Arc::new(dates)),
            ("title", Arc::new(titles)),
            ("score", Arc::new(scores)),
            ("link", Arc::new(StringArray::from(vec!["https://canary.invalid"; self.dates.len()]))),
            ("utc_offset_minutes", Arc::new(offsets)),
        ]
    }

    fn records(&self) -> [(&'static str, ArrayRef); 2] {
        let records = self.numbered().map(|(_, date, score)| {
            let fields = self.fields.iter().map(|field| (field.clone(), score.into()));
            let date = [("date".to_owned(), vendor_date(*date).into())];
            serde_json::Value::Object(fields.chain(date).collect()).to_string()
        });
        let records = StringArray::from_iter_values(records);
        [("position", positions(self.dates.len())), ("record", Arc::new(records))]
    }
}

fn positions(count: usize) -> ArrayRef {
    Arc::new(Int32Array::from_iter_values(0..count as i32))
}

/// The rows of each ticker; tickers are contiguous.
fn by_ticker(cells: &RecordBatch) -> impl Iterator<Item = (Ticker, RecordBatch)> {
    let tickers = TypedRows(cells).symbols(Column::Ticker.name());
    let names = tickers.values().as_string::<i32>();
    let keys = tickers.keys().values();
    let mut start = 0;
    keys.chunk_by(|&one, &other| names.value(one as usize) == names.value(other as usize)).filter_map(move |alike| {
        let rows = cells.slice(start, alike.len());
        start += alike.len();
        Some((names.value(*alike.first()? as usize).parse().ok()?, rows))
    })
}

/// The list of an answer: the canaries, then the ticker's known cells, latest known first.
fn list_with_canaries(planted: &RecordBatch, known: &RecordBatch) -> Result<RecordBatch, ArrowError> {
    let places = TypedRows(known).whole("place").values();
    let mut order: Vec<u32> = (0..known.num_rows() as u32).collect();
    order.sort_by_key(|&row| Reverse(places[row as usize]));
    let known = take_record_batch(known, &UInt32Array::from(order))?;
    let mut columns = Vec::new();
    for (field, planted) in planted.schema().fields().iter().zip(planted.columns()) {
        columns.push(match known.column_by_name(field.name()) {
            Some(known) => concat(&[planted.as_ref(), known.as_ref()])?,
            // Cells have no positions: they are renumbered.
            None => positions(planted.len() + known.num_rows()),
        });
    }
    RecordBatch::try_new(planted.schema(), columns)
}

/// A date in the vendor's notation.
fn vendor_date(Date { micros, offset_minutes }: Date) -> String {
    let instant = instant_of(micros);
    match offset_minutes.and_then(|minutes| FixedOffset::east_opt(i32::from(minutes) * 60)) {
        Some(offset) => instant.with_timezone(&offset).to_rfc3339(),
        None => instant.date_naive().to_string(),
    }
}

/// Whether a slab contains a canary article.
pub(super) fn is_planted(slab: &Slab) -> Result<bool> {
    for articles in slab.articles.pieces()? {
        if TypedRows(&articles?).reals("score").iter().flatten().any(|score| VALUES.contains(&score)) {
            return Ok(true);
        }
    }
    Ok(false)
}
