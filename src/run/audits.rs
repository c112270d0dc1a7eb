//! Audits of the archive, or of the part that a definition uses.

use std::path::{Path, PathBuf};

use arrow::array::RecordBatch;
use chrono::{DateTime, Utc};

use super::as_of::{check_past, first, view, view_of};
use super::demo::DEMO_SEED;
use super::observer::Control;
use super::scope::{archived, requested};
use super::stage::Stage;
use crate::archive::{ArchiveError, View, of_service, services};
use crate::audit::answers::answers;
use crate::audit::quality::{Quality, RowFindings, of_rows, quality};
use crate::audit::revisions::{Revisions, revisions};
use crate::audit::skill::{PriceSource, Prices, Skill, SkillRules, WhenMissing, find, skill};
use crate::audit::sources::{Sources, sources};
use crate::audit::{Leak, Subject, leak};
use crate::error::{Error, Result};
use crate::plan::{Plan, RowKind, Source};
use crate::serve::Universe;
use crate::time::{Clock, unique_name};

/// Runs work as a stage.
fn observed<T>(control: &Control, name: &'static str, work: impl FnOnce() -> Result<T>) -> Result<T> {
    let stage = Stage::begin(control, name);
    let done = work()?;
    stage.finish();
    Ok(done)
}

/// The scope of an audit.
#[derive(Clone, Copy, Debug)]
pub struct AuditOptions<'a> {
    /// The archive.
    pub archive: &'a Path,
    /// The service to audit; none for that of the definition, or the only one.
    pub service: Option<&'a str>,
    /// The definition whose part of it is audited; none for the whole.
    pub plan: Option<&'a Plan>,
    /// The instant to audit as of; none for the latest state.
    pub as_of: Option<DateTime<Utc>>,
    /// Follows and cancels the audit.
    pub control: &'a Control,
}

impl AuditOptions<'_> {
    /// The archive, or the part of it, to audit.
    pub(crate) fn subject(&self) -> Result<Subject> {
        let view = self.view()?;
        self.control.warn(&view.notes_on_runs());
        match self.plan {
            Some(plan) => Subject::part(view.clone(), archived(plan, &view)?),
            None => Subject::whole(view),
        }
    }

    /// The archive of the service as of the instant.
    fn view(&self) -> Result<View> {
        match self.plan {
            Some(plan) => view_of(plan, self.archive, self.as_of, &self.control.stop),
            None => view(&self.of_service()?, self.as_of, &self.control.stop),
        }
    }

    /// The folder of the service.
    fn of_service(&self) -> Result<PathBuf> {
        let service = self.plan.map(|plan| plan.service.name.as_str()).or(self.service);
        match service {
            Some(service) => of_service(self.archive, service),
            None => only_service(self.archive),
        }
    }
}

/// The folder of the only service in an archive.
fn only_service(archive: &Path) -> Result<PathBuf> {
    let services = services(archive)?;
    match &services[..] {
        [] => Err(ArchiveError::NoRuns { path: archive.to_owned() }.into()),
        [only] => of_service(archive, only),
        _ => Err(ArchiveError::Services { path: archive.to_owned(), services }.into()),
    }
}

/// Tests the dataset of a plan for look-ahead.
///
/// # Errors
///
/// When the archive cannot be read, or a copy of it cannot be written in the folder `scratch`.
pub fn audit_leak(plan: &Plan, archive: &Path, scratch: &Path, control: &Control) -> Result<Leak> {
    if plan.dataset.rows == RowKind::Article {
        let what = format!("`{}` has no join to audit", plan.name);
        return Err(Error::usage(what, "audit the definition that joins the news"));
    }
    let view = view_of(plan, archive, None, &control.stop)?;
    control.warn(&view.notes_on_runs());
    let scope = archived(plan, &view)?;
    observed(control, "leak", || leak(view.archive(), &scope, &plan.dataset, scratch))
}

/// Counts the revisions after an instant, or all of them, and delivers a row for each change.
///
/// # Errors
///
/// When the archive cannot be read, when the instant is before the first run or not before `as_of`, and any error of
/// `deliver`.
pub fn audit_revisions(
    options: AuditOptions<'_>,
    from: Option<DateTime<Utc>>,
    deliver: impl FnMut(&RecordBatch) -> Result<()>,
) -> Result<Revisions> {
    if let Some(as_of) = from {
        check_past(as_of)?;
        let view = AuditOptions { as_of: None, ..options }.view()?;
        let first = first(view.archive()).filter(|first| as_of < *first);
        first.map_or(Ok(()), |first| Err(ArchiveError::TooEarly { as_of, first }))?;
    }
    observed(options.control, "revisions", || revisions(&options.subject()?, from, deliver))
}

/// Compares the operations of the service, and delivers a row for each disagreement.
///
/// # Errors
///
/// When the archive cannot be read, and what `deliver` fails with.
pub fn audit_sources(options: AuditOptions<'_>, deliver: impl FnMut(&RecordBatch) -> Result<()>) -> Result<Sources> {
    observed(options.control, "sources", || sources(&options.subject()?, deliver))
}

/// Checks the quality of the data, and delivers a row for each finding.
///
/// # Errors
///
/// When the archive cannot be read, and what `deliver` fails with.
pub fn audit_quality(options: AuditOptions<'_>, deliver: impl FnMut(&RecordBatch) -> Result<()>) -> Result<Quality> {
    observed(options.control, "quality", || found(options, deliver))
}

fn found(options: AuditOptions<'_>, deliver: impl FnMut(&RecordBatch) -> Result<()>) -> Result<Quality> {
    let view = options.view()?;
    let (answers, rows) = match options.plan {
        Some(plan) => {
            let scope = archived(plan, &view)?;
            let requests = requested(plan, &view, &scope)?;
            let scratch = std::env::temp_dir().join(format!(".bellwether-{}", unique_name(Clock::System.now())));
            let rows = of_rows(&view, &scope, &plan.dataset, scratch)?;
            (answers(&view, |request| requests.contains(request))?, rows)
        }
        None => (answers(&view, |_| true)?, RowFindings::default()),
    };
    quality(&options.subject()?, answers, rows, deliver)
}

/// How signals are measured.
#[derive(Clone, Debug)]
pub struct SkillOptions {
    /// The files of prices, which may have a `*` in their names. None means those of the definition.
    pub prices: Vec<PathBuf>,
    /// The sessions from the date of a backfilled signal to its entry; 0 is the close of the date itself.
    pub lag: u32,
    /// What to do if more than a fifth of the signals have no price.
    pub when_missing: WhenMissing,
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
    let named = if how.prices.is_empty() { &plan.prices.files } else { &how.prices };
    let source = match &plan.source {
        Source::Demo if named.is_empty() => {
            PriceSource::Demo(Box::new(Universe::new(DEMO_SEED, Clock::System.now().date_naive())))
        }
        Source::Remote(_) if named.is_empty() => {
            let what = format!("no prices to measure `{}` against", plan.name);
            return Err(Error::usage(what, "name them with `--prices FILE`, or with `file` in `[prices]`"));
        }
        _ => PriceSource::Files(find(named)?, plan.prices.columns.clone()),
    };
    let rules = SkillRules {
        dates: plan.dataset.dates,
        live_within: plan.dataset.live_within,
        lag: how.lag,
        when_missing: how.when_missing,
    };
    observed(options.control, "skill", || {
        let subject = options.subject()?;
        let prices = Prices::read(&source, &options.control.stop)?;
        skill(&subject, &prices, rules, deliver)
    })
}
