//! An HTTP endpoint that answers `GET /metrics` from a thread of its own.
//!
//! Clients cannot stop the program: the number of connections is limited, further ones are closed at once,
//! and each has a time limit for its request head and in total. There is neither a password nor encryption:
//! every client that reaches the address can read the metrics.

use crate::text::CONTENT_TYPE;
use http_body_util::Full;
use hyper::body::{Bytes, Incoming};
use hyper::header::{ALLOW, CONTENT_TYPE as CONTENT_TYPE_HEADER, HeaderValue};
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper::{Method, Request, Response, StatusCode};
use hyper_util::rt::{TokioIo, TokioTimer};
use std::convert::Infallible;
use std::io;
use std::net::{SocketAddr, TcpListener};
use std::sync::Arc;
use std::thread::{self, JoinHandle};
use std::time::Duration;
use tokio::sync::{Semaphore, oneshot};

/// The largest head of a request, in bytes.
const HEAD_MAX: usize = 8192;

/// The wait after a connection that could not be accepted, such as when file descriptors are exhausted.
const ACCEPT_PAUSE: Duration = Duration::from_millis(100);

/// Limits on clients.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct EndpointLimits {
    /// The most connections at a time.
    pub connections: usize,
    /// Time limit for the head of a request.
    pub head: Duration,
    /// Time limit for a connection, from its acceptance to the last byte of the answer.
    pub connection: Duration,
}

impl Default for EndpointLimits {
    /// 16 connections, two seconds for a head, ten for all.
    fn default() -> Self {
        Self { connections: 16, head: Duration::from_secs(2), connection: Duration::from_secs(10) }
    }
}

/// A page that is made anew for each request.
type MetricsPage = Arc<dyn Fn() -> String + Send + Sync>;

/// The endpoint, open until the value is dropped.
#[derive(Debug)]
pub struct MetricsEndpoint {
    address: SocketAddr,
    end: Option<oneshot::Sender<()>>,
    thread: Option<JoinHandle<()>>,
}

impl MetricsEndpoint {
    /// Listens at the address and begins to answer; `page` makes the text of each answer.
    ///
    /// # Errors
    /// When the address is not available, or the system refuses a thread.
    pub fn open(
        address: SocketAddr,
        limits: EndpointLimits,
        page: impl Fn() -> String + Send + Sync + 'static,
    ) -> io::Result<Self> {
        let listener = TcpListener::bind(address)?;
        listener.set_nonblocking(true)?;
        let address = listener.local_addr()?;
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
        let (end, ended) = oneshot::channel();
        let page: MetricsPage = Arc::new(page);
        let thread = thread::Builder::new().name("metrics".to_owned()).spawn(move || {
            runtime.block_on(async move {
                let accepting = tokio::spawn(accept(listener, limits, page));
                // An error says that the endpoint is gone.
                let _ = ended.await;
                accepting.abort();
            });
        })?;
        Ok(Self { address, end: Some(end), thread: Some(thread) })
    }

    /// Returns the listening address, with the actual port if 0 was requested.
    pub fn address(&self) -> SocketAddr {
        self.address
    }
}

impl Drop for MetricsEndpoint {
    fn drop(&mut self) {
        drop(self.end.take());
        if let Some(thread) = self.thread.take() {
            // A panic of the thread has been printed; the program continues without metrics.
            let _ = thread.join();
        }
    }
}

async fn accept(listener: TcpListener, limits: EndpointLimits, page: MetricsPage) {
    let listener = tokio::net::TcpListener::from_std(listener).expect("the runtime takes sockets");
    let places = Arc::new(Semaphore::new(limits.connections));
    loop {
        let Ok((stream, _)) = listener.accept().await else {
            tokio::time::sleep(ACCEPT_PAUSE).await;
            continue;
        };
        // Without a place the connection is closed here.
        let Ok(place) = Arc::clone(&places).try_acquire_owned() else { continue };
        let page = Arc::clone(&page);
        tokio::spawn(async move {
            let service = service_fn(move |request| {
                let answer = answer(&request, &page);
                async move { Ok::<_, Infallible>(answer) }
            });
            let connection = http1::Builder::new()
                .timer(TokioTimer::new())
                .header_read_timeout(limits.head)
                .keep_alive(false)
                .max_buf_size(HEAD_MAX)
                .serve_connection(TokioIo::new(stream), service);
            // A slow, gone or faulty client loses its own connection only.
            let _ = tokio::time::timeout(limits.connection, connection).await;
            drop(place);
        });
    }
}

fn answer(request: &Request<Incoming>, page: &MetricsPage) -> Response<Full<Bytes>> {
    let plain = |status: StatusCode, text: &'static str| {
        with_type(status, Bytes::from_static(text.as_bytes()), "text/plain; charset=utf-8")
    };
    if !matches!(*request.method(), Method::GET | Method::HEAD) {
        let mut refused = plain(StatusCode::METHOD_NOT_ALLOWED, "metrics are read with GET\n");
        refused.headers_mut().insert(ALLOW, HeaderValue::from_static("GET, HEAD"));
        return refused;
    }
    match request.uri().path() {
        "/metrics" => with_type(StatusCode::OK, Bytes::from(page()), CONTENT_TYPE),
        "/" => plain(StatusCode::OK, "metrics are at /metrics\n"),
        _ => plain(StatusCode::NOT_FOUND, "metrics are at /metrics\n"),
    }
}

fn with_type(status: StatusCode, body: Bytes, media_type: &'static str) -> Response<Full<Bytes>> {
    let mut response = Response::new(Full::new(body));
    *response.status_mut() = status;
    response.headers_mut().insert(CONTENT_TYPE_HEADER, HeaderValue::from_static(media_type));
    response
}
