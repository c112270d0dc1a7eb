//! The connections to the status server: few, short, and never at the cost of a run.
//!
//! A client can open connections and stay silent, so their number is a fraction of the process's file descriptors, and a
//! connection takes one request: its head has to arrive within seconds, and the answer has to be read within a minute.
//! At the limit the oldest connection is closed for a new one, silent ones first, so that a client that asks is answered
//! whatever the others do.

use std::io;
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use axum::Router;
use axum::extract::{Request, State};
use axum::http::{StatusCode, header};
use axum::middleware::{Next, from_fn_with_state};
use axum::response::{IntoResponse, Response};
use hyper_util::rt::{TokioExecutor, TokioIo, TokioTimer};
use hyper_util::server::conn::auto::Builder;
use hyper_util::service::TowerToHyperService;
use rustix::process::{Resource, getrlimit};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::{AbortHandle, JoinSet};

use super::event::{ScheduleEvent, Watcher};
use super::host::Hosts;
use crate::cancel::CancellationToken;

/// The maximum number of connections, if there are descriptors for it.
const MOST: u64 = 64;

/// One descriptor in so many is for a connection; the others are for runs.
const SHARE: u64 = 8;

/// How long the head of a request may take, from the connection on.
const HEAD_LIMIT: Duration = Duration::from_secs(10);

/// How long a connection may last: its request, and until the answer was read.
const LIMIT: Duration = Duration::from_secs(60);

/// How long to wait if the system has no descriptor for a connection.
const PAUSE: Duration = Duration::from_secs(1);

/// How often closed connections are reported at most.
const REPORT_EVERY: Duration = Duration::from_secs(60 * 60);

/// Serves connections one request each.
pub(super) struct Connections {
    pub(super) router: Router,
    pub(super) hosts: Arc<Hosts>,
    pub(super) watcher: Arc<dyn Watcher>,
}

/// A connection.
struct Client {
    task: AbortHandle,
    is_answered: Arc<AtomicBool>,
}

/// What a request is checked with.
#[derive(Clone)]
struct Door {
    hosts: Arc<Hosts>,
    /// The address that the client connected to.
    local: Option<IpAddr>,
    is_answered: Arc<AtomicBool>,
}

impl Connections {
    /// Serves a listener until a token is cancelled, and then finishes the answers that are being sent.
    ///
    /// # Cancel safety
    ///
    /// Dropping it closes all connections.
    pub(super) async fn serve(self, listener: TcpListener, stop: CancellationToken) {
        let limit = limit();
        let mut tasks = JoinSet::new();
        let mut clients: Vec<Client> = Vec::new();
        let mut reported = None;
        loop {
            let accepted = tokio::select! {
                biased;
                () = stop.cancelled() => break,
                accepted = listener.accept() => accepted,
            };
            while tasks.try_join_next().is_some() {}
            clients.retain(|client| !client.task.is_finished());
            match accepted {
                Ok((stream, _)) => {
                    if clients.len() >= limit {
                        let silent = clients.iter().position(|client| !client.is_answered.load(Ordering::Relaxed));
                        clients.remove(silent.unwrap_or_default()).task.abort();
                        self.report(&mut reported, &format!("more than {limit} were open at once"));
                    }
                    let is_answered = Arc::default();
                    let task = tasks.spawn(self.connection(stream, Arc::clone(&is_answered)));
                    clients.push(Client { task, is_answered });
                }
                Err(error) if is_of_connection(&error) => {}
                Err(error) => {
                    self.report(&mut reported, &error.to_string());
                    tokio::time::sleep(PAUSE).await;
                }
            }
        }
        clients.iter().filter(|client| !client.is_answered.load(Ordering::Relaxed)).for_each(|one| one.task.abort());
        while tasks.join_next().await.is_some() {}
    }

    /// Answers the request of a connection.
    fn connection(&self, stream: TcpStream, is_answered: Arc<AtomicBool>) -> impl Future<Output = ()> + Send + use<> {
        let local = stream.local_addr().ok().map(|address: SocketAddr| address.ip());
        let door = Door { hosts: Arc::clone(&self.hosts), local, is_answered };
        let router = self.router.clone().layer(from_fn_with_state(door, admit));
        async move {
            let mut builder = Builder::new(TokioExecutor::new()).http1_only();
            builder.http1().timer(TokioTimer::new()).header_read_timeout(HEAD_LIMIT).keep_alive(false);
            let served = builder.serve_connection(TokioIo::new(stream), TowerToHyperService::new(router));
            // A client that breaks off, or takes too long, is no fault of ours.
            let _ = tokio::time::timeout(LIMIT, served).await;
        }
    }

    fn report(&self, reported: &mut Option<Instant>, reason: &str) {
        if reported.is_none_or(|at| at.elapsed() >= REPORT_EVERY) {
            *reported = Some(Instant::now());
            self.watcher.watch(&ScheduleEvent::Unanswered { reason });
        }
    }
}

/// The maximum number of connections.
fn limit() -> usize {
    let descriptors = getrlimit(Resource::Nofile).current.unwrap_or(u64::MAX);
    usize::try_from((descriptors / SHARE).clamp(1, MOST)).unwrap_or(1)
}

/// Whether only the connection failed, and the next one may be accepted at once.
fn is_of_connection(error: &io::Error) -> bool {
    use io::ErrorKind::{ConnectionAborted, ConnectionRefused, ConnectionReset, Interrupted};
    matches!(error.kind(), ConnectionAborted | ConnectionRefused | ConnectionReset | Interrupted)
}

/// Passes a request on if it names this server.
async fn admit(State(door): State<Door>, request: Request, next: Next) -> Response {
    door.is_answered.store(true, Ordering::Relaxed);
    let mut named = request.headers().get_all(header::HOST).iter();
    let host = named.next().filter(|_| named.next().is_none()).and_then(|host| host.to_str().ok());
    // A request for a proxy repeats the host in its first line.
    let is_ours = |authority: &str| door.hosts.has(authority, door.local);
    if host.is_some_and(is_ours) && request.uri().authority().is_none_or(|authority| is_ours(authority.as_str())) {
        return next.run(request).await;
    }
    let text = "this host is not served here; `--listen-host NAME` adds one\n";
    (StatusCode::MISDIRECTED_REQUEST, text).into_response()
}
