//! How many windows of time do not overlap, and how many dates share one.

use std::num::NonZeroUsize;
use std::ops::Range;

/// The windows that the values of some dates look over.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Windows {
    /// The dates of the window of a date, on average.
    horizon: NonZeroUsize,
    /// The whole windows that do not overlap.
    whole: usize,
    /// The first date, and each whose window begins when that of the one before has ended.
    apart: Vec<usize>,
}

impl Windows {
    /// Those of dates that follow each other, each of which looks `horizon` dates ahead.
    #[must_use]
    pub fn of_horizon(dates: usize, horizon: NonZeroUsize) -> Self {
        Self { horizon, whole: dates / horizon, apart: (0..dates).step_by(horizon.get()).collect() }
    }

    /// Those of dates whose windows begin and end at these places. Dates that were seen at once may have the same window, and
    /// count as one then. Where some windows hold many dates and others few, there are as many as would be of equal size for
    /// a mean over dates to vary as much: (Σn)² / Σn².
    ///
    /// ```
    /// # use bellwether_statistics::Windows;
    /// // The five dates of each of four weeks were seen at its end.
    /// let windows = Windows::of((0..20).map(|date| date / 5 * 5 + 5).map(|begin| begin..begin + 1));
    /// assert_eq!((windows.horizon().get(), windows.whole()), (5, 4));
    /// ```
    #[must_use]
    pub fn of(dates: impl IntoIterator<Item = Range<usize>>) -> Self {
        let (mut apart, mut end, mut count, mut last) = (Vec::new(), 0, 0, 0);
        for (date, window) in dates.into_iter().enumerate() {
            (count, last) = (date + 1, window.start.max(last));
            if date == 0 || window.start >= end {
                apart.push(date);
                end = window.end;
            }
        }
        // The last one is whole if it ends where that of a next date would begin.
        let mut ends = apart.clone();
        ends.extend((end <= last + 1).then_some(count));
        let sizes = || ends.windows(2).map(|bounds| bounds[1] - bounds[0]);
        let (dates, squares): (usize, usize) = (sizes().sum(), sizes().map(|size| size * size).sum());
        let (horizon, whole) = match dates {
            0 => (count, count.min(1)),
            dates => ((squares + dates / 2) / dates, dates * dates / squares),
        };
        Self { horizon: NonZeroUsize::new(horizon).unwrap_or(NonZeroUsize::MIN), whole, apart }
    }

    /// The dates of the window of a date, on average: as many values share most of what they look at.
    #[must_use]
    pub fn horizon(&self) -> NonZeroUsize {
        self.horizon
    }

    /// The number of whole windows that do not overlap: what the dates are worth, however many they are.
    #[must_use]
    pub fn whole(&self) -> usize {
        self.whole
    }

    /// The first date, and each whose window begins when that of the one before has ended.
    #[must_use]
    pub fn apart(&self) -> &[usize] {
        &self.apart
    }
}

#[cfg(test)]
mod tests {
    use std::num::NonZeroUsize;

    use super::Windows;

    #[test]
    fn dates_that_follow_each_other_have_the_windows_of_their_horizon() {
        for (dates, horizon) in [(20, 5), (22, 5), (24, 5), (20, 1), (7, 7), (8, 7), (13, 7)] {
            let of_places = Windows::of((0..dates).map(|entry| entry..entry + horizon));
            assert_eq!(
                of_places,
                Windows::of_horizon(dates, NonZeroUsize::new(horizon).unwrap()),
                "{dates}, {horizon}"
            );
        }
    }

    #[test]
    fn windows_that_are_the_same_count_once() {
        let of = |windows: &[(usize, usize)]| {
            let windows = Windows::of(windows.iter().map(|(begin, end)| *begin..*end));
            (windows.horizon().get(), windows.whole(), windows.apart)
        };
        assert_eq!(of(&[(4, 5); 5]), (5, 1, vec![0]));
        // Two dates were seen at once, of twenty.
        let late: Vec<(usize, usize)> = (0..20_usize).map(|entry| (entry.max(1), entry.max(1) + 1)).collect();
        assert_eq!((of(&late).0, of(&late).1), (1, 18));
        // One name of the second date was entered late.
        assert_eq!(of(&[(0, 1), (1, 4), (2, 3), (3, 4), (4, 5), (5, 6)]), (2, 3, vec![0, 1, 4, 5]));
        // Later dates may be entered earlier.
        assert_eq!(of(&[(3, 5), (1, 3), (5, 7), (7, 9)]), (2, 1, vec![0, 2, 3]));
        assert_eq!(of(&[(0, 20), (1, 21)]), (2, 1, vec![0]), "there is none that is whole but its own");
        assert_eq!(of(&[]), (1, 0, vec![]));
        // Three dates that were seen at once outweigh four others: fewer than five windows.
        let first_run: Vec<(usize, usize)> =
            [2, 2, 2, 3, 4, 5, 6].into_iter().map(|entry| (entry, entry + 1)).collect();
        assert_eq!(of(&first_run), (2, 3, vec![0, 3, 4, 5, 6]));
    }
}
