//! The services in an archive: a folder for each, since their data never meets; and their claims.
//!
//! Claims are runs that were imported from files which somebody saved before, at instants that nobody witnessed. They stand in a
//! folder of their own beside that of their service, `SERVICE.claimed`, which is an archive like any other: its runs are settled
//! against one another, sealed, packed, verified and forgotten likewise. Only who asks for claims opens it
//! (`Archive::open_with`), so nothing else can be changed by them. The two are then histories that met, and are merged like
//! those of machines; the merge stands in `joined` in the folder of the claims, where nobody else reads it. A claim counts only
//! from before the first run of the service.

use std::fs;
use std::path::{Path, PathBuf};

use super::sealed::catalog::Archive;
use super::sealed::seal::{SEAL, Seal};
use crate::archive::no_archive;
use crate::disk::file::{self, FileError};
use crate::disk::links;
use crate::disk::names::{PACK_FOLDER, RUN_FOLDER, fits};
use crate::error::{Error, ErrorKind, Result};
use crate::plan::ServiceIdentity;

/// The folder of a service in an archive.
///
/// # Errors
///
/// If the archive cannot be read, or has runs outside the folders of services.
pub fn of_service(archive: &Path, service: &str) -> Result<PathBuf> {
    for path in file::entries(archive)? {
        let name = path.file_name().and_then(|name| name.to_str()).unwrap_or_default();
        if (fits(name, RUN_FOLDER) || fits(name, PACK_FOLDER)) && !file::is_gone(&path.join(SEAL)) {
            // That of an older layout, which had no services, is refused as such.
            Seal::read(&path)?;
            let what = format!("`{}` is not in the folder of its service", path.display());
            return Err(Error::new(ErrorKind::Storage, what).with_hint(
                "an archive has a folder for each service: name the one above these with `--archive`, or move it into the folder \
                 of its service",
            ));
        }
    }
    Ok(archive.join(service))
}

/// The services in an archive, by name.
///
/// # Errors
///
/// If the archive does not exist, cannot be read, or has runs outside the folders of services.
pub fn services(archive: &Path) -> Result<Vec<String>> {
    if file::is_gone(archive) {
        return Err(no_archive(archive));
    }
    of_service(archive, "")?;
    let mut services = Vec::new();
    for path in file::entries(archive)? {
        let name = path.file_name().and_then(|name| name.to_str()).unwrap_or_default();
        if !ServiceIdentity::is_name(name) {
            continue;
        }
        links::refuse(&path)?;
        if fs::symlink_metadata(&path).map_err(FileError::read(&path))?.is_dir() {
            services.push(name.to_owned());
        }
    }
    services.sort_unstable();
    Ok(services)
}

/// The runs of every service in an archive, by the name of the service; and its claims, by that of their folder.
///
/// # Errors
///
/// If the archive does not exist, cannot be read, or has runs outside the folders of services.
pub fn open_all(archive: &Path) -> Result<Vec<(String, Archive)>> {
    let open = |service: String| Ok((service.clone(), Archive::open(&archive.join(service))?));
    folders(archive)?.into_iter().map(open).collect()
}

/// The names of the folders of services and of claims in an archive.
///
/// # Errors
///
/// As [`services`].
pub fn folders(archive: &Path) -> Result<Vec<String>> {
    let mut folders = services(archive)?;
    for path in file::entries(archive)? {
        let name = path.file_name().and_then(|name| name.to_str()).unwrap_or_default();
        if ServiceIdentity::is_of_claims(name) {
            links::refuse(&path)?;
            folders.push(name.to_owned());
        }
    }
    folders.sort_unstable();
    Ok(folders)
}
