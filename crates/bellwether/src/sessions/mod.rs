//! The sessions of a market: the days on which it trades, and when it opens and closes.
//!
//! Those of the New York Stock Exchange are built in. A definition may instead state hours and holidays, with every other
//! Monday to Friday a trading day, or name a file that lists the sessions. The file says nothing of days before its first
//! and after its last session: there, trading days are Monday to Friday, and the hours are unknown.

mod nyse;

use std::fmt;
use std::path::Path;
use std::sync::{Arc, LazyLock};

use chrono::{DateTime, NaiveDate, NaiveTime, TimeDelta, Utc};

use crate::definition::{OpeningHours, TimeOfDay, TradeAt};
use crate::disk::{digest, small_csv};
use crate::time::MICROS_PER_DAY;

/// Days since 1970.
type Day = i32;

/// The days that a calendar tells of: from 1970 to 2099.
const END: Day = 130 * 365 + 32;

/// The sessions of a market; by default those of the New York Stock Exchange.
#[derive(Clone, Debug)]
pub struct Sessions(Arc<Calendar>);

/// The days and hours of a market.
#[derive(Debug)]
struct Calendar {
    /// The trading days, in order.
    days: Vec<Day>,
    /// When they open and close.
    hours: KnownHours,
    /// The last listed session, if sessions are listed.
    ends: Option<NaiveDate>,
    /// The digest of all this.
    digest: String,
}

/// What is known of the hours of sessions.
#[derive(Debug)]
enum KnownHours {
    /// Nothing.
    Unknown,
    /// They are the same on each trading day, but for an exchange's early closes.
    Daily(OpeningHours, EarlyClose),
    /// They are listed, in order.
    Listed(Vec<Hours>),
}

/// The hour at which a session closes early on a day, if it does.
type EarlyClose = fn(NaiveDate) -> Option<u32>;

/// When a session opens and closes, in microseconds since 1970.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Hours {
    open: i64,
    close: i64,
}

/// A session as a file lists it.
#[derive(Clone, Copy, Debug)]
struct ListedSession {
    date: NaiveDate,
    hours: Hours,
}

impl Sessions {
    /// Monday to Friday, except for holidays.
    pub fn of_rule(hours: Option<OpeningHours>, holidays: &[NaiveDate]) -> Self {
        let hours = hours.map(|hours| (hours, (|_| None) as EarlyClose));
        Self::of_days(|date| !holidays.contains(&date), hours)
    }

    /// Those of the New York Stock Exchange.
    fn of_new_york() -> Self {
        let hours = "09:30-16:00 America/New_York".parse::<OpeningHours>().ok();
        Self::of_days(|date| !nyse::is_holiday(date), hours.map(|hours| (hours, nyse::early_close as EarlyClose)))
    }

    /// The days from Monday to Friday that are open.
    fn of_days(is_open: impl Fn(NaiveDate) -> bool, hours: Option<(OpeningHours, EarlyClose)>) -> Self {
        let days: Vec<Day> = (0..END).filter(|day| is_weekday(*day) && is_open(date(*day))).collect();
        let bytes = days.iter().flat_map(|day| day.to_le_bytes());
        let early = |day: &Day| Some(hours?.1(date(*day))? as u8);
        let in_words = hours.map_or_else(String::new, |(hours, _)| hours.to_string());
        let bytes = bytes.chain(in_words.into_bytes()).chain(days.iter().filter_map(early));
        let digest = digest::of(&bytes.collect::<Vec<u8>>());
        let hours = hours.map_or(KnownHours::Unknown, |(hours, early)| KnownHours::Daily(hours, early));
        Self(Arc::new(Calendar { days, hours, ends: None, digest }))
    }

    /// The sessions that a CSV file lists; a sentence if it cannot be read, or a line is no session.
    pub fn read(path: &Path) -> Result<Self, String> {
        parse(&small_csv::read(path)?).map(|listed| Self::of_list(&listed))
    }

    /// The sessions of a list that is in order and not empty.
    fn of_list(listed: &[ListedSession]) -> Self {
        let end = listed[listed.len() - 1].date;
        let (first, last) = (number(listed[0].date), number(end));
        let mut days: Vec<Day> = (0..first.min(END)).filter(|day| is_weekday(*day)).collect();
        days.extend(listed.iter().map(|session| number(session.date)));
        days.extend((last.saturating_add(1)..END).filter(|day| is_weekday(*day)));
        let hours: Vec<Hours> = listed.iter().map(|session| session.hours).collect();
        let of_days = days.iter().flat_map(|day| day.to_le_bytes());
        let of_hours = hours.iter().flat_map(|hours| [hours.open, hours.close]).flat_map(i64::to_le_bytes);
        let digest = digest::of(&of_days.chain(last.to_le_bytes()).chain(of_hours).collect::<Vec<u8>>());
        Self(Arc::new(Calendar { days, hours: KnownHours::Listed(hours), ends: Some(end), digest }))
    }

    /// Whether the hours of sessions are known.
    pub fn have_hours(&self) -> bool {
        !matches!(self.0.hours, KnownHours::Unknown)
    }

    /// The last session that is listed, if sessions are listed.
    pub fn end(&self) -> Option<NaiveDate> {
        self.0.ends
    }

    /// The digest of the calendar.
    pub fn digest(&self) -> &str {
        &self.0.digest
    }

    /// The number of trading days after a day, up to another one.
    pub(crate) fn count_after(&self, day: NaiveDate, until: NaiveDate) -> u32 {
        let index_of = |day: NaiveDate| self.0.days.partition_point(|other| *other <= number(day));
        index_of(until).saturating_sub(index_of(day)) as u32
    }

    /// The trading day that is so many after a day, the first being 1.
    pub(crate) fn nth_after(&self, day: Day, count: u32) -> Day {
        let next = self.0.days.partition_point(|other| *other <= day) + count as usize;
        let beyond = || day + days_until_nth_weekday(weekday(day), count.into()) as Day;
        next.checked_sub(1).and_then(|index| self.0.days.get(index).copied()).unwrap_or_else(beyond)
    }

    /// The trading day that is so many before a day, the first being 1; none before 1970.
    pub(crate) fn nth_before(&self, day: Day, count: usize) -> Option<Day> {
        let before = self.0.days.partition_point(|other| *other < day);
        before.checked_sub(count).map(|index| self.0.days[index])
    }

    /// The trading days from one day to another.
    pub(crate) fn between(&self, first: Day, last: Day) -> &[Day] {
        let days = &self.0.days;
        let (from, to) = (days.partition_point(|day| *day < first), days.partition_point(|day| *day <= last));
        &days[from..to.max(from)]
    }

    /// When a session first opens or closes after an instant; none if that is not known.
    pub(crate) fn first_trade_after(&self, instant: i64, at: TradeAt) -> Option<i64> {
        let calendar = &*self.0;
        let next = |hours: &Hours| {
            let (open, close) = (hours.open > instant, hours.close > instant);
            match at {
                TradeAt::Open | TradeAt::Either if open => Some(hours.open),
                TradeAt::Close | TradeAt::Either if close => Some(hours.close),
                _ => None,
            }
        };
        match &calendar.hours {
            KnownHours::Unknown => None,
            KnownHours::Daily(hours, early) => {
                // The clock of a place is never two days away from UTC.
                let days = calendar.days.get(calendar.days.partition_point(|day| *day < day_of(instant) - 2)..)?;
                days.iter().find_map(|day| next(&Hours::of(*hours, *early, *day)))
            }
            KnownHours::Listed(listed) => {
                // Of an instant before the first session nobody knows what came next.
                listed.first().filter(|first| first.open <= instant)?;
                listed[listed.partition_point(|hours| hours.close <= instant)..].iter().find_map(next)
            }
        }
    }
}

impl Hours {
    /// Opening hours on a day, on which a session may close early.
    fn of(hours: OpeningHours, early: EarlyClose, day: Day) -> Self {
        let day = date(day);
        let early = early(day).and_then(|hour| NaiveTime::from_hms_opt(hour, 0, 0));
        let close = early.map_or(hours.close, |time| TimeOfDay { time, ..hours.close });
        Self { open: hours.open.on(day).timestamp_micros(), close: close.on(day).timestamp_micros() }
    }
}

impl Default for Sessions {
    fn default() -> Self {
        static NEW_YORK: LazyLock<Sessions> = LazyLock::new(Sessions::of_new_york);
        NEW_YORK.clone()
    }
}

impl fmt::Display for Sessions {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.end() {
            Some(end) => write!(formatter, "as listed until {end}, then Monday to Friday"),
            None if *self == Self::default() => formatter.write_str("those of the New York Stock Exchange"),
            None => formatter.write_str("Monday to Friday, but for holidays"),
        }
    }
}

impl PartialEq for Sessions {
    fn eq(&self, other: &Self) -> bool {
        self.digest() == other.digest()
    }
}

/// The sessions of a text, in order: a line per session, with its date, and when it opens and closes.
fn parse(text: &str) -> Result<Vec<ListedSession>, String> {
    let mut sessions: Vec<ListedSession> = Vec::new();
    for (line, fields) in small_csv::items(text, "sessions", ["date", "open", "close"])? {
        let session = session(fields).map_err(small_csv::at(line))?;
        if let Some(last) = sessions.last()
            && (last.date >= session.date || last.hours.close > session.hours.open)
        {
            let what = format!("the session of {} does not come after that of {}", session.date, last.date);
            return Err(small_csv::at(line)(what));
        }
        sessions.push(session);
    }
    Ok(sessions)
}

fn session([date, open, close]: [&str; 3]) -> Result<ListedSession, String> {
    /// How far from its date a session may open or close: time zones, and sessions that begin on the evening before.
    const FARTHEST: TimeDelta = TimeDelta::hours(48);
    let date = small_csv::date(date)?;
    let (open, close) = (instant(open)?, instant(close)?);
    if open >= close {
        return Err(format!("the session of {date} closes before it opens"));
    }
    let noon = date.and_hms_opt(12, 0, 0).unwrap_or_default().and_utc();
    if (open - noon).abs() > FARTHEST || (close - noon).abs() > FARTHEST {
        return Err(format!("the session of {date} opens or closes more than a day away from its date"));
    }
    Ok(ListedSession { date, hours: Hours { open: open.timestamp_micros(), close: close.timestamp_micros() } })
}

/// An instant with its offset.
fn instant(text: &str) -> Result<DateTime<Utc>, String> {
    // As pandas has it: `2026-11-20 14:30:00+00:00` is RFC 3339 with a blank, `+0000` is not.
    let parsed = DateTime::parse_from_rfc3339(&text.replacen(' ', "T", 1))
        .or_else(|_| DateTime::parse_from_str(text, "%Y-%m-%d %H:%M:%S%z"));
    let refused = |_| format!("`{text}` is not a time with an offset: write `2026-11-20T09:30:00-05:00`");
    parsed.map(|instant| instant.to_utc()).map_err(refused)
}

/// How many days after a day, by its weekday from Monday on, is the Monday to Friday that is so many after it.
fn days_until_nth_weekday(weekday: i64, count: i64) -> i64 {
    // Saturday and Sunday are as old as Friday.
    let since_friday = (weekday - 4).max(0);
    count + 2 * ((weekday - since_friday + count) / 5) - since_friday
}

/// Days since 1970 of a date.
pub(crate) fn number(date: NaiveDate) -> Day {
    date.to_epoch_days()
}

fn date(day: Day) -> NaiveDate {
    NaiveDate::from_epoch_days(day).unwrap_or_default()
}

/// The weekday of a day, from Monday on.
fn weekday(day: Day) -> i64 {
    (i64::from(day) + 3).rem_euclid(7)
}

fn is_weekday(day: Day) -> bool {
    weekday(day) < 5
}

/// The day of an instant in microseconds.
pub(crate) fn day_of(micros: i64) -> Day {
    micros.div_euclid(MICROS_PER_DAY) as Day
}

#[cfg(test)]
mod tests;
