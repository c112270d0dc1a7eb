//! A Spark Connect server that executes nothing: it answers as a test tells it to, over gRPC on a real socket.
//!
//! The messages are transcribed from the protocol's files, as far as they matter here. Answers are kept, as Spark keeps
//! them: a stream that attaches again continues after the last answer that the client has.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};
use std::thread;

use bytes::{BufMut, Bytes, BytesMut};
use h2::RecvStream;
use h2::server::SendResponse;
use http::{HeaderMap, HeaderValue, Request, Response};
use prost::Message;

/// What the server sends of an execution.
#[derive(Clone, Debug)]
pub(crate) enum Answer {
    /// So many tasks are done, of so many.
    Progress(i64, i64),
    /// The digest of the rows.
    Digest(&'static str),
    /// The execution is complete.
    Complete,
    /// The execution failed: an error class, its SQL state, and a message.
    Failed(&'static str, &'static str, &'static str),
    /// Nothing more, until the client goes.
    Silence,
}

/// How a stream of answers ends before they do.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Cut {
    /// As Spark ends it every two minutes.
    Ended,
    /// As a proxy ends it.
    Reset,
    /// With the connection, as a network does.
    Disconnected,
    /// With this status of gRPC.
    Status(&'static str),
}

/// What a test wants of the server.
pub(crate) struct Script {
    pub(crate) answers: Vec<Answer>,
    /// How each stream but the last ends, and after how many answers of the execution.
    pub(crate) cuts: Vec<(usize, Cut)>,
    /// Writes what Spark would have written, to the folder that it was told.
    pub(crate) write: Box<dyn Fn(&Path) + Send + Sync>,
}

struct State {
    script: Script,
    /// The methods that were called, in order.
    calls: Mutex<Vec<String>>,
    folder: Mutex<Option<PathBuf>>,
}

pub(crate) struct ScriptedSpark {
    address: SocketAddr,
    state: Arc<State>,
}

#[derive(Clone, PartialEq, prost::Message)]
struct ExecutePlanRequest {
    #[prost(message, optional, tag = "3")]
    plan: Option<Plan>,
}

#[derive(Clone, PartialEq, prost::Message)]
struct Plan {
    #[prost(message, optional, tag = "2")]
    command: Option<Command>,
}

#[derive(Clone, PartialEq, prost::Message)]
struct Command {
    #[prost(message, optional, tag = "2")]
    write_operation: Option<WriteOperation>,
}

#[derive(Clone, PartialEq, prost::Message)]
struct WriteOperation {
    #[prost(string, tag = "3")]
    path: String,
}

#[derive(Clone, PartialEq, prost::Message)]
struct ReattachExecuteRequest {
    #[prost(string, optional, tag = "5")]
    last_response_id: Option<String>,
}

#[derive(Clone, PartialEq, prost::Message)]
struct ExecutePlanResponse {
    #[prost(message, repeated, tag = "6")]
    observed_metrics: Vec<ObservedMetrics>,
    #[prost(string, tag = "13")]
    response_id: String,
    #[prost(message, optional, tag = "14")]
    result_complete: Option<ResultComplete>,
    #[prost(message, optional, tag = "18")]
    execution_progress: Option<ExecutionProgress>,
}

#[derive(Clone, PartialEq, prost::Message)]
struct ResultComplete {}

#[derive(Clone, PartialEq, prost::Message)]
struct ExecutionProgress {
    #[prost(message, repeated, tag = "1")]
    stages: Vec<StageInfo>,
}

#[derive(Clone, PartialEq, prost::Message)]
struct StageInfo {
    #[prost(int64, tag = "2")]
    num_tasks: i64,
    #[prost(int64, tag = "3")]
    num_completed_tasks: i64,
}

#[derive(Clone, PartialEq, prost::Message)]
struct ObservedMetrics {
    #[prost(string, tag = "1")]
    name: String,
    #[prost(message, repeated, tag = "2")]
    values: Vec<Literal>,
    #[prost(string, repeated, tag = "3")]
    keys: Vec<String>,
}

#[derive(Clone, PartialEq, prost::Message)]
struct Literal {
    #[prost(string, tag = "13")]
    string: String,
}

/// `google.rpc.Status`.
#[derive(Clone, PartialEq, prost::Message)]
struct Status {
    #[prost(int32, tag = "1")]
    code: i32,
    #[prost(string, tag = "2")]
    message: String,
    #[prost(message, repeated, tag = "3")]
    details: Vec<Any>,
}

#[derive(Clone, PartialEq, prost::Message)]
struct Any {
    #[prost(string, tag = "1")]
    type_url: String,
    #[prost(bytes = "vec", tag = "2")]
    value: Vec<u8>,
}

#[derive(Clone, PartialEq, prost::Message)]
struct ErrorInfo {
    #[prost(string, tag = "1")]
    reason: String,
    #[prost(string, tag = "2")]
    domain: String,
    #[prost(btree_map = "string, string", tag = "3")]
    metadata: BTreeMap<String, String>,
}

impl ScriptedSpark {
    pub(crate) fn start(script: Script) -> Self {
        let listener = std::net::TcpListener::bind("127.0.0.1:0").expect("a free port");
        listener.set_nonblocking(true).expect("a socket");
        let address = listener.local_addr().expect("an address");
        let state = Arc::new(State { script, calls: Mutex::default(), folder: Mutex::default() });
        let shared = Arc::clone(&state);
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
        thread::spawn(move || {
            let serve = async {
                let listener = tokio::net::TcpListener::from_std(listener).expect("a listener");
                while let Ok((socket, _)) = listener.accept().await {
                    tokio::spawn(connection(socket, Arc::clone(&shared)));
                }
            };
            runtime.block_on(serve);
        });
        Self { address, state }
    }

    pub(crate) fn url(&self) -> String {
        format!("spark://{}", self.address)
    }

    /// The methods that were called, in order.
    pub(crate) fn calls(&self) -> Vec<String> {
        self.state.calls.lock().expect("no test panicked").clone()
    }

    /// How often a method was called.
    pub(crate) fn count(&self, method: &str) -> usize {
        self.calls().iter().filter(|call| *call == method).count()
    }

    /// The folder that the rows were to be written to.
    pub(crate) fn folder(&self) -> Option<PathBuf> {
        self.state.folder.lock().expect("no test panicked").clone()
    }
}

async fn connection(socket: tokio::net::TcpStream, state: Arc<State>) {
    let Ok(mut connection) = h2::server::handshake(socket).await else { return };
    let (broken, mut is_broken) = tokio::sync::mpsc::channel(1);
    loop {
        tokio::select! {
            accepted = connection.accept() => {
                let Some(Ok((request, respond))) = accepted else { return };
                let (state, broken) = (Arc::clone(&state), broken.clone());
                tokio::spawn(async move {
                    if let Ok(Some(Cut::Disconnected)) = call(request, respond, state).await {
                        let _ = broken.send(()).await;
                    }
                });
            }
            _ = is_broken.recv() => return,
        }
    }
}

/// Answers one call, which may be cut off; an error means that the client is gone.
async fn call(
    request: Request<RecvStream>,
    respond: SendResponse<Bytes>,
    state: Arc<State>,
) -> Result<Option<Cut>, h2::Error> {
    let method = request.uri().path().rsplit('/').next().unwrap_or_default().to_owned();
    let mut body = request.into_body();
    let mut message = BytesMut::new();
    while let Some(piece) = body.data().await {
        let piece = piece?;
        body.flow_control().release_capacity(piece.len())?;
        message.extend_from_slice(&piece);
    }
    // Behind one byte for compression and four for the length.
    let message = message.split_off(5.min(message.len()));
    state.calls.lock().expect("no test panicked").push(method.clone());
    match method.as_str() {
        "ExecutePlan" => {
            let request = ExecutePlanRequest::decode(&*message).expect("a request");
            let write = request.plan.and_then(|plan| plan.command?.write_operation).expect("a write");
            let folder = PathBuf::from(write.path.trim_start_matches("file://"));
            (state.script.write)(&folder);
            *state.folder.lock().expect("no test panicked") = Some(folder);
            stream(respond, &state, 0).await
        }
        "ReattachExecute" => {
            let request = ReattachExecuteRequest::decode(&*message).expect("a request");
            let last: Option<usize> = request.last_response_id.map(|id| id.parse().expect("an identity of ours"));
            stream(respond, &state, last.map_or(0, |last| last + 1)).await
        }
        // Spark's answers to the others are of no interest to the client.
        _ => {
            let mut respond = respond;
            let mut sink = respond.send_response(head(), false)?;
            sink.send_data(frame(&[]), false)?;
            sink.send_trailers(status("0", None))?;
            Ok(None)
        }
    }
}

/// Streams the answers of the execution from one on, until the script cuts them off.
async fn stream(mut respond: SendResponse<Bytes>, state: &State, first: usize) -> Result<Option<Cut>, h2::Error> {
    let streams = ["ExecutePlan", "ReattachExecute"];
    let number =
        state.calls.lock().expect("no test panicked").iter().filter(|call| streams.contains(&call.as_str())).count();
    let cut = state.script.cuts.get(number - 1);
    let mut sink = respond.send_response(head(), false)?;
    for (place, answer) in state.script.answers.iter().enumerate().skip(first) {
        if let Some((_, cut)) = cut.filter(|(after, _)| *after <= place) {
            match cut {
                Cut::Ended => sink.send_trailers(status("0", None))?,
                Cut::Status(code) => sink.send_trailers(status(code, None))?,
                Cut::Reset => sink.send_reset(h2::Reason::INTERNAL_ERROR),
                Cut::Disconnected => {}
            }
            return Ok(Some(*cut));
        }
        let mut response = ExecutePlanResponse { response_id: place.to_string(), ..Default::default() };
        match answer {
            Answer::Progress(done, planned) => {
                let stage = StageInfo { num_tasks: *planned, num_completed_tasks: *done };
                response.execution_progress = Some(ExecutionProgress { stages: vec![stage] });
            }
            Answer::Digest(text) => {
                let (name, values) = ("digest".to_owned(), vec![Literal { string: (*text).to_owned() }]);
                response.observed_metrics = vec![ObservedMetrics { keys: vec![name.clone()], name, values }];
            }
            Answer::Complete => response.result_complete = Some(ResultComplete {}),
            Answer::Failed(class, sql_state, text) => {
                sink.send_trailers(status("13", Some(details(class, sql_state, text))))?;
                return Ok(None);
            }
            Answer::Silence => {
                std::future::poll_fn(|context| sink.poll_reset(context)).await?;
                return Ok(None);
            }
        }
        sink.send_data(frame(&response.encode_to_vec()), false)?;
    }
    sink.send_trailers(status("0", None))?;
    Ok(None)
}

fn head() -> Response<()> {
    Response::builder().header("content-type", "application/grpc").body(()).expect("a head")
}

fn frame(message: &[u8]) -> Bytes {
    let mut bytes = BytesMut::with_capacity(5 + message.len());
    bytes.put_u8(0);
    bytes.put_u32(message.len() as u32);
    bytes.extend_from_slice(message);
    bytes.freeze()
}

/// The trailers of an answer; with the details of an error, if there are any.
fn status(code: &'static str, details: Option<Status>) -> HeaderMap {
    let mut trailers =
        HeaderMap::from_iter([(http::HeaderName::from_static("grpc-status"), HeaderValue::from_static(code))]);
    if let Some(details) = details {
        let message = HeaderValue::from_str(&details.message).expect("plain text");
        trailers.insert("grpc-message", message);
        let encoded = base64(&details.encode_to_vec());
        trailers.insert("grpc-status-details-bin", HeaderValue::from_str(&encoded).expect("plain text"));
    }
    trailers
}

/// The details of an error, as Spark sends them.
fn details(class: &str, sql_state: &str, text: &str) -> Status {
    let metadata =
        [("errorClass", class), ("sqlState", sql_state), ("classes", "[\"org.apache.spark.SparkException\"]")];
    let metadata = metadata.map(|(name, value)| (name.to_owned(), value.to_owned())).into();
    let info = ErrorInfo {
        reason: "org.apache.spark.SparkException".to_owned(),
        domain: "org.apache.spark".to_owned(),
        metadata,
    };
    let any = Any { type_url: "type.googleapis.com/google.rpc.ErrorInfo".to_owned(), value: info.encode_to_vec() };
    Status { code: 13, message: text.to_owned(), details: vec![any] }
}

fn base64(bytes: &[u8]) -> String {
    const DIGITS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let digits = |chunk: &[u8]| {
        let number = chunk.iter().fold(0_u32, |number, byte| number << 8 | u32::from(*byte)) << (8 * (3 - chunk.len()));
        (0..=chunk.len()).map(move |place| char::from(DIGITS[(number >> (18 - 6 * place)) as usize & 63]))
    };
    bytes.chunks(3).flat_map(digits).collect()
}
