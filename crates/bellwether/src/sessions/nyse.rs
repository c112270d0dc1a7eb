//! The sessions of the New York Stock Exchange by its rules: exact from 1990 on, as far as the rules stay as they are.

use chrono::{Datelike, NaiveDate, Weekday};

/// Days on which it was closed for once: funerals of presidents, the attacks of 2001, a hurricane.
const CLOSED_ONCE: [(i32, u32, u32); 12] = [
    (1994, 4, 27),
    (2001, 9, 11),
    (2001, 9, 12),
    (2001, 9, 13),
    (2001, 9, 14),
    (2004, 6, 11),
    (2007, 1, 2),
    (2012, 10, 29),
    (2012, 10, 30),
    (2018, 12, 5),
    (2025, 1, 9),
    (1985, 9, 27),
];

/// Days on which it closed early for once.
const EARLY_ONCE: [(i32, u32, u32); 3] = [(1997, 12, 26), (1999, 12, 31), (2003, 12, 26)];

/// Whether it is closed on a day from Monday to Friday.
pub(super) fn is_holiday(date: NaiveDate) -> bool {
    let (year, month, day, weekday) = (date.year(), date.month(), date.day(), date.weekday());
    let monday = weekday == Weekday::Mon;
    let nth = (day - 1) / 7 + 1;
    // A fixed holiday on a Saturday is kept on the Friday before, one on a Sunday on the Monday after.
    let kept = |of_month: u32, fixed: u32| {
        month == of_month
            && (day == fixed || (monday && day == fixed + 1) || (weekday == Weekday::Fri && day + 1 == fixed))
    };
    let is_fixed = match month {
        // That of a Saturday would be in the year before, and is not kept.
        1 => day == 1 || (monday && day == 2),
        6 => year >= 2022 && kept(6, 19),
        7 => kept(7, 4),
        12 => kept(12, 25),
        _ => false,
    };
    let is_movable = match month {
        1 => year >= 1998 && monday && nth == 3,
        2 => monday && nth == 3,
        5 => monday && day > 24,
        9 => monday && nth == 1,
        11 => weekday == Weekday::Thu && nth == 4,
        _ => false,
    };
    is_fixed || is_movable || date == good_friday(year) || is_one_of(date, &CLOSED_ONCE)
}

/// The hour at which it closes early on a day, if it does.
pub(super) fn early_close(date: NaiveDate) -> Option<u32> {
    let (year, month, day, weekday) = (date.year(), date.month(), date.day(), date.weekday());
    let is_early = match (month, weekday) {
        // The day after Thanksgiving.
        (11, Weekday::Fri) => (23..=29).contains(&day) && year >= 1992,
        (12, Weekday::Mon | Weekday::Tue | Weekday::Wed | Weekday::Thu) => day == 24,
        (7, Weekday::Mon | Weekday::Tue | Weekday::Thu) => day == 3 && year >= 1995,
        (7, Weekday::Wed) => day == 3 && year >= 2013,
        (7, Weekday::Fri) => day == 5 && (1996..2013).contains(&year),
        _ => false,
    };
    let is_early = is_early || is_one_of(date, &EARLY_ONCE);
    is_early.then_some(if year < 1993 { 14 } else { 13 })
}

/// The Friday before Easter, which is the Sunday after the first full moon of spring by the tables of the church.
fn good_friday(year: i32) -> NaiveDate {
    let (golden, century) = (year % 19, year / 100);
    let epact = (century - century / 4 - (8 * century + 13) / 25 + 19 * golden + 15) % 30;
    let moon = epact - epact / 28 * (1 - 29 / (epact + 1) * ((21 - golden) / 11));
    let weekday = (year + year / 4 + moon + 2 - century + century / 4) % 7;
    let easter = NaiveDate::from_ymd_opt(year, 3, 28)
        .and_then(|date| date.checked_add_signed(chrono::TimeDelta::days(i64::from(moon - weekday))));
    easter.and_then(|easter| easter.checked_sub_days(chrono::Days::new(2))).unwrap_or_default()
}

fn is_one_of(date: NaiveDate, days: &[(i32, u32, u32)]) -> bool {
    days.contains(&(date.year(), date.month(), date.day()))
}
