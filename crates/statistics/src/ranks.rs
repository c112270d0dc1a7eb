//! Ranks, and correlations of ranks.

use std::borrow::Cow;

/// Numbers with their ranks. What is not a number has no rank.
///
/// ```
/// # use bellwether_statistics::Ranks;
/// let confidences = Ranks::new(vec![0.5, 0.9, -0.7, 0.6]);
/// let returns = Ranks::new(vec![0.01, f64::NAN, -0.02, 0.03]);
/// assert_eq!(confidences.correlation(&returns).rank_correlation, Some(1.0));
/// ```
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Ranks {
    values: Vec<f64>,
    /// Twice the distance of the average rank of each from the middle: whole numbers, so that sums of their products are
    /// exact. Zero of what has none.
    ranks: Vec<f64>,
    count: usize,
}

/// The rank correlation of some cases.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct RankedCases {
    /// The cases.
    pub cases: u64,
    /// Spearman's rank correlation; none as for [`rank_correlation`].
    pub rank_correlation: Option<f64>,
}

impl Ranks {
    /// Ranks some numbers; equal ones share the average of their ranks.
    #[must_use]
    pub fn new(values: Vec<f64>) -> Self {
        let mut order: Vec<(u64, u32)> = Vec::with_capacity(values.len());
        for (index, value) in values.iter().enumerate().filter(|(_, value)| !value.is_nan()) {
            order.push((ascending_bits(*value), index as u32));
        }
        order.sort_unstable();
        let mut ranks = vec![0.0; values.len()];
        let mut below = 0;
        for ties in order.chunk_by(|(one, _), (next, _)| one == next) {
            // The first of them is the (below + 1)-th, the last the (below + ties)-th; the middle is (n + 1) / 2.
            let doubled = (2 * below + ties.len()) as f64 - order.len() as f64;
            ties.iter().for_each(|(_, index)| ranks[*index as usize] = doubled);
            below += ties.len();
        }
        Self { count: order.len(), values, ranks }
    }

    /// How many numbers there are.
    #[must_use]
    pub fn count(&self) -> usize {
        self.count
    }

    /// The numbers.
    #[must_use]
    pub fn values(&self) -> &[f64] {
        &self.values
    }

    /// The fifth of each number, from 0 for the lowest, by its average rank: equal numbers stay together, so that there may be
    /// fewer than five. Of what is no number, 5.
    ///
    /// ```
    /// # use bellwether_statistics::Ranks;
    /// assert_eq!(Ranks::new(vec![3.0, 1.0, 5.0, 2.0, 4.0]).fifths(), [2, 0, 4, 1, 3]);
    /// assert_eq!(Ranks::new(vec![0.5, 0.9, 0.5, f64::NAN]).fifths(), [1, 4, 1, 5]);
    /// ```
    #[must_use]
    pub fn fifths(&self) -> Vec<usize> {
        let count = self.count as f64;
        let fifth = |(value, rank): (&f64, &f64)| match value.is_nan() {
            true => 5,
            false => (2.5 * (rank + count) / count) as usize,
        };
        self.values.iter().zip(&self.ranks).map(fifth).collect()
    }

    /// The rank correlation of what is a number on either side.
    ///
    /// # Panics
    ///
    /// If the numbers of values differ.
    #[must_use]
    pub fn correlation(&self, other: &Self) -> RankedCases {
        let (cases, [one, other]) = common_ranks([self, other]);
        RankedCases { cases: cases as u64, rank_correlation: cosine_similarity(&one, &other) }
    }

    /// The partial rank correlation given some more numbers, of what is a number on all sides: what the ranks of both have in
    /// common beyond what each has with the given ones. None if two of them have no rank correlation, or if the given ones
    /// order as one of the others does.
    ///
    /// # Panics
    ///
    /// If the numbers of values differ.
    #[must_use]
    pub fn partial_correlation(&self, other: &Self, given: &Self) -> RankedCases {
        let (cases, [one, other, given]) = common_ranks([self, other, given]);
        let partial = || {
            let both = cosine_similarity(&one, &other)?;
            let (own, others) = (cosine_similarity(&one, &given)?, cosine_similarity(&other, &given)?);
            let partial = (both - own * others) / ((1.0 - own * own) * (1.0 - others * others)).sqrt();
            partial.is_finite().then(|| partial.clamp(-1.0, 1.0))
        };
        RankedCases { cases: cases as u64, rank_correlation: partial() }
    }

    /// The rank correlation within each of some groups.
    ///
    /// # Panics
    ///
    /// If the numbers of values and of their groups differ.
    #[must_use]
    pub fn correlations(&self, other: &Self, groups: &[usize], count: usize) -> Vec<RankedCases> {
        assert!([other.values.len(), groups.len()] == [self.values.len(); 2], "a value and a group for each");
        let mut members = vec![(Vec::new(), Vec::new()); count];
        for ((one, other), group) in self.values.iter().zip(&other.values).zip(groups) {
            if let Some((ones, others)) = members.get_mut(*group).filter(|_| !one.is_nan() && !other.is_nan()) {
                ones.push(*one);
                others.push(*other);
            }
        }
        members.into_iter().map(|(ones, others)| Self::new(ones).correlation(&Self::new(others))).collect()
    }
}

/// The ranks of some numbers among what is a number in each of them, and how many that are.
fn common_ranks<const SIDES: usize>(sides: [&Ranks; SIDES]) -> (usize, [Cow<'_, [f64]>; SIDES]) {
    let length = sides[0].values.len();
    assert!(sides.iter().all(|side| side.values.len() == length), "a value on every side");
    let is_known = |index: &usize| sides.iter().all(|side| !side.values[*index].is_nan());
    let known: Vec<usize> = (0..length).filter(is_known).collect();
    let of_known = |of: &[f64]| -> Vec<f64> { known.iter().map(|index| of[*index]).collect() };
    let ranks = sides.map(|side| match side.count == known.len() {
        true if known.len() == length => Cow::Borrowed(side.ranks.as_slice()),
        true => Cow::Owned(of_known(&side.ranks)),
        false => Cow::Owned(Ranks::new(of_known(&side.values)).ranks),
    });
    (known.len(), ranks)
}

/// Spearman's rank correlation: Pearson's correlation of the average ranks. Exactly 1 or -1 where the orders are equal
/// or opposite.
///
/// `None` for fewer than two pairs, for a side without two different values, which has no order, and for a value that
/// is not a number.
///
/// ```
/// # use bellwether_statistics::rank_correlation;
/// assert_eq!(rank_correlation(&[1.0, 2.0, 3.0, 4.0], &[40.0, 30.0, 20.0, 10.0]), Some(-1.0));
/// assert_eq!(rank_correlation(&[1.0, 1.0, 1.0], &[3.0, 1.0, 2.0]), None);
/// ```
///
/// # Panics
///
/// If the slices differ in length.
#[must_use]
pub fn rank_correlation(x: &[f64], y: &[f64]) -> Option<f64> {
    let of = Ranks::new(x.to_vec()).correlation(&Ranks::new(y.to_vec()));
    of.rank_correlation.filter(|_| of.cases == x.len() as u64)
}

/// Pearson's correlation. `None` as for [`rank_correlation`], and for values that are not finite.
///
/// # Panics
///
/// If the slices differ in length.
#[must_use]
pub fn correlation(x: &[f64], y: &[f64]) -> Option<f64> {
    assert_eq!(x.len(), y.len(), "a value on either side");
    if x.len() < 2 {
        return None;
    }
    cosine_similarity(&deviations(x)?, &deviations(y)?)
}

/// Bits that order as the numbers do. Both zeros are one number.
fn ascending_bits(value: f64) -> u64 {
    let bits = (value + 0.0).to_bits();
    if bits >> 63 == 1 { !bits } else { bits | 1 << 63 }
}

/// The distances of finite values from their mean; `None` without two different values.
fn deviations(values: &[f64]) -> Option<Vec<f64>> {
    let (first, rest) = values.split_first()?;
    if !values.iter().all(|value| value.is_finite()) || rest.iter().all(|value| value == first) {
        return None;
    }
    let mean = crate::mean::mean(values)?;
    Some(values.iter().map(|value| value - mean).collect())
}

fn cosine_similarity(x: &[f64], y: &[f64]) -> Option<f64> {
    let scale = (product(x, x) * product(y, y)).sqrt();
    (scale > 0.0).then(|| (product(x, y) / scale).clamp(-1.0, 1.0))
}

fn product(x: &[f64], y: &[f64]) -> f64 {
    x.iter().zip(y).map(|(x, y)| x * y).sum()
}
