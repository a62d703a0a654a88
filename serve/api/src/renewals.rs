//! Renewals: decisions on promises again, by what the clients of a workload sent.

use crate::caller::Caller;
use crate::cluster::Cluster;
use crate::documents::{DecisionDocument, RenewalQuestion, WorkloadDocument};
use crate::error::ApiError;
use crate::handler::{Shared, blocking};
use crate::idempotency::{idempotency_key, used_key};
use crate::privacy::derivation_for;
use crate::resource::{matches, promise_tag};
use axum::Json;
use axum::extract::{Path, Query, State};
use axum::http::{HeaderMap, StatusCode};
use controller::{Command, Event, GIVE_BACK_OBSERVED_MIN, RenewalRequest};
use units::Nanos;

const NS_PER_S: u64 = 1_000_000_000;

/// Returns the command of a question.
fn command(
    cluster: &Cluster,
    (tenant, name): (String, String),
    question: &RenewalQuestion,
    key: Option<String>,
) -> Command {
    let least = if question.give_back { GIVE_BACK_OBSERVED_MIN } else { Nanos::ZERO };
    let observed_min = question.observed_min_s.map_or(least, |s| Nanos(s.saturating_mul(NS_PER_S)));
    let now = cluster.instant();
    Command::Renew(RenewalRequest { tenant, name, gives_back: question.give_back, observed_min, key, now })
}

pub(crate) async fn renew(
    caller: Caller,
    State(cluster): Shared,
    Path((tenant, name)): Path<(String, String)>,
    headers: HeaderMap,
    Json(question): Json<RenewalQuestion>,
) -> Result<Json<DecisionDocument>, ApiError> {
    let tenant = caller.tenant(Some(&tenant))?;
    let key = idempotency_key(&headers)?;
    blocking(move || {
        let mut core = cluster.lock();
        let state = core.controller.state();
        if let Some(key) = &key
            && let Some(decision) = state.decision_of_key(&tenant, key)
        {
            if decision.name != name || !decision.answer.is_on_renewal() {
                return Err(used_key());
            }
            return Ok(Json(DecisionDocument::new(state, decision)));
        }
        let found = state.find(&tenant, &name);
        let tag = found.map_or_else(String::new, |(id, workload)| promise_tag(id, workload));
        if !matches(&headers, &tag, found.is_some()) {
            let message = "the promise has been decided again since it was read; nothing was changed";
            return Err(ApiError::new(StatusCode::PRECONDITION_FAILED, message).hint("read it again"));
        }
        let event = core.controller.decide(&command(&cluster, (tenant, name), &question, key))?;
        cluster.commit(&mut core, [event])?;
        let state = core.controller.state();
        let decision = state.decisions_after(state.seq - 1).first();
        Ok(Json(DecisionDocument::new(state, decision.expect("it was decided"))))
    })
    .await
}

pub(crate) async fn ask_renewal(
    caller: Caller,
    State(cluster): Shared,
    Path((tenant, name)): Path<(String, String)>,
    Query(question): Query<RenewalQuestion>,
) -> Result<Json<DecisionDocument>, ApiError> {
    let tenant = caller.tenant(Some(&tenant))?;
    let seen = caller.sees()?;
    blocking(move || {
        let core = cluster.lock();
        let asked = command(&cluster, (tenant.clone(), name.clone()), &question, None);
        let (answer, reason, workload) = match core.controller.decide(&asked)? {
            Event::WorkloadRenewed(renewal) => {
                let state = core.controller.state();
                let workload = state.workload(renewal.workload).expect("it was renewed");
                let document = WorkloadDocument {
                    bound_s: renewal.bound_s,
                    ..WorkloadDocument::new(state, renewal.workload, workload)
                };
                let derivation = derivation_for(seen.as_deref(), renewal.derivation);
                ("renewed", renewal.reason, Some(document.with_derivation(derivation)))
            }
            Event::RenewalRefused { reason, .. } => ("kept", reason, None),
            _ => unreachable!("a promise is renewed or kept"),
        };
        let answer = answer.to_owned();
        Ok(Json(DecisionDocument {
            seq: None,
            at_ns: None,
            tenant,
            name,
            answer,
            reason: Some(reason),
            workload,
        }))
    })
    .await
}
