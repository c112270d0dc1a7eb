//! The model: stores every answer whole, and replays all of them for each query.

use std::collections::{BTreeMap, BTreeSet};

use bellwether::tables::Table;

use super::histories::Entry;
use super::news::Article;
use super::vendor::{Answer, Key, SeriesContents};

/// What the text of a null is.
const UNKNOWN: &str = "null";
const MINUTE: i64 = 60_000_000;
const DAY: i64 = 1440 * MINUTE;

/// The state of a cell in an archive, each column as text. Instants are in microseconds.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct CellState {
    /// Ticker, and period and regime if any.
    pub(super) key: Vec<String>,
    pub(super) cell: Vec<String>,
    pub(super) value: Vec<String>,
    pub(super) first_observed_at: i64,
    pub(super) observed_at: i64,
    pub(super) revisions: i64,
}

impl CellState {
    pub(super) fn forget_offset(&mut self, table: Table) {
        if let Some(offset) = offset_of(table) {
            UNKNOWN.clone_into(&mut self.value[offset]);
        }
    }
}

/// The changes of a pull.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Changed {
    pub(super) added: u64,
    pub(super) revised: u64,
    pub(super) withdrawn: u64,
    pub(super) listed: u64,
    pub(super) delisted: u64,
}

/// The answers of a pull.
#[derive(Debug)]
pub(super) struct Pull {
    /// When the signals were answered.
    pub(super) began: i64,
    /// When the news was answered, and the run sealed.
    pub(super) at: i64,
    pub(super) answers: Vec<Answer>,
}

impl Pull {
    fn observation_time(&self, answer: &Answer) -> i64 {
        if answer.target.starts_with("/a/") { self.began } else { self.at }
    }
}

/// Every answer of every pull.
#[derive(Debug, Default)]
pub(super) struct Model {
    pub(super) pulls: Vec<Pull>,
}

/// The state after replaying answers up to an instant.
#[derive(Default)]
pub(super) struct Replayed {
    cells: BTreeMap<(Table, Key, Vec<String>), Known>,
    /// The series listed in the last answer to each request.
    listed: BTreeMap<String, BTreeSet<Key>>,
    /// The changes of the last pull.
    pub(super) changed: Changed,
}

struct Known {
    date: Option<i64>,
    first: (i64, Vec<String>),
    /// `None` if it was withdrawn.
    latest: Option<(i64, Vec<String>)>,
    revisions: i64,
    /// When an article was last revised other than in its list, and how often it was.
    of_article: (i64, i64),
    /// The highest place that an article ever had.
    highest: Option<i64>,
}

/// A cell in an answer.
struct Row {
    date: Option<i64>,
    cell: Vec<String>,
    value: Vec<String>,
}

impl Model {
    /// The pulls by the clocks of their machines.
    pub(super) fn in_order(&self) -> Vec<&Pull> {
        let mut pulls: Vec<&Pull> = self.pulls.iter().collect();
        pulls.sort_by_key(|pull| pull.at);
        pulls
    }

    pub(super) fn replay(&self, until: i64) -> Replayed {
        let mut replayed = Replayed::default();
        let pulls = self.pulls.iter().filter(|pull| pull.at <= until);
        let mut answers: Vec<(i64, i64, &Answer)> = pulls
            .flat_map(|pull| pull.answers.iter().map(|answer| (pull.observation_time(answer), pull.at, answer)))
            .collect();
        answers.sort_by_key(|(observed, at, _)| (*observed, *at));
        let mut last = None;
        for (observed, at, answer) in answers {
            if last.replace(at) != Some(at) {
                replayed.changed = Changed::default();
            }
            if answer.body.is_none() {
                continue;
            }
            let now: BTreeSet<Key> = answer.tellings.iter().map(|(key, _)| *key).collect();
            let before = replayed.listed.insert(answer.target.clone(), now.clone()).unwrap_or_default();
            replayed.changed.listed += now.difference(&before).count() as u64;
            replayed.changed.delisted += before.difference(&now).count() as u64;
            for (key, said) in &answer.tellings {
                replayed.hear(observed, *key, said);
            }
        }
        replayed
    }
}

impl Replayed {
    fn hear(&mut self, at: i64, key: Key, said: &SeriesContents) {
        let (table, rows) = match said {
            SeriesContents::Signals(entries) => (Table::Signals, entries.iter().map(signal).collect()),
            SeriesContents::Articles(list) => (Table::Articles, self.articles(key, list)),
            SeriesContents::Summary(debtor, articles) => (Table::Summaries, vec![summary(debtor, articles)]),
            SeriesContents::Records(list) => (Table::SentimentHistory, records(list)),
        };
        let rows: Vec<Row> = rows;
        if rows.is_empty() {
            return;
        }
        let oldest = rows.iter().filter_map(|row| row.date).min();
        let oldest_record = rows.iter().filter_map(|row| record_day(row.cell.first()?)).min();
        let said: BTreeSet<Vec<String>> = rows.iter().map(|row| row.cell.clone()).collect();
        for Row { date, cell, mut value } in rows {
            let Some(known) = self.cells.get_mut(&(table, key, cell.clone())) else {
                let highest = place(table, &value);
                let first = (at, value.clone());
                let known =
                    Known { date, first, latest: Some((at, value)), revisions: 0, of_article: (at, 0), highest };
                self.cells.insert((table, key, cell), known);
                self.changed.added += 1;
                continue;
            };
            let is_same = || known.latest.as_ref().is_some_and(|(_, before)| is_same_article(before, &value));
            if table == Table::Articles && !is_same() {
                known.of_article = (at, known.of_article.1 + 1);
            }
            // The same instant with another offset is the same date.
            if let Some((_, before)) = known.latest.as_ref().filter(|_| table == Table::Signals)
                && before[0] != UNKNOWN
            {
                value[0].clone_from(&before[0]);
            }
            match &known.latest {
                Some((_, before)) if is_same_value(table, before, &value) => continue,
                Some((_, before)) => {
                    self.changed.revised += 1;
                    let offset = offset_of(table).filter(|offset| value[*offset] == UNKNOWN);
                    offset.into_iter().for_each(|offset| value[offset].clone_from(&before[offset]));
                }
                None => self.changed.added += 1,
            }
            known.highest = known.highest.max(place(table, &value));
            known.latest = Some((at, value));
            known.revisions += 1;
        }
        for ((_, _, cell), known) in self.cells.iter_mut().filter(|((of, series, _), _)| *of == table && *series == key)
        {
            let is_covered = match table {
                Table::Signals => known.date >= oldest,
                Table::Articles => known.date > oldest,
                Table::Summaries => true,
                Table::SentimentHistory => record_day(&cell[0]) >= oldest_record,
            };
            if is_covered && known.latest.is_some() && !said.contains(cell) {
                known.latest = None;
                known.revisions += 1;
                known.of_article.1 += 1;
                self.changed.withdrawn += 1;
            }
        }
    }

    /// Articles; the first listed of a date is its latest, or the last one if the list goes from the oldest date to the newest.
    fn articles(&self, key: Key, list: &[Article]) -> Vec<Row> {
        let days: Vec<i64> = list.iter().map(|article| article.day).collect();
        if days.is_sorted() && days.first() < days.last() {
            let reversed: Vec<Article> = list.iter().rev().cloned().collect();
            return self.newest_first(key, &reversed);
        }
        self.newest_first(key, list)
    }

    fn newest_first(&self, key: Key, list: &[Article]) -> Vec<Row> {
        let oldest = list.iter().map(|article| article.day).min();
        let mut rows: Vec<Row> = Vec::new();
        for (listed, article) in list.iter().enumerate() {
            let later = &list[listed + 1..];
            let copy = later.iter().filter(|other| is_same(article, other)).count();
            let repeats = later.iter().filter(|other| is_same(article, other) && other.score == article.score).count();
            let (copy, before) =
                if Some(article.day) == oldest { self.continue_numbers(key, list, article, copy) } else { (copy, 0) };
            let repeats = repeats + before;
            let place = later.iter().filter(|other| other.day == article.day).count() as i64;
            let shift = if Some(article.day) == oldest { self.shift(key, list, article.day) } else { 0 };
            rows.push(Row {
                date: Some(article.day * DAY),
                cell: article_cell(article, copy),
                value: vec![
                    (place + shift).to_string(),
                    number(article.score),
                    offset(article.offset),
                    repeats.to_string(),
                ],
            });
        }
        rows
    }

    /// The number of an article among those of its date, title and link, of which a list that begins within the date lacks the
    /// oldest; and how many with its score it lacks.
    fn continue_numbers(&self, key: Key, list: &[Article], article: &Article, copy: usize) -> (usize, usize) {
        let mut known = BTreeMap::new();
        for ((table, series, cell), state) in &self.cells {
            let is_it = (*table, *series) == (Table::Articles, key) && cell[..3] == article_cell(article, 0)[..3];
            if let Some((_, value)) = state.latest.as_ref().filter(|_| is_it) {
                known.insert(cell[3].parse::<usize>().expect("a number"), value[1].clone());
            }
        }
        let known: Vec<(usize, String)> = known.into_iter().collect();
        let listed: Vec<String> =
            list.iter().rev().filter(|other| is_same(article, other)).map(|other| number(other.score)).collect();
        let fits = |missing: &usize| {
            let rest = known.len() - missing;
            rest <= listed.len() && (0..rest).all(|place| known[missing + place].1 == listed[place])
        };
        let missing = (0..known.len()).find(fits).unwrap_or(known.len().saturating_sub(listed.len()));
        let before = known[..missing].iter().filter(|(_, score)| *score == number(article.score)).count();
        let copy = match known.get(missing + copy) {
            Some((copy, _)) => *copy,
            None => known.last().map_or(copy, |(last, _)| last + 1 + missing + copy - known.len()),
        };
        (copy, before)
    }

    /// The offset of positions within the oldest date of a list: no article gets a lower position than it ever had, and
    /// those that are not listed come first.
    fn shift(&self, key: Key, list: &[Article], day: i64) -> i64 {
        let of_day: Vec<&Article> = list.iter().filter(|article| article.day == day).collect();
        let mut listed = BTreeMap::new();
        for (number, article) in of_day.iter().enumerate() {
            let later = &of_day[number + 1..];
            let copy = later.iter().filter(|other| is_same(article, other)).count();
            let (copy, _) = self.continue_numbers(key, list, article, copy);
            listed.insert(article_cell(article, copy), later.len() as i64);
        }
        let is_of_day = |table: Table, series: Key, known: &Known| {
            table == Table::Articles && series == key && known.date == Some(day * DAY)
        };
        let known = self.cells.iter().filter(|((table, series, _), known)| is_of_day(*table, *series, known));
        let moved = known.map(|((_, _, cell), known)| {
            let highest = known.highest.expect("an article has a place");
            listed.get(cell).map_or(highest + 1, |place| highest - place)
        });
        moved.max().unwrap_or(0).max(0)
    }

    /// The articles, with their own revisions: those of score and offset.
    pub(super) fn articles_shown(&self, is_latest: bool) -> Vec<CellState> {
        let mut articles = self.cells(Table::Articles, is_latest);
        for article in &mut articles {
            let is_it = |(table, key, cell): &(Table, Key, Vec<String>)| {
                *table == Table::Articles && article.key == [key.ticker] && article.cell == *cell
            };
            let (_, known) = self.cells.iter().find(|(cell, _)| is_it(cell)).expect("it is known");
            article.revisions = known.of_article.1;
            if is_latest {
                article.observed_at = known.of_article.0;
            }
        }
        articles
    }

    /// The cells of a table, as of the instant of the replay.
    pub(super) fn cells(&self, table: Table, is_latest: bool) -> Vec<CellState> {
        let mut shown = Vec::new();
        for ((_, key, cell), known) in self.cells.iter().filter(|((of, ..), _)| *of == table) {
            let Some((observed_at, value)) = (if is_latest { known.latest.as_ref() } else { Some(&known.first) })
            else {
                continue;
            };
            let first_observed_at = known.first.0;
            let mut parts = vec![key.ticker.to_owned()];
            parts.extend(key.period.into_iter().flat_map(|period| [period.to_owned(), "neutral".to_owned()]));
            shown.push(CellState {
                key: parts,
                cell: cell.clone(),
                value: value.clone(),
                first_observed_at,
                observed_at: *observed_at,
                revisions: known.revisions,
            });
        }
        shown.sort();
        shown
    }
}

/// Whether two values agree. An offset that is not known says nothing.
fn is_same_value(table: Table, before: &[String], now: &[String]) -> bool {
    let is_offset = |place: usize| offset_of(table) == Some(place);
    before
        .iter()
        .zip(now)
        .enumerate()
        .all(|(place, (before, now))| before == now || (is_offset(place) && (before == UNKNOWN || now == UNKNOWN)))
}

/// Whether two values of an article have the same score and offset.
fn is_same_article(before: &[String], now: &[String]) -> bool {
    let is_unknown = before[2] == UNKNOWN || now[2] == UNKNOWN;
    before[1] == now[1] && (before[2] == now[2] || is_unknown)
}

/// The place of an article, which is its first value.
fn place(table: Table, value: &[String]) -> Option<i64> {
    (table == Table::Articles).then(|| value[0].parse().expect("a place"))
}

/// The place of the offset among the values of a table.
fn offset_of(table: Table) -> Option<usize> {
    match table {
        Table::Signals => Some(0),
        Table::Articles => Some(2),
        Table::Summaries | Table::SentimentHistory => None,
    }
}

fn number(value: Option<f64>) -> String {
    value.map_or_else(|| "null".to_owned(), |value| format!("{value:?}"))
}

fn offset(minutes: Option<i16>) -> String {
    minutes.map_or_else(|| "null".to_owned(), |minutes| minutes.to_string())
}

fn signal(entry: &Entry) -> Row {
    let date = entry.date * MINUTE;
    let value = vec![offset(entry.offset), entry.signal.to_owned(), number(Some(entry.confidence))];
    Row { date: Some(date), cell: vec![date.to_string()], value }
}

fn is_same(one: &Article, other: &Article) -> bool {
    (one.day, one.title, one.link) == (other.day, other.title, other.link)
}

fn article_cell(article: &Article, copy: usize) -> Vec<String> {
    vec![(article.day * DAY).to_string(), article.title.to_owned(), article.link.to_owned(), copy.to_string()]
}

fn summary(debtor: &str, articles: &[(i64, f64, String); 3]) -> Row {
    let mut value = vec![debtor.to_owned()];
    for (day, score, link) in articles {
        value.extend([(day * DAY).to_string(), number(Some(*score)), link.clone(), "null".to_owned()]);
    }
    Row { date: None, cell: Vec::new(), value }
}

fn record_day(record: &str) -> Option<String> {
    let record: serde_json::Value = serde_json::from_str(record).ok()?;
    record.get("date").and_then(serde_json::Value::as_str).map(|date| date[..10].to_owned())
}

fn records(list: &[String]) -> Vec<Row> {
    let date = record_day;
    let one = |(listed, record): (usize, &String)| {
        let later = &list[listed + 1..];
        let copy = later.iter().filter(|other| *other == record).count();
        let place = later.iter().filter(|other| date(other) == date(record)).count();
        Row { date: None, cell: vec![record.clone(), copy.to_string()], value: vec![place.to_string()] }
    };
    list.iter().enumerate().map(one).collect()
}
