//! Numbers, sizes and times as people read them.

use std::time::Duration;

/// A number with its thousands apart.
pub(crate) fn grouped(number: u64) -> String {
    let digits = number.to_string();
    let mut text = String::with_capacity(digits.len() + digits.len() / 3);
    for (position, digit) in digits.chars().enumerate() {
        if position > 0 && (digits.len() - position).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

/// A share in percent, with as many digits as tell a small one from nothing.
pub(crate) fn percent(share: f64) -> String {
    let percent = share * 100.0;
    let digits = if percent >= 1.0 || percent == 0.0 { 2 } else { 4 };
    format!("{percent:.digits$} %")
}

/// A number with the word for what it counts: `1 run`, `2 runs`.
pub(crate) fn counted(number: u64, one: &str, many: &str) -> String {
    format!("{} {}", grouped(number), if number == 1 { one } else { many })
}

/// A share in percent. It says `0` and `100` of nothing and of all alone: `<0.1 %`, `>99.9 %`.
pub(crate) fn portion(some: u64, all: u64) -> String {
    let share = if all == 0 { 0.0 } else { some as f64 / all as f64 * 100.0 };
    match share {
        _ if some == 0 => "0 %".to_owned(),
        _ if some == all => "100 %".to_owned(),
        ..0.1 => "<0.1 %".to_owned(),
        ..99.9 => format!("{share:.1} %"),
        ..100.0 => ">99.9 %".to_owned(),
        _ => format!("{share:.1} %"),
    }
}

/// A size: `812 B`, `39.1 kB`, `126.9 MB`.
pub(crate) fn bytes(count: u64) -> String {
    let units = ["kB", "MB", "GB", "TB"];
    let mut size = count as f64;
    let mut unit = "B";
    for larger in units {
        if size < 1000.0 {
            break;
        }
        size /= 1000.0;
        unit = larger;
    }
    if unit == "B" { format!("{count} B") } else { format!("{size:.1} {unit}") }
}

/// A time that something took: `84 ms`, `2.8 s`, `3 min 20 s`, `1 h 05 min`.
pub(crate) fn took(time: Duration) -> String {
    let seconds = time.as_secs();
    match seconds {
        0 => format!("{} ms", time.as_millis()),
        1..=59 => format!("{:.1} s", time.as_secs_f64()),
        60..=3599 => format!("{} min {:02} s", seconds / 60, seconds % 60),
        _ => format!("{} h {:02} min", seconds / 3600, seconds % 3600 / 60),
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::{bytes, counted, grouped, percent, portion, took};

    #[test]
    fn thousands_stand_apart() {
        for (number, text) in [(0, "0"), (999, "999"), (1000, "1,000"), (1_234_567, "1,234,567")] {
            assert_eq!(grouped(number), text);
        }
        assert_eq!((counted(1, "run", "runs"), counted(2000, "run", "runs")), ("1 run".into(), "2,000 runs".into()));
    }

    #[test]
    fn a_small_share_is_told_from_none() {
        for (share, text) in [(0.0, "0.00 %"), (0.000_012, "0.0012 %"), (0.0071, "0.7100 %"), (0.5, "50.00 %")] {
            assert_eq!(percent(share), text);
        }
    }

    #[test]
    fn a_share_is_nothing_or_all_only_where_it_is() {
        for (some, all, text) in [
            (0, 0, "0 %"),
            (0, 9, "0 %"),
            (1, 1_000_000, "<0.1 %"),
            (1, 3, "33.3 %"),
            (999_999, 1_000_000, ">99.9 %"),
            (7, 7, "100 %"),
        ] {
            assert_eq!(portion(some, all), text);
        }
    }

    #[test]
    fn sizes_and_times_have_a_unit_that_fits() {
        for (count, text) in
            [(999, "999 B"), (39_100, "39.1 kB"), (126_900_000, "126.9 MB"), (5_000_000_000_000_000, "5000.0 TB")]
        {
            assert_eq!(bytes(count), text);
        }
        for (millis, text) in [(84, "84 ms"), (2_800, "2.8 s"), (200_000, "3 min 20 s"), (3_900_000, "1 h 05 min")] {
            assert_eq!(took(Duration::from_millis(millis)), text);
        }
    }
}
