//! Opens the store at an address, with the credentials that the provider's own tools would use; the basic operations on it, each
//! bounded, cancellable, and certain of its outcome; and a probe that detects stores that do not honour conditional puts, before
//! anything depends on them.

use std::fs::{self, File};
use std::os::unix::fs::OpenOptionsExt;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, Instant};

use bytes::Bytes;
use chrono::{DateTime, Utc};
use futures_util::TryStreamExt;
use futures_util::stream::BoxStream;
use object_store::local::LocalFileSystem;
use object_store::path::Path as Key;
use object_store::{
    Error as Fault, GetOptions, ObjectMeta, ObjectStore, ObjectStoreExt, PutMode, PutPayload, UpdateVersion,
};
use tokio::sync::Semaphore;

use super::fault::{Explained, FaultVerdict, is_broken, is_full, is_refusal, is_temporary, is_untagged, reason};
use super::list::{Listed, SkippedKeys};
use crate::disk::links::{self, NOFOLLOW};
use crate::error::{Error, ErrorKind, Reason, Result};
use crate::net::connection::check_pace;
use crate::plan::{StoreKind, StoreUrl};
use crate::process::cancel::CancellationToken;
use crate::time::skew::Skew;
use crate::time::{Clock, random};

/// The most requests at once.
const CONCURRENT: usize = 8;

/// The most attempts of a put with an unknown outcome. The client below also retries each.
const ATTEMPTS: u32 = 4;

/// The largest object that is read into memory: a file of a version, or the seal of a pack.
pub(super) const MAX_BYTES: u64 = 64 << 20;

/// The longest silence in an answer, and the longest time to send a part of a file.
pub(super) const STALL: Duration = Duration::from_secs(120);

/// The content of an object, and the tag of this state.
#[derive(Clone, Debug)]
pub(super) struct ObjectContent {
    pub(super) bytes: Bytes,
    pub(super) changed: DateTime<Utc>,
    state: UpdateVersion,
}

/// A store.
#[derive(Clone, Debug)]
pub(crate) struct Store {
    pub(super) objects: Arc<dyn ObjectStore>,
    pub(super) listed: Listed,
    pub(super) skipped: SkippedKeys,
    pub(super) prefix: String,
    url: StoreUrl,
    free: Arc<Semaphore>,
    stop: CancellationToken,
}

impl Store {
    /// Opens the store at an address, until a token is cancelled. Nothing is sent to it yet. `warn` is told what is odd
    /// about it.
    pub(crate) fn open(
        url: &StoreUrl,
        access: Access,
        stop: &CancellationToken,
        warn: impl Fn(&str) + Send + Sync + 'static,
    ) -> Result<Self> {
        let skipped = SkippedKeys::new(warn);
        let Opened { objects, listed, prefix } = open_client(url, access, &skipped, stop)?;
        let free = Arc::new(Semaphore::new(CONCURRENT));
        Ok(Self { objects, listed, skipped, prefix, url: url.clone(), free, stop: stop.clone() })
    }

    /// A store of any client.
    #[cfg(all(feature = "cloud", feature = "harness"))]
    pub(crate) fn with_client<C: ObjectStore + object_store::list::PaginatedListStore>(
        client: Arc<C>,
        url: &StoreUrl,
        stop: &CancellationToken,
    ) -> Self {
        let (objects, listed) = (Arc::clone(&client) as Arc<dyn ObjectStore>, Listed::Pages(client));
        let (free, skipped) = (Arc::new(Semaphore::new(CONCURRENT)), SkippedKeys::new(|_| {}));
        Self { objects, listed, skipped, prefix: String::new(), url: url.clone(), free, stop: stop.clone() }
    }

    /// Its address.
    pub(crate) fn url(&self) -> &StoreUrl {
        &self.url
    }

    /// The address of an object or folder.
    pub(crate) fn address(&self, at: &str) -> String {
        format!("{}/{at}", self.url)
    }

    /// The key of an object. In a folder no link is on the way to it: each request asks for the key first.
    pub(super) fn key(&self, at: &str) -> Result<Key> {
        if let Some(folder) = self.url.folder()
            && links::refuse_below(&folder, &folder.join(at)).is_err()
        {
            return Err(self.damage(at, "it is, or is behind, a symbolic link, which is not followed"));
        }
        let key = if self.prefix.is_empty() { at.to_owned() } else { format!("{}/{at}", self.prefix) };
        Key::parse(key).map_err(|_| self.damage(at, "it is not the name of an object"))
    }

    /// The error for a damaged object or folder.
    pub(crate) fn damage(&self, at: &str, reason: impl Into<Reason>) -> Error {
        error(format!("`{at}` in `{}` is damaged", self.url), reason).as_kind(ErrorKind::Damaged).with_hint(
            "`bellwether verify --store --repair`, on a machine that has it, sends it again; `bellwether verify --store` \
             lists all damaged objects",
        )
    }

    /// The error for a folder of another machine with the same name.
    pub(super) fn conflict(&self, at: &str) -> Error {
        let what = format!("`{at}` in `{}` is already taken by another machine", self.url);
        Error::new(ErrorKind::Storage, what).with_hint(
            "`bellwether verify --store --repair`, on this machine, compares the two, and sends this one in the place of \
             what is damaged",
        )
    }

    /// The error for what may succeed later.
    pub(crate) fn later(&self, action: &str, at: &str, reason: impl Into<Reason>) -> Error {
        let error = error(format!("cannot {action} `{at}` in `{}` for now", self.url), reason);
        error.as_kind(ErrorKind::Temporary).with_hint("run the same command later to resume")
    }

    /// The error for a store that ignores the conditions of a put.
    fn unconditional(&self, reason: impl Into<Reason>) -> Error {
        error(format!("`{}` does not honour conditional puts", self.url), reason).with_hint(
            "use a store with conditional puts (`If-None-Match` and `If-Match`); without them, two machines could overwrite \
             each other's runs",
        )
    }

    /// The error for a failed request, with only the status and error code of the answer.
    pub(super) fn failure(&self, action: &str, at: &str, fault: &Fault) -> Error {
        let reason = reason(fault);
        match Explained::find(fault).map(|explained| &explained.verdict) {
            Some(FaultVerdict::Refusal) => {
                error(format!("refused the answer of `{}` to {action} `{at}`", self.url), reason)
                    .with_hint("check the address, and the endpoint in the environment or the profile")
            }
            Some(FaultVerdict::Credentials) => cannot_open(&self.url, reason),
            Some(FaultVerdict::Certificate { host }) => {
                error(format!("cannot verify the certificate of {host}"), reason)
                    .with_hint("if you or your proxy issued it, add the issuer's certificate with `SSL_CERT_FILE`")
            }
            _ if is_untagged(fault) => self.unconditional(reason),
            _ if matches!(fault, Fault::Generic { .. } | Fault::AlreadyExists { .. } | Fault::Precondition { .. })
                && is_temporary(fault) =>
            {
                self.later(action, at, reason)
            }
            _ => error(format!("`{}` refused to {action} `{at}`", self.url), reason).with_hint(match self.url.kind() {
                StoreKind::Folder => "check that you may write there, and that there is space left",
                _ => CHECK_CREDENTIALS,
            }),
        }
    }

    /// Waits for a free slot, then does some work, unless the token is cancelled.
    pub(super) async fn in_turn<T>(&self, work: impl Future<Output = T>) -> Result<T> {
        let work = async {
            let _turn = self.free.acquire().await;
            work.await
        };
        tokio::select! {
            biased;
            () = self.stop.cancelled() => Err(Error::interruption()),
            done = work => Ok(done),
        }
    }

    /// Reads, and retries answers that break off, which the client below does not always do.
    pub(super) async fn retry<T, F: Future<Output = Result<T, Fault>>>(
        &self,
        read: impl Fn() -> F,
    ) -> Result<Result<T, Fault>> {
        for attempt in 1.. {
            match self.in_turn(read()).await? {
                Err(fault) if attempt < ATTEMPTS && is_broken(&fault) => self.pause(attempt).await?,
                read => return Ok(read),
            }
        }
        unreachable!("attempts are counted from one")
    }

    /// The content of an object, which may have that many bytes; `None` if there is none.
    pub(super) async fn get(&self, at: &str, most: u64) -> Result<Option<ObjectContent>> {
        let key = self.key(at)?;
        let got = self.retry(|| async {
            let (meta, mut pieces) = ObjectPieces::open(&*self.objects, &key).await?;
            let state = UpdateVersion { e_tag: meta.e_tag, version: meta.version };
            if meta.size > most {
                return Ok(None);
            }
            let mut bytes = Vec::with_capacity(meta.size as usize);
            while let Some(piece) = pieces.next().await? {
                if bytes.len() as u64 + piece.len() as u64 > most {
                    return Ok(None);
                }
                bytes.extend_from_slice(&piece);
            }
            Ok(Some(ObjectContent { bytes: bytes.into(), changed: meta.last_modified, state }))
        });
        match got.await? {
            Ok(Some(content)) => Ok(Some(content)),
            Ok(None) => Err(self.damage(at, format!("it is larger than {}", in_binary(most)))),
            Err(Fault::NotFound { .. }) => Ok(None),
            Err(fault) => Err(self.failure("read", at, &fault)),
        }
    }

    /// Puts an object only if absent. Returns whether it is ours: from this put, or an earlier one of the same bytes.
    pub(super) async fn create(&self, at: &str, bytes: Bytes) -> Result<bool> {
        self.put(at, bytes, None).await
    }

    /// Replaces an object only if it is still in a state, and returns whether it did.
    pub(super) async fn replace(&self, at: &str, bytes: Bytes, known: &ObjectContent) -> Result<bool> {
        self.put(at, bytes, Some(known)).await
    }

    /// Puts an object only if it is in a state. The outcome is read back unless the answer leaves no doubt.
    async fn put(&self, at: &str, bytes: Bytes, known: Option<&ObjectContent>) -> Result<bool> {
        self.key(at)?;
        for attempt in 1.. {
            let fault = match self.in_turn(self.put_if(at, bytes.clone(), known)).await? {
                Ok(()) => return Ok(true),
                Err(fault) if is_refusal(&fault) => return Err(self.failure("write", at, &fault)),
                Err(fault) => fault,
            };
            let there = self.get(at, MAX_BYTES).await?;
            if there.as_ref().is_some_and(|there| there.bytes == bytes) {
                return Ok(true);
            }
            if there.map(|there| there.state) != known.map(|known| known.state.clone()) {
                return Ok(false);
            }
            if attempt == ATTEMPTS {
                return Err(self.later("write", at, reason(&fault)));
            }
            self.pause(attempt).await?;
        }
        unreachable!("attempts are counted from one")
    }

    /// Puts an object once, only if it is in a state: absent, if none is given.
    async fn put_if(&self, at: &str, bytes: Bytes, known: Option<&ObjectContent>) -> Result<(), Fault> {
        let unnamed = |error: Error| Fault::Generic { store: "store", source: error.into() };
        let key = self.key(at).map_err(unnamed)?;
        let payload = PutPayload::from_bytes(bytes);
        let (folder, known) = match (self.url.folder(), known) {
            (Some(folder), Some(known)) => (folder, known),
            (_, known) => {
                let mode = known.map_or(PutMode::Create, |known| PutMode::Update(known.state.clone()));
                return self.objects.put_opts(&key, payload, mode.into()).await.map(drop);
            }
        };
        // A file system has no conditional replacement, so writers take a lock.
        let _lock = lock_folder(folder).await?;
        let now = self.objects.head(&key).await?;
        if now.e_tag != known.state.e_tag {
            return Err(Fault::Precondition { path: at.to_owned(), source: "it was replaced".into() });
        }
        self.objects.put_opts(&key, payload, PutMode::Overwrite.into()).await.map(drop)
    }

    /// Waits before another attempt, longer each time, with jitter.
    pub(super) async fn pause(&self, attempt: u32) -> Result<()> {
        let longest = Duration::from_millis(100) * (1 << attempt.min(6));
        let share = (random() >> 11) as f64 / (1_u64 << 53) as f64;
        self.in_turn(tokio::time::sleep(longest.mul_f64(0.5 + share / 2.0))).await
    }
}

fn error(what: String, reason: impl Into<Reason>) -> Error {
    Error::new(ErrorKind::Storage, what).with_source(reason)
}

/// Marks a request whose answer is streamed to a reader that bounds its size.
#[derive(Clone, Copy, Debug)]
pub(super) struct Streamed;

/// The bytes of an object. Whoever reads them bounds their number.
pub(super) struct ObjectPieces {
    stream: BoxStream<'static, Result<Bytes, Fault>>,
    received: u64,
    waited: Duration,
}

impl ObjectPieces {
    /// Requests an object.
    pub(super) async fn open(objects: &dyn ObjectStore, key: &Key) -> Result<(ObjectMeta, Self), Fault> {
        let mut options = GetOptions::default();
        options.extensions.insert(Streamed);
        let got = objects.get_opts(key, options).await?;
        let meta = got.meta.clone();
        Ok((meta, Self { stream: got.into_stream(), received: 0, waited: Duration::ZERO }))
    }

    /// Waits for the next piece; `None` at the end.
    pub(super) async fn next(&mut self) -> Result<Option<Bytes>, Fault> {
        let begun = Instant::now();
        let piece = self.stream.try_next().await?;
        self.waited += begun.elapsed();
        if let Some(piece) = &piece {
            self.received += piece.len() as u64;
            let slow = |error: std::io::Error| Fault::Generic { store: "store", source: error.into() };
            check_pace(self.received, self.waited, STALL).map_err(slow)?;
        }
        Ok(piece)
    }
}

/// Locks a `file:///` store to replace a file, until the lock's file is closed.
async fn lock_folder(folder: PathBuf) -> Result<File, Fault> {
    let lock = move || {
        let mut options = fs::OpenOptions::new();
        options.create(true).truncate(false).write(true).custom_flags(NOFOLLOW);
        let file = options.open(folder.join(".lock"))?;
        file.lock()?;
        Ok(file)
    };
    let locked: std::io::Result<File> = tokio::task::spawn_blocking(lock)
        .await
        .unwrap_or_else(|_| Err(std::io::Error::other("a worker thread panicked")));
    locked.map_err(|source| Fault::Generic { store: "folder", source: source.into() })
}

/// A limit, in the units in which it is set.
fn in_binary(bytes: u64) -> String {
    if bytes < 1 << 20 { format!("{} KiB", bytes >> 10) } else { format!("{} MiB", bytes >> 20) }
}

/// The prefix of the keys of probes.
pub(super) const PROBE: &str = "datasets/.probe-";

impl Store {
    /// Tests that the store refuses to create an object that exists, and to replace one that has changed since it was read.
    /// Returns how far its clock is from this machine's.
    pub(crate) async fn probe(&self) -> Result<Skew> {
        let at = format!("{PROBE}{:016x}", random());
        let tested = self.test(&at).await;
        // A probe that is left behind is cleared after a day.
        let _ = self.in_turn(self.objects.delete(&self.key(&at)?)).await?;
        tested
    }

    async fn test(&self, at: &str) -> Result<Skew> {
        let [first, second, third, fourth] = [b"1", b"2", b"3", b"4"].map(|text| Bytes::from_static(text));
        let begun = Clock::System.now();
        if !self.create(at, first.clone()).await? {
            return Err(self.unconditional("an object that was just written has another content"));
        }
        let put = self.put_if(at, second, None);
        let overwrote = "it overwrote an object on condition that there is none";
        match self.in_turn(put).await? {
            Ok(_) => return Err(self.unconditional(overwrote)),
            Err(fault) if is_refusal(&fault) => return Err(self.failure("write", at, &fault)),
            Err(_) => {}
        }
        let known = match self.get(at, MAX_BYTES).await? {
            Some(content) if content.bytes == first => content,
            _ => return Err(self.unconditional(overwrote)),
        };
        let skew = Skew::between((begun, Clock::System.now()), known.changed);
        match self.in_turn(self.put_if(at, third.clone(), Some(&known))).await? {
            Ok(()) => {}
            Err(fault) if is_full(&fault) => return Err(self.failure("write", at, &fault)),
            Err(fault) if is_refusal(&fault) => {
                return Err(
                    self.unconditional(format!("it did not replace an object that is unchanged: {}", reason(&fault)))
                );
            }
            Err(_) if self.replace(at, third.clone(), &known).await? => {}
            Err(_) => return Err(self.unconditional("it did not replace an object that is unchanged")),
        }
        let put = self.in_turn(self.put_if(at, fourth, Some(&known))).await?;
        let now = self.get(at, MAX_BYTES).await?.map(|content| content.bytes);
        match put.is_err() && now == Some(third) {
            true => Ok(skew),
            false => Err(self.unconditional("it replaced an object on condition that it is unchanged, and it was not")),
        }
    }
}

/// What a store is opened for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Access {
    /// To read what is in it. A folder must exist.
    Read,
    /// To write to it too. A folder is created.
    Write,
}

/// An open store, how it is listed, and the prefix of its keys.
pub(super) struct Opened {
    pub(super) objects: Arc<dyn ObjectStore>,
    pub(super) listed: Listed,
    pub(super) prefix: String,
}

/// Opens a store. Nothing is sent to it yet.
#[cfg_attr(not(feature = "aws"), expect(unused_variables, reason = "only S3 needs all of them"))]
fn open_client(url: &StoreUrl, access: Access, skipped: &SkippedKeys, stop: &CancellationToken) -> Result<Opened> {
    match url.kind() {
        StoreKind::Folder => folder(url, access),
        #[cfg(feature = "aws")]
        StoreKind::S3 => super::cloud::s3(url, skipped, stop),
        #[cfg(feature = "gcp")]
        StoreKind::Google => super::cloud::google(url, skipped),
        #[cfg(feature = "azure")]
        StoreKind::Azure => super::cloud::azure(url, skipped),
        #[cfg(not(feature = "aws"))]
        StoreKind::S3 => Err(missing(url, "aws")),
        #[cfg(not(feature = "gcp"))]
        StoreKind::Google => Err(missing(url, "gcp")),
        #[cfg(not(feature = "azure"))]
        StoreKind::Azure => Err(missing(url, "azure")),
    }
}

/// The error for a store that cannot be opened: its credentials or settings are missing or invalid.
pub(super) fn cannot_open(url: &StoreUrl, reason: impl Into<Reason>) -> Error {
    let hint = match url.kind() {
        StoreKind::Folder => "check the path; the folder that it is in must exist, and you must be able to write there",
        _ => CHECK_CREDENTIALS,
    };
    Error::new(ErrorKind::Storage, format!("cannot open the store `{url}`")).with_hint(hint).with_source(reason)
}

/// What to do about a bucket that cannot be opened, or refuses an operation.
const CHECK_CREDENTIALS: &str =
    "check the address, and the credentials in the environment, the profile or the instance";

#[cfg(not(all(feature = "aws", feature = "gcp", feature = "azure")))]
fn missing(url: &StoreUrl, feature: &str) -> Error {
    Error::usage(format!("this build cannot use `{url}`"), format!("install bellwether with `--features {feature}`"))
}

fn folder(url: &StoreUrl, access: Access) -> Result<Opened> {
    let folder = url.folder().ok_or_else(|| cannot_open(url, "it is not the path of a folder"))?;
    // The parent is not created: it may be a mount point without its file system.
    match fs::metadata(&folder) {
        Ok(found) if found.is_dir() => {}
        Ok(_) => return Err(cannot_open(url, "it is not a folder")),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound && access == Access::Write => {
            fs::create_dir(&folder).map_err(|error| cannot_open(url, error.to_string()))?;
        }
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => {
            return Err(Error::new(ErrorKind::Storage, format!("the store `{url}` does not exist"))
                .with_hint("check the address; `bellwether run` and `bellwether store push` create the folder"));
        }
        Err(error) => return Err(cannot_open(url, error.to_string())),
    }
    let objects = LocalFileSystem::new_with_prefix(&folder).map_err(|_| cannot_open(url, "it is not a folder"))?;
    let objects = objects.with_fsync(true).with_automatic_cleanup(true);
    Ok(Opened { objects: Arc::new(objects), listed: Listed::Folder(folder), prefix: String::new() })
}
