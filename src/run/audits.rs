//! Questions asked of the archive, with the definition that they are about where there is one.

use std::path::Path;

use arrow::array::RecordBatch;
use chrono::{DateTime, Utc};

use super::build::{first, view};
use super::scope::{archived, asked};
use crate::archive::Archive;
use crate::audit::answers::answers;
use crate::audit::quality::{Quality, quality, windows};
use crate::audit::revisions::{Revisions, revisions};
use crate::audit::sources::{Sources, sources};
use crate::audit::{Leak, Subject, leak};
use crate::error::{Error, Result};
use crate::plan::Plan;
use crate::time::{Clock, unique_name};

/// What a question is about.
#[derive(Clone, Copy, Debug)]
pub struct About<'a> {
    /// The archive.
    pub archive: &'a Path,
    /// The definition whose part of it is looked at; none for the whole.
    pub plan: Option<&'a Plan>,
    /// The instant from which it is seen; none for the latest that the archive knows.
    pub as_of: Option<DateTime<Utc>>,
}

impl About<'_> {
    /// The archive, or the part of it, that a question is about.
    ///
    /// # Errors
    ///
    /// When the archive cannot be read, has no run, knew nothing yet, or nothing of what the definition asks for.
    pub fn subject(&self) -> Result<Subject> {
        let view = view(self.archive, self.as_of)?;
        match self.plan {
            Some(plan) => Subject::part(view.clone(), archived(plan, &view)?),
            None => Subject::whole(view),
        }
    }
}

/// Tries to make the future reach the past of a plan's dataset.
///
/// # Errors
///
/// When the archive cannot be read, or a copy of it cannot be written in the folder `scratch`.
pub fn audit_leak(plan: &Plan, archive: &Path, scratch: &Path) -> Result<Leak> {
    let view = view(archive, None)?;
    let scope = archived(plan, &view)?;
    leak(view.archive(), &scope, &plan.dataset, scratch)
}

/// Counts what a vendor did to its past after an instant, or at all, and delivers a row for each change.
///
/// # Errors
///
/// When the archive cannot be read, when the instant is not before the one that the archive is seen from or is one at
/// which nothing was known, and what `deliver` fails with.
pub fn audit_revisions(
    about: About<'_>,
    from: Option<DateTime<Utc>>,
    deliver: impl FnMut(&RecordBatch) -> Result<()>,
) -> Result<Revisions> {
    if let Some(as_of) = from {
        let first = first(&Archive::open(about.archive)?).filter(|first| as_of < *first);
        first.map_or(Ok(()), |first| Err(Error::TooEarly { as_of, first }))?;
    }
    revisions(&about.subject()?, from, deliver)
}

/// Holds the operations of a vendor against one another, and delivers a row for each disagreement.
///
/// # Errors
///
/// When the archive cannot be read, and what `deliver` fails with.
pub fn audit_sources(about: About<'_>, deliver: impl FnMut(&RecordBatch) -> Result<()>) -> Result<Sources> {
    sources(&about.subject()?, deliver)
}

/// Looks at the quality of what a vendor gives, and delivers a row for each finding.
///
/// # Errors
///
/// When the archive cannot be read, and what `deliver` fails with.
pub fn audit_quality(about: About<'_>, deliver: impl FnMut(&RecordBatch) -> Result<()>) -> Result<Quality> {
    let view = view(about.archive, about.as_of)?;
    let (answers, windows) = match about.plan {
        Some(plan) => {
            let scope = archived(plan, &view)?;
            let requests = asked(plan, &view, &scope)?;
            let scratch = std::env::temp_dir().join(format!(".bellwether-{}", unique_name(Clock::System.now())));
            let windows = windows(&view, &scope, &plan.dataset, scratch)?;
            (answers(&view, |request| requests.contains(request))?, windows)
        }
        None => (answers(&view, |_| true)?, Vec::new()),
    };
    quality(&about.subject()?, answers, windows, deliver)
}
