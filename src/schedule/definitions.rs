//! The definitions of a folder, read again whenever a file has changed. A broken one stops nothing but itself.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use bellwether::definition::{self, DefinitionFile};
use bellwether::disk::file::{self, FileError};
use bellwether::error::{Error, Result};
use bellwether::plan::Plan;

/// The definitions of a folder.
#[derive(Debug)]
pub(super) struct Definitions {
    folder: PathBuf,
    known: BTreeMap<String, KnownFile>,
}

/// A file, and what it means.
#[derive(Debug)]
struct KnownFile {
    /// None if it cannot be read.
    bytes: Option<Vec<u8>>,
    /// None if it is broken.
    plan: Option<Plan>,
    /// The plan as it is now, or was when it was last valid.
    last: Option<Plan>,
}

/// What became of a file.
#[derive(Debug)]
pub(super) enum FileChange {
    /// It is new, or has changed.
    Read(String),
    /// It is new, or has changed, and cannot be used.
    Broken(String, Error),
    /// It was removed.
    Removed(String),
}

/// The files of definitions in a folder, by name.
pub(super) fn files(folder: &Path) -> Result<BTreeMap<String, PathBuf>> {
    // Whatever is in the place of one: a definition that cannot be read is broken, not absent.
    let is_definition =
        |path: &PathBuf| path.extension().is_some_and(|extension| extension == "toml") && !file::is_hidden(path);
    let named = |path: PathBuf| Some((path.file_stem()?.to_str()?.to_owned(), path));
    Ok(file::entries(folder)?.into_iter().filter(is_definition).filter_map(named).collect())
}

impl Definitions {
    pub(super) fn of(folder: PathBuf) -> Self {
        Self { folder, known: BTreeMap::new() }
    }

    /// The plan of a definition; `None` if it is broken or does not exist.
    pub(super) fn plan(&self, name: &str) -> Option<&Plan> {
        self.known.get(name)?.plan.as_ref()
    }

    /// The names of those that are broken.
    pub(super) fn broken_names(&self) -> impl Iterator<Item = &str> {
        self.known.iter().filter(|(_, known)| known.plan.is_none()).map(|(name, _)| name.as_str())
    }

    /// The plan of a definition, or the one that it had before it was broken.
    pub(super) fn last_plan(&self, name: &str) -> Option<&Plan> {
        self.known.get(name)?.last.as_ref()
    }

    /// Checks that there is something to schedule.
    pub(super) fn check_scheduled(&self) -> Result<()> {
        match self.plans().any(|plan| plan.schedule.is_some()) {
            true => Ok(()),
            false => Err(nothing_scheduled(&self.folder)),
        }
    }

    /// The plans that can be used, by name.
    pub(super) fn plans(&self) -> impl Iterator<Item = &Plan> {
        self.known.values().filter_map(|known| known.plan.as_ref())
    }

    /// Reads what has changed.
    pub(super) fn refresh(&mut self) -> Result<Vec<FileChange>> {
        let files = files(&self.folder)?;
        let removed: Vec<String> = self.known.keys().filter(|name| !files.contains_key(*name)).cloned().collect();
        let mut changes = Vec::new();
        for name in removed {
            self.known.remove(&name);
            changes.push(FileChange::Removed(name));
        }
        for (name, path) in files {
            let bytes = definition::read(&path).map_err(FileError::read(&path));
            if self.known.get(&name).is_some_and(|known| known.bytes == bytes.as_ref().ok().cloned()) {
                continue;
            }
            let (bytes, plan) = match bytes {
                Ok(bytes) => (Some(bytes.clone()), plan(path, bytes)),
                Err(error) => (None, Err(error)),
            };
            let plan = match plan {
                Ok(plan) => {
                    changes.push(FileChange::Read(name.clone()));
                    Some(plan)
                }
                Err(error) => {
                    changes.push(FileChange::Broken(name.clone(), error));
                    None
                }
            };
            let before = self.known.remove(&name).and_then(|known| known.last);
            let last = plan.clone().or(before);
            self.known.insert(name, KnownFile { bytes, plan, last });
        }
        Ok(changes)
    }
}

/// That no definition in a folder has a schedule.
pub(super) fn nothing_scheduled(folder: &Path) -> Error {
    let what = format!("no definition in `{}` has a `[schedule]`", folder.display());
    Error::usage(what, "add one, such as `cron = \"30 18 * * MON-FRI\"`")
}

fn plan(path: PathBuf, bytes: Vec<u8>) -> Result<Plan> {
    let text = definition::text_of(&path, bytes)?;
    let root = path.parent().and_then(Path::parent).unwrap_or(Path::new("")).to_owned();
    Plan::of(DefinitionFile::new(path, text)?.of_file().below(&root))
}
