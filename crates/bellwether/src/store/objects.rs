//! The basic operations on a store, each bounded, cancellable, and certain of its outcome.

use std::fs::{self, File};
use std::os::unix::fs::OpenOptionsExt;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, Instant};

use bytes::Bytes;
use chrono::{DateTime, Utc};
use futures_util::TryStreamExt;
use futures_util::stream::BoxStream;
use object_store::path::Path as Key;
use object_store::{
    Error as Fault, GetOptions, ObjectMeta, ObjectStore, ObjectStoreExt, PutMode, PutPayload, UpdateVersion,
};
use tokio::sync::Semaphore;

use super::fault::{Explained, FaultVerdict, is_broken, is_refusal, is_temporary, is_untagged, reason};
use super::list::{Listed, SkippedKeys};
use super::open::{self, Access, Opened};
use crate::disk::links::{self, NOFOLLOW};
use crate::error::{Error, ErrorKind, Reason, Result};
use crate::net::connection::check_pace;
use crate::plan::{StoreKind, StoreUrl};
use crate::process::cancel::CancellationToken;
use crate::time::random;

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
        let Opened { objects, listed, prefix } = open::open(url, access, &skipped, stop)?;
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
    pub(super) fn unconditional(&self, reason: impl Into<Reason>) -> Error {
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
            Some(FaultVerdict::Credentials) => open::failure(&self.url, reason),
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
                _ => open::CHECK_CREDENTIALS,
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
    pub(super) async fn put_if(&self, at: &str, bytes: Bytes, known: Option<&ObjectContent>) -> Result<(), Fault> {
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
        let _lock = FolderLock::take(folder).await?;
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

/// The lock for replacing files of a `file:///` store.
struct FolderLock(#[expect(dead_code, reason = "the lock is released with the file")] File);

impl FolderLock {
    const NAME: &str = ".lock";

    async fn take(folder: PathBuf) -> Result<Self, Fault> {
        let lock = move || {
            let mut options = fs::OpenOptions::new();
            options.create(true).truncate(false).write(true).custom_flags(NOFOLLOW);
            let file = options.open(folder.join(Self::NAME))?;
            file.lock()?;
            Ok(Self(file))
        };
        let locked: std::io::Result<Self> = tokio::task::spawn_blocking(lock)
            .await
            .unwrap_or_else(|_| Err(std::io::Error::other("a worker thread panicked")));
        locked.map_err(|source| Fault::Generic { store: "folder", source: source.into() })
    }
}

/// A limit, in the units in which it is set.
fn in_binary(bytes: u64) -> String {
    if bytes < 1 << 20 { format!("{} KiB", bytes >> 10) } else { format!("{} MiB", bytes >> 20) }
}
