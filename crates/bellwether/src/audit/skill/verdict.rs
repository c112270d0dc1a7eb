//! The verdict: what a portfolio manager should know, in a few sentences.

use bellwether_statistics::MeanTest;

use super::answer::{Measure, State};
use super::{PairSkill, Skill};
use crate::text::human::{count_of, group_digits, percent, round};

impl PairSkill {
    /// Its measure in a state.
    pub(crate) fn measure(&self, state: State) -> &Measure {
        &self.measures[state as usize]
    }
}

impl Skill {
    /// The verdict in two to four sentences: what was published and how good that was, what rewriting adds to the history of
    /// today, and what is left within sectors and after costs.
    pub fn verdict(&self) -> Vec<String> {
        let mut verdict = vec![self.of_published()];
        let lead = self.lead();
        verdict.extend(lead.map(of_today));
        verdict.extend(self.of_rewriting());
        verdict.extend(lead.map(of_costs));
        verdict
    }

    /// The pair with the most dates as published, or else today; none if nothing is measured.
    pub fn lead(&self) -> Option<&PairSkill> {
        let dates = |pair: &&PairSkill| [State::Published, State::Today].map(|state| pair.measure(state).ranks.dates);
        self.pairs.iter().rev().max_by_key(dates).filter(|pair| dates(pair) != [0, 0])
    }

    fn of_published(&self) -> String {
        let signals = self.signals.live + self.signals.late;
        let published = count_of(signals, "signal was", "signals were");
        if self.pairs.iter().all(|pair| pair.measure(State::Published).ranks.dates == 0) {
            let when = match self.measured_from {
                Some(day) if self.signals.measured_live == 0 => {
                    format!(": the first of their horizons ends on {day}")
                }
                _ if signals == 0 => ": how the others were published is not known".to_owned(),
                _ => ": no date has five of them with a complete return".to_owned(),
            };
            return format!("Nothing that was published can be measured yet. {published} seen when published{when}.");
        }
        let tested: Vec<&PairSkill> =
            self.pairs.iter().filter(|pair| pair.measure(State::Published).ranks.test.is_some()).collect();
        let holds = |pair: &&&PairSkill| {
            let ranks = &pair.measure(State::Published).ranks;
            ranks.p_holm.is_some_and(|p| p <= 0.05) && ranks.correlation > Some(0.0)
        };
        let how_good = match (tested.len() as u64, tested.iter().filter(holds).count() as u64) {
            (0, _) => "too few for a verdict: five windows that do not overlap are needed".to_owned(),
            (tested, 0) => format!("none of {} ranked returns better than luck", count_of(tested, "pair", "pairs")),
            (tested, holds) => {
                format!(
                    "{} of {} ranked returns better than luck",
                    group_digits(holds),
                    count_of(tested, "pair", "pairs")
                )
            }
        };
        let measured = group_digits(self.signals.measured_live);
        format!("{published} seen when published, and {measured} of them are measured: {how_good}.")
    }

    /// What was rewritten with hindsight, and what is gone.
    fn of_rewriting(&self) -> Option<String> {
        let hindsight = &self.hindsight;
        let mut said = Vec::new();
        if let (true, Some(share), Some(luck)) = (hindsight.is_told(), hindsight.share, hindsight.luck) {
            said.push(format!(
                "Of {} made when part of the return was known, {} went where the price had gone, and {} would by luck: \
                 that is hindsight.",
                count_of(hindsight.rewrites, "rewrite", "rewrites"),
                percent(share),
                percent(luck)
            ));
        }
        if let (1.., Some(excess)) = (self.gone.names_delisted, self.gone.excess) {
            said.push(format!(
                "{} no longer listed; what is gone returned {} relative to the mean.",
                count_of(self.gone.names_delisted, "name is", "names are"),
                in_percent(excess)
            ));
        }
        (!said.is_empty()).then(|| said.join(" "))
    }
}

/// How good the history of today looks beside what was published.
fn of_today(pair: &PairSkill) -> String {
    let [published, today, difference] =
        State::ALL.map(|state| (pair.measure(state).ranks.correlation, pair.measure(state).ranks.test));
    let name = format!("{} {}", pair.period, pair.regime);
    let Some(shown) = today.0.map(|mean| with_interval(mean, today.1)) else {
        return format!("Nothing of {name} is listed today that could be measured.");
    };
    let Some(was) = published.0.map(|mean| with_interval(mean, published.1)) else {
        return format!(
            "The history of {name} as it stands today ranks returns at {shown}, which nobody saw published."
        );
    };
    let adds = match difference {
        (Some(mean), Some(test)) if test.p <= 0.05 => {
            format!("rewriting {} {}", if mean > 0.0 { "adds" } else { "takes" }, round(mean.abs(), 4))
        }
        (Some(mean), _) => format!("what was rewritten since makes a difference of {}", round(mean, 4)),
        _ => "what was rewritten since cannot be measured".to_owned(),
    };
    format!("{name} ranked returns at {was} when it was published and at {shown} in today's history; {adds}.")
}

/// What is left within sectors and after costs: as published if that has a test, or else today.
fn of_costs(pair: &PairSkill) -> String {
    let published = pair.measure(State::Published);
    let is_published = published.ranks.test.is_some();
    let measure = if is_published { published } else { pair.measure(State::Today) };
    let within = measure.ranks.within_sectors.as_ref().and_then(|within| {
        let left = within.correlation.map(|mean| with_interval(mean, within.test))?;
        let is_left = within.test.is_some_and(|test| test.p <= 0.05 && test.mean > 0.0);
        Some(format!("within sectors {left} {}", if is_left { "is left" } else { "is left, no more than luck" }))
    });
    let costs = match (measure.break_even, measure.turnover) {
        (Some(cost), Some(turnover)) if cost > 0.0 => format!(
            "the highest fifth turns over {} a horizon and pays for {} basis points a trade",
            percent(turnover),
            round(10_000.0 * cost, 0)
        ),
        (Some(_), _) => "the highest fifth earns less than the mean before any costs".to_owned(),
        _ => "too little is known of costs".to_owned(),
    };
    let state = if is_published { "As published" } else { "In today's history" };
    format!("{state}, {}{costs}.", within.map_or_else(String::new, |within| format!("{within}, and ")))
}

fn with_interval(mean: f64, test: Option<MeanTest>) -> String {
    let interval =
        test.map(|test| format!(" ({} to {})", round(test.interval.lower, 3), round(test.interval.upper, 3)));
    round(mean, 3) + &interval.unwrap_or_default()
}

fn in_percent(share: f64) -> String {
    format!("{} %", round(100.0 * share, 2))
}
