//! The arguments of audits that deliver rows, and how these audits are run.

use arrow::array::RecordBatch;
use arrow::datatypes::SchemaRef;
use bellwether::error;
use bellwether::plan::{Claims, NaiveRule, Plan};
use bellwether::project::Project;
use bellwether::run::{AuditOptions, FetchItem};
use chrono::{DateTime, Utc};
use serde::Serialize;

use crate::cli::cancellable;
use crate::cli::document::AsJson;
use crate::cli::folders::Folders;
use crate::cli::include::Include;
use crate::cli::outcome::Result;
use crate::cli::rows::RowsTo;
use crate::cli::store::{LocalFolders, StoreOption};
use crate::cli::typed::{plan_of, usage};

/// The arguments that these audits share.
#[derive(Debug, clap::Args)]
pub(super) struct AuditArguments {
    #[command(flatten)]
    json: AsJson,

    /// The service to audit, if the archive has data of several and no definition is named.
    #[arg(long, value_name = "SERVICE")]
    service: Option<String>,

    #[command(flatten)]
    include: Include,

    #[command(flatten)]
    rows: RowsTo,

    #[command(flatten)]
    folders: Folders,

    #[command(flatten)]
    store: StoreOption,
}

/// The part of the archive to audit.
pub(super) struct AuditScope {
    /// The definition whose part is audited; `None` for the whole archive.
    plan: Option<Plan>,
    /// The instant to audit as of; `None` for the latest state.
    as_of: Option<DateTime<Utc>>,
}

impl AuditScope {
    /// The rule of its dates.
    pub(super) fn rule(&self) -> NaiveRule {
        self.plan.as_ref().map_or(NaiveRule::Utc, |plan| plan.dataset.dates)
    }

    pub(super) fn new(definition: Option<&str>, as_of: Option<DateTime<Utc>>, project: &Project) -> Result<Self> {
        let plan = definition.map(|name| plan_of(Some(name), project)).transpose()?;
        Ok(Self { plan, as_of })
    }

    /// The part that a definition uses.
    pub(super) fn of_definition(plan: Plan, as_of: Option<DateTime<Utc>>) -> Self {
        Self { plan: Some(plan), as_of }
    }

    /// The line with the scope of the audit.
    fn line(&self, service: Option<&str>) -> String {
        match (&self.plan, service) {
            (Some(plan), _) => format!("scope   definition `{}`\n", plan.name),
            (None, Some(service)) => format!("scope   service `{service}`, all definitions\n"),
            (None, None) => "scope   the whole archive, all definitions\n".to_owned(),
        }
    }
}

impl AuditArguments {
    /// Fetches runs from the store, if there is one, runs an audit, and writes its rows, if they are wanted.
    pub(super) fn run<T: Send + 'static>(
        &self,
        scope: &AuditScope,
        project: &Project,
        schema: SchemaRef,
        audit: impl FnOnce(AuditOptions<'_>, &mut dyn FnMut(&RecordBatch) -> error::Result<()>) -> error::Result<T>
        + Send
        + 'static,
    ) -> Result<T> {
        let AuditScope { plan, as_of } = scope;
        let (rows, archive, plan, as_of) = (self.rows.clone(), self.folders.archive(project), plan.clone(), *as_of);
        let service = self.service.clone();
        let plan = match (plan, self.include.claims()) {
            (None, Claims::Included) => {
                let hint = "name a definition, or audit the claims alone with `--service SERVICE.claimed`";
                return Err(usage("`--include claimed` without a definition", hint));
            }
            (plan, _) => plan.map(|plan| self.include.in_plan(plan)),
        };
        if let (Some(plan), Some(_)) = (&plan, &service) {
            let what = format!("`--service` beside definition `{}`, which has its own", plan.name);
            return Err(usage(&what, "leave out one of them"));
        }
        let local = LocalFolders { archive: &archive, data: &self.folders.data(project) };
        self.store.fetch(plan.as_ref(), local, &[FetchItem::Runs(as_of)])?;
        Ok(cancellable(move |control| {
            let service = service.as_deref();
            let options = AuditOptions { archive: &archive, service, plan: plan.as_ref(), as_of, control };
            rows.fill(schema, |deliver| audit(options, deliver))
        })?)
    }

    /// Prints the findings, unless standard output is for the rows.
    pub(super) fn print<T: Serialize>(
        self,
        scope: &AuditScope,
        document: impl FnOnce() -> T,
        text: impl FnOnce() -> String,
    ) -> Result<()> {
        let service = self.service.clone();
        self.print_whole(document, || scope.line(service.as_deref()) + &text())
    }

    /// The same for findings that name their scope themselves.
    pub(super) fn print_whole<T: Serialize>(
        self,
        document: impl FnOnce() -> T,
        text: impl FnOnce() -> String,
    ) -> Result<()> {
        if self.rows.is_stdout() { Ok(()) } else { self.json.say(document, text) }
    }
}
