//! Suspect dates: those that an answer listed, and that a later answer of the same operation contradicts without covering
//! them.
//!
//! An answer says nothing of dates before its oldest one: a window may slide forward, and a list may be cut off. But a window
//! moves about as far as time goes by, and a list of limited length drops no more than it gains. If the oldest date of an
//! answer is much later than that of the answer before, the dates in between were there by mistake (a signal of 1970, the
//! longer list of another ticker), or are missing by mistake (a truncated answer). They are suspect until an answer lists them
//! again.

use std::collections::HashMap;

use arrow::array::{Array, ArrayRef, AsArray, BooleanArray, RecordBatch, TimestampMicrosecondArray};
use arrow::compute::filter_record_batch;
use arrow::datatypes::{Int32Type, TimestampMicrosecondType};
use arrow::error::ArrowError;

use super::View;
use super::coverage::Coverage;
use super::error::ArchiveError;
use super::sealed::answers::{self, ANSWERS, SeriesAnswer};
use super::sealed::by_ticker::ByTicker;
use super::sealed::keys;
use crate::error::{Reason, Result};
use crate::interface::{Endpoint, Ticker};
use crate::tables::{SeriesKey, Table};
use crate::time::MICROS_PER_DAY;

/// How much further than time a window may move at once: by a month, if it begins with one.
const MOST_AHEAD: i64 = 31 * MICROS_PER_DAY;

/// Dates of a series that are suspect, in microseconds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct SuspectDates {
    /// The first.
    from: i64,
    /// The end, which is not suspect.
    until: i64,
    /// When the answer was given that contradicts them.
    since: i64,
    /// The answer that listed them.
    before: DatedAnswer,
}

/// The suspect dates of the series of an archive.
#[derive(Clone, Debug, Default)]
pub(crate) struct Suspects(HashMap<SeriesKey, Vec<SuspectDates>>);

/// An answer about a series.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct DatedAnswer {
    oldest: i64,
    rows: u64,
    at: i64,
}

impl DatedAnswer {
    /// Whether what an earlier answer listed before this one begins may have slid out of a window, or off a list.
    fn follows(self, before: Self, table: Option<Table>) -> bool {
        let moved = self.oldest.saturating_sub(before.oldest);
        let is_list = table == Some(Table::Articles) && self.rows >= before.rows;
        is_list || moved <= (self.at - before.at).saturating_add(MOST_AHEAD)
    }
}

/// What an operation listed last of a series.
#[derive(Clone, Copy)]
struct LastAnswers {
    last: DatedAnswer,
    /// The answer before, if it began later.
    shorter: Option<DatedAnswer>,
}

impl View {
    /// The suspect dates.
    ///
    /// # Errors
    ///
    /// If a run cannot be read.
    pub(crate) fn suspects(&self) -> Result<Suspects> {
        let mut last: HashMap<(SeriesKey, Endpoint), LastAnswers> = HashMap::new();
        let mut suspects = Suspects::default();
        for folder in self.archive().read_runs().filter(|folder| folder.seal().rows(ANSWERS) > 0) {
            let mut file = ByTicker::open(folder, ANSWERS, &answers::schema())?;
            let rows = file.take_rest()?;
            let mut answers = answers::records(&rows).map_err(|error| file.damaged(error))?;
            answers.retain(|answer| self.counts(answer.sealed_at));
            answers.sort_by_key(|answer| answer.observed_at);
            answers.into_iter().for_each(|answer| suspects.add(answer, &mut last));
        }
        suspects.0.retain(|_, dates| !dates.is_empty());
        Ok(suspects)
    }
}

impl Suspects {
    fn add(&mut self, answer: SeriesAnswer, last: &mut HashMap<(SeriesKey, Endpoint), LastAnswers>) {
        let SeriesAnswer { key, source, rows, covers, observed_at, .. } = answer;
        let Coverage::Dates { from: oldest, until: i64::MAX } = covers else { return };
        let (table, now) = (key.table, DatedAnswer { oldest, rows, at: observed_at.timestamp_micros() });
        if let Some(dates) = self.0.get_mut(&key) {
            // They are listed again, or withdrawn; the rest may have slid out meanwhile.
            let is_listed = |dates: &SuspectDates| oldest < dates.until;
            dates.retain(|dates| !is_listed(dates) || (dates.from < oldest && !now.follows(dates.before, table)));
            dates.iter_mut().for_each(|dates| dates.until = dates.until.min(oldest));
        }
        let known = last.entry((key.clone(), source)).or_insert(LastAnswers { last: now, shorter: None });
        let LastAnswers { last: before, shorter } = *known;
        // A run may be in two packs.
        if before.at > now.at {
            return;
        }
        *known = LastAnswers { last: now, shorter: Some(before).filter(|before| before.oldest > oldest) };
        if now.follows(before, table) {
            return;
        }
        // What the answer before that one listed as well may have slid out since.
        let is_rest_expected = |shorter: &DatedAnswer| shorter.oldest < oldest && now.follows(*shorter, table);
        let until = shorter.filter(is_rest_expected).map_or(oldest, |shorter| shorter.oldest);
        let dates = SuspectDates { from: before.oldest, until, since: now.at, before };
        self.0.entry(key).or_default().push(dates);
    }

    /// When a date of a series was contradicted; none if it is not suspect.
    pub(crate) fn since(&self, key: &SeriesKey, date: i64) -> Option<i64> {
        since(self.0.get(key)?, date)
    }

    /// Known signals without those of suspect dates.
    pub(super) fn without_signals(&self, rows: RecordBatch) -> Result<RecordBatch> {
        let kept = || -> Result<Option<RecordBatch>, Reason> {
            let mut is_kept = vec![true; rows.num_rows()];
            let dates = dates(&rows);
            for (key, range) in keys::ranges(Table::Signals, &rows)? {
                let Some(suspect) = self.0.get(&key) else { continue };
                range.filter(|row| dates.is_valid(*row)).for_each(|row| {
                    is_kept[row] = since(suspect, dates.value(row)).is_none();
                });
            }
            filtered(&rows, is_kept)
        };
        if self.0.is_empty() { Ok(rows) } else { Ok(kept().map_err(ArchiveError::merge)?.unwrap_or(rows)) }
    }

    /// Articles without those of suspect dates.
    pub(crate) fn without_articles(&self, rows: RecordBatch) -> Result<RecordBatch> {
        let since = self.since_of_articles(&rows);
        if since.iter().all(Option::is_none) {
            return Ok(rows);
        }
        let is_kept = since.iter().map(Option::is_none).collect();
        Ok(filtered(&rows, is_kept).map_err(ArchiveError::merge)?.unwrap_or(rows))
    }

    /// Values of articles over time, of which those of suspect dates end when these were contradicted.
    pub(super) fn ended_articles(&self, rows: RecordBatch) -> Result<RecordBatch> {
        let since = self.since_of_articles(&rows);
        if since.iter().all(Option::is_none) {
            return Ok(rows);
        }
        let place = rows.schema_ref().index_of("seen_until").map_err(ArchiveError::merge)?;
        let until = rows.column(place).as_primitive::<TimestampMicrosecondType>();
        let ended = until.iter().zip(since).map(|(until, since)| [until, since].into_iter().flatten().min());
        let ended: ArrayRef = std::sync::Arc::new(ended.collect::<TimestampMicrosecondArray>().with_timezone("UTC"));
        let mut columns = rows.columns().to_vec();
        columns[place] = ended;
        RecordBatch::try_new(rows.schema(), columns).map_err(ArchiveError::merge)
    }

    /// When the date of each article was contradicted.
    fn since_of_articles(&self, rows: &RecordBatch) -> Vec<Option<i64>> {
        let tickers = rows.column(0).as_dictionary::<Int32Type>();
        let suspect = |name: Option<&str>| {
            let (table, ticker) = (Some(Table::Articles), name?.parse::<Ticker>().ok()?);
            self.0.get(&SeriesKey { table, ticker, period: None, regime: None })
        };
        let of_tickers: Vec<Option<&Vec<SuspectDates>>> =
            tickers.values().as_string::<i32>().iter().map(suspect).collect();
        let dates = dates(rows);
        let since = |(row, key): (usize, &i32)| since(of_tickers[*key as usize]?, dates.value(row));
        tickers.keys().values().iter().enumerate().map(since).collect()
    }
}

fn since(suspect: &[SuspectDates], date: i64) -> Option<i64> {
    suspect.iter().filter(|dates| dates.from <= date && date < dates.until).map(|dates| dates.since).min()
}

fn dates(rows: &RecordBatch) -> &TimestampMicrosecondArray {
    rows.column_by_name("date").expect("signals and articles have dates").as_primitive()
}

/// Some of the rows; none if they are all.
fn filtered(rows: &RecordBatch, is_kept: Vec<bool>) -> Result<Option<RecordBatch>, Reason> {
    if is_kept.iter().all(|is_kept| *is_kept) {
        return Ok(None);
    }
    let kept: Result<RecordBatch, ArrowError> = filter_record_batch(rows, &BooleanArray::from(is_kept));
    Ok(Some(kept?))
}
