//! Trading days: weekdays that are not a holiday of the New York Stock Exchange.
//!
//! Holidays follow the exchange's current rules. One-time closures (a storm, a funeral) are not included; days that
//! close early are trading days.

use chrono::{Datelike, Days, NaiveDate, Weekday};

/// Whether a day is a trading day.
pub(crate) fn is_trading_day(date: NaiveDate) -> bool {
    !matches!(date.weekday(), Weekday::Sat | Weekday::Sun) && !is_holiday(date)
}

/// Whether a weekday is a holiday, or observes one that falls on a weekend.
fn is_holiday(date: NaiveDate) -> bool {
    let week_of_month = date.day().div_ceil(7);
    match (date.month(), date.weekday()) {
        // Martin Luther King's day and Washington's birthday.
        (1 | 2, Weekday::Mon) if week_of_month == 3 => return true,
        // Memorial Day, the last Monday.
        (5, Weekday::Mon) if date.day() > 24 => return true,
        // Labor Day.
        (9, Weekday::Mon) if week_of_month == 1 => return true,
        // Thanksgiving.
        (11, Weekday::Thu) if week_of_month == 4 => return true,
        _ => {}
    }
    is_new_year(date)
        || is_kept(date, 6, 19) && date.year() >= 2022
        || is_kept(date, 7, 4)
        || is_kept(date, 12, 25)
        || date.checked_add_days(Days::new(2)) == easter(date.year())
}

/// New Year's Day on a Sunday is observed on Monday; on a Saturday it is not observed.
fn is_new_year(date: NaiveDate) -> bool {
    date.month() == 1 && (date.day() == 1 || date.day() == 2 && date.weekday() == Weekday::Mon)
}

/// Whether a holiday with a fixed date is observed on this weekday: on Friday for a Saturday, on Monday for a Sunday.
fn is_kept(date: NaiveDate, month: u32, day: u32) -> bool {
    date.month() == month
        && match date.weekday() {
            Weekday::Mon => date.day() == day || date.day() == day + 1,
            Weekday::Fri => date.day() == day || date.day() + 1 == day,
            _ => date.day() == day,
        }
}

/// Easter Sunday of a Gregorian year, by the anonymous algorithm of 1876.
fn easter(year: i32) -> Option<NaiveDate> {
    let lunar = year.rem_euclid(19);
    let (century, of_century) = (year.div_euclid(100), year.rem_euclid(100));
    let skipped = (century - (century + 8).div_euclid(25) + 1).div_euclid(3);
    let epact = (19 * lunar + century - century.div_euclid(4) - skipped + 15).rem_euclid(30);
    let to_sunday = (32 + 2 * century.rem_euclid(4) + 2 * of_century.div_euclid(4) - epact - of_century.rem_euclid(4))
        .rem_euclid(7);
    let late = (lunar + 11 * epact + 22 * to_sunday).div_euclid(451);
    let days = epact + to_sunday - 7 * late + 114;
    NaiveDate::from_ymd_opt(year, (days / 31).cast_unsigned(), (days % 31 + 1).cast_unsigned())
}

#[cfg(test)]
mod tests {
    use chrono::{Datelike, NaiveDate, Weekday};

    use super::is_trading_day;

    fn closed_weekdays(year: i32) -> Vec<String> {
        let first = NaiveDate::from_ymd_opt(year, 1, 1).unwrap();
        let weekdays = first.iter_days().take_while(|date| date.year() == year);
        let weekdays = weekdays.filter(|date| !matches!(date.weekday(), Weekday::Sat | Weekday::Sun));
        weekdays.filter(|&date| !is_trading_day(date)).map(|date| date.format("%m-%d").to_string()).collect()
    }

    #[test]
    fn holidays_match_those_published_by_the_exchange() {
        let published = [
            (2021, "01-01 01-18 02-15 04-02 05-31 07-05 09-06 11-25 12-24"),
            (2022, "01-17 02-21 04-15 05-30 06-20 07-04 09-05 11-24 12-26"),
            (2023, "01-02 01-16 02-20 04-07 05-29 06-19 07-04 09-04 11-23 12-25"),
            (2024, "01-01 01-15 02-19 03-29 05-27 06-19 07-04 09-02 11-28 12-25"),
            (2025, "01-01 01-20 02-17 04-18 05-26 06-19 07-04 09-01 11-27 12-25"),
            (2026, "01-01 01-19 02-16 04-03 05-25 06-19 07-03 09-07 11-26 12-25"),
            (2027, "01-01 01-18 02-15 03-26 05-31 06-18 07-05 09-06 11-25 12-24"),
        ];
        for (year, days) in published {
            assert_eq!(closed_weekdays(year).join(" "), days, "{year}");
        }
    }

    #[test]
    fn weekends_do_not_trade() {
        for (month, day) in [(11, 14), (11, 15), (7, 4), (7, 5)] {
            assert!(!is_trading_day(NaiveDate::from_ymd_opt(2026, month, day).unwrap()));
        }
    }
}
