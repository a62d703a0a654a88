//! Plans by the calibrated model against windows that they have not seen.

use crate::cluster::ClusterProblem;
use crate::prediction::ModelName;
use crate::prediction::placement::place;
use crate::prediction::problem::TracedWorkload;
use crate::prediction::slo_calibration::*;
use model::{CircularTrace, Job, PerStage, ServerClass, Slo, Stage, WorkloadSpec};
use operation::Silent;
use rand::rngs::StdRng;
use rand::{RngExt as _, SeedableRng as _};
use std::sync::atomic::{AtomicUsize, Ordering};
use trace::OpenOptions;
use units::{Bytes, Nanos, Percentile, Seconds};

const WORKLOADS: usize = 40;
const WINDOW: u64 = 1_000_000_000;
const REQUESTS: u64 = 60;
const COVERAGE: f64 = 0.9;
/// The work of one request of each window, too rare for the percentile: traffic of the next window stays within the burst
/// curves of those before.
const RARE: u64 = 4_000_000;

/// A window of requests to a link, whose load is drawn anew: up to sixteen times as much as in another.
fn window(random: &mut StdRng) -> Vec<Job> {
    let load = 0.02 * random.random_range(-1.4f64..1.4).exp();
    let gap = WINDOW / REQUESTS;
    let job = |number| {
        let work = -random.random_range(f64::EPSILON..1.0).ln() * load * gap as f64;
        #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "some milliseconds")]
        let work = Nanos(if number == REQUESTS / 2 { RARE } else { work as u64 + 1 });
        let work = PerStage::from_fn(|stage| if stage == Stage::NetworkIn { work } else { Nanos::ZERO });
        Job { arrival: Nanos(number * gap + random.random_range(0..gap)), work }
    };
    (0..REQUESTS).map(job).collect()
}

/// Workloads with two windows each, on links that interrupt what they have begun.
fn problem(random: &mut StdRng) -> PredictionProblem {
    let slo = Slo::new(Percentile::new(90.0).unwrap(), Seconds(0.006)).unwrap();
    let mut workloads = Vec::new();
    for number in 0..WORKLOADS {
        let mut jobs = window(random);
        let second = window(random);
        jobs.extend(second.into_iter().map(|job| Job { arrival: Nanos(job.arrival.0 + WINDOW), ..job }));
        let traffic = Arc::new(CircularTrace::new(jobs, Nanos(2 * WINDOW)).unwrap());
        let spec = WorkloadSpec::new(format!("w{number}"), "none".into(), slo);
        workloads.push(TracedWorkload {
            spec,
            group: number,
            traffic,
            base_latency: 0.0,
            recorded_from: None,
        });
    }
    let network = "125MB/s".parse().unwrap();
    let cluster = ClusterProblem {
        hosts: Vec::new(),
        servers: vec![ServerClass {
            packet: Bytes(0),
            ..ServerClass::new("link", 20, "none".into(), network)
        }],
        profiles: Vec::new(),
        workloads,
        safety_margin: 1.0,
        failure_domain: None,
        options: OpenOptions::default(),
        cached: false,
        origin: "test".into(),
    };
    let calibration = CalibrationGoal { coverage: COVERAGE, window: None, scope: CalibrationScope::Workload };
    PredictionProblem::new(cluster, None, calibration)
}

/// The share of each member's requests that take longer than these times on a link that repeats the windows at random
/// shifts: first come, first served, after a period to fill up.
fn late(windows: &[&[Job]], limits: &[f64], random: &mut StdRng) -> Vec<f64> {
    let mut arrivals = Vec::new();
    for (member, window) in windows.iter().enumerate() {
        let shift = random.random_range(0..WINDOW);
        for job in *window {
            let at = (job.arrival.0 + shift) % WINDOW;
            arrivals.extend([at, at + WINDOW].map(|at| (at, job.work[Stage::NetworkIn].0, member)));
        }
    }
    arrivals.sort_unstable();
    let mut free = 0;
    let mut late = vec![0.0; windows.len()];
    for (at, work, member) in arrivals {
        free = at.max(free) + work;
        let is_late = at >= WINDOW && Nanos(free - at).as_secs() > limits[member];
        late[member] += f64::from(u8::from(is_late)) / REQUESTS as f64;
    }
    late
}

/// Of those who are placed, how many miss their bound in the next window, how many are placed, and on how many servers.
fn missed(problem: &PredictionProblem, model: ModelName, random: &mut StdRng) -> [usize; 3] {
    let next: Vec<Vec<Job>> = problem.cluster.workloads.iter().map(|_| window(random)).collect();
    let placed = place(problem, model, &|| false, &Silent);
    let mut missed = 0;
    let mut all = 0;
    for server in &placed.servers {
        let windows: Vec<&[Job]> = server.iter().map(|forecast| &*next[forecast.bound.workload]).collect();
        let limits: Vec<f64> = server.iter().map(|forecast| forecast.bound.seconds()).collect();
        let late = late(&windows, &limits, random);
        missed += late.iter().filter(|late| **late > 0.1).count();
        all += server.len();
    }
    [missed, all, placed.servers.len()]
}

#[test]
fn packed_links_keep_their_promises_in_windows_with_other_loads() {
    let mut sums = [[0; 3]; 2];
    for seed in 0..6 {
        let mut random = StdRng::seed_from_u64(seed);
        let problem = problem(&mut random);
        for (sum, model) in sums.iter_mut().zip([ModelName::Calibrated, ModelName::Replayed]) {
            let found = missed(&problem, model, &mut random);
            sum.iter_mut().zip(found).for_each(|(sum, found)| *sum += found);
        }
    }
    let share = |[missed, all, _]: [usize; 3]| missed as f64 / all as f64;
    let [calibrated, replayed] = sums;
    // Workloads that share a link miss together: for this number of links three standard deviations are at
    // most 0.1.
    assert!(share(calibrated) <= 1.0 - COVERAGE + 0.1, "{sums:?}");
    assert!(share(replayed) > 1.0 - COVERAGE, "{sums:?}");
    assert!(share(calibrated) < 0.5 * share(replayed), "{sums:?}");
    assert!(calibrated[1] > 6 * WORKLOADS * 3 / 4, "most are placed: {sums:?}");
}

/// A packing that the worst case admits is admitted by the models that replay, too, whatever the coverage.
#[test]
fn no_plan_needs_more_servers_than_the_worst_case() {
    for (seed, coverage) in [(1, 0.8), (2, 0.95), (3, 0.99)] {
        let mut problem = problem(&mut StdRng::seed_from_u64(seed));
        problem.cluster.workloads.truncate(12);
        problem.calibration.coverage = coverage;
        // Room for some of the largest requests at once, so that the worst case admits several workloads to a server.
        for workload in &mut problem.cluster.workloads {
            workload.spec.slo.latency = Seconds(0.02);
        }
        let guaranteed = place(&problem, ModelName::WorstCase, &|| false, &Silent);
        assert!(guaranteed.packing.servers.len() < 12, "the guarantee shares servers");
        for model in [ModelName::Calibrated, ModelName::Replayed] {
            let placed = place(&problem, model, &|| false, &Silent);
            let extent = |placed: &crate::prediction::ModelPlacement| {
                (placed.packing.refused.len(), placed.packing.servers.len())
            };
            assert!(extent(&placed) <= extent(&guaranteed), "{model:?} {coverage}");
            assert!(placed.is_kept(&problem), "{model:?} {coverage}");
            let load = slo_calibration(&problem, &Silent).load;
            for forecast in placed.servers.iter().flatten() {
                let bound = forecast.bound.seconds();
                if model == ModelName::Calibrated && load.is_some() {
                    assert_eq!(bound, 0.02, "{coverage}: the SLO is the promise");
                } else {
                    let worst = forecast.worst_case_s().expect("not interrupted");
                    assert!(bound <= worst * (1.0 + 1e-9), "{model:?} {coverage}: {forecast:?}");
                }
            }
        }
    }
}

/// With too few blocks a plan is the guarantee's, and the report says what is missing.
#[test]
fn too_few_blocks_are_said_and_the_worst_case_decides() {
    let mut problem = problem(&mut StdRng::seed_from_u64(5));
    problem.cluster.workloads.truncate(6);
    problem.calibration.scope = CalibrationScope::Plan;
    for workload in &mut problem.cluster.workloads {
        workload.spec.slo.latency = Seconds(0.02);
    }
    let report = report_slo_calibration(&problem, &Silent);
    assert_eq!((report.load_factor, report.blocks, report.blocks_needed), (None, 2, 9));
    let said = report.sentences().join("\n");
    assert!(said.contains("needs 9 windows of all traces together, and there are 2"), "{said}");
    assert!(said.contains("placed by worst-case"), "{said}");
    let placed = place(&problem, ModelName::Calibrated, &|| false, &Silent);
    let guaranteed = place(&problem, ModelName::WorstCase, &|| false, &Silent);
    assert_eq!(placed.packing.servers, guaranteed.packing.servers);
    for (own, other) in placed.servers.iter().flatten().zip(guaranteed.servers.iter().flatten()) {
        assert_eq!((own.bound.seconds(), own.bound.model), (other.bound.seconds(), ModelName::Calibrated));
    }
}

#[test]
fn learning_ends_when_it_is_interrupted() {
    let problem = problem(&mut StdRng::seed_from_u64(1));
    for answers in [0, 3, 30] {
        let asked = AtomicUsize::new(0);
        let interrupted = || asked.fetch_add(1, Ordering::Relaxed) >= answers;
        assert!(!calibrate_slos(&problem, &interrupted, &Silent));
        // Two threads may each begin a trial.
        assert!(asked.into_inner() < answers + 100);
        assert!(problem.slo_calibration.lock().unwrap().is_none());
    }
    assert!(calibrate_slos(&problem, &|| false, &Silent));
    assert!(problem.slo_calibration.lock().unwrap().is_some());
}
