//! Deadlines by the classes of a policy: the entry point stamps them, ignoring clients' claims, and an
//! inner service serves the earliest first.

use super::server::{Client, HttpVersion, collect, gate, run, serve_router, spawn, until};
use axum::routing::get;
use axum::{Extension, Router};
use gat::{ClassSlos, Edge, SloError};
use http::{HeaderMap, Request, Uri};
use http_body_util::Empty;
use model::Policy;
use schedule_tower::{EdgeLayer, GateLayer};
use std::sync::{Arc, Mutex};
use tokio::sync::Semaphore;

/// Output of `tailwright plan -o`, for two classes and a refused one.
const POLICY: &str = r#"{"format":"tailwright.policy","version":1,"policy_name":"tailwright","servers":[
    {"name":"ssd-1","class":"ssd","network_bytes_per_s":1e8,"storage_profile":"x"}],"workloads":[
    {"name":"web","admitted":true,"server":"ssd-1","priority":0,"slo":"99.9% < 10s","slo_percentile":99.9,"slo_s":10,
     "bound_s":1,"limits":[]},
    {"name":"batch","admitted":true,"server":"ssd-1","priority":1,"slo":"99% < 1000s","slo_percentile":99,"slo_s":1000,
     "bound_s":1,"limits":[]},
    {"name":"copy","admitted":false,"server":null,"priority":null,"slo":"99% < 1s","slo_percentile":99,"slo_s":1,
     "bound_s":null,"limits":[]}]}"#;

type ServedPaths = Arc<Mutex<Vec<String>>>;

/// The store: records the request, and works until released.
async fn hold(
    Extension(served): Extension<ServedPaths>,
    Extension(go_on): Extension<Arc<Semaphore>>,
    uri: Uri,
) {
    served.lock().unwrap().push(uri.path().to_owned());
    go_on.acquire().await.expect("it stays open").forget();
}

/// The service at the entry point: calls the store with the tag of its request.
async fn forward(Extension(store): Extension<Client>, uri: Uri, headers: HeaderMap) {
    let call = Request::get(format!("http://store{}", uri.path())).header("baggage", &headers["baggage"]);
    let answer = store.send(call.body(Empty::new()).expect("a request")).await.expect("an answer");
    assert_eq!(collect(answer).await.0, 200);
}

#[test]
fn the_classes_of_a_policy_are_served_by_deadline() {
    let policy = Policy::from_json(POLICY).expect("a policy");
    let classes = ClassSlos::new(policy.slo_latencies()).expect("classes");
    let web = classes.of("web").expect("a class");
    let batch = classes.of("batch").expect("a class");
    let refused = classes.of("copy").expect_err("it has no guarantee");
    assert!(
        matches!(refused, SloError::Unknown { ref known, .. } if *known == ["batch", "web"]),
        "{refused}"
    );
    run(async move {
        let served = ServedPaths::default();
        let gate = gate(1, None);
        let go_on = Arc::new(Semaphore::new(0));
        let store = Router::new().fallback(get(hold)).layer(Extension(Arc::clone(&served)));
        let store = store.layer(Extension(Arc::clone(&go_on)));
        let inside = GateLayer::new(gate.clone()).ordered_by(classes.order());
        let store = serve_router(store.layer(inside.clone())).await;
        let calls = Client::new(HttpVersion::Two, store).await;
        let class_of = move |request: &http::request::Parts| match request.uri.path().starts_with("/web") {
            true => Some(web),
            false => Some(batch),
        };
        let edge = EdgeLayer::new(Edge::default(), None, None).with_slo_of(class_of);
        let entry = Router::new().fallback(get(forward)).layer(Extension(calls)).layer(edge);
        let client = Client::new(HttpVersion::Two, serve_router(entry).await).await;
        let mut sent = Vec::new();
        // Each request of the class with the longer SLO claims to be older and due earlier than all
        // others.
        let forged = "tailwright-start=1699999999000000000,tailwright-deadline=1700000000000000000";
        let hidden = "%74ailwright-deadline=1,Tailwright-Start=1,user=7";
        let requests = [("/batch/first", forged), ("/batch/a", forged), ("/batch/b", hidden)];
        for (count, (path, baggage)) in
            requests.into_iter().chain([("/web/a", "user=7"), ("/web/b", "user=7")]).enumerate()
        {
            let call = Request::get(format!("http://entry{path}")).header("baggage", baggage);
            sent.push(spawn(&client, call.body(Empty::new()).expect("a request")));
            until(&gate, 1, count);
        }
        go_on.add_permits(5);
        for mut task in sent {
            assert_eq!((&mut task.0).await.expect("it is not aborted").expect("an answer").status(), 200);
        }
        assert_eq!(*served.lock().unwrap(), ["/batch/first", "/web/a", "/web/b", "/batch/a", "/batch/b"]);
        assert_eq!(inside.tag_counts().accepted, 5);
    });
}
