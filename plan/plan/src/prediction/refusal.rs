//! Reason of a refused arrival, as a sentence for a policy.

use crate::prediction::assignment::server_name;
use crate::prediction::problem::PredictionProblem;
use operation::text::{percent, time};
use placement::admission::{AdmissionRefusal, Breach, BreachCause};

/// Returns the reason of a refusal as a sentence.
pub fn describe_refusal(problem: &PredictionProblem, refusal: &AdmissionRefusal) -> String {
    if let AdmissionRefusal::Alone(breach) = refusal {
        return format!("even alone on a server, {}", describe_breach(breach));
    }
    let Some((server, breach)) = refusal.closest() else { return refusal.to_string() };
    let breach = describe_breach(breach);
    if problem.server.count == 1 {
        breach
    } else {
        format!("closest on {}: {breach}", server_name(problem, server))
    }
}

fn describe_breach(breach: &Breach) -> String {
    let name = &breach.workload;
    let who = if breach.newcomer { name.clone() } else { format!("{name} (already admitted)") };
    let mut text = match breach.cause {
        BreachCause::Latency { predicted, allowed } => format!(
            "{who} would have {}, {} above its {}",
            time(predicted),
            percent(predicted / allowed - 1.0),
            breach.slo
        ),
        BreachCause::Undefined(undefined) => format!("{who} would have no guarantee: {undefined}"),
    };
    match breach.others {
        0 => {}
        1 => text.push_str("; another one misses its SLO, too"),
        others => text.push_str(&format!("; {others} others miss their SLOs, too")),
    }
    text
}
