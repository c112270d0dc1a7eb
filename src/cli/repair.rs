//! The arguments and the outcome of repairing an archive or a store.

use bellwether::run::{Repair, RepairKind, RepairMode, Repairs};
use bellwether::text::escape::escape;
use bellwether::text::human::count_of;

use super::document::AsJson;
use super::outcome::{Failure, Result};

/// How an archive or a store is repaired.
#[derive(Clone, Debug, clap::Args)]
pub(super) struct RepairArguments {
    /// Print what would be done without doing it.
    #[arg(long)]
    dry_run: bool,
}

impl RepairArguments {
    /// Whether it is carried out.
    pub(super) fn mode(&self) -> RepairMode {
        if self.dry_run { RepairMode::List } else { RepairMode::Repair }
    }
}

/// Prints what was repaired, or would be. Fails if anything is still wrong.
pub(super) fn say(json: AsJson, repairs: &Repairs) -> Result<()> {
    json.say(|| repairs, || in_words(repairs))?;
    match repairs.left.len() {
        0 => Ok(()),
        count => Err(Failure::Unverified { count }),
    }
}

fn in_words(repairs: &Repairs) -> String {
    let Repairs { dry_run, repaired, left } = repairs;
    let verb = |kind: RepairKind| match (kind, dry_run) {
        (RepairKind::Sent, false) => "sent",
        (RepairKind::Fetched, false) => "fetched",
        (RepairKind::Rebuilt, false) => "rebuilt",
        (RepairKind::SetAside, false) => "set aside",
        (RepairKind::Sent, true) => "would send",
        (RepairKind::Fetched, true) => "would fetch",
        (RepairKind::Rebuilt, true) => "would rebuild",
        (RepairKind::SetAside, true) => "would set aside",
    };
    let mut text = String::new();
    for Repair { kind, place, reason } in repaired {
        text.push_str(&escape(&format!("{} `{place}`: {reason}", verb(*kind))));
        text.push('\n');
    }
    for fault in left {
        text.push_str(&escape(fault));
        text.push('\n');
    }
    let repairs = || count_of(repaired.len() as u64, "repair", "repairs");
    match (repaired.len(), dry_run, left.len()) {
        (0, _, 0) => text.push_str("nothing to repair\n"),
        (0, ..) => {}
        (_, true, _) => text.push_str(&format!("{} to make\n", repairs())),
        (_, false, _) => text.push_str(&format!("made {}\n", repairs())),
    }
    text
}
