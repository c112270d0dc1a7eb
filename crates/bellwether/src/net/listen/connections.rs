//! The connections to a server: few, never idle for long, and never at the cost of a run.
//!
//! A client can open connections and stay silent, so their number is a fraction of the process's file descriptors. The
//! head of a request has to arrive within seconds, and a client that has not taken any of its answer for a minute is
//! gone. At the limit the oldest connection is closed for a new one, silent ones first, so that a client that asks is
//! answered whatever the others do.

use std::convert::Infallible;
use std::future::pending;
use std::io;
use std::net::IpAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use bytes::Bytes;
use futures_util::{Stream, StreamExt};
use http::header::{self, CONTENT_TYPE};
use http::request::Parts;
use http::{HeaderValue, Response, StatusCode};
use http_body_util::combinators::UnsyncBoxBody;
use http_body_util::{BodyExt, Full, StreamBody};
use hyper::body::{Body as _, Frame};
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::{TokioIo, TokioTimer};
use rustix::process::{Resource, getrlimit};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::{AbortHandle, JoinSet};
use tokio::time::Instant;

use super::host::Hosts;
use crate::process::cancel::CancellationToken;

/// The maximum number of connections, if there are descriptors for it.
const MAX_CONNECTIONS: u64 = 64;

/// One descriptor in so many is for a connection; the others are for runs.
const SHARE: u64 = 8;

/// How long the head of a request may take, from the connection on.
const HEAD_LIMIT: Duration = Duration::from_secs(10);

/// How long a connection may last without a new request, and without anything of an answer that was taken.
const LIMIT: Duration = Duration::from_secs(60);

/// How long to wait if the system has no descriptor for a connection.
const PAUSE: Duration = Duration::from_secs(1);

/// How often closed connections are reported at most.
const REPORT_EVERY: Duration = Duration::from_secs(60 * 60);

/// An answer to a request.
pub type Answer = Response<Body>;

/// The body of an answer.
pub type Body = UnsyncBoxBody<Bytes, io::Error>;

/// An answer whose body is known.
pub fn whole(status: StatusCode, kind: &'static str, body: impl Into<Bytes>) -> Answer {
    answer(status, kind, Full::new(body.into()).map_err(|never| match never {}).boxed_unsync())
}

/// An answer whose body is sent as it is made.
pub fn stream(kind: &'static str, parts: impl Stream<Item = io::Result<Bytes>> + Send + 'static) -> Answer {
    answer(StatusCode::OK, kind, StreamBody::new(parts.map(|part| part.map(Frame::data))).boxed_unsync())
}

fn answer(status: StatusCode, kind: &'static str, body: Body) -> Answer {
    let mut answer = Response::new(body);
    *answer.status_mut() = status;
    answer.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static(kind));
    answer
}

/// What is served.
pub trait Site: Send + Sync + 'static {
    /// The answer to a request, whose body does not count.
    ///
    /// # Cancel safety
    ///
    /// Dropping it leaves the request unanswered.
    fn answer(self: Arc<Self>, request: Parts) -> impl Future<Output = Answer> + Send;
}

/// Serves connections.
pub struct Connections<S> {
    pub site: Arc<S>,
    pub hosts: Arc<Hosts>,
    /// How many requests a connection takes.
    pub requests: Requests,
    /// What a request with another host is answered.
    pub misdirected: &'static str,
    /// Is told why connections are closed unanswered, at most once an hour.
    pub unanswered: Arc<dyn Fn(&str) + Send + Sync>,
}

/// How many requests a connection takes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Requests {
    /// One, for clients that ask now and then.
    One,
    /// One after the other, for clients that ask for every ticker.
    Many,
    /// The same, on as many connections as they like and for as long, for clients that this process knows.
    Unbounded,
}

/// A connection.
struct Client<S> {
    server: Arc<Connections<S>>,
    /// The address that the client connected to.
    local: Option<IpAddr>,
    is_answered: AtomicBool,
    /// When it last got on.
    progress: Mutex<Instant>,
}

impl<S: Site> Connections<S> {
    /// Serves a listener until a token is cancelled, and then finishes the answers that are being sent.
    ///
    /// # Cancel safety
    ///
    /// Dropping it closes all connections.
    pub async fn serve(self, listener: TcpListener, stop: CancellationToken) {
        let server = Arc::new(self);
        let limit = if server.requests == Requests::Unbounded { usize::MAX } else { limit() };
        let mut tasks = JoinSet::new();
        let mut clients: Vec<(AbortHandle, Arc<Client<S>>)> = Vec::new();
        let mut reported = None;
        loop {
            let accepted = tokio::select! {
                biased;
                () = stop.cancelled() => break,
                accepted = listener.accept() => accepted,
            };
            while tasks.try_join_next().is_some() {}
            clients.retain(|(task, _)| !task.is_finished());
            match accepted {
                Ok((stream, _)) => {
                    // A body is sent in many small writes; waiting to merge the last ones only delays the answer. Failing
                    // to set the option is harmless.
                    let _ = stream.set_nodelay(true);
                    if clients.len() >= limit {
                        let silent = clients.iter().position(|(_, client)| !client.is_answered.load(Ordering::Relaxed));
                        clients.remove(silent.unwrap_or_default()).0.abort();
                        server.report(&mut reported, &format!("more than {limit} were open at once"));
                    }
                    let client = Arc::new(Client {
                        server: Arc::clone(&server),
                        local: stream.local_addr().ok().map(|address| address.ip()),
                        is_answered: AtomicBool::new(false),
                        progress: Mutex::new(Instant::now()),
                    });
                    clients.push((tasks.spawn(Arc::clone(&client).serve(stream, stop.clone())), client));
                }
                Err(error) if is_of_connection(&error) => {}
                Err(error) => {
                    server.report(&mut reported, &error.to_string());
                    tokio::time::sleep(PAUSE).await;
                }
            }
        }
        clients.iter().filter(|(_, it)| !it.is_answered.load(Ordering::Relaxed)).for_each(|(task, _)| task.abort());
        while tasks.join_next().await.is_some() {}
    }

    fn report(&self, reported: &mut Option<Instant>, reason: &str) {
        if reported.is_none_or(|at| at.elapsed() >= REPORT_EVERY) {
            *reported = Some(Instant::now());
            (self.unanswered)(reason);
        }
    }
}

impl<S: Site> Client<S> {
    /// Answers the requests of a connection.
    async fn serve(self: Arc<Self>, stream: TcpStream, stop: CancellationToken) {
        let requests = self.server.requests;
        let mut builder = http1::Builder::new();
        builder.keep_alive(requests != Requests::One);
        if requests != Requests::Unbounded {
            builder.timer(TokioTimer::new()).header_read_timeout(HEAD_LIMIT);
        }
        let served = builder.serve_connection(
            TokioIo::new(stream),
            service_fn(|request| {
                let client = Arc::clone(&self);
                async move { Ok::<_, Infallible>(client.admit(request.into_parts().0).await) }
            }),
        );
        let mut served = std::pin::pin!(served);
        // A client that breaks off, or takes too long, is no fault of ours.
        tokio::select! {
            _ = served.as_mut() => return,
            () = self.stalled() => return,
            () = stop.cancelled() => {}
        }
        served.as_mut().graceful_shutdown();
        tokio::select! {
            _ = served => {}
            () = self.stalled() => {}
        }
    }

    /// The answer to a request, if it names this server. Every part of it that is taken counts as progress.
    async fn admit(self: Arc<Self>, request: Parts) -> Answer {
        let server = &self.server;
        self.is_answered.store(true, Ordering::Relaxed);
        self.note_progress();
        let mut named = request.headers.get_all(header::HOST).iter();
        let host = named.next().filter(|_| named.next().is_none()).and_then(|host| host.to_str().ok());
        // A request for a proxy repeats the host in its first line.
        let is_ours = |authority: &str| server.hosts.has(authority, self.local);
        let is_named = host.is_some_and(is_ours);
        if !is_named || request.uri.authority().is_some_and(|authority| !is_ours(authority.as_str())) {
            return whole(StatusCode::MISDIRECTED_REQUEST, "text/plain; charset=utf-8", server.misdirected);
        }
        let answer = Arc::clone(&server.site).answer(request).await;
        self.note_progress();
        answer.map(|body| match body.size_hint().exact() {
            Some(_) => body,
            None => body
                .map_frame(move |frame| {
                    self.note_progress();
                    frame
                })
                .boxed_unsync(),
        })
    }

    fn note_progress(&self) {
        *self.progress.lock().unwrap_or_else(PoisonError::into_inner) = Instant::now();
    }

    /// Waits until nothing has happened for too long; forever if it may take as long as it likes.
    async fn stalled(&self) {
        if self.server.requests == Requests::Unbounded {
            return pending().await;
        }
        loop {
            let end = *self.progress.lock().unwrap_or_else(PoisonError::into_inner) + LIMIT;
            if end <= Instant::now() {
                return;
            }
            tokio::time::sleep_until(end).await;
        }
    }
}

/// The maximum number of connections.
fn limit() -> usize {
    let descriptors = getrlimit(Resource::Nofile).current.unwrap_or(u64::MAX);
    usize::try_from((descriptors / SHARE).clamp(1, MAX_CONNECTIONS)).unwrap_or(1)
}

/// Whether only the connection failed, and the next one may be accepted at once.
fn is_of_connection(error: &io::Error) -> bool {
    use io::ErrorKind::{ConnectionAborted, ConnectionRefused, ConnectionReset, Interrupted};
    matches!(error.kind(), ConnectionAborted | ConnectionRefused | ConnectionReset | Interrupted)
}
