//! Claims: runs that were imported from files which somebody saved before, at instants that nobody witnessed.
//!
//! They stand in a folder of their own beside that of their service, `SERVICE.claimed`, which is an archive like any other:
//! its runs are settled against one another, sealed, packed, verified and forgotten likewise. Only who asks for claims opens
//! it ([`Archive::open_with_claims`](super::Archive::open_with_claims)), so nothing else can be changed by them. The two are
//! then histories that met, and are merged like those of machines; the merge stands in `joined` in the folder of the claims,
//! where nobody else reads it. A claim counts only from before the first run of the service.

use std::path::{Path, PathBuf};

use crate::disk::{file, links};
use crate::error::Result;
use crate::plan::ServiceIdentity;

/// The folder, in that of the claims, of the merges of claims and runs.
const JOINED: &str = "joined";

/// The folder of the claims of a service, by that of its runs.
pub(crate) fn claims_of(service: &Path) -> PathBuf {
    let name = service.file_name().unwrap_or_default().to_string_lossy();
    service.with_file_name(ServiceIdentity::claims_of(&name))
}

/// The folder of the merges of claims and runs, by that of the claims.
pub(super) fn joined_in(claims: &Path) -> PathBuf {
    claims.join(JOINED)
}

/// The names of the folders of claims in an archive.
pub(super) fn folders_of_claims(archive: &Path) -> Result<Vec<String>> {
    let mut names = Vec::new();
    for path in file::entries(archive)? {
        let name = path.file_name().and_then(|name| name.to_str()).unwrap_or_default();
        if ServiceIdentity::is_of_claims(name) {
            links::refuse(&path)?;
            names.push(name.to_owned());
        }
    }
    Ok(names)
}
