//! Definitions: by name, by path, or as text that Python made from a dict.

use std::path::{Path, PathBuf};

use bellwether::definition::{DefinitionFile, find, path_of};
use bellwether::error::{Error, ErrorKind, Result};
use bellwether::export::latest;
use bellwether::plan::Plan;
use bellwether::project::Project;
use bellwether::run::CheckedDefinition;
use bellwether::time::Clock;
use bellwether::trust::Author;
use pyo3::prelude::*;

use crate::fault;
use crate::supervise::json;

/// A definition as a Python argument.
#[derive(Clone, FromPyObject)]
pub(crate) enum DefinitionArgument {
    /// A name in `pipelines/`, or a path.
    Named(String),
    /// A name, and a text.
    Written(String, String),
}

impl DefinitionArgument {
    /// Its plan.
    pub(crate) fn plan(&self) -> Result<Plan> {
        Plan::of(self.file()?)
    }

    /// Its text, and where that is from.
    pub(crate) fn file(&self) -> Result<DefinitionFile> {
        let project = Project::find()?;
        match self {
            Self::Named(name) => Ok(find(name, &project.definitions())?.below(project.root())),
            Self::Written(name, text) => {
                let unnamed = || {
                    let what = format!("a definition cannot be named `{name}`");
                    Error::usage(what, "use at most 64 letters, digits, `-` and `_` in `name`")
                };
                if name.contains('/') {
                    return Err(unnamed());
                }
                let found = DefinitionFile::new(PathBuf::from(format!("{name}.toml")), text.clone());
                Ok(found.map_err(|_| unnamed())?.below(project.root()))
            }
        }
    }

    /// Its plan; for a name without a file, that of the latest version published under the name.
    pub(crate) fn plan_or_published(&self, data: &Path) -> Result<Plan> {
        match self.plan() {
            Err(error) if error.kind() == ErrorKind::NoDefinition => {
                let Self::Named(name) = self else { return Err(error) };
                match latest(&data.join("datasets"), Some(name)) {
                    Ok(Some(recorded)) => {
                        // Whoever can write the record could have written the definition in it.
                        let version = data.join("datasets").join(&recorded.name).join(&recorded.version);
                        let plan = Self::Written(recorded.name, recorded.definition).plan()?;
                        Ok(Plan { author: Author::File, path: version.join("dataset.json"), ..plan })
                    }
                    _ => Err(error),
                }
            }
            plan => plan,
        }
    }
}

/// The folder of the datasets and the archive; with a definition, that in which it publishes.
#[pyfunction]
#[pyo3(signature = (definition=None))]
pub(crate) fn data_folder(py: Python<'_>, definition: Option<DefinitionArgument>) -> PyResult<PathBuf> {
    let folder = || {
        let project = Project::find()?;
        // As for the program.
        let given = std::env::var_os("BELLWETHER_DATA").filter(|given| !given.is_empty()).map(PathBuf::from);
        match &definition {
            None | Some(DefinitionArgument::Named(_)) if given.is_some() => Ok(given.unwrap_or_default()),
            None => Ok(project.data()),
            Some(DefinitionArgument::Named(name)) => project.data_of(&path_of(name, &project.definitions())),
            Some(DefinitionArgument::Written(name, _)) if path_of(name, &project.definitions()).exists() => {
                Err(Error::usage(
                    format!("the project has a definition `{name}`, whose dataset would be taken over"),
                    "give the dict another `name`, or name the folder to publish in with `data`",
                ))
            }
            Some(DefinitionArgument::Written(..)) => Ok(given.unwrap_or_else(|| project.data())),
        }
    };
    folder().map_err(|error| fault::exception(py, &error))
}

/// What a check says of a definition, as JSON.
#[pyfunction]
pub(crate) fn check(py: Python<'_>, definition: DefinitionArgument) -> PyResult<String> {
    let checked = || {
        let project = Project::find()?;
        match definition.plan() {
            Ok(plan) => Ok(CheckedDefinition::valid(&plan, &project.data(), Clock::System.now())),
            Err(error) if error.problems().is_some() => {
                let path = match &definition {
                    DefinitionArgument::Named(name) => path_of(name, &project.definitions()),
                    DefinitionArgument::Written(name, _) => PathBuf::from(format!("{name}.toml")),
                };
                Ok(CheckedDefinition::invalid(&path, &error))
            }
            Err(error) => Err(error),
        }
    };
    checked().map(|checked| json(&checked)).map_err(|error| fault::exception(py, &error))
}
