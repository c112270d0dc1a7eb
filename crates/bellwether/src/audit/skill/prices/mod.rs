//! Closing prices: a session per date that the files have, and the close of each ticker.
//!
//! Rows may come in any order and from several files. What cannot be meant is refused with its file and row: a second
//! close of a ticker on a day, a close that is zero, negative or not finite, a date with a zone (whose day would be a
//! guess), a row without a date or ticker. A missing close is a hole and is counted. Names that no service can have are
//! passed over. The BLAKE3 of each file is kept, since closes that are adjusted afterwards rewrite the past as well.

mod files;
mod table;

use std::collections::HashMap;
use std::ops::Range;
use std::path::{Path, PathBuf};

use arrow::array::RecordBatch;
use arrow::datatypes::SchemaRef;
use chrono::{Days, NaiveDate};
use schemars::JsonSchema;
use serde::Serialize;

use crate::cancel::CancellationToken;
use crate::digest;
use crate::error::Result;
use crate::interface::Ticker;
use crate::plan::{PriceColumns, PricesPlan};
use crate::serve::Universe;
use files::Reading;

pub(crate) use files::find;

/// Days since 1970.
pub(in crate::audit) type Day = i32;

/// The most sessions, and the most tickers.
const MOST: usize = 1 << 16;

/// Where prices come from.
#[derive(Clone, Debug)]
pub(crate) enum PriceSource {
    /// Files, and what a definition says of them.
    Files(Vec<PathBuf>, PricesPlan),
    /// Rows in memory, and what a definition says of them.
    Rows(PriceRows, PricesPlan),
    /// The demo universe.
    Demo(Box<Universe>),
}

/// Where prices were read from.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub struct PriceFile {
    /// A file, or the name of prices that are in no file.
    pub path: String,
    /// The BLAKE3 of its content.
    pub blake3: String,
}

/// Prices as rows in memory, such as those of a data frame.
#[derive(Clone, Debug)]
pub struct PriceRows {
    /// Their columns.
    pub schema: SchemaRef,
    /// The rows.
    pub batches: Vec<RecordBatch>,
}

/// What is known of the prices as a whole.
#[derive(Clone, Debug, Default, PartialEq, Serialize, JsonSchema)]
pub struct PriceSummary {
    /// Where they were read from.
    pub files: Vec<PriceFile>,
    /// Rows with a close.
    pub closes: u64,
    /// Tickers.
    pub tickers: u64,
    /// Sessions.
    pub sessions: u64,
    /// The first session.
    #[schemars(with = "String")]
    pub first: NaiveDate,
    /// The last session.
    #[schemars(with = "String")]
    pub last: NaiveDate,
    /// Missing closes between the first and the last close of each ticker.
    pub holes: u64,
    /// Sessions on which fewer than half of the tickers that trade then have a close.
    pub thin_sessions: u64,
    /// Whether they are adjusted for splits and dividends; none if the definition does not say.
    pub adjusted: Option<bool>,
}

/// Closing prices by ticker and session.
#[derive(Clone, Debug)]
pub(crate) struct Prices {
    sessions: Vec<Day>,
    tickers: HashMap<Ticker, u16>,
    /// By ticker, then by session; not a number where there is none.
    closes: Vec<f64>,
    pub(super) summary: PriceSummary,
}

/// A row of a file.
#[derive(Clone, Copy, Debug)]
struct Row {
    day: Day,
    ticker: u32,
    close: f64,
}

impl Prices {
    /// Reads prices.
    pub(crate) fn read(source: &PriceSource, stop: &CancellationToken) -> Result<Self> {
        let mut reading = Reading::default();
        let plan = match source {
            PriceSource::Files(paths, plan) => {
                paths.iter().try_for_each(|path| reading.add_file(path, &plan.columns, stop))?;
                plan
            }
            PriceSource::Rows(rows, plan) => {
                reading.add_rows(rows, &plan.columns, stop)?;
                plan
            }
            PriceSource::Demo(universe) => return Ok(Self::of_demo(universe)),
        };
        let mut prices = reading.finish()?;
        prices.summary.adjusted = plan.adjusted;
        Ok(prices)
    }

    fn of_demo(universe: &Universe) -> Self {
        let sessions: Vec<Day> = universe.trading_days().iter().map(|date| number(*date)).collect();
        let (mut tickers, mut closes) = (HashMap::new(), Vec::new());
        for (ticker, of_ticker) in universe.closing_prices() {
            tickers.insert(ticker, tickers.len() as u16);
            closes.extend(of_ticker);
        }
        let bytes: Vec<u8> = closes.iter().flat_map(|close| close.to_le_bytes()).collect();
        let files = vec![PriceFile { path: "the demo service".to_owned(), blake3: digest::of(&bytes) }];
        Self::of(sessions, tickers, closes, files)
    }

    fn of(sessions: Vec<Day>, tickers: HashMap<Ticker, u16>, closes: Vec<f64>, files: Vec<PriceFile>) -> Self {
        let mut summary = PriceSummary {
            files,
            closes: closes.iter().filter(|close| close.is_finite()).count() as u64,
            tickers: tickers.len() as u64,
            sessions: sessions.len() as u64,
            first: sessions.first().map_or(NaiveDate::MIN, |day| date(*day)),
            last: sessions.last().map_or(NaiveDate::MIN, |day| date(*day)),
            ..PriceSummary::default()
        };
        let (mut alive, mut priced) = (vec![0_u32; sessions.len()], vec![0_u32; sessions.len()]);
        for of_ticker in closes.chunks(sessions.len().max(1)) {
            let has_close = |close: &f64| close.is_finite();
            let (Some(first), Some(last)) =
                (of_ticker.iter().position(has_close), of_ticker.iter().rposition(has_close))
            else {
                continue;
            };
            for session in first..=last {
                alive[session] += 1;
                priced[session] += u32::from(of_ticker[session].is_finite());
            }
        }
        summary.holes = alive.iter().zip(&priced).map(|(alive, priced)| u64::from(alive - priced)).sum();
        summary.thin_sessions =
            alive.iter().zip(&priced).filter(|(alive, priced)| **priced * 2 < **alive).count() as u64;
        Self { sessions, tickers, closes, summary }
    }

    /// The dates of the sessions, in order.
    pub(in crate::audit) fn sessions(&self) -> &[Day] {
        &self.sessions
    }

    /// The tickers, in the order of their numbers.
    pub(super) fn tickers(&self) -> Vec<&Ticker> {
        let mut numbered: Vec<(&Ticker, u16)> = self.tickers.iter().map(|(ticker, number)| (ticker, *number)).collect();
        numbered.sort_unstable_by_key(|(_, number)| *number);
        numbered.into_iter().map(|(ticker, _)| ticker).collect()
    }

    /// The number of a ticker.
    pub(super) fn ticker(&self, ticker: &Ticker) -> Option<u16> {
        self.tickers.get(ticker).copied()
    }

    /// The same prices with other closes on some sessions: of a place among all closes, and the close.
    pub(in crate::audit) fn with_closes(&self, sessions: Range<usize>, other: impl Fn(usize, f64) -> f64) -> Self {
        let mut prices = self.clone();
        let count = self.sessions.len();
        for (place, close) in
            prices.closes.iter_mut().enumerate().filter(|(place, _)| sessions.contains(&(place % count)))
        {
            *close = other(place, *close);
        }
        prices
    }

    /// The return of a ticker from the close of one session to that of another; none if it lacks either.
    pub(super) fn between(&self, ticker: u16, entry: usize, exit: usize) -> Option<f64> {
        let of_ticker = usize::from(ticker) * self.sessions.len();
        let [from, to] = [entry, exit].map(|session| self.closes[of_ticker + session]);
        (from.is_finite() && to.is_finite()).then(|| to / from - 1.0)
    }
}

/// A date as a number of days since 1970.
pub(super) fn number(date: NaiveDate) -> Day {
    (date - NaiveDate::default()).num_days() as Day
}

/// The date of a number of days since 1970.
pub(in crate::audit) fn date(day: Day) -> NaiveDate {
    let (since, days) = (NaiveDate::default(), Days::new(day.unsigned_abs().into()));
    let date = if day < 0 { since.checked_sub_days(days) } else { since.checked_add_days(days) };
    date.unwrap_or_default()
}

/// A path as it is shown.
fn shown(path: &Path) -> String {
    path.display().to_string()
}
