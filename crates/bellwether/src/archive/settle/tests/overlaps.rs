//! Runs that overlap: an answer may come before others that are sealed already.

use super::listings::{listing, of, stored_listings};
use super::*;

fn history_of(at: i64, signals: &[(i64, bool)]) -> Told {
    Told::new(Endpoint::SignalsHistoryAll, "x", at, vec![(signals_of("A", "5d"), history(signals))])
}

/// Seals two runs that began at second 100: the other one first, although its answer came later.
fn overlap(place: &Place, own: Told, other: Told) -> Settled {
    let run = place.begin(100);
    let other_run = place.begin(100);
    tell(&run, own);
    tell(&other_run, other);
    seal(&other_run, 130);
    seal(&run, 140)
}

#[test]
fn a_later_answer_that_is_sealed_already_is_told_again_after_an_earlier_one() {
    let place = Place::new(&[]);
    place.run(90, vec![history_of(80, &[(1, false), (2, false), (3, false)])]);
    // The later answer changed nothing but the last date.
    let later = history_of(120, &[(1, false), (2, false), (3, true)]);
    let settled = overlap(&place, history_of(110, &[(1, true), (3, false), (4, false)]), later);
    let expected = [
        stored_signal(1, "revised", Some("sell"), 110),
        stored_signal(1, "revised", Some("buy"), 120),
        stored_signal(2, "withdrawn", None, 110),
        stored_signal(2, "added", Some("buy"), 120),
        stored_signal(4, "added", Some("buy"), 110),
        stored_signal(4, "withdrawn", None, 120),
    ];
    assert_eq!(stored_signals(&settled.run), expected);
}

#[test]
fn an_answer_after_those_that_are_sealed_already_is_told_once() {
    let place = Place::new(&[]);
    place.run(90, vec![history_of(80, &[(1, false)])]);
    let settled = overlap(&place, history_of(120, &[(1, true)]), history_of(110, &[(1, false)]));
    assert_eq!(stored_signals(&settled.run), [stored_signal(1, "revised", Some("sell"), 120)]);
    // Nor is anything told again that was answered before a run began.
    let settled = place.run(200, vec![history_of(190, &[(1, false)])]);
    assert_eq!(stored_signals(&settled.run), [stored_signal(1, "revised", Some("buy"), 190)]);
}

#[test]
fn what_a_later_answer_that_is_sealed_already_listed_is_told_again_after_an_earlier_one() {
    let place = Place::new(&[]);
    place.run(90, vec![of("x", 70, "AB"), of("y", 80, "A")]);
    // The later answer lists `A` and `B` as before, and `D` for the first time.
    let settled = overlap(&place, of("x", 110, "AC"), of("x", 120, "ABD"));
    let expected = [
        listing("B", "x", "withdrawn", 110),
        listing("B", "x", "added", 120),
        listing("C", "x", "added", 110),
        listing("C", "x", "withdrawn", 120),
    ];
    assert_eq!(stored_listings(&settled.run), expected);

    let place = Place::new(&[]);
    place.run(90, vec![of("x", 80, "AB")]);
    // The later answer itself says that `B` and `D` changed.
    let settled = overlap(&place, of("x", 110, "AD"), of("x", 120, "AD"));
    assert_eq!(stored_listings(&settled.run), [listing("B", "x", "withdrawn", 110), listing("D", "x", "added", 110)]);

    let place = Place::new(&[]);
    place.run(90, vec![of("x", 80, "AB")]);
    // The later answer of another request says nothing of this one.
    let settled = overlap(&place, of("x", 110, "A"), of("y", 120, "A"));
    assert_eq!(stored_listings(&settled.run), [listing("B", "x", "withdrawn", 110)]);
}

#[test]
fn an_answer_of_the_same_instant_is_no_later_one() {
    let place = Place::new(&[]);
    place.run(90, vec![of("x", 80, "AB")]);
    let settled = overlap(&place, of("x", 110, "AC"), of("x", 110, "AB"));
    assert_eq!(stored_listings(&settled.run), [listing("B", "x", "withdrawn", 110), listing("C", "x", "added", 110)]);

    let place = Place::new(&[]);
    place.run(90, vec![history_of(80, &[(1, false)])]);
    let settled = overlap(&place, history_of(110, &[(1, true)]), history_of(110, &[(1, false)]));
    assert_eq!(stored_signals(&settled.run), [stored_signal(1, "revised", Some("sell"), 110)]);
}
