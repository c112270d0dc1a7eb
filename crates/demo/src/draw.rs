//! Pseudo-random numbers determined by their purpose.
//!
//! Every value of the universe has an address: seed, purpose, ticker, day and so on. Each step of the address is mixed
//! into 64 bits, so any cell can be computed alone, in any order, without stored state. Steps are mixed by SplitMix64
//! and names hashed by FNV-1a, both implemented here so that no new version of a library changes the data; fractions
//! use only `+ - * /`, which give the same bits on every machine.

use chrono::{Datelike, NaiveDate};

/// A number from which further numbers are derived.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Draw(u64);

/// The increment of SplitMix64.
const GAMMA: u64 = 0x9e37_79b9_7f4a_7c15;

impl Draw {
    /// The draw from which all others of a universe are derived.
    pub fn from_seed(seed: u64) -> Self {
        Self(seed).at(0)
    }

    /// The number at `place` of the SplitMix64 sequence that starts here.
    pub fn at(self, index: u64) -> Self {
        let state = self.0.wrapping_add(GAMMA.wrapping_mul(index.wrapping_add(1)));
        let state = (state ^ (state >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let state = (state ^ (state >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        Self(state ^ (state >> 31))
    }

    /// The number for a day or a week, counted from any fixed day.
    pub(crate) fn on(self, day: i32) -> Self {
        self.at(u64::from(day.cast_unsigned()))
    }

    /// The number for a symbol.
    pub(crate) fn of(self, symbol: &str) -> Self {
        self.at(purpose(symbol))
    }

    /// A whole number from 0 to `bound`, exclusive.
    pub fn below(self, bound: u32) -> u32 {
        // The high half of a 32 by 32 bit product fits.
        (((self.0 >> 32) * u64::from(bound)) >> 32) as u32
    }

    /// True once in `count` draws.
    pub(crate) fn is_one_in(self, count: u32) -> bool {
        self.below(count) == 0
    }

    /// One of the choices.
    pub(crate) fn choose<T: Copy>(self, choices: &[T]) -> T {
        choices[self.below(choices.len() as u32) as usize]
    }

    /// A fraction from -1 to 1.
    pub(crate) fn signed_fraction(self) -> f64 {
        const STEPS: f64 = (1_u64 << 52) as f64;
        // A float has 53 bits.
        (self.0 >> 11) as f64 / STEPS - 1.0
    }

    /// The height at `day` of a smooth curve, from -1 to 1, that passes through a drawn height every `step` days.
    pub(crate) fn wave(self, day: i32, step: i32) -> f64 {
        let (from, to) =
            (self.on(day.div_euclid(step)).signed_fraction(), self.on(day.div_euclid(step) + 1).signed_fraction());
        let along = f64::from(day.rem_euclid(step)) / f64::from(step);
        from + (to - from) * along * along * (3.0 - 2.0 * along)
    }
}

/// The mood of a company, day by day, which its signals and its news share, so that they move together.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Mood(Draw);

impl Mood {
    pub(crate) fn of(seed: Draw, symbol: &str) -> Self {
        const MOOD: u64 = purpose("mood");
        Self(seed.at(MOOD).of(symbol))
    }

    /// From -1 to 1.
    pub(crate) fn on(self, date: NaiveDate) -> f64 {
        // Days between two turning points.
        self.0.wave(date.num_days_from_ce(), 40)
    }
}

/// A named place for [`Draw::at`].
pub(crate) const fn purpose(name: &str) -> u64 {
    let mut hash = 0xcbf2_9ce4_8422_2325_u64;
    let mut position = 0;
    while position < name.len() {
        hash = (hash ^ name.as_bytes()[position] as u64).wrapping_mul(0x0100_0000_01b3);
        position += 1;
    }
    hash
}

#[cfg(test)]
mod tests {
    use super::{Draw, purpose};

    #[test]
    fn random_numbers_match_the_published_algorithms() {
        // SplitMix64 seeded with 1234567, the sequence that its reference implementation prints.
        let expected = [6_457_827_717_110_365_317, 3_203_168_211_198_807_973, 9_817_491_932_198_370_423];
        for (index, number) in (0..).zip(expected) {
            assert_eq!(Draw(1_234_567).at(index), Draw(number));
        }
        // From the test vectors of FNV-1a, 64 bits.
        assert_eq!(purpose(""), 0xcbf2_9ce4_8422_2325);
        assert_eq!(purpose("a"), 0xaf63_dc4c_8601_ec8c);
        assert_eq!(purpose("foobar"), 0x8594_4171_f739_67e8);
    }

    #[test]
    fn numbers_stay_within_their_bounds_and_reach_them() {
        let draws: Vec<Draw> = (0..10_000).map(|index| Draw::from_seed(7).at(index)).collect();
        for bound in [1, 2, 7, 125] {
            let mut seen = vec![0; bound as usize];
            draws.iter().for_each(|draw| seen[draw.below(bound) as usize] += 1);
            let fair = draws.len() / bound as usize;
            assert!(seen.iter().all(|&count| count > fair / 2 && count < fair * 2), "{bound}: {seen:?}");
        }
        assert!(draws.iter().all(|draw| (-1.0..1.0).contains(&draw.signed_fraction())));
        assert!(
            draws.iter().any(|draw| draw.signed_fraction() < -0.99)
                && draws.iter().any(|draw| draw.signed_fraction() > 0.99)
        );
    }

    #[test]
    fn a_wave_passes_through_its_heights_without_jumps() {
        let draw = Draw::from_seed(7);
        assert_eq!(draw.wave(700, 10), draw.on(70).signed_fraction());
        for day in -1_000..1_000 {
            let (here, next) = (draw.wave(day, 20), draw.wave(day + 1, 20));
            assert!((-1.0..1.0).contains(&here) && (here - next).abs() < 0.16, "{day}: {here}, {next}");
        }
    }
}
