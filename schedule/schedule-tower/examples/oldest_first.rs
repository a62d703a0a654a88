//! An entry point and a store on loopback addresses. The store serves one request at once, the oldest first, although the
//! calls reach it in the reverse order.
//!
//! `cargo run -p tailwright-schedule-tower --example oldest_first`

use axum::routing::get;
use axum::{Extension, Router};
use gat::RequestTag;
use http::{Request, Response, StatusCode, Uri};
use http_body_util::Empty;
use hyper::body::{Bytes, Incoming};
use hyper::client::conn::http1::{self, SendRequest};
use hyper_util::rt::TokioIo;
use schedule::{AsyncGate, AsyncGateSettings, ConcurrencyLimit, PermitHandle};
use schedule_tower::{EdgeLayer, GateLayer, TagClientLayer, current_tag};
use std::error::Error;
use std::future::Future;
use std::net::SocketAddr;
use std::num::NonZeroU32;
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;
use tokio::net::{TcpListener, TcpStream};
use tower_layer::Layer;
use tower_service::Service;

/// Requests of the example.
const REQUESTS: u64 = 5;

fn main() -> Result<(), Box<dyn Error>> {
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build()?;
    runtime.block_on(run())
}

async fn run() -> Result<(), Box<dyn Error>> {
    let one = gate(ConcurrencyLimit::Fixed(NonZeroU32::MIN));
    let all = gate(ConcurrencyLimit::Unlimited);
    let store = Router::new().route("/{name}", get(look_up)).layer(Extension(one.clone()));
    let store = serve(store.layer(GateLayer::new(one.clone()))).await?;
    let pages = Router::new().route("/{name}", get(page)).layer(Extension(one)).layer(Extension(store));
    let edge = EdgeLayer::default();
    let pages = serve(pages.layer(GateLayer::new(all)).layer(edge.clone())).await?;
    let mut answers = Vec::new();
    for name in 0..REQUESTS {
        answers.push(tokio::spawn(call(pages, format!("/{name}"), TagClientLayer::default())));
        until(|| edge.statistics().entered > name).await;
    }
    for answer in answers {
        let status = answer.await?.map_err(|error| error.to_string())?;
        println!("{status}");
    }
    Ok(())
}

fn gate(limit: ConcurrencyLimit) -> AsyncGate {
    AsyncGate::new(AsyncGateSettings { limit, patience: None, ..AsyncGateSettings::default() })
}

/// A page of the entry point: a call of the store, which each request makes after all later ones.
async fn page(
    Extension(store): Extension<SocketAddr>,
    Extension(gate): Extension<AsyncGate>,
    Extension(permit): Extension<PermitHandle>,
    uri: Uri,
) -> StatusCode {
    let later = REQUESTS - 1 - number(&uri);
    let inside = TagClientLayer::new("127.0.0.1".parse().expect("an address"));
    let answer = permit.while_waiting(async {
        until(|| gate.statistics().entered == later).await;
        call(store, uri.path().to_owned(), inside).await
    });
    answer.await.unwrap_or(StatusCode::BAD_GATEWAY)
}

/// A look-up of the store. The first one lasts until all have come.
async fn look_up(Extension(gate): Extension<AsyncGate>, Extension(tag): Extension<RequestTag>, uri: Uri) {
    until(|| gate.statistics().entered == REQUESTS).await;
    assert_eq!(current_tag(), Some(tag));
    println!("the store serves request {}", number(&uri));
}

fn number(uri: &Uri) -> u64 {
    uri.path().trim_start_matches('/').parse().unwrap_or(0)
}

async fn until(is_so: impl Fn() -> bool) {
    while !is_so() {
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
}

async fn serve(router: Router) -> Result<SocketAddr, Box<dyn Error>> {
    let listener = TcpListener::bind("127.0.0.1:0").await?;
    let address = listener.local_addr()?;
    tokio::spawn(async move { axum::serve(listener, router).await });
    Ok(address)
}

/// A call on a connection of its own, with the tag of the current request for hosts of the system.
async fn call(
    address: SocketAddr,
    path: String,
    tags: TagClientLayer,
) -> Result<StatusCode, Box<dyn Error + Send + Sync>> {
    let (sender, connection) = http1::handshake(TokioIo::new(TcpStream::connect(address).await?)).await?;
    tokio::spawn(connection);
    let request = Request::get(format!("http://{address}{path}")).body(Empty::new())?;
    Ok(tags.layer(ClientConnection(sender)).call(request).await?.status())
}

/// A connection of hyper as a service of tower.
struct ClientConnection(SendRequest<Empty<Bytes>>);

impl Service<Request<Empty<Bytes>>> for ClientConnection {
    type Response = Response<Incoming>;
    type Error = hyper::Error;
    type Future = Pin<Box<dyn Future<Output = hyper::Result<Response<Incoming>>> + Send>>;

    fn poll_ready(&mut self, context: &mut Context<'_>) -> Poll<hyper::Result<()>> {
        self.0.poll_ready(context)
    }

    fn call(&mut self, request: Request<Empty<Bytes>>) -> Self::Future {
        Box::pin(self.0.send_request(request))
    }
}
