//! From definition to plan: fills in defaults, checks combinations, and collects every problem.

mod calendar;
mod columns;
mod dataset;
mod files;
mod filter;
mod identity;
mod kinds;
#[cfg(test)]
mod plausible;
mod prices;
mod schedule;
mod signals;
mod source;
#[cfg(test)]
mod tests;

use std::collections::BTreeSet;
use std::fmt::Display;

use super::{Checks, Claims, OnFinding, Plan};
use crate::definition::{ChecksSection, DefinitionFile, List, ParsedDefinition, Placed, Share, StoreSection, StoreUrl};
use crate::error::{Error, Result};
use crate::text::problem::{Problem, Problems};

use signals::of_each_ticker;
use source::ResolvedSource;

const DEFAULT_MAX_REJECT_SHARE: f64 = 0.01;
const DEFAULT_UNIVERSE_SHARE: f64 = 0.2;
const DEFAULT_REWRITTEN_SHARE: f64 = 0.2;
const DEFAULT_REWRITTEN_SHARE_OF_SERIES: f64 = 0.5;

/// Makes the plan of a definition.
pub(super) fn of(found: DefinitionFile) -> Result<Plan> {
    let DefinitionFile { name, path, text, reading, author, root } = found;
    let ParsedDefinition { definition, problems, flawed } = reading;
    let mut validator = Validator { problems, flawed };
    let ResolvedSource { source, variables: address_variables } = validator.source(&definition, &root);
    let service = validator.service(&definition, source.as_ref(), &address_variables);
    let limits = validator.limits(&definition.source, source.as_ref());
    let excluded = validator.excluded_tickers(&definition);
    let alternatives = validator.alternatives(&definition, &excluded);
    let further = Validator::further(&definition, &excluded);
    let conventions = validator.conventions(&definition);
    let of_each_ticker = of_each_ticker(&definition);
    let news_tickers = validator.news_tickers(&definition);
    let max_reject_share = share(&definition.rejects.max_share).unwrap_or(DEFAULT_MAX_REJECT_SHARE);
    let checks = checks(&definition.checks);
    let dataset = validator.dataset(&definition, &root);
    let prices = validator.prices(&definition.prices, dataset.rows, &root);
    let files = validator.files(&definition.output, &dataset);
    let store = definition.store.as_ref().and_then(|store| validator.store(store));
    let schedule = definition.schedule.as_ref().and_then(|schedule| validator.schedule(schedule));
    let hooks = schedule::hooks(&definition.hooks);
    let Some(source) = source.filter(|_| validator.problems.is_empty()) else {
        return Err(Error::invalid_definition(Problems::new(&path, &text, validator.problems)));
    };
    let has_claims = definition.archive.claimed.as_deref().copied().unwrap_or(false);
    let plan = Plan {
        name,
        description: definition.description,
        license: definition.dataset.license.clone(),
        path,
        text,
        author,
        root,
        source,
        service,
        names_service: definition.source.name.is_some(),
        address_variables,
        alternatives,
        further,
        excluded,
        of_each_ticker,
        news_tickers,
        limits,
        max_reject_share,
        checks,
        conventions,
        claims: Claims::LeftOut,
        keep_extra: definition.rejects.keep_extra.as_deref().copied().unwrap_or(false),
        dataset,
        prices,
        files,
        store,
        schedule,
        hooks,
    };
    Ok(if has_claims { plan.with_claims() } else { plan })
}

fn checks(section: &ChecksSection) -> Checks {
    let ChecksSection { missing, universe, max_age, dates, rewritten, rewritten_series } = section;
    Checks {
        missing: missing.as_deref().copied().unwrap_or(OnFinding::Fail),
        universe: share(universe).unwrap_or(DEFAULT_UNIVERSE_SHARE),
        max_age: max_age.as_deref().copied(),
        dates: dates.as_deref().copied().unwrap_or(OnFinding::Fail),
        rewritten: share(rewritten).unwrap_or(DEFAULT_REWRITTEN_SHARE),
        rewritten_series: share(rewritten_series).unwrap_or(DEFAULT_REWRITTEN_SHARE_OF_SERIES),
    }
}

fn share(typed: &Option<Placed<Share>>) -> Option<f64> {
    typed.as_deref().map(|share| share.0)
}

/// Checks the sections one by one and collects problems.
struct Validator {
    problems: Vec<Problem>,
    flawed: BTreeSet<String>,
}

impl Validator {
    fn object(&mut self, problem: Problem) {
        self.problems.push(problem);
    }

    /// Reports that a section lacks something, unless that may have been removed from it as invalid.
    fn miss(&mut self, section: &str, problem: Problem) {
        if !self.flawed.contains(section) {
            self.object(problem);
        }
    }

    fn store(&mut self, section: &Placed<StoreSection>) -> Option<StoreUrl> {
        if section.url.is_none() {
            let problem = Problem::new("`url` is missing", section.span());
            self.miss("store", problem.with_hint("add an address, such as `url = \"s3://bucket/prefix\"`"));
        }
        section.url.as_deref().cloned()
    }

    /// The values of a list without duplicates; none if it was not given.
    fn distinct<T: Clone + Ord + Display>(&mut self, what: &str, typed: Option<&Placed<List<T>>>) -> Option<Vec<T>> {
        let typed = typed?;
        if typed.is_empty() {
            let problem = Problem::new(format!("empty list: at least one {what} is required"), typed.span());
            self.object(problem.with_hint("remove the key to get its default, or add a value"));
        }
        let mut seen = BTreeSet::new();
        for value in typed.iter() {
            if !seen.insert((**value).clone()) {
                self.object(repetition(what, &**value, value.span()));
            }
        }
        Some(typed.iter().map(|value| (**value).clone()).collect())
    }
}

fn repetition(what: &str, value: &dyn Display, span: std::ops::Range<usize>) -> Problem {
    Problem::new(format!("duplicate {what} `{value}`"), span).with_hint("remove one")
}
