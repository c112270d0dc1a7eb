//! Real numbers as ten-thousandths, which is what most confidences and scores are.

/// The parts that one has.
pub(crate) const PARTS: f64 = 10_000.0;

/// How many ten-thousandths a number is, and whether it is the number nearest to so many: without a branch, so that
/// several are looked at at once.
#[inline(always)]
pub(crate) fn of(number: f64) -> (i16, bool) {
    // Added, it leaves the nearest whole number in the lowest bits.
    const ROUND: f64 = (3_u64 << 51) as f64;
    let parts = (number * PARTS + ROUND).to_bits() as i16;
    // By the bits: there are two zeros.
    (parts, (f64::from(parts) / PARTS).to_bits() == number.to_bits())
}
