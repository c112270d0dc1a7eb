//! A response body as it arrives: from the network to a reader on another thread, decompressed, bounded, masked and
//! digested.

use std::fs::File;
use std::io::{self, BufRead, Read, Write};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use chrono::{DateTime, TimeDelta, Utc};
use reqwest::StatusCode;
use reqwest::header::{
    CONTENT_ENCODING, DATE, ETAG, HeaderName, HeaderValue, IF_MODIFIED_SINCE, IF_NONE_MATCH, LAST_MODIFIED, LINK,
};
use tokio::sync::mpsc;
use tokio::task::spawn_blocking;
use url::Url;

use super::chunks::{self, Chunks, read_ready};
use super::failure::{Failure, words_in};
use super::gauge::Gauge;
use super::unpack::{Masked, Unpacked};
use crate::disk::digest::{Digest, hex};
use crate::disk::file;
use crate::disk::links;
use crate::disk::remove;
use crate::error::{self, Error};
use crate::key::ApiKey;
use crate::time::{Clock, unique_name};

/// The largest decompressed body.
const MAX_BYTES: u64 = 32 << 30;
/// The largest compression ratio. Histories compress to a thirtieth, a bomb to a thousandth.
const MAX_GROWTH: u64 = 200;
/// Bodies smaller than this may have any ratio.
const GROWTH_FREE: u64 = 8 << 20;
/// How much of the beginning of a body is kept, in case it is no answer.
const MAX_BEGINNING: usize = 4 << 10;
/// How much of a malformed body is kept.
const MAX_EVIDENCE: u64 = 64 << 20;
/// The most pages of an answer.
const MAX_PAGES: usize = 10_000;

/// Details of a body that was read to its end.
#[derive(Clone, Debug)]
pub(crate) struct BodySummary {
    /// The HTTP status.
    pub status: u16,
    /// Number of attempts.
    pub attempts: u32,
    /// Size of the body.
    pub bytes: u64,
    /// The BLAKE3 of the body.
    pub digest: String,
    /// When the body was complete.
    pub observed_at: DateTime<Utc>,
    /// The number of entries that the service says the list has, on all pages.
    pub total: Option<u64>,
    /// The header that asks whether the answer is still this one.
    pub condition: Option<(HeaderName, HeaderValue)>,
}

impl BodySummary {
    /// Whether the service says that the answer is as before.
    pub(crate) fn is_as_before(&self) -> bool {
        self.status == StatusCode::NOT_MODIFIED
    }
}

/// The body of a page on its way to the reader, with its encoding; none if the service did not give it.
type Page = Option<(Chunks, Vec<u8>)>;

/// How to read a body.
pub(super) struct BodyOptions<'a> {
    /// Number of attempts, this one included.
    pub(super) attempts: u32,
    pub(super) clock: Clock,
    /// The key to mask in it.
    pub(super) key: ApiKey,
    /// Where to keep a copy.
    pub(super) evidence: Option<PathBuf>,
    /// How long the service may be silent.
    pub(super) stall: Duration,
    pub(super) gauge: &'a Gauge,
}

/// Passes the body of a response to a reader as it arrives, page by page: `follow` asks for another page.
pub(super) async fn read_body<T, F>(
    mut response: reqwest::Response,
    read: F,
    options: BodyOptions<'_>,
    follow: impl AsyncFn(Url) -> Result<reqwest::Response, Failure>,
) -> Result<T, Failure>
where
    T: Send + 'static,
    F: FnOnce(&mut Body) -> Result<T, Failure> + Send + 'static,
{
    let BodyOptions { attempts, clock, key, evidence, stall, gauge } = options;
    let total = response.headers().get("x-total-count").and_then(|total| total.to_str().ok()?.trim().parse().ok());
    let head = BodySummary {
        status: response.status().as_u16(),
        attempts,
        bytes: 0,
        digest: String::new(),
        observed_at: clock.now(),
        total,
        condition: condition_of(&response, &key),
    };
    let (pages, further) = mpsc::channel(1);
    let (mut sender, chunks) = chunks::channel();
    let encoding = encoding_of(&response);
    let reader = spawn_blocking(move || {
        let packed = Arc::clone(&chunks.taken);
        let mut body = Body {
            head,
            clock,
            inner: Masked::new(Unpacked::new(chunks, &encoding).map_err(Failure::from_io)?, &key),
            further,
            key,
            packed_before: 0,
            packed,
            digest: Digest::default(),
            counted: 0,
            evidence: evidence.map(|path| file::create(&path)).transpose().map_err(Failure::Stop)?,
            beginning: Vec::new(),
        };
        read(&mut body).map_err(|failure| {
            body.keep_the_rest();
            let failure = if let Failure::Broken(error) = failure { Failure::from_io(error) } else { failure };
            match failure {
                Failure::Malformed { offset: 0, mut reason } => {
                    let words = words_in(&body.beginning).filter(|_| body.beginning.starts_with(b"{"));
                    reason.extend(words.map(|words| format!(", and the service says: {words}")));
                    Failure::Malformed { offset: 0, reason }
                }
                failure => failure,
            }
        })
    });
    let feed = async move {
        for _ in 0..MAX_PAGES {
            let next = next_page(&response).filter(|_| response.status() != StatusCode::NOT_MODIFIED);
            chunks::pump(response, stall, sender, gauge).await;
            let Some(next) = next else { return Ok(()) };
            let page = async { follow(next?).await }.await;
            if page.is_err() {
                // The reader must not take what it has for the whole.
                let _ = pages.send(None).await;
            }
            response = page?;
            let chunks;
            (sender, chunks) = chunks::channel();
            if pages.send(Some((chunks, encoding_of(&response)))).await.is_err() {
                return Ok(());
            }
        }
        let _ = pages.send(None).await;
        Err(Failure::Refused(format!("it has more than {MAX_PAGES} pages")))
    };
    let (fed, read) = tokio::join!(feed, reader);
    fed.and_then(|()| read.unwrap_or_else(|panic| Err(Failure::Stop(Error::worker(panic)))))
}

/// What time it was for the service when it answered.
pub(super) fn date_of(response: &reqwest::Response) -> Option<DateTime<Utc>> {
    let date = response.headers().get(DATE)?.to_str().ok()?;
    DateTime::parse_from_rfc2822(date).ok().map(|date| date.to_utc())
}

fn encoding_of(response: &reqwest::Response) -> Vec<u8> {
    response.headers().get(CONTENT_ENCODING).map(|value| value.as_bytes().to_vec()).unwrap_or_default()
}

/// The header that asks whether an answer is still this one: by its `ETag` or, without one, by when it last changed. None for
/// an answer in pages, or one that changed in the minute before it, since it may change again within that second.
fn condition_of(response: &reqwest::Response, key: &ApiKey) -> Option<(HeaderName, HeaderValue)> {
    /// The longest that is kept.
    const MAX_BYTES: usize = 256;
    let mut tags = response.headers().get_all(ETAG).iter();
    let condition = match (tags.next(), tags.next()) {
        (Some(tag), None) => {
            let text = tag.to_str().ok()?;
            let inner = text.strip_prefix("W/").unwrap_or(text).strip_prefix('"')?.strip_suffix('"')?;
            // An empty one tells nothing apart, and a list of them would fit several answers.
            (!inner.is_empty() && !inner.contains('"')).then(|| (IF_NONE_MATCH, tag.clone()))
        }
        (Some(_), Some(_)) => None,
        (None, _) => {
            let changed = response.headers().get(LAST_MODIFIED)?;
            let at = DateTime::parse_from_rfc2822(changed.to_str().ok()?).ok()?.to_utc();
            (at + TimeDelta::minutes(1) <= date_of(response)?).then(|| (IF_MODIFIED_SINCE, changed.clone()))
        }
    };
    let (name, value) = condition.filter(|(_, value)| value.len() <= MAX_BYTES && next_page(response).is_none())?;
    let is_free_of_key = key.echo().is_none_or(|echo| value.to_str().is_ok_and(|text| echo.mask(text) == text));
    is_free_of_key.then_some((name, value))
}

/// The address of the page after this one, as its header `Link` says: `<https://…?page=2>; rel="next"`.
fn next_page(response: &reqwest::Response) -> Option<Result<Url, Failure>> {
    let links = response.headers().get_all(LINK).iter().filter_map(|link| link.to_str().ok());
    let next = links.flat_map(|links| links.split(',')).find_map(|link| {
        let (target, parameters) = link.trim().strip_prefix('<')?.split_once('>')?;
        let is_next =
            parameters.split(';').filter_map(|parameter| parameter.trim().split_once('=')).any(|(name, value)| {
                name.trim().eq_ignore_ascii_case("rel")
                    && value.trim().trim_matches('"').split(' ').any(|rel| rel == "next")
            });
        is_next.then_some(target)
    })?;
    let next = response.url().join(next).ok().filter(|next| next.origin() == response.url().origin());
    Some(next.ok_or_else(|| Failure::Refused("its next page is at another address".to_owned())))
}

/// A body, for reading on a blocking thread.
pub(crate) struct Body {
    /// What is known from the headers and the attempts before.
    head: BodySummary,
    clock: Clock,
    inner: Masked<Unpacked>,
    further: mpsc::Receiver<Page>,
    key: ApiKey,
    /// The bytes of the pages before, and of this one, as they arrived.
    packed_before: u64,
    packed: Arc<AtomicU64>,
    digest: Digest,
    /// How much of the available bytes is counted and digested.
    counted: usize,
    evidence: Option<File>,
    /// Its beginning, which may be the service's words in place of an answer.
    beginning: Vec<u8>,
}

impl Body {
    /// Goes on with the next page, once this one has been read to its end; returns whether there is one.
    pub(crate) fn next_page(&mut self) -> io::Result<bool> {
        let (chunks, encoding) = match self.further.blocking_recv() {
            None => return Ok(false),
            Some(None) => return Err(io::Error::new(io::ErrorKind::UnexpectedEof, "the next page is missing")),
            Some(Some(page)) => page,
        };
        self.packed_before += self.packed.load(Ordering::Relaxed);
        self.packed = Arc::clone(&chunks.taken);
        self.inner = Masked::new(Unpacked::new(chunks, &encoding)?, &self.key);
        self.counted = 0;
        Ok(true)
    }

    /// Details of the body, once it has been read to its end.
    pub(crate) fn summary(&self) -> BodySummary {
        let (bytes, digest) = (self.digest.count(), hex(&self.digest.hash()));
        BodySummary { bytes, digest, observed_at: self.clock.now(), ..self.head.clone() }
    }

    /// Reads on if the body is kept as evidence, up to the limit.
    fn keep_the_rest(&mut self) {
        while self.evidence.is_some() && self.digest.count() < MAX_EVIDENCE {
            match self.fill_buf().map(<[u8]>::len) {
                Ok(0) | Err(_) => return,
                Ok(length) => self.consume(length),
            }
        }
    }
}

impl BufRead for Body {
    fn fill_buf(&mut self) -> io::Result<&[u8]> {
        let before = self.digest.count();
        let ready = self.inner.ready().map_err(|mut error| {
            // What does not decompress is located by what did.
            if let Some(Failure::Malformed { offset, .. }) = error.get_mut().and_then(|inner| inner.downcast_mut()) {
                *offset = before;
            }
            error
        })?;
        if self.counted == 0 {
            self.digest.update(ready);
            let room = MAX_BEGINNING.saturating_sub(self.beginning.len());
            self.beginning.extend_from_slice(&ready[..ready.len().min(room)]);
            if let Some(file) = &mut self.evidence {
                let room = usize::try_from(MAX_EVIDENCE.saturating_sub(before)).unwrap_or(usize::MAX);
                file.write_all(&ready[..ready.len().min(room)])?;
            }
            self.counted = ready.len();
            let (bytes, packed) = (self.digest.count(), self.packed_before + self.packed.load(Ordering::Relaxed));
            let refused = |reason: &str| Err(io::Error::other(Failure::Refused(reason.to_owned())));
            if bytes > MAX_BYTES {
                return refused("its body exceeds the size limit");
            }
            if bytes > GROWTH_FREE && bytes / MAX_GROWTH > packed {
                return refused("its body expands too much when decompressed");
            }
        }
        Ok(ready)
    }

    fn consume(&mut self, count: usize) {
        self.inner.consume(count);
        self.counted -= count;
    }
}

impl Read for Body {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        read_ready(self, buffer)
    }
}

/// A file for a body, removed on drop unless it is kept.
#[derive(Debug)]
pub(super) struct Evidence {
    pub(super) path: PathBuf,
    is_kept: bool,
}

impl Evidence {
    pub(super) fn begin(folder: &Path, clock: Clock) -> error::Result<Self> {
        links::refuse(folder)?;
        file::create_folders(folder)?;
        Ok(Self { path: folder.join(format!("{}.body", unique_name(clock.now()))), is_kept: false })
    }

    /// Keeps the file and returns its path.
    pub(super) fn keep(mut self) -> PathBuf {
        self.is_kept = true;
        self.path.clone()
    }
}

impl Drop for Evidence {
    fn drop(&mut self) {
        if !self.is_kept {
            // Best effort: the file is of no use. The folder is removed once it is empty.
            let _ = remove::file(&self.path);
            let _ = self.path.parent().map(remove::folder);
        }
    }
}
