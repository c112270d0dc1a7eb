//! Upkeep of the archive and the datasets: verification and packing.

use std::path::Path;

use super::observer::Control;
use super::stage::Stage;
use crate::archive::{self, Archive, Seal, Verified, fault};
use crate::error::Result;
use crate::export::{Version, versions};

/// Verifies every file of an archive, and of the datasets in an output folder.
///
/// # Errors
///
/// When a folder or a record cannot be read; [`ErrorKind::Interrupted`](crate::error::ErrorKind) when it was
/// cancelled.
pub fn verify(archive: &Path, data: &Path, control: &Control) -> Result<Verified> {
    let archive = Archive::open(archive)?.until(&control.stop);
    let versions = versions(&data.join("datasets"))?;
    let count = archive.file_count() + versions.iter().map(Version::file_count).sum::<usize>();
    let stage = Stage::of_files(control, "verify", count);
    let Verified { mut files, mut faults } = archive::verify(&archive, |file| stage.done(0, file.bytes))?;
    for version in versions {
        files += version.file_count();
        faults.extend(version.fault_of_facts());
        for file in &version.files {
            faults.extend(fault(&version.path.join(&file.name), file, &control.stop)?);
            stage.done(0, file.bytes);
        }
    }
    stage.finish();
    Ok(Verified { files, faults })
}

/// Packs the runs of an archive, except the newest, into one folder with the same content; none if there are fewer
/// than two folders to pack. The packed runs stay until they are pruned.
///
/// # Errors
///
/// When a run cannot be read or is damaged, or the pack cannot be written;
/// [`ErrorKind::Interrupted`](crate::error::ErrorKind) when it was cancelled.
pub fn compact(archive: &Path, keep: usize, control: &Control) -> Result<Option<Seal>> {
    let stage = Stage::begin(control, "pack");
    let pack = archive::compact(archive, keep, &control.stop)?;
    stage.finish();
    Ok(pack)
}
