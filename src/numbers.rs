//! Numbers as people read them.

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

#[cfg(test)]
mod tests {
    use super::{grouped, percent};

    #[test]
    fn thousands_stand_apart() {
        for (number, text) in [(0, "0"), (999, "999"), (1000, "1,000"), (1_234_567, "1,234,567")] {
            assert_eq!(grouped(number), text);
        }
    }

    #[test]
    fn a_small_share_is_told_from_none() {
        for (share, text) in [(0.0, "0.00 %"), (0.000_012, "0.0012 %"), (0.0071, "0.7100 %"), (0.5, "50.00 %")] {
            assert_eq!(percent(share), text);
        }
    }
}
