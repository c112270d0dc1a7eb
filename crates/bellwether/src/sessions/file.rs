//! The CSV file of a calendar: a line per session, with its date, and when it opens and closes.

use std::path::Path;

use chrono::{DateTime, TimeDelta, Utc};

use super::ListedSession;
use crate::disk::small_csv::{self, CsvError, Items};

/// The size limit of a file. A century takes two megabytes.
const MOST_BYTES: u64 = 4 << 20;

/// The columns of the file.
const COLUMNS: [&str; 3] = ["date", "open", "close"];

/// How far from its date a session may open or close: time zones, and sessions that begin on the evening before.
const FARTHEST: TimeDelta = TimeDelta::hours(48);

/// The sessions of a file, in order.
pub(super) fn read(path: &Path) -> Result<Vec<ListedSession>, CsvError> {
    parse(&small_csv::read(path, MOST_BYTES)?)
}

/// The sessions of a text, in order.
pub(super) fn parse(text: &str) -> Result<Vec<ListedSession>, CsvError> {
    let mut sessions: Vec<ListedSession> = Vec::new();
    for (line, [date, open, close]) in Items::of(text, &COLUMNS)?.items {
        let refused = |what: String| CsvError::line(line, what);
        let session = session(date, open, close).map_err(refused)?;
        if let Some(last) = sessions.last()
            && (last.date >= session.date || last.close > session.open)
        {
            let what = format!("the session of {} does not come after that of {}", session.date, last.date);
            return Err(refused(what));
        }
        sessions.push(session);
    }
    if sessions.is_empty() { Err(CsvError::empty("sessions")) } else { Ok(sessions) }
}

fn session(date: &str, open: &str, close: &str) -> Result<ListedSession, String> {
    let date = small_csv::date(date)?;
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
