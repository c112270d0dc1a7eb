//! Settles very many articles of one ticker, some whole dates at a time.
//!
//! The answer is read twice: first for its dates alone, to find dates that cut it into stretches of a few megabytes, and
//! then stretch by stretch. The archive's articles are read up to the same dates, and in smaller steps where it knows more
//! of them than the answer has. An answer mostly lists its articles by date, so a stretch stands in a few of its pieces; where
//! it does not, each stretch reads them all. Articles of one date stay together, however many they are.

use arrow::array::{AsArray, BooleanArray, RecordBatch};
use arrow::compute::{concat_batches, filter_record_batch};
use arrow::datatypes::TimestampMicrosecondType;
use arrow::error::ArrowError;

use super::difference::difference;
use super::known::{Known, Observations};
use super::spool::{Place, Spool, Told};
use super::{BYTES_AT_ONCE, Group};
use crate::archive::sealed::bound::Bound;
use crate::error::{Error, Result};
use crate::tables::{Changes, Table};
use crate::trace::work;

/// Of so many articles of a piece the date of one is kept to find the cuts.
const SAMPLED: usize = 64;

/// Hands out the changes of a series of articles; whether these are all, and wanted.
pub(super) fn settle(
    known: &mut Known,
    spool: &mut Spool<'_>,
    told: &Told,
    mut send: impl FnMut(Result<Group>) -> bool,
) -> bool {
    let settled = spool.open(std::slice::from_ref(told)).and_then(|()| {
        let mut giant = Giant::of(spool, told)?;
        for cut in giant.cuts() {
            if !giant.settle_until(cut, known, &mut send)? {
                return Ok(false);
            }
        }
        Ok(giant.repetitions().is_none_or(&mut send))
    });
    settled.unwrap_or_else(|error| {
        send(Err(error));
        false
    })
}

/// A piece of an answer, and its first and last date.
type Dated = (Place, i64, i64);

struct Giant<'a> {
    spool: &'a Spool<'a>,
    told: &'a Told,
    /// The pieces of each telling of the series; the first telling counts.
    tellings: Vec<Vec<Dated>>,
    /// Of each of the tellings whether it says the same as the first one, so far, and how many articles it has.
    compared: Vec<(bool, usize)>,
    /// Some of the dates of the first one, in order.
    samples: Vec<i64>,
    oldest: Option<i64>,
    /// The date up to which articles are settled.
    settled: i64,
}

impl<'a> Giant<'a> {
    /// Reads the dates.
    fn of(spool: &'a Spool<'_>, told: &'a Told) -> Result<Self> {
        let _work = work!("read dates of articles");
        let (mut tellings, mut samples) = (Vec::new(), Vec::new());
        for telling in spool.tellings(told) {
            let mut pieces: Vec<Dated> = Vec::with_capacity(telling.len());
            for &place in telling {
                let piece = spool.piece(place)?;
                let mut dates = listed_dates(&piece).to_vec();
                dates.sort_unstable();
                if tellings.is_empty() {
                    samples.extend(dates.iter().step_by(SAMPLED));
                }
                pieces.extend(dates.first().zip(dates.last()).map(|(&first, &last)| (place, first, last)));
            }
            tellings.push(pieces);
        }
        samples.sort_unstable();
        let oldest = tellings.first().and_then(|pieces| pieces.iter().map(|(_, first, _)| *first).min());
        let compared = vec![(true, 0); tellings.len()];
        Ok(Self { spool, told, tellings, compared, samples, oldest, settled: i64::MIN })
    }

    /// The dates before which the stretches end.
    fn cuts(&self) -> Vec<i64> {
        let stretches = self.spool.bytes(self.told).div_ceil(BYTES_AT_ONCE).max(1) as usize;
        let each = self.samples.len().div_ceil(stretches).max(1);
        let mut cuts: Vec<i64> = self.samples.iter().copied().skip(each).step_by(each).collect();
        cuts.push(i64::MAX);
        cuts.dedup();
        cuts
    }

    /// Hands out the changes of the articles up to a date, step by step; whether they were wanted.
    fn settle_until(
        &mut self,
        cut: i64,
        known: &mut Known,
        mut send: impl FnMut(Result<Group>) -> bool,
    ) -> Result<bool> {
        let _work = work!("settle articles");
        let mut said = self.said(&self.tellings[0], cut)?;
        for other in 1..self.tellings.len() {
            let others = self.said(&self.tellings[other], cut)?;
            let (is_same, count) = self.compared[other];
            self.compared[other] = (is_same && others == said, count + others.num_rows());
        }
        self.settled = cut;
        let ticker = self.told.key.ticker.as_str();
        let limit = if cut == i64::MAX { Bound::after(ticker) } else { Bound::at_date(ticker, cut) };
        loop {
            let (observations, end) = match known.next_articles(ticker, &limit)? {
                Some((observations, end)) if end < limit => (observations, end.date_of(ticker)),
                Some((observations, _)) => (observations, None),
                None => (Observations::default(), None),
            };
            let dates = rows_dates(&said);
            let count = end.map_or(said.num_rows(), |end| dates.partition_point(|&date| date < end));
            let (step, rest) = (said.slice(0, count), said.slice(count, said.num_rows() - count));
            let changes = self.changes(&observations, &step);
            let changes = changes.map_err(|error| Error::Settle { source: error.into() })?;
            if let Some(changes) = changes
                && !send(Group::of(vec![changes], Vec::new()))
            {
                return Ok(false);
            }
            if end.is_none() {
                return Ok(true);
            }
            said = rest;
        }
    }

    fn changes(&self, observations: &Observations, said: &RecordBatch) -> Result<Option<Changes>, ArrowError> {
        let key = &self.told.key;
        let observed_at = self.spool.observed_at(self.told);
        let known = observations.values(Table::Articles, key, observed_at)?;
        let found = difference(Table::Articles, &known, said, self.oldest)?;
        Ok(found.map(|(kinds, rows)| Changes { key: key.clone(), observed_at, kinds, rows }))
    }

    /// The articles of a telling from the date that is settled up to another, in the columns and the order of the table's
    /// rows.
    fn said(&self, telling: &[Dated], until: i64) -> Result<RecordBatch> {
        let is_wanted = |date: i64| self.settled <= date && (date < until || until == i64::MAX);
        let mut read = Vec::new();
        for &(place, first, last) in telling.iter().filter(|(_, first, last)| *last >= self.settled && *first < until) {
            let piece = self.spool.piece(place)?;
            read.push(if is_wanted(first) && is_wanted(last) {
                piece
            } else {
                let are_wanted: BooleanArray = listed_dates(&piece).iter().map(|&date| Some(is_wanted(date))).collect();
                filter_record_batch(&piece, &are_wanted).map_err(|error| self.spool.damaged(place, error))?
            });
        }
        let whole = concat_batches(&Table::Articles.listed_schema(), &read);
        drop(read);
        let arranged = whole.and_then(|rows| Table::Articles.arranged(&rows));
        arranged.map_err(|error| Error::Settle { source: error.into() })
    }

    /// What is to be told of tellings that differ from the first one.
    fn repetitions(&self) -> Option<Result<Group>> {
        let tellings = self.spool.tellings(self.told).zip(&self.compared);
        let differing = tellings.filter(|(_, (is_same, _))| !is_same);
        let repeated = differing.map(|(telling, (_, count))| self.spool.repetition(self.told, telling, *count));
        let repeated: Vec<_> = repeated.collect();
        (!repeated.is_empty()).then(|| Group::of(Vec::new(), repeated))
    }
}

/// The dates of articles as an answer lists them.
fn listed_dates(rows: &RecordBatch) -> &[i64] {
    rows.column(1).as_primitive::<TimestampMicrosecondType>().values()
}

/// The dates of articles in the columns of the table's rows.
fn rows_dates(rows: &RecordBatch) -> &[i64] {
    rows.column(0).as_primitive::<TimestampMicrosecondType>().values()
}
