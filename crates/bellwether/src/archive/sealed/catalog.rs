//! The catalog of an archive: its runs, and the folders that their rows are read from.
//!
//! A pack replaces its members: their rows are read from it, whether or not their own folders still exist.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};
use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::{Arc, LazyLock, Mutex, PoisonError};
use std::time::{Duration, SystemTime};

use chrono::{DateTime, Utc};

use super::folder::Folder;
use super::seal::{Horizon, Joined, SEAL, Seal};
use super::sealed_run::SealedRun;
use crate::archive::forgotten::{self, ForgottenRun};
use crate::archive::lineage::Lineage;
use crate::archive::no_archive;

use crate::disk::file::{self, FileError};
use crate::disk::links;
use crate::error::{Error, Result};
use crate::plan::{Claims, ServiceIdentity};
use crate::process::cancel::CancellationToken;

/// How often an archive is listed again because a folder was removed meanwhile.
const MOST_LOOKS: usize = 100;

/// The sealed runs of an archive at the time it was opened. Runs sealed later are not included.
#[derive(Clone, Debug)]
pub struct Archive {
    path: PathBuf,
    /// Ordered by when they were sealed.
    runs: Vec<SealedRun>,
    /// Every sealed folder.
    folders: Vec<Arc<Folder>>,
    /// The folders that rows are read from.
    read: Vec<Arc<Folder>>,
    /// Which run knew which.
    lineage: Arc<Lineage>,
    /// The runs that do not count, by name.
    forgotten: Arc<BTreeMap<String, ForgottenRun>>,
    /// The folder of the claims beside it; none if they are not read, or there are none.
    claims: Option<Arc<Path>>,
    /// Cancels reading it.
    stop: CancellationToken,
}

impl Archive {
    /// Opens an archive, without the runs that are forgotten. A folder without a seal is not a run.
    ///
    /// # Errors
    ///
    /// If the folder does not exist, if it, a seal or a note cannot be read, if a seal has another layout, or if a pack
    /// contradicts a run.
    pub fn open(path: &Path) -> Result<Self> {
        let whole = Self::open_whole(path)?;
        let forgotten = forgotten::forgotten_runs(forgotten::notes(path)?, BTreeMap::new(), whole.seals());
        Ok(whole.without_forgotten(forgotten))
    }

    /// The same, perhaps with the claims beside it, if there are any. A claim counts only from before the first run: so it adds
    /// what nobody witnessed, and never changes what somebody did.
    pub(in crate::archive) fn open_with(path: &Path, claims: Claims) -> Result<Self> {
        let folder = claims_of(path);
        if claims == Claims::LeftOut || file::is_gone(&folder) {
            return Self::open(path);
        }
        let claims = folder;
        let whole = Self::open_folders(path, Some(claims.clone()))?;
        let mut notes = forgotten::notes(path)?;
        notes.extend(forgotten::notes(&claims)?);
        let witnessed = whole.seals().filter(|seal| seal.claimed.is_none() && !notes.contains_key(&seal.run));
        let late: BTreeMap<String, DateTime<Utc>> = match witnessed.map(|seal| seal.started_at).min() {
            Some(first) => {
                let late = whole.seals().filter(|seal| seal.claimed.is_some() && seal.started_at >= first);
                late.map(|seal| (seal.run.clone(), first)).collect()
            }
            None => BTreeMap::new(),
        };
        let forgotten = forgotten::forgotten_runs(notes, late, whole.seals());
        Ok(whole.without_forgotten(forgotten))
    }

    /// Opens it again, as it is now.
    pub(in crate::archive) fn reopen(&self) -> Result<Self> {
        Self::open_with(&self.path, if self.claims.is_some() { Claims::Included } else { Claims::LeftOut })
    }

    /// Opens an archive as it is stored, with the runs that are forgotten.
    pub(in crate::archive) fn open_whole(path: &Path) -> Result<Self> {
        Self::open_folders(path, None)
    }

    fn open_folders(path: &Path, claims: Option<PathBuf>) -> Result<Self> {
        links::refuse(path)?;
        if claims.is_none() && file::is_gone(path) {
            return Err(no_archive(path));
        }
        let joined = claims.as_deref().map(joined_in);
        let sealed_in_all = || -> Result<Vec<Arc<Folder>>, ListingError> {
            let folders = [Some(path), claims.as_deref(), joined.as_deref()].into_iter().flatten();
            folders.map(sealed_in).collect::<Result<Vec<_>, _>>().map(|sealed| sealed.concat())
        };
        let mut looks = 0;
        let folders = loop {
            looks += 1;
            match sealed_in_all() {
                // A folder was pruned meanwhile. The pack that stands for it may be missing in this listing.
                Err(ListingError { vanished: true, .. }) if looks < MOST_LOOKS => {}
                Err(ListingError { error, .. }) => return Err(error),
                Ok(folders) => break folders,
            }
        };
        let read = cover(&folders);
        let runs = runs(&folders, &read)?;
        let lineage = Arc::new(Lineage::of(runs.iter().map(SealedRun::seal)));
        let (path, forgotten, stop) = (path.to_owned(), Arc::default(), CancellationToken::new());
        Ok(Self { path, runs, folders, read, lineage, forgotten, claims: claims.map(Arc::from), stop })
    }

    fn seals(&self) -> impl Iterator<Item = &Seal> + Clone {
        self.runs.iter().map(SealedRun::seal)
    }

    /// The same archive without the runs that do not count.
    fn without_forgotten(self, forgotten: BTreeMap<String, ForgottenRun>) -> Self {
        if forgotten.is_empty() {
            return self;
        }
        let counts = |run: &str| !forgotten.contains_key(run);
        let is_read = |folder: &&Arc<Folder>| {
            let seal = folder.seal();
            let has_any = seal.is_merge() || seal.runs().any(|run| counts(&run.run));
            has_any && seal.joins.iter().all(|joined| counts(&joined.run))
        };
        let of_others: Vec<Arc<Folder>> = self.folders.iter().filter(is_read).cloned().collect();
        let runs: Vec<SealedRun> = self.runs.into_iter().filter(|run| counts(run.name())).collect();
        let lineage = Arc::new(Lineage::of(runs.iter().map(SealedRun::seal)));
        Self { runs, read: cover(&of_others), lineage, forgotten: Arc::new(forgotten), ..self }
    }

    /// The runs that do not count, by name.
    pub fn forgotten_runs(&self) -> impl Iterator<Item = &ForgottenRun> {
        self.forgotten.values()
    }

    /// The runs that are in the archive or were forgotten, by name.
    pub(crate) fn known_names(&self) -> BTreeSet<&str> {
        self.runs.iter().map(SealedRun::name).chain(self.forgotten.keys().map(String::as_str)).collect()
    }

    /// The names of merges of runs that are forgotten, which are not read.
    pub(crate) fn left_out_merges(&self) -> impl Iterator<Item = String> {
        let is_forgotten = |run: &Joined| self.forgotten.contains_key(&run.run);
        let merges = self.folders.iter().map(|folder| folder.seal());
        merges.filter(move |seal| seal.joins.iter().any(is_forgotten)).map(Seal::folder_name)
    }

    /// The seals of its folders, whether or not their runs count.
    pub(crate) fn all_seals(&self) -> impl Iterator<Item = &Seal> {
        self.folders.iter().map(|folder| folder.seal())
    }

    /// The names of all runs in its folders, whether or not they count.
    pub(crate) fn names_in_folders(&self) -> BTreeSet<&str> {
        self.runs_in_folders().into_iter().map(|run| run.run.as_str()).collect()
    }

    /// The seals of all runs in its folders, whether or not they count, each once.
    pub(in crate::archive) fn runs_in_folders(&self) -> Vec<&Seal> {
        let runs: BTreeMap<&str, &Seal> =
            self.folders.iter().flat_map(|folder| folder.seal().runs()).map(|run| (run.run.as_str(), run)).collect();
        runs.into_values().collect()
    }

    /// The horizon of an instant: packs may hold rows of forgotten runs.
    pub(in crate::archive) fn horizon(&self, as_of: DateTime<Utc>) -> Horizon {
        let horizon = Horizon::at(as_of);
        if self.forgotten.is_empty() {
            return horizon;
        }
        let instants = self.forgotten.values().filter_map(|run| run.sealed_at);
        horizon.without(instants.map(|instant| instant.timestamp_micros()).collect())
    }

    /// Its folder.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// The folder of the claims that are read with it, if there are any.
    pub(crate) fn claims(&self) -> Option<&Path> {
        self.claims.as_deref()
    }

    /// The archives that it was read from, one for each folder with something sealed: without claims, itself.
    pub(crate) fn apart(&self) -> Result<Vec<Self>> {
        let Some(claims) = &self.claims else { return Ok(vec![self.clone()]) };
        let folders = [self.path.clone(), claims.to_path_buf(), self.merges()].into_iter();
        let folders = folders.filter(|folder| !file::is_gone(folder));
        folders.map(|folder| Ok(Self::open_whole(&folder)?.until(&self.stop))).collect()
    }

    /// Where merges are written: with claims, beside these, so that nobody reads them who does not read the claims.
    pub(in crate::archive) fn merges(&self) -> PathBuf {
        self.claims.as_deref().map_or_else(|| self.path.clone(), joined_in)
    }

    /// The folders in which there is something sealed.
    pub(crate) fn roots(&self) -> BTreeSet<&Path> {
        self.read.iter().filter_map(|folder| folder.path().parent()).collect()
    }

    /// The same archive, read until a token is cancelled: what reads it then fails as interrupted.
    pub fn until(self, stop: &CancellationToken) -> Self {
        let renewed: HashMap<*const Folder, Arc<Folder>> = self
            .folders
            .iter()
            .map(|folder| (Arc::as_ptr(folder), Arc::new(Folder::clone(folder).until(stop.clone()))))
            .collect();
        let renew = |folder: &Arc<Folder>| Arc::clone(&renewed[&Arc::as_ptr(folder)]);
        let renewed = |run: SealedRun| {
            let (folder, pack) = (renew(&run.folder), run.pack.as_ref().map(renew));
            SealedRun { folder, pack, ..run }
        };
        let runs = self.runs.into_iter().map(renewed).collect();
        let read = self.read.iter().map(renew).collect();
        let folders = self.folders.iter().map(renew).collect();
        Self { runs, folders, read, stop: stop.clone(), ..self }
    }

    /// The archive as if it had some of its runs alone, and the merges of these. Packs may hold others.
    pub(in crate::archive) fn of_runs(self, is_known: impl Fn(&str) -> bool) -> Self {
        let is_joined = |folder: &Arc<Folder>| folder.seal().joins.iter().all(|joined| is_known(&joined.run));
        let folders: Vec<Arc<Folder>> = self.folders.into_iter().filter(is_joined).collect();
        let runs: Vec<SealedRun> = self.runs.into_iter().filter(|run| is_known(run.name())).collect();
        let lineage = Arc::new(Lineage::of(runs.iter().map(SealedRun::seal)));
        Self { runs, read: cover(&folders), folders, lineage, ..self }
    }

    /// Which run knew which.
    pub(in crate::archive) fn lineage(&self) -> &Lineage {
        &self.lineage
    }

    /// The seals of a run and of all that it knew, by name; none if the archive has no such run.
    pub(crate) fn known_to(&self, run: &str) -> Option<Vec<&Seal>> {
        let index = self.runs.iter().position(|known| known.name() == run)?;
        let known = (0..self.runs.len()).filter(|other| self.lineage.knew(index, *other));
        let mut known: Vec<&Seal> = known.map(|index| self.runs[index].seal()).collect();
        known.sort_by(|one, other| one.run.cmp(&other.run));
        Some(known)
    }

    /// The indices of the runs whose histories have to be merged, unless they are merged.
    pub(in crate::archive) fn runs_to_merge(&self) -> BTreeSet<usize> {
        let runs = self.lineage.concurrent();
        let joins = |merge: &Seal| {
            let joined: HashSet<&str> = merge.joins.iter().map(|joined| joined.run.as_str()).collect();
            runs.iter().all(|run| joined.contains(self.runs[*run].name()))
        };
        // A merge of forgotten runs is not read.
        let is_merged = self.read.iter().flat_map(|folder| folder.seal().parts()).any(joins);
        if is_merged { BTreeSet::new() } else { runs }
    }

    /// Number of runs sealed by an instant that a run sealed after it did not know: they were brought in later.
    pub(crate) fn late_arrivals(&self, as_of: DateTime<Utc>) -> usize {
        let by_then = self.runs.partition_point(|run| run.seal.sealed_at <= as_of);
        let is_late = |run: &usize| (by_then..self.runs.len()).any(|later| !self.lineage.knew(later, *run));
        (0..by_then).filter(is_late).count()
    }

    /// Runs that other runs knew when they were settled, and that are not in the archive.
    pub(crate) fn missing(&self) -> impl Iterator<Item = &str> {
        self.lineage.missing().iter().map(String::as_str)
    }

    /// The token that cancels reading it.
    pub(crate) fn stop(&self) -> &CancellationToken {
        &self.stop
    }

    /// The text of a definition that was run, by its digest.
    pub fn definition_text(&self, digest: &str) -> Option<&str> {
        let definitions = self.runs.iter().filter_map(|run| run.seal().definition.as_ref());
        definitions.filter(|definition| definition.digest == digest).find_map(|definition| definition.text.as_deref())
    }

    /// The runs, in the order in which they were sealed.
    pub fn runs(&self) -> &[SealedRun] {
        &self.runs
    }

    /// Every sealed folder: runs and packs.
    pub(in crate::archive) fn folders(&self) -> &[Arc<Folder>] {
        &self.folders
    }

    /// The folders that rows are read from; together they hold every run. Where packs overlap, a run may be in two of
    /// them; repeated observations do not change what is known.
    pub(in crate::archive) fn read(&self) -> &[Arc<Folder>] {
        &self.read
    }

    /// Those of them that are runs and packs, not merges.
    pub(in crate::archive) fn read_runs(&self) -> impl Iterator<Item = &Arc<Folder>> {
        self.read.iter().filter(|folder| !folder.seal().is_merge())
    }

    /// Whether there is a sealed folder with a name.
    pub(crate) fn has_folder(&self, name: &str) -> bool {
        self.folders.iter().any(|folder| folder.path().file_name().is_some_and(|own| own == name))
    }

    /// Path and seal of every sealed folder that another machine needs: every run, and the packs and merges that are
    /// read.
    pub(crate) fn folders_to_share(&self) -> impl Iterator<Item = (&Path, &Seal)> {
        let is_read = |folder: &Arc<Folder>| self.read.iter().any(|read| Arc::ptr_eq(read, folder));
        let is_run = |seal: &Seal| !seal.is_pack() && !seal.is_merge();
        let is_needed = move |folder: &&Arc<Folder>| is_run(folder.seal()) || is_read(folder);
        self.folders.iter().filter(is_needed).map(|folder| (folder.path(), folder.seal()))
    }

    /// Folders whose runs are all in one of the packs being read, and merges that another one replaces.
    pub(in crate::archive) fn superseded_folders(&self) -> Vec<&Arc<Folder>> {
        let is_read = |folder: &Arc<Folder>| self.read.iter().any(|read| Arc::ptr_eq(read, folder));
        self.folders.iter().filter(|folder| !is_read(folder) && !self.is_left_out(folder)).collect()
    }

    /// Whether a folder is not read because its runs are forgotten, and no pack has them.
    fn is_left_out(&self, folder: &Folder) -> bool {
        let is_forgotten = |run: &str| self.forgotten.contains_key(run);
        let is_packed = |run: &str| {
            let packs = self.read.iter().filter(|read| read.seal().is_pack());
            packs.flat_map(|pack| pack.seal().runs()).any(|member| member.run == run)
        };
        let seal = folder.seal();
        match seal.is_merge() {
            true => seal.joins.iter().any(|joined| is_forgotten(&joined.run)),
            false => seal.runs().all(|run| is_forgotten(&run.run) && !is_packed(&run.run)),
        }
    }

    /// The first file that is missing or does not have the size in its seal.
    pub fn first_misfit(&self) -> Option<PathBuf> {
        let fits = |path: &Path, size: u64| path.symlink_metadata().is_ok_and(|it| it.is_file() && it.len() == size);
        let files = self.folders.iter().flat_map(|folder| folder.seal().files.iter().map(move |file| (folder, file)));
        let mut files = files.map(|(folder, file)| (folder.path().join(&file.name), file.bytes));
        files.find(|(path, size)| !fits(path, *size)).map(|(path, _)| path)
    }
}

/// A listing that failed.
struct ListingError {
    error: Error,
    /// Whether a folder was removed meanwhile.
    vanished: bool,
}

/// The sealed folders of an archive, by name.
fn sealed_in(archive: &Path) -> Result<Vec<Arc<Folder>>, ListingError> {
    let mut sealed = Vec::new();
    for path in file::entries(archive).map_err(|error| ListingError { error, vanished: false })? {
        let name = path.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
        if !["run=", "pack=", "merge="].iter().any(|kind| name.starts_with(kind)) {
            continue;
        }
        match sealed_folder(&path) {
            Ok(folder) => sealed.extend(folder.map(Arc::new)),
            Err(error) => return Err(ListingError { error, vanished: file::is_gone(&path) }),
        }
    }
    forget_removed(archive, &sealed);
    Ok(sealed)
}

/// A folder with its seal; `None` if it has none.
fn sealed_folder(path: &Path) -> Result<Option<Folder>> {
    let found = fs::symlink_metadata(path).map_err(FileError::read(path))?;
    if found.is_symlink() {
        return Err(FileError::damage(path, "it is a symbolic link, expected a folder"));
    }
    // A folder without a seal must still be there afterwards, or the seal went with it.
    if !found.is_dir() || file::is_gone(&path.join(SEAL)) {
        return fs::symlink_metadata(path).map(|_| None).map_err(FileError::read(path));
    }
    Ok(Some(Folder::new(path.to_owned(), read_seal(path)?)))
}

/// Every run with a folder of its own or in a pack.
fn runs(folders: &[Arc<Folder>], read: &[Arc<Folder>]) -> Result<Vec<SealedRun>> {
    let mut runs: BTreeMap<&str, SealedRun> = BTreeMap::new();
    let packs = read.iter().filter(|folder| folder.seal().is_pack());
    let members = packs.flat_map(|pack| pack.seal().runs().map(move |run| (run.run.as_str(), pack)));
    let packed: HashMap<&str, &Arc<Folder>> = members.collect();
    // Requests are read from a run's own folder if it has one.
    let (packs, alone): (Vec<_>, Vec<_>) = folders.iter().partition(|folder| folder.seal().is_pack());
    for folder in alone.into_iter().chain(packs) {
        for seal in folder.seal().runs() {
            match runs.get(seal.run.as_str()) {
                Some(known) if known.seal.seal == seal.seal => {}
                Some(known) => {
                    let reason =
                        format!("its record of run `{}` differs from that in `{}`", seal.run, known.path().display());
                    return Err(FileError::damage(&folder.path().join(SEAL), reason));
                }
                None => {
                    let pack = packed.get(seal.run.as_str()).map(|pack| Arc::clone(pack));
                    runs.insert(&seal.run, SealedRun { seal: seal.clone(), folder: Arc::clone(folder), pack });
                }
            }
        }
    }
    let mut runs: Vec<SealedRun> = runs.into_values().collect();
    runs.sort_by(|one, other| (one.seal.sealed_at, one.name()).cmp(&(other.seal.sealed_at, other.name())));
    Ok(runs)
}

/// The fewest folders that contain every run, the largest packs and folders for what they lack; and the merges that no
/// other one replaces.
fn cover(folders: &[Arc<Folder>]) -> Vec<Arc<Folder>> {
    let names =
        |folder: &Arc<Folder>| -> Vec<String> { folder.seal().parts().iter().map(|part| part.run.clone()).collect() };
    let is_replaced = |one: &Seal| folders.iter().any(|other| other.seal().replaces(one));
    let mut by_size: Vec<&Arc<Folder>> = folders.iter().filter(|folder| !is_replaced(folder.seal())).collect();
    by_size.sort_by_key(|folder| (Reverse(folder.seal().parts().len()), folder.path()));
    let mut covered: HashSet<String> = HashSet::new();
    let is_disjoint = |folder: &&Arc<Folder>| {
        let is_disjoint = names(folder).iter().all(|name| !covered.contains(name));
        if is_disjoint {
            covered.extend(names(folder));
        }
        is_disjoint
    };
    let (mut read, overlapping): (Vec<&Arc<Folder>>, Vec<_>) = by_size.into_iter().partition(is_disjoint);
    // Packs overlap if two machines packed at once. The smaller one is read as well if it alone holds a run.
    for folder in overlapping {
        if names(folder).iter().any(|name| !covered.contains(name)) {
            covered.extend(names(folder));
            read.push(folder);
        }
    }
    read.sort_by_key(|folder| (folder.seal().sealed_at, &folder.seal().run));
    read.into_iter().map(Arc::clone).collect()
}

/// A file that changed this recently may change again without looking different: clocks of file systems are coarse.
const JUST_NOW: Duration = Duration::from_secs(1);

/// What tells a file from another one at its path.
#[derive(Clone, Copy, PartialEq, Eq)]
struct Identity {
    file: (u64, u64),
    bytes: u64,
    modified: (i64, i64),
    changed: (i64, i64),
}

/// The seals that this process has read and checked, by folder. A sealed folder never changes, and a run opens its archive several
/// times, which may have hundreds of them. So a seal is read once, for as long as its file is the same one.
static SEALS: LazyLock<Mutex<HashMap<PathBuf, ReadSeal>>> = LazyLock::new(Mutex::default);

/// A seal, and the file that it was read from.
#[derive(Clone)]
struct ReadSeal {
    identity: Identity,
    seal: Arc<Seal>,
}

/// The seal of a folder.
fn read_seal(folder: &Path) -> Result<Arc<Seal>> {
    let path = folder.join(SEAL);
    let found = fs::symlink_metadata(&path).map_err(FileError::read(&path))?;
    let identity = Identity {
        file: (found.dev(), found.ino()),
        bytes: found.len(),
        modified: (found.mtime(), found.mtime_nsec()),
        changed: (found.ctime(), found.ctime_nsec()),
    };
    let known = SEALS.lock().unwrap_or_else(PoisonError::into_inner).get(folder).cloned();
    if let Some(known) = known.filter(|known| known.identity == identity) {
        return Ok(known.seal);
    }
    let seal = Arc::new(Seal::read(folder)?);
    let changed = Duration::new(found.ctime().unsigned_abs(), found.ctime_nsec().unsigned_abs() as u32);
    let since = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH + changed);
    if since.is_ok_and(|since| since > JUST_NOW) {
        let mut read = SEALS.lock().unwrap_or_else(PoisonError::into_inner);
        read.insert(folder.to_owned(), ReadSeal { identity, seal: Arc::clone(&seal) });
    }
    Ok(seal)
}

/// Forgets the seals of folders that are no longer in an archive.
fn forget_removed(archive: &Path, folders: &[Arc<Folder>]) {
    let present: HashSet<&Path> = folders.iter().map(|folder| folder.path()).collect();
    let mut read = SEALS.lock().unwrap_or_else(PoisonError::into_inner);
    read.retain(|path, _| path.parent() != Some(archive) || present.contains(path.as_path()));
}

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
