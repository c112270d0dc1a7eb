//! The members of a universe over time, such as those of an index: a dataset of today's members alone has survivorship bias.
//!
//! A CSV file has a line per ticker and membership, with its first and its last day; a membership without a last day goes on.

use std::collections::HashMap;
use std::ops::Range;
use std::path::Path;
use std::sync::Arc;

use chrono::{NaiveDate, NaiveTime};

use crate::disk::{digest, small_csv};
use crate::interface::Ticker;

/// The members of a universe.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Universe(Arc<Members>);

#[derive(Debug, PartialEq, Eq)]
struct Members {
    /// The memberships of each ticker, in naive microseconds, without their ends.
    of_tickers: HashMap<Ticker, Vec<Range<i64>>>,
    /// The digest of the file.
    digest: String,
}

impl Universe {
    /// The universe of a file; a sentence if it cannot be read, or has a line that is no membership.
    pub(crate) fn read(path: &Path) -> Result<Self, String> {
        Self::parse(&small_csv::read(path)?)
    }

    fn parse(text: &str) -> Result<Self, String> {
        let mut of_tickers: HashMap<Ticker, Vec<Range<i64>>> = HashMap::new();
        let mut lines: HashMap<Ticker, Vec<usize>> = HashMap::new();
        for (line, fields) in small_csv::items(text, "members", ["ticker", "from", "to"])? {
            let (ticker, span) = membership(fields).map_err(small_csv::at(line))?;
            let (known, lines) =
                (of_tickers.entry(ticker.clone()).or_default(), lines.entry(ticker.clone()).or_default());
            if let Some(other) = known.iter().position(|of| of.start < span.end && span.start < of.end) {
                let other = lines[other];
                let what = format!("`{ticker}` is a member then by line {other}: end one before the other begins");
                return Err(small_csv::at(line)(what));
            }
            known.push(span);
            lines.push(line);
        }
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

/// The ticker of a line, and from when to when it is a member.
fn membership([ticker, from, to]: [&str; 3]) -> Result<(Ticker, Range<i64>), String> {
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
