//! Random planning problems for tests.

use crate::problem::{PlanningClass, PlanningProblem, PlanningWorkload, WorkloadOnClass};
use calculus::{ArrivalCurve, CurveVertex, EnforcedClass};
use model::{PerStage, Slo};
use proptest::prelude::*;
use units::{Percentile, Seconds};

/// The latencies of random SLOs, seconds.
pub(crate) const SLOS: [f64; 4] = [0.1, 0.25, 0.5, 1.0];

/// A random concave curve: burst at once, then falling slopes.
pub(crate) fn any_curve() -> impl Strategy<Value = ArrivalCurve> {
    (0.0..0.02f64, prop::collection::vec((-3.0..1.0f64, 0.002..0.4f64), 1..7)).prop_map(
        |(start, mut steps)| {
            steps.sort_by(|a, b| b.1.total_cmp(&a.1));
            let mut vertices = vec![CurveVertex { duration: 0.0, work: start }];
            for (log_length, slope) in steps {
                let (last, length) = (vertices[vertices.len() - 1], 10f64.powf(log_length));
                vertices
                    .push(CurveVertex { duration: last.duration + length, work: last.work + length * slope });
            }
            ArrivalCurve::new(vertices, 0.0).unwrap()
        },
    )
}

/// A position in [`SLOS`] and a curve per stage.
pub(crate) fn any_workload() -> impl Strategy<Value = (usize, [ArrivalCurve; 3])> {
    (0usize..4, [any_curve(), any_curve(), any_curve()])
}

/// Servers that preempt, and servers that do not.
pub(crate) fn any_class() -> impl Strategy<Value = Option<EnforcedClass>> {
    let levels_max = prop_oneof![Just(2usize), Just(7)];
    let real = (1u32..5, 0.0..4e-3f64, 0.0..1e-3f64, 0.0..1e-3f64, levels_max);
    prop::option::of(real.prop_map(|(channels, best_effort_request, packet, proxy, levels_max)| {
        EnforcedClass { channels, best_effort_request, packet, proxy, levels_max }
    }))
}

/// One class of as many servers as there are workloads, which preempt.
pub(crate) fn problem(workloads: Vec<(usize, [ArrivalCurve; 3])>) -> PlanningProblem {
    problem_on(workloads, None)
}

/// One class of as many servers as there are workloads.
pub(crate) fn problem_on(
    workloads: Vec<(usize, [ArrivalCurve; 3])>,
    enforced: Option<EnforcedClass>,
) -> PlanningProblem {
    let count = workloads.len();
    let workloads = workloads
        .into_iter()
        .enumerate()
        .map(|(i, (slo, curves))| PlanningWorkload {
            name: format!("w{i}"),
            slo: Slo::new(Percentile::new(99.9).unwrap(), Seconds(SLOS[slo])).unwrap(),
            on_class: vec![WorkloadOnClass {
                curves: PerStage::from_fn(|s| curves[s as usize].clone()),
                mean_rate: PerStage::from_fn(|s| {
                    let last = curves[s as usize].vertices().last().unwrap();
                    last.work / last.duration
                }),
                largest_request: curves[1].vertices()[0].work.min(4e-3),
            }],
        })
        .collect();
    let class = PlanningClass { name: "c".into(), count, base_latency: 0.0, enforced };
    PlanningProblem::new(vec![class], workloads, PlanningProblem::MAX_RATE, PlanningProblem::SLO_FACTOR)
        .unwrap()
}
