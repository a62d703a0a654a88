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
