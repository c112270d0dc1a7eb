//! Opens the store at an address, with the credentials that the provider's own tools would use; the basic operations on it, each
//! bounded, cancellable, and certain of its outcome; and a probe that detects stores that do not honour conditional puts, before
//! anything depends on them.

use std::fmt;
use std::fs::{self, File};
use std::io;
use std::os::unix::fs::OpenOptionsExt;
use std::sync::Arc;
use std::time::{Duration, Instant};

use bytes::Bytes;
use chrono::{DateTime, Utc};
use futures_util::TryStreamExt;
use futures_util::stream::BoxStream;
#[cfg(feature = "cloud")]
use object_store::list::{PaginatedListOptions, PaginatedListStore};
use object_store::local::LocalFileSystem;
use object_store::path::Path as Key;
use object_store::{GetOptions, ObjectMeta, ObjectStore, ObjectStoreExt, PutMode, PutPayload, UpdateVersion};
use tokio::sync::Semaphore;
use tokio::task::spawn_blocking;

#[cfg(feature = "cloud")]
use super::contents::Object;
use super::contents::{Listing, SkippedKeys, walk};
use super::fault::{Failure, Verdict};
use crate::disk::links::{self, NOFOLLOW};
use crate::error::{Error, ErrorKind, Reason, Result};
use crate::net::connection::check_pace;
use crate::plan::{StoreKind, StoreUrl};
use crate::run::observer::Control;
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

/// The prefix of the keys of probes.
pub(super) const PROBE: &str = "datasets/.probe-";

/// What to do about a bucket that cannot be opened, or refuses an operation.
const CHECK_CREDENTIALS: &str =
    "check the address, and the credentials in the environment, the profile or the instance";

/// What a store is opened for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StoreAccess {
    /// To read what is in it. A folder must exist.
    Read,
    /// To write to it too. A folder is created.
    Write,
}

/// The content of an object, and the tag of this state.
#[derive(Clone, Debug)]
pub(super) struct ObjectContent {
    pub(super) bytes: Bytes,
    pub(super) changed: DateTime<Utc>,
    state: UpdateVersion,
}

/// The client of a store, and the prefix of its keys.
#[derive(Clone)]
pub(super) struct Client {
    pub(super) objects: Arc<dyn ObjectStore>,
    /// Lists a bucket, page by page; none for a folder.
    #[cfg(feature = "cloud")]
    pub(super) pages: Option<Arc<dyn PaginatedListStore>>,
    pub(super) prefix: String,
}

/// A store.
#[derive(Clone)]
pub(crate) struct Store {
    pub(super) client: Client,
    skipped: SkippedKeys,
    url: StoreUrl,
    free: Arc<Semaphore>,
    control: Control,
}

impl fmt::Debug for Store {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_struct("Store").field("url", &self.url).finish_non_exhaustive()
    }
}

impl Store {
    /// Opens the store at an address. Nothing is sent to it yet.
    pub(crate) fn open(url: &StoreUrl, access: StoreAccess, control: &Control) -> Result<Self> {
        let skipped = SkippedKeys::default();
        let client = match url.kind() {
            StoreKind::Folder => open_folder(url, access)?,
            #[cfg(feature = "aws")]
            StoreKind::S3 => super::cloud::s3(url, &skipped, &control.stop)?,
            #[cfg(feature = "gcp")]
            StoreKind::Google => super::cloud::google(url, &skipped)?,
            #[cfg(feature = "azure")]
            StoreKind::Azure => super::cloud::azure(url, &skipped)?,
            #[cfg(not(all(feature = "aws", feature = "gcp", feature = "azure")))]
            _ => {
                let hint = "install bellwether with `--features aws,gcp,azure`";
                return Err(Error::usage(format!("this build cannot use `{url}`"), hint));
            }
        };
        Ok(Self::new(client, url, skipped, control))
    }

    /// A store of any client.
    pub(super) fn new(client: Client, url: &StoreUrl, skipped: SkippedKeys, control: &Control) -> Self {
        let free = Arc::new(Semaphore::new(CONCURRENT));
        Self { client, skipped, url: url.clone(), free, control: control.clone() }
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
        let prefix = &self.client.prefix;
        let key = if prefix.is_empty() { at.to_owned() } else { format!("{prefix}/{at}") };
        Key::parse(key).map_err(|_| self.damage(at, "it is not the name of an object"))
    }

    /// The error for a damaged object or folder.
    pub(crate) fn damage(&self, at: &str, reason: impl Into<Reason>) -> Error {
        let error = Error::new(ErrorKind::Damaged, format!("`{at}` in `{}` is damaged", self.url)).with_source(reason);
        error.with_hint(
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
        let what = format!("cannot {action} `{at}` in `{}` for now", self.url);
        Error::new(ErrorKind::Temporary, what).with_source(reason).with_hint("run the same command later to resume")
    }

    /// The error for a store that ignores the conditions of a put.
    fn unconditional(&self, reason: impl Into<Reason>) -> Error {
        let what = format!("`{}` does not honour conditional puts", self.url);
        Error::new(ErrorKind::Storage, what).with_source(reason).with_hint(
            "use a store with conditional puts (`If-None-Match` and `If-Match`); without them, two machines could overwrite \
             each other's runs",
        )
    }

    /// The error for a failed request.
    pub(super) fn failure(&self, action: &str, at: &str, failure: impl Into<Failure>) -> Error {
        let (Failure { verdict, reason }, url) = (failure.into(), &self.url);
        let (what, hint) = match verdict {
            Verdict::Temporary | Verdict::Broken => return self.later(action, at, reason),
            Verdict::Untagged => return self.unconditional(reason),
            Verdict::Credentials => return cannot_open(url, reason),
            Verdict::Certificate(host) => (
                format!("cannot verify the certificate of {host}"),
                "if you or your proxy issued it, add the issuer's certificate with `SSL_CERT_FILE`",
            ),
            Verdict::Refused => (
                format!("refused the answer of `{url}` to {action} `{at}`"),
                "check the address, and the endpoint in the environment or the profile",
            ),
            Verdict::Missing | Verdict::Denied | Verdict::Full => (
                format!("`{url}` refused to {action} `{at}`"),
                match url.kind() {
                    StoreKind::Folder => "check that you may write there, and that there is space left",
                    _ => CHECK_CREDENTIALS,
                },
            ),
        };
        Error::new(ErrorKind::Storage, what).with_source(reason).with_hint(hint)
    }

    /// Waits for a free slot, then does some work, unless it is cancelled.
    pub(super) async fn in_turn<T>(&self, work: impl Future<Output = T>) -> Result<T> {
        let work = async {
            let _turn = self.free.acquire().await;
            work.await
        };
        self.control.stop.run_until_cancelled(work).await.ok_or_else(Error::interruption)
    }

    /// Reads, and retries answers that break off, which the client below does not always do.
    async fn retry<T, F: Future<Output = Result<T, Failure>>>(
        &self,
        read: impl Fn() -> F,
    ) -> Result<Result<T, Failure>> {
        for attempt in 1.. {
            match self.in_turn(read()).await? {
                Err(failure) if attempt < ATTEMPTS && failure.verdict == Verdict::Broken => {
                    self.pause(attempt).await?;
                }
                read => return Ok(read),
            }
        }
        unreachable!("attempts are counted from one")
    }

    /// Waits before another attempt, longer each time, with jitter.
    pub(super) async fn pause(&self, attempt: u32) -> Result<()> {
        let longest = Duration::from_millis(100) * (1 << attempt.min(6));
        let share = (random() >> 11) as f64 / (1_u64 << 53) as f64;
        self.in_turn(tokio::time::sleep(longest.mul_f64(0.5 + share / 2.0))).await
    }

    /// The objects below a folder.
    pub(crate) async fn list(&self, at: &str) -> Result<Listing> {
        let listing = match self.url.folder() {
            Some(folder) => {
                let (below, skipped) = (at.to_owned(), self.skipped.clone());
                let walked = self.in_turn(spawn_blocking(move || walk(&folder, &below, &skipped))).await?;
                walked.map_err(Error::worker)?.map_err(|failure| self.failure("list", at, failure))
            }
            #[cfg(feature = "cloud")]
            None => self.list_pages(at).await,
            #[cfg(not(feature = "cloud"))]
            None => unreachable!("other stores cannot be opened"),
        };
        self.control.warn(self.skipped.warning(&self.url).as_slice());
        listing
    }

    /// The pages of a listing, one after the other. Their number is bounded, and none may come twice: a store that repeats
    /// itself would never end.
    #[cfg(feature = "cloud")]
    async fn list_pages(&self, at: &str) -> Result<Listing> {
        let failed = |failure: Failure| self.failure("list", at, failure);
        let pages = self.client.pages.as_deref().expect("it is no folder");
        let (root, below) = (&*self.client.prefix, format!("{}/", self.key(at)?));
        let object = |meta: ObjectMeta| {
            let key = meta.location.as_ref().strip_prefix(root).unwrap_or_default().trim_start_matches('/');
            (key.to_owned(), Object { bytes: meta.size, changed: meta.last_modified })
        };
        let (mut listing, mut seen, mut page_token) = (Listing::default(), std::collections::HashSet::new(), None);
        loop {
            let options = PaginatedListOptions { page_token, ..Default::default() };
            let read = || async { Ok(pages.list_paginated(Some(&below), options.clone()).await?) };
            let page = self.retry(read).await?.map_err(failed)?;
            listing.0.extend(page.result.objects.into_iter().map(object));
            page_token = page.page_token.filter(|token| !token.is_empty());
            let Some(next) = &page_token else { return Ok(listing) };
            if !seen.insert(next.clone()) || seen.len() > 1 << 16 {
                let reason = "its listing repeats a page, or has tens of thousands";
                return Err(failed(Failure::new(Verdict::Refused, reason)));
            }
            listing.check().map_err(failed)?;
        }
    }

    /// The content of an object, which may have that many bytes; `None` if there is none.
    pub(super) async fn get(&self, at: &str, most: u64) -> Result<Option<ObjectContent>> {
        let key = self.key(at)?;
        let read = || async {
            let (meta, mut pieces) = ObjectPieces::open(&*self.client.objects, &key).await?;
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
            let state = UpdateVersion { e_tag: meta.e_tag, version: meta.version };
            Ok(Some(ObjectContent { bytes: bytes.into(), changed: meta.last_modified, state }))
        };
        match self.retry(read).await? {
            Ok(Some(content)) => Ok(Some(content)),
            Ok(None) if most < 1 << 20 => Err(self.damage(at, format!("it is larger than {} KiB", most >> 10))),
            Ok(None) => Err(self.damage(at, format!("it is larger than {} MiB", most >> 20))),
            Err(failure) if failure.verdict == Verdict::Missing => Ok(None),
            Err(failure) => Err(self.failure("read", at, failure)),
        }
    }

    /// Puts an object only if it is in a state: absent, if none is given. Returns whether it is ours: from this put, or an
    /// earlier one of the same bytes. The outcome is read back unless the answer leaves no doubt.
    pub(super) async fn put(&self, at: &str, bytes: Bytes, known: Option<&ObjectContent>) -> Result<bool> {
        for attempt in 1.. {
            let failure = match self.put_once(at, bytes.clone(), known).await? {
                Ok(()) => return Ok(true),
                Err(failure) if !failure.is_temporary() => return Err(self.failure("write", at, failure)),
                Err(failure) => failure,
            };
            let there = self.get(at, MAX_BYTES).await?;
            if there.as_ref().is_some_and(|there| there.bytes == bytes) {
                return Ok(true);
            }
            if there.map(|there| there.state) != known.map(|known| known.state.clone()) {
                return Ok(false);
            }
            if attempt == ATTEMPTS {
                return Err(self.later("write", at, failure.reason));
            }
            self.pause(attempt).await?;
        }
        unreachable!("attempts are counted from one")
    }

    async fn put_once(&self, at: &str, bytes: Bytes, known: Option<&ObjectContent>) -> Result<Result<(), Failure>> {
        let (key, objects) = (self.key(at)?, &self.client.objects);
        let put = async {
            let mut mode = known.map_or(PutMode::Create, |known| PutMode::Update(known.state.clone()));
            let mut lock = None;
            if let (Some(folder), Some(known)) = (self.url.folder(), known) {
                // A file system has no conditional replacement, so writers take a lock, until its file is closed.
                let locked = spawn_blocking(move || {
                    let mut options = File::options();
                    options.create(true).truncate(false).write(true).custom_flags(NOFOLLOW);
                    let file = options.open(folder.join(".lock"))?;
                    file.lock().map(|()| file)
                });
                lock = Some(locked.await.unwrap_or_else(|panic| Err(io::Error::other(panic)))?);
                if objects.head(&key).await?.e_tag != known.state.e_tag {
                    return Err(Failure::new(Verdict::Temporary, "it was replaced"));
                }
                mode = PutMode::Overwrite;
            }
            objects.put_opts(&key, PutPayload::from_bytes(bytes), mode.into()).await?;
            drop(lock);
            Ok(())
        };
        self.in_turn(put).await
    }

    /// Deletes an object. It is not an error if there is none.
    pub(super) async fn delete(&self, at: &str) -> Result<()> {
        let key = self.key(at)?;
        match self.in_turn(self.client.objects.delete(&key)).await? {
            Ok(()) | Err(object_store::Error::NotFound { .. }) => Ok(()),
            Err(fault) => Err(self.failure("remove", at, fault)),
        }
    }

    /// The store's clock.
    pub(crate) async fn now(&self) -> Result<DateTime<Utc>> {
        let at = format!("{PROBE}{:016x}", random());
        self.put(&at, Bytes::from_static(b"clock"), None).await?;
        let content = self.get(&at, MAX_BYTES).await?;
        self.delete(&at).await?;
        content.map(|content| content.changed).ok_or_else(|| self.later("read", &at, "it was just written"))
    }

    /// Tests that the store refuses to create an object that exists, and to replace one that has changed since it was read.
    /// Returns how far its clock is from this machine's.
    pub(crate) async fn probe(&self) -> Result<Skew> {
        let at = format!("{PROBE}{:016x}", random());
        let tested = self.test(&at).await;
        // A probe that is left behind is cleared after a day.
        let _ = self.in_turn(self.client.objects.delete(&self.key(&at)?)).await?;
        tested
    }

    async fn test(&self, at: &str) -> Result<Skew> {
        let [first, second, third, fourth] = [b"1", b"2", b"3", b"4"].map(|text| Bytes::from_static(text));
        let begun = Clock::System.now();
        if !self.put(at, first.clone(), None).await? {
            return Err(self.unconditional("an object that was just written has another content"));
        }
        let overwrote = "it overwrote an object on condition that there is none";
        match self.put_once(at, second, None).await? {
            Ok(()) => return Err(self.unconditional(overwrote)),
            Err(failure) if !failure.is_temporary() => return Err(self.failure("write", at, failure)),
            Err(_) => {}
        }
        let known = self.get(at, MAX_BYTES).await?.filter(|content| content.bytes == first);
        let known = known.ok_or_else(|| self.unconditional(overwrote))?;
        let skew = Skew::between((begun, Clock::System.now()), known.changed);
        let refused = "it did not replace an object that is unchanged";
        match self.put_once(at, third.clone(), Some(&known)).await? {
            Err(failure) if failure.verdict == Verdict::Full => return Err(self.failure("write", at, failure)),
            Err(failure) if !failure.is_temporary() => {
                return Err(self.unconditional(format!("{refused}: {}", failure.reason)));
            }
            Err(_) if !self.put(at, third.clone(), Some(&known)).await? => return Err(self.unconditional(refused)),
            _ => {}
        }
        let put = self.put_once(at, fourth, Some(&known)).await?;
        let now = self.get(at, MAX_BYTES).await?.map(|content| content.bytes);
        match put.is_err() && now == Some(third) {
            true => Ok(skew),
            false => Err(self.unconditional("it replaced an object on condition that it is unchanged, and it was not")),
        }
    }
}

/// Marks a request whose answer is streamed to a reader that bounds its size.
#[derive(Clone, Copy, Debug)]
pub(super) struct Streamed;

/// The bytes of an object. Whoever reads them bounds their number.
pub(super) struct ObjectPieces {
    stream: BoxStream<'static, object_store::Result<Bytes>>,
    received: u64,
    waited: Duration,
}

impl ObjectPieces {
    /// Requests an object.
    pub(super) async fn open(objects: &dyn ObjectStore, key: &Key) -> Result<(ObjectMeta, Self), Failure> {
        let mut options = GetOptions::default();
        options.extensions.insert(Streamed);
        let got = objects.get_opts(key, options).await?;
        let meta = got.meta.clone();
        Ok((meta, Self { stream: got.into_stream(), received: 0, waited: Duration::ZERO }))
    }

    /// Waits for the next piece; `None` at the end.
    pub(super) async fn next(&mut self) -> Result<Option<Bytes>, Failure> {
        let begun = Instant::now();
        let piece = self.stream.try_next().await?;
        self.waited += begun.elapsed();
        self.received += piece.as_ref().map_or(0, Bytes::len) as u64;
        if piece.is_some() {
            check_pace(self.received, self.waited, STALL)?;
        }
        Ok(piece)
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

fn open_folder(url: &StoreUrl, access: StoreAccess) -> Result<Client> {
    let folder = url.folder().ok_or_else(|| cannot_open(url, "it is not the path of a folder"))?;
    // The parent is not created: it may be a mount point without its file system.
    let opened = match fs::metadata(&folder) {
        Ok(found) if !found.is_dir() => return Err(cannot_open(url, "it is not a folder")),
        Err(error) if error.kind() == io::ErrorKind::NotFound && access == StoreAccess::Read => {
            return Err(Error::new(ErrorKind::Storage, format!("the store `{url}` does not exist"))
                .with_hint("check the address; `bellwether run` and `bellwether store push` create the folder"));
        }
        Err(error) if error.kind() == io::ErrorKind::NotFound => fs::create_dir(&folder),
        found => found.map(drop),
    };
    opened.map_err(|error| cannot_open(url, error.to_string()))?;
    let objects = LocalFileSystem::new_with_prefix(&folder).map_err(|_| cannot_open(url, "it is not a folder"))?;
    let objects = Arc::new(objects.with_fsync(true).with_automatic_cleanup(true));
    Ok(Client {
        objects,
        #[cfg(feature = "cloud")]
        pages: None,
        prefix: String::new(),
    })
}
