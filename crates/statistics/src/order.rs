//! The order of some values, from which the ranks of any of them follow without sorting again.
//!
//! The names of a date are ranked many times: against the returns of several lags, among the names of each sector, without
//! those that were added late. Sorting takes most of the time of a rank correlation, and an order is sorted once.

use crate::ranks::ascending_bits;

/// Values in ascending order, by their places. A place may have no value; then it has no rank.
///
/// ```
/// # use bellwether_statistics::Order;
/// let confidences = Order::of([0.5, 0.9, -0.7, 0.6].map(Some));
/// let returns = Order::of([Some(0.01), None, Some(-0.02), Some(0.03)]);
/// assert_eq!(confidences.correlation(&returns).rank_correlation, Some(1.0));
/// ```
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Order {
    /// The number of places.
    places: usize,
    /// The places with a value, ascending by it.
    ascending: Vec<u32>,
    /// Where each run of equal values ends among them.
    ends: Vec<u32>,
}

/// The rank correlation of some cases.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct RankedCases {
    /// The cases.
    pub cases: u64,
    /// Spearman's rank correlation; none as for [`rank_correlation`](crate::rank_correlation).
    pub rank_correlation: Option<f64>,
}

impl RankedCases {
    /// From the sums of the products of the ranks of either side, and of their squares.
    fn of(cases: u64, [product, own, other]: [f64; 3]) -> Self {
        let scale = (own * other).sqrt();
        Self { cases, rank_correlation: (scale > 0.0).then(|| (product / scale).clamp(-1.0, 1.0)) }
    }
}

impl Order {
    /// The order of some values. A value that is not a number counts as none.
    ///
    /// # Panics
    ///
    /// If there are more than four billion.
    #[must_use]
    pub fn of(values: impl IntoIterator<Item = Option<f64>>) -> Self {
        let mut order = Self::default();
        let mut keys = Vec::new();
        for value in values {
            let place = u32::try_from(order.places).expect("fewer than four billion values");
            keys.extend(value.filter(|value| !value.is_nan()).map(|value| (ascending_bits(value), place)));
            order.places += 1;
        }
        sort(&mut keys);
        for equal in keys.chunk_by(|(one, _), (next, _)| one == next) {
            order.ascending.extend(equal.iter().map(|(_, place)| place));
            order.ends.push(order.ascending.len() as u32);
        }
        order
    }

    /// The number of places with a value.
    #[must_use]
    pub fn count(&self) -> usize {
        self.ascending.len()
    }

    /// The rank correlation of all places that have both values.
    ///
    /// # Panics
    ///
    /// If the numbers of places differ.
    #[must_use]
    pub fn correlation(&self, other: &Self) -> RankedCases {
        if self.count() < self.places || other.count() < self.places {
            return self.correlations(other, &vec![0; self.places], 1)[0];
        }
        let [own, others] = [self, other].map(Self::all_ranks);
        let mut sums = [0.0; 3];
        for (own, other) in own.iter().zip(&others) {
            sums = [sums[0] + own * other, sums[1] + own * own, sums[2] + other * other];
        }
        RankedCases::of(self.places as u64, sums)
    }

    /// The rank correlation within each of some groups, of the places that have both values. The group of a place is its
    /// number; a place whose number is not below `count` is in none.
    ///
    /// # Panics
    ///
    /// If the numbers of places and of their groups differ.
    #[must_use]
    pub fn correlations(&self, other: &Self, groups: &[usize], count: usize) -> Vec<RankedCases> {
        assert_eq!((self.places, self.places), (other.places, groups.len()), "a value and a group for each place");
        let mut has_other = vec![false; self.places];
        other.ascending.iter().for_each(|place| has_other[*place as usize] = true);
        let (mut of_places, mut sizes) = (vec![count; self.places], vec![0; count]);
        for place in self.ascending.iter().map(|place| *place as usize) {
            if has_other[place] && groups[place] < count {
                of_places[place] = groups[place];
                sizes[groups[place]] += 1;
            }
        }
        let [own, others] = [self, other].map(|order| order.ranks(&of_places, &sizes));
        let mut sums = vec![[0.0; 3]; count];
        for (place, group) in of_places.iter().enumerate().filter(|(_, group)| **group < count) {
            let (own, other) = (own[place], others[place]);
            for (sum, product) in sums[*group].iter_mut().zip([own * other, own * own, other * other]) {
                *sum += product;
            }
        }
        sizes.into_iter().zip(sums).map(|(size, sums)| RankedCases::of(size.into(), sums)).collect()
    }

    /// The partial rank correlation given some more values, of the places that have all three: what the ranks of both have in
    /// common beyond what each has with the given ones. None if two of them have no rank correlation, or if the given ones
    /// order the places as one of the others does.
    ///
    /// ```
    /// # use bellwether_statistics::Order;
    /// let [scores, returns, confidences] =
    ///     [[0.3, -0.1, 0.8, 0.2, 0.5], [0.02, -0.03, 0.05, 0.01, -0.01], [0.6, -0.9, 0.7, 0.5, -0.6]]
    ///         .map(|values| Order::of(values.map(Some)));
    /// let [alone, partial] =
    ///     [scores.correlation(&returns), scores.partial_correlation(&returns, &confidences)].map(|of| of.rank_correlation);
    /// assert_eq!(alone, Some(0.7));
    /// assert!(partial < alone);
    /// ```
    ///
    /// # Panics
    ///
    /// If the numbers of places differ.
    #[must_use]
    pub fn partial_correlation(&self, other: &Self, given: &Self) -> RankedCases {
        assert_eq!((self.places, self.places), (other.places, given.places), "three values for each place");
        let orders = [self, other, given];
        let mut known = vec![0_usize; self.places];
        orders.iter().flat_map(|order| &order.ascending).for_each(|place| known[*place as usize] += 1);
        let groups: Vec<usize> = known.iter().map(|known| usize::from(*known < orders.len())).collect();
        let cases = groups.iter().filter(|group| **group == 0).count() as u32;
        // Other places have the rank 0, which adds nothing.
        let ranks = orders.map(|order| order.ranks(&groups, &[cases]));
        let product = |one: usize, other: usize| -> f64 {
            ranks[one].iter().zip(&ranks[other]).map(|(one, other)| one * other).sum()
        };
        let correlation =
            |(one, other): (usize, usize)| product(one, other) / (product(one, one) * product(other, other)).sqrt();
        let [both, own, others] = [(0, 1), (0, 2), (1, 2)].map(correlation);
        let partial = (both - own * others) / ((1.0 - own * own) * (1.0 - others * others)).sqrt();
        RankedCases { cases: cases.into(), rank_correlation: partial.is_finite().then(|| partial.clamp(-1.0, 1.0)) }
    }

    /// By place, twice the distance of its average rank from the middle, if each place has a value.
    fn all_ranks(&self) -> Vec<f64> {
        let mut ranks = vec![0.0; self.places];
        let mut begin = 0;
        for end in self.ends.iter().map(|end| *end as usize) {
            let rank = (begin + end) as f64 - self.places as f64;
            self.ascending[begin..end].iter().for_each(|place| ranks[*place as usize] = rank);
            begin = end;
        }
        ranks
    }

    /// By place, twice the distance of its average rank from the middle, within its group: whole numbers, so that sums of
    /// their products are exact. Places whose group has no size are in none.
    fn ranks(&self, groups: &[usize], sizes: &[u32]) -> Vec<f64> {
        let mut ranks = vec![0.0; self.places];
        let (mut below, mut equal) = (vec![0_u32; sizes.len() + 1], vec![0_u32; sizes.len() + 1]);
        let mut begin = 0;
        for end in self.ends.iter().map(|end| *end as usize) {
            let ties = self.ascending[begin..end].iter().map(|place| *place as usize);
            begin = end;
            ties.clone().for_each(|place| equal[groups[place]] += 1);
            for place in ties.clone() {
                if let Some(size) = sizes.get(groups[place]) {
                    ranks[place] = f64::from(2 * below[groups[place]] + equal[groups[place]]) - f64::from(*size);
                }
            }
            for place in ties {
                below[groups[place]] += 1;
                equal[groups[place]] = 0;
            }
        }
        ranks
    }
}

/// Sorts keys with their places. Most keys differ in their high bits, and a word with these and the number of the key is
/// sorted twice as fast as a pair.
fn sort(keys: &mut Vec<(u64, u32)>) {
    let low = (1_u64 << usize::BITS.saturating_sub(keys.len().leading_zeros())) - 1;
    let mut words: Vec<u64> = keys.iter().zip(0_u64..).map(|((key, _), number)| key & !low | number).collect();
    words.sort_unstable();
    let mut sorted: Vec<(u64, u32)> = words.iter().map(|word| keys[(word & low) as usize]).collect();
    for alike in sorted.chunk_by_mut(|(one, _), (next, _)| one & !low == next & !low) {
        if alike.len() > 1 {
            alike.sort_unstable();
        }
    }
    *keys = sorted;
}

#[cfg(test)]
mod tests {
    use super::{Order, sort};
    use crate::Random;

    #[test]
    fn keys_that_differ_in_their_low_bits_alone_are_sorted_too() {
        let mut random = Random::new(3);
        for (count, range) in [(0, 1.0), (1, 1.0), (2, 3.0), (700, 5.0), (700, 2000.0), (5000, 1e18)] {
            let mut keys: Vec<(u64, u32)> =
                (0..count).map(|place| ((random.uniform() * range) as u64, place)).collect();
            let mut expected = keys.clone();
            expected.sort_unstable();
            sort(&mut keys);
            assert_eq!(keys, expected, "{count} keys below {range}");
        }
    }

    #[test]
    fn a_partial_correlation_is_that_of_what_a_line_through_the_given_ranks_leaves() {
        let mut random = Random::new(7);
        for _ in 0..50 {
            let mut values = || -> Vec<f64> { (0..30).map(|_| (random.uniform() * 9.0).floor()).collect() };
            let given = values();
            let [one, other] = [values(), values()]
                .map(|own| -> Vec<f64> { own.iter().zip(&given).map(|(own, given)| own + given).collect() });
            let order = |values: &[f64]| Order::of(values.iter().copied().map(Some));
            let ranks = [&one, &other, &given].map(|values| order(values).all_ranks());
            // Ranks are around zero.
            let product =
                |one: &[f64], other: &[f64]| -> f64 { one.iter().zip(other).map(|(one, other)| one * other).sum() };
            let left = |own: &[f64]| -> Vec<f64> {
                let slope = product(own, &ranks[2]) / product(&ranks[2], &ranks[2]);
                own.iter().zip(&ranks[2]).map(|(own, given)| own - slope * given).collect()
            };
            let [one_left, other_left] = [left(&ranks[0]), left(&ranks[1])];
            let expected = product(&one_left, &other_left)
                / (product(&one_left, &one_left) * product(&other_left, &other_left)).sqrt();
            let found = order(&one).partial_correlation(&order(&other), &order(&given));
            assert_eq!(found.cases, 30);
            assert!((found.rank_correlation.expect("values differ") - expected).abs() < 1e-12);
            // A place without one of the three counts for nothing.
            let with_a_gap = |values: &[f64], last| Order::of(values.iter().copied().map(Some).chain([last]));
            let gap = with_a_gap(&one, Some(4.0))
                .partial_correlation(&with_a_gap(&other, Some(9.0)), &with_a_gap(&given, None));
            assert_eq!(gap, found);
            // Nothing is left of what the given values are.
            assert_eq!(order(&given).partial_correlation(&order(&one), &order(&given)).rank_correlation, None);
        }
    }

    #[test]
    fn a_correlation_is_the_same_whether_or_not_each_place_has_a_value() {
        let mut random = Random::new(5);
        for _ in 0..50 {
            let mut values =
                || -> Vec<Option<f64>> { (0..40).map(|_| Some((random.uniform() * 12.0).floor())).collect() };
            let [one, other] = [values(), values()];
            let whole = Order::of(one.iter().copied()).correlation(&Order::of(other.iter().copied()));
            let with_a_gap = |values: &[Option<f64>]| Order::of(values.iter().copied().chain([None]));
            assert_eq!(with_a_gap(&one).correlation(&with_a_gap(&other)), whole);
        }
    }
}
