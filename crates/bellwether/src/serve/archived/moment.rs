//! The instant of a request to an archive: that of the server, of the path, of the header, or now.
//!
//! An instant that is misread and answered with today's value spoils whatever is built on the answer, so nothing about it
//! is guessed: without an offset, or after now, it is refused.

use chrono::{DateTime, SubsecRound, TimeDelta, Utc};
use http::{HeaderMap, HeaderName};

use crate::time::{self, Clock, to_record};

/// The header of RFC 7089 that asks for an instant.
pub(super) const ACCEPT_DATETIME: HeaderName = HeaderName::from_static("accept-datetime");

/// The instant of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Moment {
    /// One that the server or the path fixes.
    Fixed(DateTime<Utc>),
    /// One that the header asks for.
    Negotiated(DateTime<Utc>),
    /// None: the latest state.
    Now,
}

impl Moment {
    /// The instant of a request, by the server's own one, that of the path, and the header. What is fixed by either of the
    /// first two is not negotiated, so the header does not count there.
    pub(super) fn of(
        pinned: Option<DateTime<Utc>>,
        path: Option<&str>,
        headers: &HeaderMap,
        clock: Clock,
    ) -> Result<Self, String> {
        let now = clock.now();
        let of_path = path.map(|text| of_path(text, now)).transpose()?;
        match (pinned, of_path) {
            (Some(pinned), Some(of_path)) if of_path != pinned => Err(format!(
                "this server answers as of {} alone: leave out `/at/…`, or start it without `--as-of`",
                to_record(pinned)
            )),
            (Some(fixed), _) | (None, Some(fixed)) => Ok(Self::Fixed(fixed)),
            (None, None) => of_header(headers, now),
        }
    }

    /// The instant; none for the latest state.
    pub(super) fn instant(self) -> Option<DateTime<Utc>> {
        match self {
            Self::Fixed(instant) | Self::Negotiated(instant) => Some(instant),
            Self::Now => None,
        }
    }
}

/// An instant in a path, of any precision.
fn of_path(text: &str, now: DateTime<Utc>) -> Result<DateTime<Utc>, String> {
    const FORM: &str = "write it as `/at/2026-03-31T20:00:00Z/…`";
    if !text.contains(':') {
        return Err(format!("`{text}` in the path is no instant: {FORM}"));
    }
    let instant = time::instant(text).map_err(|wrong| format!("`{text}` in the path: {wrong}"))?;
    past(instant, instant, now, "leave out `/at/…` for the latest state")
}

/// The instant that the header asks for: the end of its second, since a state within it is one of that second.
fn of_header(headers: &HeaderMap, now: DateTime<Utc>) -> Result<Moment, String> {
    const FORM: &str = "write it as `Accept-Datetime: Tue, 31 Mar 2026 20:00:00 GMT`";
    let mut given = headers.get_all(ACCEPT_DATETIME).iter();
    let Some(value) = given.next() else { return Ok(Moment::Now) };
    if given.next().is_some() {
        return Err(format!("several `Accept-Datetime`: {FORM}"));
    }
    let text = value.to_str().unwrap_or_default().trim();
    let second = text.ends_with("GMT").then(|| DateTime::parse_from_rfc2822(text).ok()).flatten();
    let second = second.ok_or_else(|| format!("`Accept-Datetime: {text}` is no instant in GMT: {FORM}"))?;
    let second = second.with_timezone(&Utc);
    let end = (second + TimeDelta::seconds(1) - TimeDelta::microseconds(1)).min(now);
    past(second, end, now, "leave out `Accept-Datetime` for the latest state").map(Moment::Negotiated)
}

/// An instant, unless what was asked for is in the future.
fn past(asked: DateTime<Utc>, meant: DateTime<Utc>, now: DateTime<Utc>, hint: &str) -> Result<DateTime<Utc>, String> {
    if asked > now {
        return Err(format!("{} is in the future, it is now {}: {hint}", to_record(asked), to_record(now)));
    }
    Ok(meant.trunc_subsecs(6))
}

#[cfg(test)]
mod tests {
    use chrono::{DateTime, Utc};
    use http::HeaderMap;

    use super::{ACCEPT_DATETIME, Moment};
    use crate::time::{Clock, instant};

    fn at(text: &str) -> DateTime<Utc> {
        instant(text).unwrap()
    }

    fn read(pinned: Option<&str>, path: Option<&str>, header: Option<&str>) -> Result<Moment, String> {
        let mut headers = HeaderMap::new();
        header.into_iter().for_each(|text| drop(headers.insert(ACCEPT_DATETIME, text.parse().unwrap())));
        Moment::of(pinned.map(at), path, &headers, Clock::Fixed(at("2026-11-20T21:30:00.25Z")))
    }

    #[test]
    fn the_server_fixes_the_instant_then_the_path_and_then_the_header() {
        let (march, april) = ("2026-03-31T20:00:00Z", "2026-04-01T20:00:00.5+02:00");
        let header = "Tue, 31 Mar 2026 20:00:00 GMT";
        assert_eq!(read(None, None, None), Ok(Moment::Now));
        assert_eq!(read(Some(march), None, Some("nonsense")), Ok(Moment::Fixed(at(march))));
        assert_eq!(read(Some(march), Some(march), None), Ok(Moment::Fixed(at(march))));
        assert_eq!(read(None, Some(april), Some(header)), Ok(Moment::Fixed(at("2026-04-01T18:00:00.5Z"))));
        assert_eq!(read(None, None, Some(header)), Ok(Moment::Negotiated(at("2026-03-31T20:00:00.999999Z"))));
        let second_of_now = read(None, None, Some("Fri, 20 Nov 2026 21:30:00 GMT"));
        assert_eq!(second_of_now, Ok(Moment::Negotiated(at("2026-11-20T21:30:00.25Z"))));
    }

    #[test]
    fn an_instant_that_may_be_misread_is_refused_with_a_sentence() {
        for (pinned, path, header, sentence) in [
            (None, Some("2026-03-31"), None, "`2026-03-31` in the path is no instant: write it as"),
            (
                None,
                Some("2026-03-31T20:00:00"),
                None,
                "no offset from UTC: for a time in UTC, write `2026-03-31T20:00:00Z`",
            ),
            (None, Some("2026-02-30T20:00:00Z"), None, "2026-02 has no day 30"),
            (None, Some("20260331200000"), None, "is no instant"),
            (None, Some("latest"), None, "is no instant"),
            (
                None,
                Some("2026-11-20T21:30:00.250001Z"),
                None,
                "is in the future, it is now 2026-11-20T21:30:00.250000Z",
            ),
            (None, None, Some("2026-03-31T20:00:00Z"), "is no instant in GMT: write it as `Accept-Datetime: Tue, 31"),
            (None, None, Some("Tue, 31 Mar 2026 20:00:00"), "is no instant in GMT"),
            (None, None, Some("Tue, 31 Mar 2026 20:00:00 +0200"), "is no instant in GMT"),
            (None, None, Some("Fri, 20 Nov 2026 21:30:01 GMT"), "is in the future"),
            (
                Some("2026-03-31T20:00:00Z"),
                Some("2026-03-30T20:00:00Z"),
                None,
                "this server answers as of 2026-03-31T20",
            ),
        ] {
            let refusal = read(pinned, path, header).expect_err(sentence);
            assert!(refusal.contains(sentence), "{refusal}");
        }
    }
}
