//! Whether the signals of a definition predicted: which prices they are measured against, and how.

use std::path::PathBuf;

use arrow::array::RecordBatch;
use chrono::{DateTime, Utc};

use super::audits::{AuditOptions, run_as_stage};
use super::connect::DEMO_SEED;
use crate::archive::{Scope, View};
use crate::audit::Subject;
use crate::audit::skill::{Skill, SkillInput, WhenMissing, skill};
use crate::error::{Error, Result};
use crate::plan::{Plan, PricesPlan, RowKind, Source};
use crate::prices::{PriceRows, PriceSource, Prices, find};
use crate::process::cancel::CancellationToken;
use crate::serve::Universe;
use crate::time::Clock;

/// The prices that signals are measured against.
#[derive(Clone, Debug)]
pub enum PriceInput {
    /// Those that the definition names; the demo has its own.
    OfDefinition,
    /// Files, which may have a `*` in their names.
    Files(Vec<PathBuf>),
    /// Rows in memory.
    Rows(PriceRows),
}

/// How signals are measured.
#[derive(Clone, Debug)]
pub struct SkillOptions {
    /// The prices.
    pub prices: PriceInput,
    /// The sessions from the date of a backfilled signal to its entry; 0 is the close of the date itself.
    pub lag: u32,
    /// What to do if more than a fifth of the signals have no price.
    pub when_missing: WhenMissing,
    /// The instant whose history the latest one is compared with; none for what was first published.
    pub from: Option<DateTime<Utc>>,
}

impl Default for SkillOptions {
    fn default() -> Self {
        Self { prices: PriceInput::OfDefinition, lag: 1, when_missing: WhenMissing::Refuse, from: None }
    }
}

impl SkillOptions {
    fn input<'a>(&self, plan: &'a Plan, subject: &'a Subject, prices: &'a Prices) -> SkillInput<'a> {
        let (dataset, plan) = (&plan.name, &plan.dataset);
        SkillInput { dataset, subject, plan, prices, lag: self.lag, when_missing: self.when_missing, from: self.from }
    }
}

/// Measures the signals of a definition against prices, and delivers a row for each date, pair and state.
///
/// # Errors
///
/// When the archive or the prices cannot be read or have nothing to measure, and what `deliver` fails with.
pub fn audit_skill(
    options: AuditOptions<'_>,
    how: &SkillOptions,
    deliver: impl FnMut(&RecordBatch) -> Result<()>,
) -> Result<Skill> {
    let plan = options.plan.ok_or_else(|| Error::usage("no definition given", "give the name of a definition"))?;
    if plan.dataset.rows == RowKind::Article {
        let what = format!("`{}` has no signals to measure", plan.name);
        return Err(Error::usage(what, "audit a definition that has signals"));
    }
    how.from.map_or(Ok(()), |from| options.check_known_at(from))?;
    let source = prices_of(plan, &how.prices)?;
    run_as_stage(options.control, "skill", || {
        let subject = options.subject()?;
        let prices = Prices::read(&source, &options.control.stop)?.by_id(&plan.dataset.identity)?;
        skill(how.input(plan, &subject, &prices), deliver)
    })
}

/// Whether a definition has prices to measure its signals against.
pub(super) fn has_prices(plan: &Plan) -> bool {
    plan.prices != PricesPlan::default() && plan.dataset.rows != RowKind::Article
}

/// Measures the signals of a dataset against the prices of its definition.
pub(super) fn skill_of(plan: &Plan, view: &View, scope: &Scope, stop: &CancellationToken) -> Result<Skill> {
    let prices = Prices::read(&prices_of(plan, &PriceInput::OfDefinition)?, stop)?.by_id(&plan.dataset.identity)?;
    let subject = Subject::part(view.clone(), scope.clone(), &plan.dataset)?;
    skill(SkillOptions::default().input(plan, &subject, &prices), |_| Ok(()))
}

/// Where the prices come from.
pub(super) fn prices_of(plan: &Plan, input: &PriceInput) -> Result<PriceSource> {
    let files = match input {
        PriceInput::Rows(rows) => return Ok(PriceSource::Rows(rows.clone(), plan.prices.clone())),
        PriceInput::Files(files) => files,
        PriceInput::OfDefinition => &plan.prices.files,
    };
    match &plan.source {
        Source::Demo { .. } if files.is_empty() => {
            Ok(PriceSource::Demo(Box::new(Universe::new(DEMO_SEED, Clock::System.now().date_naive()))))
        }
        Source::Remote(_) if files.is_empty() => {
            let what = format!("no prices to measure `{}` against", plan.name);
            Err(Error::usage(what, "name them with `--prices FILE`, or with `file` in `[prices]`"))
        }
        _ => Ok(PriceSource::Files(find(files)?, plan.prices.clone())),
    }
}
