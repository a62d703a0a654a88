//! Renewals over the interface of a controller, with an agent that the test plays: the traffic decides, a refusal changes
//! nothing, and no tenant renews the workload of another.

mod support;

use model::{PerStage, Stage};
use serde_json::{Value, json};
use support::service::{Answer, Service};
use units::{Nanos, Work};
use workload::burst::{BurstCurve, StageArrival};
use workload::live::{LargestRequest, StageCurves};

/// Device time of a request of 1 KiB at 100 MB/s, thousandths of a nanosecond.
const WORK: u64 = 10_240_000;
const JSON: &str = "content-type: application/json";
const MAIL: &str = "/v1/workloads/shop/mail";

/// Instants of `batches` of so many requests at once, one a second, nanoseconds.
fn batches(of: u64, batches: u64) -> Vec<u64> {
    (0..batches).flat_map(|second| (0..of).map(move |_| second * 1_000_000_000)).collect()
}

/// Burst curves of requests at these instants.
fn curves(arrivals: &[u64]) -> StageCurves {
    let work = PerStage::from_fn(|stage| Work(if stage == Stage::Storage { WORK } else { 1_024_000 }));
    let curve = |stage: Stage| {
        let arrivals = arrivals.iter().map(|&at| StageArrival { at: Nanos(at), work: work[stage] });
        BurstCurve::from_arrivals(&arrivals.collect::<Vec<_>>()).expect("some arrivals")
    };
    StageCurves::new(Stage::ALL.map(curve), Some(LargestRequest::of(&work)))
}

/// Reports requests of a workload, as chunk `number` of its proxy.
fn sends(service: &mut Service, workload: &str, number: u64, arrivals: &[u64]) {
    let chunk = json!({ "number": number, "workload": workload, "curves": curves(arrivals) });
    let observations = json!([{ "server": "cache-1", "counters": "a", "waiting": 0, "outstanding": 0,
        "workloads": [], "curves": { "identity": "a", "chunks": [chunk] } }]);
    service.observe(&observations);
}

fn bearer(service: &Service, name: &str) -> String {
    format!("authorization: Bearer {}", service.token(name))
}

fn read(answer: &Answer) -> Value {
    serde_json::from_str(&answer.body).unwrap_or_else(|error| panic!("{error}: {answer:?}"))
}

/// Asks for a renewal as a tenant.
fn renew(service: &Service, tenant: &str, path: &str, question: &Value, more: &[&str]) -> Answer {
    let token = bearer(service, tenant);
    let headers = [&[JSON, &token][..], more].concat();
    service.send("POST", &format!("{path}/renewal"), &headers, &question.to_string())
}

fn get(service: &Service, path: &str) -> Answer {
    service.send("GET", path, &[&bearer(service, "shop")], "")
}

/// Rate and burst that the proxy enforces for a workload at the storage, nanoseconds.
fn bucket(service: &Service, name: &str) -> (f64, f64) {
    let operator = bearer(service, "cluster/operator");
    let policy = read(&service.send("GET", "/v1/servers/cache-1/policy", &[&operator], ""));
    let workloads = policy["workloads"].as_array().expect("a list");
    let found = workloads.iter().find(|workload| workload["name"] == name).expect("a member");
    let limits = found["limits"].as_array().expect("a list");
    let storage = limits.iter().find(|limit| limit["stage"] == "storage").expect("a limit");
    let number = |name: &str| storage[name].as_f64().unwrap_or_else(|| panic!("{name}: {storage}"));
    (number("rate"), number("burst") * 1e9)
}

/// Returns true if a token bucket delays none of these requests, by playing it.
fn passes((rate, burst): (f64, f64), arrivals: &[u64]) -> bool {
    let mut tokens = burst;
    let mut last = 0;
    arrivals.iter().all(|&at| {
        tokens = (tokens + rate * (at - last) as f64).min(burst) - WORK as f64 / 1e3;
        last = at;
        tokens >= 0.0
    })
}

fn service() -> Service {
    let mut service = Service::start();
    service.issue("shop", &["--for-tenant", "shop"]);
    service.issue("bank", &["--for-tenant", "bank"]);
    service.request("shop", "mail", "99% < 100ms", "127.0.0.6").expect_code(0);
    service.request("bank", "web", "99% < 150ms", "127.0.0.7").expect_code(0);
    service.apply();
    service
}

#[test]
fn a_workload_that_outgrew_its_promise_gets_one_that_holds() {
    let mut service = service();
    let kept = read(&renew(&service, "shop", MAIL, &json!({}), &[]));
    assert_eq!(kept["answer"], "kept", "{kept}");
    assert!(kept["reason"].as_str().expect("a reason").contains("nothing was seen"), "{kept}");

    let sent = batches(1000, 12);
    sends(&mut service, "shop/mail", 1, &sent);
    assert!(!passes(bucket(&service, "shop/mail"), &sent), "it outgrew its limits");
    let before = get(&service, MAIL);
    let tag = before.header("etag").expect("a tag").to_owned();

    // A question changes nothing; another tenant gets no answer.
    let what_if = read(&get(&service, &format!("{MAIL}/renewal")));
    assert_eq!(what_if["answer"], "renewed", "{what_if}");
    assert_eq!(get(&service, MAIL).body, before.body);
    for path in [MAIL, "/v1/workloads/bank/mail"] {
        let foreign = renew(&service, "bank", path, &json!({}), &[]).status;
        assert!([403, 404].contains(&foreign), "{path}: {foreign}");
    }
    assert_eq!(renew(&service, "shop", MAIL, &json!({}), &["if-match: \"other\""]).status, 412);

    let matching = format!("if-match: {tag}");
    let decided = renew(&service, "shop", MAIL, &json!({}), &[&matching, "idempotency-key: r1"]);
    let decided = read(&decided);
    assert_eq!(decided["answer"], "renewed", "{decided}");
    let reason = decided["reason"].as_str().expect("a reason");
    assert!(reason.contains("12000 requests") || reason.contains("12,000 requests"), "{reason}");
    assert!(reason.contains("storage: ") && reason.contains("instead of"), "{reason}");
    assert!(reason.contains("at other times was not seen"), "{reason}");
    assert_eq!(what_if["workload"]["bound_s"], decided["workload"]["bound_s"]);
    // The old promise stands until the host has confirmed.
    assert_eq!(
        (&decided["workload"]["standing"], &decided["workload"]["renewing"]),
        (&json!("enforced"), &json!(true))
    );
    let again = read(&renew(&service, "shop", MAIL, &json!({}), &["idempotency-key: r1"]));
    assert_eq!(again["seq"], decided["seq"], "a repeated request gets the answer of the first");
    assert_eq!(renew(&service, "shop", MAIL, &json!({}), &[]).status, 409, "the last one is on its way");
    assert_eq!(renew(&service, "shop", MAIL, &json!({}), &[&matching]).status, 412);

    service.apply();
    let after = read(&get(&service, MAIL));
    assert_eq!((&after["renewing"], &after["renewed_by"]), (&json!(false), &decided["seq"]));
    assert_eq!(after["covers"], "the trace and live traffic");
    assert!(after["bound_s"].as_f64().expect("a bound") < 0.1, "{after}");
    assert!(passes(bucket(&service, "shop/mail"), &sent), "the limits hold");
    let web = read(&service.send("GET", "/v1/workloads/bank/web", &[&bearer(&service, "bank")], ""));
    assert_eq!(web["standing"], "enforced");
    assert!(web["bound_s"].as_f64().expect("a bound") < 0.15, "the SLO of the others stands: {web}");
    let kept = read(&renew(&service, "shop", MAIL, &json!({}), &[]));
    assert!(kept["reason"].as_str().expect("a reason").contains("covers all that it sent"), "{kept}");
}

#[test]
fn a_refusal_and_a_host_that_refuses_leave_the_promise_as_it_was() {
    let mut service = service();
    let before = get(&service, MAIL).body;
    let limits = bucket(&service, "shop/mail");
    // 30,000 requests at once take 307 ms of the device.
    sends(&mut service, "shop/mail", 1, &batches(30_000, 2));
    let kept = read(&renew(&service, "shop", MAIL, &json!({}), &[]));
    assert_eq!(kept["answer"], "kept", "{kept}");
    let reason = kept["reason"].as_str().expect("a reason");
    assert!(reason.contains("would be admitted with") || reason.contains("SLO"), "{reason}");
    assert!(!reason.contains("bank/"), "it names a workload of another: {reason}");
    assert_eq!(get(&service, MAIL).body, before);

    let web = "/v1/workloads/bank/web";
    let sent = batches(500, 3);
    sends(&mut service, "bank/web", 2, &sent);
    let web_limits = bucket(&service, "bank/web");
    let renewed = read(&renew(&service, "bank", web, &json!({}), &[]));
    assert_eq!(renewed["answer"], "renewed", "{renewed}");
    service.refuse("the words of the host, about shop/mail");
    service.apply();
    let bank = bearer(&service, "bank");
    let decisions = read(&service.send("GET", "/v1/decisions", &[&bank], ""));
    let last = decisions["decisions"].as_array().and_then(|all| all.last()).expect("a decision");
    assert_eq!(last["answer"], "renewal-withdrawn", "{last}");
    assert!(!last["reason"].as_str().expect("a reason").contains("shop"), "{last}");
    let shown = read(&service.send("GET", web, &[&bank], ""));
    assert_eq!((&shown["covers"], &shown["standing"]), (&json!("the trace"), &json!("enforced")));
    assert_eq!((bucket(&service, "bank/web"), bucket(&service, "shop/mail")), (web_limits, limits));
    assert_eq!(get(&service, MAIL).body, before);
}

#[test]
fn what_is_not_used_can_be_given_back() {
    let mut service = service();
    let sent = batches(1, 12);
    sends(&mut service, "shop/mail", 1, &sent);
    let (rate, _) = bucket(&service, "shop/mail");
    let unused = read(&renew(&service, "shop", MAIL, &json!({}), &[]));
    let reason = unused["reason"].as_str().expect("a reason");
    assert!(reason.contains("not used: ") && reason.contains("gives it back"), "{reason}");
    let soon = read(&renew(&service, "shop", MAIL, &json!({ "give_back": true }), &[]));
    let reason = soon["reason"].as_str().expect("a reason");
    assert!(soon["answer"] == "kept" && reason.contains("less than 24 hours is too little"), "{soon}");

    let question = json!({ "give_back": true, "observed_min_s": 10 });
    let given = read(&renew(&service, "shop", MAIL, &question, &[]));
    assert_eq!((&given["answer"], &given["workload"]["covers"]), (&json!("renewed"), &json!("live traffic")));
    service.apply();
    let smaller = bucket(&service, "shop/mail");
    assert!(smaller.0 < rate && passes(smaller, &sent), "{smaller:?} instead of {rate}");
    // It survives a restart of the controller, which has seen nothing of its traffic.
    let before = get(&service, MAIL).body;
    service.run_controller();
    service.apply();
    assert_eq!(get(&service, MAIL).body, before);
    assert_eq!(bucket(&service, "shop/mail"), smaller);
}

#[test]
fn the_command_line_says_what_was_decided() {
    let mut service = service();
    service.ctl_as("shop", &["renew", "mail", "--what-if"]).expect_code(1);
    sends(&mut service, "shop/mail", 1, &batches(1000, 12));
    let what_if = service.ctl_as("shop", &["renew", "mail", "--what-if"]).expect_code(0).stdout;
    assert!(what_if.contains("nothing was changed") && what_if.contains("seen: "), "{what_if}");
    let larger = ["renew", "mail", "--give-back", "--observed-min", "1s"];
    let no = service.ctl_as("shop", &larger).expect_code(1).stdout;
    assert!(no.contains("keeps its promise as it was: ") && no.contains("without giving back"), "{no}");
    service.ctl_as("bank", &["renew", "mail"]).expect_code(2);
    service.ctl_as("bank", &["renew", "mail", "--tenant", "shop"]).expect_code(2);
    let yes = service.ctl_as("shop", &["renew", "mail", "--no-wait"]).expect_code(0).stdout;
    assert!(yes.starts_with("yes: shop/mail, at most ") && yes.contains("have not confirmed"), "{yes}");
}
