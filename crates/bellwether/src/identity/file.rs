//! The CSV file of an identity: a line per ticker and id, with the first and the last date on which the ticker has it.

use std::collections::HashMap;
use std::hash::Hash;
use std::path::Path;
use std::sync::Arc;

use chrono::NaiveDate;

use super::IdSpan;
use crate::disk::small_csv::{self, CsvError, Items};
use crate::interface::Ticker;

/// The size limit of a file: hundreds of thousands of lines.
const MOST_BYTES: u64 = 16 << 20;

/// The columns of the file.
const COLUMNS: [&str; 4] = ["ticker", "from", "to", "id"];

/// The longest id, in characters.
const LONGEST_ID: usize = 64;

/// The names of a file.
pub(super) fn read(path: &Path) -> Result<Vec<IdSpan>, CsvError> {
    parse(&small_csv::read(path, MOST_BYTES)?)
}

/// The names of a text.
pub(super) fn parse(text: &str) -> Result<Vec<IdSpan>, CsvError> {
    let items = Items::of(text, &COLUMNS)?.only(&COLUMNS)?.items;
    let mut named: Vec<(usize, IdSpan)> = Vec::with_capacity(items.len());
    for (line, fields) in items {
        named.push((line, of_fields(fields).map_err(|what| CsvError::line(line, what))?));
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
    if let Some((line, what)) = of_ticker.or(of_id) {
        return Err(CsvError::line(line, what));
    }
    if named.is_empty() { Err(CsvError::empty("tickers")) } else { Ok(named.into_iter().map(|(_, one)| one).collect()) }
}

fn of_fields([ticker, from, to, id]: [&str; 4]) -> Result<IdSpan, String> {
    let parsed = ticker.parse::<Ticker>();
    let ticker = parsed.map_err(|_| format!("`{ticker}` is not a ticker: write a symbol such as `XOM` or `BRK.B`"))?;
    let day = |text: &str| -> Result<Option<NaiveDate>, String> {
        if text.is_empty() { Ok(None) } else { small_csv::date(text).map(Some) }
    };
    let (from, to) = (day(from)?, day(to)?);
    if let (Some(from), Some(to)) = (from, to)
        && from > to
    {
        return Err(format!("{to} is before {from}: write the first date, then the last"));
    }
    if id.is_empty() || id.chars().count() > LONGEST_ID || id.contains(char::is_control) {
        return Err(format!("`{ticker}` has no id: write 1 to {LONGEST_ID} characters"));
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
