//! Buckets of time (weeks, months, quarters, years) that fit on an axis.

use chrono::{Datelike, Days, NaiveDate, Weekday};

/// The width of a bucket.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Step {
    /// Monday to Sunday.
    Week,
    /// A calendar month.
    Month,
    /// A calendar quarter.
    Quarter,
    /// A calendar year.
    Year,
}

impl Step {
    /// Its name.
    pub fn as_str(self) -> &'static str {
        ["week", "month", "quarter", "year"][self as usize]
    }

    /// The first day of the bucket that holds a day.
    pub fn start(self, day: NaiveDate) -> NaiveDate {
        let first = |month: u32| NaiveDate::from_ymd_opt(day.year(), month, 1).expect("every month has a first day");
        match self {
            Self::Week => day.week(Weekday::Mon).first_day(),
            Self::Month => first(day.month()),
            Self::Quarter => first((day.month0() / 3) * 3 + 1),
            Self::Year => first(1),
        }
    }

    fn next(self, start: NaiveDate) -> NaiveDate {
        // Within the next bucket.
        self.start(start + Days::new([7, 31, 93, 366][self as usize]))
    }

    /// The label of the bucket that starts on a day: `2026-03`, `2026 Q1`, `week of 2026-03-02`.
    pub fn in_words(self, start: NaiveDate) -> String {
        match self {
            Self::Week => format!("week of {start}"),
            Self::Month => start.format("%Y-%m").to_string(),
            Self::Quarter => format!("{} Q{}", start.year(), start.quarter()),
            Self::Year => start.year().to_string(),
        }
    }
}

/// Contiguous buckets, from the first day to the last.
#[derive(Clone, Debug, PartialEq)]
pub struct Axis {
    /// The width of each bucket.
    pub step: Step,
    /// The first day of each bucket.
    pub starts: Vec<NaiveDate>,
}

impl Axis {
    /// The finest buckets, no finer than `finest`, that number `most` or fewer; years if nothing else fits.
    pub fn new(days: &[NaiveDate], finest: Step, most: usize) -> Self {
        let (Some(&first), Some(&last)) = (days.iter().min(), days.iter().max()) else {
            return Self { step: finest, starts: Vec::new() };
        };
        let starts = |step: Step| -> Vec<NaiveDate> {
            std::iter::successors(Some(step.start(first)), |start| Some(step.next(*start)))
                .take_while(|start| *start <= last)
                .collect()
        };
        let steps = [Step::Week, Step::Month, Step::Quarter, Step::Year].into_iter().filter(|step| *step >= finest);
        let mut axes = steps.map(|step| Self { step, starts: starts(step) });
        axes.find(|axis| axis.starts.len() <= most || axis.step == Step::Year).expect("years are always enough")
    }

    /// The bucket that holds a day.
    pub fn index_of(&self, day: NaiveDate) -> Option<usize> {
        self.starts.binary_search(&self.step.start(day)).ok()
    }

    /// The label of a bucket.
    pub fn in_words(&self, index: usize) -> String {
        self.step.in_words(self.starts[index])
    }

    /// Daily values gathered by bucket.
    pub(super) fn group<S: Clone + Default, T>(
        &self,
        days: impl IntoIterator<Item = (NaiveDate, T)>,
        add: impl Fn(&mut S, T),
    ) -> Vec<S> {
        let mut all = vec![S::default(); self.starts.len()];
        for (day, value) in days {
            if let Some(index) = self.index_of(day) {
                add(&mut all[index], value);
            }
        }
        all
    }

    /// Sums of daily values by bucket.
    pub fn sums(&self, days: impl IntoIterator<Item = (NaiveDate, u64)>) -> Vec<u64> {
        self.group(days, |sum, count| *sum += count)
    }
}

#[cfg(test)]
mod tests {
    use chrono::NaiveDate;

    use super::{Axis, Step};

    fn day(text: &str) -> NaiveDate {
        text.parse().unwrap()
    }

    #[test]
    fn steps_of_the_axis_leave_no_gap_and_fit_the_width() {
        let days = [day("2026-03-01"), day("2025-12-31")];
        let axis = Axis::new(&days, Step::Week, 20);
        assert_eq!((axis.starts[0], axis.starts.len()), (day("2025-12-29"), 9));
        assert_eq!(
            Axis::new(&days, Step::Month, 20).starts,
            [day("2025-12-01"), day("2026-01-01"), day("2026-02-01"), day("2026-03-01")]
        );
        let years = Axis::new(&[day("1990-06-01"), day("2026-03-01")], Step::Week, 60);
        assert_eq!((years.step, years.starts.len(), years.index_of(day("2026-12-31"))), (Step::Year, 37, Some(36)));
        assert_eq!(Axis::new(&[day("2024-02-29"), day("2026-01-01")], Step::Week, 10).in_words(1), "2024 Q2");
        assert!(Axis::new(&[], Step::Week, 10).starts.is_empty());
    }
}
