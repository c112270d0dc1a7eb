//! Which tickers are the same security over time, as the file of a definition says.
//!
//! A vendor renames a ticker, lists its history under the new name, and ends the old one; or it gives the name of one company
//! to another. A CSV file says which ticker a security had when: each line gives a ticker an id from one date to another.
//! On a day, a ticker has one id at most, and an id one ticker.
//!
//! A name of the file, be it of a ticker or an id, means what the file says and nothing else: a ticker of the file has no id
//! on other days, and neither has a ticker that is only named like an id. Any other ticker is its own id.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::hash::Hash;
use std::path::Path;
use std::sync::Arc;

use chrono::NaiveDate;

use crate::disk::{digest, small_csv};
use crate::interface::Ticker;

/// Days since 1970.
type Day = i32;

/// Which tickers are the same security over time; none is another if no file says so.
#[derive(Clone, Debug, Default)]
pub struct Identity(Option<Arc<Names>>);

/// The names of a file.
#[derive(Debug)]
struct Names {
    /// By ticker, in the order of their days.
    tickers: BTreeMap<Ticker, Vec<IdSpan>>,
    /// By id, in the order of their days.
    ids: BTreeMap<Arc<str>, Vec<IdSpan>>,
    /// The digest of all this.
    digest: String,
}

/// A ticker and its id on some days.
#[derive(Clone, Debug, PartialEq, Eq)]
struct IdSpan {
    ticker: Ticker,
    id: Arc<str>,
    /// The first day; none for all before the last.
    from: Option<NaiveDate>,
    /// The last day; none for all after the first.
    to: Option<NaiveDate>,
}

impl IdSpan {
    fn first(&self) -> Day {
        self.from.map_or(Day::MIN, |date| date.to_epoch_days())
    }

    fn last(&self) -> Day {
        self.to.map_or(Day::MAX, |date| date.to_epoch_days())
    }
}

impl Identity {
    /// The names that a CSV file lists; a sentence if it cannot be read, a line gives no ticker an id, or two contradict each
    /// other.
    pub fn read(path: &Path) -> Result<Self, String> {
        parse(&small_csv::read(path)?).map(Self::of)
    }

    /// The names of a list without contradictions.
    fn of(mut named: Vec<IdSpan>) -> Self {
        named.sort_by_cached_key(|one| (one.ticker.clone(), one.first()));
        let mut bytes = Vec::new();
        for one in &named {
            bytes.extend_from_slice(format!("{},{},{},{}\n", one.ticker, one.first(), one.last(), one.id).as_bytes());
        }
        let (mut tickers, mut ids): (BTreeMap<_, Vec<IdSpan>>, BTreeMap<_, Vec<IdSpan>>) = Default::default();
        for one in named {
            ids.entry(Arc::clone(&one.id)).or_default().push(one.clone());
            tickers.entry(one.ticker.clone()).or_default().push(one);
        }
        ids.values_mut().for_each(|named| named.sort_by_key(IdSpan::first));
        Self(Some(Arc::new(Names { tickers, ids, digest: digest::of(&bytes) })))
    }

    /// Whether a definition names a file.
    pub fn is_given(&self) -> bool {
        self.0.is_some()
    }

    /// The digest of the names, if a file is named.
    pub fn digest(&self) -> Option<&str> {
        Some(&self.0.as_ref()?.digest)
    }

    /// The number of ids, and of tickers, that the file names.
    pub fn counts(&self) -> [u64; 2] {
        self.0.as_ref().map_or([0; 2], |names| [names.ids.len() as u64, names.tickers.len() as u64])
    }

    /// The id of a ticker on a day; none if the file names the ticker and gives it none then.
    pub(crate) fn id<'a>(&'a self, ticker: &'a Ticker, day: Day) -> Option<&'a str> {
        let Some(names) = &self.0 else { return Some(ticker.as_str()) };
        match names.tickers.get(ticker) {
            Some(named) => on(named, day).map(|one| &*one.id),
            None => (!names.ids.contains_key(ticker.as_str())).then(|| ticker.as_str()),
        }
    }

    /// The ticker that the file gives an id on a day.
    pub(crate) fn ticker(&self, id: &str, day: Day) -> Option<&Ticker> {
        on(self.0.as_ref()?.ids.get(id)?, day).map(|one| &one.ticker)
    }

    /// Whether the file names a ticker.
    pub(crate) fn lists(&self, ticker: &Ticker) -> bool {
        self.0.as_ref().is_some_and(|names| names.tickers.contains_key(ticker))
    }

    /// The ids of the file, each with its tickers in the order of their days.
    pub(crate) fn ids(&self) -> impl Iterator<Item = (&str, Vec<&Ticker>)> {
        let ids = self.0.iter().flat_map(|names| &names.ids);
        ids.map(|(id, named)| (&**id, named.iter().map(|one| &one.ticker).collect()))
    }

    /// An id that the file gives both of two tickers, be it on other days.
    pub(crate) fn shared_id(&self, one: &Ticker, other: &Ticker) -> Option<&str> {
        self.ids_of(one).find(|id| self.ids_of(other).any(|other| other == *id))
    }

    /// The ids that the file gives a ticker.
    pub(crate) fn ids_of(&self, ticker: &Ticker) -> impl Iterator<Item = &str> + use<'_> {
        let named = self.0.as_ref().and_then(|names| names.tickers.get(ticker));
        named.into_iter().flatten().map(|one| &*one.id)
    }

    /// All that the file says: the ticker, the first and last day, and the id.
    pub(crate) fn lines(&self) -> impl Iterator<Item = (&Ticker, [Option<NaiveDate>; 2], &str)> {
        let named = self.0.iter().flat_map(|names| names.tickers.values().flatten());
        named.map(|one| (&one.ticker, [one.from, one.to], &*one.id))
    }

    /// All tickers and ids of the file.
    pub(crate) fn names(&self) -> BTreeSet<&str> {
        let names = self.0.iter();
        names
            .flat_map(|names| names.tickers.keys().map(Ticker::as_str).chain(names.ids.keys().map(|id| &**id)))
            .collect()
    }
}

/// The one of some names, in the order of their days, that has a day.
fn on(named: &[IdSpan], day: Day) -> Option<&IdSpan> {
    let after = named.partition_point(|one| one.first() <= day);
    named[..after].last().filter(|one| day <= one.last())
}

/// The names of a text: a line per ticker and id, with the first and the last date on which the ticker has it.
fn parse(text: &str) -> Result<Vec<IdSpan>, String> {
    const COLUMNS: [&str; 4] = ["ticker", "from", "to", "id"];
    let items = small_csv::items(text, "tickers", COLUMNS)?;
    small_csv::refuse_others(text, &COLUMNS)?;
    let mut named: Vec<(usize, IdSpan)> = Vec::new();
    for (line, fields) in items {
        named.push((line, span(fields).map_err(small_csv::at(line))?));
    }
    let of_ticker = overlap(
        &named,
        |one| one.ticker.clone(),
        |one, other, days| format!("`{}` has the ids `{}` and `{}` {days}", one.ticker, other.id, one.id),
    );
    let of_id = overlap(
        &named,
        |one| Arc::clone(&one.id),
        |one, other, days| format!("`{}` and `{}` have the id `{}` {days}", other.ticker, one.ticker, one.id),
    );
    // A ticker that has an id twice has two ids.
    match of_ticker.or(of_id) {
        Some((line, what)) => Err(small_csv::at(line)(what)),
        None => Ok(named.into_iter().map(|(_, one)| one).collect()),
    }
}

fn span([ticker, from, to, id]: [&str; 4]) -> Result<IdSpan, String> {
    /// The longest id, in characters.
    const LONGEST: usize = 64;
    let parsed = ticker.parse::<Ticker>();
    let ticker = parsed.map_err(|_| format!("`{ticker}` is not a ticker: write a symbol such as `XOM` or `BRK.B`"))?;
    let day = |text: &str| (!text.is_empty()).then(|| small_csv::date(text)).transpose();
    let (from, to) = (day(from)?, day(to)?);
    if let (Some(from), Some(to)) = (from, to)
        && from > to
    {
        return Err(format!("{to} is before {from}: write the first date, then the last"));
    }
    if id.is_empty() || id.chars().count() > LONGEST || id.contains(char::is_control) {
        return Err(format!("`{ticker}` has no id: write 1 to {LONGEST} characters"));
    }
    Ok(IdSpan { ticker, id: id.into(), from, to })
}

/// The first line whose days are among those of another one with the same key, and what is wrong with it.
fn overlap<K: Hash + Eq>(
    named: &[(usize, IdSpan)],
    key: impl Fn(&IdSpan) -> K,
    what: impl Fn(&IdSpan, &IdSpan, &str) -> String,
) -> Option<(usize, String)> {
    let mut by_key: HashMap<K, Vec<&(usize, IdSpan)>> = HashMap::new();
    named.iter().for_each(|one| by_key.entry(key(&one.1)).or_default().push(one));
    let mut found = Vec::new();
    for of_key in by_key.values_mut() {
        of_key.sort_by_key(|(line, one)| (one.first(), *line));
        for pair in of_key.windows(2).filter(|pair| pair[0].1.last() >= pair[1].1.first()) {
            let [(before, other), (line, one)] =
                if pair[0].0 < pair[1].0 { [pair[0], pair[1]] } else { [pair[1], pair[0]] };
            let day = one.from.max(other.from).or_else(|| [one.to, other.to].into_iter().flatten().min());
            let days = day.map_or_else(|| "on all days".to_owned(), |day| format!("on {day}"));
            let remedy = format!("{days}, as line {before} says as well: end one before the other begins");
            found.push((*line, what(one, other, &remedy)));
        }
    }
    found.into_iter().min()
}

#[cfg(test)]
mod tests;
