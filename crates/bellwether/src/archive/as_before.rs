//! Answers that a service says are as before: it was asked with the validator of an answer that the archive holds.
//!
//! Such an answer has no rows of its own. When its run is settled, those of the earlier answer are taken from what was known
//! after it, and from there on it is an answer like any other. So a validator is sealed only where these rows are the ones
//! that the service sent, to the last bit.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use arrow::array::RecordBatch;
use arrow::error::ArrowError;

use super::answers::{Answer, AnswerRecord, Oddities};
use super::sealed::answers::SeriesAnswer;
use super::sealed::catalog::Archive;
use super::sealed::sealed_run::SealedRun;
use super::settle::difference::rows_of_answer;
use crate::disk::file::FileError;
use crate::error::Result;
use crate::tables::{RequestRecord, SeriesKey, Table, Validator};

/// An answer that the archive holds whole.
#[derive(Debug)]
pub(crate) struct KnownAnswer {
    run: String,
    request: RequestRecord,
    /// The series in it, and those of them that are histories without signals.
    series: Vec<SeriesKey>,
    empty: Vec<SeriesKey>,
}

impl KnownAnswer {
    /// With what to ask whether it is still the same.
    pub(crate) fn validator(&self) -> &Validator {
        self.request.validator.as_ref().expect("a known answer has a validator")
    }

    /// The record of an answer that is as this one was, to a request of the same words.
    pub(super) fn again(&self, seen: RequestRecord) -> AnswerRecord {
        let RequestRecord { status, attempts, observed_at, .. } = seen;
        let Self { run, request, series, empty } = self;
        let Validator { histories, unusual, lenient, .. } = self.validator().clone();
        let drift = request.unknown_fields.clone();
        AnswerRecord {
            request: RequestRecord { status, attempts, observed_at, bytes: 0, ..request.clone() },
            series: series.clone(),
            empty: empty.clone(),
            rows: Default::default(),
            histories,
            lost: 0,
            unread: Default::default(),
            oddities: Oddities { drift, unusual, lenient, ..Oddities::default() },
            as_before: Some(run.clone()),
        }
    }
}

/// The answers that may be asked for with a validator, by request: those of the last whole run of each definition. What a run
/// stored is a difference from the runs that it knew: these must all be there, and no other one may have met it since.
pub(super) fn known_answers(archive: &Archive) -> Result<HashMap<String, Arc<KnownAnswer>>> {
    let mut known: HashMap<String, KnownAnswer> = HashMap::new();
    if archive.missing().next().is_some() {
        return Ok(HashMap::new());
    }
    let (lineage, mut seen) = (archive.lineage(), HashSet::new());
    let concurrent = lineage.concurrent();
    let runs = || archive.runs().iter().enumerate();
    let losses: Vec<usize> = runs().filter(|(_, run)| !run.seal().lost.is_empty()).map(|(index, _)| index).collect();
    for (index, run) in runs().rev().filter(|(_, run)| run.seal().in_part.is_none()) {
        let name = run.seal().definition.as_ref().map(|definition| &definition.name);
        let has_basis = losses.iter().all(|loss| lineage.knew(index, *loss)) && !concurrent.contains(&index);
        if seen.insert(name) && has_basis {
            add_known(&mut known, run)?;
        }
    }
    Ok(known.into_iter().map(|(request, answer)| (request, Arc::new(answer))).collect())
}

fn add_known(known: &mut HashMap<String, KnownAnswer>, run: &SealedRun) -> Result<()> {
    let is_later = |request: &RequestRecord| {
        known.get(&request.request).is_none_or(|other| other.request.observed_at < request.observed_at)
    };
    let requests = run.requests()?.into_iter().filter(|request| request.validator.is_some() && is_later(request));
    let of_run = |request: RequestRecord| {
        let (run, words) = (run.name().to_owned(), request.request.clone());
        (words, KnownAnswer { run, request, series: Vec::new(), empty: Vec::new() })
    };
    let mut found: HashMap<String, KnownAnswer> = requests.map(of_run).collect();
    if found.is_empty() {
        return Ok(());
    }
    for SeriesAnswer { key, request, rows, .. } in run.answers()? {
        let Some(answer) = found.get_mut(&*request) else { continue };
        if rows == 0 && key.table == Some(Table::Signals) {
            answer.empty.push(key.clone());
        }
        answer.series.push(key);
    }
    known.extend(found);
    Ok(())
}

/// The answers that others are as before of, by the index of the other one and by series.
#[derive(Debug, Default)]
pub(super) struct EarlierAnswers(HashMap<usize, HashMap<SeriesKey, SeriesAnswer>>);

impl EarlierAnswers {
    /// Finds them in an archive.
    pub(super) fn of(answers: &[Answer], archive: &Archive) -> Result<Self> {
        let mut of_runs: HashMap<&str, HashMap<&str, usize>> = HashMap::new();
        for (index, AnswerRecord { request, as_before, .. }) in answers.iter().map(|it| &*it.record).enumerate() {
            if let Some(run) = as_before {
                of_runs.entry(run).or_default().insert(&request.request, index);
            }
        }
        let mut found: HashMap<usize, HashMap<SeriesKey, SeriesAnswer>> = HashMap::new();
        for run in archive.runs().iter().filter(|run| of_runs.contains_key(run.name())) {
            let requests = &of_runs[run.name()];
            for answer in run.answers()? {
                if let Some(index) = requests.get(&*answer.request) {
                    found.entry(*index).or_default().insert(answer.key.clone(), answer);
                }
            }
        }
        Ok(Self(found))
    }

    /// What the earlier answer said of a series.
    pub(super) fn get(&self, index: usize, key: &SeriesKey, answer: &Answer) -> Result<&SeriesAnswer> {
        let gone = || FileError::damage(&answer.folder, "the archive no longer has an answer that is as before");
        self.0.get(&index).and_then(|of_answer| of_answer.get(key)).ok_or_else(gone)
    }
}

/// Whether an answer can be told from what is known after it, to the last bit.
pub(super) fn is_held_whole(
    answer: &SeriesAnswer,
    known: &RecordBatch,
    answered: &RecordBatch,
) -> Result<bool, ArrowError> {
    Ok(rows_of_answer(answer, known)?.columns() == answered.columns())
}
