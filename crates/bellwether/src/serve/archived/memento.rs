//! The headers of RFC 7089 (Memento), and the list of the states that an answer had.
//!
//! An original address negotiates the instant itself, so it is its own time gate. A state has the instant of a run's seal,
//! and is found under `/at/INSTANT/…`; no address repeats the key.

use std::fmt::Write as _;

use chrono::{DateTime, Utc};
use http::header::{CONTENT_LOCATION, ETAG, LINK, VARY};
use http::{HeaderMap, HeaderName, HeaderValue};
use serde_json::json;
use url::form_urlencoded;

use crate::time::to_record;

const MEMENTO_DATETIME: HeaderName = HeaderName::from_static("memento-datetime");

/// The address of a request, without its instant and its key.
#[derive(Clone, Debug)]
pub(super) struct Original(String);

/// When the service was asked for something, over all runs.
#[derive(Clone, Copy, Debug)]
pub(super) struct Watch {
    /// When the first run was sealed that knows of it.
    pub(super) since: DateTime<Utc>,
    /// The first answer.
    pub(super) from: DateTime<Utc>,
    /// The last answer.
    pub(super) until: DateTime<Utc>,
}

/// The states of an answer, oldest first, and the one that is answered.
#[derive(Clone, Debug)]
pub(super) struct Mementos {
    pub(super) original: Original,
    pub(super) instants: Vec<DateTime<Utc>>,
    pub(super) current: DateTime<Utc>,
    /// The only instant that the server answers as of: its one state has the address of that.
    pub(super) pinned: Option<DateTime<Utc>>,
}

impl Original {
    /// The address of a path below `/at/…` or `/timemap`, and a query.
    pub(super) fn of(path: &str, query: &str) -> Self {
        let is_key = |pair: &&str| form_urlencoded::parse(pair.as_bytes()).any(|(name, _)| name == "api_key");
        let pairs: Vec<&str> = query.split('&').filter(|pair| !pair.is_empty() && !is_key(pair)).collect();
        let mark = if pairs.is_empty() { "" } else { "?" };
        Self(format!("{path}{mark}{}", pairs.join("&")))
    }

    fn at(&self, instant: DateTime<Utc>) -> String {
        format!("/at/{}{}", to_record(instant), self.0)
    }

    fn time_map(&self) -> String {
        format!("/timemap{}", self.0)
    }
}

impl Watch {
    /// Whether the service was asked on both sides of an instant: then a value that is answered was not rewritten by then.
    /// After the last answer, nothing is known.
    pub(super) fn header(self, instant: DateTime<Utc>) -> HeaderValue {
        let state = if instant <= self.until { "watched" } else { "not-watched" };
        value(format!("{state}; from={}; until={}", to_record(self.from), to_record(self.until)))
    }
}

impl Mementos {
    /// Adds the headers of the state that is answered.
    pub(super) fn add_to(&self, headers: &mut HeaderMap, etag: &str) {
        headers.insert(MEMENTO_DATETIME, value(http_date(self.current)));
        headers.insert(VARY, HeaderValue::from_static("accept-datetime"));
        headers.insert(ETAG, value(etag.to_owned()));
        headers.insert(CONTENT_LOCATION, value(self.address(self.current)));
        headers.insert(LINK, value(self.links()));
    }

    /// The address of a state.
    fn address(&self, state: DateTime<Utc>) -> String {
        self.original.at(self.pinned.unwrap_or(state))
    }

    fn links(&self) -> String {
        let mut links = format!(
            "<{0}>; rel=\"original timegate\", <{1}>; rel=\"timemap\"; type=\"application/link-format\"",
            self.original.0,
            self.original.time_map()
        );
        let index = self.instants.partition_point(|instant| *instant < self.current);
        let roles = [
            ("first", self.instants.first()),
            ("prev", index.checked_sub(1).and_then(|index| self.instants.get(index))),
            ("next", self.instants.get(index + 1)),
            ("last", self.instants.last()),
        ];
        let mut named: Vec<(DateTime<Utc>, String)> = vec![(self.current, String::new())];
        for (role, instant) in roles.into_iter().filter_map(|(role, instant)| Some((role, *instant?))) {
            match named.iter_mut().find(|(known, _)| *known == instant) {
                Some((_, roles)) => *roles = format!("{roles}{role} "),
                None => named.push((instant, format!("{role} "))),
            }
        }
        named.sort();
        for (instant, roles) in named {
            let _ = write!(links, ", {}", self.link(instant, &roles));
        }
        links
    }

    fn link(&self, instant: DateTime<Utc>, roles: &str) -> String {
        format!("<{}>; rel=\"{roles}memento\"; datetime=\"{}\"", self.address(instant), http_date(instant))
    }

    /// All states in the link format.
    pub(super) fn as_links(&self) -> String {
        let mut lines = vec![
            format!("<{}>; rel=\"original timegate\"", self.original.0),
            format!("<{}>; rel=\"self\"; type=\"application/link-format\"", self.original.time_map()),
        ];
        let last = self.instants.len().saturating_sub(1);
        lines.extend(self.instants.iter().enumerate().map(|(index, &instant)| {
            let first = if index == 0 { "first " } else { "" };
            let roles = if index == last { format!("{first}last ") } else { first.to_owned() };
            self.link(instant, &roles)
        }));
        lines.join(",\n") + "\n"
    }

    /// All states as JSON.
    pub(super) fn as_json(&self) -> String {
        let memento = |instant: &DateTime<Utc>| json!({"datetime": to_record(*instant), "uri": self.address(*instant)});
        let list: Vec<_> = self.instants.iter().map(memento).collect();
        let map = json!({
            "original_uri": self.original.0,
            "timegate_uri": self.original.0,
            "timemap_uri": self.original.time_map(),
            "mementos": {"first": list.first(), "last": list.last(), "list": list},
        });
        map.to_string()
    }
}

/// An instant in the form of HTTP, which has whole seconds.
fn http_date(instant: DateTime<Utc>) -> String {
    instant.format("%a, %d %b %Y %H:%M:%S GMT").to_string()
}

/// Addresses and instants are visible ASCII.
fn value(text: String) -> HeaderValue {
    HeaderValue::try_from(text).unwrap_or_else(|_| HeaderValue::from_static(""))
}

#[cfg(test)]
mod tests {
    use super::{Mementos, Original};
    use crate::time::instant;

    #[test]
    fn an_address_never_repeats_the_key() {
        for (query, address) in [
            ("", "/a"),
            ("api_key=secret", "/a"),
            ("period=1m&api_key=secret&regime=bear", "/a?period=1m&regime=bear"),
            ("api%5Fkey=secret&period=1m&&", "/a?period=1m"),
        ] {
            assert_eq!(Original::of("/a", query).0, address);
        }
    }

    #[test]
    fn links_name_the_neighbours_of_a_state() {
        let instants =
            ["2026-11-20T21:30:00.1Z", "2026-11-20T21:30:00.2Z", "2026-11-21T21:30:00Z"].map(|at| instant(at).unwrap());
        let mementos = |current: usize| Mementos {
            original: Original::of("/a", ""),
            instants: instants.to_vec(),
            current: instants[current],
            pinned: None,
        };
        let first = mementos(0).links();
        let of_first =
            "</at/2026-11-20T21:30:00.100000Z/a>; rel=\"first memento\"; datetime=\"Fri, 20 Nov 2026 21:30:00 GMT\"";
        let of_second = "</at/2026-11-20T21:30:00.200000Z/a>; rel=\"next memento\"";
        assert!(first.contains(of_first) && first.contains(of_second) && !first.contains("prev"), "{first}");
        let second = mementos(1).links();
        assert!(
            second.contains("rel=\"first prev memento\"") && second.contains("rel=\"next last memento\""),
            "{second}"
        );
        assert!(second.contains("00.200000Z/a>; rel=\"memento\""), "{second}");
        let last = mementos(2).links();
        assert!(last.contains("rel=\"last memento\"") && last.contains("rel=\"prev memento\""), "{last}");
        assert_eq!(mementos(0).as_links().lines().count(), 5);
        let pinned = Mementos { pinned: Some(instant("2026-11-20T22:00:00Z").unwrap()), ..mementos(1) };
        assert!(pinned.links().contains("</at/2026-11-20T22:00:00.000000Z/a>; rel=\"memento\""), "{}", pinned.links());
    }
}
