//! A number per day, stored only where it changes.

/// A step function over days: each number holds until the next entry. Before the first it is zero.
#[derive(Clone, Debug, Default)]
pub(super) struct Steps(Vec<(u32, u32)>);

impl Steps {
    /// Changes the number of a day.
    pub(super) fn update(&mut self, day: u32, change: impl FnOnce(u32) -> u32) {
        let next = self.0.partition_point(|(from, _)| *from <= day);
        let number = |index: Option<usize>| index.map_or(0, |index| self.0[index].1);
        let old = number(next.checked_sub(1));
        let new = change(old);
        if new == old {
            return;
        }
        let begins = next > 0 && self.0[next - 1].0 == day;
        let ends = self.0.get(next).is_some_and(|(from, _)| *from == day + 1);
        let first = next - usize::from(begins);
        let (before, after) = (number(first.checked_sub(1)), if ends { self.0[next].1 } else { old });
        // Days mostly come in order: the step that follows just moves by a day.
        if begins && !ends && before == new {
            self.0[first].0 += 1;
            return;
        }
        let changed = [(day, new), (day + 1, after)].into_iter().zip([before != new, after != new]);
        let changed = changed.filter_map(|(step, is_one)| is_one.then_some(step));
        self.0.splice(first..next + usize::from(ends), changed);
    }

    /// The days with a number other than zero.
    pub(super) fn days(&self) -> impl Iterator<Item = (u32, u32)> {
        let until = self.0.iter().skip(1).map(|(from, _)| *from);
        let steps = self.0.iter().zip(until).filter(|((_, number), _)| *number > 0);
        steps.flat_map(|(&(from, number), until)| (from..until).map(move |day| (day, number)))
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::Steps;

    #[test]
    fn steps_match_a_map_and_equal_steps_are_kept_once() {
        let mut state = 7_u64;
        let mut random = |below: u64| {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            ((state >> 33) % below) as u32
        };
        for _ in 0..200 {
            let (mut steps, mut map) = (Steps::default(), BTreeMap::new());
            for _ in 0..60 {
                let (day, number) = (random(20), random(3));
                steps.update(day, |_| number);
                map.insert(day, number);
                let expected: Vec<_> = map.iter().filter(|it| *it.1 > 0).map(|it| (*it.0, *it.1)).collect();
                assert_eq!(steps.days().collect::<Vec<_>>(), expected);
                assert!(steps.0.is_sorted_by(|one, next| one.0 < next.0 && one.1 != next.1), "{steps:?}");
            }
        }
        let mut steps = Steps::default();
        (0..10_000).for_each(|day| steps.update(day, |_| 5));
        assert_eq!(steps.0, [(0, 5), (10_000, 0)]);
    }
}
