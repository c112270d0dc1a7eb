//! Whether a dataset uses what was not known.

use std::path::Path;

use super::as_of::view_of;
use super::audits::run_as_stage;
use super::observer::Control;
use super::scope::archived_scope;
use crate::audit::{Leak, leak};
use crate::error::{Error, Result};
use crate::plan::{Plan, RowKind};

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
    if plan.dataset.rows == RowKind::Observation {
        let what = format!("`{}` has each value as it was known, and nothing is joined to it", plan.name);
        return Err(Error::usage(what, "audit a definition with `latest` or `first` values"));
    }
    let view = view_of(plan, archive, None, &control.stop)?;
    control.warn(&view.notes_on_runs());
    if !plan.dataset.labels.horizons.is_empty() {
        control.warn(&[
            "the returns of `[labels]` look ahead by design: they are no features, and not part of the trials"
                .to_owned(),
        ]);
    }
    let dataset = plan.dataset.clone().without_labels();
    let scope = archived_scope(plan, &view)?;
    let found = run_as_stage(control, "leak", || leak(view.archive(), &scope, &dataset, scratch))?;
    Ok(Leak { dataset: plan.name.clone(), ..found })
}
