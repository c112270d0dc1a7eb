//! Errors of migrating an archive.

use std::path::PathBuf;

use crate::disk::file::FileError;
use crate::error::{Diagnostic, Error, ErrorKind, Reason};
use crate::text::human::{count_of, group_digits};

/// An archive of an older layout that cannot be migrated.
#[derive(Debug, thiserror::Error)]
pub(crate) enum MigrateError {
    /// A damaged file.
    #[error("cannot migrate `{}`", path.display())]
    Damaged { path: PathBuf, source: Reason },

    /// A folder of a layout that cannot be migrated.
    #[error("`{}` has layout {layout}; this version migrates layout {known}", path.display())]
    Layout { path: PathBuf, layout: u64, known: u32 },

    /// Runs of which nothing tells the service.
    #[error("cannot tell the service of {}: {}", count_of(runs.len() as u64, "run", "runs"), some_of(runs))]
    Services { runs: Vec<String>, definitions: Vec<String>, now: Option<String> },

    /// A name that cannot be a service's.
    #[error("`{name}` cannot be the name of a service")]
    Name { name: String },

    /// A run that was migrated beside other runs.
    #[error("`{}` was migrated without some of the runs before it", path.display())]
    Differs { path: PathBuf },

    /// An old folder that is there twice.
    #[error("`{}` is there twice: `{}` has it too", path.display(), kept.display())]
    Twice { path: PathBuf, kept: PathBuf },
}

impl MigrateError {
    /// The same error, with what to do about a damaged file.
    pub(super) fn of(error: Error) -> Error {
        match error.downcast_ref() {
            Some(FileError::Damaged { path, .. }) => Self::Damaged { path: path.clone(), source: error.into() }.into(),
            _ => error,
        }
    }
}

/// The first few runs, with their definitions.
fn some_of(runs: &[String]) -> String {
    const SHOWN: usize = 8;
    let shown: Vec<&str> = runs.iter().take(SHOWN).map(String::as_str).collect();
    let more = runs.len().saturating_sub(SHOWN);
    if more == 0 { shown.join(", ") } else { format!("{} and {} more", shown.join(", "), group_digits(more as u64)) }
}

impl Diagnostic for MigrateError {
    fn kind(&self) -> ErrorKind {
        match self {
            Self::Services { .. } | Self::Name { .. } => ErrorKind::Usage,
            Self::Damaged { .. } | Self::Layout { .. } | Self::Differs { .. } | Self::Twice { .. } => {
                ErrorKind::Storage
            }
        }
    }

    fn hint(&self) -> Option<String> {
        Some(match self {
            Self::Damaged { .. } => {
                "restore it from a backup, or move its folder out of the archive to migrate the rest \
                                     without it; nothing old was changed"
                    .to_owned()
            }
            Self::Layout { layout, known, .. } if layout < &u64::from(*known) => {
                "move it out of the archive to migrate the rest without it".to_owned()
            }
            Self::Layout { .. } => "use the version of bellwether that wrote it, or a newer one".to_owned(),
            Self::Services { definitions, now, .. } => {
                let name = now.as_deref().unwrap_or("NAME");
                let definitions: Vec<String> = definitions.iter().map(|name| format!("`{name}`")).collect();
                format!(
                    "no definition in `pipelines/` and no published version has the text that {} had then; name the \
                     service of these runs: `--service {name}`",
                    definitions.join(", ")
                )
            }
            Self::Name { .. } => "use letters, digits, `-`, `_` and `.`, and begin with a letter or digit".to_owned(),
            Self::Differs { path } => format!(
                "move `{}` away and migrate again: the old runs, which are still there, give the same bytes",
                path.parent().unwrap_or(path).display()
            ),
            Self::Twice { .. } => "keep one of the two, and move the other one away".to_owned(),
        })
    }
}
