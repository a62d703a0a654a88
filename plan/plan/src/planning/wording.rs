//! Plans in sentences: who fits where, and why a workload has no place and what would give it one, as a policy
//! carries it.

use crate::planning::solution::PlannedCluster;
use operation::text::{percent, time};
use placement::{FitRefusal, PlacementRefusal, SuggestedChange};
use units::plural;

/// Says in one sentence who fits where.
pub fn summarise(planned: &PlannedCluster) -> String {
    let all = planned.instance.workloads.len();
    let admitted = planned.admitted();
    let servers = plural(planned.placement.servers.len(), "server");
    let bound = planned.lower_bound.servers;
    let needed = match bound {
        0 => String::new(),
        1 => " (at least 1 is needed)".to_owned(),
        n => format!(" (at least {n} are needed)"),
    };
    let of_all = plural(all, "workload");
    if admitted == all {
        format!("{admitted} of {of_all} fit on {servers}{needed}")
    } else {
        let without = if admitted + 1 == all { "1 has" } else { &format!("{} have", all - admitted) };
        format!("{admitted} of {of_all} fit on {servers}; {without} no guarantee")
    }
}

/// Says why a workload has no place and what would give it one; `number` counts refusals.
pub fn describe_refusal(planned: &PlannedCluster, number: usize) -> String {
    let refusal = &planned.placement.refused[number];
    let mut text = reason(planned, refusal);
    let changes = planned.advice.get(number).map_or(&[][..], Vec::as_slice);
    if !changes.is_empty() {
        let changes: Vec<String> =
            changes.iter().map(|change| describe_change(planned, refusal, change)).collect();
        text.push_str("; it would be admitted with ");
        text.push_str(&changes.join(", or "));
    }
    text
}

/// Says why a workload has no place.
fn reason(planned: &PlannedCluster, refusal: &PlacementRefusal) -> String {
    match &refusal.alone {
        None => match planned.instance.server_count() {
            1 => "it would fit on an empty server, but the only one is in use and has no room for it"
                .to_owned(),
            count => {
                format!(
                    "it would fit on an empty server, but all {count} are in use and none has room for it"
                )
            }
        },
        Some(blocked) => format!("even alone on a server, {}", blocking(blocked)),
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

fn server_phrase(planned: &PlannedCluster, server: Option<usize>) -> String {
    server.map_or_else(|| "on an empty server".to_owned(), |number| format!("on {}", planned.names[number]))
}

/// Says what would admit a workload, completing "it would be admitted with …".
fn describe_change(planned: &PlannedCluster, refusal: &PlacementRefusal, change: &SuggestedChange) -> String {
    match change {
        SuggestedChange::OneMoreServer { class } => format!("one more server of class '{class}'"),
        SuggestedChange::Latency { slo, server } => {
            let percentile = planned.instance.workloads[refusal.workload].slo.percentile;
            format!("an SLO of {percentile} < {} ({})", time(*slo), server_phrase(planned, *server))
        }
        SuggestedChange::Load { factor, server } => {
            format!("{} of its load ({})", percent(*factor), server_phrase(planned, *server))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::planning::recipe::PlanningRecipe;
    use calculus::{ArrivalCurve, CurveVertex};
    use model::{PerStage, Slo, Stage};
    use placement::{
        LimitMethod, LowerBound, PlanningClass, PlanningProblem, PlanningWorkload, WorkloadOnClass,
    };

    /// Two workloads, each of which needs a server of its own, and one server.
    fn one_of_two() -> PlannedCluster {
        let curve = ArrivalCurve::new(vec![CurveVertex { duration: 0.0, work: 0.05 }], 0.0).unwrap();
        let workload = |name: &str| PlanningWorkload {
            name: name.into(),
            slo: "99.9% < 200ms".parse::<Slo>().unwrap(),
            on_class: vec![WorkloadOnClass {
                curves: PerStage::from_fn(|_| curve.clone()),
                mean_rate: PerStage::from_fn(|_| 0.0),
                largest_request: 0.0,
                overtaking: 0.0,
            }],
        };
        let class = PlanningClass { name: "ssd".into(), count: 1, base_latency: 0.0, enforced: None };
        let instance =
            PlanningProblem::new(vec![class], vec![workload("a"), workload("b")], 0.999, 0.999).unwrap();
        let placement = placement::place_first_fit(&instance, LimitMethod::Exact, &[0, 1], false);
        let advice = vec![
            SuggestedChange::OneMoreServer { class: "ssd".into() },
            SuggestedChange::Latency { slo: 0.301, server: Some(0) },
            SuggestedChange::Load { factor: 0.332, server: None },
        ];
        PlannedCluster {
            recipe: PlanningRecipe::of(LimitMethod::Exact),
            instance,
            placement,
            names: vec!["ssd-1".into()],
            advice: vec![advice],
            lower_bound: LowerBound { fractional: 1.5, servers: 2 },
            changed: None,
            cpu: std::time::Duration::ZERO,
        }
    }

    #[test]
    fn a_refusal_says_why_and_what_would_help() {
        let planned = one_of_two();
        assert_eq!(summarise(&planned), "1 of 2 workloads fit on 1 server; 1 has no guarantee");
        assert_eq!(
            describe_refusal(&planned, 0),
            "it would fit on an empty server, but the only one is in use and has no room for it; it would be \
             admitted with one more server of class 'ssd', or an SLO of 99.9% < 301ms (on ssd-1), or 33.2% of its \
             load (on an empty server)"
        );
    }

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
