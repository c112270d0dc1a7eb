//! A plan: what a definition means.
//!
//! Every default is filled in and every combination is valid: users of a [`Plan`] never see whether something was
//! typed. It has the requests to make, the rule for dates, the features to join, and the exact columns of the dataset,
//! before anything is fetched.

mod ad_hoc;
mod columns;
mod dataset;
mod derived;
mod features;
mod files;
mod filter;
#[cfg(test)]
mod plausible;
mod request;
mod requests;
mod schedule;
mod service;
mod source;
#[cfg(test)]
pub(crate) mod tests;
mod written;

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Display;
use std::ops::Range;
use std::path::{Path, PathBuf};

pub use crate::columns::csv::FormulaGuard;
pub use crate::definition::{
    Added, Availability, Confidence, Cron, DayCount, Days, Duplicates, Format, Hook, HookUrl, NaiveRule, OnFinding,
    Statistic, StoreKind, StoreUrl, TimeOfDay, TradeAt, Vintage, Zone,
};
pub use ad_hoc::{AdHoc, PinnedVersion};
pub use columns::{Column, Meaning, RowKind, describe, is_label};
pub use dataset::{DatasetPlan, Labels, Shape};
pub use features::{Decay, Feature, Reference};
pub use files::{Codec, FilesPlan};
pub use filter::Filter;
pub use request::Request;
pub use requests::{OperationRequests, RequestList, TickerSource};
pub use schedule::{Hooks, PriceColumns, PricesPlan, Schedule};
pub use service::ServiceIdentity;
pub use source::{Asking, Remote, RequestLimits, Source};
pub use written::{ColumnNames, WrittenColumns};

use crate::definition::{Definition, DefinitionFile, List, ParsedDefinition, Share};
use crate::error::{Error, Result};
use crate::interface::{Endpoint, Ticker};
use crate::project::Project;
use crate::tables::Conventions;
use crate::text::problem::{Problem, Problems};
use crate::trust::{self, Author};

/// Everything a run needs to know.
#[derive(Clone, Debug)]
pub struct Plan {
    /// The definition's name, which is the dataset's.
    pub name: String,
    /// A one-line description of the dataset.
    pub description: Option<String>,
    /// What others may use the dataset for, if the definition states it.
    pub license: Option<String>,
    /// The definition's file.
    pub path: PathBuf,
    /// The definition's text, which goes into the dataset's record.
    pub text: String,
    /// Who wrote it.
    pub author: Author,
    /// The folder that its relative paths are below.
    pub root: PathBuf,
    /// The service.
    pub source: Source,
    /// Whose data it is.
    pub service: ServiceIdentity,
    /// Whether the definition names the service itself.
    pub names_service: bool,
    /// The variables of the environment that its addresses come from.
    pub address_variables: Vec<String>,
    /// How to get the signals: the first way that the service offers is used.
    pub alternatives: Vec<OperationRequests>,
    /// The requests for the tickers that are named beside sectors.
    pub further: Vec<Request>,
    /// The tickers whose signals are left out.
    pub excluded: BTreeSet<Ticker>,
    /// The other operations to request for each ticker.
    pub of_each_ticker: Vec<Endpoint>,
    /// The tickers of those requests.
    pub news_tickers: TickerSource,
    /// Concurrency, rate and patience.
    pub limits: RequestLimits,
    /// The maximum share of an operation's records, and of its series, that may be rejected.
    pub max_reject_share: f64,
    /// The checks that must pass before publishing.
    pub checks: Checks,
    /// What the answers mean.
    pub conventions: Conventions,
    /// Whether claims count.
    pub claims: Claims,
    /// Whether to archive unknown fields.
    pub keep_extra: bool,
    /// The dataset.
    pub dataset: DatasetPlan,
    /// The prices that its signals are measured against.
    pub prices: PricesPlan,
    /// The files that it is written to.
    pub files: FilesPlan,
    /// The object store that keeps the archive and the datasets.
    pub store: Option<StoreUrl>,
    /// When a scheduler should run it.
    pub schedule: Option<Schedule>,
    /// What to call after a run.
    pub hooks: Hooks,
}

/// Whether claims count: what was imported from earlier downloads, and nobody witnessed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Claims {
    /// They are not read.
    #[default]
    LeftOut,
    /// They count from before the first run, and a column marks the rows that rest on them.
    Included,
}

/// The checks that must pass before publishing.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Checks {
    /// What to do if something that the definition names has no data.
    pub missing: OnFinding,
    /// The maximum share of tickers, and of series, that may disappear or appear since the previous version.
    pub universe: f64,
    /// How old the newest date may be.
    pub max_age: Option<DayCount>,
    /// What to do if the newest date lies in the future or goes back.
    pub dates: OnFinding,
    /// The maximum share of known signals, and of articles, that may be rewritten since the previous version.
    pub rewritten: f64,
    /// The same of a single series.
    pub rewritten_series: f64,
}

impl Plan {
    /// Makes the plan of a definition.
    ///
    /// # Errors
    ///
    /// All problems of the definition, each with its place.
    pub fn of(found: DefinitionFile) -> Result<Self> {
        let DefinitionFile { name, path, text, reading, author, root } = found;
        let ParsedDefinition { definition, places, problems, flawed } = reading;
        let mut validator = Validator { definition: &definition, root: &root, places, flawed, problems };
        let (source, address_variables) = validator.source();
        let excluded = validator.excluded_tickers();
        let (alternatives, further) = validator.requests(&excluded);
        let dataset = validator.dataset();
        let share = |typed: Option<Share>, default| typed.map_or(default, |Share(share)| share);
        let checks = &definition.checks;
        let plan = Self {
            name,
            description: definition.description.clone(),
            license: definition.dataset.license.clone(),
            path,
            text,
            author,
            root: root.clone(),
            service: validator.service(source.as_ref(), &address_variables),
            names_service: definition.source.name.is_some(),
            limits: validator.limits(source.as_ref()),
            // Without a service there is a problem.
            source: source.unwrap_or(Source::Demo { earlier_runs: 0 }),
            address_variables,
            alternatives,
            further,
            excluded,
            of_each_ticker: validator.of_each_ticker(),
            news_tickers: validator.news_tickers(),
            max_reject_share: share(definition.rejects.max_share, 0.01),
            checks: Checks {
                missing: checks.missing.unwrap_or(OnFinding::Fail),
                universe: share(checks.universe, 0.2),
                max_age: checks.max_age,
                dates: checks.dates.unwrap_or(OnFinding::Fail),
                rewritten: share(checks.rewritten, 0.2),
                rewritten_series: share(checks.rewritten_series, 0.5),
            },
            conventions: validator.conventions(),
            claims: Claims::LeftOut,
            keep_extra: definition.rejects.keep_extra.unwrap_or(false),
            prices: validator.prices(dataset.rows),
            files: validator.files(&dataset),
            dataset,
            store: validator.store(),
            schedule: validator.schedule(),
            hooks: validator.hooks(),
        };
        match validator.problems {
            problems if problems.is_empty() && definition.archive.claimed == Some(true) => Ok(plan.with_claims()),
            problems if problems.is_empty() => Ok(plan),
            problems => Err(Error::invalid_definition(Problems::new(&plan.path, &plan.text, problems))),
        }
    }

    /// Finds a definition by its name in a project, or by its path, and makes its plan. A relative path to the API key
    /// or to prices is below the project's root.
    ///
    /// # Errors
    ///
    /// When it does not exist, cannot be read, or has problems.
    pub fn find(name_or_path: &str, project: &Project) -> Result<Self> {
        Self::of(crate::definition::find(name_or_path, &project.definitions())?.below(project.root()))
    }

    /// Fails unless the definition may run commands, and use keys and stores.
    ///
    /// # Errors
    ///
    /// If somebody whom the user does not trust could have written it.
    pub fn require_trust(&self) -> Result<()> {
        trust::require(self.author, &self.path)
    }

    /// The same plan with the claims of its service, and a column that marks the rows that rest on them.
    #[must_use]
    pub fn with_claims(self) -> Self {
        Self { claims: Claims::Included, dataset: self.dataset.with_columns([Column::Claimed]), ..self }
    }

    /// The definition's store, if it has one.
    ///
    /// # Errors
    ///
    /// As [`require_trust`](Self::require_trust), if it has one.
    pub fn trusted_store(&self) -> Result<Option<&StoreUrl>> {
        self.store.as_ref().map(|store| self.require_trust().map(|()| store)).transpose()
    }
}

/// From definition to plan: fills in defaults, checks combinations, and collects every problem. Each part of the plan is made
/// in the file that has its type.
struct Validator<'d> {
    definition: &'d Definition,
    /// The folder that relative paths are below.
    root: &'d Path,
    /// Where each key, element and entry was typed.
    places: BTreeMap<String, Range<usize>>,
    flawed: BTreeSet<String>,
    problems: Vec<Problem>,
}

impl Validator<'_> {
    /// Whether a key was typed, such as `join.lag`.
    fn has(&self, key: &str) -> bool {
        self.places.contains_key(key)
    }

    /// The first of some keys that was typed.
    fn first_of(&self, keys: &[&'static str]) -> &'static str {
        keys.iter().find(|key| self.has(key)).copied().unwrap_or_default()
    }

    /// Reports a problem of a section, a key, an element or an entry; of one that was typed nowhere, at the start of the file.
    fn object(&mut self, at: &str, what: impl Into<String>, hint: impl Into<String>) {
        let place = self.places.get(at).cloned().unwrap_or_default();
        self.problems.push(Problem::new(what, place).with_hint(hint));
    }

    /// Reports that a section lacks something, unless that may have been removed from it as invalid.
    fn miss(&mut self, section: &str, at: &str, what: impl Into<String>, hint: impl Into<String>) {
        if !self.flawed.contains(section) {
            self.object(at, what, hint);
        }
    }

    /// Reports those of some keys that were typed: they have no effect. In the hint, `{key}` is the key.
    fn without_effect(&mut self, keys: &[impl AsRef<str>], why: &str, hint: &str) {
        for key in keys.iter().map(|key| key.as_ref()) {
            if !self.has(key) {
                continue;
            }
            let name = key.split_once('.').map_or(key, |(_, name)| name);
            self.object(key, format!("`{name}` has no effect {why}"), hint.replace("{key}", name));
        }
    }

    /// The values of a list without duplicates; none if it was not given.
    fn distinct<T: Clone + Ord + Display>(&mut self, what: &str, key: &str, typed: Option<&List<T>>) -> Option<Vec<T>> {
        let typed = typed?;
        if typed.is_empty() {
            let hint = "remove the key to get its default, or add a value";
            self.object(key, format!("empty list: at least one {what} is required"), hint);
        }
        let mut seen = BTreeSet::new();
        for (index, value) in typed.iter().enumerate() {
            if !seen.insert(value) {
                self.repeated(what, &format!("{key}.{index}"), value);
            }
        }
        Some(typed.to_vec())
    }

    fn repeated(&mut self, what: &str, at: &str, value: &dyn Display) {
        self.object(at, format!("duplicate {what} `{value}`"), "remove one");
    }

    fn store(&mut self) -> Option<StoreUrl> {
        let section = self.definition.store.as_ref()?;
        if section.url.is_none() {
            let hint = "add an address, such as `url = \"s3://bucket/prefix\"`";
            self.miss("store", "store", "`url` is missing", hint);
        }
        section.url.clone()
    }
}
