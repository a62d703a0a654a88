//! Do promises hold in the next window of traffic, and what do they cost? Workloads are placed by the first half of each trace,
//! under `replayed`, `probabilistic` and `calibrated` at several coverages, and judged by replaying the second half, which no
//! model has seen.
//!
//! For each model the table has the servers used, the refused workloads, and how often, over workloads and
//! alignments of the second half, a workload's percentile exceeded its promised bound, and its SLO; then how
//! often all workloads of a server, and of the plan, were within the bounds, and within the SLOs. A set is
//! either the published 41 workloads or random draws of their traces with random SLOs of one percentile.
//! Under `in hindsight` the workloads that the model above admitted are placed by `replayed` from the second
//! half itself: about the minimum of servers with knowledge of the future.
//!
//! With `--parts 1,2,4,8` another table follows: the same sets planned from the whole first half, then from its latest half,
//! quarter and eighth, all judged by the second half. For each coverage it has the share of workloads, and of servers, within
//! their bounds, with a 95 % confidence interval over the sets (or, where all are, over the servers), and the servers
//! beside those of `worst-case` and `replayed` for the same sets.
//!
//! `cargo bench -p plan --bench next_window`; `-- --sets N` draws as many sets, `-- --draw N` workloads in each,
//! `-- --seed N`, `-- --percentile P`, `-- --link` links alone, `-- --table FILE` with `--traces FOLDER` other workloads than the
//! published ones, `--window SECONDS` the length of the windows, `-- --coverages 80,95`, `-- --shift` begins every drawn trace at
//! a random time, `-- --scope server` counts servers, `-- --preemptive` servers that interrupt what they have begun,
//! `-- --generated` draws from generated traffic in place of traces.

mod support;

use confidence::Estimate;
use model::{CircularTrace, Job, LatencyModel, PerStage, Slo};
use operation::Silent;
use plan::prediction::{
    CalibrationGoal, CalibrationScope, ModelName, ModelPlacement, PredictionProblem, TracedWorkload, place,
};
use predict::Replayed;
use rand::rngs::StdRng;
use rand::{RngExt as _, SeedableRng as _};
use sim::{Alignment, PreemptionMode, ReplayStream, ReplaySystem, ReplayTrace};
use std::path::PathBuf;
use std::sync::Arc;
use support::{SERVER_SLOS, WorkloadTable, one_of, text_after};
use units::{Nanos, Percentile};

/// Random SLOs of workloads on links, seconds.
const LINK_SLOS: [f64; 4] = [0.01, 0.02, 0.05, 0.1];
/// Links are slow enough to fill.
const LINK: &str = "31.25MB/s";
const SERVER: &str = "125MB/s";
/// Alignments of the second halves, of a family that no model knows.
const ALIGNMENTS: usize = 20;
/// Windows of the second half that judge a plan, evenly spaced.
const JUDGED_WINDOWS: u64 = 20;
const JUDGE: u64 = 0x6e_6578_7421;

fn main() {
    let Some(problem) = problem() else { return };
    if let Some(parts) = text_after("--parts") {
        return shrinking(&problem, &parts);
    }
    let coverages = text_after("--coverages").unwrap_or_else(|| "80,90,95,99".into());
    let coverages: Vec<f64> =
        coverages.split(',').map(|percent| percent.parse::<f64>().expect("a number") / 100.0).collect();
    println!(
        "{:>4} {:>28} {:>8} {:>7} | {:>15} | {:>15} | {:>15} | {:>7}",
        "", "", "", "", "workloads over", "servers over", "plans over", ""
    );
    println!(
        "{:>4} {:>28} {:>8} {:>7} | {:>7} {:>7} | {:>7} {:>7} | {:>7} {:>7} | {:>7}",
        "set",
        "model",
        "servers",
        "refused",
        "bound",
        "SLO",
        "a bound",
        "an SLO",
        "a bound",
        "an SLO",
        "seconds"
    );
    let mut totals: Vec<(String, JudgedPlan)> = Vec::new();
    let sets = number_after("--sets").unwrap_or(1);
    for set in 0..sets {
        let drawn = number_after("--draw").map(|count| draw(&problem, count, set as u64));
        let [first, second] = drawn.as_ref().unwrap_or(&problem).halves().expect("both halves have requests");
        let mut judge = |name: String, first: &PredictionProblem, model: ModelName| {
            let placed = place(first, model, &|| false, &Silent);
            let admitted = second.with_workloads(admitted(&second, &placed));
            let hindsight = place(&admitted, ModelName::Replayed, &|| false, &Silent);
            let both = [
                (name.clone(), judge_whole(&second, &placed)),
                (in_hindsight(&name), judge_whole(&admitted, &hindsight)),
            ];
            for (name, judged) in both {
                judged.print(&set.to_string(), &name);
                match totals.iter_mut().find(|(known, _)| *known == name) {
                    Some((_, total)) => total.add(&judged),
                    None => totals.push((name, judged)),
                }
            }
        };
        judge("probabilistic".into(), &first, ModelName::Probabilistic);
        judge("replayed".into(), &first, ModelName::Replayed);
        for &coverage in &coverages {
            let window = number_after("--window").map(window_of);
            let mut first = first.with_workloads(first.cluster.workloads.clone());
            first.calibration = CalibrationGoal { coverage, window, ..CalibrationGoal::default() };
            judge(format!("calibrated {}%", coverage * 100.0), &first, ModelName::Calibrated);
        }
    }
    for (name, total) in totals.iter().filter(|_| sets > 1) {
        total.print("all", name);
    }
}

/// Prints what plans from less and less data promise and need.
fn shrinking(problem: &PredictionProblem, parts: &str) {
    let sets = number_after("--sets").unwrap_or(4);
    let coverages = text_after("--coverages").unwrap_or_else(|| "80,90,95".into());
    println!(
        "{:>6} {:>17} | {:>7} | {:>20} | {:>20} | {:>20} | {:>20} | {:>7} {:>7}",
        "data",
        "model",
        "servers",
        "workloads in bounds",
        "servers in bounds",
        "workloads in SLOs",
        "servers in SLOs",
        "refused",
        "seconds"
    );
    for part in parts.split(',') {
        let part: u64 = part.parse().expect("a whole number");
        let mut models = vec![("worst-case".to_owned(), ModelName::WorstCase, 0.5, 1.0)];
        let loads = text_after("--loads").unwrap_or_else(|| "1".into());
        for load in loads.split(',') {
            let factor: f64 = load.parse().expect("a number");
            models.push((format!("replayed x{load}"), ModelName::Replayed, 0.5, factor));
        }
        for percent in coverages.split(',').filter(|_| coverages != "none") {
            let coverage = percent.parse::<f64>().expect("a number") / 100.0;
            models.push((format!("calibrated {percent}%"), ModelName::Calibrated, coverage, 1.0));
        }
        for (name, model, coverage, load) in models {
            let mut plans = Vec::new();
            for set in 0..sets {
                let drawn = number_after("--draw").map(|count| draw(problem, count, set as u64));
                let problem = drawn.as_ref().unwrap_or(problem);
                let halves = match number_after("--blocks") {
                    None => problem.halves(),
                    Some(blocks) => random_halves(problem, blocks as u64, set as u64),
                };
                let Some([first, second]) = halves else { continue };
                let Some(mut first) = latest_part(&first, part) else { continue };
                first.calibration = CalibrationGoal {
                    coverage,
                    window: number_after("--window").map(window_of),
                    scope: scope(),
                };
                let placed = place(&first.with_work(load), model, &|| false, &Silent);
                plans.push(judge_windows(&second, &first, &placed));
            }
            print_plans(&format!("1/{part}"), &name, &plans);
        }
    }
}

/// The last `1/part` of each trace; `None` where nothing arrives in it.
fn latest_part(problem: &PredictionProblem, part: u64) -> Option<PredictionProblem> {
    let mut workloads = problem.cluster.workloads.clone();
    for workload in &mut workloads {
        let period = workload.traffic.period();
        let begin = Nanos(period.0 - period.0 / part);
        workload.traffic = Arc::new(workload.traffic.window(begin, period)?);
    }
    Some(problem.with_workloads(workloads))
}

/// The traffic cut into so many blocks, of which a random half is planned from and the other judges.
fn random_halves(problem: &PredictionProblem, blocks: u64, set: u64) -> Option<[PredictionProblem; 2]> {
    let seed = number_after("--seed").unwrap_or(1) as u64;
    let mut random = StdRng::seed_from_u64(seed.wrapping_mul(3_000_003) + set);
    let mut halves = [Vec::new(), Vec::new()];
    for workload in &problem.cluster.workloads {
        let length = workload.traffic.period().0 / (2 * blocks);
        let mut numbers: Vec<u64> = (0..2 * blocks).collect();
        for last in (1..numbers.len()).rev() {
            numbers.swap(last, random.random_range(0..=last));
        }
        let (first, second) = numbers.split_at(numbers.len() / 2);
        for (half, numbers) in halves.iter_mut().zip([first, second]) {
            let mut jobs = Vec::new();
            for (position, number) in numbers.iter().enumerate() {
                let begin = number * length;
                let items = workload.traffic.items().iter();
                let block = items.filter(|job| (begin..begin + length).contains(&job.arrival.0));
                let moved = |job: &Job| Job {
                    arrival: Nanos(job.arrival.0 - begin + position as u64 * length),
                    ..*job
                };
                jobs.extend(block.map(moved));
            }
            let traffic = CircularTrace::new(jobs, Nanos(blocks * length)).ok()?;
            half.push(TracedWorkload { traffic: Arc::new(traffic), ..workload.clone() });
        }
    }
    Some(halves.map(|workloads| problem.with_workloads(workloads)))
}

/// Judges a plan by the windows of the second half, each as long as the promise says.
fn judge_windows(
    second: &PredictionProblem,
    first: &PredictionProblem,
    placed: &ModelPlacement,
) -> JudgedPlan {
    let mut lengths = Vec::new();
    let mut windows = u64::MAX;
    for (planned, workload) in first.cluster.workloads.iter().zip(&second.cluster.workloads) {
        let length = first.calibration.window_length(&planned.traffic);
        windows = windows.min(workload.traffic.period().0 / length.0);
        lengths.push(length.0);
    }
    let judged = windows.clamp(1, JUDGED_WINDOWS);
    let mut total = JudgedPlan::default();
    for number in 0..judged {
        let position = number * windows.max(1) / judged;
        let mut members = Vec::new();
        for (workload, length) in second.cluster.workloads.iter().zip(&lengths) {
            let window = workload.traffic.window(Nanos(position * length), Nanos((position + 1) * length));
            members
                .push(window.map(|window| TracedWorkload { traffic: Arc::new(window), ..workload.clone() }));
        }
        let plan = judge(second, &members, placed, ALIGNMENTS.div_ceil(judged as usize));
        if number == 0 {
            total = plan;
        } else {
            (0..3).for_each(|what| {
                total.asked[what] += plan.asked[what];
                (0..2).for_each(|limit| total.over[what][limit] += plan.over[what][limit]);
            });
        }
    }
    total
}

/// A row for the plans of all sets.
fn print_plans(data: &str, name: &str, plans: &[JudgedPlan]) {
    let servers: usize = plans.iter().map(|plan| plan.servers).sum();
    let refused: usize = plans.iter().map(|plan| plan.refused).sum();
    let seconds: f64 = plans.iter().map(|plan| plan.seconds).sum();
    let within = |what: usize, limit: usize| {
        let share = |plan: &JudgedPlan| {
            100.0 - 100.0 * plan.over[what][limit] as f64 / plan.asked[what].max(1) as f64
        };
        let shares: Vec<f64> = plans.iter().map(share).collect();
        let Some(mean) = Estimate::of(&shares, 0.95) else { return String::new() };
        if mean.has_interval() {
            let low = (mean.value - mean.half_width).max(0.0);
            let high = (mean.value + mean.half_width).min(100.0);
            format!("{:.1}% ({low:.1}-{high:.1})", mean.value)
        } else if mean.value >= 100.0 {
            // Among n independent servers without one exceedance, 3/n is its largest probability at 95 %.
            format!("100.0% ({:.1}-100)", (100.0 - 300.0 / servers.max(1) as f64).max(0.0))
        } else {
            format!("{:.1}%", mean.value)
        }
    };
    let mean = servers as f64 / plans.len().max(1) as f64;
    println!(
        "{data:>6} {name:>17} | {mean:>7.2} | {:>20} | {:>20} | {:>20} | {:>20} | {refused:>7} {seconds:>7.1}",
        within(0, 0),
        within(1, 0),
        within(0, 1),
        within(1, 1)
    );
}

/// Unit that the coverage counts.
fn scope() -> CalibrationScope {
    match text_after("--scope").as_deref() {
        None | Some("workload") => CalibrationScope::Workload,
        Some("server") => CalibrationScope::Server,
        Some("plan") => CalibrationScope::Plan,
        Some(other) => panic!("--scope {other}: expected workload, server or plan"),
    }
}

/// Returns the name of a model's hindsight in totals and in the table.
fn in_hindsight(model: &str) -> String {
    format!("{model} in hindsight")
}

/// The workloads of `problem` that a plan has on a server.
fn admitted(problem: &PredictionProblem, placed: &ModelPlacement) -> Vec<TracedWorkload> {
    let members = placed.servers.iter().flatten().map(|forecast| forecast.bound.workload);
    members.map(|member| problem.cluster.workloads[member].clone()).collect()
}

fn window_of(seconds: usize) -> Nanos {
    assert!(seconds > 0, "--window 0: expected a whole number of seconds above 0");
    Nanos(seconds as u64 * 1_000_000_000)
}

/// The workloads that are drawn from, or placed as they are; `None`, loudly, where the published ones are absent.
fn problem() -> Option<PredictionProblem> {
    let link_only = std::env::args().any(|arg| arg == "--link");
    let folder = testkit::shared("traces")?;
    let slos = text_after("--table").map_or_else(|| folder.join("slos.csv"), PathBuf::from);
    let network = text_after("--network").unwrap_or_else(|| if link_only { LINK } else { SERVER }.into());
    let traces = text_after("--traces").map_or_else(|| folder.clone(), PathBuf::from);
    let mut problem = WorkloadTable { slos, traces, network, link_only }.problem()?;
    if std::env::args().any(|arg| arg == "--preemptive") {
        problem.enforced = None;
    }
    if std::env::args().any(|arg| arg == "--generated") {
        let mut random = StdRng::seed_from_u64(number_after("--seed").unwrap_or(1) as u64);
        for workload in &mut problem.cluster.workloads {
            workload.traffic = Arc::new(generated(&workload.traffic, &mut random));
        }
    }
    Some(problem)
}

/// Traffic with the jobs of a trace in random order, which come in on-off periods: exponential ones of two rates, with 1 s on
/// and 4 s off in the mean.
fn generated(traffic: &CircularTrace<Job>, random: &mut StdRng) -> CircularTrace<Job> {
    let count = traffic.items().len();
    let period = traffic.period().0 as f64;
    let mut exponential = |mean: f64| -mean * random.random_range(f64::EPSILON..1.0f64).ln();
    let gap = 0.2 * period / count as f64;
    let mut arrivals = Vec::with_capacity(count);
    let mut at = 0.0;
    while arrivals.len() < count {
        let end = at + exponential(1e9);
        while at < end && arrivals.len() < count {
            arrivals.push(at);
            at += exponential(gap);
        }
        at = at.max(end) + exponential(4e9);
    }
    let items = traffic.items();
    let mut jobs = Vec::with_capacity(count);
    for arrival in arrivals {
        let job = items[random.random_range(0..count)];
        #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "minutes")]
        let arrival = Nanos(arrival as u64);
        jobs.push(Job { arrival, ..job });
    }
    #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "minutes")]
    let end = at as u64;
    CircularTrace::new(jobs, Nanos(end.max(traffic.period().0) + 1)).expect("ascending arrivals")
}

/// Rotates the requests of the period to begin at a random time.
fn shifted(traffic: &CircularTrace<Job>, random: &mut StdRng) -> CircularTrace<Job> {
    let period = traffic.period();
    let shift = random.random_range(0..period.0);
    let mut jobs = traffic.items().to_vec();
    for job in &mut jobs {
        job.arrival = Nanos((job.arrival.0 + shift) % period.0);
    }
    jobs.sort_by_key(|job| job.arrival);
    CircularTrace::new(jobs, period).expect("within the period")
}

/// So many workloads with random traces of the problem, and random SLOs.
fn draw(problem: &PredictionProblem, count: usize, set: u64) -> PredictionProblem {
    let seed = number_after("--seed").unwrap_or(1) as u64;
    let random = StdRng::seed_from_u64(seed.wrapping_mul(1_000_003) + set);
    let percentile = text_after("--percentile").map_or(99.9, |text| text.parse().expect("a number"));
    let percentile = Percentile::new(percentile).expect("a percentile");
    let slos = if problem.profile().is_none() { &LINK_SLOS[..] } else { &SERVER_SLOS };
    let mut drawn = support::draw(problem, count, random, |random| {
        Slo::new(percentile, one_of(slos, random)).expect("a positive latency")
    });
    if std::env::args().any(|arg| arg == "--shift") {
        let mut random = StdRng::seed_from_u64(seed.wrapping_mul(2_000_003) + set);
        for workload in &mut drawn.cluster.workloads {
            workload.traffic = Arc::new(shifted(&workload.traffic, &mut random));
        }
    }
    drawn
}

/// Judged plan: counts of workloads out of totals.
#[derive(Clone, Default)]
struct JudgedPlan {
    servers: usize,
    refused: usize,
    /// Workloads, servers and plans, each times the alignments.
    asked: [usize; 3],
    /// Of these, how many were over a bound, and over an SLO.
    over: [[usize; 2]; 3],
    seconds: f64,
}

/// Replays every server of a plan with the traffic of `problem`.
fn judge_whole(problem: &PredictionProblem, placed: &ModelPlacement) -> JudgedPlan {
    let traffic: Vec<_> = problem.cluster.workloads.iter().cloned().map(Some).collect();
    judge(problem, &traffic, placed, ALIGNMENTS)
}

fn judge(
    problem: &PredictionProblem,
    traffic: &[Option<TracedWorkload>],
    placed: &ModelPlacement,
    alignments: usize,
) -> JudgedPlan {
    let mut judged = JudgedPlan {
        servers: placed.servers.len(),
        refused: placed.packing.refused.len(),
        seconds: placed.search.as_secs_f64(),
        ..JudgedPlan::default()
    };
    let mut plan_over = vec![[false; 2]; alignments];
    for forecasts in &placed.servers {
        let members: Vec<usize> = forecasts.iter().map(|forecast| forecast.bound.workload).collect();
        let priorities: Vec<u32> = forecasts.iter().map(|forecast| forecast.bound.priority).collect();
        let seen = replayed(problem, traffic, &members, &priorities, alignments);
        for (alignment, plan_over) in plan_over.iter_mut().enumerate() {
            let mut server_over = [false; 2];
            for (member, forecast) in forecasts.iter().enumerate() {
                let slo = problem.spec(members[member]).slo.latency.0;
                let over = [forecast.bound.seconds(), slo].map(|limit| seen[alignment][member] > limit);
                judged.count(0, over);
                server_over = either(server_over, over);
            }
            judged.count(1, server_over);
            *plan_over = either(*plan_over, server_over);
        }
    }
    plan_over.into_iter().for_each(|over| judged.count(2, over));
    judged
}

fn either(a: [bool; 2], b: [bool; 2]) -> [bool; 2] {
    [a[0] || b[0], a[1] || b[1]]
}

/// The percentile of each member in each alignment, base latency included, seconds; 0 without requests; infinite on a server that
/// is overloaded.
fn replayed(
    problem: &PredictionProblem,
    traffic: &[Option<TracedWorkload>],
    members: &[usize],
    priorities: &[u32],
    alignments: usize,
) -> Vec<Vec<f64>> {
    let present: Vec<usize> = (0..members.len()).filter(|&n| traffic[members[n]].is_some()).collect();
    let sketch = |&number: &usize| {
        Replayed::default().sketch(&traffic[members[number]].as_ref().expect("present").traffic)
    };
    let sketches: Vec<Option<ReplayTrace>> = present.iter().map(sketch).collect();
    let mut streams = Vec::new();
    let mut percentiles = Vec::new();
    for (sketch, &number) in sketches.iter().zip(&present) {
        let trace = sketch.as_ref().expect("minutes, not years");
        let workload = &problem.cluster.workloads[members[number]];
        let priority = PerStage::from_fn(|_| priorities[number]);
        streams.push(ReplayStream { trace, priority, group: workload.group });
        percentiles.push(workload.spec.slo.percentile);
    }
    let mut seen = vec![vec![0.0; members.len()]; alignments];
    if streams.is_empty() {
        return seen;
    }
    let Ok(system) = ReplaySystem::new(streams) else {
        return vec![vec![f64::INFINITY; members.len()]; alignments];
    };
    let alignments: Vec<Alignment> = Alignment::random(JUDGE, alignments).collect();
    let runs = sim::alignment_percentiles(&system, PreemptionMode::Preemptive, &alignments, &percentiles);
    for ((values, _), seen) in runs.into_iter().zip(&mut seen) {
        for (value, &number) in values.into_iter().zip(&present) {
            seen[number] = value.map_or(0.0, |nanos| nanos.as_secs() + problem.base_latency(members[number]));
        }
    }
    seen
}

impl JudgedPlan {
    /// One more workload, server or plan, and whether it was over a bound and an SLO.
    fn count(&mut self, what: usize, over: [bool; 2]) {
        self.asked[what] += 1;
        for (count, over) in self.over[what].iter_mut().zip(over) {
            *count += usize::from(over);
        }
    }

    fn add(&mut self, other: &Self) {
        self.servers += other.servers;
        self.refused += other.refused;
        self.seconds += other.seconds;
        for what in 0..3 {
            self.asked[what] += other.asked[what];
            (0..2).for_each(|limit| self.over[what][limit] += other.over[what][limit]);
        }
    }

    fn print(&self, set: &str, name: &str) {
        let share = |what: usize, limit: usize| {
            let share = 100.0 * self.over[what][limit] as f64 / self.asked[what].max(1) as f64;
            format!("{share:.2}%")
        };
        println!(
            "{set:>4} {name:>28} {:>8} {:>7} | {:>7} {:>7} | {:>7} {:>7} | {:>7} {:>7} | {:>7.1}",
            self.servers,
            self.refused,
            share(0, 0),
            share(0, 1),
            share(1, 0),
            share(1, 1),
            share(2, 0),
            share(2, 1),
            self.seconds
        );
    }
}

/// The number after a word among the program's arguments.
fn number_after(word: &str) -> Option<usize> {
    let text = text_after(word)?;
    Some(text.parse().unwrap_or_else(|_| panic!("{word} {text}: expected a whole number")))
}
