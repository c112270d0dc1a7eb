//! Shares of one, such as confidences, as text. Those of four decimals at most are so few that each is written once, and
//! copied from then on.

use std::array;
use std::sync::LazyLock;

use super::numbers;
use super::tape::{ahead, put};
use crate::parts::{self, PARTS};

/// The parts of one.
const ONE: u16 = PARTS as u16;

/// The most bytes that a copy needs room for.
pub(super) const MOST: usize = 8;

/// The text of so many parts with the comma behind it, and how long it is in the last byte.
type Text = [u8; MOST];

static TEXTS: LazyLock<Vec<Text>> = LazyLock::new(|| (0..=ONE).map(text).collect());

/// Shares of one by how many parts they are.
pub(super) struct Shares {
    parts: Vec<u16>,
    texts: &'static [Text],
}

impl Shares {
    /// Some numbers, if each is such a share.
    pub(super) fn of(numbers: &[f64]) -> Option<Self> {
        let mut shares = vec![0; numbers.len()];
        let mut are_shares = true;
        for (share, number) in shares.iter_mut().zip(numbers) {
            let (parts, is_all) = parts::of(*number);
            *share = parts as u16;
            are_shares &= is_all && *share <= ONE;
        }
        are_shares.then(|| Self { parts: shares, texts: &TEXTS })
    }

    /// Copies that of a row behind what ends there, with the comma, and says where it ends.
    #[inline(always)]
    pub(super) fn copy(&self, out: &mut [u8], end: usize, row: usize) -> usize {
        let text = self.texts[usize::from(self.parts[row])];
        *ahead(out, end) = text;
        end + usize::from(text[MOST - 1])
    }
}

fn text(parts: u16) -> Text {
    let mut out = [0; numbers::REAL];
    let end = numbers::write_real(&mut out, f64::from(parts) / PARTS);
    let end = put(&mut out, end, b",");
    array::from_fn(|at| if at == MOST - 1 { end as u8 } else { out[at] })
}

#[cfg(test)]
mod tests {
    use super::{MOST, Shares};

    #[test]
    fn a_share_has_the_text_that_reads_back_equal() {
        let decimals: Vec<String> = (0..=10_000).map(|parts| format!("{}", f64::from(parts) / 1e4)).collect();
        let numbers: Vec<f64> = decimals.iter().map(|text| text.parse().unwrap()).collect();
        let shares = Shares::of(&numbers).unwrap();
        for (row, number) in numbers.iter().enumerate() {
            let mut out = [b'?'; MOST + 1];
            let end = shares.copy(&mut out, 1, row);
            assert_eq!(str::from_utf8(&out[..end]).unwrap(), format!("?{number:?},"));
        }
    }

    #[test]
    fn other_numbers_are_no_shares() {
        let others = [-0.0, -0.5, 1.0001, 0.12345, 0.1 + 0.2, 1e-300, 6.5536, 1e9, f64::MAX, f64::INFINITY, f64::NAN];
        for number in others {
            assert!(Shares::of(&[0.5, number, 0.25]).is_none(), "{number}");
        }
        assert!(Shares::of(&[]).is_some());
    }
}
