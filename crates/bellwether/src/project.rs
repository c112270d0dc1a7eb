//! The project: the folder that definitions, datasets and the archive are in.
//!
//! Its root is the nearest folder upwards with a `pipelines/`, unless `BELLWETHER_ROOT` names another. A folder above the
//! current one is only taken from users who could change what is done here anyway; what its definitions may do then is
//! for [`trust`] to say. A root below which nothing is found is no error: commands may name their folders themselves.

use std::env;
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use crate::disk::file::folder_of;
use crate::disk::names::DEFINITIONS;
use crate::error::Error;
use crate::trust;

/// The default folder of datasets and archive.
const DATA: &str = "output";

/// The environment variable that names a project's root.
pub const ROOT_VARIABLE: &str = "BELLWETHER_ROOT";

/// A project, by its root.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Project {
    /// Empty for the current folder.
    root: PathBuf,
}

impl Project {
    /// The project with a root.
    ///
    /// # Errors
    ///
    /// If the root is not a folder.
    pub fn at(root: impl Into<PathBuf>) -> Result<Self, Error> {
        let root = root.into();
        match root.metadata() {
            Ok(found) if found.is_dir() => Ok(Self { root }),
            Ok(_) => Err(no_project(&root, io::ErrorKind::NotADirectory.into())),
            Err(source) => Err(no_project(&root, source)),
        }
    }

    /// The project that `BELLWETHER_ROOT` names, or the nearest one upwards, or else the current folder.
    ///
    /// # Errors
    ///
    /// If the variable does not name a folder; if the nearest project belongs to another user.
    pub fn find() -> Result<Self, Error> {
        match env::var_os(ROOT_VARIABLE).filter(|root| !root.is_empty()) {
            Some(root) => Self::at(root),
            None => Self::nearest(),
        }
    }

    fn nearest() -> Result<Self, Error> {
        // The user is in a folder that was deleted, or cannot read the folders above.
        let Ok(here) = env::current_dir() else { return Ok(Self::default()) };
        let mut root = PathBuf::new();
        for folder in here.ancestors() {
            let found = folder.join(DEFINITIONS).metadata();
            let Some(found) = found.ok().filter(|found| found.is_dir()) else {
                root.push("..");
                continue;
            };
            // A project is used from a folder below it if it is our own, one of root, or of the owner of the folder.
            let is_of_owner = || here.metadata().is_ok_and(|here| here.uid() == found.uid());
            if folder == here || trust::is_own(found.uid()) || is_of_owner() || trust::is_listed(folder)? {
                return Ok(Self { root });
            }
            let root = folder.display();
            let hint = format!("if you trust it, name it: `--directory {root}`; for one of your own: `--directory .`");
            return Err(Error::usage(format!("the project in `{root}` belongs to another user"), hint));
        }
        Ok(Self::default())
    }

    /// Its root, empty for the current folder.
    pub fn root(&self) -> &Path {
        &self.root
    }

    /// The folder of definitions.
    pub fn definitions(&self) -> PathBuf {
        self.root.join(DEFINITIONS)
    }

    /// The default folder of datasets and archive.
    pub fn data(&self) -> PathBuf {
        self.root.join(DATA)
    }

    /// The default folder that a definition publishes in.
    ///
    /// # Errors
    ///
    /// If the definition is not in the project's folder of definitions: its dataset would take the place of another one
    /// with the same name.
    pub fn data_of(&self, definition: &Path) -> Result<PathBuf, Error> {
        let definitions = self.definitions();
        match (definitions.canonicalize(), folder_of(definition).canonicalize()) {
            // There is no project here.
            (Err(error), _) if error.kind() == io::ErrorKind::NotFound => Ok(self.data()),
            (Ok(own), Ok(folder)) if own == folder => Ok(self.data()),
            // It may have the name of one of the project's.
            _ => Err(Error::usage(
                format!("`{}` is not one of the project's definitions", definition.display()),
                format!("put it into `{}`, or name the folder to publish in: `--data FOLDER`", definitions.display()),
            )),
        }
    }
}

/// A root that is no folder.
fn no_project(root: &Path, source: io::Error) -> Error {
    let hint = format!("name an existing folder with `--directory` or `{ROOT_VARIABLE}`, or use neither");
    Error::usage(format!("no project in `{}`", root.display()), hint).with_source(source)
}

#[cfg(test)]
mod tests {
    use super::Project;

    #[test]
    fn a_root_must_be_a_folder_and_holds_definitions_and_data() {
        let folder = tempfile::tempdir().expect("a folder");
        let project = Project::at(folder.path()).expect("a project");
        assert_eq!(project.definitions(), folder.path().join("pipelines"));
        assert_eq!(project.data(), folder.path().join("output"));
        assert!(Project::at(folder.path().join("nothing")).is_err());
    }
}
