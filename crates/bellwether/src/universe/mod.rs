//! The members of a universe over time, such as those of an index: a dataset of today's members alone has survivorship bias.
//!
//! A CSV file has a line per ticker and membership, with its first and its last day; a membership without a last day goes on.

use std::collections::HashMap;
use std::fmt;
use std::ops::Range;
use std::path::Path;
use std::sync::Arc;

use chrono::{NaiveDate, NaiveTime};

use crate::disk::digest;
use crate::disk::small_csv::{self, CsvError, Items};
use crate::interface::Ticker;

/// The size limit of a file: hundreds of thousands of lines.
const MOST_BYTES: u64 = 16 << 20;

/// The columns of the file.
const COLUMNS: [&str; 3] = ["ticker", "from", "to"];

/// The members of a universe.
#[derive(Clone)]
pub struct Universe(Arc<Members>);

struct Members {
    /// The memberships of each ticker, in naive microseconds, without their ends.
    of_tickers: HashMap<Ticker, Vec<Range<i64>>>,
    /// The digest of the file.
    digest: String,
}

impl Universe {
    /// The universe of a file.
    ///
    /// # Errors
    ///
    /// If it cannot be read, or has a line that is no membership.
    pub(crate) fn read(path: &Path) -> Result<Self, CsvError> {
        Self::parse(&small_csv::read(path, MOST_BYTES)?)
    }

    fn parse(text: &str) -> Result<Self, CsvError> {
        let items = Items::of(text, &COLUMNS)?.items;
        let mut of_tickers: HashMap<Ticker, Vec<(usize, Range<i64>)>> = HashMap::new();
        for (line, fields) in items {
            let (ticker, span) = of_fields(fields).map_err(|what| CsvError::line(line, what))?;
            let known = of_tickers.entry(ticker.clone()).or_default();
            if let Some((other, _)) = known.iter().find(|(_, of)| of.start < span.end && span.start < of.end) {
                let what = format!("`{ticker}` is a member then by line {other}: end one before the other begins");
                return Err(CsvError::line(line, what));
            }
            known.push((line, span));
        }
        if of_tickers.is_empty() {
            return Err(CsvError::empty("members"));
        }
        let without_lines = |spans: Vec<(usize, Range<i64>)>| spans.into_iter().map(|(_, span)| span).collect();
        let of_tickers = of_tickers.into_iter().map(|(ticker, spans)| (ticker, without_lines(spans))).collect();
        Ok(Self(Arc::new(Members { of_tickers, digest: digest::of(text.as_bytes()) })))
    }

    /// The memberships of a ticker, in naive microseconds, without their ends; none if it never was a member.
    pub(crate) fn spans(&self, ticker: &Ticker) -> &[Range<i64>] {
        self.0.of_tickers.get(ticker).map(Vec::as_slice).unwrap_or_default()
    }

    /// The tickers with a membership that touches a span of naive microseconds.
    pub(crate) fn members_within(&self, span: &Range<i64>) -> impl Iterator<Item = &Ticker> {
        let touches = |of: &Range<i64>| of.start < span.end && span.start < of.end;
        self.0.of_tickers.iter().filter(move |(_, spans)| spans.iter().any(touches)).map(|(ticker, _)| ticker)
    }

    /// The digest of its file.
    pub(crate) fn digest(&self) -> &str {
        &self.0.digest
    }
}

/// Two universes are equal if their files are.
impl PartialEq for Universe {
    fn eq(&self, other: &Self) -> bool {
        self.0.digest == other.0.digest
    }
}

impl Eq for Universe {}

impl fmt::Debug for Universe {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_tuple("Universe").field(&self.0.digest).finish()
    }
}

fn of_fields([ticker, from, to]: [&str; 3]) -> Result<(Ticker, Range<i64>), String> {
    let parsed = ticker.parse::<Ticker>();
    let ticker = parsed.map_err(|_| format!("`{ticker}` is not a ticker: write a symbol such as `XOM` or `BRK.B`"))?;
    let micros = |day: NaiveDate| day.and_time(NaiveTime::MIN).and_utc().timestamp_micros();
    if from.is_empty() {
        return Err(format!("`{ticker}` has no first day: write the day on which it joined in `from`"));
    }
    let from = small_csv::date(from)?;
    let end = match to {
        "" => i64::MAX,
        to => {
            let to = small_csv::date(to)?;
            if from > to {
                return Err(format!("{to} is before {from}: write the first day, then the last"));
            }
            to.succ_opt().map_or(i64::MAX, micros)
        }
    };
    Ok((ticker, micros(from)..end))
}

#[cfg(test)]
mod tests {
    use super::Universe;

    #[test]
    fn a_line_that_is_no_membership_is_refused_with_its_number_and_a_remedy() {
        for (text, expected) in [
            ("ticker,from\nXOM,2020-01-01\n", "it has no column `to`"),
            ("ticker,from,to\n", "it lists no members"),
            ("ticker,from,to\nXOM,,\n", "line 2: `XOM` has no first day"),
            ("ticker,from,to\nXOM,2020-01-01,\n,2020-01-01,\n", "line 3: `` is not a ticker"),
            ("ticker,from,to\nXOM,1/2/2020,\n", "line 2: `1/2/2020` is not a date: write `2026-11-20`"),
            ("ticker,from,to\nXOM,2020-01-02,2020-01-01\n", "line 2: 2020-01-01 is before 2020-01-02"),
            (
                "ticker,from,to\nXOM,2020-01-01,2020-06-30\nXOM,2020-06-30,\n",
                "line 3: `XOM` is a member then by line 2: end one before the other begins",
            ),
        ] {
            let refused = Universe::parse(text).unwrap_err().to_string();
            assert!(refused.starts_with(expected), "{refused}");
        }
        let known =
            Universe::parse("to,ticker,from,name\n2020-06-30,XOM,2020-01-01,Exxon\n,XOM,2020-07-01,\n").unwrap();
        assert_eq!(known.spans(&"XOM".parse().unwrap()).len(), 2);
        assert!(known.spans(&"CVX".parse().unwrap()).is_empty());
    }
}
