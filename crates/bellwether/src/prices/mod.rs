//! Closing prices: a session per date that the files have, and the close of each ticker.
//!
//! Rows may come in any order and from several files. What cannot be meant is refused with its file and row: a second
//! close of a ticker on a day, a close that is zero, negative or not finite, a date with a zone (whose day would be a
//! guess), a row without a date or ticker. A missing close is a hole and is counted. Names that no service can have are
//! passed over. The BLAKE3 of each file is kept, since closes that are adjusted afterwards rewrite the past as well.
//!
//! If a file says which tickers are one, prices belong to ids: on each session an id has the close of its ticker of that day.
//! Adjusted closes are one series whatever the name, and some vendors list all of it under the last one. So where the ticker
//! of the day has no close, that of another ticker of the id counts, unless the file gives that one to another id then.

pub(crate) mod horizon;
mod read;

use std::collections::HashMap;
use std::path::PathBuf;

use arrow::array::RecordBatch;
use arrow::datatypes::SchemaRef;
use chrono::NaiveDate;
use schemars::JsonSchema;
use serde::Serialize;

use crate::disk::digest;
use crate::error::{Error, ErrorKind, Result};
use crate::identity::Identity;
use crate::interface::Ticker;
use crate::plan::{PriceColumns, PricesPlan};
use crate::process::cancel::CancellationToken;
use crate::serve::Universe;
use crate::sessions::number;
use crate::text::human::group_digits;
use read::Reading;

pub(crate) use read::find;

/// Days since 1970.
pub(crate) type Day = i32;

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
pub struct Prices {
    sessions: Vec<Day>,
    /// The first sessions after times for which there are no prices.
    reopenings: Vec<usize>,
    pub(crate) tickers: HashMap<Ticker, u16>,
    /// Which of them are the same, and the numbers of their ids.
    identity: Identity,
    ids: HashMap<String, u16>,
    /// By ticker or id, then by session; not a number where there is none.
    pub(crate) closes: Vec<f64>,
    pub(crate) summary: PriceSummary,
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
        Self::new(sessions, tickers, closes, files)
    }

    fn new(sessions: Vec<Day>, tickers: HashMap<Ticker, u16>, closes: Vec<f64>, files: Vec<PriceFile>) -> Self {
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
            let begin = of_ticker.iter().position(|close| close.is_finite()).unwrap_or(of_ticker.len());
            let end = of_ticker.iter().rposition(|close| close.is_finite()).map_or(begin, |last| last + 1);
            for session in begin..end {
                alive[session] += 1;
                priced[session] += u32::from(of_ticker[session].is_finite());
            }
        }
        for (alive, priced) in alive.into_iter().zip(priced) {
            summary.holes += u64::from(alive - priced);
            summary.thin_sessions += u64::from(priced * 2 < alive);
        }
        let reopenings = reopenings(&sessions);
        Self { sessions, reopenings, tickers, identity: Identity::default(), ids: HashMap::new(), closes, summary }
    }

    /// The same prices by the ids that a file gives tickers.
    pub(crate) fn by_id(mut self, identity: &Identity) -> Result<Self> {
        let mut taken = self.tickers.len();
        for (id, tickers) in identity.ids() {
            if !tickers.iter().any(|ticker| self.tickers.contains_key(*ticker)) {
                continue;
            }
            let sessions = self.sessions.iter().enumerate();
            let closes: Vec<f64> =
                sessions.map(|(session, day)| self.close_of(identity, (id, &tickers), session, *day)).collect();
            taken += 1;
            if taken >= MOST {
                let found = self.tickers.len() + identity.ids().count();
                return Err(too_many("tickers and ids", found));
            }
            self.ids.insert(id.to_owned(), (taken - 1) as u16);
            self.closes.extend(closes);
        }
        self.identity = identity.clone();
        Ok(self)
    }

    /// The close of an id, which has some tickers, on a session and its day; not a number if there is none.
    fn close_of(&self, identity: &Identity, (id, tickers): (&str, &[&Ticker]), session: usize, day: Day) -> f64 {
        let close = |ticker: &Ticker| {
            let of_ticker = usize::from(*self.tickers.get(ticker)?) * self.sessions.len();
            Some(self.closes[of_ticker + session]).filter(|close| close.is_finite())
        };
        let Some(of_day) = identity.ticker(id, day) else { return f64::NAN };
        let others = tickers.iter().filter(|ticker| identity.id(ticker, day).is_none());
        close(of_day).or_else(|| others.copied().find_map(close)).unwrap_or(f64::NAN)
    }

    /// The dates of the sessions, in order.
    pub(crate) fn sessions(&self) -> &[Day] {
        &self.sessions
    }

    /// The tickers, in the order of their numbers; of an id, the last one.
    pub(crate) fn tickers(&self) -> Vec<&Ticker> {
        let mut numbered: Vec<(&Ticker, u16)> = self.tickers.iter().map(|(ticker, number)| (ticker, *number)).collect();
        let of_ids = self.identity.ids().filter_map(|(id, tickers)| Some((*tickers.last()?, *self.ids.get(id)?)));
        numbered.extend(of_ids);
        numbered.sort_unstable_by_key(|(_, number)| *number);
        numbered.into_iter().map(|(ticker, _)| ticker).collect()
    }

    /// What a ticker stands for.
    pub(crate) fn of_ticker<'a>(&'a self, ticker: &'a Ticker) -> TickerPrices<'a> {
        let is_listed = self.identity.is_given().then(|| self.identity.lists(ticker));
        TickerPrices { prices: self, ticker, number: self.tickers.get(ticker).copied(), is_listed }
    }

    /// Whether a ticker, or another one with its id, has any price.
    pub(crate) fn know(&self, ticker: &Ticker) -> bool {
        self.tickers.contains_key(ticker) || self.identity.ids_of(ticker).any(|id| self.ids.contains_key(id))
    }

    /// Whether a signal of a day is entered after a time for which there are no prices.
    pub(crate) fn lack(&self, day: Day, entry: usize) -> bool {
        self.reopenings.iter().any(|first| *first <= entry && self.sessions[*first] > day)
    }

    /// The return of a ticker from the close of one session to that of another; none if it lacks either, or if there are no
    /// prices for some time between.
    pub(crate) fn between(&self, ticker: u16, entry: usize, exit: usize) -> Option<f64> {
        if self.reopenings.iter().any(|first| entry < *first && *first <= exit) {
            return None;
        }
        let of_ticker = usize::from(ticker) * self.sessions.len();
        let [from, to] = [entry, exit].map(|session| self.closes[of_ticker + session]);
        (from.is_finite() && to.is_finite()).then(|| to / from - 1.0)
    }
}

/// The first sessions after times for which there are no prices, such as those of a file that is missing: after more than
/// two weeks, which is longer than any holidays, and five times as long as between most sessions. In the few times that an
/// exchange was closed for longer, nothing could be traded either.
fn reopenings(sessions: &[Day]) -> Vec<usize> {
    let mut steps: Vec<Day> = sessions.windows(2).map(|pair| pair[1] - pair[0]).collect();
    steps.sort_unstable();
    let Some(usual) = steps.get(steps.len() / 2) else { return Vec::new() };
    let longest: Day = 14.max(usual.saturating_mul(5));
    (1..sessions.len()).filter(|session| sessions[*session] - sessions[session - 1] > longest).collect()
}

/// What a ticker stands for, day by day.
#[derive(Clone, Copy)]
pub(crate) struct TickerPrices<'a> {
    prices: &'a Prices,
    ticker: &'a Ticker,
    /// Its own number.
    number: Option<u16>,
    /// Whether a file of ids names it; none without a file.
    is_listed: Option<bool>,
}

impl<'a> TickerPrices<'a> {
    fn id(&self, day: Day) -> Option<&'a str> {
        self.prices.identity.id(self.ticker, day)
    }

    /// The number of what it stands for on a day.
    pub(crate) fn number(&self, day: Day) -> Option<u16> {
        match self.is_listed {
            None => self.number,
            Some(false) => self.id(day).and(self.number),
            Some(true) => self.prices.ids.get(self.id(day)?).copied(),
        }
    }

    /// Whether the file gives it no id on a day.
    pub(crate) fn is_of_another(&self, day: Day) -> bool {
        self.is_listed.is_some() && self.id(day).is_none()
    }

    /// Whether what it stands for on a day has another ticker on a session.
    pub(crate) fn is_under_another(&self, day: Day, session: usize) -> bool {
        let Self { prices, ticker, .. } = self;
        let id = if self.is_listed == Some(true) { self.id(day) } else { None };
        id.is_some_and(|id| prices.identity.ticker(id, prices.sessions[session]) != Some(ticker))
    }
}

/// The date of a number of days since 1970.
pub(crate) fn date(day: Day) -> NaiveDate {
    NaiveDate::from_epoch_days(day).unwrap_or_default()
}

/// More than the audit holds.
fn too_many(what: &str, found: usize) -> Error {
    let (found, most) = (group_digits(found as u64), group_digits(MOST as u64 - 1));
    Error::new(ErrorKind::Data, format!("too many {what}: {found} of at most {most}"))
}

#[cfg(test)]
mod tests;
