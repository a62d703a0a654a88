//! A decision in words.

use api::{DecisionDocument, WorkloadDocument};
use operation::text::time;

/// The answer to a request; `is_question` if nothing was changed.
pub(super) fn decision(decision: &DecisionDocument, is_question: bool) -> String {
    let DecisionDocument { tenant, name, reason, .. } = decision;
    let Some(workload) = &decision.workload else {
        return format!("no: {tenant}/{name}: {}\n", reason.as_deref().unwrap_or("no reason is known"));
    };
    let WorkloadDocument { slo, server, bound_s, assumptions, .. } = workload;
    let bound = time(*bound_s);
    let state = match workload.standing.as_str() {
        _ if is_question => "nothing was changed",
        "enforced" => "it is enforced",
        "pending" => "promised once it is enforced: its hosts have not confirmed yet",
        "advised" => "not promised: an agent only advises",
        _ => "it has no place any more",
    };
    let mut text = format!("yes: {tenant}/{name} on {server}, at most {bound} (SLO {slo}); {state}\n");
    for assumption in assumptions {
        text += &format!("assumed: {assumption}\n");
    }
    text
}

/// The answer to a request for a renewal; `is_question` if nothing was changed.
pub(super) fn renewal(decision: &DecisionDocument, is_question: bool) -> String {
    let DecisionDocument { tenant, name, reason, .. } = decision;
    let reason = reason.as_deref().unwrap_or("no reason is known");
    let Some(workload) = &decision.workload else {
        return format!("no: {tenant}/{name} keeps its promise as it was: {reason}\n");
    };
    let bound = time(workload.bound_s);
    let state = if is_question {
        "nothing was changed"
    } else if workload.renewed_by != decision.seq {
        "a host could not apply it: the promise is what it was before"
    } else if workload.renewing {
        "promised once it is enforced: its hosts have not confirmed yet"
    } else {
        "it is enforced"
    };
    format!("yes: {tenant}/{name}, at most {bound} (SLO {}); {state}\nseen: {reason}\n", workload.slo)
}
