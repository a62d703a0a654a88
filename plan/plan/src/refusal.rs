//! Refused workloads: why each has no place, in a sentence that text, pages, documents and policies share.

use model::Slo;
use operation::text::{percent, time};
use placement::admission::{AdmissionRefusal, Breach, BreachCause};
use placement::{FitRefusal, SuggestedChange};
use schemars::JsonSchema;
use serde::Serialize;
use units::Percentile;

/// A workload without a place.
#[derive(Debug, Clone, Serialize, JsonSchema)]
pub struct RefusedWorkload {
    /// Index into the workloads of the problem.
    #[serde(skip)]
    pub index: usize,
    /// The workload that is not admitted.
    pub workload: String,
    #[serde(skip)]
    pub slo: Slo,
    /// Why, and what would admit it.
    pub reason: String,
}

/// Answer of a planner that has no place for a workload.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Refusal<'a> {
    /// No rate limits keep all SLOs.
    Limits {
        /// Why it does not fit on an empty server; `None` when it would, but no server is left.
        alone: Option<FitRefusal>,
        /// Percentile of its SLO.
        percentile: Percentile,
        /// Changes that would admit it.
        changes: &'a [SuggestedChange],
    },
    /// A predicted latency is above an SLO.
    Prediction(&'a AdmissionRefusal),
}

/// Says why a workload has no place on `count` servers and what would give it one; `name` names a server.
pub(crate) fn describe_refusal(
    refusal: &Refusal<'_>,
    count: usize,
    name: &dyn Fn(usize) -> String,
) -> String {
    match refusal {
        Refusal::Limits { alone: None, percentile, changes } => {
            let full = match count {
                1 => "the only one is in use and has no room for it".to_owned(),
                count => format!("all {count} are in use and none has room for it"),
            };
            format!("it would fit on an empty server, but {full}{}", advice(changes, *percentile, name))
        }
        Refusal::Limits { alone: Some(blocked), percentile, changes } => {
            format!("even alone on a server, {}{}", blocking(blocked), advice(changes, *percentile, name))
        }
        Refusal::Prediction(AdmissionRefusal::Alone(breach)) => {
            format!("even alone on a server, {}", describe_breach(breach))
        }
        Refusal::Prediction(refusal) => match refusal.closest() {
            None => refusal.to_string(),
            Some((_, breach)) if count == 1 => describe_breach(breach),
            Some((server, breach)) => format!("closest on {}: {}", name(server), describe_breach(breach)),
        },
    }
}

fn blocking(blocked: &FitRefusal) -> String {
    match blocked {
        FitRefusal::Capacity { stage, ratio } => {
            format!("its SLO takes a rate of {} of what {stage} can do", percent(*ratio))
        }
        FitRefusal::Latency { slo, ratio, stage } => format!(
            "its bound would be {}, above its SLO of {}; most of it is {stage}",
            time(slo * ratio),
            time(*slo)
        ),
        FitRefusal::NoLimits => "no limits satisfy the linear program".to_owned(),
        FitRefusal::BaseLatency { slo, base } => format!(
            "an idle server and the work that it may have begun take up to {}, which leaves nothing of its SLO of {}",
            time(*base),
            time(*slo)
        ),
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

/// Says what would admit a workload; empty if that is not known.
fn advice(changes: &[SuggestedChange], percentile: Percentile, name: &dyn Fn(usize) -> String) -> String {
    if changes.is_empty() {
        return String::new();
    }
    let place = |server: Option<usize>| match server {
        None => "on an empty server".to_owned(),
        Some(server) => format!("on {}", name(server)),
    };
    let mut ways = Vec::new();
    for change in changes {
        ways.push(match change {
            SuggestedChange::OneMoreServer { class } => format!("one more server of class '{class}'"),
            SuggestedChange::Latency { slo, server } => {
                format!("an SLO of {percentile} < {} ({})", time(*slo), place(*server))
            }
            SuggestedChange::Load { factor, server } => {
                format!("{} of its load ({})", percent(*factor), place(*server))
            }
        });
    }
    format!("; it would be admitted with {}", ways.join(", or "))
}

#[cfg(test)]
mod tests {
    use super::*;
    use model::Stage;

    #[test]
    fn every_reason_has_its_numbers() {
        for (blocked, text) in [
            (
                FitRefusal::Capacity { stage: Stage::Storage, ratio: 1.25 },
                "its SLO takes a rate of 125.0% of what storage can do",
            ),
            (
                FitRefusal::Latency { slo: 0.1, ratio: 1.5, stage: Stage::NetworkOut },
                "its bound would be 150ms, above its SLO of 100ms; most of it is network-out",
            ),
            (
                FitRefusal::BaseLatency { slo: 0.001, base: 0.002 },
                "an idle server and the work that it may have begun take up to 2ms, which leaves nothing of its SLO of 1ms",
            ),
        ] {
            assert_eq!(blocking(&blocked), text);
        }
    }
}
