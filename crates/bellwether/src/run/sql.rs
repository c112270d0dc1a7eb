//! The SQL statement of a dataset: looks up its requests in an archive and passes them to `sql`.

use std::path::PathBuf;

use super::as_of::view_of;
use super::observer::Control;
use super::scope::{archived_scope, asked_news};
use crate::error::{Error, Result};
use crate::plan::{AdHoc, Plan};
use crate::sql::{self, Dialect, Question};

/// The options of a statement.
#[derive(Clone, Debug)]
pub struct SqlOptions {
    /// The archive.
    pub archive: PathBuf,
    /// The folder or URL that the statement reads the archive from; none for the folder itself.
    pub location: Option<String>,
    /// Changes to the definition; none for the definition's own dataset.
    pub ad_hoc: AdHoc,
    /// The engine that the statement is for.
    pub dialect: Dialect,
    /// Cancels reading the archive.
    pub control: Control,
}

/// The dataset of a plan as one SQL statement over the files of the archive.
///
/// The archive decides which operation the signals come from and which requests list them; the statement names both.
///
/// # Errors
///
/// When the archive cannot be read or has nothing of the definition, and when SQL cannot compute the dataset;
/// when it was cancelled.
pub fn sql(mut plan: Plan, options: SqlOptions) -> Result<String> {
    let SqlOptions { archive, location, ad_hoc, dialect, control } = options;
    ad_hoc.apply(&mut plan)?;
    let view = view_of(&plan, &archive, ad_hoc.as_of, &control.stop)?;
    let scope = archived_scope(&plan, &view)?;
    let folders = match (location, view.archive().claims()) {
        (Some(_), Some(_)) => {
            let what = "claims are read from the archive on this machine alone";
            return Err(Error::usage(what, "leave the location out, or the claims"));
        }
        (Some(location), None) => vec![format!("{}/{}", location.trim_end_matches('/'), plan.service.name)],
        (None, _) => view.archive().roots().into_iter().map(sql::path_text).collect::<Result<_, _>>()?,
    };
    let news = asked_news(&view, &scope)?;
    let question = Question {
        name: &plan.name,
        plan: &plan.dataset,
        source: scope.source,
        requests: &scope.requests,
        excluded: &scope.excluded,
        news: news.as_ref(),
        view: &view,
        archive: &folders,
        dialect,
    };
    question.statement()
}
