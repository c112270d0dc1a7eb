//! Many series of signals, and several operations that answer about one.

use super::*;
use crate::archive::Counts;
use crate::archive::sealed::layout::REJECTS;

/// Names of tickers, in order.
fn tickers() -> Vec<String> {
    (0..70).map(|number| format!("T{number:02}")).collect()
}

fn all(change: impl Fn(&str, &str) -> Vec<(i64, bool)>) -> Vec<(SeriesKey, RecordBatch)> {
    let periods = |ticker: String| {
        ["5d", "15d", "2m"].map(|period| (signals_of(&ticker, period), history(&change(&ticker, period))))
    };
    tickers().into_iter().flat_map(periods).collect()
}

#[test]
fn an_answer_about_many_tickers_stores_what_it_changed_of_each_and_that_it_was_given() {
    let place = Place::new(&[]);
    let told = |at, series| vec![Told::new(Endpoint::SignalsHistoryAll, "all", at, series)];
    let before = vec![(1, false), (2, false), (3, false)];
    let settled = place.run(100, told(90, all(|_, _| before.clone())));
    let changes = |added, revised, withdrawn| Counts { added, revised, withdrawn, ..Counts::default() };
    let found = &settled.run.seal().changes;
    assert_eq!(Counts { listed: 0, ..*found }, changes(630, 0, 0));
    assert_eq!((settled.known, found.listed), (0, 210));

    let settled = place.run(
        200,
        told(
            190,
            all(|ticker, period| match (ticker, period) {
                ("T03", "15d") => vec![(1, false), (2, true), (3, false)],
                ("T30", "2m") => vec![(1, false), (3, false)],
                ("T69", "5d") => vec![(1, false), (2, false), (3, false), (4, true)],
                _ => before.clone(),
            }),
        ),
    );
    let row = |ticker: &str, period: &str, day, change: &str, signal: Option<&str>| {
        (ticker.to_owned(), period.to_owned(), day, change.to_owned(), signal.map(str::to_owned), 190)
    };
    let expected = [
        row("T03", "15d", 2, "revised", Some("sell")),
        row("T30", "2m", 2, "withdrawn", None),
        row("T69", "5d", 4, "added", Some("sell")),
    ];
    assert_eq!(stored_signals(&settled.run), expected);
    assert_eq!(settled.run.seal().changes, changes(1, 1, 1));
    assert_eq!(settled.known, 630);
    let rows: Vec<u64> = settled.run.answers().unwrap().iter().map(|answer| answer.rows).collect();
    assert_eq!((rows.len(), rows.iter().sum::<u64>()), (210, 630));
}

#[test]
fn what_a_later_operation_of_a_run_says_is_compared_with_what_an_earlier_one_said() {
    let place = Place::new(&[]);
    let latest =
        |at, signal| Told::new(Endpoint::Signals, "latest", at, vec![(signals_of("A", "5d"), history(&[signal]))]);
    let whole = |at, signals: &[(i64, bool)]| {
        Told::new(Endpoint::SignalsHistoryAll, "whole", at, vec![(signals_of("A", "5d"), history(signals))])
    };
    let settled = place.run(100, vec![whole(80, &[(1, false), (2, false)]), latest(90, (1, true))]);
    let expected = [
        stored_signal(1, "added", Some("buy"), 80),
        stored_signal(1, "revised", Some("sell"), 90),
        stored_signal(2, "added", Some("buy"), 80),
    ];
    assert_eq!(stored_signals(&settled.run), expected, "in the order of their dates");
    assert_eq!(settled.known, 0);

    // What was said last is known: the history says nothing new of the first date, and the latest signal nothing at all.
    let settled = place.run(200, vec![whole(180, &[(1, true), (2, true)]), latest(190, (2, true))]);
    assert_eq!(stored_signals(&settled.run), [stored_signal(2, "revised", Some("sell"), 180)]);
    assert_eq!(settled.known, 2);
    let settled = place.run(300, vec![latest(280, (2, false)), whole(290, &[(2, true)])]);
    let expected = [stored_signal(2, "revised", Some("buy"), 280), stored_signal(2, "revised", Some("sell"), 290)];
    assert_eq!(stored_signals(&settled.run), expected);
}

#[test]
fn a_seal_has_the_text_of_a_definition_that_no_run_before_had() {
    let place = Place::new(&[]);
    let texts = ["one", "one", "two", "one"].into_iter().zip(1..).map(|(text, number)| {
        let run = place.begin_with(100 * number, text);
        tell(&run, Told::new(Endpoint::SignalsHistoryAll, "x", 100 * number + 1, Vec::new()));
        seal(&run, 100 * number + 2).run.seal().definition.clone().unwrap().text
    });
    let texts: Vec<Option<String>> = texts.collect();
    assert_eq!(texts, [Some("one".to_owned()), None, Some("two".to_owned()), None]);
}

#[test]
fn rejected_records_and_unknown_fields_are_kept_with_their_request() {
    let place = Place::new(&[]);
    let field = |endpoint, count| Drift { endpoint, field: "/*/model".to_owned(), count, example: "1".to_owned() };
    let reject = |reason: &str| Reject {
        request: "first".to_owned(),
        ticker: Some("A".to_owned()),
        pointer: "/A/items/0".to_owned(),
        reason: reason.to_owned(),
        raw: "{}".to_owned(),
    };
    let told = |request, at| {
        Told::new(Endpoint::SignalsHistoryAll, request, at, vec![(signals_of("A", "5d"), history(&[(1, false)]))])
    };
    let settled = place.run(
        100,
        vec![
            Told {
                rejects: vec![reject("no date"), reject("no signal")],
                drift: vec![field(Endpoint::SignalsHistoryAll, 2)],
                ..told("first", 80)
            },
            Told { drift: vec![field(Endpoint::SignalsHistoryAll, 3)], ..told("second", 90) },
        ],
    );
    assert_eq!(settled.run.seal().drift, [field(Endpoint::SignalsHistoryAll, 5)]);
    let requests = settled.run.requests().unwrap();
    let found: Vec<_> = requests.iter().map(|it| (it.rows, it.rejects, it.unknown_fields.clone())).collect();
    let of = |count| vec![field(Endpoint::SignalsHistoryAll, count)];
    assert_eq!(found, [(1, 2, of(2)), (1, 0, of(3))]);
    let rejects = rows(&settled.run, REJECTS, &Reject::schema());
    assert_eq!(texts(&rejects, "reason"), [Some("no date".to_owned()), Some("no signal".to_owned())]);
    assert_eq!(seconds(&rejects, "observed_at"), [80, 80]);
}
