//! Does anything of the future reach a row of the past? Asked by trying, not by reading the code.
//!
//! Four trials, each against the dataset as it is built from the whole archive:
//!
//! - *dates*: the news of a day and later is taken away before the dataset is built; the signals before that day must have
//!   the features they had.
//! - *instants*: the runs that were sealed after an instant are taken out of a copy of the archive; the dataset as of
//!   that instant must be the same from both.
//! - *canaries of a day*: articles with impossible scores, with a date and no time, observed now, are sealed into a copy of
//!   the archive, on the way that every answer takes. As of the instant before, nothing may have changed; as of now, no
//!   signal that the lag keeps from them may have. And to show that the trial could fail, some later row must have: where no
//!   row is late enough, the trial is not applicable.
//! - *canaries of an instant*: articles and records of one second after a signal, written with several offsets. No signal
//!   that was made by then may see them.
//!
//! An answer with canaries also lists all news that is known, so that it withdraws none. What it changes is told by a second
//! copy, which has the same answers without the canaries. What is before what is decided here anew, from what was written,
//! and not by the dataset's own rule.

#[cfg(test)]
mod tests;

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;

use arrow::array::{AsArray, RecordBatch, TimestampMicrosecondArray};
use arrow::datatypes::TimestampMicrosecondType;
use arrow::error::ArrowError;
use arrow::row::{RowConverter, SortField};
use blake3::Hasher;
use chrono::{DateTime, Days, NaiveDate, TimeDelta, Utc};

use super::canaries::{Canaries, is_planted};
use super::cut::{Part, Split, filtered, midnight, written_dates};
use crate::archive::{Archive, Asked, Scope, SealedRun, View, copy};
use crate::dataset::{self, Sources};
use crate::date::Date;
use crate::error::{Error, Result};
use crate::interface::Ticker;
use crate::plan::{Availability, Column, DatasetPlan, Feature, Lag};
use crate::remove;
use crate::tables::Slab;
use crate::time::to_record;

/// How many days and instants are tried.
const CUTS: usize = 4;

/// What a canary of an instant is later than the signal by.
const AFTER: TimeDelta = TimeDelta::seconds(1);

/// The offsets that canaries of an instant are written with: those of the first and of the last clock on earth, and UTC.
const OFFSETS: [i16; 3] = [0, 14 * 60, -12 * 60];

/// What came of a trial.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// The rows were what they should be.
    Sound,
    /// They were not.
    Leak,
    /// The data give no occasion for the trial, and why.
    NotApplicable(String),
}

/// What a trial found.
#[derive(Clone, Debug)]
pub struct Trial {
    /// What was tried, in words.
    pub what: String,
    /// The rows that were compared.
    pub rows: u64,
    /// What came of it.
    pub outcome: Outcome,
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
    let made = fs::create_dir_all(scratch.parent().unwrap_or(scratch)).and_then(|()| fs::create_dir(scratch));
    made.map_err(|source| Error::Write { path: scratch.to_owned(), source })?;
    let work = Work { scope, plan, scratch, read: |slab| slab };
    let outcome = work.leak(archive);
    if let Err(error) = remove::folder(scratch) {
        tracing::warn!(path = %scratch.display(), %error, "cannot remove the copies of an archive");
    }
    outcome
}

struct Work<'a> {
    scope: &'a Scope,
    plan: &'a DatasetPlan,
    scratch: &'a Path,
    /// What the dataset is given of a slab: all of it, but in tests of the trials themselves.
    read: fn(Slab) -> Slab,
}

/// What canaries are planted in, and what is compared with.
struct Planting<'a> {
    archive: &'a Archive,
    view: &'a View,
    /// A copy in which everything is listed again, and no canary.
    control: &'a View,
}

/// The number and the digest of some rows.
type Rows = (u64, [u8; 32]);

impl Work<'_> {
    fn leak(&self, archive: &Archive) -> Result<Leak> {
        let now = archive.runs().iter().map(|run| run.seal().sealed_at).max().unwrap_or_default();
        let view = View::of(archive.clone(), now);
        let all_days = self.days(&view)?;
        let mut leak = Leak::default();
        for day in cuts(&all_days) {
            let part = Part { made_before: Some(Split::of(day, self.plan.dates)), ..Part::default() };
            let cut = Part { news_before: part.made_before, ..part };
            let (whole, cut) = (self.rows(&view, part)?, self.rows(&view, cut)?);
            leak.add(format!("dates: no news of {day} or later, signals before {day}"), whole, cut);
        }
        for instant in instants(archive) {
            let what = format!("instants: without the runs after {instant}, as of then");
            let Some(copy) = self.copy(archive, "archive", |run| run.seal().sealed_at <= instant)? else {
                leak.skip(what, "these runs are in one pack with later ones");
                continue;
            };
            let (whole, cut) = (View::of(archive.clone(), instant), View::of(copy, instant));
            let (whole, cut) = (self.rows(&whole, Part::default())?, self.rows(&cut, Part::default())?);
            leak.add(what, whole, cut);
        }
        if !self.plan.features.is_empty() {
            self.plant_all(archive, &view, &all_days, &mut leak)?;
        }
        Ok(leak)
    }

    /// The trials with canaries.
    fn plant_all(&self, archive: &Archive, view: &View, all_days: &[NaiveDate], leak: &mut Leak) -> Result<()> {
        let (control, _) = self.plant(archive, view, Vec::new(), "control")?;
        let planting = Planting { archive, view, control: &control };
        for day in cuts(all_days) {
            match self.last_served_day(day, all_days) {
                Some(planted) => self.plant_day(&planting, planted, day, leak)?,
                None => leak.skip(format!("canaries: for {day}"), "no signal is old enough to count trading days from"),
            }
        }
        let made = self.instants_of_signals(view)?;
        if made.is_empty() {
            leak.skip(
                "canaries: of an instant".to_owned(),
                "no signal is written with an offset, so no instant is known",
            );
        }
        for instant in made {
            self.plant_instant(&planting, instant, leak)?;
        }
        Ok(())
    }

    /// The days of the dataset's rows.
    fn days(&self, view: &View) -> Result<Vec<NaiveDate>> {
        let mut days: BTreeSet<NaiveDate> = BTreeSet::new();
        self.build(view, Part::default(), |rows| {
            let micros = dates(rows).values().iter();
            days.extend(micros.filter_map(|&micros| Some(DateTime::from_timestamp_micros(micros)?.date_naive())));
            Ok(())
        })?;
        Ok(days.into_iter().collect())
    }

    /// The last day whose news may serve the signals of a day.
    fn last_served_day(&self, day: NaiveDate, all_days: &[NaiveDate]) -> Option<NaiveDate> {
        match self.plan.lag {
            Lag::Calendar(lag) => day.checked_sub_days(Days::new(lag.count() as u64)),
            Lag::Trading(count) => {
                let place = all_days.partition_point(|other| *other < day);
                place.checked_sub(usize::from(count)).map(|place| all_days[place])
            }
        }
    }

    /// Some instants of signals, those written with the smallest and the greatest offset.
    fn instants_of_signals(&self, view: &View) -> Result<Vec<i64>> {
        let mut by_offset: BTreeMap<i16, BTreeSet<i64>> = BTreeMap::new();
        for slab in self.slabs(view, self.scope)? {
            for date in written_dates(&slab?.signals) {
                if let Some(offset) = date.offset_minutes {
                    by_offset.entry(offset).or_default().insert(date.micros);
                }
            }
        }
        let ends: BTreeMap<_, _> =
            [by_offset.first_key_value(), by_offset.last_key_value()].into_iter().flatten().collect();
        let of_each = CUTS / ends.len().max(1);
        let some = |instants: &BTreeSet<i64>| {
            let all: Vec<i64> = instants.iter().copied().collect();
            (1..=of_each).filter_map(|cut| all.get(all.len() * cut / (of_each + 1)).copied()).collect::<Vec<_>>()
        };
        let chosen: BTreeSet<i64> = ends.values().flat_map(|instants| some(instants)).collect();
        Ok(chosen.into_iter().collect())
    }

    /// Plants articles of a day, the last one that serves the signals of another.
    fn plant_day(&self, planting: &Planting<'_>, planted: NaiveDate, day: NaiveDate, leak: &mut Leak) -> Result<()> {
        let Planting { archive, view, control } = planting;
        let date = Date { micros: midnight(planted), offset_minutes: None };
        let (after, count) = self.plant(archive, view, vec![date; 2], "archive")?;
        let what = format!("canaries: articles of {count} tickers dated {planted}");
        let whole = self.rows(view, Part::default())?;
        let before = self.rows(&View::of(after.archive().clone(), view.as_of()), Part::default())?;
        leak.add(format!("{what} and observed later, as of before"), whole, before);
        let (past, shown) = match self.plan.lag {
            // The day itself may see them, but for signals that were made before it was over.
            Lag::Calendar(lag) if lag.count() == 0 => {
                let begins = Split::of(planted, self.plan.dates);
                let over = Split::of(planted.succ_opt().unwrap_or(planted), self.plan.dates);
                let part = Part { made_before: Some(begins.until(over)), ..Part::default() };
                (part, format!("signals made before {planted} was over"))
            }
            Lag::Calendar(_) => (Part { dated_before: Some(day), ..Part::default() }, format!("rows before {day}")),
            Lag::Trading(_) => {
                let next = planted.succ_opt().unwrap_or(planted);
                (Part { dated_before: Some(next), ..Part::default() }, format!("rows before {next}"))
            }
        };
        let (then, now) = (self.rows(control, past)?, self.rows(&after, past)?);
        leak.add(format!("{what}, {shown}"), then, now);
        let what = format!("{what} are seen in later rows");
        if self.plan.availability == Availability::Observed {
            leak.skip(what, "features count what had been seen by a signal's date, and a canary is seen now");
            return Ok(());
        }
        let all = self.rows(&after, Part::default())?;
        if all != self.rows(control, Part::default())? {
            leak.trials.push(Trial { what, rows: all.0, outcome: Outcome::Sound });
        } else {
            leak.skip(what, "no feature of a later row is made of them");
        }
        Ok(())
    }

    /// Plants articles and records that are later than a signal by a second.
    fn plant_instant(&self, planting: &Planting<'_>, made: i64, leak: &mut Leak) -> Result<()> {
        let Planting { archive, view, control } = planting;
        let later = DateTime::from_timestamp_micros(made).unwrap_or_default() + AFTER;
        let micros = later.timestamp_micros();
        let dates = OFFSETS.map(|offset| Date { micros, offset_minutes: Some(offset) });
        let (after, count) = self.plant(archive, view, dates.to_vec(), "archive")?;
        let part = Part { made_by: Some(made), ..Part::default() };
        let (past, reached) = (self.rows(control, part)?, self.rows(&after, part)?);
        let what = format!("canaries: articles of {count} tickers at {}, signals before", to_record(later));
        leak.add(what, past, reached);
        Ok(())
    }

    /// A copy of an archive with canaries, as it is seen when they were observed, and how many tickers have them.
    fn plant(&self, archive: &Archive, view: &View, dates: Vec<Date>, folder: &str) -> Result<(View, usize)> {
        let copy = self.copy(archive, folder, |_| true)?.expect("all runs are copied");
        let observed_at = view.as_of() + TimeDelta::seconds(1);
        let tickers: BTreeSet<Ticker> = view.members(self.scope)?.into_iter().map(|series| series.ticker).collect();
        let count = tickers.len();
        let field = |feature: &Feature| match feature {
            Feature::Historical(field) => Some(field.to_string()),
            _ => None,
        };
        let fields: Vec<String> = self.plan.features.iter().filter_map(field).collect();
        let is_control = dates.is_empty();
        Canaries { tickers, dates, fields, observed_at }.seal(copy.path(), view)?;
        let planted = View::of(Archive::open(copy.path())?, observed_at);
        if !is_control && !self.shows_canaries(&planted)? {
            return Err(Error::Join { source: "the copy of the archive does not show what was planted in it".into() });
        }
        Ok((planted, count))
    }

    fn shows_canaries(&self, view: &View) -> Result<bool> {
        for slab in self.slabs(view, &self.scope.unfiltered())? {
            if is_planted(&slab?) {
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// A copy of an archive with some of its runs; none where these cannot be told from others.
    fn copy(&self, archive: &Archive, folder: &str, is_wanted: impl Fn(&SealedRun) -> bool) -> Result<Option<Archive>> {
        let folder = self.scratch.join(folder);
        remove::folder(&folder).map_err(|source| Error::Write { path: folder.clone(), source })?;
        copy(archive, &folder, is_wanted)
    }

    fn slabs(&self, view: &View, scope: &Scope) -> Result<impl Iterator<Item = Result<Slab>>> {
        let live_within = TimeDelta::days(i64::from(self.plan.live_within.count()));
        let read = self.read;
        let slabs = view.slabs(scope, Asked { vintage: self.plan.vintage, live_within })?;
        Ok(slabs.map(move |slab| slab.map(read)))
    }

    /// Builds a part of a dataset.
    fn build(&self, view: &View, part: Part, mut deliver: impl FnMut(&RecordBatch) -> Result<()>) -> Result<()> {
        let failed = |error: ArrowError| Error::Join { source: error.into() };
        let slabs = || Ok(self.slabs(view, self.scope)?.map(move |slab| part.of(&slab?).map_err(failed)));
        let unfiltered = self.scope.unfiltered();
        let whole = || self.slabs(view, &unfiltered);
        dataset::build(Sources { slabs, whole }, self.plan, self.scratch.join("sort"), |rows| {
            deliver(&rows.flat().map_err(failed)?)
        })
        .map(drop)
    }

    /// The rows of a part of a dataset.
    fn rows(&self, view: &View, part: Part) -> Result<Rows> {
        let failed = |error: ArrowError| Error::Join { source: error.into() };
        let fields = self.plan.schema.fields().iter().map(|field| SortField::new(field.data_type().clone()));
        let converter = RowConverter::new(fields.collect()).map_err(failed)?;
        let (mut count, mut hasher) = (0, Hasher::new());
        self.build(view, part, |rows| {
            let rows = match part.dated_before.map(midnight) {
                Some(day) => filtered(rows, dates(rows).iter().map(|date| date.is_some_and(|date| date < day))),
                None => Ok(rows.clone()),
            };
            let rows = rows.map_err(failed)?;
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
        let outcome = if one == other { Outcome::Sound } else { Outcome::Leak };
        self.trials.push(Trial { what, rows: one.0, outcome });
    }

    fn skip(&mut self, what: String, why: &str) {
        self.trials.push(Trial { what, rows: 0, outcome: Outcome::NotApplicable(why.to_owned()) });
    }

    /// How many trials had an outcome that is like another one.
    fn count(&self, is_so: impl Fn(&Outcome) -> bool) -> usize {
        self.trials.iter().filter(|trial| is_so(&trial.outcome)).count()
    }

    /// How many trials found a leak.
    pub fn leaks(&self) -> usize {
        self.count(|outcome| *outcome == Outcome::Leak)
    }

    /// How many trials the data gave no occasion for.
    pub fn not_applicable(&self) -> usize {
        self.count(|outcome| matches!(outcome, Outcome::NotApplicable(_)))
    }
}

/// Some days that cut all of them into pieces.
fn cuts(days: &[NaiveDate]) -> Vec<NaiveDate> {
    let place = |cut: usize| days.get(days.len() * cut / (CUTS + 1)).copied();
    let mut cuts: Vec<NaiveDate> = (1..=CUTS).filter_map(place).collect();
    cuts.dedup();
    cuts
}

/// Some instants between runs.
fn instants(archive: &Archive) -> Vec<DateTime<Utc>> {
    let sealed: Vec<_> = archive.runs().iter().map(|run| run.seal().sealed_at).collect();
    let (_, earlier) = sealed.split_last().map_or((None, &[][..]), |(last, earlier)| (Some(last), earlier));
    let step = earlier.len().div_ceil(CUTS).max(1);
    earlier.iter().copied().step_by(step).collect()
}

fn dates(rows: &RecordBatch) -> &TimestampMicrosecondArray {
    let dates = rows.column_by_name(Column::Date.name()).expect("every dataset has dates");
    dates.as_primitive::<TimestampMicrosecondType>()
}
