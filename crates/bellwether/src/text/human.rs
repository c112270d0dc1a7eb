//! Numbers, sizes and durations formatted for people.

use std::time::Duration;

/// A number with thousands separators.
pub fn group_digits(number: u64) -> String {
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

/// A percentage: `33.3 %`, `0.71 %`, `99.9967 %`. Close to zero or to all it gets more decimals, and only exactly
/// nothing is `0 %` and exactly all `100 %`.
pub fn percent(share: f64) -> String {
    let percent = share * 100.0;
    match percent.min(100.0 - percent) {
        _ if share == 0.0 || share == 1.0 => format!("{percent:.0} %"),
        ..0.0 => format!("{percent:.1} %"),
        ..0.0001 if share < 0.5 => "<0.0001 %".to_owned(),
        ..0.0001 => ">99.9999 %".to_owned(),
        ..0.1 => format!("{percent:.4} %"),
        ..10.0 => format!("{percent:.2} %"),
        _ => format!("{percent:.1} %"),
    }
}

/// A part of a whole as [`percent`]; `0 %` if the whole is zero.
pub fn portion(some: u64, all: u64) -> String {
    percent(if all == 0 { 0.0 } else { some as f64 / all as f64 })
}

/// A number with some decimals; one that is rounded to zero has no sign.
pub fn round(number: f64, decimals: usize) -> String {
    let text = format!("{number:.decimals$}");
    match text.strip_prefix('-') {
        Some(size) if size.bytes().all(|byte| matches!(byte, b'0' | b'.')) => size.to_owned(),
        _ => text,
    }
}

/// A number with its noun: `1 run`, `2 runs`.
pub fn count_of(number: u64, one: &str, many: &str) -> String {
    format!("{} {}", group_digits(number), if number == 1 { one } else { many })
}

/// A size: `812 B`, `39.1 kB`, `126.9 MB`.
pub fn bytes(count: u64) -> String {
    if count < 1000 {
        return format!("{count} B");
    }
    let (mut size, mut units) = (count as f64 / 1e3, ["kB", "MB", "GB"].into_iter());
    while size >= 1e3 && units.len() > 0 {
        size /= 1e3;
        units.next();
    }
    format!("{size:.1} {}", units.next().unwrap_or("TB"))
}

/// A duration: `84 ms`, `2.8 s`, `3 min 20 s`, `1 h 05 min`.
pub fn took(time: Duration) -> String {
    let seconds = time.as_secs();
    match seconds {
        0 => format!("{} ms", time.as_millis()),
        1..=59 => format!("{:.1} s", time.as_secs_f64()),
        60..=3599 => format!("{} min {:02} s", seconds / 60, seconds % 60),
        _ => format!("{} h {:02} min", seconds / 3600, seconds % 3600 / 60),
    }
}

/// A stretch of time in its largest unit that fits: `11.0 s`, `3 hours`, `109 days`.
pub fn span(time: Duration) -> String {
    let seconds = time.as_secs();
    match seconds {
        0..60 => took(time),
        60..3_600 => count_of(seconds / 60, "minute", "minutes"),
        3_600..86_400 => count_of(seconds / 3_600, "hour", "hours"),
        _ => count_of(seconds / 86_400, "day", "days"),
    }
}

/// The duration of a piece of work, in seconds as long as it is less than a minute: `0.1 s`, `3 min 20 s`.
pub fn duration(time: Duration) -> String {
    if time.as_secs() < 60 { format!("{:.1} s", time.as_secs_f64()) } else { took(time) }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::{bytes, count_of, duration, group_digits, percent, portion, round, span, took};

    #[test]
    fn thousands_are_separated() {
        for (number, text) in [(0, "0"), (999, "999"), (1000, "1,000"), (1_234_567, "1,234,567")] {
            assert_eq!(group_digits(number), text);
        }
        assert_eq!((count_of(1, "run", "runs"), count_of(2000, "run", "runs")), ("1 run".into(), "2,000 runs".into()));
    }

    #[test]
    fn what_is_rounded_to_zero_has_no_sign() {
        assert_eq!([-0.004, -0.005_1, 0.004, -1.0].map(|number| round(number, 2)), ["0.00", "-0.01", "0.00", "-1.00"]);
        assert_eq!(round(-0.2, 0), "0");
    }

    #[test]
    fn only_exact_shares_are_shown_as_0_or_100_percent() {
        for (some, all, text) in [
            (0, 0, "0 %"),
            (0, 9, "0 %"),
            (1, 10_000_000, "<0.0001 %"),
            (12, 1_000_000, "0.0012 %"),
            (71, 10_000, "0.71 %"),
            (1, 3, "33.3 %"),
            (1, 2, "50.0 %"),
            (973, 1000, "97.30 %"),
            (29_999, 30_000, "99.9967 %"),
            (9_999_999, 10_000_000, ">99.9999 %"),
            (7, 7, "100 %"),
        ] {
            assert_eq!(portion(some, all), text, "{some} of {all}");
        }
        assert_eq!(percent(1.5), "150.0 %", "more was added than there was");
    }

    #[test]
    fn a_share_of_some_never_reads_as_none_or_all() {
        // Sizes of the whole, and shares close to both ends and in between.
        for all in (1..50).map(|bits| (1_u64 << bits) + 1) {
            let middle = [all / 1000, all / 3, all / 2, all - all / 7].map(|some| some.max(1));
            for some in [1, 2, all - 2, all - 1].into_iter().chain(middle).filter(|some| (1..all).contains(some)) {
                let text = portion(some, all);
                let number: f64 = text.trim_matches(|c| "<> %".contains(c)).parse().unwrap();
                let share = some as f64 / all as f64 * 100.0;
                assert!(number > 0.0 && number < 100.0, "{some} of {all}: {text}");
                assert!((number - share).abs() <= 0.0501, "{some} of {all}: {text}");
            }
        }
    }

    #[test]
    fn sizes_and_durations_have_a_fitting_unit() {
        for (count, text) in
            [(999, "999 B"), (39_100, "39.1 kB"), (126_900_000, "126.9 MB"), (5_000_000_000_000_000, "5000.0 TB")]
        {
            assert_eq!(bytes(count), text);
        }
        for (millis, text) in [(84, "84 ms"), (2_800, "2.8 s"), (200_000, "3 min 20 s"), (3_900_000, "1 h 05 min")] {
            assert_eq!(took(Duration::from_millis(millis)), text);
        }
        for (seconds, text) in
            [(0, "0 ms"), (11, "11.0 s"), (61, "1 minute"), (86_399, "23 hours"), (172_900, "2 days")]
        {
            assert_eq!(span(Duration::from_secs(seconds)), text);
        }
        assert_eq!(
            (duration(Duration::from_millis(84)), duration(Duration::from_secs(200))),
            ("0.1 s".into(), "3 min 20 s".into())
        );
    }
}
