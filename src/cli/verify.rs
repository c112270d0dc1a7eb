//! `bellwether verify`: verifies every file of the archive and the datasets, or of a store, and repairs what is damaged.

use bellwether::error::{Error, ErrorKind};
use bellwether::project::Project;
use bellwether::run::{
    Control, RemoteStore, Repair, RepairKind, StoreAccess, StoreDifference, StoreVerified, Verified, VerifyScope,
    repair, verify,
};
use bellwether::text::escape::escape;
use bellwether::text::human::count_of;

use super::document::AsJson;
use super::folders::Folders;
use super::log::LogForm;
use super::outcome::Result;
use super::store::{StoreSide, stores_of};
use super::{cancellable, interruptible, progress};

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
    folders: Folders,
}

impl Verify {
    pub(super) fn execute(self, project: &Project) -> Result<()> {
        let (archive, data) = (self.folders.archive(project), self.folders.data(project));
        if let Some(url) = self.side.url(project)? {
            return interruptible(async |stop| {
                let control = Control { observer: Some(progress::observer()), stop };
                let access = if self.repair { StoreAccess::Write } else { StoreAccess::Read };
                let store = RemoteStore::open(&url, access, &archive, &data, &control)?;
                let scope = if self.sizes { VerifyScope::Sizes } else { VerifyScope::All };
                let verified = if self.repair { store.repair().await? } else { store.verify(&scope).await? };
                self.json.say(|| &verified, || store_lines(&verified))?;
                check(verified.faults.len())
            });
        }
        if self.repair {
            let urls = stores_of(project)?;
            let verified = interruptible(async |stop| {
                let control = Control { observer: Some(progress::quiet(LogForm::Text)), stop };
                let open = |url| RemoteStore::open(url, StoreAccess::Read, &archive, &data, &control);
                let stores: Vec<RemoteStore> = urls.iter().map(open).collect::<Result<_, _>>()?;
                repair(&archive, &data, &stores, &control).await
            })?;
            return self.report(&verified);
        }
        self.report(&cancellable(move |control| verify(&archive, &data, control))?)
    }

    fn report(&self, verified: &Verified) -> Result<()> {
        self.json.say(|| verified, || lines(verified))?;
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
    let mut text = repair_lines(&verified.repaired, &verified.faults);
    verified.notes.iter().for_each(|note| text.push_str(&format!("note: {}\n", escape(note))));
    text + &files_line(verified.files, &verified.faults)
}

fn store_lines(verified: &StoreVerified) -> String {
    let mut text = repair_lines(&verified.repaired, &verified.faults);
    for folder in &verified.unfinished {
        text.push_str(&format!("note: `{}` is an upload in progress, or was interrupted\n", escape(folder)));
    }
    let Some(StoreDifference { only_here, only_there, versions_only_here, versions_only_there, .. }) =
        &verified.difference
    else {
        text.push_str("note: what this machine has cannot be read, so it is not compared; see `bellwether verify`\n");
        return text + &files_line(verified.files, &verified.faults);
    };
    let counts = |runs: &[String], versions: &[String]| {
        let runs = count_of(runs.len() as u64, "run", "runs");
        format!("{runs} and {}", count_of(versions.len() as u64, "version", "versions"))
    };
    if !(only_here.is_empty() && versions_only_here.is_empty()) {
        let counts = counts(only_here, versions_only_here);
        text.push_str(&format!("only here: {counts}; `bellwether store push` sends them\n"));
    }
    if !(only_there.is_empty() && versions_only_there.is_empty()) {
        let counts = counts(only_there, versions_only_there);
        let pull = "`bellwether store pull` fetches the runs and the latest versions";
        text.push_str(&format!("only in the store: {counts}; {pull}\n"));
    }
    text + &files_line(verified.files, &verified.faults)
}

fn files_line(files: usize, faults: &[String]) -> String {
    let files = if faults.is_empty() { Some(files as u64) } else { None };
    files.map(|files| format!("verified {}\n", count_of(files, "file", "files"))).unwrap_or_default()
}

/// What was repaired, and what is wrong, a line each.
fn repair_lines(repaired: &[Repair], faults: &[String]) -> String {
    let verb = |kind: RepairKind| match kind {
        RepairKind::Sent => "sent",
        RepairKind::Fetched => "fetched",
        RepairKind::Rebuilt => "rebuilt",
        RepairKind::SetAside => "moved aside",
    };
    let line = |Repair { kind, place, reason }: &Repair| format!("{} `{place}`: {reason}", verb(*kind));
    let lines = repaired.iter().map(line).chain(faults.iter().cloned());
    lines.map(|line| format!("{}\n", escape(&line))).collect()
}
