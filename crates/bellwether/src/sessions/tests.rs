use chrono::NaiveDate;

use super::{Sessions, TradeAt, number, parse};

fn day(text: &str) -> NaiveDate {
    text.parse().unwrap()
}

fn micros(text: &str) -> i64 {
    text.parse::<chrono::DateTime<chrono::Utc>>().unwrap().timestamp_micros()
}

/// Thanksgiving week: no session on Thursday, and an early close on Friday.
const WEEK: &str = include_str!("week.csv");

fn week() -> Sessions {
    Sessions::of_list(&parse(WEEK).unwrap())
}

fn by_rule() -> Sessions {
    Sessions::of_rule(Some("09:30-16:00 America/New_York".parse().unwrap()), &[day("2026-11-26")])
}

#[test]
fn a_holiday_is_no_trading_day() {
    // From Wednesday to Friday, Saturday, and the Monday after.
    for (until, by_weekdays, by_calendar) in
        [("2026-11-26", 1, 0), ("2026-11-27", 2, 1), ("2026-11-28", 2, 1), ("2026-11-30", 3, 2)]
    {
        let count = |sessions: &Sessions| sessions.count_after(day("2026-11-25"), day(until));
        assert_eq!(count(&Sessions::of_rule(None, &[])), by_weekdays, "{until}");
        assert_eq!([by_rule(), week(), Sessions::default()].map(|other| count(&other)), [by_calendar; 3], "{until}");
    }
}

#[test]
fn the_nth_trading_day_is_found_by_counting() {
    let first = day("2026-11-14");
    for sessions in [Sessions::default(), Sessions::of_rule(None, &[]), by_rule(), week()] {
        for from in first.iter_days().take(20) {
            for count in 1..12 {
                let found = sessions.nth_after(number(from), count);
                let expected = from.iter_days().find(|until| sessions.count_after(from, *until) == count).unwrap();
                assert_eq!(found, number(expected), "{count} after {from}");
                if let Some(before) = sessions.nth_before(found, count as usize) {
                    assert!(before <= number(from) && sessions.nth_after(before, count) == found, "{count} before");
                }
            }
        }
    }
}

#[test]
fn something_is_first_traded_after_it_is_known() {
    for sessions in [week(), by_rule(), Sessions::default()] {
        for (known, open, close, either) in [
            ("2026-11-24T14:30:00Z", "2026-11-25T14:30:00Z", "2026-11-24T21:00:00Z", "2026-11-24T21:00:00Z"),
            ("2026-11-24T21:00:00Z", "2026-11-25T14:30:00Z", "2026-11-25T21:00:00Z", "2026-11-25T14:30:00Z"),
            ("2026-11-25T14:29:59Z", "2026-11-25T14:30:00Z", "2026-11-25T21:00:00Z", "2026-11-25T14:30:00Z"),
        ] {
            let after = |at| sessions.first_trade_after(micros(known), at);
            assert_eq!(after(TradeAt::Open), Some(micros(open)), "{known}");
            assert_eq!(after(TradeAt::Close), Some(micros(close)), "{known}");
            assert_eq!(after(TradeAt::Either), Some(micros(either)), "{known}");
        }
    }
    // Over the holiday, to an early close that only the list knows.
    let after = |sessions: &Sessions| sessions.first_trade_after(micros("2026-11-27T15:00:00Z"), TradeAt::Close);
    assert_eq!([week(), Sessions::default()].map(|known| after(&known)), [Some(micros("2026-11-27T18:00:00Z")); 2]);
    assert_eq!(after(&by_rule()), Some(micros("2026-11-27T21:00:00Z")));
}

#[test]
fn what_a_calendar_does_not_tell_is_unknown() {
    let at = |sessions: &Sessions, known: &str| sessions.first_trade_after(micros(known), TradeAt::Either);
    assert_eq!(at(&week(), "2026-11-24T14:29:59Z"), None);
    assert_eq!(at(&week(), "2026-11-27T18:00:00Z"), None);
    assert_eq!(at(&Sessions::of_rule(None, &[]), "2026-11-25T00:00:00Z"), None);
    assert_eq!(at(&Sessions::of_rule(None, &[]), "2026-11-25T00:00:00Z"), None);
    assert_eq!((week().end(), by_rule().end()), (Some(day("2026-11-27")), None));
    assert!(week() != by_rule() && Sessions::default() != by_rule());
}

#[test]
fn a_line_that_is_no_session_is_refused_with_its_number() {
    for (text, why) in [
        ("", "it has no column `date`: the first line names `date`, `open` and `close`"),
        ("date,open\n", "it has no column `close`: the first line names `date`, `open` and `close`"),
        ("date,open,close\n", "it lists no sessions"),
        (
            "date,open,close\n2026-11-24,2026-11-24T09:30:00,2026-11-24T16:00:00-05:00\n",
            "line 2: `2026-11-24T09:30:00` is not a time with an offset: write `2026-11-20T09:30:00-05:00`",
        ),
        ("date,open,close\n24.11.2026,x,y\n", "line 2: `24.11.2026` is not a date: write `2026-11-20`"),
        ("date,open,close\n2026-11-20é,x,y\n", "line 2: `2026-11-20é` is not a date: write `2026-11-20`"),
        (
            "date,open,close\n2026-11-24,2026-11-24T16:00:00Z,2026-11-24T09:30:00Z\n",
            "line 2: the session of 2026-11-24 closes before it opens",
        ),
        (
            "date,open,close\n2026-11-24,2025-11-24T09:30:00Z,2026-11-24T16:00:00Z\n",
            "line 2: the session of 2026-11-24 opens or closes more than a day away from its date",
        ),
        (
            &format!("{WEEK}2026-11-25,2026-11-25T09:30:00-05:00,2026-11-25T16:00:00-05:00\n"),
            "line 5: the session of 2026-11-25 does not come after that of 2026-11-27",
        ),
    ] {
        assert_eq!(parse(text).unwrap_err().to_string(), why);
    }
    let quoted = "\u{feff}name,\"open\",\"close\",\"date\"\r\nx,2026-11-24T09:30:00Z,2026-11-24T16:00:00Z,2026-11-24 00:00:00\r\n";
    assert_eq!(parse(quoted).unwrap().len(), 1);
}

/// The days from Monday to Friday without a session, and the sessions that close early, as the package `exchange_calendars`
/// has them.
const XNYS: &str = include_str!("xnys.txt");

#[test]
fn the_new_york_stock_exchange_is_closed_and_closes_early_as_others_have_it() {
    let (first, last) = (day("1990-01-01"), day("2045-12-31"));
    let open = Sessions::default();
    let open = open.between(number(first), number(last));
    let mut found = String::new();
    for date in first.iter_days().take_while(|date| *date <= last) {
        let is_weekday = !matches!(chrono::Datelike::weekday(&date), chrono::Weekday::Sat | chrono::Weekday::Sun);
        if is_weekday && open.binary_search(&number(date)).is_err() {
            found.push_str(&format!("{date} closed\n"));
        } else if let Some(hour) = super::nyse::early_close(date).filter(|_| is_weekday) {
            found.push_str(&format!("{date} {hour}:00\n"));
        }
    }
    let missing: Vec<&str> = XNYS.lines().filter(|line| !found.contains(line)).collect();
    let extra: Vec<&str> = found.lines().filter(|line| !XNYS.contains(line)).collect();
    assert_eq!((missing, extra), (Vec::new(), Vec::new()));
}
