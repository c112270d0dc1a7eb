//! The services of an archive, as of an instant or of that of each request, for a server.

use std::path::Path;

use chrono::{DateTime, Utc};

use super::as_of::{check_past, view};
use crate::archive::{folders, no_runs, of_service, services};
use crate::error::{Error, Result};
use crate::process::cancel::CancellationToken;
use crate::serve::ArchivedServices;

/// The services of an archive that have some names, or all of them, each as of an instant or of that of each request.
///
/// # Errors
///
/// If the archive cannot be read, if it has no such service, or if a service has no run by the instant, which must not be in
/// the future.
pub fn past(
    archive: &Path,
    names: Vec<String>,
    as_of: Option<DateTime<Utc>>,
    stop: &CancellationToken,
) -> Result<ArchivedServices> {
    as_of.map_or(Ok(()), check_past)?;
    // Claims are served if they are named.
    let known = folders(archive)?;
    let mut served = if names.is_empty() { services(archive)? } else { names };
    served.sort_unstable();
    served.dedup();
    let mut folders = Vec::with_capacity(served.len());
    for name in served {
        if !known.contains(&name) {
            let what = format!("no service `{name}` in `{}`", archive.display());
            let hint = if known.is_empty() {
                "run it first: `bellwether run NAME`".to_owned()
            } else {
                format!("it has {}", known.join(", "))
            };
            return Err(Error::usage(what, hint));
        }
        let folder = of_service(archive, &name)?;
        view(&folder, as_of, stop)?;
        folders.push((name, folder));
    }
    if folders.is_empty() {
        return Err(no_runs(archive));
    }
    Ok(ArchivedServices::new(folders, |folder, stop| view(folder, None, stop), as_of, stop))
}
