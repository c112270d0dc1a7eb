//! The basic operations on a store, each bounded, cancellable, and certain of its outcome.

use std::fs::{self, File};
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use chrono::{DateTime, Utc};
use futures_util::{StreamExt, TryStreamExt};
use object_store::path::Path as Key;
use object_store::{Error as Fault, ObjectStore, ObjectStoreExt, PutMode, PutPayload, UpdateVersion};
use tokio::sync::Semaphore;

use super::open::{Opened, open};
use super::{Result, StoreError};
use crate::cancel::CancellationToken;
use crate::error::{Error, Reason};
use crate::plan::StoreUrl;
use crate::time::random;

/// The most requests at once.
const CONCURRENT: usize = 8;

/// The most attempts of a put with an unknown outcome. The client below also retries each.
const ATTEMPTS: u32 = 4;

/// The most objects of a listing: a hundred years of daily runs take a third of it.
const MOST_OBJECTS: usize = 1 << 20;

/// The largest object that is read into memory.
const MOST_BYTES: u64 = 64 << 20;

/// An object of a listing.
#[derive(Clone, Debug)]
pub(crate) struct Object {
    /// Its key below the store's prefix.
    pub key: String,
    /// Its size.
    pub bytes: u64,
    /// When it was put, by the store's clock.
    pub changed: DateTime<Utc>,
}

/// The content of an object, and the tag of this state.
#[derive(Clone, Debug)]
pub(super) struct Content {
    pub(super) bytes: Bytes,
    pub(super) changed: DateTime<Utc>,
    state: UpdateVersion,
}

/// The outcome of a put only if absent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Created {
    /// The object is ours: from this put, or an earlier one of the same bytes.
    Ours,
    /// There is another object.
    Another,
}

/// A store.
#[derive(Clone, Debug)]
pub(crate) struct Store {
    pub(super) objects: Arc<dyn ObjectStore>,
    prefix: String,
    url: StoreUrl,
    free: Arc<Semaphore>,
    stop: CancellationToken,
}

impl Store {
    /// Opens the store at an address, until a token is cancelled. Nothing is sent to it yet.
    ///
    /// # Errors
    ///
    /// If this build has no client for it, or its settings are incomplete.
    pub(crate) fn open(url: &StoreUrl, stop: &CancellationToken) -> Result<Self> {
        let Opened { objects, prefix } = open(url)?;
        let free = Arc::new(Semaphore::new(CONCURRENT));
        Ok(Self { objects, prefix, url: url.clone(), free, stop: stop.clone() })
    }

    /// A store of any client.
    #[cfg(feature = "harness")]
    pub(crate) fn of(objects: Arc<dyn ObjectStore>, url: &StoreUrl, stop: &CancellationToken) -> Self {
        let free = Arc::new(Semaphore::new(CONCURRENT));
        Self { objects, prefix: String::new(), url: url.clone(), free, stop: stop.clone() }
    }

    /// Its address.
    pub(crate) fn url(&self) -> &StoreUrl {
        &self.url
    }

    /// The address of an object or folder.
    pub(crate) fn address(&self, at: &str) -> String {
        format!("{}/{at}", self.url)
    }

    pub(super) fn key(&self, at: &str) -> Result<Key> {
        let key = if self.prefix.is_empty() { at.to_owned() } else { format!("{}/{at}", self.prefix) };
        Key::parse(key).map_err(|_| self.damaged(at, "it is not the name of an object"))
    }

    /// The error for a damaged object or folder.
    pub(crate) fn damaged(&self, at: &str, reason: impl Into<Reason>) -> StoreError {
        StoreError::Damaged { url: self.url.to_string(), key: at.to_owned(), source: reason.into() }
    }

    pub(super) fn taken(&self, at: &str) -> StoreError {
        StoreError::Taken { url: self.url.to_string(), key: at.to_owned() }
    }

    pub(super) fn later(&self, action: &'static str, at: &str, reason: impl Into<Reason>) -> StoreError {
        StoreError::Later { url: self.url.to_string(), action, key: at.to_owned(), source: reason.into() }
    }

    /// The error for a failed request, with only the status and error code of the answer.
    pub(super) fn failed(&self, action: &'static str, at: &str, fault: &Fault) -> StoreError {
        let (url, key) = (self.url.to_string(), at.to_owned());
        let source: Reason = reason(fault).into();
        match fault {
            Fault::Generic { .. } | Fault::AlreadyExists { .. } | Fault::Precondition { .. } if is_temporary(fault) => {
                StoreError::Later { url, action, key, source }
            }
            _ => StoreError::Denied { url, action, key, source },
        }
    }

    /// Waits for a free slot, then does some work, unless the token is cancelled.
    ///
    /// # Errors
    ///
    /// [`Error::Interrupted`] once the token is cancelled.
    pub(super) async fn in_turn<T>(&self, work: impl Future<Output = T>) -> Result<T, Error> {
        let work = async {
            let _turn = self.free.acquire().await;
            work.await
        };
        tokio::select! {
            biased;
            () = self.stop.cancelled() => Err(Error::interrupted()),
            done = work => Ok(done),
        }
    }

    /// Reads, and retries answers that break off, which the client below does not always do.
    async fn retried<T, F: Future<Output = Result<T, Fault>>>(
        &self,
        read: impl Fn() -> F,
    ) -> Result<Result<T, Fault>, Error> {
        for attempt in 1.. {
            match self.in_turn(read()).await? {
                Err(fault) if attempt < ATTEMPTS && is_broken(&fault) => self.pause(attempt).await?,
                read => return Ok(read),
            }
        }
        unreachable!("attempts are counted from one")
    }

    /// The objects below a folder, in no particular order.
    pub(crate) async fn list(&self, at: &str) -> Result<Vec<Object>, Error> {
        let prefix = self.key(at)?;
        let below = if self.prefix.is_empty() { 0 } else { self.prefix.len() + 1 };
        let object = |meta: object_store::ObjectMeta| Object {
            key: meta.location.as_ref().get(below..).unwrap_or_default().to_owned(),
            bytes: meta.size,
            changed: meta.last_modified,
        };
        let listed = || self.objects.list(Some(&prefix)).take(MOST_OBJECTS + 1).map_ok(object).try_collect();
        let listed: Vec<Object> = self.retried(listed).await?.map_err(|fault| self.failed("list", at, &fault))?;
        match listed.len() > MOST_OBJECTS {
            true => Err(self.damaged(at, format!("it has more than {MOST_OBJECTS} objects")).into()),
            false => Ok(listed),
        }
    }

    /// The names of the folders in a folder.
    ///
    /// # Errors
    ///
    /// Any failure of a request.
    pub(crate) async fn names(&self, at: &str) -> Result<Vec<String>, Error> {
        let prefix = self.key(at)?;
        let listed = self.retried(|| self.objects.list_with_delimiter(Some(&prefix))).await?;
        let listed = listed.map_err(|fault| self.failed("list", at, &fault))?;
        let name = |key: &Key| key.filename().map(str::to_owned);
        Ok(listed.common_prefixes.iter().filter_map(name).collect())
    }

    /// The content of an object; `None` if there is none.
    pub(super) async fn get(&self, at: &str) -> Result<Option<Content>, Error> {
        let key = self.key(at)?;
        let got = self.retried(|| async {
            let got = self.objects.get(&key).await?;
            let state = UpdateVersion { e_tag: got.meta.e_tag.clone(), version: got.meta.version.clone() };
            let changed = got.meta.last_modified;
            if got.meta.size > MOST_BYTES {
                return Ok(None);
            }
            let mut bytes = Vec::with_capacity(got.meta.size as usize);
            let mut stream = got.into_stream();
            while let Some(piece) = stream.try_next().await? {
                if bytes.len() as u64 + piece.len() as u64 > MOST_BYTES {
                    return Ok(None);
                }
                bytes.extend_from_slice(&piece);
            }
            Ok(Some(Content { bytes: bytes.into(), changed, state }))
        });
        match got.await? {
            Ok(Some(content)) => Ok(Some(content)),
            Ok(None) => Err(self.damaged(at, "it is larger than 64 MiB").into()),
            Err(Fault::NotFound { .. }) => Ok(None),
            Err(fault) => Err(self.failed("read", at, &fault).into()),
        }
    }

    /// Puts an object only if absent. The outcome is read back unless the answer leaves no doubt.
    pub(super) async fn create(&self, at: &str, bytes: Bytes) -> Result<Created, Error> {
        let key = self.key(at)?;
        for attempt in 1.. {
            let put = self.objects.put_opts(&key, PutPayload::from_bytes(bytes.clone()), PutMode::Create.into());
            let fault = match self.in_turn(put).await? {
                Ok(_) => return Ok(Created::Ours),
                Err(fault) if is_refusal(&fault) => return Err(self.failed("write", at, &fault).into()),
                Err(fault) => fault,
            };
            match self.get(at).await? {
                Some(content) if content.bytes == bytes => return Ok(Created::Ours),
                Some(_) => return Ok(Created::Another),
                None if attempt < ATTEMPTS => self.pause(attempt).await?,
                None => return Err(self.later("write", at, reason(&fault)).into()),
            }
        }
        unreachable!("attempts are counted from one")
    }

    /// Replaces an object only if it is still in a state, and returns whether it did. The outcome is read back unless the answer
    /// leaves no doubt.
    pub(super) async fn replace(&self, at: &str, bytes: Bytes, known: &Content) -> Result<bool, Error> {
        for attempt in 1.. {
            let fault = match self.in_turn(self.put_if(at, bytes.clone(), known)).await? {
                Ok(()) => return Ok(true),
                Err(fault) if is_refusal(&fault) => return Err(self.failed("write", at, &fault).into()),
                Err(fault) => fault,
            };
            match self.get(at).await? {
                Some(content) if content.bytes == bytes => return Ok(true),
                Some(content) if content.state == known.state && attempt < ATTEMPTS => self.pause(attempt).await?,
                Some(content) if content.state == known.state => {
                    return Err(self.later("write", at, reason(&fault)).into());
                }
                _ => return Ok(false),
            }
        }
        unreachable!("attempts are counted from one")
    }

    /// Puts an object only if it is in a state.
    pub(super) async fn put_if(&self, at: &str, bytes: Bytes, known: &Content) -> Result<(), Fault> {
        let fault = |error: StoreError| Fault::Generic { store: "store", source: error.into() };
        let key = self.key(at).map_err(fault)?;
        let payload = PutPayload::from_bytes(bytes);
        let Some(folder) = self.url.folder() else {
            return self.objects.put_opts(&key, payload, PutMode::Update(known.state.clone()).into()).await.map(drop);
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
    pub(super) async fn pause(&self, attempt: u32) -> Result<(), Error> {
        let longest = Duration::from_millis(100) * (1 << attempt.min(6));
        let share = (random() >> 11) as f64 / (1_u64 << 53) as f64;
        self.in_turn(tokio::time::sleep(longest.mul_f64(0.5 + share / 2.0))).await
    }
}

/// The lock for replacing files of a `file:///` store.
struct FolderLock(#[expect(dead_code, reason = "the lock is released with the file")] File);

impl FolderLock {
    const NAME: &str = ".lock";

    async fn take(folder: PathBuf) -> Result<Self, Fault> {
        let lock = move || {
            let file = fs::OpenOptions::new().create(true).truncate(false).write(true).open(folder.join(Self::NAME))?;
            file.lock()?;
            Ok(Self(file))
        };
        let locked: std::io::Result<Self> = tokio::task::spawn_blocking(lock)
            .await
            .unwrap_or_else(|_| Err(std::io::Error::other("a worker thread panicked")));
        locked.map_err(|source| Fault::Generic { store: "folder", source: source.into() })
    }
}

/// Whether a request was refused for good.
pub(super) fn is_refusal(fault: &Fault) -> bool {
    match fault {
        Fault::PermissionDenied { .. }
        | Fault::Unauthenticated { .. }
        | Fault::NotImplemented { .. }
        | Fault::NotSupported { .. }
        | Fault::InvalidPath { .. }
        | Fault::UnknownConfigurationKey { .. }
        // There is no such bucket.
        | Fault::NotFound { .. } => true,
        // A store also answers 400 if a body arrives too slowly.
        _ => matches!(status(fault), Some(400..=407 | 410 | 411 | 413..=428)) && code(fault) != Some("RequestTimeout".to_owned()),
    }
}

/// Whether an answer broke off: it has no status, but the store can be reached.
fn is_broken(fault: &Fault) -> bool {
    matches!(fault, Fault::Generic { .. }) && status(fault).is_none() && is_temporary(fault)
}

/// Whether a retry may help.
fn is_temporary(fault: &Fault) -> bool {
    match status(fault) {
        Some(status) => matches!(status, 408 | 409 | 412 | 429 | 500..),
        None => std::iter::successors(std::error::Error::source(fault), |reason| reason.source())
            .all(|reason| !reason.is::<std::io::Error>() || is_network(reason)),
    }
}

fn is_network(reason: &(dyn std::error::Error + 'static)) -> bool {
    use std::io::ErrorKind as Kind;
    let kind = reason.downcast_ref::<std::io::Error>().map(std::io::Error::kind);
    !matches!(kind, Some(Kind::PermissionDenied | Kind::StorageFull | Kind::ReadOnlyFilesystem | Kind::Unsupported))
}

/// The HTTP status of a failure, which the crate only has in its text.
fn status(fault: &Fault) -> Option<u16> {
    let texts = std::iter::successors(std::error::Error::source(fault), |reason| reason.source());
    texts.map(ToString::to_string).find_map(|text| {
        let (_, rest) = text.split_once("status code: ")?;
        rest.get(..3)?.parse().ok()
    })
}

/// The error code of an answer.
fn code(fault: &Fault) -> Option<String> {
    let texts = std::iter::successors(std::error::Error::source(fault), |reason| reason.source());
    texts.map(ToString::to_string).find_map(|text| {
        let (code, _) = text.split_once("<Code>")?.1.split_once("</Code>")?;
        (code.len() <= 64 && code.bytes().all(|byte| byte.is_ascii_alphanumeric())).then(|| code.to_owned())
    })
}

/// Why an operation failed, in our own words: an answer may quote the request and its signature.
pub(super) fn reason(fault: &Fault) -> String {
    let mut reasons = std::iter::successors(std::error::Error::source(fault), |reason| reason.source());
    match (status(fault), code(fault), fault) {
        (Some(status), Some(code), _) => format!("status {status}: {code}"),
        (Some(status), None, _) => format!("status {status}"),
        (None, _, Fault::NotFound { .. }) => "it does not exist".to_owned(),
        (None, _, Fault::AlreadyExists { .. }) => "it exists".to_owned(),
        (None, _, Fault::Precondition { .. }) => "it was replaced".to_owned(),
        (None, _, Fault::NotImplemented { .. } | Fault::NotSupported { .. }) => "it is not supported".to_owned(),
        (None, ..) => match reasons.find_map(|reason| reason.downcast_ref::<std::io::Error>()) {
            Some(error) => std::io::Error::from(error.kind()).to_string(),
            None => network(fault).to_owned(),
        },
    }
}

#[cfg(feature = "cloud")]
fn network(fault: &Fault) -> &'static str {
    use object_store::client::{HttpError, HttpErrorKind};
    let mut reasons = std::iter::successors(std::error::Error::source(fault), |reason| reason.source());
    match reasons.find_map(|reason| reason.downcast_ref::<HttpError>()).map(HttpError::kind) {
        Some(HttpErrorKind::Connect) => "cannot connect",
        Some(HttpErrorKind::Timeout) => "it did not answer in time",
        Some(HttpErrorKind::Request | HttpErrorKind::Interrupted) => "the connection broke off",
        _ => "the request failed; check the address, the endpoint and the credentials",
    }
}

#[cfg(not(feature = "cloud"))]
fn network(_: &Fault) -> &'static str {
    "the request failed"
}
