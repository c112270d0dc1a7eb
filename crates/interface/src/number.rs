//! Numbers: zero is one value, with or without a sign.

/// The same number; zero for negative zero.
pub fn unsigned_zero(number: f64) -> f64 {
    // The sum of two zeros of different signs has none.
    number + 0.0
}

#[cfg(test)]
mod tests {
    use super::unsigned_zero;

    #[test]
    fn only_negative_zero_changes() {
        assert_eq!(unsigned_zero(-0.0).to_bits(), 0);
        for number in [0.0, 5e-324, -5e-324, -0.5, f64::MAX, f64::MIN] {
            assert_eq!(unsigned_zero(number).to_bits(), number.to_bits(), "{number}");
        }
    }
}
