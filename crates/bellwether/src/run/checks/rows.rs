//! The checks of the rows that were built, before they are published.

use chrono::{DateTime, NaiveDate, Utc};

use super::{Check, CheckOutcome, PreviousVersion};
use crate::audit::revisions::{RewriteCount, RewrittenSince};
use crate::error::Result;
use crate::facts::Facts;
use crate::freshness::{Age, MAX_DAYS_AHEAD, days_ahead, today};
use crate::plan::{OnFinding, Plan};
use crate::run::names::{in_words, list};
use crate::text::human::{count_of, group_digits, percent};

/// A share of fewer cells says nothing.
const FEWEST_CELLS: u64 = 20;

/// Rows to check.
#[derive(Clone, Copy)]
pub(in crate::run) struct RowChecks<'a> {
    pub(in crate::run) plan: &'a Plan,
    pub(in crate::run) facts: &'a Facts,
    /// The version before, if there is one.
    pub(in crate::run) before: Option<&'a PreviousVersion>,
    /// What was rewritten since; none if nothing can have been.
    pub(in crate::run) rewritten: Option<&'a RewrittenSince>,
    pub(in crate::run) now: DateTime<Utc>,
}

impl RowChecks<'_> {
    /// Checks the rows. Returns notes.
    pub(in crate::run) fn check(self) -> Result<Vec<String>> {
        let mut outcome = CheckOutcome::default();
        let today = today(self.plan, self.now);
        outcome.notes.extend(self.plan.dataset.calendar_note(today));
        outcome.add(Check::MaxAge, OnFinding::Fail, self.age(today));
        outcome.add(Check::Dates, self.plan.checks.dates, self.ahead(today));
        outcome.add(Check::Dates, self.plan.checks.dates, self.back());
        self.check_rewrites(&mut outcome);
        outcome.into_notes(&self.plan.name)
    }

    /// The newest date is too old. What is dated in the future keeps nothing fresh.
    fn age(self, today: NaiveDate) -> Option<String> {
        let (limit, newest) = (self.plan.checks.max_age?, self.facts.newest_by(today)?);
        let age = Age::of(newest, today, &self.plan.dataset.sessions);
        age.is_above(limit).then(|| format!("the newest date is {newest}, {age} ago, above the limit of {limit}"))
    }

    /// The newest date is far in the future.
    fn ahead(self, today: NaiveDate) -> Option<String> {
        let (_, newest) = self.facts.bounds()?;
        let days = count_of(days_ahead(newest, today)?.into(), "day", "days");
        let limit = count_of(MAX_DAYS_AHEAD.into(), "day", "days");
        Some(format!("the newest date is {newest}, {days} in the future, above the limit of {limit}"))
    }

    /// The newest date is before that of the previous version, which asked for the same and was not ahead of its time. A
    /// revision may take the newest date from rows that are selected by their values.
    fn back(self) -> Option<String> {
        let before = self.before?;
        let (plan, known) = (before.plan.as_ref()?, before.newest?);
        let is_same = plan.alternatives == self.plan.alternatives
            && plan.dataset.filter == self.plan.dataset.filter
            && !plan.dataset.filter.is_by_value()
            && plan.dataset.dates == self.plan.dataset.dates
            && plan.dataset.rows == self.plan.dataset.rows;
        let was_ahead = days_ahead(known, today(plan, before.recorded.built_at)).is_some();
        let (_, newest) = self.facts.bounds()?;
        let version = &before.recorded.version;
        (is_same && !was_ahead && newest < known)
            .then(|| format!("the newest date went back from {known} to {newest} since version `{version}`"))
    }

    /// More was rewritten than is usual.
    fn check_rewrites(self, outcome: &mut CheckOutcome) {
        let (Some(rewritten), Some(before)) = (self.rewritten, self.before) else { return };
        let version = &before.recorded.version;
        let RewrittenSince { signals, articles, series } = rewritten;
        let (limit, of_series) = (self.plan.checks.rewritten, self.plan.checks.rewritten_series);
        for (count, [one, many]) in [(signals, ["signal", "signals"]), (articles, ["article", "articles"])] {
            let found = is_above(*count, limit).then(|| {
                let (some, all) = (group_digits(count.rewritten), count_of(count.known, one, many));
                let verb = if count.rewritten == 1 { "was" } else { "were" };
                let limit = percent(limit);
                format!(
                    "{some} of {all} {verb} revised or withdrawn since version `{version}`, above the limit of {limit}"
                )
            });
            outcome.add(Check::Rewritten, OnFinding::Fail, found);
        }
        let above: Vec<String> = series
            .iter()
            .filter(|(_, count)| is_above(*count, of_series))
            .map(|(key, count)| {
                format!("{} ({} of {})", in_words(key), group_digits(count.rewritten), group_digits(count.known))
            })
            .collect();
        let found = (!above.is_empty()).then(|| {
            let (count, limit) = (count_of(above.len() as u64, "series was", "series were"), percent(of_series));
            let names = list(above.iter());
            format!("{count} rewritten since version `{version}` by more than the limit of {limit}: {names}")
        });
        outcome.add(Check::RewrittenSeries, OnFinding::Fail, found);
    }
}

fn is_above(count: RewriteCount, share: f64) -> bool {
    count.known >= FEWEST_CELLS && count.rewritten as f64 > count.known as f64 * share
}
