//! `bellwether verify`: verifies every file of the archive and the datasets, or of a store, and repairs what is damaged.

use bellwether::error::{self, Error, ErrorKind};
use bellwether::project::Project;
use bellwether::run::{
    RemoteStore, Repair, RepairKind, StoreAccess, StoreDifference, StoreVerified, Verified, VerifyScope, repair, verify,
};
use bellwether::text::escape::escape;
use bellwether::text::human::count_of;

use super::log::LogForm;
use super::options::{FolderOptions, Folders, StoreSide, stores_of};
use super::progress::{self, Form};
use super::talk::{AsJson, Result};
use super::{cancellable, interruptible};

/// Verify every file in the archive and the datasets, or in a store.
///
/// Its size, checksum and row count, and that each pack matches its runs.
#[derive(Debug, clap::Args)]
#[command(after_long_help = "\
Examples:
  bellwether verify --repair
      get what is damaged or missing from the store
  bellwether verify --store --sizes
      compare the store with its records, by size alone
  bellwether verify --store --repair
      send what is damaged or missing in the store")]
pub(super) struct Verify {
    #[command(flatten)]
    side: StoreSide,

    /// Replace what is damaged or missing by the copy of the other side, and move aside what has no intact copy.
    ///
    /// This machine gets it from the store, and with `--store`, the store from this machine. Nothing is removed: what is
    /// damaged is moved to `.damaged` beside it, in a store below `damaged/`.
    #[arg(long)]
    repair: bool,

    /// With `--store`, compare the sizes that the store lists, and read nothing that this machine has the record of.
    #[arg(long, requires = "store", conflicts_with = "repair")]
    sizes: bool,

    #[command(flatten)]
    json: AsJson,

    #[command(flatten)]
    folders: FolderOptions,
}

impl Verify {
    pub(super) fn execute(self, project: &Project) -> Result<()> {
        let Folders { archive, data, .. } = self.folders.of_project(project);
        if let Some(url) = self.side.url(project)? {
            return interruptible(progress::observer(Form::Text), async |control| {
                let access = if self.repair { StoreAccess::Write } else { StoreAccess::Read };
                let store = RemoteStore::open(&url, access, &archive, &data, &control)?;
                let scope = if self.sizes { VerifyScope::Sizes } else { VerifyScope::All };
                let verified = if self.repair { store.repair().await? } else { store.verify(&scope).await? };
                self.json.say(|| &verified, || store_lines(&verified))?;
                check(verified.faults.len())
            });
        }
        let verified = if self.repair {
            let urls = stores_of(project)?;
            interruptible(progress::observer(Form::Quiet(LogForm::Text)), async |control| {
                let open = |url| RemoteStore::open(url, StoreAccess::Read, &archive, &data, &control);
                let stores: Vec<RemoteStore> = urls.iter().map(open).collect::<error::Result<_>>()?;
                repair(&archive, &data, &stores, &control).await
            })?
        } else {
            cancellable(move |control| verify(&archive, &data, control))?
        };
        self.json.say(|| &verified, || lines(&verified))?;
        check(verified.faults.len())
    }
}

/// Whether there are faults.
fn check(faults: usize) -> Result<()> {
    if faults == 0 {
        return Ok(());
    }
    let faults = count_of(faults as u64, "fault", "faults");
    Err(Error::new(ErrorKind::Damaged, format!("verification found {faults}"))
        .with_hint(
            "`bellwether verify --repair` gets what is damaged here from a store, and `verify --store --repair` sends what is \
             damaged there; restore the rest from a backup",
        )
        .into())
}

fn lines(verified: &Verified) -> String {
    let notes: String = verified.notes.iter().map(|note| format!("note: {}\n", escape(note))).collect();
    fault_lines(&verified.repaired, &verified.faults) + &notes + &files_line(verified.files, &verified.faults)
}

fn store_lines(verified: &StoreVerified) -> String {
    let mut text = fault_lines(&verified.repaired, &verified.faults);
    for folder in &verified.unfinished {
        text.push_str(&format!("note: `{}` is an upload in progress, or was interrupted\n", escape(folder)));
    }
    if let Some(difference) = &verified.difference {
        let StoreDifference { only_here, only_there, versions_only_here, versions_only_there, .. } = difference;
        let pull = "`bellwether store pull` fetches the runs and the latest versions";
        for (place, runs, versions, remedy) in [
            ("here", only_here, versions_only_here, "`bellwether store push` sends them"),
            ("in the store", only_there, versions_only_there, pull),
        ] {
            if !(runs.is_empty() && versions.is_empty()) {
                let runs = count_of(runs.len() as u64, "run", "runs");
                let versions = count_of(versions.len() as u64, "version", "versions");
                text.push_str(&format!("only {place}: {runs} and {versions}; {remedy}\n"));
            }
        }
    } else {
        text.push_str("note: what this machine has cannot be read, so it is not compared; see `bellwether verify`\n");
    }
    text + &files_line(verified.files, &verified.faults)
}

fn files_line(files: usize, faults: &[String]) -> String {
    if !faults.is_empty() {
        return String::new();
    }
    format!("verified {}\n", count_of(files as u64, "file", "files"))
}

/// What was repaired, and what is wrong, a line each.
fn fault_lines(repaired: &[Repair], faults: &[String]) -> String {
    let mut text = String::new();
    for Repair { kind, place, reason } in repaired {
        let verb = match kind {
            RepairKind::Sent => "sent",
            RepairKind::Fetched => "fetched",
            RepairKind::Rebuilt => "rebuilt",
            RepairKind::SetAside => "moved aside",
        };
        text.push_str(&format!("{}\n", escape(&format!("{verb} `{place}`: {reason}"))));
    }
    faults.iter().for_each(|fault| text.push_str(&format!("{}\n", escape(fault))));
    text
}
