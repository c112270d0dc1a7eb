//! The room that files take on disk. A file with several names is counted once.

use std::collections::HashMap;
use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::Path;

use crate::disk::file;

/// Folders are followed this deep; ours have at most five levels.
const DEEPEST: usize = 8;

/// Files by device and number.
#[derive(Debug, Default)]
pub struct Footprint(HashMap<(u64, u64), LinkedFile>);

/// A file that was met under some of its names.
#[derive(Debug)]
struct LinkedFile {
    bytes: u64,
    met: u64,
    all: u64,
}

impl Footprint {
    /// Of a file, or of the files in a folder.
    pub fn of(path: &Path) -> Self {
        let mut footprint = Self::default();
        footprint.add(path);
        footprint
    }

    /// Adds a file, or the files in a folder. Links are not followed, and unreadable entries are left out.
    pub fn add(&mut self, path: &Path) {
        self.walk(path, DEEPEST);
    }

    /// The size of the files.
    pub fn bytes(&self) -> u64 {
        self.0.values().map(|file| file.bytes).sum()
    }

    /// The size of the files without other names, which removing them frees.
    pub fn freed_bytes(&self) -> u64 {
        self.0.values().filter(|file| file.met >= file.all).map(|file| file.bytes).sum()
    }

    fn walk(&mut self, path: &Path, depth: usize) {
        let Ok(found) = fs::symlink_metadata(path) else { return };
        if found.is_file() {
            let new = LinkedFile { bytes: found.len(), met: 0, all: found.nlink() };
            self.0.entry((found.dev(), found.ino())).or_insert(new).met += 1;
        } else if found.is_dir() && depth > 0 {
            file::entries(path).unwrap_or_default().iter().for_each(|path| self.walk(path, depth - 1));
        }
    }
}

/// The nearest folder of a path that exists: the path itself, or what it would be created in.
pub(crate) fn nearest(path: &Path) -> &Path {
    let all = path.ancestors().filter(|folder| !folder.as_os_str().is_empty());
    all.into_iter().find(|folder| folder.symlink_metadata().is_ok()).unwrap_or(Path::new("."))
}

/// The free space of the disk that a path is on, or would be; `None` if the system does not report it.
pub fn free_space(path: &Path) -> Option<u64> {
    let found = rustix::fs::statvfs(nearest(path)).ok()?;
    Some(found.f_bavail.saturating_mul(found.f_frsize))
}

/// The size of a file, or of the files in a folder.
pub fn size(path: &Path) -> u64 {
    Footprint::of(path).bytes()
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::fs::symlink;

    use tempfile::tempdir;

    use super::{Footprint, size};

    #[test]
    fn a_file_with_two_names_takes_room_once_and_is_freed_with_its_last_name() {
        let place = tempdir().unwrap();
        let [one, two] = ["one", "two"].map(|name| place.path().join(name));
        [&one, &two].into_iter().for_each(|folder| fs::create_dir(folder).unwrap());
        fs::write(one.join("shared"), [0; 100]).unwrap();
        fs::hard_link(one.join("shared"), two.join("shared")).unwrap();
        fs::write(two.join("own"), [0; 10]).unwrap();
        symlink(two.join("own"), one.join("link")).unwrap();
        assert_eq!((size(place.path()), size(&one), size(&two)), (110, 100, 110));
        let mut removed = Footprint::default();
        removed.add(&two);
        assert_eq!(removed.freed_bytes(), 10);
        removed.add(&one);
        assert_eq!(removed.freed_bytes(), 110);
        assert_eq!(size(&place.path().join("missing")), 0);
    }
}
