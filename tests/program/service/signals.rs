//! The signals of every operation: their shapes at each change set, their parameters, and their rewrites.

use std::collections::{BTreeMap, BTreeSet};

use bellwether::interface::{ChangeSet, Period, Regime};
use bellwether::serve::Universe;
use chrono::NaiveDate;
use serde_json::{Value, json};

use super::Start;
use crate::support::service::{Server, dates, day, fields, list, text, universe};

const WITH_OFFSET: &str = "T00:00:00+00:00";
const WITHOUT_OFFSET: &str = "T00:00:00";

/// Entries as in section 2.3, newest first, one per trading day of five years, with or without an offset.
fn check_entries(entries: &Value, time: &str) {
    let dates = dates(entries);
    assert_eq!(dates.len(), 1_256);
    assert_eq!((dates[0], dates[1_255]), (&*format!("2026-11-20{time}"), &*format!("2021-11-22{time}")));
    assert!(dates.is_sorted_by(|newer, older| newer > older));
    for entry in list(entries) {
        assert_eq!(fields(entry), ["confidence", "date", "signal"]);
        let date = text(&entry["date"]);
        assert!(date.len() == 10 + time.len() && date.ends_with(time), "{date}");
        assert!(matches!(text(&entry["signal"]), "buy" | "sell"));
        assert!(entry["confidence"].as_f64().is_some_and(|confidence| (0.5..=1.0).contains(&confidence)));
    }
}

#[test]
fn a_sector_returns_the_histories_of_its_tickers() {
    sector(&Server::of);
}

pub(super) fn sector(start: Start<'_>) {
    let server = start(ChangeSet::A);
    let sector = server.json("/api/signals-history-all?sector=energy&period=1m&regime=bull");
    let expected: Vec<String> = universe().tickers_of("energy").map(ToString::to_string).collect();
    assert_eq!(fields(&sector), expected);
    assert!(expected.len() > 20 && expected.contains(&"XOM".to_owned()));
    for (ticker, history) in sector.as_object().expect("as the interface has it") {
        assert_eq!(fields(history), ["period", "predictions", "regime", "ticker"]);
        assert_eq!(
            (text(&history["ticker"]), text(&history["period"]), text(&history["regime"])),
            (&**ticker, "1m", "bull")
        );
        check_entries(&history["predictions"], WITH_OFFSET);
    }
}

#[test]
fn every_sector_has_tickers_and_is_matched_exactly() {
    let server = Server::of(ChangeSet::All);
    let available = server.json("/api/tickers/available");
    let available: BTreeSet<&str> = list(&available).iter().map(text).collect();
    assert!(available.len() == 500 && available.contains("BRK.B") && available.contains("BF.B"));
    let mut of_sectors = BTreeSet::new();
    for sector in universe().sectors() {
        let members = server.members(&format!("/api/signals-history-all?sector={sector}"));
        assert!(members.keys().all(|ticker| of_sectors.insert(ticker.clone())), "{sector}");
    }
    assert!(of_sectors.iter().map(String::as_str).eq(available));
    for other in ["Energy", "energy%20", "", "unknown", "%ff", "%00"] {
        assert_eq!(server.json(&format!("/api/signals-history-all?sector={other}")), json!({}), "{other:?}");
    }
}

#[test]
fn the_batch_for_all_gives_each_ticker_its_own_period_and_regime() {
    batch(&Server::of);
    let odd = Server::of(ChangeSet::C).get("/api/signals-history-batched-all?period=nonsense&limit=0");
    assert_eq!(odd.status, 200, "parameters that it does not have are ignored");
}

pub(super) fn batch(start: Start<'_>) {
    let server = start(ChangeSet::C);
    let members = server.members("/api/signals-history-batched-all");
    assert_eq!(members.len(), 500);
    let mut kinds = BTreeSet::new();
    for (place, (ticker, history)) in members.iter().enumerate() {
        // The other histories of these 42 MB are alike.
        if place < 10 || ticker == "BRK.B" {
            let history: Value = serde_json::from_str(history.get()).expect("as the interface has it");
            assert_eq!(fields(&history), ["items", "period", "regime", "ticker"]);
            assert_eq!(text(&history["ticker"]), ticker);
            check_entries(&history["items"], WITHOUT_OFFSET);
            kinds.insert((history["period"].to_string(), history["regime"].to_string()));
        }
    }
    assert!(kinds.len() > 5, "{kinds:?}");
}

#[test]
fn a_batch_accepts_a_period_a_regime_and_in_some_change_sets_a_limit() {
    let server = Server::of(ChangeSet::D);
    let own = server.json("/api/signals-history-batched?limit=3");
    assert_eq!(fields(&own).len(), 500);
    for (_, history) in own.as_object().unwrap() {
        assert_eq!(fields(history), ["items", "period", "regime", "ticker"]);
        let newest = ["2026-11-20T00:00:00", "2026-11-19T00:00:00", "2026-11-18T00:00:00"];
        assert_eq!(dates(&history["items"]), newest);
    }
    let request = server.json("/api/signals-history-batched?limit=1&period=6m");
    for (ticker, history) in request.as_object().unwrap() {
        assert_eq!((&history["period"], &history["regime"]), (&json!("6m"), &own[ticker]["regime"]));
    }
    let bears = server.json("/api/signals-history-batched?limit=1&regime=bear");
    for (ticker, history) in bears.as_object().unwrap() {
        assert_eq!((&history["period"], &history["regime"]), (&own[ticker]["period"], &json!("bear")));
    }
    let later = Server::of(ChangeSet::A).members("/api/signals-history-batched?limit=3");
    check_entries(&serde_json::from_str::<Value>(later["AAPL"].get()).unwrap()["items"], WITHOUT_OFFSET);
}

#[test]
fn the_history_of_a_ticker_has_items_first_and_predictions_later() {
    histories(&Server::of);
}

pub(super) fn histories(start: Start<'_>) {
    for (set, key) in
        [("E", "items"), ("D", "predictions"), ("C", "predictions"), ("B", "predictions"), ("all", "predictions")]
    {
        let server = start(set.parse().expect("as the interface has it"));
        let history = server.json("/api/signals-history/BRK.B?period=30d&regime=bear");
        assert_eq!(
            fields(&history),
            BTreeSet::from([key, "period", "regime", "ticker"]).into_iter().collect::<Vec<_>>()
        );
        assert_eq!((&history["ticker"], &history["period"]), (&json!("BRK.B"), &json!("30d")));
        check_entries(&history[key], WITH_OFFSET);
    }
}

#[test]
fn a_limit_gives_the_newest_entries_until_set_b_and_nothing_after() {
    limits(&Server::of);
    let server = Server::of(ChangeSet::B);
    let all = server.json("/api/signals-history/AAPL");
    assert_eq!(server.json("/api/signals-history/AAPL?limit=2"), all);
}

pub(super) fn limits(start: Start<'_>) {
    for (set, key, entries) in [("E", "items", 2), ("D", "predictions", 2), ("C", "predictions", 2)] {
        let server = start(set.parse().expect("as the interface has it"));
        let all = server.json("/api/signals-history/AAPL");
        let some = server.json("/api/signals-history/AAPL?limit=2");
        assert_eq!(list(&some[key]), &list(&all[key])[..entries], "at {set}");
    }
    let server = start(ChangeSet::C);
    for huge in ["9223372036854775807", "99999999999999999999999999", "1256", "2000"] {
        assert_eq!(list(&server.json(&format!("/api/signals-history/AAPL?limit={huge}"))["predictions"]).len(), 1_256);
    }
}

#[test]
fn the_latest_signal_is_the_newest_entry_in_the_shape_of_its_set() {
    latest(&Server::of);
}

pub(super) fn latest(start: Start<'_>) {
    let shapes = [
        ("E", "items", "ci ei", "ei", "ci"),
        ("D", "predictions", "confidence signal", "signal", "confidence"),
        ("C", "predictions", "confidence signal", "signal", "confidence"),
        ("A", "predictions", "confidence signal", "signal", "confidence"),
    ];
    for (set, entries, own, signal, confidence) in shapes {
        let server = start(set.parse().expect("as the interface has it"));
        let latest = server.json("/api/signals/AAPL?period=5d&regime=bull");
        let expected: BTreeSet<&str> = own.split(' ').chain(["date", "period", "regime", "ticker"]).collect();
        assert_eq!(fields(&latest), expected.into_iter().collect::<Vec<_>>(), "at {set}");
        let history = server.json("/api/signals-history/AAPL?period=5d&regime=bull");
        let newest = &list(&history[entries])[0];
        assert_eq!((&latest[signal], &latest[confidence]), (&newest["signal"], &newest["confidence"]), "at {set}");
        assert_eq!(latest["date"], newest["date"], "at {set}");
        assert_eq!((&latest["period"], &latest["regime"]), (&json!("5d"), &json!("bull")));
    }
}

#[test]
fn a_few_latest_signals_have_no_date_since_set_b() {
    let targets: Vec<String> = ["AAPL", "MSFT", "XOM", "BRK.B", "JPM"]
        .iter()
        .flat_map(|ticker| Period::all().map(move |period| format!("/api/signals/{ticker}?period={period}")))
        .collect();
    let undated = |set| {
        let server = Server::of(set);
        targets.iter().filter(|target| server.json(target)["date"].is_null()).count()
    };
    assert_eq!(undated(ChangeSet::C), 0);
    assert!((1..20).contains(&undated(ChangeSet::B)));
}

#[test]
fn period_and_regime_have_the_documented_defaults() {
    let server = Server::of(ChangeSet::B);
    for path in ["signals/AAPL?", "signals-history/AAPL?", "signals-legacy/AAPL?", "signals-legacy-history/AAPL?"] {
        let given = server.json(&format!("/api/{path}period=15d&regime=neutral"));
        assert_eq!(server.json(&format!("/api/{path}")), given);
        assert_eq!((&given["period"], &given["regime"]), (&json!("15d"), &json!("neutral")));
        assert_ne!(server.json(&format!("/api/{path}period=14d")), given);
        assert_ne!(server.json(&format!("/api/{path}regime=bull")), given);
    }
    for path in ["signals-history-all?sector=utilities", "signals-legacy-history-all?sector=utilities"] {
        assert_eq!(
            server.get(&format!("/api/{path}")).body,
            server.get(&format!("/api/{path}&regime=neutral&period=15d")).body
        );
    }
}

#[test]
fn legacy_operations_have_the_current_shapes_and_other_values() {
    let server = Server::of(ChangeSet::B);
    for rest in ["/AAPL?period=1m", "-history/AAPL?period=1m"] {
        let (legacy, modern) =
            (server.json(&format!("/api/signals-legacy{rest}")), server.json(&format!("/api/signals{rest}")));
        assert_eq!(fields(&legacy), fields(&modern));
        assert_ne!(legacy, modern);
    }
    check_entries(&server.json("/api/signals-legacy-history/AAPL")["predictions"], WITH_OFFSET);
    for (rest, key, time) in
        [("history-all?sector=energy", "predictions", WITH_OFFSET), ("history-batched", "items", WITHOUT_OFFSET)]
    {
        let legacy = server.members(&format!("/api/signals-legacy-{rest}"));
        let modern = server.members(&format!("/api/signals-{rest}"));
        assert!(legacy.keys().eq(modern.keys()));
        assert!(legacy.keys().all(|ticker| legacy[ticker].get() != modern[ticker].get()));
        check_entries(&serde_json::from_str::<Value>(legacy["XOM"].get()).unwrap()[key], time);
    }
}

#[test]
fn a_later_service_has_rewritten_exactly_the_cells_of_the_universe() {
    let (earlier, later) = (Universe::new(1, day(2026, 9, 1)), universe());
    let kind: (Period, Regime) = ("1m".parse().unwrap(), Regime::Bear);
    let rewrites = later.rewrites(earlier.today()).of_periods(&[kind.0]).of_regimes(&[kind.1]);
    let rewrites = rewrites.of_tickers(&later.tickers_of("energy").cloned().collect::<Vec<_>>());
    let cell = |ticker: &str, date: NaiveDate, prediction: bellwether::serve::Prediction| {
        (
            (ticker.to_owned(), format!("{date}{WITH_OFFSET}")),
            (prediction.signal().to_string(), prediction.confidence().to_string()),
        )
    };
    let before: BTreeMap<_, _> = rewrites.signals().map(|r| cell(r.ticker.as_str(), r.date, r.before)).collect();
    let after: BTreeMap<_, _> = rewrites.signals().map(|r| cell(r.ticker.as_str(), r.date, r.after)).collect();
    assert!(before.len() > 5, "{} cells are rewritten", before.len());

    let cells = |universe: Universe| -> BTreeMap<_, _> {
        let sector =
            Server::new(universe, ChangeSet::A).json("/api/signals-history-all?sector=energy&period=1m&regime=bear");
        let histories = sector.as_object().unwrap().iter();
        let cell = |ticker: &str, entry: &Value| {
            let value = (text(&entry["signal"]).to_owned(), entry["confidence"].to_string());
            ((ticker.to_owned(), text(&entry["date"]).to_owned()), value)
        };
        histories
            .flat_map(|(ticker, history)| list(&history["predictions"]).iter().map(move |entry| cell(ticker, entry)))
            .collect()
    };
    let (told_before, told_after) = (cells(earlier), cells(later.clone()));
    let differing =
        |(cell, value): &(&(String, String), &(String, String))| told_after.get(*cell).is_some_and(|now| now != *value);
    let differing: BTreeMap<_, _> =
        told_before.iter().filter(differing).map(|(cell, value)| (cell.clone(), value.clone())).collect();
    assert_eq!(differing, before);
    assert!(after.iter().all(|(cell, value)| told_after[cell] == *value));
}
