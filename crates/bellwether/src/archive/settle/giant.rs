//! Settles very many articles of one ticker, a few whole dates at a time.
//!
//! The answer is read twice: first only its dates, to find cuts into ranges of a few megabytes, and then range by
//! range. The archive's articles are read up to the same dates, in smaller steps where the archive has more than the
//! answer. An answer usually lists its articles by date, so a range takes few of its pieces; otherwise every range
//! reads them all. Articles of one date stay together, however many there are.

use arrow::array::{AsArray, BooleanArray, RecordBatch};
use arrow::compute::{concat_batches, filter_record_batch};
use arrow::datatypes::TimestampMicrosecondType;
use arrow::error::ArrowError;

use super::by_series::{AnsweredSeries, AnswersBySeries, RowsPlace};
use super::difference::{continue_places, difference};
use super::known::{KnownReader, Observations};
use super::{BYTES_AT_ONCE, ComparedSeries, Group};
use crate::archive::merge_failed;
use chrono::{DateTime, Utc};

use crate::archive::copies::continue_copies;
use crate::archive::coverage::{Coverage, Extent};
use crate::archive::edge::Edge;
use crate::archive::sealed::answers::SeriesAnswer;
use crate::archive::sealed::bound::Bound;
use crate::error::Result;
use crate::interface::Endpoint;
use crate::process::trace::work;
use crate::tables::{Changes, Table};

/// The sampling interval, in articles, of the dates used to find the cuts.
const SAMPLED: usize = 64;

/// Sends the changes of a series of articles; returns whether it was completed and accepted.
pub(super) fn settle(
    known: &mut KnownReader,
    by_series: &mut AnswersBySeries<'_>,
    series: &AnsweredSeries,
    (sealed_at, extent): (DateTime<Utc>, Extent),
    mut send: impl FnMut(Result<Group>) -> bool,
) -> bool {
    let settled = by_series.open(std::slice::from_ref(series)).and_then(|()| {
        let mut giant = Giant::of(by_series, series, sealed_at, extent)?;
        for cut in giant.cuts() {
            if !giant.settle_until(cut, known, &mut send)? {
                return Ok(false);
            }
        }
        Ok(send(giant.answer()) && giant.repetitions().is_none_or(&mut send))
    });
    settled.unwrap_or_else(|error| {
        send(Err(error));
        false
    })
}

/// A piece of an answer with its first and last date.
type DatedPiece = (RowsPlace, i64, i64);

struct Giant<'a> {
    by_series: &'a AnswersBySeries<'a>,
    series: &'a AnsweredSeries,
    /// The pieces of each copy of the series; the first copy counts.
    copies: Vec<Vec<DatedPiece>>,
    /// For each copy, whether it equals the first so far, and its number of articles.
    compared: Vec<(bool, usize)>,
    /// Sampled dates of the first copy, in order.
    samples: Vec<i64>,
    /// Number of articles of the first copy.
    rows: u64,
    oldest: Option<i64>,
    /// Known once the first articles were read.
    edge: Edge,
    sealed_at: DateTime<Utc>,
    extent: Extent,
    /// The date up to which articles are settled.
    settled: i64,
}

impl<'a> Giant<'a> {
    /// Reads the dates.
    fn of(
        by_series: &'a AnswersBySeries<'_>,
        series: &'a AnsweredSeries,
        sealed_at: DateTime<Utc>,
        extent: Extent,
    ) -> Result<Self> {
        let _work = work!("read dates of articles");
        let (mut copies, mut samples, mut rows) = (Vec::new(), Vec::new(), 0);
        for copy in by_series.copies(series) {
            let mut pieces: Vec<DatedPiece> = Vec::with_capacity(copy.len());
            for &place in copy {
                let piece = by_series.piece(place)?;
                let mut dates = listed_dates(&piece).to_vec();
                dates.sort_unstable();
                if copies.is_empty() {
                    rows += dates.len() as u64;
                    samples.extend(dates.iter().step_by(SAMPLED));
                }
                pieces.extend(dates.first().zip(dates.last()).map(|(&first, &last)| (place, first, last)));
            }
            copies.push(pieces);
        }
        samples.sort_unstable();
        let oldest = copies.first().and_then(|pieces| pieces.iter().map(|(_, first, _)| *first).min());
        let compared = vec![(true, 0); copies.len()];
        Ok(Self {
            by_series,
            series,
            copies,
            compared,
            samples,
            rows,
            oldest,
            edge: Edge::default(),
            sealed_at,
            extent,
            settled: i64::MIN,
        })
    }

    /// What the answer covers.
    fn covers(&self) -> Coverage {
        let covers = |oldest| Coverage::from(Endpoint::NewsArticles, oldest, self.extent);
        self.oldest.map_or(Coverage::Nothing, covers)
    }

    /// The answer, without its rows.
    fn answer(&self) -> Result<Group> {
        let answer = SeriesAnswer {
            key: self.series.key.clone(),
            source: Endpoint::NewsArticles,
            request: self.by_series.request(self.series),
            rows: self.rows,
            covers: self.covers(),
            edge: self.edge.clone(),
            observed_at: self.by_series.observed_at(self.series),
            sealed_at: self.sealed_at,
        };
        Group::of(vec![ComparedSeries { answers: vec![answer], ..ComparedSeries::default() }], Vec::new())
    }

    /// The dates at which ranges end; no article has the last one.
    fn cuts(&self) -> Vec<i64> {
        let ranges = self.by_series.bytes(self.series).div_ceil(BYTES_AT_ONCE).max(1) as usize;
        let each = self.samples.len().div_ceil(ranges).max(1);
        let mut cuts: Vec<i64> = self.samples.iter().copied().skip(each).step_by(each).collect();
        cuts.push(i64::MAX);
        cuts.dedup();
        cuts
    }

    /// Sends the changes of articles up to a date, step by step; returns whether they were accepted.
    fn settle_until(
        &mut self,
        cut: i64,
        known: &mut KnownReader,
        mut send: impl FnMut(Result<Group>) -> bool,
    ) -> Result<bool> {
        let _work = work!("settle articles");
        let mut answered = self.answered_articles(&self.copies[0], cut)?;
        for other in 1..self.copies.len() {
            let others = self.answered_articles(&self.copies[other], cut)?;
            let (is_same, count) = self.compared[other];
            self.compared[other] = (is_same && others == answered, count + others.num_rows());
        }
        self.settled = cut;
        let ticker = self.series.key.ticker.as_str();
        let limit = Bound::at_date(ticker, cut);
        loop {
            let (observations, end) = match known.next_articles(ticker, &limit)? {
                Some((observations, end)) => (observations, end.date_of(ticker)),
                None => (Observations::default(), None),
            };
            let dates = rows_dates(&answered);
            let count = end.map_or(answered.num_rows(), |end| dates.partition_point(|&date| date < end));
            let (step, rest) = (answered.slice(0, count), answered.slice(count, answered.num_rows() - count));
            let (compared, edge) = self.compare(&observations, &step).map_err(merge_failed)?;
            if self.edge == Edge::default() {
                self.edge = edge;
            }
            if !send(Group::of(vec![compared], Vec::new())) {
                return Ok(false);
            }
            if end.is_none() {
                return Ok(true);
            }
            answered = rest;
        }
    }

    fn compare(
        &self,
        observations: &Observations,
        answered: &RecordBatch,
    ) -> Result<(ComparedSeries, Edge), ArrowError> {
        let key = &self.series.key;
        let observed_at = self.by_series.observed_at(self.series);
        let known = observations.values(Table::Articles, key, observed_at)?;
        let history = observations.rows(Table::Articles, key);
        let as_of = observed_at.timestamp_micros();
        let is_of_oldest = self.extent == Extent::FromOldest && rows_dates(answered).first().copied() == self.oldest;
        let answered = if is_of_oldest { continue_copies(answered.clone(), &known)? } else { answered.clone() };
        let edge = if is_of_oldest { Edge::of(&answered) } else { Edge::default() };
        let answered = continue_places(answered, self.covers(), (&history, as_of))?;
        let found = difference(Table::Articles, &known, &answered, self.covers())?;
        let (source, sealed_at) = (Endpoint::NewsArticles, self.sealed_at);
        let changes =
            found.map(|(kinds, rows)| Changes { key: key.clone(), source, observed_at, sealed_at, kinds, rows });
        let compared = ComparedSeries {
            changes: changes.into_iter().collect(),
            known: known.num_rows() as u64,
            answers: Vec::new(),
        };
        Ok((compared, edge))
    }

    /// Articles of a copy from the settled date up to another, in the columns and order of the table's rows.
    fn answered_articles(&self, copy: &[DatedPiece], until: i64) -> Result<RecordBatch> {
        let is_wanted = |date: i64| self.settled <= date && date < until;
        let mut read = Vec::new();
        for &(place, first, last) in copy.iter().filter(|(_, first, last)| *last >= self.settled && *first < until) {
            let piece = self.by_series.piece(place)?;
            read.push(if is_wanted(first) && is_wanted(last) {
                piece
            } else {
                let are_wanted: BooleanArray = listed_dates(&piece).iter().map(|&date| Some(is_wanted(date))).collect();
                filter_record_batch(&piece, &are_wanted).map_err(|error| self.by_series.damage(place, error))?
            });
        }
        let whole = concat_batches(&Table::Articles.listed_schema(), &read);
        drop(read);
        let arranged = whole.and_then(|rows| Table::Articles.arrange(&rows));
        arranged.map_err(merge_failed)
    }

    /// Rejected records for copies that differ from the first one.
    fn repetitions(&self) -> Option<Result<Group>> {
        let copies = self.by_series.copies(self.series).zip(&self.compared);
        let differing = copies.filter(|(_, (is_same, _))| !is_same);
        let repeated = differing.map(|(copy, (_, count))| self.by_series.repetition(self.series, copy, *count));
        let repeated: Vec<_> = repeated.collect();
        (!repeated.is_empty()).then(|| Group::of(Vec::new(), repeated))
    }
}

/// Dates of articles as an answer lists them.
fn listed_dates(rows: &RecordBatch) -> &[i64] {
    rows.column(1).as_primitive::<TimestampMicrosecondType>().values()
}

/// Dates of articles in the columns of the table's rows.
fn rows_dates(rows: &RecordBatch) -> &[i64] {
    rows.column(0).as_primitive::<TimestampMicrosecondType>().values()
}
