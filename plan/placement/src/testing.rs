//! Planning problems for tests: random ones, and the published workloads.

use crate::normalise::Normalisation;
use crate::problem::{PlanningClass, PlanningProblem, PlanningWorkload, WorkloadOnClass};
use calculus::{ArrivalCurve, CurveVertex, EnforcedClass};
use model::{PerStage, Slo};
use proptest::prelude::*;
use units::{Percentile, Seconds};
use workload::FootprintBuilder;
use workload::device::{NetworkModel, StorageProfile};

/// The latencies of random SLOs, seconds.
pub(crate) const SLOS: [f64; 4] = [0.1, 0.25, 0.5, 1.0];

/// A random concave curve: burst at once, then falling slopes.
pub(crate) fn any_curve() -> impl Strategy<Value = ArrivalCurve> {
    (0.0..0.02f64, prop::collection::vec((-3.0..1.0f64, 0.002..0.4f64), 1..7)).prop_map(
        |(start, mut steps)| {
            steps.sort_by(|a, b| b.1.total_cmp(&a.1));
            let mut vertices = vec![CurveVertex { duration: 0.0, work: start }];
            for (log_length, slope) in steps {
                let last = vertices[vertices.len() - 1];
                let length = 10f64.powf(log_length);
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
        EnforcedClass {
            channels,
            best_effort_request,
            packet,
            link_burst: packet,
            proxy,
            densest_answer: 0.0,
            levels_max,
        }
    }))
}

/// One class of as many preemptive servers as there are workloads.
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
                    let curve = &curves[s as usize];
                    let last = curve.vertices().last().unwrap();
                    if last.duration > 0.0 { last.work / last.duration } else { curve.sustained_rate() }
                }),
                largest_request: curves[1].vertices()[0].work.min(4e-3),
                base_latency: 0.0,
                overtaking: 0.0,
            }],
        })
        .collect();
    let class = PlanningClass { name: "c".into(), count, enforced };
    PlanningProblem::new(vec![class], workloads, PlanningProblem::MAX_RATE, PlanningProblem::SLO_FACTOR)
        .unwrap()
}

/// The published workloads on links of 125 MB/s, as `plan --slos` reads them, without base latency; `None`, loudly, where
/// the traces are absent.
pub(crate) fn published_problem(is_enforced: bool) -> Option<PlanningProblem> {
    let folder = testkit::shared("traces")?;
    let text = |name: &str| std::fs::read_to_string(folder.join(name)).unwrap();
    let profile = StorageProfile::from_json(&text("ssd-profile.json")).unwrap();
    let network = "125MB/s".parse().unwrap();
    let normalisation = Normalisation { network, safety_margin: 1.0, sustained: true, enforced: None };
    let mut workloads = Vec::new();
    for line in text("slos.csv").lines().skip(1) {
        let fields: Vec<&str> = line.split(',').collect();
        let mut builder = FootprintBuilder::new(NetworkModel::default(), &profile);
        for request in trace::open(&folder.join(fields[2]), &trace::OpenOptions::default()).unwrap() {
            builder.push(&request.unwrap()).unwrap();
        }
        let percentile = fields[3].parse().unwrap();
        workloads.push(PlanningWorkload {
            name: fields[1].to_owned(),
            slo: Slo::new(percentile, Seconds(fields[4].parse().unwrap())).unwrap(),
            on_class: vec![normalisation.apply(&builder.finish().unwrap())],
        });
    }
    // A best-effort request of 1 MiB on this device and a packet and a burst of 64 KiB on these links.
    let best_effort_request = 0.017_76;
    let packet = 65_536.0 / 125e6;
    let enforced = is_enforced.then_some(EnforcedClass {
        channels: 1,
        best_effort_request,
        packet,
        link_burst: packet,
        proxy: 200e-6,
        densest_answer: 0.0,
        levels_max: 7,
    });
    let class = PlanningClass { name: "ssd".into(), count: workloads.len(), enforced };
    let problem =
        PlanningProblem::new(vec![class], workloads, PlanningProblem::MAX_RATE, PlanningProblem::SLO_FACTOR);
    Some(problem.unwrap())
}
