//! Forgetting runs: writes the notes that [`forgotten`](super::forgotten) reads.

use std::collections::BTreeMap;
use std::path::Path;

use chrono::{DateTime, Utc};

use super::error::{some_names, unknown_run};
use super::forgotten::{ForgetReason, Forgetting, ForgottenCause, ForgottenRun, forgotten_runs};
use super::sealed::catalog::Archive;
use super::sealed::seal::{SEAL, Seal};
use super::unfinished::SealingLock;
use super::upkeep::HiddenFolder;
use crate::disk::file;
use crate::error::{Error, Result};
use crate::process::cancel::CancellationToken;
use crate::text::human::group_digits;

impl Forgetting {
    /// Adds the note to an archive, unless that has one of this run.
    pub(crate) fn add_to(&self, archive: &Path) -> Result<()> {
        let target = archive.join(self.folder_name());
        if !file::is_gone(&target) {
            return Ok(());
        }
        let work = HiddenFolder::begin(archive, &self.run)?;
        file::write_bytes(&work.path.join(SEAL), self.text().as_bytes())?;
        match file::rename_durably(&work.path, &target) {
            Err(_) if !file::is_gone(&target) => Ok(()),
            renamed => renamed,
        }
    }
}

impl Archive {
    /// Notes with which another archive leaves out what this one does.
    pub(super) fn notes_on_forgotten(&self) -> impl Iterator<Item = Forgetting> {
        let seals = self.runs_in_folders();
        self.forgotten_runs().filter_map(move |forgotten| match &forgotten.cause {
            ForgottenCause::Noted(note) => Some(note.clone()),
            ForgottenCause::BasedOn(_) | ForgottenCause::Witnessed(_) => {
                let seal = seals.iter().find(|seal| seal.run == forgotten.run)?;
                Some(Forgetting::new(seal, "it does not count", seal.sealed_at))
            }
        })
    }
}

/// Forgets runs, but for those that are forgotten already. Returns the note of each, and whether it is new.
pub(crate) fn forget(
    archive: &Path,
    runs: &[String],
    ForgetReason(reason): &ForgetReason,
    now: DateTime<Utc>,
    stop: &CancellationToken,
) -> Result<Vec<(Forgetting, bool)>> {
    // A run that is being sealed may be based on one of them.
    let _lock = SealingLock::take(archive, stop)?;
    let opened = Archive::open(archive)?;
    let all: Vec<&Seal> = opened.runs_in_folders();
    let known: BTreeMap<&str, &ForgottenRun> = opened.forgotten_runs().map(|run| (run.run.as_str(), run)).collect();
    let note = |run: &String| {
        if let Some(ForgottenRun { cause: ForgottenCause::Noted(note), .. }) = known.get(run.as_str()) {
            return Ok((note.clone(), false));
        }
        let unknown = || unknown_run(archive, run);
        let seal = all.iter().find(|seal| seal.run == *run).ok_or_else(unknown)?;
        Ok((Forgetting::new(seal, reason, now), true))
    };
    let notes = runs.iter().map(note).collect::<Result<Vec<(Forgetting, bool)>>>()?;
    let new = || notes.iter().filter(|(_, is_new)| *is_new).map(|(note, _)| note);
    let is_left = |run: &str| !known.contains_key(run) && !runs.iter().any(|other| other == run);
    for Forgetting { run, .. } in new() {
        if let Some(twin) = twin_of(run, &all).filter(|twin| is_left(&twin.run)) {
            let twin = &twin.run;
            return Err(Error::usage(
                format!("`{run}` was sealed at the same instant as `{twin}`"),
                format!("forget both: `bellwether forget {run} {twin} --reason TEXT`"),
            ));
        }
    }
    let by_name = new().map(|note| (note.run.clone(), note.clone())).collect();
    let with_others = forgotten_runs(by_name, BTreeMap::new(), all.iter().copied());
    let based: Vec<String> = with_others.into_keys().filter(|run| is_left(run)).collect();
    if !based.is_empty() {
        let on: Vec<String> = new().map(|note| format!("`{}`", note.run)).collect();
        let runs = match based.len() {
            1 => "1 run is".to_owned(),
            more => format!("{} runs are", group_digits(more as u64)),
        };
        return Err(Error::usage(
            format!("{runs} based on {}: {}", some_names(&on), some_names(&based)),
            "what they stored is the difference from it: forget them first, the newest first; what they observed is then left \
             out, too",
        ));
    }
    new().try_for_each(|note| note.add_to(archive))?;
    Ok(notes)
}

/// Another run that was sealed at the same instant: the rows of both in a pack cannot be told apart.
fn twin_of<'s>(run: &str, all: &[&'s Seal]) -> Option<&'s Seal> {
    let seal = all.iter().find(|seal| seal.run == run)?;
    all.iter().find(|other| other.sealed_at == seal.sealed_at && other.run != run).copied()
}
