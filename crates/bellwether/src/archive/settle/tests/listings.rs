//! Which request lists which series.

use super::*;
use crate::archive::sealed::answers::{LISTINGS, listing_schema};

/// A change of what is listed: ticker, request, change, and the second of its observation.
type Listed = (String, String, String, i64);

pub(super) fn listing(ticker: &str, request: &str, change: &str, at: i64) -> Listed {
    (ticker.to_owned(), request.to_owned(), change.to_owned(), at)
}

/// What a run stored of its listings.
pub(super) fn stored_listings(run: &SealedRun) -> Vec<Listed> {
    let rows = rows(run, LISTINGS, &listing_schema());
    let [tickers, requests, changes] =
        ["ticker", "request", "change"].map(|name| texts(&rows, name).into_iter().map(Option::unwrap));
    let cells = tickers.zip(requests).zip(changes).zip(seconds(&rows, "observed_at"));
    cells.map(|(((ticker, request), change), at)| (ticker, request, change, at)).collect()
}

/// An answer that lists a history of some tickers; those in lower case have no signals.
pub(super) fn of(request: &'static str, at: i64, tickers: &str) -> Told {
    let series = |ticker: char| {
        let signals: &[(i64, bool)] = if ticker.is_lowercase() { &[] } else { &[(1, false)] };
        (signals_of(&ticker.to_uppercase().to_string(), "5d"), history(signals))
    };
    Told::new(Endpoint::SignalsHistoryAll, request, at, tickers.chars().map(series).collect())
}

#[test]
fn a_series_is_no_longer_listed_by_a_request_whose_next_answer_lacks_it() {
    let place = Place::new(&[]);
    let settled = place.run(100, vec![of("x", 80, "ABCe"), of("y", 90, "CD")]);
    let added = |ticker, request, at| listing(ticker, request, "added", at);
    let withdrawn = |ticker, request, at| listing(ticker, request, "withdrawn", at);
    let expected =
        [added("A", "x", 80), added("B", "x", 80), added("C", "x", 80), added("C", "y", 90), added("D", "y", 90)];
    assert_eq!(stored_listings(&settled.run), expected, "an empty history is not listed");
    let changes = &settled.run.seal().changes;
    assert_eq!((changes.listed, changes.delisted), (5, 0));

    let settled = place.run(200, vec![of("x", 180, "BC")]);
    assert_eq!(stored_listings(&settled.run), [withdrawn("A", "x", 180)], "the other request was not answered");
    let changes = &settled.run.seal().changes;
    assert_eq!((changes.listed, changes.delisted), (0, 1));

    let settled = place.run(300, vec![of("x", 280, "aBDE"), of("y", 290, "")]);
    let expected = [
        withdrawn("C", "x", 280),
        withdrawn("C", "y", 290),
        added("D", "x", 280),
        withdrawn("D", "y", 290),
        added("E", "x", 280),
    ];
    assert_eq!(stored_listings(&settled.run), expected);

    let settled = place.run(400, vec![of("x", 380, "ABDE"), of("y", 390, "")]);
    assert_eq!(stored_listings(&settled.run), [added("A", "x", 380)]);
    let settled = place.run(500, vec![of("x", 480, "ABDE"), of("y", 490, "")]);
    assert_eq!(stored_listings(&settled.run), []);
}
