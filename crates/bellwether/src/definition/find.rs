//! Finds a definition by its path, or by its name in the project's folder of definitions.

use std::io::{self, Read};
use std::path::{Path, PathBuf};

use super::ParsedDefinition;
use crate::disk::file::{self, FileError};
use crate::disk::names::is_dataset;
use crate::error::{Error, ErrorKind, Result};
use crate::text::human;
use crate::text::problem::nearest;
use crate::trust::Author;

/// The name and the text of the definition that is built in.
const DEMO: (&str, &str) = ("demo", include_str!("demo.toml"));

/// The size limit of a definition. A thousand tickers take ten kilobytes.
const MAX_BYTES: u64 = 1 << 20;

/// A definition: its name, its file, and its parsed part.
#[derive(Clone, Debug)]
pub struct DefinitionFile {
    /// The file's name without its extension: the name of the dataset.
    pub name: String,
    /// The file.
    pub path: PathBuf,
    /// Its text.
    pub text: String,
    /// The parsed text.
    pub reading: ParsedDefinition,
    /// Who wrote it.
    pub author: Author,
    /// The folder that its relative paths are below; empty for the current one.
    pub root: PathBuf,
}

impl DefinitionFile {
    /// A definition from its text, which the caller wrote.
    ///
    /// # Errors
    ///
    /// When the file's name cannot name a dataset.
    pub fn new(path: PathBuf, text: String) -> Result<Self> {
        // The name becomes that of folders and files.
        let name = path.file_stem().and_then(|stem| stem.to_str());
        let name = name.filter(|name| is_dataset(name) && !name.starts_with('-'));
        let name = name.ok_or_else(|| unusable_name(&path))?.to_owned();
        let reading = ParsedDefinition::read(&text);
        Ok(Self { name, path, text, reading, author: Author::Caller, root: PathBuf::new() })
    }

    /// The same definition, with the text of its file.
    #[must_use]
    pub fn of_file(self) -> Self {
        Self { author: Author::File, ..self }
    }

    /// The same definition, with its relative paths below the root of a project.
    #[must_use]
    pub fn below(self, root: &Path) -> Self {
        Self { root: root.to_owned(), ..self }
    }
}

/// Finds and reads a definition, by what [`path_of`] takes. Its root is the folder that has the one of definitions.
pub fn find(name_or_path: &str, definitions: &Path) -> Result<DefinitionFile> {
    let path = path_of(name_or_path, definitions);
    match read(&path) {
        Ok(bytes) => {
            let (root, text) = (definitions.parent().unwrap_or(Path::new("")), text_of(&path, bytes)?);
            DefinitionFile::new(path, text).map(|found| found.of_file().below(root))
        }
        // The first example is there in any folder.
        Err(source) if source.kind() == io::ErrorKind::NotFound && name_or_path == DEMO.0 => {
            DefinitionFile::new(path, DEMO.1.to_owned())
        }
        Err(source) if source.kind() == io::ErrorKind::NotFound => Err(missing(name_or_path, path)),
        Err(source) => Err(FileError::read(&path)(source)),
    }
}

/// The bytes of a file, or the first of too many.
///
/// # Errors
///
/// If it is no file, or cannot be read.
pub fn read(path: &Path) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    file::open_regular(path)?.take(MAX_BYTES + 1).read_to_end(&mut bytes)?;
    Ok(bytes)
}

/// The text of a definition, by the bytes of its file.
///
/// # Errors
///
/// If they are too many, or not UTF-8.
pub fn text_of(path: &Path, bytes: Vec<u8>) -> Result<String> {
    let path = path.to_owned();
    if bytes.len() as u64 > MAX_BYTES {
        let message = format!("definition `{}` is larger than {}", path.display(), human::bytes(MAX_BYTES));
        return Err(Error::new(ErrorKind::Definition, message)
            .with_hint("split it into several definitions, or use `tickers = \"available\"`"));
    }
    String::from_utf8(bytes).map_err(|error| {
        let valid = &error.as_bytes()[..error.utf8_error().valid_up_to()];
        let line = 1 + valid.iter().filter(|byte| **byte == b'\n').count();
        Error::new(ErrorKind::Definition, format!("definition `{}` is not UTF-8 text: line {line}", path.display()))
            .with_hint("save it as UTF-8")
    })
}

/// The file of a definition: `demo` is `demo.toml` in the folder of definitions, anything with a separator or an extension
/// is a path, unless there is such a definition.
pub fn path_of(name_or_path: &str, definitions: &Path) -> PathBuf {
    let (given, named) = (Path::new(name_or_path), file_of(name_or_path, definitions));
    let is_path = given.components().count() > 1 || given.extension().is_some() && file::is_gone(&named);
    if is_path { given.to_owned() } else { named }
}

/// The file of a definition in a folder, whose name may have a dot, by mistake.
fn file_of(name: &str, definitions: &Path) -> PathBuf {
    definitions.join(format!("{name}.toml"))
}

/// The names of the definitions in a folder.
pub fn names(folder: &Path) -> Result<Vec<String>> {
    let definitions = file::entries(folder)?.into_iter().filter(|file| file.extension().is_some_and(|it| it == "toml"));
    let mut names: Vec<String> = definitions.filter_map(|file| Some(file.file_stem()?.to_str()?.to_owned())).collect();
    names.sort();
    Ok(names)
}

/// The definitions in a folder, by name, with their descriptions.
pub fn catalog(folder: &Path) -> Result<Vec<(String, Option<String>)>> {
    let description = |name: &str| -> Option<String> {
        let path = file_of(name, folder);
        let text = text_of(&path, read(&path).ok()?).ok()?;
        Some(text.parse::<toml::Table>().ok()?.get("description")?.as_str()?.to_owned())
    };
    Ok(names(folder)?.into_iter().map(|name| (name.clone(), description(&name))).collect())
}

fn missing(given: &str, path: PathBuf) -> Error {
    let name = path.file_stem().and_then(|stem| stem.to_str()).unwrap_or_default();
    let folder = path.parent().filter(|parent| !parent.as_os_str().is_empty()).unwrap_or(Path::new("."));
    let mut known = names(folder).unwrap_or_default();
    // A link to nothing has the name.
    known.retain(|known| known != name);
    let hint = match nearest(name, known.iter().map(String::as_str)) {
        Some(meant) => format!("did you mean `{meant}`?"),
        None if known.is_empty() => format!("no definitions in `{}`", folder.display()),
        None => format!("definitions in `{}`: {}", folder.display(), known.join(", ")),
    };
    let message = format!("no definition `{given}`: `{}` does not exist", path.display());
    Error::new(ErrorKind::NoDefinition, message).with_hint(hint)
}

/// A definition whose file has a name that a dataset cannot have.
pub fn unusable_name(path: &Path) -> Error {
    let is_definition = path.extension().is_some_and(|it| it == "toml");
    let name = path.file_stem().filter(|_| is_definition).map_or(path, Path::new);
    Error::new(ErrorKind::Definition, format!("`{}` is not a valid name for a dataset", name.display()))
        .with_hint("use at most 64 letters, digits, `-` and `_` in the name of the file")
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::{DEMO, find};

    #[test]
    fn the_definition_that_is_built_in_is_that_of_the_project() {
        let root = Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/../.."));
        let file = std::fs::read_to_string(root.join("pipelines/demo.toml")).expect("it is there");
        assert_eq!(file, DEMO.1);
        assert_eq!(find("demo", Path::new("no/such/folder")).expect("it is built in").text, file);
        assert!(find("other", Path::new("no/such/folder")).is_err());
        let folder = tempfile::tempdir().expect("a folder");
        assert_eq!(find("demo", folder.path()).expect("a project need not have it").text, file);
    }
}
