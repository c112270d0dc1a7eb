//! The order of some values, from which the ranks of any of them follow without sorting again.
//!
//! The names of a date are ranked many times: against the returns of several lags, among the names of each sector, without
//! those that were added late. Sorting takes most of the time of a rank correlation, and an order is sorted once.

use std::borrow::Cow;

use crate::ranks::ascending_bits;

/// Values in ascending order, by their places. A place may have no value; then it has no rank.
///
/// ```
/// # use bellwether_statistics::Order;
/// let confidences = Order::of([0.5, 0.9, -0.7, 0.6].map(Some));
/// let returns = Order::of([Some(0.01), None, Some(-0.02), Some(0.03)]);
/// assert_eq!(confidences.correlation(&returns).rank_correlation, Some(1.0));
/// ```
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Order {
    /// The number of places.
    places: usize,
    /// The places with a value, ascending by it.
    ascending: Vec<u32>,
    /// Where each run of equal values ends among them.
    ends: Vec<u32>,
    /// Whether a place has a value.
    known: Vec<bool>,
    /// By place, twice the distance of its average rank from the middle: whole numbers, so that sums of their products are
    /// exact. Zero without a value.
    ranks: Vec<f64>,
    /// The sum of the squares of the ranks.
    square: f64,
}

/// The ranks of an order among some of its places.
struct Ranks<'a> {
    /// By place; zero of all others.
    values: Cow<'a, [f64]>,
    /// The sum of their squares.
    square: f64,
}

impl Ranks<'_> {
    fn product(&self, other: &Self) -> f64 {
        product(&self.values, &other.values)
    }
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
        let values = values.into_iter();
        let mut order = Self::default();
        let mut keys = Vec::with_capacity(values.size_hint().0);
        for value in values {
            let place = u32::try_from(order.places).expect("fewer than four billion values");
            keys.extend(value.filter(|value| !value.is_nan()).map(|value| (ascending_bits(value), place)));
            order.places += 1;
        }
        (order.ascending, order.ends) = sort(&keys);
        order.rank()
    }

    /// The order of the same values at other places. `moved` has the new place of each; a value without one is left out.
    ///
    /// ```
    /// # use bellwether_statistics::Order;
    /// let order = Order::of([0.5, 0.9, -0.7].map(Some));
    /// assert_eq!(order.at_places(&[Some(1), None, Some(0)], 2), Order::of([-0.7, 0.5].map(Some)));
    /// ```
    ///
    /// # Panics
    ///
    /// If a new place is not below `places`.
    #[must_use]
    pub fn at_places(&self, moved: &[Option<u32>], places: usize) -> Self {
        let [ascending, ends] = std::array::from_fn(|_| Vec::with_capacity(places));
        let mut order = Self { places, ascending, ends, ..Self::default() };
        for equal in self.equals() {
            let before = order.ascending.len();
            order.ascending.extend(equal.iter().filter_map(|place| moved[*place as usize]));
            order.ascending[before..].sort_unstable();
            if order.ascending.len() > before {
                order.ends.push(order.ascending.len() as u32);
            }
        }
        order.rank()
    }

    /// Itself, once its places are in order.
    fn rank(mut self) -> Self {
        self.known = vec![false; self.places];
        self.ascending.iter().for_each(|place| self.known[*place as usize] = true);
        self.ranks = self.ranks_among(&self.known, self.count());
        self.square = product(&self.ranks, &self.ranks);
        self
    }

    /// The ranks of all its places.
    fn own_ranks(&self) -> Ranks<'_> {
        Ranks { values: Cow::Borrowed(&self.ranks), square: self.square }
    }

    /// The places of equal values, ascending by the value.
    fn equals(&self) -> impl Iterator<Item = &[u32]> {
        let mut begin = 0;
        self.ends.iter().map(move |end| &self.ascending[std::mem::replace(&mut begin, *end as usize)..*end as usize])
    }

    /// The rank of each place among some of those with a value; zero of all others.
    fn ranks_among(&self, taken: &[bool], count: usize) -> Vec<f64> {
        let mut ranks = vec![0.0; self.places];
        let mut below = 0;
        for equal in self.equals() {
            let taken = || equal.iter().map(|place| *place as usize).filter(|place| taken[*place]);
            let equal = taken().count();
            let rank = (2 * below + equal) as f64 - count as f64;
            taken().for_each(|place| ranks[place] = rank);
            below += equal;
        }
        ranks
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
        let (count, [own, others]) = common_ranks([self, other]);
        RankedCases::of(count as u64, [own.product(&others), own.square, others.square])
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
        // The last group is that of the places that are in none.
        let (mut of_places, mut sizes) = (vec![count; self.places], vec![0; count + 1]);
        for (place, group) in groups.iter().enumerate() {
            if *group < count && self.known[place] && other.known[place] {
                of_places[place] = *group;
                sizes[*group] += 1;
            }
        }
        let [own, others] = [self, other].map(|order| order.ranks_within(&of_places, &sizes));
        let mut sums = vec![[0.0; 3]; count + 1];
        for (group, (own, other)) in of_places.iter().zip(own.iter().zip(&others)) {
            for (sum, product) in sums[*group].iter_mut().zip([own * other, own * own, other * other]) {
                *sum += product;
            }
        }
        sizes.into_iter().zip(sums).take(count).map(|(size, sums)| RankedCases::of(size.into(), sums)).collect()
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
        let (cases, ranks) = common_ranks([self, other, given]);
        let correlation = |(one, other): (usize, usize)| {
            let (one, other) = (&ranks[one], &ranks[other]);
            one.product(other) / (one.square * other.square).sqrt()
        };
        let [both, own, others] = [(0, 1), (0, 2), (1, 2)].map(correlation);
        let partial = (both - own * others) / ((1.0 - own * own) * (1.0 - others * others)).sqrt();
        RankedCases { cases: cases as u64, rank_correlation: partial.is_finite().then(|| partial.clamp(-1.0, 1.0)) }
    }

    /// By place, twice the distance of its average rank from the middle, within its group, of which each has a size.
    fn ranks_within(&self, groups: &[usize], sizes: &[u32]) -> Vec<f64> {
        let mut ranks = vec![0.0; self.places];
        let (mut below, mut ties) = (vec![0_u32; sizes.len()], vec![0_u32; sizes.len()]);
        let rank = |below: u32, ties: u32, group: usize| f64::from(2 * below + ties) - f64::from(sizes[group]);
        for equal in self.equals() {
            if let [place] = equal {
                let (place, group) = (*place as usize, groups[*place as usize]);
                ranks[place] = rank(below[group], 1, group);
                below[group] += 1;
                continue;
            }
            let places = || equal.iter().map(|place| (*place as usize, groups[*place as usize]));
            places().for_each(|(_, group)| ties[group] += 1);
            places().for_each(|(place, group)| ranks[place] = rank(below[group], ties[group], group));
            for (_, group) in places() {
                below[group] += std::mem::take(&mut ties[group]);
            }
        }
        ranks
    }
}

/// The ranks of some orders among the places that have a value in each of them, and the number of these places.
fn common_ranks<const ORDERS: usize>(orders: [&Order; ORDERS]) -> (usize, [Ranks<'_>; ORDERS]) {
    let places = orders[0].places;
    assert!(orders.iter().all(|order| order.places == places), "values of the same places");
    if orders.iter().all(|order| order.count() == places) {
        return (places, orders.map(Order::own_ranks));
    }
    let known: Vec<bool> = (0..places).map(|place| orders.iter().all(|order| order.known[place])).collect();
    let count = known.iter().filter(|known| **known).count();
    let ranks = orders.map(|order| {
        if order.count() == count {
            return order.own_ranks();
        }
        let ranks = order.ranks_among(&known, count);
        Ranks { square: product(&ranks, &ranks), values: Cow::Owned(ranks) }
    });
    (count, ranks)
}

/// The sum of the products of whole numbers, which is the same in any order.
fn product(one: &[f64], other: &[f64]) -> f64 {
    const LANES: usize = 8;
    let mut sums = [0.0; LANES];
    let (one, other) = (one.chunks_exact(LANES), other.chunks_exact(LANES));
    let rest: f64 = one.remainder().iter().zip(other.remainder()).map(|(one, other)| one * other).sum();
    for (one, other) in one.zip(other) {
        sums.iter_mut().zip(one.iter().zip(other)).for_each(|(sum, (one, other))| *sum += one * other);
    }
    sums.iter().sum::<f64>() + rest
}

/// The places of keys, ascending by the key and then by the place, and where each run of equal keys ends among them. Most
/// keys differ in their high bits, and a word with these and the number of the key is sorted twice as fast as a pair.
fn sort(keys: &[(u64, u32)]) -> (Vec<u32>, Vec<u32>) {
    let low = (1_u64 << usize::BITS.saturating_sub(keys.len().leading_zeros())) - 1;
    let mut words: Vec<u64> = keys.iter().zip(0_u64..).map(|((key, _), number)| key & !low | number).collect();
    words.sort_unstable();
    let key = |word: &u64| keys[(word & low) as usize];
    let [mut places, mut ends] = std::array::from_fn(|_| Vec::with_capacity(keys.len()));
    let mut alike_keys = Vec::new();
    for alike in words.chunk_by(|one, next| one & !low == next & !low) {
        if let [word] = alike {
            places.push(key(word).1);
            ends.push(places.len() as u32);
            continue;
        }
        alike_keys.clear();
        alike_keys.extend(alike.iter().map(key));
        alike_keys.sort_unstable();
        for equal in alike_keys.chunk_by(|(one, _), (next, _)| one == next) {
            places.extend(equal.iter().map(|(_, place)| place));
            ends.push(places.len() as u32);
        }
    }
    (places, ends)
}

#[cfg(test)]
mod tests {
    use super::{Order, sort};
    use crate::Random;

    #[test]
    fn keys_that_differ_in_their_low_bits_alone_are_sorted_too() {
        let mut random = Random::new(3);
        for (count, range) in [(0, 1.0), (1, 1.0), (2, 3.0), (700, 5.0), (700, 2000.0), (5000, 1e18)] {
            let keys: Vec<(u64, u32)> = (0..count).map(|place| ((random.uniform() * range) as u64, place)).collect();
            let mut expected = keys.clone();
            expected.sort_unstable();
            let (places, ends) = sort(&keys);
            assert_eq!(
                places,
                expected.iter().map(|(_, place)| *place).collect::<Vec<_>>(),
                "{count} keys below {range}"
            );
            let runs = expected.chunk_by(|(one, _), (next, _)| one == next).map(<[_]>::len);
            let expected: Vec<u32> = runs
                .scan(0, |end, run| {
                    *end += run as u32;
                    Some(*end)
                })
                .collect();
            assert_eq!(ends, expected, "{count} keys below {range}");
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
            let ranks = [&one, &other, &given].map(|values| order(values).ranks);
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
