//! `bellwether verify`: verifies every file of the archive and the datasets, or of a store, and repairs what is damaged.

use bellwether::run::{RemoteStore, Repair, RepairKind, StoreAccess, StoreVerified, Verified, VerifyScope};

use super::prelude::*;

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
        let faults = if let Some(url) = self.side.url(project)? {
            interruptible(observer(Form::Text), async |control| {
                let access = if self.repair { StoreAccess::Write } else { StoreAccess::Read };
                let store = RemoteStore::open(&url, access, &archive, &data, &control)?;
                let scope = if self.sizes { VerifyScope::Sizes } else { VerifyScope::All };
                let verified = if self.repair { store.repair().await? } else { store.verify(&scope).await? };
                self.json.say(|| &verified, || describe_store(&verified))?;
                Ok::<_, Failure>(verified.faults.len())
            })?
        } else {
            let verified = if self.repair {
                let urls = stores_of(project)?;
                interruptible(observer(Form::Quiet(LogForm::Text)), async |control| {
                    let open = |url| RemoteStore::open(url, StoreAccess::Read, &archive, &data, &control);
                    let stores: Vec<RemoteStore> = urls.iter().map(open).collect::<error::Result<_>>()?;
                    run::repair(&archive, &data, &stores, &control).await
                })?
            } else {
                cancellable(move |control| run::verify(&archive, &data, control))?
            };
            self.json.say(|| &verified, || describe(&verified))?;
            verified.faults.len()
        };
        if faults == 0 {
            return Ok(());
        }
        let what = format!("verification found {}", count_of(faults as u64, "fault", "faults"));
        let hint = "`bellwether verify --repair` gets what is damaged here from a store, and `verify --store --repair` \
                    sends what is damaged there; restore the rest from a backup";
        Err(Error::new(ErrorKind::Damaged, what).with_hint(hint).into())
    }
}

fn describe(Verified { repaired, faults, notes, files, .. }: &Verified) -> String {
    let notes: String = notes.iter().map(|note| format!("note: {}\n", escape(note))).collect();
    lines(repaired, faults, *files, &notes)
}

fn describe_store(verified: &StoreVerified) -> String {
    let mut notes = String::new();
    for folder in &verified.unfinished {
        notes += &format!("note: `{}` is an upload in progress, or was interrupted\n", escape(folder));
    }
    if let Some(found) = &verified.difference {
        let pull = "`bellwether store pull` fetches the runs and the latest versions";
        for (place, runs, versions, remedy) in [
            ("here", &found.only_here, &found.versions_only_here, "`bellwether store push` sends them"),
            ("in the store", &found.only_there, &found.versions_only_there, pull),
        ] {
            if !(runs.is_empty() && versions.is_empty()) {
                let runs = count_of(runs.len() as u64, "run", "runs");
                let versions = count_of(versions.len() as u64, "version", "versions");
                notes += &format!("only {place}: {runs} and {versions}; {remedy}\n");
            }
        }
    } else {
        notes += "note: what this machine has cannot be read, so it is not compared; see `bellwether verify`\n";
    }
    lines(&verified.repaired, &verified.faults, verified.files, &notes)
}

/// What was repaired, and what is wrong, a line each; then the notes, and how many files were verified if nothing is wrong.
fn lines(repaired: &[Repair], faults: &[String], files: usize, notes: &str) -> String {
    let mut text = String::new();
    for Repair { kind, place, reason } in repaired {
        let verb = match kind {
            RepairKind::Sent => "sent",
            RepairKind::Fetched => "fetched",
            RepairKind::Rebuilt => "rebuilt",
            RepairKind::SetAside => "moved aside",
        };
        text += &format!("{}\n", escape(&format!("{verb} `{place}`: {reason}")));
    }
    faults.iter().for_each(|fault| text += &format!("{}\n", escape(fault)));
    text += notes;
    if faults.is_empty() {
        text += &format!("verified {}\n", count_of(files as u64, "file", "files"));
    }
    text
}
