//! Handlers of the operations.

use crate::caller::Caller;
use crate::cluster::{Cluster, ClusterCore};
use crate::documents::{
    AgentDocument, DecisionDocument, DecisionPage, EventPage, IssuedToken, ServerDocument, TokenDocument,
    TokenRequest, TraceDocument, WorkloadDocument, WorkloadPage, WorkloadQuestion,
};
use crate::error::ApiError;
use crate::handler::{Shared, blocking};
use crate::idempotency::{idempotency_key, used_key};
use crate::privacy::{decision_for, derivation_for};
use crate::resource::{Resource, promise_tag, replace};
use crate::secret::{hash_of_secret, new_secret};
use crate::uploads::{Upload, profiles};
use agent::{AgentAnswer, AgentReport, ClientPlace, WorkloadClients, hosts_file};
use axum::Json;
use axum::body::Body;
use axum::extract::{Path, Query, State};
use axum::http::header::ETAG;
use axum::http::{HeaderMap, StatusCode};
use axum::response::{IntoResponse as _, Response};
use controller::{
    ClassesDescription, Command, Event, HostsDescription, NetworkEnforcement, ReportOutcome, ServerPlace,
    TokenRecord, WorkloadRequest, full_name,
};
use enforce::deployment::Deployment;
use model::Policy;
use schemars::JsonSchema;
use serde::Deserialize;
use std::sync::Arc;
use std::time::Duration;
use tokio::time::{Instant, timeout_at};

/// Longest wait for news, seconds.
const WAIT_MAX_S: u64 = 60;
/// Workloads, decisions and events of one page.
const PAGE_MAX: usize = 1000;
/// Workloads that are described under one lock.
const LOCKED_MAX: usize = 100;

pub(crate) async fn health(State(cluster): Shared) -> (StatusCode, &'static str) {
    if cluster.is_healthy() {
        (StatusCode::OK, "ok\n")
    } else {
        (StatusCode::SERVICE_UNAVAILABLE, "the controller decides nothing; restart it\n")
    }
}

pub(crate) async fn describe_classes(
    caller: Caller,
    State(cluster): Shared,
    headers: HeaderMap,
    Json(described): Json<ClassesDescription>,
) -> Result<Response, ApiError> {
    caller.operates()?;
    replace(cluster, headers, Resource::Classes, Command::DescribeClasses(described)).await
}

pub(crate) async fn show_classes(caller: Caller, State(cluster): Shared) -> Result<Response, ApiError> {
    caller.sees()?;
    Ok(Resource::Classes.show(cluster.lock().controller.state()))
}

#[derive(Deserialize, JsonSchema)]
pub(crate) struct HostsQuery {
    /// Keeper of the limits of networks.
    #[serde(default)]
    network: NetworkEnforcement,
}

pub(crate) async fn describe_hosts(
    caller: Caller,
    State(cluster): Shared,
    Query(query): Query<HostsQuery>,
    headers: HeaderMap,
    text: String,
) -> Result<Response, ApiError> {
    caller.operates()?;
    let deployment = Deployment::parse(&text)?;
    let mut servers = Vec::new();
    for server in deployment.servers.iter().filter(|server| server.storage.is_some()) {
        let name = &server.name;
        let class = name.rsplit_once('-').filter(|(_, number)| number.parse::<u32>().is_ok());
        let (class, _) = class.ok_or_else(|| {
            ApiError::invalid(format_args!("server '{name}': expected a name such as CLASS-1"))
        })?;
        servers.push(ServerPlace {
            server: name.clone(),
            class: class.to_owned(),
            host: server.host.clone(),
        });
    }
    let hosts = deployment.hosts.iter().filter(|host| !host.switch).map(|host| host.name.clone()).collect();
    let described = HostsDescription { text, hosts, servers, network: query.network };
    replace(cluster, headers, Resource::Hosts, Command::DescribeHosts(described)).await
}

pub(crate) async fn show_hosts(caller: Caller, State(cluster): Shared) -> Result<Response, ApiError> {
    caller.operates()?;
    Ok(Resource::Hosts.show(cluster.lock().controller.state()))
}

/// Decides a command, stores it, and answers without a body.
async fn command(cluster: Arc<Cluster>, command: Command) -> Result<StatusCode, ApiError> {
    blocking(move || {
        let mut core = cluster.lock();
        let event = core.controller.decide(&command)?;
        cluster.commit(&mut core, [event])?;
        Ok(StatusCode::NO_CONTENT)
    })
    .await
}

pub(crate) async fn list_servers(
    caller: Caller,
    State(cluster): Shared,
) -> Result<Json<Vec<ServerDocument>>, ApiError> {
    caller.operates()?;
    Ok(Json(cluster.lock().controller.state().servers().map(Into::into).collect()))
}

pub(crate) async fn show_policy(
    caller: Caller,
    State(cluster): Shared,
    Path(server): Path<String>,
) -> Result<Json<Policy>, ApiError> {
    caller.operates()?;
    let core = cluster.lock();
    let view = core.controller.state().server(&server);
    let view = view.ok_or_else(|| ApiError::unknown(format_args!("there is no server '{server}'")))?;
    Ok(Json(view.decided.clone()))
}

pub(crate) async fn list_agents(
    caller: Caller,
    State(cluster): Shared,
) -> Result<Json<Vec<AgentDocument>>, ApiError> {
    caller.operates()?;
    let core = cluster.lock();
    let state = core.controller.state();
    let mut agents = Vec::new();
    for (name, host) in state.hosts() {
        let (mode, abilities) = host.agent.clone().unzip();
        let abilities = abilities.unwrap_or_default();
        agents.push(AgentDocument {
            host: name.to_owned(),
            mode,
            storage: abilities.storage.into_iter().collect(),
            network: abilities.network,
            applied: host.applied,
            wanted: state.wanted_epoch(name),
            advice: host.advice.clone(),
            warnings: host.warnings.clone(),
        });
    }
    Ok(Json(agents))
}

#[derive(Deserialize, JsonSchema)]
pub(crate) struct WaitQuery {
    /// Seconds to wait for news, at most 60.
    #[serde(default)]
    wait_s: u64,
}

impl WaitQuery {
    fn until(&self) -> Instant {
        Instant::now() + Duration::from_secs(self.wait_s.min(WAIT_MAX_S))
    }
}

pub(crate) async fn report(
    caller: Caller,
    State(cluster): Shared,
    Query(query): Query<WaitQuery>,
    Json(report): Json<AgentReport>,
) -> Result<Json<AgentAnswer>, ApiError> {
    let host = caller.host()?.to_owned();
    let applied = report.applied;
    let mut news = cluster.watch();
    let told = Arc::clone(&cluster);
    let of = host.clone();
    // A report without a ticket does not count yet: its agent is answered at once.
    let has_ticket = report.ticket.is_some();
    let refused = report.refused.as_ref().map(|refused| refused.epoch);
    let advised = report.advice.as_ref().map(|advice| advice.epoch);
    blocking(move || {
        let mut core = told.lock();
        match core.controller.judge(&of, &report) {
            ReportOutcome::Events(events) => {
                told.commit(&mut core, events)?;
                let verdicts = core.controller.observe(&of, &report, told.instant());
                told.commit(&mut core, verdicts).map(drop)
            }
            ReportOutcome::Unknown(reason) => Err(ApiError::unknown(reason)),
            ReportOutcome::Foreign(reason) => Err(ApiError::forbidden(reason)),
        }
    })
    .await?;
    let until = query.until();
    let has_all_news = || {
        let wanted = cluster.lock().controller.state().wanted_epoch(&host);
        [Some(applied), refused, advised].contains(&Some(wanted))
    };
    while has_ticket && has_all_news() {
        if timeout_at(until, news.changed()).await.is_err() || *news.borrow() == u64::MAX {
            break;
        }
    }
    Ok(Json(cluster.lock().controller.answer(&host, applied)))
}

#[derive(Deserialize, JsonSchema)]
pub(crate) struct TraceQuery {
    /// File name, whose ending tells formats apart.
    #[serde(default)]
    file: String,
    /// Tenant, for operators; otherwise that of the token.
    tenant: Option<String>,
}

pub(crate) async fn send_trace(
    caller: Caller,
    State(cluster): Shared,
    Query(query): Query<TraceQuery>,
    body: Body,
) -> Result<Json<TraceDocument>, ApiError> {
    let tenant = caller.tenant(query.tenant.as_deref())?;
    let asked = Arc::clone(&cluster);
    // A decision may hold the lock.
    let profiles = blocking(move || Ok(profiles(asked.lock().controller.state()))).await?;
    if profiles.is_empty() {
        return Err(ApiError::new(
            StatusCode::CONFLICT,
            "an operator has to describe classes of servers first",
        ));
    }
    let upload = Upload::receive(&cluster, &query.file, body).await?;
    let trace = upload.hash.clone();
    let footprints = upload.footprints(profiles).await?;
    blocking(move || {
        cluster.lock().store.keep_trace(&tenant, &trace, &footprints)?;
        let requests = footprints.values().next().map_or(0, workload::Footprint::requests);
        Ok(Json(TraceDocument { trace, requests, classes: footprints.into_keys().collect() }))
    })
    .await
}

pub(crate) async fn request(
    caller: Caller,
    State(cluster): Shared,
    headers: HeaderMap,
    Json(question): Json<WorkloadQuestion>,
) -> Result<Json<DecisionDocument>, ApiError> {
    let tenant = caller.tenant(question.tenant.as_deref())?;
    let key = idempotency_key(&headers)?;
    blocking(move || {
        let mut core = cluster.lock();
        if let Some(key) = &key
            && let Some(decision) = core.controller.state().decision_of_key(&tenant, key)
        {
            if decision.name != question.name || decision.answer.is_on_renewal() {
                return Err(used_key());
            }
            return Ok(Json(DecisionDocument::new(core.controller.state(), decision)));
        }
        let event = decide(&core, &tenant, question, key)?;
        cluster.commit(&mut core, [event])?;
        let state = core.controller.state();
        let decision = state.decisions_after(state.seq - 1).first();
        Ok(Json(DecisionDocument::new(state, decision.expect("it was decided"))))
    })
    .await
}

pub(crate) async fn what_if(
    caller: Caller,
    State(cluster): Shared,
    Json(question): Json<WorkloadQuestion>,
) -> Result<Json<DecisionDocument>, ApiError> {
    let tenant = caller.tenant(question.tenant.as_deref())?;
    let seen = caller.sees()?;
    blocking(move || {
        let core = cluster.lock();
        let event = decide(&core, &tenant, question, None)?;
        let document = |answer: &str, name: &str| DecisionDocument {
            seq: None,
            at_ns: None,
            tenant: tenant.clone(),
            name: name.to_owned(),
            answer: answer.to_owned(),
            reason: None,
            workload: None,
        };
        Ok(Json(match event {
            Event::WorkloadAdmitted(admission) => DecisionDocument {
                workload: Some(WorkloadDocument {
                    tenant: tenant.clone(),
                    name: admission.request.name.clone(),
                    slo: admission.request.slo.clone(),
                    server: admission.change.server.clone(),
                    bound_s: admission.bound_s,
                    standing: "gone".to_owned(),
                    covers: "the trace".to_owned(),
                    renewed_by: None,
                    renewing: false,
                    verdict: None,
                    assumptions: admission.assumptions.clone(),
                    derivation: Some(derivation_for(seen.as_deref(), admission.derivation.clone())),
                }),
                ..document("admitted", &admission.request.name)
            },
            Event::WorkloadRefused { request, reason } => {
                DecisionDocument { reason: Some(reason), ..document("refused", &request.name) }
            }
            _ => unreachable!("a request is admitted or refused"),
        }))
    })
    .await
}

/// Decides a request, and stores nothing.
fn decide(
    core: &ClusterCore,
    tenant: &str,
    question: WorkloadQuestion,
    key: Option<String>,
) -> Result<Event, ApiError> {
    let slo = question.slo.parse().map_err(|error| ApiError::invalid(format_args!("slo: {error}")))?;
    let footprints = core.store.trace(tenant, &question.trace)?;
    let footprints = footprints.ok_or_else(|| {
        let tenant = tenant.escape_debug();
        ApiError::unknown(format_args!(
            "tenant '{tenant}' has sent no trace {}",
            question.trace.escape_debug()
        ))
        .hint("send it first: POST /v1/traces")
    })?;
    let request = WorkloadRequest {
        tenant: tenant.to_owned(),
        name: question.name,
        slo,
        clients: question.clients,
        key,
        footprints,
    };
    decide_request(core, request)
}

/// Decides a request with its footprints, and stores nothing.
pub(crate) fn decide_request(core: &ClusterCore, request: WorkloadRequest) -> Result<Event, ApiError> {
    check_clients(&request)?;
    Ok(core.controller.decide(&Command::Request(Box::new(request)))?)
}

/// A hosts file of one host. Clients are checked in it, and not in that of the cluster, which may have thousands of hosts.
const ONE_HOST: &str = "[[host]]\nname = \"host\"\ndevice.lo = \"1Gbps\"\n";

/// Refuses clients that no hosts file may have. Their hosts are checked where the request is decided.
fn check_clients(request: &WorkloadRequest) -> Result<(), ApiError> {
    let workload = full_name(&request.tenant, &request.name);
    let clients = request.clients.iter().map(|client| ClientPlace { host: None, ..client.clone() }).collect();
    Deployment::parse(&hosts_file(ONE_HOST, "host", &[WorkloadClients { workload, clients }]))
        .map(drop)
        .map_err(|error| ApiError::invalid(format_args!("clients: {}", error.message)))
}

#[derive(Deserialize, JsonSchema)]
pub(crate) struct NameQuery {
    /// Name, `TENANT/NAME`, after which the page begins.
    #[serde(default)]
    pub(crate) after: String,
    /// Maximum number of entries; a page may have fewer.
    #[serde(default = "page_max")]
    pub(crate) limit: usize,
}

pub(crate) async fn list_workloads(
    caller: Caller,
    State(cluster): Shared,
    Query(query): Query<NameQuery>,
) -> Result<Json<WorkloadPage>, ApiError> {
    let seen = caller.sees()?;
    blocking(move || {
        let limit = query.limit.clamp(1, PAGE_MAX);
        let mut workloads = Vec::new();
        let mut after = query.after;
        let mut has_more = true;
        while has_more && workloads.len() < limit {
            // Others take the lock between these parts.
            let core = cluster.lock();
            let state = core.controller.state();
            let mut rest = state.workloads_after(seen.as_deref(), &after);
            let mut last = None;
            for (name, id, workload) in rest.by_ref().take(LOCKED_MAX.min(limit - workloads.len())) {
                workloads.push(WorkloadDocument::new(state, id, workload));
                last = Some(name.to_owned());
            }
            has_more = rest.next().is_some();
            after = last.unwrap_or(after);
        }
        Ok(Json(WorkloadPage { workloads, next: has_more.then_some(after) }))
    })
    .await
}

pub(crate) async fn show_workload(
    caller: Caller,
    State(cluster): Shared,
    Path((tenant, name)): Path<(String, String)>,
    Query(query): Query<WaitQuery>,
) -> Result<Response, ApiError> {
    let tenant = caller.tenant(Some(&tenant))?;
    let seen = caller.sees()?;
    let mut news = cluster.watch();
    let until = query.until();
    loop {
        let (tag, document) = {
            let core = cluster.lock();
            let state = core.controller.state();
            let (id, workload) = state.find(&tenant, &name).ok_or_else(|| {
                ApiError::unknown(format_args!("tenant '{tenant}' has no workload '{}'", name.escape_debug()))
            })?;
            let derivation = derivation_for(seen.as_deref(), workload.derivation.clone());
            (
                promise_tag(id, workload),
                WorkloadDocument::new(state, id, workload).with_derivation(derivation),
            )
        };
        let is_over = document.standing == "enforced" || *news.borrow_and_update() == u64::MAX;
        if is_over || timeout_at(until, news.changed()).await.is_err() {
            return Ok(([(ETAG, tag)], Json(document)).into_response());
        }
    }
}

pub(crate) async fn remove(
    caller: Caller,
    State(cluster): Shared,
    Path((tenant, name)): Path<(String, String)>,
) -> Result<StatusCode, ApiError> {
    let tenant = caller.tenant(Some(&tenant))?;
    command(cluster, Command::Remove { tenant, name }).await
}

#[derive(Deserialize, JsonSchema)]
pub(crate) struct PageQuery {
    /// Position in the history after which the page begins.
    #[serde(default)]
    after: u64,
    /// Number of entries, at most 1000.
    #[serde(default = "page_max")]
    limit: usize,
}

fn page_max() -> usize {
    PAGE_MAX
}

pub(crate) async fn list_decisions(
    caller: Caller,
    State(cluster): Shared,
    Query(query): Query<PageQuery>,
) -> Result<Json<DecisionPage>, ApiError> {
    let seen = caller.sees()?;
    let core = cluster.lock();
    let state = core.controller.state();
    let mut decisions: Vec<DecisionDocument> = Vec::new();
    let mut next = None;
    for decision in state.decisions_after(query.after) {
        if seen.as_ref().is_some_and(|tenant| decision.tenant != *tenant) {
            continue;
        }
        let last = decisions.last().and_then(|last| last.seq);
        // Decisions of one event stay on one page.
        if decisions.len() >= query.limit.clamp(1, PAGE_MAX) && last != Some(decision.seq) {
            next = last;
            break;
        }
        decisions.push(decision_for(seen.as_deref(), DecisionDocument::new(state, decision)));
    }
    Ok(Json(DecisionPage { decisions, next }))
}

pub(crate) async fn list_events(
    caller: Caller,
    State(cluster): Shared,
    Query(query): Query<PageQuery>,
) -> Result<Json<EventPage>, ApiError> {
    caller.operates()?;
    blocking(move || {
        let core = cluster.lock();
        let events = core.store.events_after(query.after, query.limit.clamp(1, PAGE_MAX))?;
        let last = events.last().map(|event| event.seq);
        let next = last.filter(|last| *last < core.controller.state().seq);
        Ok(Json(EventPage { events, next }))
    })
    .await
}

pub(crate) async fn issue_token(
    caller: Caller,
    State(cluster): Shared,
    Json(request): Json<TokenRequest>,
) -> Result<Json<IssuedToken>, ApiError> {
    caller.operates()?;
    let secret = new_secret();
    let token = secret.map_err(|error| ApiError::new(StatusCode::INTERNAL_SERVER_ERROR, error))?;
    let record = TokenRecord { name: request.name.clone(), role: request.role, hash: hash_of_secret(&token) };
    command(cluster, Command::IssueToken(record)).await?;
    Ok(Json(IssuedToken { name: request.name, token }))
}

pub(crate) async fn list_tokens(
    caller: Caller,
    State(cluster): Shared,
) -> Result<Json<Vec<TokenDocument>>, ApiError> {
    caller.operates()?;
    Ok(Json(cluster.lock().controller.state().tokens().map(Into::into).collect()))
}

pub(crate) async fn revoke_token(
    caller: Caller,
    State(cluster): Shared,
    Path(name): Path<String>,
) -> Result<StatusCode, ApiError> {
    caller.operates()?;
    command(cluster, Command::RevokeToken { name }).await
}
