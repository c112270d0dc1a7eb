//! Whether a definition may run commands, and use keys and stores.
//!
//! A definition can name a hook, a command or a file for the API key, a service that is sent the key, and a store that is
//! used with the user's credentials. Whoever can write the definition can do all that as the user who runs it. So, as git
//! and OpenSSH have it, its file, the folder that it is in and, if that is the `pipelines/` of a project, the project's
//! folder must belong to the user or to root, and nobody else may write to them. The sticky bit does not help: others can
//! still add a `pipelines/`. A group counts as others unless it is the user's own: the system's lists
//! name no other member, as where each user has a group of the same name. A link in their place counts as foreign: whoever
//! made it chose the target.
//!
//! A user who trusts more than that names the folder in [`VARIABLE`]. Definitions can be read, planned and built whoever
//! they belong to; what a caller of the library wrote is the caller's.

use std::env;
use std::fs;
use std::io::{self, Read};
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};

use crate::disk::file::{self, FileError};
use crate::disk::names::DEFINITIONS;
use crate::error::{Error, Result};

/// The environment variable that names folders whose definitions are trusted, as absolute paths separated by colons.
pub const VARIABLE: &str = "BELLWETHER_TRUST";

/// The permissions of a group and of others to write.
const WRITABLE: u32 = 0o022;

/// That of a group.
const BY_GROUP: u32 = 0o020;

/// The most that is read of the system's lists of users and groups.
const MAX_BYTES: u64 = 16 << 20;

/// Who wrote a definition.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Author {
    /// The caller: its text was never in a file.
    Caller,
    /// Whoever can write to its file.
    File,
}

/// Fails unless a definition may run commands, and use keys and stores.
pub fn require(author: Author, definition: &Path) -> Result<()> {
    if author == Author::Caller {
        return Ok(());
    }
    let read = FileError::read(definition);
    let absolute = std::path::absolute(definition).map_err(FileError::read(definition))?;
    let (Some(folder), Some(file)) = (absolute.parent(), absolute.file_name()) else {
        return Err(read(io::ErrorKind::NotFound.into()));
    };
    let project = folder.parent().filter(|_| folder.file_name().is_some_and(|name| name == DEFINITIONS));
    // The user may have come here by a link; from here on there is none.
    let root = project.unwrap_or(folder);
    let root = root.canonicalize().map_err(FileError::read(root))?;
    let folder = project.map_or_else(|| root.clone(), |_| root.join(DEFINITIONS));
    for path in [root.clone(), folder.clone(), folder.join(file)] {
        if let Some((doubt, remedy)) = doubt(&path)? {
            if is_listed(&root)? {
                return Ok(());
            }
            let definition = definition.display();
            let what = format!("`{definition}` is not trusted to run commands, nor to use keys and stores");
            let trust = format!("if you trust all who can write there, set `{VARIABLE}={}`", root.display());
            return Err(Error::usage(what, format!("{remedy} {trust}")).with_source(doubt));
        }
    }
    Ok(())
}

/// Why a file or folder is not trusted, and the beginning of a hint; `None` if it is.
fn doubt(path: &Path) -> Result<Option<(String, String)>> {
    let found = fs::symlink_metadata(path).map_err(FileError::read(path))?;
    let (path, owner, mut mode) = (path.display(), found.uid(), found.mode());
    if mode & BY_GROUP != 0 && is_alone_in(found.gid(), owner) {
        mode &= !BY_GROUP;
    }
    let (why, remedy) = if found.is_symlink() {
        (format!("`{path}` is a link"), "put a copy in its place; or,".to_owned())
    } else if !is_own(owner) {
        (format!("`{path}` belongs to another user, number {owner}"), "read the definition;".to_owned())
    } else if mode & WRITABLE != 0 {
        let who = if mode & 0o002 == 0 { "its group" } else { "everyone" };
        (format!("`{path}` can be written by {who}"), format!("run `chmod go-w {path}`; or,"))
    } else {
        return Ok(None);
    };
    Ok(Some((why, remedy)))
}

/// Whether a user is the only member of a group, as far as the files of the system tell; false if they do not.
fn is_alone_in(group: u32, user: u32) -> bool {
    let lines = |path: &str| {
        let text = file::open_regular(Path::new(path)).and_then(|file| io::read_to_string(file.take(MAX_BYTES)));
        let fields = |line: &str| line.split(':').map(str::to_owned).collect::<Vec<String>>();
        text.map(|text| text.lines().map(fields).collect::<Vec<_>>()).unwrap_or_default()
    };
    let is = |field: Option<&String>, number: u32| field.is_some_and(|field| *field == number.to_string());
    let users = lines("/etc/passwd");
    let of_user = users.iter().find(|fields| is(fields.get(2), user));
    let Some(name) = of_user.and_then(|fields| fields.first()) else { return false };
    let groups = lines("/etc/group");
    let mut named = groups.iter().filter(|fields| is(fields.get(2), group)).peekable();
    let is_known = named.peek().is_some();
    let has_no_other = |fields: &Vec<String>| {
        fields.get(3).is_none_or(|members| members.split(',').all(|member| member.is_empty() || member == name))
    };
    is_known
        && named.all(has_no_other)
        && users.iter().filter(|fields| is(fields.get(3), group)).all(|fields| is(fields.get(2), user))
}

/// Whether a user can do here what they like anyway: the user of this process, or root.
pub(crate) fn is_own(user: u32) -> bool {
    user == rustix::process::geteuid().as_raw() || user == 0
}

/// Whether the user trusts the definitions of a folder whoever they belong to.
pub(crate) fn is_listed(folder: &Path) -> Result<bool> {
    let Some(listed) = env::var_os(VARIABLE) else { return Ok(false) };
    let listed: Vec<PathBuf> = env::split_paths(&listed).filter(|path| !path.as_os_str().is_empty()).collect();
    if let Some(relative) = listed.iter().find(|path| path.is_relative()) {
        let what = format!("`{VARIABLE}` names `{}`, which is not an absolute path", relative.display());
        return Err(Error::usage(what, "name folders from `/` on, separated by colons"));
    }
    let folder = folder.canonicalize().map_err(FileError::read(folder))?;
    // A folder that does not exist on this machine is no mistake.
    Ok(listed.iter().any(|path| path.canonicalize().is_ok_and(|path| path == folder)))
}

/// Takes from everyone else the permission to write to a new file or folder.
pub fn restrict(path: &Path) -> Result<()> {
    let failed = FileError::write(path);
    let mut permissions = fs::symlink_metadata(path).map_err(FileError::read(path))?.permissions();
    permissions.set_mode(permissions.mode() & !WRITABLE);
    fs::set_permissions(path, permissions).map_err(failed)
}
