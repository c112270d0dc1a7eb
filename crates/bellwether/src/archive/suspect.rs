//! Suspect dates: those that an answer listed, and that a later answer of the same operation contradicts without covering
//! them.
//!
//! An answer says nothing of dates before its oldest one: a window may slide forward, and a list may be cut off. But a window
//! moves about as far as time goes by, and a list of limited length drops no more than it gains. If the oldest date of an
//! answer is much later than that of the answer before, the dates in between were there by mistake (a signal of 1970, the
//! longer list of another ticker), or are missing by mistake (a truncated answer). They are suspect until an answer lists them
//! again. So are articles of a list's oldest date if the next list begins with the same date and has others there instead.

use std::collections::{BTreeSet, HashMap};

use arrow::array::{Array, AsArray, BooleanArray, RecordBatch, TimestampMicrosecondArray};
use arrow::compute::filter_record_batch;
use arrow::datatypes::Int32Type;

use super::View;
use super::coverage::Coverage;
use super::edge::{Edge, digest};
use super::error::ArchiveError;
use super::fold::cells::Spans;
use super::scope::SuspectRule;
use super::sealed::answers::{self, ANSWERS, SeriesAnswer};
use super::sealed::keys;
use crate::disk::file::FileError;
use crate::error::Result;
use crate::interface::{Endpoint, Ticker};
use crate::tables::{SeriesKey, Table};
use crate::time::MICROS_PER_DAY;

/// How much further than time a window may move at once: by a month, if it begins with one.
const MOST_AHEAD: i64 = 31 * MICROS_PER_DAY;

/// Dates of a series that are suspect, in microseconds.
#[derive(Clone, Debug, PartialEq, Eq)]
struct SuspectDates {
    /// The first.
    from: i64,
    /// The end, which is not suspect.
    until: i64,
    /// When the answer was given that contradicts them.
    since: i64,
    /// The answer that listed them.
    before: DatedAnswer,
    /// Of a single date, the articles that others replaced, by their digests; none for all that the dates have.
    articles: Option<BTreeSet<String>>,
}

impl SuspectDates {
    /// Whether a date is among them.
    fn have(&self, date: i64) -> bool {
        self.from <= date && date < self.until
    }

    /// Leaves out what an answer lists again, or withdraws; returns whether anything is left.
    fn remain(&mut self, now: &DatedAnswer, table: Option<Table>) -> bool {
        if let Some(articles) = &mut self.articles {
            articles.retain(|article| now.oldest > self.from || !now.edge.has(article));
            return now.oldest >= self.from && !articles.is_empty();
        }
        let is_listed = now.oldest < self.until;
        self.until = self.until.min(now.oldest);
        // Of what is not, some may have slid out meanwhile.
        !is_listed || (self.from < now.oldest && !now.follows(&self.before, table))
    }
}

/// The suspect dates of the series of an archive.
#[derive(Clone, Debug, Default)]
pub(crate) struct Suspects(HashMap<SeriesKey, Vec<SuspectDates>>);

/// An answer about a series.
#[derive(Clone, Debug, PartialEq, Eq)]
struct DatedAnswer {
    oldest: i64,
    rows: u64,
    at: i64,
    edge: Edge,
}

impl DatedAnswer {
    /// Whether what an earlier answer listed before this one begins may have slid out of a window, or off a list.
    fn follows(&self, before: &Self, table: Option<Table>) -> bool {
        let moved = self.oldest.saturating_sub(before.oldest);
        let is_list = table == Some(Table::Articles) && self.rows >= before.rows;
        is_list || moved <= (self.at - before.at).saturating_add(MOST_AHEAD)
    }
}

/// What an operation listed last of a series.
#[derive(Clone)]
struct LastAnswers {
    last: DatedAnswer,
    /// The answer before, if it began later.
    shorter: Option<DatedAnswer>,
}

/// What to do with the suspect dates of an archive.
#[derive(Clone, Debug)]
pub(super) struct SuspectFilter {
    rule: SuspectRule,
    suspects: Suspects,
}

impl SuspectFilter {
    /// That of a view, by a rule.
    pub(super) fn of(view: &View, rule: SuspectRule) -> Result<Self> {
        let suspects = if rule == SuspectRule::Keep { Suspects::default() } else { view.suspects()? };
        Ok(Self { rule, suspects })
    }

    /// Known signals without those of suspect dates.
    pub(super) fn signals(&self, rows: RecordBatch) -> Result<RecordBatch> {
        self.suspects.without_signals(rows)
    }

    /// Whether rows of a table may be suspect; then their texts are needed.
    pub(super) fn concerns(&self, table: Table) -> bool {
        table == Table::Articles && !self.suspects.0.is_empty()
    }

    /// The values of some rows over time that count.
    pub(super) fn of_spans(&self, table: Table, rows: &RecordBatch, spans: Spans) -> Spans {
        if !self.concerns(table) {
            return spans;
        }
        let since = self.suspects.since_of_articles(rows);
        let Spans { rows: places, from, until } = spans;
        let mut counting = Spans::default();
        for ((row, from), until) in places.iter().zip(from).zip(until) {
            let since = since[row];
            if since.is_some() && self.rule == SuspectRule::Drop {
                continue;
            }
            counting.rows.push(row..row + 1);
            counting.from.push(from);
            counting.until.push([until, since].into_iter().flatten().min());
        }
        counting
    }
}

impl View {
    /// The suspect dates.
    pub(crate) fn suspects(&self) -> Result<Suspects> {
        let mut last: HashMap<(SeriesKey, Endpoint), LastAnswers> = HashMap::new();
        let mut suspects = Suspects::default();
        for folder in self.archive().read_runs() {
            let count = folder.seal().rows(ANSWERS);
            let mut answers = Vec::new();
            for rows in folder.rows(ANSWERS, &answers::schema(), (0, count))? {
                let failed = |reason| FileError::damage(&folder.path().join(ANSWERS), reason);
                answers.extend(answers::records(&rows?).map_err(failed)?);
            }
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
        let SeriesAnswer { key, source, rows, covers, edge, observed_at, .. } = answer;
        let Coverage::Dates { from: oldest, until: i64::MAX } = covers else { return };
        let (table, now) = (key.table, DatedAnswer { oldest, rows, at: observed_at.timestamp_micros(), edge });
        if let Some(dates) = self.0.get_mut(&key) {
            dates.retain_mut(|dates| dates.remain(&now, table));
        }
        let known = last.entry((key.clone(), source)).or_insert(LastAnswers { last: now.clone(), shorter: None });
        // A run may be in two packs.
        if known.last.at > now.at {
            return;
        }
        let next = LastAnswers { last: now.clone(), shorter: Some(known.last.clone()).filter(|it| it.oldest > oldest) };
        let LastAnswers { last: before, shorter } = std::mem::replace(known, next);
        let (from, since) = (before.oldest, now.at);
        if let Some(articles) = before.edge.replaced_in(&now.edge).filter(|_| from == oldest) {
            let (until, articles) = (oldest.saturating_add(1), Some(articles));
            self.0.entry(key).or_default().push(SuspectDates { from, until, since, before, articles });
        } else if !now.follows(&before, table) {
            // What the answer before that one listed as well may have slid out since.
            let is_rest_expected = |shorter: &DatedAnswer| shorter.oldest < oldest && now.follows(shorter, table);
            let until = shorter.filter(is_rest_expected).map_or(oldest, |shorter| shorter.oldest);
            self.0.entry(key).or_default().push(SuspectDates { from, until, since, before, articles: None });
        }
    }

    /// The series with suspect dates, each with these in words.
    pub(crate) fn in_words(&self) -> impl Iterator<Item = (&SeriesKey, String)> {
        self.0.iter().map(|(key, suspect)| {
            let words = suspect.iter().map(|dates| {
                let articles: Vec<&str> = dates.articles.iter().flatten().map(String::as_str).collect();
                format!("{} to {} since {} {}", dates.from, dates.until, dates.since, articles.join(" "))
            });
            (key, words.collect::<Vec<_>>().join(", "))
        })
    }

    /// When the date of a signal was contradicted; none if it is not suspect.
    pub(crate) fn since(&self, key: &SeriesKey, date: i64) -> Option<i64> {
        self.0.get(key)?.iter().filter(|dates| dates.have(date)).map(|dates| dates.since).min()
    }

    /// Known signals without those of suspect dates.
    pub(super) fn without_signals(&self, rows: RecordBatch) -> Result<RecordBatch> {
        if self.0.is_empty() {
            return Ok(rows);
        }
        let mut is_kept = vec![true; rows.num_rows()];
        let dates = dates(&rows);
        for (key, range) in keys::ranges(Table::Signals, &rows).map_err(ArchiveError::merge)? {
            range.filter(|row| dates.is_valid(*row)).for_each(|row| {
                is_kept[row] = self.since(&key, dates.value(row)).is_none();
            });
        }
        filter_record_batch(&rows, &BooleanArray::from(is_kept)).map_err(ArchiveError::merge)
    }

    /// Known articles without the suspect ones.
    pub(crate) fn without_articles(&self, rows: RecordBatch) -> Result<RecordBatch> {
        if self.0.is_empty() {
            return Ok(rows);
        }
        let is_kept: BooleanArray = self.since_of_articles(&rows).iter().map(|since| Some(since.is_none())).collect();
        filter_record_batch(&rows, &is_kept).map_err(ArchiveError::merge)
    }

    /// When each article was contradicted.
    pub(crate) fn since_of_articles(&self, rows: &RecordBatch) -> Vec<Option<i64>> {
        let column = |name: &str| rows.column_by_name(name).expect("articles have the column");
        let [titles, links] = ["title", "link"].map(|name| column(name).as_string::<i32>());
        let copies = column("copy").as_primitive::<Int32Type>().values();
        let (tickers, dates) = (rows.column(0).as_dictionary::<Int32Type>(), dates(rows));
        let suspect = |name: Option<&str>| {
            let (table, ticker) = (Some(Table::Articles), name?.parse::<Ticker>().ok()?);
            self.0.get(&SeriesKey { table, ticker, period: None, regime: None })
        };
        let of_tickers: Vec<Option<&Vec<SuspectDates>>> =
            tickers.values().as_string::<i32>().iter().map(suspect).collect();
        let since = |(row, key): (usize, &i32)| {
            let of_date = of_tickers[*key as usize]?.iter().filter(|suspect| suspect.have(dates.value(row)));
            let is_it = |suspect: &&SuspectDates| {
                let digest = || digest(titles.value(row), links.value(row), copies[row]);
                suspect.articles.as_ref().is_none_or(|articles| articles.contains(&digest()))
            };
            of_date.filter(is_it).map(|suspect| suspect.since).min()
        };
        tickers.keys().values().iter().enumerate().map(since).collect()
    }
}

fn dates(rows: &RecordBatch) -> &TimestampMicrosecondArray {
    rows.column_by_name("date").expect("signals and articles have dates").as_primitive()
}
