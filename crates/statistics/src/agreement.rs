//! How much more often two judges agree than chance would have it.

/// The answers of two judges, yes or no, to the same questions.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PairedAnswers {
    /// Questions that both answered.
    pub both: u64,
    /// Those of them with equal answers.
    pub same: u64,
    /// Those of them that each answered with yes.
    pub yes: [u64; 2],
}

impl PairedAnswers {
    /// The share of equal answers; `None` without questions.
    #[must_use]
    pub fn rate(self) -> Option<f64> {
        (self.both > 0).then(|| self.same as f64 / self.both as f64)
    }

    /// The share of equal answers if each judge said yes as often, but knew nothing of the other; `None` without
    /// questions.
    #[must_use]
    pub fn by_chance(self) -> Option<f64> {
        let [one, other] = self.yes.map(|yes| yes as f64 / self.both as f64);
        (self.both > 0).then_some(one * other + (1.0 - one) * (1.0 - other))
    }

    /// Cohen's kappa (1960): 0 if the two agree as often as by chance, 1 if always, and negative if less often. `None`
    /// without questions, and if each judge only ever gives one answer, so that chance explains everything.
    ///
    /// ```
    /// # use bellwether_statistics::PairedAnswers;
    /// // Two readers of 50 proposals: both say yes to 20 and no to 15, one says yes to 25, the other to 30.
    /// let readers = PairedAnswers { both: 50, same: 35, yes: [25, 30] };
    /// assert!((readers.kappa().expect("both answers occur") - 0.4).abs() < 1e-15);
    /// ```
    #[must_use]
    pub fn kappa(self) -> Option<f64> {
        let (rate, chance) = (self.rate()?, self.by_chance()?);
        (chance < 1.0).then(|| (rate - chance) / (1.0 - chance))
    }

    /// Cohen's standard error of kappa, where the answers are worth no more than `independent` of them. `None` if there
    /// is no kappa, or nothing independent.
    #[must_use]
    pub fn kappa_error(self, independent: u64) -> Option<f64> {
        let (rate, chance) = (self.rate()?, self.by_chance()?);
        let independent = independent.min(self.both) as f64;
        (chance < 1.0 && independent > 0.0).then(|| (rate * (1.0 - rate) / independent).sqrt() / (1.0 - chance))
    }
}
