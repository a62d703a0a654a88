//! The description of the controller's interface: it is what the program has, every answer is as described, and a client
//! that knows nothing else can use it.

mod support;

use serde_json::{Value, json};
use std::collections::BTreeSet;
use support::openapi::{DOCUMENT, path_of};
use support::service::{HOSTS, Service};

fn bearer(service: &Service, name: &str) -> String {
    format!("authorization: Bearer {}", service.token(name))
}

const JSON: &str = "content-type: application/json";

/// Every operation of the document.
fn operations() -> Vec<(String, String, &'static Value)> {
    let mut found = Vec::new();
    for (path, methods) in DOCUMENT["paths"].as_object().expect("an object") {
        for (method, operation) in methods.as_object().expect("an object") {
            found.push((method.to_uppercase(), path.clone(), operation));
        }
    }
    found
}

/// A path with names that nothing has.
fn filled(path: &str) -> String {
    path.replace("{server}", "none").replace("{tenant}", "shop").replace("{name}", "none")
}

#[test]
fn the_description_is_current_and_needs_no_token() {
    let service = Service::start();
    let answer = service.send("GET", "/v1/openapi.json", &[], "");
    assert_eq!((answer.status, answer.header("content-type")), (200, Some("application/json")));
    let shown: Value = serde_json::from_str(&answer.body).expect("JSON");
    assert!(shown == *DOCUMENT, "docs/schemas/openapi.json: run `cargo run -- schemas docs/schemas`");
}

/// Every operation has a name of its own and a summary, and every reference leads to a part of the document.
#[test]
fn the_description_is_whole() {
    fn references<'a>(value: &'a Value, found: &mut Vec<&'a str>) {
        match value {
            Value::Object(fields) => {
                found.extend(fields.get("$ref").and_then(Value::as_str));
                fields.values().for_each(|field| references(field, found));
            }
            Value::Array(items) => items.iter().for_each(|item| references(item, found)),
            _ => {}
        }
    }
    let mut names = BTreeSet::new();
    for (method, path, operation) in operations() {
        let name = operation["operationId"].as_str().expect("a name");
        assert!(names.insert(name), "{method} {path}: {name} is the name of another operation");
        assert!(operation["summary"].as_str().is_some_and(|summary| !summary.is_empty()), "{name}");
    }
    let mut found = Vec::new();
    references(&DOCUMENT, &mut found);
    assert!(found.len() > 50, "{found:?}");
    for reference in found {
        let place = reference.strip_prefix('#').expect("a part of the document");
        assert!(DOCUMENT.pointer(place).is_some(), "{reference}");
    }
}

#[test]
fn roles_are_those_of_the_description() {
    let service = Service::start();
    service.issue("shop", &["--for-tenant", "shop"]);
    service.issue("scraper", &["--for-metrics"]);
    let tokens =
        [("operator", "cluster/operator"), ("tenant", "shop"), ("agent", "here"), ("metrics", "scraper")];
    let mut judged = 0;
    for (method, path, operation) in operations() {
        let roles: Vec<&str> =
            operation["x-roles"].as_array().expect("a list").iter().flat_map(Value::as_str).collect();
        // A stream does not end.
        if operation["operationId"] == "watch" {
            continue;
        }
        let needs_token = operation["security"].as_array().is_none_or(|security| !security.is_empty());
        assert_eq!(needs_token, !roles.is_empty(), "{path}");
        let body = match operation["operationId"].as_str().expect("a name") {
            "putClasses" => json!({ "safety_margin": 1.0, "classes": [] }),
            "issueToken" => json!({ "name": "operator", "role": "operator" }),
            "requestWorkload" | "askWhatIf" => {
                json!({ "tenant": "shop", "name": "a", "slo": "99% < 1s", "trace": "none", "clients": [] })
            }
            "renewWorkload" => json!({}),
            "report" => {
                json!({ "mode": "applying", "abilities": { "storage": [], "network": false }, "applied": 0 })
            }
            _ => Value::Null,
        };
        let body = if body.is_null() { String::new() } else { body.to_string() };
        let send = |headers: &[&str]| service.send(&method, &filled(&path), headers, &body).status;
        if needs_token {
            assert_eq!(send(&[JSON]), 401, "{method} {path}");
        }
        for (role, file) in tokens {
            let status = send(&[JSON, &bearer(&service, file)]);
            let may = !needs_token || roles.contains(&role);
            assert_eq!(status != 403, may, "{method} {path} by {role}: {status}");
            assert!(![401, 405].contains(&status), "{method} {path} by {role}: {status}");
            judged += 1;
        }
    }
    assert!(judged > 80, "{judged}");
}

/// Errors are JSON with a sentence, also those that no handler sees.
#[test]
fn errors_are_documents() {
    let service = Service::start();
    let operator = bearer(&service, "cluster/operator");
    for (method, path, headers, body, status) in [
        ("GET", "/v1/nowhere", &[][..], "", 404),
        ("DELETE", "/v1/servers", &[&*operator], "", 405),
        ("GET", "/v1/decisions?after=x", &[&*operator], "", 400),
        ("POST", "/v1/tokens", &[&*operator, JSON], "{", 400),
        ("POST", "/v1/tokens", &[&*operator, JSON], "{}", 422),
        ("POST", "/v1/tokens", &[&*operator], "{}", 415),
        ("POST", "/v1/traces", &[&*operator], "", 400),
        ("PUT", "/v1/hosts", &[&*operator, "if-match: \"other\""], HOSTS, 412),
        ("GET", "/v1/servers/none/policy", &[&*operator], "", 404),
        ("DELETE", "/v1/tokens/none", &[&*operator], "", 404),
        ("DELETE", "/v1/workloads/shop/none", &[&*operator], "", 404),
    ] {
        let answer = service.send(method, path, headers, body);
        assert_eq!(answer.status, status, "{method} {path}: {answer:?}");
        let said: Value = serde_json::from_str(&answer.body).expect("JSON");
        assert!(said["error"].as_str().is_some_and(|error| error.len() > 10), "{method} {path}: {said}");
    }
    // What is refused before it is read is answered all the same.
    let long = "x".repeat(65 << 20);
    for (path, headers, status) in [
        ("/v1/tokens", &[&*operator, JSON][..], 413),
        ("/v1/tokens", &[JSON], 401),
        ("/v1/nowhere", &[], 404),
        ("/v1/traces?file=a.csv&tenant=shop", &[&*operator], 413),
    ] {
        let answer = service.send("POST", path, headers, &long);
        assert_eq!(answer.status, status, "{path}: {answer:?}");
    }
    let uploads = std::fs::read_dir(service.folder.join("cluster/uploads")).map_or(0, Iterator::count);
    assert_eq!(uploads, 0, "nothing is left of a trace that was refused");
}

/// The whole life of a workload. `Service` judges every answer by the description.
#[test]
fn answers_are_as_described() {
    let mut service = Service::start();
    let operator = bearer(&service, "cluster/operator");
    let get = |service: &Service, path: &str| -> Value {
        let answer = service.send("GET", path, &[&operator], "");
        assert_eq!(answer.status, 200, "{path}: {answer:?}");
        serde_json::from_str(&answer.body).expect("JSON")
    };
    let trace = service.folder.read("mail.csv");
    let sent = service.send("POST", "/v1/traces?file=mail.csv&tenant=shop", &[&operator], &trace);
    let trace: Value = serde_json::from_str(&sent.body).expect("JSON");
    let ask = |service: &Service, path: &str, name: &str, slo: &str, more: &[&str]| -> Value {
        let clients = json!([{ "address": [format!("127.0.0.{}", 2 + name.len())] }]);
        let question = json!({ "tenant": "shop", "name": name, "slo": slo, "trace": trace["trace"], "clients": clients });
        let answer =
            service.send("POST", path, &[&[JSON, &operator][..], more].concat(), &question.to_string());
        assert_eq!(answer.status, 200, "{answer:?}");
        serde_json::from_str(&answer.body).expect("JSON")
    };

    // A question without commitment is answered as the request after it, and leaves no trace in the store.
    let history = |service: &Service| get(service, "/v1/events")["events"].as_array().expect("a list").len();
    let bytes = |service: &Service| {
        ["history.db", "history.db-wal"]
            .map(|file| std::fs::read(service.folder.join(&format!("cluster/{file}"))).ok())
    };
    let before = bytes(&service);
    let events = history(&service);
    let slos = [("mail", "99% < 100ms"), ("web", "99% < 150ms"), ("hasty", "99% < 500us")];
    for (name, slo) in slos {
        let supposed = ask(&service, "/v1/what-if", name, slo, &[]);
        assert_eq!(
            (history(&service), bytes(&service) == before),
            (events, true),
            "{name}: nothing is stored"
        );
        assert_eq!(supposed["seq"], Value::Null);
        assert_eq!(ask(&service, "/v1/what-if", name, slo, &[]), supposed, "it can be asked again");
    }
    for (name, slo) in slos {
        let supposed = ask(&service, "/v1/what-if", name, slo, &[]);
        let key = format!("idempotency-key: {name}");
        let decided = ask(&service, "/v1/workloads", name, slo, &[&key]);
        for field in ["answer", "reason", "tenant", "name"] {
            assert_eq!(supposed[field], decided[field], "{name}: {field}");
        }
        for field in ["slo", "server", "bound_s", "assumptions"] {
            assert_eq!(supposed["workload"][field], decided["workload"][field], "{name}: {field}");
        }
        if decided["answer"] == "admitted" {
            let shown = get(&service, &format!("/v1/workloads/shop/{name}"));
            assert_eq!(shown["derivation"], supposed["workload"]["derivation"], "{name}");
        }
    }
    // A repeated request gets the answer of the first one.
    let events = history(&service);
    assert_eq!(
        ask(&service, "/v1/workloads", "mail", "99% < 100ms", &["idempotency-key: mail"])["answer"],
        "admitted"
    );
    assert_eq!(history(&service), events);
    service.apply();
    for path in [
        "/healthz",
        "/v1/classes",
        "/v1/hosts",
        "/v1/servers",
        "/v1/servers/cache-1/policy",
        "/v1/agents",
        "/v1/workloads",
        "/v1/workloads/shop/mail?wait_s=1",
        "/v1/decisions",
        "/v1/decisions?limit=1",
        "/v1/events",
        "/v1/observations",
        "/metrics",
        "/v1/tokens",
    ] {
        assert!(path_of(path).is_some(), "{path}");
        let answer = service.send("GET", path, &[&operator], "");
        assert_eq!(answer.status, 200, "{path}: {answer:?}");
    }
    // Pages have every workload once, in the order of names, and the command line follows them.
    for (path, list) in [("/v1/workloads", "workloads"), ("/v1/observations", "observations")] {
        let names = |page: &Value| -> Vec<String> {
            let entries = page[list].as_array().expect("a list").iter();
            entries.map(|entry| entry["name"].as_str().expect("a name").to_owned()).collect()
        };
        let all = get(&service, path);
        assert_eq!((names(&all), &all["next"]), (vec!["mail".to_owned(), "web".to_owned()], &Value::Null));
        let first = get(&service, &format!("{path}?limit=1"));
        assert_eq!((names(&first), &first["next"]), (vec!["mail".to_owned()], &json!("shop/mail")));
        let second = get(&service, &format!("{path}?limit=1&after=shop%2Fmail"));
        assert_eq!((names(&second), &second["next"]), (vec!["web".to_owned()], &Value::Null));
        for (after, left) in [("shop", 2), ("shop%2Fz", 0), ("zoo", 0), ("shop%2Fmail%2F", 1)] {
            let page = get(&service, &format!("{path}?after={after}"));
            assert_eq!(names(&page).len(), left, "{after}");
        }
        let listed = service.ctl(&["list", list]).expect_code(0).json();
        assert_eq!(listed.as_array().map(Vec::len), Some(2));
    }
    let listed = service.ctl(&["list", "decisions"]).expect_code(0).json();
    assert_eq!(listed["decisions"].as_array().map(Vec::len), Some(3));

    let removed = service.send("DELETE", "/v1/workloads/shop/mail", &[&operator], "");
    assert_eq!((removed.status, removed.body.as_str()), (204, ""));
}
