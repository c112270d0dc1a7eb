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
use arrow::buffer::BooleanBuffer;
use arrow::compute::filter_record_batch;
use arrow::datatypes::Int32Type;

use super::View;
use super::coverage::Coverage;
use super::edge::{Edge, digest};
use super::fold::cells::Spans;
use super::scope::SuspectRule;
use super::sealed::answers::{self, ANSWERS, SeriesAnswer};
use super::sealed::keys;
use crate::archive::merge_failed;
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

    /// Leaves out what an answer lists again, or withdraws; returns that, and whether anything is left.
    fn remain(&mut self, now: &DatedAnswer, table: Option<Table>) -> (Option<Self>, bool) {
        let mut ended = self.clone();
        if let Some(articles) = &mut self.articles {
            articles.retain(|article| now.oldest > self.from || (now.oldest == self.from && !now.edge.has(article)));
            let listed = ended.articles.iter().flatten().filter(|article| !articles.contains(*article));
            let listed: BTreeSet<String> = listed.cloned().collect();
            let is_any_left = !articles.is_empty();
            ended.articles = Some(listed).filter(|listed| !listed.is_empty());
            return (ended.articles.is_some().then_some(ended), is_any_left);
        }
        if now.oldest >= self.until {
            return (None, true);
        }
        self.until = now.oldest;
        // Of what is not listed, some may have slid out meanwhile.
        let is_any_left = self.from < now.oldest && !now.follows(&self.before, table);
        if is_any_left {
            ended.from = now.oldest;
        }
        (Some(ended), is_any_left)
    }
}

/// The suspect dates of the series of an archive.
#[derive(Clone, Debug, Default)]
pub(crate) struct Suspects {
    /// Those that are suspect now.
    now: HashMap<SeriesKey, Vec<SuspectDates>>,
    /// Those that were, and until when.
    before: HashMap<SeriesKey, Vec<(SuspectDates, i64)>>,
}

/// A time in which an article was suspect; without an end, it still is.
type Suspicion = (i64, Option<i64>);

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
        let is_any =
            || !self.suspects.now.is_empty() || (self.rule == SuspectRule::End && !self.suspects.before.is_empty());
        table == Table::Articles && is_any()
    }

    /// The values of some rows over time that count, and whether each ends because it was suspect from then on.
    pub(super) fn of_spans(&self, table: Table, rows: &RecordBatch, spans: Spans) -> (Spans, BooleanArray) {
        if !self.concerns(table) {
            let count = spans.rows.len();
            return (spans, BooleanArray::new(BooleanBuffer::new_unset(count), None));
        }
        let suspicions = self.suspects.of_articles(rows);
        let Spans { rows: places, from, until } = spans;
        let (mut counting, mut suspect) = (Spans::default(), Vec::new());
        for ((row, from), until) in places.iter().zip(from).zip(until) {
            let suspicions = &suspicions[row];
            let parts = match self.rule {
                SuspectRule::End => parts_without(suspicions, (from, until)),
                _ if suspicions.iter().any(|(_, ended)| ended.is_none()) => Vec::new(),
                _ => vec![(from, until, false)],
            };
            for (from, until, is_suspect) in parts {
                counting.rows.push(row..row + 1);
                counting.from.push(from);
                counting.until.push(until);
                suspect.push(is_suspect);
            }
        }
        (counting, suspect.into())
    }
}

/// The parts of a span in which an article was not suspect, each with whether it ends because it was from then on.
fn parts_without(suspicions: &[Suspicion], (mut from, until): (i64, Option<i64>)) -> Vec<(i64, Option<i64>, bool)> {
    let mut parts = Vec::new();
    for &(since, ended) in suspicions {
        if until.is_some_and(|until| since >= until) {
            break;
        }
        if since > from {
            parts.push((from, Some(since), true));
        }
        let Some(ended) = ended else { return parts };
        from = from.max(ended);
    }
    if until.is_none_or(|until| from < until) {
        parts.push((from, until, false));
    }
    parts
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
        suspects.now.retain(|_, dates| !dates.is_empty());
        Ok(suspects)
    }
}

impl Suspects {
    fn add(&mut self, answer: SeriesAnswer, last: &mut HashMap<(SeriesKey, Endpoint), LastAnswers>) {
        let SeriesAnswer { key, source, rows, covers, edge, observed_at, .. } = answer;
        let Coverage::Dates { from: oldest, until: i64::MAX } = covers else { return };
        let (table, now) = (key.table, DatedAnswer { oldest, rows, at: observed_at.timestamp_micros(), edge });
        if let Some(dates) = self.now.get_mut(&key) {
            let before = self.before.entry(key.clone()).or_default();
            dates.retain_mut(|dates| {
                let (ended, is_any_left) = dates.remain(&now, table);
                before.extend(ended.map(|ended| (ended, now.at)));
                is_any_left
            });
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
            self.now.entry(key).or_default().push(SuspectDates { from, until, since, before, articles });
        } else if !now.follows(&before, table) {
            // What the answer before that one listed as well may have slid out since.
            let is_rest_expected = |shorter: &DatedAnswer| shorter.oldest < oldest && now.follows(shorter, table);
            let until = shorter.filter(is_rest_expected).map_or(oldest, |shorter| shorter.oldest);
            self.now.entry(key).or_default().push(SuspectDates { from, until, since, before, articles: None });
        }
    }

    /// The series with suspect dates, each with these in words.
    pub(crate) fn in_words(&self) -> impl Iterator<Item = (&SeriesKey, String)> {
        self.now.iter().map(|(key, suspect)| {
            let words = suspect.iter().map(|dates| {
                let articles: Vec<&str> = dates.articles.iter().flatten().map(String::as_str).collect();
                format!("{} to {} since {} {}", dates.from, dates.until, dates.since, articles.join(" "))
            });
            (key, words.collect::<Vec<_>>().join(", "))
        })
    }

    /// When the date of a signal was contradicted; none if it is not suspect.
    pub(crate) fn since(&self, key: &SeriesKey, date: i64) -> Option<i64> {
        self.now.get(key)?.iter().filter(|dates| dates.have(date)).map(|dates| dates.since).min()
    }

    /// Known signals without those of suspect dates.
    pub(super) fn without_signals(&self, rows: RecordBatch) -> Result<RecordBatch> {
        if self.now.is_empty() {
            return Ok(rows);
        }
        let mut is_kept = vec![true; rows.num_rows()];
        let dates = dates(&rows);
        for (key, range) in keys::ranges(Table::Signals, &rows).map_err(merge_failed)? {
            range.filter(|row| dates.is_valid(*row)).for_each(|row| {
                is_kept[row] = self.since(&key, dates.value(row)).is_none();
            });
        }
        filter_record_batch(&rows, &BooleanArray::from(is_kept)).map_err(merge_failed)
    }

    /// Known articles without the suspect ones.
    pub(crate) fn without_articles(&self, rows: RecordBatch) -> Result<RecordBatch> {
        if self.now.is_empty() {
            return Ok(rows);
        }
        let is_kept: BooleanArray = self.since_of_articles(&rows).iter().map(|since| Some(since.is_none())).collect();
        filter_record_batch(&rows, &is_kept).map_err(merge_failed)
    }

    /// When each article was contradicted; none if it is not suspect.
    pub(crate) fn since_of_articles(&self, rows: &RecordBatch) -> Vec<Option<i64>> {
        let now = |of: &Vec<Suspicion>| of.iter().find(|(_, ended)| ended.is_none()).map(|(since, _)| *since);
        self.of_articles(rows).iter().map(now).collect()
    }

    /// When each article was suspect, in order.
    fn of_articles(&self, rows: &RecordBatch) -> Vec<Vec<Suspicion>> {
        let column = |name: &str| rows.column_by_name(name).expect("articles have the column");
        let [titles, links] = ["title", "link"].map(|name| column(name).as_string::<i32>());
        let copies = column("copy").as_primitive::<Int32Type>().values();
        let (tickers, dates) = (rows.column(0).as_dictionary::<Int32Type>(), dates(rows));
        let suspect = |name: Option<&str>| -> Vec<(&SuspectDates, Option<i64>)> {
            let Some(ticker) = name.and_then(|name| name.parse::<Ticker>().ok()) else { return Vec::new() };
            let key = SeriesKey { table: Some(Table::Articles), ticker, period: None, regime: None };
            let before = self.before.get(&key).into_iter().flatten().map(|(dates, ended)| (dates, Some(*ended)));
            before.chain(self.now.get(&key).into_iter().flatten().map(|dates| (dates, None))).collect()
        };
        let of_tickers: Vec<Vec<_>> = tickers.values().as_string::<i32>().iter().map(suspect).collect();
        let of_row = |(row, key): (usize, &i32)| {
            let of_date = of_tickers[*key as usize].iter().filter(|(suspect, _)| suspect.have(dates.value(row)));
            let is_it = |(suspect, _): &&(&SuspectDates, Option<i64>)| {
                let digest = || digest(titles.value(row), links.value(row), copies[row]);
                suspect.articles.as_ref().is_none_or(|articles| articles.contains(&digest()))
            };
            let mut all: Vec<Suspicion> =
                of_date.filter(is_it).map(|(suspect, ended)| (suspect.since, *ended)).collect();
            all.sort_unstable_by_key(|(since, _)| *since);
            all
        };
        tickers.keys().values().iter().enumerate().map(of_row).collect()
    }
}

fn dates(rows: &RecordBatch) -> &TimestampMicrosecondArray {
    rows.column_by_name("date").expect("signals and articles have dates").as_primitive()
}

#[cfg(test)]
mod tests {
    use super::parts_without;

    #[test]
    fn an_article_counts_again_once_it_is_listed_again() {
        let ever = (10, None);
        assert_eq!(parts_without(&[], ever), [(10, None, false)]);
        assert_eq!(parts_without(&[(20, None)], ever), [(10, Some(20), true)]);
        assert_eq!(parts_without(&[(20, Some(30))], ever), [(10, Some(20), true), (30, None, false)]);
        let twice = [(20, Some(30)), (40, None)];
        assert_eq!(parts_without(&twice, ever), [(10, Some(20), true), (30, Some(40), true)]);
        // A value that came, or went, meanwhile.
        assert_eq!(parts_without(&twice, (25, Some(35))), [(30, Some(35), false)]);
        assert_eq!(parts_without(&twice, (10, Some(20))), [(10, Some(20), false)]);
        assert_eq!(parts_without(&twice, (10, Some(25))), [(10, Some(20), true)]);
        assert_eq!(parts_without(&twice, (50, None)), []);
    }
}
