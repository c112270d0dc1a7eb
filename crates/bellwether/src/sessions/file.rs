//! The CSV file of a calendar: a line per session, with its date, and when it opens and closes.

use std::fs::File;
use std::io::{self, Read};
use std::path::Path;

use chrono::{DateTime, NaiveDate, TimeDelta, Utc};

use super::ListedSession;

/// The size limit of a file. A century takes two megabytes.
const MOST_BYTES: u64 = 4 << 20;

/// The columns of the file.
const COLUMNS: [&str; 3] = ["date", "open", "close"];

/// How far from its date a session may open or close: time zones, and sessions that begin on the evening before.
const FARTHEST: TimeDelta = TimeDelta::hours(48);

/// Why a file is no calendar, in words.
#[derive(Debug, thiserror::Error)]
pub enum SessionsError {
    /// It cannot be read.
    #[error("cannot read it: {0}")]
    Read(#[from] io::Error),

    /// It is too large.
    #[error("it has more than {} MB", MOST_BYTES >> 20)]
    TooLong,

    /// It lacks a column.
    #[error("it has no column `{0}`: the first line names `date`, `open` and `close`")]
    Column(&'static str),

    /// It has no line after the first.
    #[error("it lists no sessions")]
    Empty,

    /// A line is no session.
    #[error("line {line}: {what}")]
    Line {
        /// Its number, from 1 on.
        line: usize,
        /// What is wrong with it.
        what: String,
    },
}

/// The sessions of a file, in order.
pub(super) fn read(path: &Path) -> Result<Vec<ListedSession>, SessionsError> {
    let mut bytes = Vec::new();
    File::open(path)?.take(MOST_BYTES + 1).read_to_end(&mut bytes)?;
    if bytes.len() as u64 > MOST_BYTES {
        return Err(SessionsError::TooLong);
    }
    let text = io::read_to_string(&bytes[..])?;
    parse(&text)
}

/// The sessions of a text, in order.
pub(super) fn parse(text: &str) -> Result<Vec<ListedSession>, SessionsError> {
    let mut lines = text.trim_start_matches('\u{feff}').lines().zip(1..);
    let names: Vec<&str> = lines.next().map(|(line, _)| fields(line).collect()).unwrap_or_default();
    let place = |name: &'static str| names.iter().position(|other| *other == name).ok_or(SessionsError::Column(name));
    let [date, open, close] = COLUMNS.map(place);
    let (date, open, close) = (date?, open?, close?);
    let mut sessions: Vec<ListedSession> = Vec::new();
    for (text, line) in lines.filter(|(text, _)| !text.trim().is_empty()) {
        let fields: Vec<&str> = fields(text).collect();
        let of = |place: usize| fields.get(place).copied().unwrap_or_default();
        let refused = |what: String| SessionsError::Line { line, what };
        let session = session(of(date), of(open), of(close)).map_err(refused)?;
        if let Some(last) = sessions.last()
            && (last.date >= session.date || last.close > session.open)
        {
            let what = format!("the session of {} does not come after that of {}", session.date, last.date);
            return Err(refused(what));
        }
        sessions.push(session);
    }
    if sessions.is_empty() { Err(SessionsError::Empty) } else { Ok(sessions) }
}

/// The fields of a line, without quotes: neither dates nor names of columns have commas.
fn fields(line: &str) -> impl Iterator<Item = &str> {
    line.split(',').map(|field| field.trim().trim_matches('"'))
}

fn session(date: &str, open: &str, close: &str) -> Result<ListedSession, String> {
    // A time of midnight may follow, as pandas writes it.
    let day = date.get(.."2026-11-20".len()).unwrap_or(date);
    let rest = date.strip_prefix(day).unwrap_or_default();
    let is_whole = rest.is_empty() || rest.get(1..).is_some_and(|time| time.starts_with("00:00:00"));
    let parsed = day.parse::<NaiveDate>().ok().filter(|_| is_whole);
    let date = parsed.ok_or_else(|| format!("`{date}` is not a date: write `2026-11-20`"))?;
    let (open, close) = (instant(open)?, instant(close)?);
    if open >= close {
        return Err(format!("the session of {date} closes before it opens"));
    }
    let noon = date.and_hms_opt(12, 0, 0).unwrap_or_default().and_utc();
    if (open - noon).abs() > FARTHEST || (close - noon).abs() > FARTHEST {
        return Err(format!("the session of {date} opens or closes more than a day away from its date"));
    }
    Ok(ListedSession { date, open, close })
}

/// An instant with its offset.
fn instant(text: &str) -> Result<DateTime<Utc>, String> {
    let parsed = DateTime::parse_from_rfc3339(&text.replacen(' ', "T", 1)).or_else(|_| {
        // As pandas has it: `2026-11-20 14:30:00+00:00` is RFC 3339 with a blank, `+0000` is not.
        DateTime::parse_from_str(text, "%Y-%m-%d %H:%M:%S%z")
    });
    let refused = |_| format!("`{text}` is not a time with an offset: write `2026-11-20T09:30:00-05:00`");
    parsed.map(|instant| instant.to_utc()).map_err(refused)
}
