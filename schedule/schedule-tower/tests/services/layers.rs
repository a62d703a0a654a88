//! Tags at the edge, in replies and on calls to other hosts.

use super::server::{
    Client, HttpVersion, assert_empties, collect, gate, request, run, serve_router, slo, spawn, start_ns,
    until,
};
use axum::routing::get;
use axum::{Extension, Router};
use gat::{Edge, RequestTag, TagOrder};
use http::{HeaderMap, Request, Response, Uri};
use http_body_util::Empty;
use hyper::body::Bytes;
use schedule_tower::{EdgeLayer, GateLayer, TagClientLayer, current_tag, with_tag};
use std::convert::Infallible;
use std::future::{Ready, ready};
use std::num::NonZeroU32;
use std::sync::{Arc, Mutex};
use std::task::{Context, Poll};
use std::time::Duration;
use tokio::sync::Semaphore;
use tower_layer::Layer;
use tower_service::Service;

/// A client that answers with the baggage that it should have sent.
#[derive(Debug, Clone, Copy)]
struct Mirror;

impl Service<Request<Empty<Bytes>>> for Mirror {
    type Response = Response<String>;
    type Error = Infallible;
    type Future = Ready<Result<Response<String>, Infallible>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: Request<Empty<Bytes>>) -> Self::Future {
        let values = request.headers().get_all("baggage").into_iter().map(|value| value.to_str().unwrap());
        ready(Ok(Response::new(values.collect::<Vec<_>>().join("|"))))
    }
}

/// Returns the baggage of a call to this URI with these headers.
async fn sent(layer: &TagClientLayer, uri: &str, headers: &[(&str, &str)]) -> String {
    let mut call = Request::get(uri);
    for (name, value) in headers {
        call = call.header(*name, *value);
    }
    let call = call.body(Empty::new()).expect("a request");
    layer.layer(Mirror).call(call).await.expect("it never fails").into_body()
}

#[test]
fn calls_carry_the_tag_to_hosts_of_the_system_alone() {
    run(async {
        let layer = TagClientLayer::new("store,*.inside".parse().unwrap());
        let forged = ("baggage", "user=7,tailwright-start=1");
        let own = "tailwright-start=5";
        let inside = async {
            assert_eq!(sent(&layer, "http://store:80/x", &[]).await, own);
            assert_eq!(sent(&layer, "http://a.inside/", &[forged]).await, format!("{own},user=7"));
            assert_eq!(sent(&layer, "/x", &[("host", "store:80")]).await, own);
            assert_eq!(sent(&layer, "/x", &[("host", "elsewhere"), forged]).await, "user=7");
            assert_eq!(sent(&layer, "http://elsewhere/", &[("host", "store"), forged]).await, "user=7");
            assert_eq!(sent(&layer, "/x", &[forged]).await, "user=7", "nobody knows where it goes");
            assert_eq!(sent(&layer.clone().to_host("store"), "/x", &[]).await, own);
        };
        with_tag(RequestTag::starting_at(5), inside).await;
        assert_eq!(sent(&layer, "http://store/", &[]).await, "", "a call for no request");
        let mut call = Request::get("http://store/").body(Empty::new()).expect("a request");
        call.extensions_mut().insert(RequestTag::starting_at(9));
        let response = layer.layer(Mirror).call(call).await.expect("it never fails");
        assert_eq!(response.into_body(), "tailwright-start=9");
    });
}

/// The tag as a handler saw it, and the baggage of a call by one of its tasks.
type Seen = Arc<Mutex<Vec<(RequestTag, Option<RequestTag>, String, String)>>>;

async fn calling(
    Extension(seen): Extension<Seen>,
    Extension(tag): Extension<RequestTag>,
    headers: HeaderMap,
) -> Response<String> {
    tokio::task::yield_now().await;
    let layer = TagClientLayer::new("store".parse().unwrap());
    let call = with_tag(tag, async move { sent(&layer, "http://store/", &[]).await });
    let called = tokio::spawn(call).await.expect("it does not fail");
    let received = headers["baggage"].to_str().unwrap().to_owned();
    seen.lock().unwrap().push((tag, current_tag(), received, called));
    let response = Response::builder().header("baggage", "mode=fast,tailwright-start=3");
    response.body("done".to_owned()).expect("a response")
}

#[test]
fn the_edge_stamps_whatever_a_client_claims() {
    run(async {
        let seen = Seen::default();
        let gate = gate(2, None);
        let edge = EdgeLayer::new(Edge::default().with_slo(slo(Duration::from_millis(1))), None, None);
        let router = Router::new().route("/", get(calling)).layer(Extension(Arc::clone(&seen)));
        let address = serve_router(router.layer(GateLayer::new(gate.clone())).layer(edge.clone())).await;
        let before = machine::clock::real_time();
        for version in [HttpVersion::One, HttpVersion::Two] {
            let mut forged = request(0, "answer");
            let claimed = format!("tailwright-start={},user=7", start_ns(0));
            forged.headers_mut().insert("baggage", claimed.parse().unwrap());
            let client = Client::new(version, address).await;
            let (status, headers, _) = collect(client.send(forged).await.expect("an answer")).await;
            assert_eq!((status, &headers["baggage"]), (200, &"mode=fast".parse().unwrap()), "{version:?}");
        }
        let seen = seen.lock().unwrap();
        for (tag, current, received, called) in &*seen {
            assert!(tag.start_ns >= before && *current == Some(*tag));
            let own =
                format!("tailwright-start={},tailwright-deadline={}", tag.start_ns, tag.start_ns + 1_000_000);
            assert_eq!((received, called), (&format!("{own},user=7"), &own));
        }
        assert!(seen[0].0.start_ns < seen[1].0.start_ns);
        assert_eq!((edge.statistics().left, gate.statistics().left), (2, 2));
    });
}

#[test]
fn the_window_has_others_wait_before_the_system() {
    run(async {
        let edge = EdgeLayer::new(Edge::default(), NonZeroU32::new(2), Some(1));
        let go_on = Arc::new(Semaphore::new(0));
        let gate = gate(1, None);
        let holds = |Extension(go_on): Extension<Arc<Semaphore>>| async move {
            go_on.acquire().await.expect("it stays open").forget();
        };
        let router = Router::new().route("/", get(holds)).layer(Extension(Arc::clone(&go_on)));
        let address = serve_router(router.layer(GateLayer::new(gate.clone())).layer(edge.clone())).await;
        let client = Client::new(HttpVersion::Two, address).await;
        let sent = [0, 1, 2].map(|start| spawn(&client, request(start, "answer")));
        testkit::wait_until(super::server::LONG, "two inside", || {
            let before = edge.statistics();
            let inside = gate.statistics();
            (before.waiting, before.serving, inside.waiting, inside.serving) == (1, 2, 1, 1)
        });
        let refused = client.send(request(3, "answer")).await.expect("an answer");
        assert_eq!(refused.status(), 503);
        go_on.add_permits(3);
        for mut task in sent {
            let response = (&mut task.0).await.expect("it is not aborted").expect("an answer");
            assert_eq!(response.status(), 200);
        }
        assert_empties(&gate);
        assert_eq!((edge.statistics().serving, edge.statistics().waiting), (0, 0));
    });
}

/// Paths in the order of service, with the SLO of each in nanoseconds.
type ServedPaths = Arc<Mutex<Vec<(String, u64)>>>;

async fn note_and_hold(
    Extension(served): Extension<ServedPaths>,
    Extension(go_on): Extension<Arc<Semaphore>>,
    Extension(tag): Extension<RequestTag>,
    uri: Uri,
) {
    let slo_ns = tag.deadline_ns.expect("it has one") - tag.start_ns;
    served.lock().unwrap().push((uri.path().to_owned(), slo_ns));
    go_on.acquire().await.expect("it stays open").forget();
}

/// The edge gives classes of requests their SLO, and the service serves the earliest deadline first.
#[test]
fn classes_have_deadlines_of_their_own() {
    run(async {
        let served = ServedPaths::default();
        let gate = gate(1, None);
        let go_on = Arc::new(Semaphore::new(0));
        let slo_of = |request: &http::request::Parts| {
            request.uri.path().starts_with("/search").then_some(slo(Duration::from_secs(50)))
        };
        let edge = EdgeLayer::new(Edge::default().with_slo(slo(Duration::from_secs(100))), None, None)
            .with_slo_of(slo_of);
        let order = TagOrder::Deadline { default_slo: slo(Duration::from_nanos(1)) };
        let router = Router::new()
            .fallback(get(note_and_hold))
            .layer(Extension(Arc::clone(&served)))
            .layer(Extension(Arc::clone(&go_on)));
        let address =
            serve_router(router.layer(GateLayer::new(gate.clone()).ordered_by(order)).layer(edge)).await;
        let client = Client::new(HttpVersion::Two, address).await;
        let mut sent = Vec::new();
        for (count, path) in ["first", "page", "search", "page2", "search2"].into_iter().enumerate() {
            let call = Request::get(format!("http://service/{path}")).body(Empty::new()).expect("a request");
            sent.push(spawn(&client, call));
            until(&gate, 1, count);
        }
        go_on.add_permits(5);
        for mut task in sent {
            assert_eq!((&mut task.0).await.expect("it is not aborted").expect("an answer").status(), 200);
        }
        let expected = [("/first", 100), ("/search", 50), ("/search2", 50), ("/page", 100), ("/page2", 100)];
        assert_eq!(*served.lock().unwrap(), expected.map(|(path, s)| (path.to_owned(), s * 1_000_000_000)));
    });
}

#[test]
fn tags_that_cannot_be_are_counted() {
    run(async {
        let layer = GateLayer::new(gate(1, None));
        let router = Router::new().route("/", get(|| async { "done" })).layer(layer.clone());
        let client = Client::new(HttpVersion::Two, serve_router(router).await).await;
        for value in ["tailwright-start=x", "user=7", "tailwright-start=18446744073709551615"] {
            let call = Request::get("http://service/").header("baggage", value);
            client.send(call.body(Empty::new()).unwrap()).await.expect("an answer");
        }
        let counts = layer.tag_counts();
        assert_eq!((counts.malformed, counts.untagged, counts.future, counts.accepted), (1, 1, 1, 0));
    });
}
