//! Does a measure of skill use what was not known? Tested by experiment, like the other trials of `audit leak`.
//!
//! - *closes before*: every close up to a session is changed. Dates from that session on must have the same measures,
//!   since no position is entered at a close that may lie before its signal.
//! - *closes after*: every close from a session on is changed. Dates whose positions were all over by then must have the
//!   same measures. Which these are is found by removing those closes: a date that loses no name needs none of them.
//! - *runs after*: the history as of an instant. What was published on dates that were no longer fresh by then must be
//!   measured as it is today.
//!
//! To show that the first two can fail, some other date must change.

use std::collections::BTreeMap;

use chrono::{DateTime, Utc};

use super::leak::{Trial, TrialOutcome, instants};
use super::skill::{
    DateCorrelation, DateReturns, Day, Prices, SkillInput, SkillRules, State, WhenMissing, date, skill,
};
use super::subject::Subject;
use crate::archive::{Archive, Scope, View};
use crate::error::Result;
use crate::freshness::fresh_until;
use crate::interface::{Period, Regime};
use crate::plan::DatasetPlan;
use crate::time::MICROS_PER_DAY;

/// Sessions to try.
const CUTS: usize = 2;

/// What is measured on a date: signals, or a feature of their news.
type Measured = (Period, Regime, Option<String>, State, Day);

/// The measures of each date; the returns are those of signals.
type ByDate = BTreeMap<Measured, (DateCorrelation, Option<DateReturns>)>;

/// The signals of a dataset, its prices, and how they are measured.
pub(crate) struct SkillTrials<'a> {
    pub(crate) archive: &'a Archive,
    pub(crate) scope: &'a Scope,
    pub(crate) plan: &'a DatasetPlan,
    pub(crate) prices: &'a Prices,
    pub(crate) rules: SkillRules,
}

impl SkillTrials<'_> {
    /// Runs all trials.
    pub(crate) fn run(&self) -> Result<Vec<Trial>> {
        let now = self.archive.runs().iter().map(|run| run.seal().sealed_at).max().unwrap_or_default();
        let whole = self.measures(self.prices, now)?;
        let mut trials = Vec::new();
        let sessions = self.prices.sessions().len();
        for cut in (1..=CUTS).map(|cut| sessions * cut / (CUTS + 1)) {
            trials.push(self.closes_before(&whole, cut, now)?);
            trials.push(self.closes_after(&whole, cut, now)?);
        }
        for instant in instants(self.archive) {
            trials.push(self.runs_after(&whole, instant)?);
        }
        Ok(trials)
    }

    fn measures(&self, prices: &Prices, as_of: DateTime<Utc>) -> Result<ByDate> {
        let subject = Subject::part(View::of(self.archive.clone(), as_of), self.scope.clone(), self.plan)?;
        // Closes that are removed are missing.
        let rules = SkillRules { when_missing: WhenMissing::Allow, from: None, ..self.rules.clone() };
        let input = SkillInput { dataset: "", subject: &subject, plan: self.plan, prices };
        let found = skill(input, &rules, |_| Ok(()))?;
        let mut by_date = ByDate::new();
        for pair in found.pairs {
            for measure in pair.measures {
                let key = |day: Day| (pair.period, pair.regime, None, measure.state, day);
                let dates = measure.ranks.by_date.iter().zip(measure.returns);
                by_date.extend(dates.map(|(date, returns)| (key(date.day), (*date, Some(returns)))));
            }
        }
        for feature in found.features {
            for measure in feature.measures {
                let name = || Some(feature.feature.clone());
                let key = |day: Day| (feature.period, feature.regime, name(), measure.state, day);
                by_date.extend(measure.ranks.by_date.iter().map(|date| (key(date.day), (*date, None))));
            }
        }
        Ok(by_date)
    }

    fn closes_before(&self, whole: &ByDate, cut: usize, now: DateTime<Utc>) -> Result<Trial> {
        let day = self.prices.sessions()[cut];
        let changed = self.measures(&self.prices.with_closes(0..cut + 1, other_close), now)?;
        let what = format!("skill: dates from {} on, with other closes up to it", date(day));
        Ok(compare(what, whole, &changed, |key, _| key.4 >= day))
    }

    fn closes_after(&self, whole: &ByDate, cut: usize, now: DateTime<Utc>) -> Result<Trial> {
        let range = cut..self.prices.sessions().len();
        let without = self.measures(&self.prices.with_closes(range.clone(), |_, _| f64::NAN), now)?;
        let changed = self.measures(&self.prices.with_closes(range, other_close), now)?;
        let day = self.prices.sessions()[cut];
        let what =
            format!("skill: dates whose returns are complete before {}, with other closes from it on", date(day));
        Ok(compare(what, whole, &changed, |key, date| {
            without.get(key).is_some_and(|(without, _)| without.names == date.names)
        }))
    }

    fn runs_after(&self, whole: &ByDate, instant: DateTime<Utc>) -> Result<Trial> {
        let then = self.measures(self.prices, instant)?;
        // A date is fresh a day longer than it seems: it may be that of a place far east or west.
        let end =
            |day: Day| fresh_until(i64::from(day + 2) * MICROS_PER_DAY, self.rules.live_within, &self.rules.sessions);
        let is_settled = |key: &Measured| key.3 == State::Published && end(key.4 as Day) < instant.timestamp_micros();
        let published = whole.iter().filter(|(key, _)| is_settled(key));
        let before = then.iter().filter(|(key, _)| is_settled(key));
        let rows = before.clone().count() as u64;
        let outcome = match rows {
            0 => TrialOutcome::NotApplicable("nothing published by then is measured".to_owned()),
            _ if published.eq(before) => TrialOutcome::Sound,
            _ => TrialOutcome::Leak,
        };
        Ok(Trial { what: format!("skill: as published by {instant}, measured then and now"), rows, outcome })
    }
}

/// Compares the dates that may not change; others must.
fn compare(
    what: String,
    whole: &ByDate,
    changed: &ByDate,
    is_safe: impl Fn(&Measured, &DateCorrelation) -> bool,
) -> Trial {
    let (mut rows, mut differ, mut others_differ) = (0, 0, 0);
    for (key, date) in whole {
        let is_same = changed.get(key) == Some(date);
        if is_safe(key, &date.0) {
            rows += 1;
            differ += u64::from(!is_same);
        } else {
            others_differ += u64::from(!is_same);
        }
    }
    let outcome = match (rows, differ, others_differ) {
        (0, ..) => TrialOutcome::NotApplicable("no date is measured there".to_owned()),
        (_, 0, 0) => TrialOutcome::NotApplicable("no other date uses these closes".to_owned()),
        (_, 0, _) => TrialOutcome::Sound,
        _ => TrialOutcome::Leak,
    };
    Trial { what, rows, outcome }
}

/// A close that is up to twice as high, whatever the ticker and the session.
fn other_close(index: usize, close: f64) -> f64 {
    close * (1.0 + ((index * 7_919) % 1_009) as f64 / 1_009.0)
}
