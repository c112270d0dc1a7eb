//! The rows of a run's answers, series by series, in order.

use std::collections::hash_map::Entry;
use std::collections::{BTreeSet, HashMap, HashSet};
use std::sync::Arc;

use arrow::array::RecordBatch;
use arrow::compute::concat_batches;
use arrow::error::ArrowError;
use chrono::{DateTime, Utc};

use crate::archive::answers::answer::{Answer, Batches, Rows};
use crate::archive::answers::lanes::Files;
use crate::archive::sealed::listings::Name;
use crate::error::{Error, Result};
use crate::tables::{Reject, SeriesKey, Table};

/// How many answers are open at once.
const OPEN_ANSWERS: usize = 1 << 12;

/// Where some rows of a series are: which answer, and which batch of its file.
#[derive(Clone, Copy, Debug)]
pub(super) struct Place {
    answer: usize,
    batch: usize,
}

/// A series that was answered, and where its rows are.
#[derive(Clone, Debug)]
pub(super) struct Told {
    pub(super) key: SeriesKey,
    places: Vec<Place>,
}

/// The files of all answers.
pub(super) struct Spool<'a> {
    answers: &'a [Answer],
    open: HashMap<usize, Batches>,
    files: Files,
    /// The requests, which many series share.
    requests: Vec<Name>,
    /// Histories without signals, with their answers.
    empty: HashSet<(usize, &'a SeriesKey)>,
}

/// What an answer says of a series.
#[derive(Clone, Debug)]
pub(super) struct Said {
    pub(super) table: Table,
    /// When the answer was complete.
    pub(super) observed_at: DateTime<Utc>,
    /// In the columns and the order of [`Table::row_schema`].
    pub(super) rows: RecordBatch,
}

/// A series that an answer repeats with other values.
#[derive(Clone, Debug)]
pub(in crate::archive) struct Repeated {
    pub(super) reject: Reject,
    /// When the answer was complete.
    pub(super) observed_at: DateTime<Utc>,
    /// How many records it has there.
    pub(super) records: u64,
}

impl<'a> Spool<'a> {
    /// The answers of a run, in the order of their requests.
    pub(super) fn of(answers: &'a [Answer]) -> Self {
        let requests = answers.iter().map(|answer| Name::from(answer.record.request.request.as_str())).collect();
        let of_answer = |(answer, it): (usize, &'a Answer)| it.record.empty.iter().map(move |key| (answer, key));
        let empty = answers.iter().enumerate().flat_map(of_answer).collect();
        Self { answers, open: HashMap::new(), files: Files::default(), requests, empty }
    }

    /// Every series that was answered, in order.
    pub(super) fn told(&self) -> Vec<Told> {
        let of_answer = |(answer, it): (usize, &'a Answer)| {
            let with_place = move |(batch, key): (usize, &'a SeriesKey)| (key, Place { answer, batch });
            it.record.series.iter().enumerate().map(with_place)
        };
        let mut pieces: Vec<(&SeriesKey, Place)> = self.answers.iter().enumerate().flat_map(of_answer).collect();
        pieces.sort_by_key(|(key, _)| *key);
        let mut told: Vec<Told> = Vec::new();
        for (key, place) in pieces {
            match told.last_mut() {
                Some(last) if last.key == *key => last.places.push(place),
                _ => told.push(Told { key: key.clone(), places: vec![place] }),
            }
        }
        told
    }

    /// The requests that were answered, and when.
    pub(super) fn answered(&self) -> impl Iterator<Item = (Name, DateTime<Utc>)> {
        let seen = self.answers.iter().map(|answer| answer.record.request.observed_at);
        self.requests.iter().map(Arc::clone).zip(seen)
    }

    /// The requests whose answers listed a series. A history without signals lists none.
    pub(super) fn listing(&self, told: &Told) -> BTreeSet<Name> {
        let listing = told.places.iter().filter(|place| !self.empty.contains(&(place.answer, &told.key)));
        listing.map(|place| Arc::clone(&self.requests[place.answer])).collect()
    }

    /// Opens the answers that have the rows of some series.
    pub(super) fn open(&mut self, told: &[Told]) -> Result<()> {
        if self.open.len() > OPEN_ANSWERS {
            self.open.clear();
        }
        let has_rows = |told: &&Told| Table::of(told.key.source).is_some();
        for place in told.iter().filter(has_rows).flat_map(|told| &told.places) {
            if let Entry::Vacant(open) = self.open.entry(place.answer) {
                let answer = &self.answers[place.answer];
                let batches = Batches::open(answer, Rows::Typed, &mut self.files)?;
                let missing = || Error::Damaged { path: answer.folder.clone(), source: "an answer has no rows".into() };
                open.insert(batches.ok_or_else(missing)?);
            }
        }
        Ok(())
    }

    /// The bytes of the rows of a series.
    pub(super) fn bytes(&self, told: &Told) -> u64 {
        let length =
            |place: &Place| self.answers[place.answer].record.rows.get(&Rows::Typed)?.lengths.get(place.batch).copied();
        told.places.iter().filter_map(length).sum()
    }

    /// When the answer that counts for a series was complete.
    pub(super) fn observed_at(&self, told: &Told) -> DateTime<Utc> {
        self.answers[told.places[0].answer].record.request.observed_at
    }

    /// The places of a series, those of each telling together: a long list of articles or records comes in pieces; a
    /// history comes whole, or stands twice.
    pub(super) fn tellings<'t>(&self, told: &'t Told) -> impl Iterator<Item = &'t [Place]> {
        let table = Table::of(told.key.source);
        let is_continued = move |one: &Place, next: &Place| {
            one.answer == next.answer && matches!(table, Some(Table::Articles | Table::SentimentHistory))
        };
        told.places.chunk_by(is_continued)
    }

    /// What it is to a series that it is told once more with other values.
    pub(super) fn repetition(&self, told: &Told, telling: &[Place], rows: usize) -> Repeated {
        let answer = &self.answers[telling[0].answer];
        let (reject, observed_at) = (repetition(&told.key, answer), answer.record.request.observed_at);
        Repeated { reject, observed_at, records: rows as u64 }
    }

    /// What was said of a series whose answers are open. Where it was said twice the first counts; where they differ,
    /// that is a reject.
    pub(super) fn said(&self, told: &Told) -> Result<Option<(Said, Vec<Repeated>)>> {
        let Some(table) = Table::of(told.key.source) else { return Ok(None) };
        let mut tellings = self.tellings(told);
        let Some(first) = tellings.next() else { return Ok(None) };
        let rows = self.rows(table, first)?;
        let mut repeated = Vec::new();
        for other in tellings {
            let others = self.rows(table, other)?;
            if others != rows {
                repeated.push(self.repetition(told, other, others.num_rows()));
            }
        }
        Ok(Some((Said { table, observed_at: self.observed_at(told), rows }, repeated)))
    }

    /// The rows of a series, out of the pieces in which one answer gives them.
    fn rows(&self, table: Table, pieces: &[Place]) -> Result<RecordBatch> {
        let read = pieces.iter().map(|place| self.piece(*place)).collect::<Result<Vec<_>>>()?;
        let whole = match &read[..] {
            [only] => Ok(only.clone()),
            read => concat_batches(&table.listed_schema(), read),
        };
        whole.and_then(|rows| table.arranged(&rows)).map_err(|error| self.damaged(pieces[0], error))
    }

    /// What it means that rows are not what they should be.
    pub(super) fn damaged(&self, place: Place, error: ArrowError) -> Error {
        Error::Damaged { path: self.answers[place.answer].folder.clone(), source: error.into() }
    }

    /// A piece as the answer lists it.
    pub(super) fn piece(&self, place: Place) -> Result<RecordBatch> {
        self.open.get(&place.answer).expect("the answers of a series are open before it is read").get(place.batch)
    }
}

fn repetition(key: &SeriesKey, answer: &Answer) -> Reject {
    let SeriesKey { ticker, period, regime, .. } = key;
    let spelled = |part: Option<&'static str>| part.map_or_else(String::new, |part| format!(" {part}"));
    let (period, regime) = (spelled(period.map(|it| it.as_str())), spelled(regime.map(|it| it.as_str())));
    Reject {
        request: answer.record.request.request.clone(),
        ticker: Some(ticker.to_string()),
        pointer: format!("/{ticker}"),
        reason: format!("an earlier history gives the series{period}{regime} with other values, and is kept"),
        raw: String::new(),
    }
}
