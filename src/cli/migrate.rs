//! The arguments and the outcome of migrating an archive or a store.

use bellwether::project::Project;
use bellwether::run::{MigrateMode, MigrateOptions, MigratedService, Migration};
use bellwether::text::escape::escape;
use bellwether::text::human::{bytes, count_of};

use super::folders::Folders;

/// How an archive or a store of an older layout is migrated.
#[derive(Clone, Debug, clap::Args)]
pub(super) struct MigrateArguments {
    /// The service of the old runs whose definition is no longer known: neither a definition in `pipelines/` nor a
    /// published version has its text.
    #[arg(long, value_name = "NAME")]
    service: Option<String>,

    /// Print what would be done without doing it.
    #[arg(long)]
    dry_run: bool,

    /// Remove the old folders once the new ones are complete and verified.
    #[arg(long)]
    remove_old: bool,
}

impl MigrateArguments {
    /// The options of the library.
    pub(super) fn options(&self, folders: &Folders, project: &Project) -> MigrateOptions {
        MigrateOptions {
            archive: folders.archive(project),
            data: folders.data(project),
            definitions: project.definitions(),
            service: self.service.clone(),
            mode: match (self.dry_run, self.remove_old) {
                (true, _) => MigrateMode::List,
                (false, false) => MigrateMode::Keep,
                (false, true) => MigrateMode::Remove,
            },
        }
    }

    /// Whether nothing is changed.
    pub(super) fn is_list(&self) -> bool {
        self.dry_run
    }

    /// Whether the old folders are removed.
    pub(super) fn removes(&self) -> bool {
        self.remove_old
    }

    /// What was done, or would be, as text.
    pub(super) fn outcome(&self, migration: &Migration, command: &str) -> String {
        let Migration { services, unknown, bytes: size, kept, .. } = migration;
        let mut text = String::new();
        for MigratedService { service, runs } in services {
            let verb = if self.dry_run { "would migrate" } else { "migrated" };
            let runs = count_of(*runs as u64, "run", "runs");
            text.push_str(&format!("{verb} {runs} of service {service}\n"));
        }
        if !services.is_empty() && migration.done_before > 0 {
            let runs = count_of(migration.done_before as u64, "run was", "runs were");
            text.push_str(&format!("{runs} migrated before\n"));
        }
        if !unknown.is_empty() {
            let runs = count_of(unknown.len() as u64, "run", "runs");
            let first: Vec<&str> = unknown.iter().take(8).map(String::as_str).collect();
            let more = if unknown.len() > 8 { ", …" } else { "" };
            let first = first.join(", ");
            text.push_str(&format!("cannot tell the service of {runs}, `--service NAME` names it: {first}{more}\n"));
        }
        if text.is_empty() {
            text.push_str("nothing to migrate\n");
        }
        match (kept, self.dry_run, self.remove_old) {
            (_, true, true) if *size > 0 => text.push_str(&format!("would remove the old folders, {}\n", bytes(*size))),
            (Some(kept), _, _) => text.push_str(&format!(
                "the old folders are in `{}`, {}; `{command} --remove-old` removes them\n",
                kept.display(),
                bytes(*size)
            )),
            (None, false, _) if migration.removed => {
                text.push_str(&format!("removed the old folders, {}\n", bytes(*size)));
            }
            _ => {}
        }
        text.lines().map(|line| format!("{}\n", escape(line))).collect()
    }
}
