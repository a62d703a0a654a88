//! The operations of the interface: the one list that the router and its description are made of.

use crate::cluster::Cluster;
use crate::description::document;
use crate::documents::{
    AgentDocument, DecisionDocument, DecisionPage, EventPage, IssuedToken, ObservationPage, RenewalQuestion,
    ServerDocument, TokenDocument, TokenRequest, TraceDocument, WorkloadDocument, WorkloadPage,
    WorkloadQuestion,
};
use crate::error::errors_as_json;
use crate::limits::{BODY_MAX, REPORT_MAX};
use crate::observations::{list_observations, show_metrics};
use crate::operation::{Operation, RoleName, any_json, bytes, event_stream, json_of, open_metrics, text};
use crate::pages;
use crate::refused_bodies::receive_refused_bodies;
use crate::renewals::{ask_renewal, renew};
use crate::routes::{
    HostsQuery, NameQuery, PageQuery, TraceQuery, WaitQuery, describe_classes, describe_hosts, health,
    issue_token, list_agents, list_decisions, list_events, list_servers, list_tokens, list_workloads, remove,
    report, request, revoke_token, send_trace, show_classes, show_hosts, show_policy, show_workload, what_if,
};
use crate::watch::{WatchQuery, watch};
use agent::{AgentAnswer, AgentReport};
use axum::Router;
use axum::extract::DefaultBodyLimit;
use axum::http::header::CONTENT_TYPE;
use axum::middleware::{from_fn, map_response};
use axum::response::IntoResponse;
use controller::ClassesDescription;
use model::Policy;
use std::sync::{Arc, OnceLock};

const OPERATORS: &[RoleName] = &[RoleName::Operator];
const TENANTS: &[RoleName] = &[RoleName::Operator, RoleName::Tenant];
const AGENTS: &[RoleName] = &[RoleName::Agent];
const SCRAPERS: &[RoleName] = &[RoleName::Operator, RoleName::Metrics];

const IF_MATCH: &str =
    "Entity tag of the description that is to be replaced; with another one nothing is replaced.";
const IF_MATCH_WORKLOAD: &str =
    "Entity tag of the workload; if its promise has been decided again, nothing is changed.";
const IDEMPOTENCY: &str = "Key of 1 to 200 characters by which a repeated request is told from a new one: it gets the answer \
    that was given then.";

pub(crate) fn routes(cluster: Arc<Cluster>) -> Router {
    let mut router = Router::new();
    for operation in operations() {
        router = router.route(operation.path, operation.handler);
    }
    router
        .merge(pages::routes())
        .layer(DefaultBodyLimit::max(BODY_MAX))
        .layer(map_response(errors_as_json))
        .layer(from_fn(receive_refused_bodies))
        .with_state(cluster)
}

/// Returns the description of the interface as an OpenAPI document.
pub fn description() -> &'static str {
    static TEXT: OnceLock<String> = OnceLock::new();
    TEXT.get_or_init(|| {
        let document = document(&operations());
        serde_json::to_string_pretty(&document).expect("JSON") + "\n"
    })
}

async fn show_description() -> impl IntoResponse {
    ([(CONTENT_TYPE, "application/json")], description())
}

pub(crate) fn operations() -> Vec<Operation> {
    let mut operations = of_operators();
    operations.extend(of_tenants());
    operations.extend(of_programs());
    operations
}

fn of_operators() -> Vec<Operation> {
    vec![
        Operation::put("/v1/classes", "putClasses", describe_classes)
            .does("Describe the classes of servers, in place of those before")
            .detail("Refused while a promise rests on what would change.")
            .by(OPERATORS)
            .header("If-Match", IF_MATCH)
            .takes(json_of::<ClassesDescription>)
            .tagged()
            .errors(&[409, 412, 415, 422]),
        Operation::get("/v1/classes", "getClasses", show_classes)
            .does("Show the classes of servers; null before they are described")
            .by(TENANTS)
            .answers(json_of::<Option<ClassesDescription>>)
            .tagged(),
        Operation::put("/v1/hosts", "putHosts", describe_hosts)
            .does("Describe hosts and servers by a hosts file, in place of the one before")
            .detail("Refused while a promise rests on what would change.")
            .by(OPERATORS)
            .query::<HostsQuery>()
            .header("If-Match", IF_MATCH)
            .takes(text)
            .tagged()
            .errors(&[409, 412]),
        Operation::get("/v1/hosts", "getHosts", show_hosts)
            .does("Show the hosts file; empty before there is one")
            .by(OPERATORS)
            .answers(text)
            .tagged(),
        Operation::get("/v1/servers", "listServers", list_servers)
            .does("List servers")
            .by(OPERATORS)
            .answers(json_of::<Vec<ServerDocument>>),
        Operation::get("/v1/servers/{server}/policy", "getPolicy", show_policy)
            .does("Show the latest policy of a server")
            .by(OPERATORS)
            .answers(json_of::<Policy>)
            .errors(&[404]),
        Operation::get("/v1/agents", "listAgents", list_agents)
            .does("List the agents of hosts")
            .by(OPERATORS)
            .answers(json_of::<Vec<AgentDocument>>),
        Operation::get("/v1/events", "listEvents", list_events)
            .does("List the history, oldest first")
            .by(OPERATORS)
            .query::<PageQuery>()
            .answers(json_of::<EventPage>)
            .errors(&[507]),
        Operation::post("/v1/tokens", "issueToken", issue_token)
            .does("Issue a token, which is answered once")
            .by(OPERATORS)
            .takes(json_of::<TokenRequest>)
            .answers(json_of::<IssuedToken>)
            .errors(&[409, 415, 422]),
        Operation::get("/v1/tokens", "listTokens", list_tokens)
            .does("List tokens without their secrets")
            .by(OPERATORS)
            .answers(json_of::<Vec<TokenDocument>>),
        Operation::delete("/v1/tokens/{name}", "revokeToken", revoke_token)
            .does("Revoke a token")
            .by(OPERATORS)
            .errors(&[404, 409]),
    ]
}

fn of_tenants() -> Vec<Operation> {
    vec![
        Operation::post("/v1/traces", "sendTrace", send_trace)
            .does("Send the trace of a workload")
            .detail("At most 64 MiB, 2 GiB when decompressed, and 50 million requests. Requests name it by the hash that is answered.")
            .by(TENANTS)
            .query::<TraceQuery>()
            .takes(bytes)
            .answers(json_of::<TraceDocument>)
            .errors(&[408, 409]),
        Operation::post("/v1/workloads", "requestWorkload", request)
            .does("Ask for a guarantee")
            .detail("A refusal is an answer, too: `answer` says which it is. An operator names the tenant.")
            .by(TENANTS)
            .header("Idempotency-Key", IDEMPOTENCY)
            .takes(json_of::<WorkloadQuestion>)
            .answers(json_of::<DecisionDocument>)
            .errors(&[404, 409, 415, 422]),
        Operation::post("/v1/what-if", "askWhatIf", what_if)
            .does("Answer a request without commitment")
            .detail("The answer that the request would get now. Nothing is stored.")
            .by(TENANTS)
            .takes(json_of::<WorkloadQuestion>)
            .answers(json_of::<DecisionDocument>)
            .errors(&[404, 409, 415, 422]),
        Operation::get("/v1/workloads", "listWorkloads", list_workloads)
            .does("List workloads, by name")
            .by(TENANTS)
            .query::<NameQuery>()
            .answers(json_of::<WorkloadPage>),
        Operation::get("/v1/workloads/{tenant}/{name}", "getWorkload", show_workload)
            .does("Show a workload with the derivation of its bound")
            .detail("With `wait_s`, the answer comes when it is enforced, or after that time.")
            .by(TENANTS)
            .query::<WaitQuery>()
            .answers(json_of::<WorkloadDocument>)
            .tagged()
            .errors(&[404]),
        Operation::post("/v1/workloads/{tenant}/{name}/renewal", "renewWorkload", renew)
            .does("Ask for a decision on a guarantee again, by what its clients sent")
            .detail("`renewed`, or `kept` with the reason: then the promise stays as it was.")
            .by(TENANTS)
            .header("If-Match", IF_MATCH_WORKLOAD)
            .header("Idempotency-Key", IDEMPOTENCY)
            .takes(json_of::<RenewalQuestion>)
            .answers(json_of::<DecisionDocument>)
            .errors(&[404, 409, 412, 415, 422]),
        Operation::get("/v1/workloads/{tenant}/{name}/renewal", "askRenewal", ask_renewal)
            .does("Answer a request for a renewal without commitment")
            .detail("The answer that the request would get now. Nothing is stored.")
            .by(TENANTS)
            .query::<RenewalQuestion>()
            .answers(json_of::<DecisionDocument>)
            .errors(&[404, 409]),
        Operation::delete("/v1/workloads/{tenant}/{name}", "removeWorkload", remove)
            .does("Give up a guarantee")
            .by(TENANTS)
            .errors(&[404, 409]),
        Operation::get("/v1/decisions", "listDecisions", list_decisions)
            .does("List decisions, oldest first")
            .by(TENANTS)
            .query::<PageQuery>()
            .answers(json_of::<DecisionPage>),
        Operation::get("/v1/observations", "listObservations", list_observations)
            .does("List what proxies saw of the requests of workloads, with verdicts, by name")
            .by(TENANTS)
            .query::<NameQuery>()
            .answers(json_of::<ObservationPage>),
        Operation::get("/v1/watch", "watch", watch)
            .does("Stream what happens, as server-sent events")
            .detail("Operators get `event` with an event of the history; tenants `decision` and `workload`. `id` is the position in \
                     the history; `Last-Event-ID` resumes after it. The session of a browser opens it, too.")
            .by(TENANTS)
            .query::<WatchQuery>()
            .header("Last-Event-ID", "Position in the history after which the stream goes on.")
            .answers(event_stream)
            .errors(&[429]),
    ]
}

fn of_programs() -> Vec<Operation> {
    vec![
        Operation::get("/healthz", "getHealth", health)
            .does("Say whether the controller decides")
            .detail("503 if it does not.")
            .answers(text),
        Operation::get("/v1/openapi.json", "getDescription", show_description)
            .does("Show this document")
            .answers(any_json),
        Operation::get("/metrics", "getMetrics", show_metrics)
            .does("Show metrics for Prometheus")
            .by(SCRAPERS)
            .answers(open_metrics),
        Operation::post("/v1/agent/report", "report", report)
            .does("Report the state of a host")
            .detail(
                "For agents. The answer has the assignment of the host, after at most `wait_s` without news.",
            )
            .by(AGENTS)
            .query::<WaitQuery>()
            .takes(json_of::<AgentReport>)
            .body_max(REPORT_MAX)
            .answers(json_of::<AgentAnswer>)
            .errors(&[404, 415, 422]),
    ]
}
