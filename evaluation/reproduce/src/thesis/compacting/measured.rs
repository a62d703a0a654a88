//! Figures 5.5 and 5.6: latencies under WorkloadCompactor when the second half of each trace is played under limits that
//! were chosen for the first.

use super::interrupted;
use super::methods::first_fit;
use super::sources::{CurveForm, DrawnWorkload, SLOS_S, TraceSet, network, unusable};
use crate::claim::{Claim, Expected, format_change, format_time};
use crate::context::{Context, FigureError};
use crate::figure::{AxisQuantity, FigureAxis, FigurePlot, FigureSeries, ReproducedFigure};
use model::{
    CircularTrace, Job, OperationError, PerStage, Policy, PolicyPlacement, PolicyServer, PolicyWorkload,
    StageLimit,
};
use placement::{Guarantee, LimitMethod, PlannedServer, PlanningProblem};
use rand::SeedableRng as _;
use rand::rngs::StdRng;
use scenario::SimulationCase;
use scenario::server::{ServerRules, SimulatedWorkload, StorageServer, WorkloadRequests, trace_on_server};
use sim::engine::SimulationPlan;
use std::sync::Arc;
use units::Nanos;

/// Time after which a trace would begin again, longer than any of about ten minutes.
const PLAYED_PERIOD: Nanos = Nanos(3_600_000_000_000);
/// Workloads of the experiment with random SLOs: as many as there are traces.
const MIXED: usize = 41;
/// Difference from the thesis where one half of a trace stands for the other.
const HALVES: &str = "the halves here are of five minutes, and limits may be as low as the mean rate of one: a workload that \
    sends more in the other half waits for its own limits, longer and longer";
/// Workloads of each experiment where precision does not matter.
const FEW: usize = 10;
/// The margin of the thesis.
const MARGIN: f64 = 1.1;

/// A way to choose limits and to play the workloads.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Replay {
    /// Limits for the whole trace, which is played.
    Whole,
    /// Limits for the first half of the trace; the second is played.
    SecondHalf,
    /// The same with a margin of 10 %.
    SecondHalfWithMargin,
}

const REPLAYS: [Replay; 3] = [Replay::Whole, Replay::SecondHalf, Replay::SecondHalfWithMargin];

/// A workload in an experiment.
#[derive(Clone, Copy)]
struct MeasuredWorkload {
    slo_s: f64,
    /// The 99.9th percentile of its latencies, seconds.
    latency_s: f64,
}

impl MeasuredWorkload {
    fn share_of_slo(self) -> f64 {
        self.latency_s / self.slo_s
    }
}

pub(crate) fn run(context: &Context) -> Result<ReproducedFigure, FigureError> {
    let mut results = Vec::new();
    for (step, replay) in REPLAYS.into_iter().enumerate() {
        (context.progress)(step, REPLAYS.len());
        results.push(replay.run(context)?);
    }
    let plots = (0..=SLOS_S.len()).map(|experiment| plot(experiment, &results)).collect();
    Ok(ReproducedFigure { reading: reading(&results), plots, claims: claims(&results) })
}

/// The middle of a trace in time; arrivals count from the first request.
fn middle(last: Nanos) -> Nanos {
    Nanos(last.0 / 2)
}

impl Replay {
    fn name(self) -> &'static str {
        match self {
            Self::Whole => "whole trace under its own limits",
            Self::SecondHalf => "second half under limits of the first",
            Self::SecondHalfWithMargin => "second half, margin of 10 %",
        }
    }

    /// Returns the workloads of each experiment: one for each SLO, and one with random SLOs.
    fn run(self, context: &Context) -> Result<Vec<Vec<MeasuredWorkload>>, FigureError> {
        let margin = if self == Self::SecondHalfWithMargin { MARGIN } else { 1.0 };
        let set =
            TraceSet::read(context, margin, |arrival, last| self == Self::Whole || arrival < middle(last))?;
        let storage = StorageServer::new(set.profile.clone(), network(), 1).map_err(OperationError::input)?;
        let mut traffic = Vec::new();
        for file in &set.files {
            let recorded = trace_on_server(file, &storage).map_err(OperationError::input)?.trace;
            traffic.push(Arc::new(self.played(recorded.items()).map_err(|error| unusable(file, error))?));
        }
        let mut experiments: Vec<Vec<DrawnWorkload>> =
            (0..SLOS_S.len()).map(|slo| set.all_with(slo)).collect();
        experiments.push(set.draw_mixed(MIXED, &mut StdRng::seed_from_u64(context.seed)));
        let mut measured = Vec::new();
        for mut drawn in experiments {
            if context.effort < 1.0 {
                drawn.truncate(FEW);
            }
            let problem = set.problem(&drawn, CurveForm::Reduced);
            let placement = first_fit(&problem, LimitMethod::Relaxed);
            let mut latencies = Vec::new();
            for server in &placement.servers {
                interrupted(context)?;
                latencies.extend(play(context, &problem, server, &drawn, &storage, &traffic)?);
            }
            measured.push(latencies);
        }
        Ok(measured)
    }

    /// The part of a trace that is played, once: limits are for the length of the trace, and may be below its mean rate.
    fn played(self, jobs: &[Job]) -> Result<CircularTrace<Job>, model::CircularTraceError> {
        let last = jobs.last().map_or(Nanos::ZERO, |job| job.arrival);
        let from =
            if self == Self::Whole { 0 } else { jobs.partition_point(|job| job.arrival < middle(last)) };
        CircularTrace::from_first_arrival(jobs[from..].to_vec(), PLAYED_PERIOD)
    }
}

/// Plays the workloads of a server under its limits.
fn play(
    context: &Context,
    problem: &PlanningProblem,
    server: &PlannedServer,
    drawn: &[DrawnWorkload],
    storage: &StorageServer,
    traffic: &[Arc<CircularTrace<Job>>],
) -> Result<Vec<MeasuredWorkload>, FigureError> {
    let guarantees = server.guarantees(problem);
    let policy = policy(problem, server, &guarantees);
    let mut workloads = Vec::new();
    for guarantee in &guarantees {
        let workload = &problem.workloads[guarantee.workload];
        let trace = traffic[drawn[guarantee.workload].trace].clone();
        workloads.push(SimulatedWorkload {
            name: workload.name.clone(),
            slo: Some(workload.slo),
            best_effort: false,
            weight: 1,
            requests: WorkloadRequests::Recorded {
                trace,
                accesses: Arc::default(),
                begin: Some(Nanos::ZERO),
            },
        });
    }
    let mut plan = SimulationPlan::of_requests(1, 0);
    plan.replications = 1;
    plan.window.span = Some((Nanos::ZERO, PLAYED_PERIOD));
    // Everything is sent within a part of the window.
    plan.transient = true;
    let rules = ServerRules::Policy(Box::new(policy));
    let case = SimulationCase::storage("server".into(), storage.clone(), workloads, &rules, plan);
    let outcomes = context.run_case(case.map_err(OperationError::input)?)?.workload_outcomes();
    let mut measured = Vec::new();
    for outcome in outcomes {
        // A workload whose requests all fall outside the window has no latency.
        if let (Some(slo), Some(latency_s)) = (outcome.slo, outcome.measured_s) {
            measured.push(MeasuredWorkload { slo_s: slo.latency.0, latency_s });
        }
    }
    Ok(measured)
}

/// The limits of a server as a policy.
fn policy(problem: &PlanningProblem, server: &PlannedServer, guarantees: &[Guarantee]) -> Policy {
    let network_bytes_per_s = network().bytes_per_sec();
    let mut workloads = Vec::new();
    for guarantee in guarantees {
        let workload = &problem.workloads[guarantee.workload];
        let limits = server.limits_of(guarantee.workload).iter();
        let limits =
            limits.map(|(stage, limit)| StageLimit::new(stage, *limit, network_bytes_per_s)).collect();
        let priority = u32::try_from(guarantee.priority).expect("fewer than 2^32 workloads");
        let placement = PolicyPlacement {
            server: "server".into(),
            priority: PerStage::from_fn(|_| priority),
            bound_s: Some(guarantee.total),
            limits,
        };
        workloads.push(PolicyWorkload::admitted(workload.name.as_str(), workload.slo, placement));
    }
    let server = PolicyServer {
        name: "server".into(),
        class: "server".into(),
        network_bytes_per_s,
        storage_profile: "ssd".into(),
        storage_profile_hash: None,
        enforcement: None,
    };
    Policy::new(LimitMethod::Relaxed.name(), vec![server], workloads)
        .unwrap_or_else(|error| panic!("limits that cannot be enforced: {error}"))
}

fn title(experiment: usize) -> String {
    match SLOS_S.get(experiment) {
        Some(slo) => format!("An SLO of {} for all (figure 5.5)", format_time(*slo)),
        None => "Random SLOs (figure 5.6)".to_owned(),
    }
}

/// Latencies of the workloads of an experiment, each replay from the workload with the tightest SLO to that with the
/// loosest, and by latency.
fn plot(experiment: usize, results: &[Vec<Vec<MeasuredWorkload>>]) -> FigurePlot {
    let mut lines = Vec::new();
    for (replay, experiments) in REPLAYS.into_iter().zip(results) {
        let mut workloads = experiments[experiment].clone();
        workloads.sort_by(|a, b| a.slo_s.total_cmp(&b.slo_s).then(a.latency_s.total_cmp(&b.latency_s)));
        let numbered = |value: fn(&MeasuredWorkload) -> f64| {
            workloads.iter().enumerate().map(move |(number, one)| (number as f64 + 1.0, value(one)))
        };
        lines.push(FigureSeries::new(replay.name(), numbered(|one| one.latency_s)));
        if replay == REPLAYS[REPLAYS.len() - 1] {
            lines.push(FigureSeries::new("SLO", numbered(|one| one.slo_s)));
        }
    }
    let x = FigureAxis::linear("workload, by SLO and latency", AxisQuantity::Number);
    let y = FigureAxis::log("99.9th percentile of the latency", AxisQuantity::Seconds);
    FigurePlot::new(title(experiment), x, y, lines)
}

fn reading(results: &[Vec<Vec<MeasuredWorkload>>]) -> String {
    let counts: Vec<String> =
        results.iter().map(|of| of.iter().map(Vec::len).sum::<usize>().to_string()).collect();
    format!(
        "All traces that can have an SLO of 100, 150, 250, 500 or 1000 ms alone on a server, and {MIXED} draws with random \
         SLOs, on servers by WorkloadCompactor's program and first fit, with the published bound, which has servers that \
         preempt; the simulated device finishes what it has begun. Requests are played by their limits and priorities, \
         the played part of each trace once and all at the same time, as in the thesis (workloads in all: {}, by the order \
         of the legend). Halves are of equal time. `--quick` has the first {FEW} workloads of each.",
        counts.join(", ")
    )
}

fn claims(results: &[Vec<Vec<MeasuredWorkload>>]) -> Vec<Claim> {
    let worst = |replay: usize| {
        let shares = results[replay].iter().flatten().map(|workload| workload.share_of_slo());
        shares.fold(0.0, f64::max)
    };
    let missed = |replay: usize| {
        let all: Vec<f64> =
            results[replay].iter().flatten().map(|workload| workload.share_of_slo()).collect();
        let count = all.iter().filter(|share| **share > 1.0).count();
        (count, all.len())
    };
    let format_ratio = |ratio: f64| format!("{ratio:.2} of the SLO");
    let (missed_count, all) = missed(1);
    let missed_share = missed_count as f64 / all as f64;
    let count_words = format!("{missed_count} of {all}");
    vec![
        Claim::exact(
            "all workloads keep their SLOs where their curves describe them",
            Expected::AtMost(1.0),
            worst(0),
            format_ratio,
        )
        .remark("the largest 99.9th percentile ÷ SLO"),
        Claim::exact(
            "almost all workloads keep their SLOs under limits for the other half of the trace (at most 10 % miss)",
            Expected::AtMost(0.1),
            missed_share,
            format_change,
        )
        .shown_as(count_words.clone())
        .because(HALVES),
        Claim::exact(
            "a few workloads miss their SLOs under limits for the other half of the trace",
            Expected::Positive,
            missed_share,
            format_change,
        )
        .shown_as(count_words),
        Claim::exact(
            "all workloads keep their SLOs under limits for the other half of the trace with a margin of 10 %",
            Expected::AtMost(1.0),
            worst(2),
            format_ratio,
        )
        .remark(&format!("{} of {} workloads miss theirs; {HALVES}", missed(2).0, missed(2).1)),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::claim::Agreement;

    /// An experiment of 20 workloads, so many of which miss their SLO.
    fn experiment(missed: usize) -> Vec<Vec<MeasuredWorkload>> {
        let latency = |number: usize| if number < missed { 0.2 } else { 0.05 };
        vec![(0..20).map(|number| MeasuredWorkload { slo_s: 0.1, latency_s: latency(number) }).collect()]
    }

    fn verdicts(missed: [usize; 3]) -> Vec<Agreement> {
        claims(&missed.map(experiment)).iter().map(|claim| claim.agreement).collect()
    }

    #[test]
    fn claims_are_judged_by_the_latencies() {
        use Agreement::{Agree, Differ};
        assert_eq!(verdicts([0, 1, 0]), [Agree, Agree, Agree, Agree]);
        assert_eq!(verdicts([1, 3, 1]), [Differ, Differ, Agree, Differ]);
        assert_eq!(verdicts([0, 0, 0]), [Agree, Agree, Differ, Agree]);
    }

    /// No request is both in the part that limits are for and in that which is played.
    #[test]
    fn the_second_half_is_played() {
        let job = |seconds: u64| Job {
            arrival: Nanos(seconds * 1_000_000_000),
            work: PerStage::from_fn(|_| Nanos(1)),
        };
        let jobs: Vec<Job> = (0..=10).map(job).collect();
        let played = Replay::SecondHalf.played(&jobs).expect("there are requests");
        assert_eq!(played.items().len(), 6, "those at 5 s and later");
        assert_eq!(Replay::Whole.played(&jobs).expect("all").items().len(), 11);
    }
}
