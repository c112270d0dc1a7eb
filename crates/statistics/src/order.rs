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

impl Order {
    /// The order of some values. A value that is not a number counts as none.
    ///
    /// # Panics
    ///
    /// If there are more than four billion.
    #[must_use]
    pub fn of(values: impl IntoIterator<Item = Option<f64>>) -> Self {
        let mut order = Self::default();
        let mut keyed = Vec::new();
        for value in values {
            let place = u32::try_from(order.places).expect("fewer than four billion values");
            keyed.extend(value.filter(|value| !value.is_nan()).map(|value| (ascending_bits(value), place)));
            order.places += 1;
        }
        keyed.sort_unstable();
        for equal in keyed.chunk_by(|(one, _), (next, _)| one == next) {
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
        self.correlations(other, &vec![0; self.places], 1)[0]
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
        let correlation = |(size, [product, own, other]): (u32, [f64; 3])| {
            let scale = (own * other).sqrt();
            let rank_correlation = (scale > 0.0).then(|| (product / scale).clamp(-1.0, 1.0));
            RankedCases { cases: size.into(), rank_correlation }
        };
        sizes.into_iter().zip(sums).map(correlation).collect()
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
