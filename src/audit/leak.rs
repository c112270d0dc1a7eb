//! Does anything of the future reach a row of the past? Asked by trying, not by reading the code.
//!
//! Three trials, each against the dataset as it is built from the whole archive:
//!
//! - *dates*: everything that is dated on or after a day is taken away before the dataset is built; the rows of the days
//!   before must be what they were.
//! - *instants*: the runs that were sealed after an instant are taken out of a copy of the archive; the dataset as of
//!   that instant must be the same from both.
//! - *canaries*: articles with an impossible score, dated on a day and observed now, are sealed into a copy of the
//!   archive, on the way that every answer takes. As of the instant before, nothing may have changed; as of now, no row
//!   of the days before may have. And to show that the trial could fail, some later row must have.

use std::fs;
use std::path::Path;
use std::sync::Arc;

use arrow::array::{
    ArrayRef, AsArray, BooleanArray, Float64Array, Int32Array, RecordBatch, StringArray, TimestampMicrosecondArray,
};
use arrow::compute::filter_record_batch;
use arrow::datatypes::TimestampMicrosecondType;
use arrow::error::ArrowError;
use arrow::row::{RowConverter, SortField};
use blake3::Hasher;
use chrono::{DateTime, NaiveDate, NaiveTime, TimeDelta, Utc};

use crate::archive::{Archive, Asked, Beginning, Interrupted, Scope, SealedRun, Unfinished, View, copy};
use crate::dataset;
use crate::error::{Error, Result};
use crate::interface::{Endpoint, Ticker};
use crate::plan::{Availability, Column, DatasetPlan};
use crate::tables::{RequestRecord, Series, SeriesKey, Slab, Table};

/// The score of a canary: no vendor gives it.
const CANARY: f64 = 1.0e12;

/// How many days and instants are tried.
const CUTS: usize = 4;

/// What a trial found.
#[derive(Clone, Debug)]
pub struct Trial {
    /// What was tried, in words.
    pub what: String,
    /// The rows that were compared.
    pub rows: u64,
    /// Whether they were what they should be.
    pub is_sound: bool,
}

/// What was tried, and what came of it.
#[derive(Clone, Debug, Default)]
pub struct Leak {
    /// Every trial.
    pub trials: Vec<Trial>,
}

/// Tries to make the future reach the past of a dataset. Copies are made in a folder, which is removed again.
///
/// # Errors
///
/// When the archive cannot be read or a copy cannot be written.
pub fn leak(archive: &Archive, scope: &Scope, plan: &DatasetPlan, scratch: &Path) -> Result<Leak> {
    let work = Work { scope, plan, scratch };
    let outcome = work.leak(archive);
    let _ = fs::remove_dir_all(scratch);
    outcome
}

struct Work<'a> {
    scope: &'a Scope,
    plan: &'a DatasetPlan,
    scratch: &'a Path,
}

/// The number and the digest of some rows.
type Rows = (u64, [u8; 32]);

impl Work<'_> {
    fn leak(&self, archive: &Archive) -> Result<Leak> {
        let now = archive.runs().iter().map(|run| run.seal().sealed_at).max().unwrap_or_default();
        let view = View::of(archive.clone(), now);
        let days = self.days(&view)?;
        let mut leak = Leak::default();
        for &day in &days {
            let whole = self.rows(|| self.slabs(&view), Some(day))?;
            let cut = self.rows(|| Ok(self.slabs(&view)?.map(move |slab| before(&slab?, day))), Some(day))?;
            leak.add(format!("dates: nothing dated {day} or later, rows before {day}"), whole, cut);
        }
        for instant in instants(archive) {
            let Some(copy) = self.copy(archive, |run| run.seal().sealed_at <= instant)? else { continue };
            let (whole, cut) = (View::of(archive.clone(), instant), View::of(copy, instant));
            let (whole, cut) = (self.rows(|| self.slabs(&whole), None)?, self.rows(|| self.slabs(&cut), None)?);
            leak.add(format!("instants: without the runs after {instant}, as of then"), whole, cut);
        }
        if !self.plan.features.is_empty() {
            for &day in &days {
                self.plant(archive, &view, day, &mut leak)?;
            }
        }
        Ok(leak)
    }

    /// Some days that cut the dataset into pieces.
    fn days(&self, view: &View) -> Result<Vec<NaiveDate>> {
        let mut days: Vec<NaiveDate> = Vec::new();
        dataset::build(
            || self.slabs(view),
            self.plan,
            self.scratch.join("sort"),
            |rows| {
                let rows = rows.flat().map_err(|error| Error::Join { source: error.into() })?;
                let micros = dates(&rows).values().iter();
                days.extend(micros.filter_map(|&micros| Some(DateTime::from_timestamp_micros(micros)?.date_naive())));
                days.sort_unstable();
                days.dedup();
                Ok(())
            },
        )?;
        let place = |cut: usize| days.get(days.len() * cut / (CUTS + 1)).copied();
        let mut cuts: Vec<NaiveDate> = (1..=CUTS).filter_map(place).collect();
        cuts.dedup();
        Ok(cuts)
    }

    fn plant(&self, archive: &Archive, view: &View, day: NaiveDate, leak: &mut Leak) -> Result<()> {
        let copy = self.copy(archive, |_| true)?.expect("all runs are copied");
        let seen = view.as_of() + TimeDelta::seconds(1);
        let tickers = view.listed(&self.scope.requests)?;
        seal_canaries(copy.path(), tickers.iter(), day, seen)?;
        let planted = Archive::open(copy.path())?;
        let count = tickers.len();
        let whole = self.rows(|| self.slabs(view), None)?;
        let before = View::of(planted.clone(), view.as_of());
        let before = self.rows(|| self.slabs(&before), None)?;
        leak.add(format!("canaries: {count} articles observed later, as of before"), whole, before);
        let after = View::of(planted, seen);
        let past = self.rows(|| self.slabs(view), Some(day))?;
        let reached = self.rows(|| self.slabs(&after), Some(day))?;
        leak.add(format!("canaries: {count} articles dated {day}, rows before {day}"), past, reached);
        // Where features count what had been seen by a signal's date, no row is late enough to see them.
        if self.plan.availability == Availability::Dated {
            let all = self.rows(|| self.slabs(&after), None)?;
            let what = format!("canaries: {count} articles dated {day} are seen in later rows");
            leak.trials.push(Trial { what, rows: all.0, is_sound: all.1 != whole.1 });
        }
        Ok(())
    }

    /// A copy of an archive with some of its runs; none where these cannot be told from others.
    fn copy(&self, archive: &Archive, is_wanted: impl Fn(&SealedRun) -> bool) -> Result<Option<Archive>> {
        let folder = self.scratch.join("archive");
        if folder.exists() {
            fs::remove_dir_all(&folder).map_err(|source| Error::Write { path: folder.clone(), source })?;
        }
        copy(archive, &folder, is_wanted)
    }

    fn slabs(&self, view: &View) -> Result<impl Iterator<Item = Result<Slab>>> {
        let live_within = TimeDelta::days(i64::from(self.plan.live_within.count()));
        view.slabs(self.scope, Asked { vintage: self.plan.vintage, live_within })
    }

    /// The rows of a dataset, or those before a day.
    fn rows<S: Iterator<Item = Result<Slab>>>(
        &self,
        slabs: impl Fn() -> Result<S> + Sync,
        day: Option<NaiveDate>,
    ) -> Result<Rows> {
        let failed = |error: ArrowError| Error::Join { source: error.into() };
        let fields = self.plan.schema.fields().iter().map(|field| SortField::new(field.data_type().clone()));
        let converter = RowConverter::new(fields.collect()).map_err(failed)?;
        let (mut count, mut hasher) = (0, Hasher::new());
        dataset::build(slabs, self.plan, self.scratch.join("sort"), |rows| {
            let rows = rows.flat().map_err(failed)?;
            let rows = match day {
                Some(day) => dated_before(&rows, dates(&rows), day).map_err(failed)?,
                None => rows,
            };
            count += rows.num_rows() as u64;
            for row in &converter.convert_columns(rows.columns()).map_err(failed)? {
                hasher.update(row.as_ref());
            }
            Ok(())
        })?;
        Ok((count, hasher.finalize().into()))
    }
}

impl Leak {
    fn add(&mut self, what: String, one: Rows, other: Rows) {
        self.trials.push(Trial { what, rows: one.0, is_sound: one == other });
    }

    /// Whether nothing leaked.
    pub fn is_sound(&self) -> bool {
        self.trials.iter().all(|trial| trial.is_sound)
    }
}

/// Some instants between runs.
fn instants(archive: &Archive) -> Vec<DateTime<Utc>> {
    let sealed: Vec<_> = archive.runs().iter().map(|run| run.seal().sealed_at).collect();
    let (_, earlier) = sealed.split_last().map_or((None, &[][..]), |(last, earlier)| (Some(last), earlier));
    let step = earlier.len().div_ceil(CUTS).max(1);
    earlier.iter().copied().step_by(step).collect()
}

/// A slab of what is dated before a day.
fn before(slab: &Slab, day: NaiveDate) -> Result<Slab> {
    let failed = |error: ArrowError| Error::Join { source: error.into() };
    let cut = |rows: &RecordBatch| match rows.column_by_name("date") {
        Some(dates) => dated_before(rows, dates.as_primitive(), day),
        None => Ok(rows.clone()),
    };
    let news = slab.news.iter().map(cut).collect::<Result<Vec<_>, _>>().map_err(failed)?;
    let news = news.try_into().expect("there are as many as there were");
    Ok(Slab { signals: cut(&slab.signals).map_err(failed)?, news })
}

fn dated_before(
    rows: &RecordBatch,
    dates: &TimestampMicrosecondArray,
    day: NaiveDate,
) -> Result<RecordBatch, ArrowError> {
    let day = micros(day);
    let is_before: BooleanArray = dates.iter().map(|date| Some(date.is_some_and(|date| date < day))).collect();
    filter_record_batch(rows, &is_before)
}

fn dates(rows: &RecordBatch) -> &TimestampMicrosecondArray {
    let dates = rows.column_by_name(Column::Date.name()).expect("every dataset has dates");
    dates.as_primitive::<TimestampMicrosecondType>()
}

fn micros(day: NaiveDate) -> i64 {
    day.and_time(NaiveTime::MIN).and_utc().timestamp_micros()
}

/// Seals a run whose answers list one article for each ticker: of a day, with an impossible score.
fn seal_canaries<'a>(
    archive: &Path,
    tickers: impl Iterator<Item = &'a Ticker>,
    day: NaiveDate,
    observed_at: DateTime<Utc>,
) -> Result<()> {
    let beginning = Beginning { definition: "canaries", text: "", now: observed_at, interrupted: Interrupted::Left };
    let unfinished = Unfinished::begin(archive, beginning)?;
    for ticker in tickers {
        let request = format!("{}/{ticker}", Endpoint::NewsArticles);
        let mut draft = unfinished.draft();
        let columns: Vec<ArrayRef> = vec![
            Arc::new(Int32Array::from(vec![0])),
            Arc::new(TimestampMicrosecondArray::from(vec![micros(day)])),
            Arc::new(StringArray::from(vec!["canary"])),
            Arc::new(Float64Array::from(vec![CANARY])),
            Arc::new(StringArray::from(vec!["https://canary.invalid"])),
            Arc::new(StringArray::new_null(1)),
        ];
        let rows = RecordBatch::try_new(Table::Articles.listed_schema(), columns);
        let rows = rows.map_err(|error| Error::Join { source: error.into() })?;
        draft.add_series(Series { key: SeriesKey::of_ticker(Endpoint::NewsArticles, ticker.clone()), rows })?;
        let (rows, rejects) = draft.counts();
        let record = RequestRecord {
            endpoint: Endpoint::NewsArticles,
            request,
            status: 200,
            attempts: 1,
            bytes: 0,
            digest: String::new(),
            rows,
            rejects,
            unknown_fields: Vec::new(),
            observed_at,
        };
        unfinished.commit(draft, record)?;
    }
    unfinished.seal(observed_at).map(drop)
}
