//! `bellwether audit`: one file per audit, and the arguments of those that deliver rows.

mod leak;
mod quality;
mod revisions;
mod skill;
mod sources;
mod table;

use arrow::array::RecordBatch;
use arrow::datatypes::SchemaRef;
use bellwether::plan::{Claims, Plan};
use bellwether::run::AuditOptions;

use super::prelude::*;

pub use skill::skill_in_words;

/// Audit the archive, or a table of your own: look-ahead, revisions, quality, skill, sources.
#[derive(Debug, clap::Args)]
pub(super) struct Audit {
    #[command(subcommand)]
    action: AuditAction,
}

commands! {
    AuditAction: Leak in leak, Revisions in revisions, Quality in quality, Sources in sources, Skill in skill,
    Table in table
}

impl Audit {
    pub(super) fn execute(self, project: &Project) -> Result<()> {
        self.action.execute(project)
    }
}

/// The arguments that these audits share.
#[derive(Debug, clap::Args)]
struct AuditArguments {
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
    folders: FolderOptions,

    #[command(flatten)]
    store: StoreOption,
}

impl AuditArguments {
    /// Fetches runs from the store, if there is one, audits the part of a definition or all of the archive, as of an instant
    /// or the newest run, and writes the rows, if they are wanted.
    fn run<T: Send + 'static>(
        &self,
        plan: Option<&Plan>,
        as_of: Option<DateTime<Utc>>,
        project: &Project,
        schema: SchemaRef,
        audit: impl FnOnce(AuditOptions<'_>, &mut dyn FnMut(&RecordBatch) -> error::Result<()>) -> error::Result<T>
        + Send
        + 'static,
    ) -> Result<T> {
        let (rows, service, folders) = (self.rows.clone(), self.service.clone(), self.folders.of_project(project));
        if plan.is_none() && self.include.claims() == Claims::Included {
            let hint = "name a definition, or audit the claims alone with `--service SERVICE.claimed`";
            return Err(usage("`--include claimed` without a definition", hint));
        }
        let plan = plan.cloned().map(|plan| self.include.in_plan(plan));
        if let (Some(plan), Some(_)) = (&plan, &service) {
            let what = format!("`--service` beside definition `{}`, which has its own", plan.name);
            return Err(usage(&what, "leave out one of them"));
        }
        self.store.fetch(plan.as_ref(), &folders, &[FetchItem::Runs(as_of)])?;
        Ok(cancellable(move |control| {
            let (archive, service, plan) = (&*folders.archive, service.as_deref(), plan.as_ref());
            let options = AuditOptions { archive, service, plan, as_of, control };
            rows.fill(schema, |deliver| audit(options, deliver))
        })?)
    }

    /// Prints the scope and the findings, unless standard output is for the rows.
    fn print<T: Serialize>(&self, plan: Option<&Plan>, found: &T, text: impl FnOnce() -> String) -> Result<()> {
        let scope = match (plan, &self.service) {
            (Some(plan), _) => format!("definition `{}`", plan.name),
            (None, Some(service)) => format!("service `{service}`, all definitions"),
            (None, None) => "the whole archive, all definitions".to_owned(),
        };
        self.print_findings(found, || format!("scope   {scope}\n{}", text()))
    }

    /// The same for findings that name their scope themselves.
    fn print_findings<T: Serialize>(&self, found: &T, text: impl FnOnce() -> String) -> Result<()> {
        if self.rows.is_stdout() { Ok(()) } else { self.json.say(|| found, text) }
    }
}

/// The columns of wrapped text.
const COLUMNS: usize = 100;

/// Fails if a share is above the limit of `--fail-above`.
fn check_share(share: f64, allowed: Option<f64>, what: &str, hint: &str) -> Result<()> {
    let Some(allowed) = allowed.filter(|allowed| share > *allowed) else { return Ok(()) };
    let what = format!("{} of the {what}, above the limit of {}", percent(share), percent(allowed));
    Err(Error::new(ErrorKind::Found, what).with_hint(format!("{hint}; allow more with `--fail-above`")).into())
}
