//! An object store in this process that fails as its seed says, in one thread and on a clock that is not real.
//!
//! A request may be refused, answered late, carried out and not acknowledged, or carried out twice, as when a client below
//! repeats it; a conditional put may meet a conflict that nobody wins; an answer may break off; a listing may be stale.
//! What it promises, it keeps: an object appears whole or not at all, and of two conditional puts one wins.

use std::collections::{BTreeMap, VecDeque};
use std::fmt;
use std::fmt::Write as _;
use std::ops::Range;
use std::sync::atomic::{AtomicBool, AtomicI64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use async_trait::async_trait;
use bytes::Bytes;
use chrono::DateTime;
use futures_util::stream::{self, BoxStream, StreamExt, TryStreamExt};
use object_store::list::{PaginatedListOptions, PaginatedListResult, PaginatedListStore};
use object_store::memory::InMemory;
use object_store::path::Path as Key;
use object_store::{
    CopyOptions, Error, GetOptions, GetResult, GetResultPayload, ListResult, MultipartUpload, ObjectMeta, ObjectStore,
    ObjectStoreExt, PutMode, PutMultipartOptions, PutOptions, PutPayload, PutResult, Result,
};

use super::random::Random;

/// How many changes a stale listing may lack.
const STALE: usize = 6;

/// The longest wait for an answer.
const LATE: Duration = Duration::from_secs(90);

#[derive(Debug)]
pub(crate) struct SimulatedStore(Arc<State>);

#[derive(Debug)]
struct State {
    objects: InMemory,
    is_calm: AtomicBool,
    /// The store's clock, in microseconds since 1970.
    now: AtomicI64,
    random: Mutex<Random>,
    /// When each object was put, by the store's clock.
    changed: Mutex<BTreeMap<Key, i64>>,
    /// The latest listings of everything.
    listings: Mutex<VecDeque<Vec<ObjectMeta>>>,
    trace: Mutex<Trace>,
}

/// What was asked and answered. Names of runs and versions have random parts: each is traced as a number.
#[derive(Debug, Default)]
struct Trace {
    text: String,
    numbers: BTreeMap<String, usize>,
    faults: usize,
}

/// What a request meets.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Fault {
    Refused,
    Late,
    Unacknowledged,
    Twice,
    Conflict,
    BrokenOff,
    Stale,
}

impl SimulatedStore {
    pub(crate) fn of(seed: u64) -> Self {
        Self(Arc::new(State {
            objects: InMemory::new(),
            is_calm: AtomicBool::new(false),
            now: AtomicI64::new(0),
            random: Mutex::new(Random::of(seed)),
            changed: Mutex::default(),
            listings: Mutex::default(),
            trace: Mutex::default(),
        }))
    }

    pub(crate) fn client(&self) -> Arc<Self> {
        Arc::new(Self(Arc::clone(&self.0)))
    }

    pub(crate) fn set_now(&self, micros: i64) {
        self.0.now.store(micros, Ordering::SeqCst);
    }

    /// From now on, nothing fails; or things fail again.
    pub(crate) fn set_calm(&self, is_calm: bool) {
        self.0.is_calm.store(is_calm, Ordering::SeqCst);
    }

    /// The requests and their answers so far.
    pub(crate) fn trace(&self) -> String {
        self.0.trace.lock().expect("no test panicked").text.clone()
    }

    pub(crate) fn faults(&self) -> usize {
        self.0.trace.lock().expect("no test panicked").faults
    }

    /// Every object.
    pub(crate) async fn contents(&self) -> BTreeMap<String, Bytes> {
        let metas: Vec<ObjectMeta> = self.0.objects.list(None).try_collect().await.expect("a listing");
        let mut contents = BTreeMap::new();
        for meta in metas {
            let got = self.0.objects.get(&meta.location).await.expect("it is there");
            contents.insert(meta.location.to_string(), got.bytes().await.expect("bytes"));
        }
        contents
    }
}

impl State {
    /// What a request meets, of the faults that it can.
    fn meet(&self, faults: &[Fault]) -> Option<Fault> {
        if self.is_calm.load(Ordering::SeqCst) {
            return None;
        }
        let mut random = self.random.lock().expect("no test panicked");
        random.one_in(7).then(|| random.pick(faults))
    }

    fn tell(&self, action: &str, key: &str, fault: Option<Fault>) {
        let mut trace = self.trace.lock().expect("no test panicked");
        trace.faults += usize::from(fault.is_some());
        let key = trace.name_of(key);
        let fault = fault.map(|fault| format!(": {fault:?}")).unwrap_or_default();
        writeln!(trace.text, "{action} {key}{fault}").expect("a string takes any text");
    }

    async fn wait(&self) {
        let share = self.random.lock().expect("no test panicked").between(1, 1000) as f64 / 1000.0;
        tokio::time::sleep(LATE.mul_f64(share)).await;
    }

    /// Carries out a put, and remembers the listing before it.
    async fn put(&self, key: &Key, payload: PutPayload, options: PutOptions) -> Result<PutResult> {
        self.remember().await;
        let put = self.objects.put_opts(key, payload, options).await?;
        self.changed.lock().expect("no test panicked").insert(key.clone(), self.now.load(Ordering::SeqCst));
        Ok(put)
    }

    async fn delete(&self, key: &Key) -> Result<()> {
        self.remember().await;
        self.objects.delete(key).await
    }

    async fn remember(&self) {
        let listing = self.all().await;
        let mut listings = self.listings.lock().expect("no test panicked");
        listings.push_front(listing);
        listings.truncate(STALE);
    }

    async fn all(&self) -> Vec<ObjectMeta> {
        let metas: Vec<ObjectMeta> = self.objects.list(None).try_collect().await.expect("a listing");
        metas.into_iter().map(|meta| self.date_by_clock(meta)).collect()
    }

    /// With the time of the store's own clock.
    fn date_by_clock(&self, meta: ObjectMeta) -> ObjectMeta {
        let micros = self.changed.lock().expect("no test panicked").get(&meta.location).copied().unwrap_or_default();
        let last_modified = DateTime::from_timestamp_micros(micros).expect("an instant of our time");
        ObjectMeta { last_modified, ..meta }
    }

    /// A listing of everything, as far as the fault allows.
    async fn listing(&self, fault: Option<Fault>) -> Result<Vec<ObjectMeta>> {
        match fault {
            Some(Fault::Refused) => return Err(refusal()),
            Some(Fault::Stale) => {
                let age = self.random.lock().expect("no test panicked").below(STALE);
                let listings = self.listings.lock().expect("no test panicked");
                if let Some(listing) = listings.get(age.min(listings.len().saturating_sub(1))) {
                    return Ok(listing.clone());
                }
            }
            Some(_) => self.wait().await,
            None => {}
        }
        Ok(self.all().await)
    }
}

impl Trace {
    /// A key with numbers for its random names.
    fn name_of(&mut self, key: &str) -> String {
        let next = self.numbers.len();
        let is_random = |part: &str| part.contains("Z-") || part.contains(".probe-");
        let mut part = |part: &str| match is_random(part) {
            true => {
                let kind = part.split_once('=').map_or("", |(kind, _)| kind);
                format!("{kind}#{}", self.numbers.entry(part.to_owned()).or_insert(next))
            }
            false => part.to_owned(),
        };
        key.split('/').map(&mut part).collect::<Vec<_>>().join("/")
    }
}

fn refusal() -> Error {
    let source = "Server returned non-2xx status code: 503 Service Unavailable: <Code>SlowDown</Code>";
    Error::Generic { store: "simulated", source: source.into() }
}

fn broken_off() -> Error {
    Error::Generic { store: "simulated", source: std::io::Error::from(std::io::ErrorKind::ConnectionReset).into() }
}

impl fmt::Display for SimulatedStore {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("a simulated store")
    }
}

#[async_trait]
impl ObjectStore for SimulatedStore {
    async fn put_opts(&self, key: &Key, payload: PutPayload, options: PutOptions) -> Result<PutResult> {
        use Fault::{Conflict, Late, Refused, Twice, Unacknowledged};
        let state = &self.0;
        let fault = state.meet(&[Refused, Late, Unacknowledged, Unacknowledged, Twice, Conflict]);
        state.tell("put", key.as_ref(), fault);
        match fault {
            Some(Refused) => Err(refusal()),
            Some(Conflict) => match options.mode {
                PutMode::Overwrite => Err(refusal()),
                PutMode::Create => Err(Error::AlreadyExists { path: key.to_string(), source: "409 Conflict".into() }),
                PutMode::Update(_) => Err(Error::Precondition { path: key.to_string(), source: "409 Conflict".into() }),
            },
            Some(Unacknowledged) => {
                state.put(key, payload, options).await?;
                state.wait().await;
                Err(broken_off())
            }
            Some(Twice) => {
                state.put(key, payload.clone(), options.clone()).await?;
                state.put(key, payload, options).await
            }
            Some(_) => {
                state.wait().await;
                state.put(key, payload, options).await
            }
            None => state.put(key, payload, options).await,
        }
    }

    async fn put_multipart_opts(&self, key: &Key, options: PutMultipartOptions) -> Result<Box<dyn MultipartUpload>> {
        self.0.objects.put_multipart_opts(key, options).await
    }

    async fn get_opts(&self, key: &Key, options: GetOptions) -> Result<GetResult> {
        let state = &self.0;
        let fault = state.meet(&[Fault::Refused, Fault::Late, Fault::BrokenOff]);
        state.tell("get", key.as_ref(), fault);
        match fault {
            Some(Fault::Refused) => return Err(refusal()),
            Some(Fault::Late) => state.wait().await,
            _ => {}
        }
        let got = state.objects.get_opts(key, options).await?;
        let GetResult { meta, range, attributes, extensions, payload } = got;
        let meta = state.date_by_clock(meta);
        let GetResultPayload::Stream(pieces) = payload else { panic!("objects in memory are streams") };
        let payload = GetResultPayload::Stream(match fault {
            Some(Fault::BrokenOff) => {
                let half = |piece: Bytes| piece.slice(..piece.len() / 2);
                pieces.map_ok(half).chain(stream::once(async { Err(broken_off()) })).boxed()
            }
            _ => pieces,
        });
        Ok(GetResult { payload, meta, range, attributes, extensions })
    }

    async fn get_ranges(&self, key: &Key, ranges: &[Range<u64>]) -> Result<Vec<Bytes>> {
        self.0.objects.get_ranges(key, ranges).await
    }

    fn delete_stream(&self, keys: BoxStream<'static, Result<Key>>) -> BoxStream<'static, Result<Key>> {
        let state = Arc::clone(&self.0);
        keys.then(move |key| {
            let state = Arc::clone(&state);
            async move {
                let key = key?;
                let fault = state.meet(&[Fault::Refused, Fault::Unacknowledged]);
                state.tell("delete", key.as_ref(), fault);
                match fault {
                    Some(Fault::Refused) => return Err(refusal()),
                    _ => state.delete(&key).await?,
                }
                if fault.is_some() { Err(broken_off()) } else { Ok(key) }
            }
        })
        .boxed()
    }

    fn list(&self, prefix: Option<&Key>) -> BoxStream<'static, Result<ObjectMeta>> {
        let (state, prefix) = (Arc::clone(&self.0), prefix.cloned().unwrap_or_default());
        let listed = async move {
            let fault = state.meet(&[Fault::Refused, Fault::Late, Fault::Stale]);
            state.tell("list", prefix.as_ref(), fault);
            let listed = state.listing(fault).await;
            let is_below = move |meta: &ObjectMeta| meta.location.prefix_match(&prefix).is_some();
            stream::iter(match listed {
                Ok(metas) => metas.into_iter().filter(is_below).map(Ok).collect(),
                Err(error) => vec![Err(error)],
            })
        };
        stream::once(listed).flatten().boxed()
    }

    async fn list_with_delimiter(&self, prefix: Option<&Key>) -> Result<ListResult> {
        let metas: Vec<ObjectMeta> = self.list(prefix).try_collect().await?;
        let prefix = prefix.cloned().unwrap_or_default();
        let mut folders: Vec<Key> = Vec::new();
        let mut objects = Vec::new();
        for meta in metas {
            let mut below: Vec<_> = meta.location.prefix_match(&prefix).into_iter().flatten().collect();
            match below.len() {
                0 | 1 => objects.push(meta),
                _ => folders.push(prefix.clone().join(below.remove(0))),
            }
        }
        folders.sort();
        folders.dedup();
        Ok(ListResult { common_prefixes: folders, objects, extensions: Default::default() })
    }

    async fn copy_opts(&self, from: &Key, to: &Key, options: CopyOptions) -> Result<()> {
        self.0.objects.copy_opts(from, to, options).await
    }
}

/// In one page.
#[async_trait]
impl PaginatedListStore for SimulatedStore {
    async fn list_paginated(&self, prefix: Option<&str>, options: PaginatedListOptions) -> Result<PaginatedListResult> {
        let prefix = prefix.map(Key::from);
        let result = match options.delimiter {
            Some(_) => self.list_with_delimiter(prefix.as_ref()).await?,
            None => {
                let objects = self.list(prefix.as_ref()).try_collect().await?;
                ListResult { common_prefixes: Vec::new(), objects, extensions: Default::default() }
            }
        };
        Ok(PaginatedListResult { result, page_token: None })
    }
}
