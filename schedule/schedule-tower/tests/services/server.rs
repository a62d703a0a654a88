//! A service whose answers the test controls, and clients that show the outcome of each request.

use axum::body::Body;
use axum::routing::get;
use axum::{Extension, Router};
use gat::{RequestSlo, RequestTag};
use http::{HeaderMap, Request, Response, Uri};
use http_body_util::{BodyExt, Empty};
use hyper::body::{Bytes, Incoming};
use hyper::client::conn::{http1, http2};
use hyper_util::rt::{TokioExecutor, TokioIo};
use schedule::{AsyncGate, AsyncGateSettings, ConcurrencyLimit, PermitHandle};
use schedule_tower::GateLayer;
use std::future::Future;
use std::net::SocketAddr;
use std::num::NonZeroU32;
use std::sync::{Arc, Mutex};
use std::time::Duration;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::Semaphore;

/// Longer than any finite wait.
pub(crate) const LONG: Duration = Duration::from_secs(120);

/// Runs a future on a runtime with two threads, which continue while the test blocks.
pub(crate) fn run<T>(future: impl Future<Output = T>) -> T {
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build();
    let runtime = runtime.expect("a runtime starts");
    let result = runtime.block_on(future);
    // Also ends services that are in the middle of an endless answer.
    runtime.shutdown_background();
    result
}

/// Creates an SLO of this length.
pub(crate) fn slo(length: Duration) -> RequestSlo {
    RequestSlo::new(length).expect("it is in its range")
}

/// Creates a gate with this limit, without patience.
pub(crate) fn gate(limit: u32, waiting_max: Option<usize>) -> AsyncGate {
    AsyncGate::new(AsyncGateSettings {
        limit: ConcurrencyLimit::Fixed(NonZeroU32::new(limit).expect("at least 1")),
        patience: None,
        waiting_max,
        ..AsyncGateSettings::default()
    })
}

/// Waits until the gate has this many serving and waiting.
pub(crate) fn until(gate: &AsyncGate, serving: usize, waiting: usize) {
    testkit::wait_until(LONG, &format!("{serving} serving and {waiting} waiting"), || {
        let now = gate.statistics();
        (now.serving, now.waiting) == (serving, waiting)
    });
}

/// Checks that the gate soon becomes empty, and has lost no request.
pub(crate) fn assert_empties(gate: &AsyncGate) {
    testkit::wait_until(LONG, "an empty gate", || {
        let now = gate.statistics();
        now.waiting + now.serving + now.blocked + now.overdue == 0
    });
    assert_eq!(gate.statistics().entered, gate.statistics().left);
}

/// State shared by handlers and the test.
#[derive(Debug, Clone)]
pub(crate) struct Script {
    /// Starts of the requests that handlers worked on, in order.
    pub(crate) served: Arc<Mutex<Vec<u64>>>,
    /// Permits that handlers take before they continue, if requested.
    pub(crate) go_on: Arc<Semaphore>,
}

/// Handles a request as its query says: `act=hold`, `stream`, `panic`, `wait`; otherwise it answers at
/// once.
async fn handle(
    Extension(script): Extension<Script>,
    Extension(tag): Extension<RequestTag>,
    Extension(permit): Extension<PermitHandle>,
    uri: Uri,
) -> Body {
    script.served.lock().unwrap().push(tag.start_ns);
    let go_on = Arc::clone(&script.go_on);
    match uri.query().and_then(|query| query.strip_prefix("act=")) {
        Some("hold") => go_on.acquire().await.expect("it stays open").forget(),
        Some("wait") => permit.while_waiting(go_on.acquire()).await.expect("it stays open").forget(),
        Some("panic") => std::panic::resume_unwind(Box::new("a handler that fails")),
        Some("stream") => {
            let chunks = futures_util::stream::unfold((0u32, go_on), async |(count, go_on)| {
                if count > 0 {
                    go_on.acquire().await.expect("it stays open").forget();
                }
                (count < 2)
                    .then_some((Ok::<_, std::io::Error>(Bytes::from_static(b"chunk")), (count + 1, go_on)))
            });
            return Body::from_stream(chunks);
        }
        _ => {}
    }
    Body::from("done")
}

/// Starts a service behind a gate, at an address of the loopback interface.
pub(crate) async fn serve(layer: GateLayer) -> (SocketAddr, Script) {
    let script = Script { served: Arc::default(), go_on: Arc::new(Semaphore::new(0)) };
    let router = Router::new().route("/", get(handle)).layer(Extension(script.clone())).layer(layer);
    (serve_router(router).await, script)
}

pub(crate) async fn serve_router(router: Router) -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("a free port");
    let address = listener.local_addr().expect("it has an address");
    tokio::spawn(async move { axum::serve(listener, router).await });
    address
}

/// HTTP version of a client.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum HttpVersion {
    /// A connection for each request.
    One,
    /// A stream for each request.
    Two,
}

/// A client of one service.
#[derive(Debug, Clone)]
pub(crate) enum Client {
    One(SocketAddr),
    Two(http2::SendRequest<Empty<Bytes>>),
}

impl Client {
    pub(crate) async fn new(version: HttpVersion, address: SocketAddr) -> Self {
        if version == HttpVersion::One {
            return Self::One(address);
        }
        let io = TokioIo::new(TcpStream::connect(address).await.expect("the service listens"));
        let (sender, connection) =
            http2::handshake(TokioExecutor::new(), io).await.expect("the service speaks HTTP/2");
        tokio::spawn(connection);
        Self::Two(sender)
    }

    /// Sends a request. Dropping the future closes the connection (or stream) of the request.
    pub(crate) async fn send(&self, request: Request<Empty<Bytes>>) -> hyper::Result<Response<Incoming>> {
        match self {
            Self::Two(sender) => sender.clone().send_request(request).await,
            Self::One(address) => {
                let io = TokioIo::new(TcpStream::connect(address).await.expect("the service listens"));
                let (mut sender, connection) = http1::handshake(io).await?;
                let connection = AbortOnDrop(tokio::spawn(connection));
                let response = sender.send_request(request).await?;
                // The connection lives as long as the response.
                let (mut parts, body) = response.into_parts();
                parts.extensions.insert(Arc::new((connection, Mutex::new(sender))));
                Ok(Response::from_parts(parts, body))
            }
        }
    }
}

/// A task that is aborted on drop.
#[derive(Debug)]
pub(crate) struct AbortOnDrop<T>(pub(crate) tokio::task::JoinHandle<T>);

impl<T> Drop for AbortOnDrop<T> {
    fn drop(&mut self) {
        self.0.abort();
    }
}

/// Returns a request for a handler action; it entered this many milliseconds after a time within the last
/// second.
pub(crate) fn request(start: u64, act: &str) -> Request<Empty<Bytes>> {
    let baggage = format!("tailwright-start={}", start_ns(start));
    let uri = format!("http://service/?act={act}");
    Request::get(uri).header("baggage", baggage).body(Empty::new()).expect("a request")
}

/// Returns the start of [`request`], nanoseconds.
pub(crate) fn start_ns(start: u64) -> u64 {
    static BEGIN: std::sync::OnceLock<u64> = std::sync::OnceLock::new();
    *BEGIN.get_or_init(|| machine::clock::real_time() - 1_000_000_000) + start * 1_000_000
}

/// Sends in a separate task.
pub(crate) fn spawn(
    client: &Client,
    request: Request<Empty<Bytes>>,
) -> AbortOnDrop<hyper::Result<Response<Incoming>>> {
    let client = client.clone();
    AbortOnDrop(tokio::spawn(async move { client.send(request).await }))
}

/// Returns the status, headers and body of a response.
pub(crate) async fn collect(response: Response<Incoming>) -> (u16, HeaderMap, Bytes) {
    let (parts, body) = response.into_parts();
    let bytes = body.collect().await.expect("the body ends").to_bytes();
    (parts.status.as_u16(), parts.headers.clone(), bytes)
}
