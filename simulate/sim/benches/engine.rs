//! The engine: closed forms with their intervals, jobs per second beside SimPy and Ciw on the same models, cost
//! against the number of waiting requests, memory against the number simulated, and event queues beside each other.
//!
//! `cargo bench -p sim --bench engine`; PYTHON names another interpreter than python3.

#[path = "../tests/engine/forms.rs"]
mod forms;
#[path = "../tests/engine/support.rs"]
mod support;

use discipline::serve::{DisciplineSpec, LimitedSharingParameters};
use forms::memoryless;
use rand::rngs::StdRng;
use rand::{RngExt as _, SeedableRng as _};
use sim::engine::{
    MeasurementWindow, Measures, NetworkStation, QueueingNetwork, SimulationEngine, SimulationPlan, replicate,
};
use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::hint::black_box;
use std::process::Command;
use std::time::Instant;
use support::{SERVICE, entry, nanos, single};

fn main() {
    // First, because the system tells the largest memory so far.
    memory();
    closed_forms();
    let ours = speed();
    python(&ours);
    waiting();
    queues();
}

fn closed_forms() {
    println!(
        "Closed forms, 16 replications of 50,000 requests, mean service times; 99 % intervals;\n\
         models share their seeds, so that their errors are alike"
    );
    println!("{:34} {:>9} {:>9} {:>8} {:>8}", "model", "exact", "measured", "error", "interval");
    let mut missed = 0;
    let forms = forms::all();
    for form in &forms {
        let plan = SimulationPlan { confidence: 0.99, ..SimulationPlan::of_requests(50_000, 1000) };
        let report = replicate(&form.network, &form.load, &plan).expect("a valid model");
        let estimate = report.estimate(&form.figure).expect("requests were measured");
        missed += usize::from(!estimate.contains(form.exact));
        println!(
            "{:34} {:9.4} {:9.4} {:+7.2}% ±{:6.2}%{}",
            form.name,
            form.exact,
            estimate.value,
            100.0 * (estimate.value / form.exact - 1.0),
            100.0 * estimate.relative(),
            if estimate.contains(form.exact) { "" } else { "  outside" }
        );
    }
    println!("{missed} of {} outside; one in a hundred is expected\n", forms.len());
}

/// A model with its load per mean service time.
fn models() -> Vec<(&'static str, QueueingNetwork, f64)> {
    let chain = |kind: &DisciplineSpec| {
        QueueingNetwork::chain(
            (0..3).map(|tier| NetworkStation::new(&format!("tier {tier}"), 3, kind.clone())).collect(),
        )
    };
    let slice = nanos(0.25 * SERVICE).0;
    vec![
        ("M/M/1", single(1, DisciplineSpec::Fifo), 0.8),
        ("M/M/1-PS", single(1, DisciplineSpec::Sharing { limit: None }), 0.8),
        ("chain of 3 M/M/3", chain(&DisciplineSpec::Fifo), 2.4),
        (
            "… ORF, c = 6, slice of S/4",
            chain(&DisciplineSpec::Limited(LimitedSharingParameters::oldest_first(6, slice))),
            2.4,
        ),
        (
            "… round-robin, slice of S/4",
            chain(&DisciplineSpec::Limited(LimitedSharingParameters::round_robin(slice))),
            2.4,
        ),
    ]
}

fn run(network: &QueueingNetwork, rate: f64, measured: u64) -> (Measures, f64) {
    let engine = SimulationEngine::new(network, vec![entry(1, rate, memoryless)], 1).expect("a valid model");
    let begun = Instant::now();
    let measures = engine.run(MeasurementWindow::of_requests(measured)).expect("stable");
    (measures, begun.elapsed().as_secs_f64())
}

/// Seconds of the best of three runs.
fn best(network: &QueueingNetwork, rate: f64, measured: u64) -> (Measures, f64) {
    (0..3).map(|_| run(network, rate, measured)).min_by(|a, b| a.1.total_cmp(&b.1)).expect("three runs")
}

fn speed() -> Vec<(String, f64)> {
    const JOBS: u64 = 2_000_000;
    println!("Speed on one core, best of three, {JOBS} requests and a tenth of warm-up");
    println!("{:30} {:>12} {:>12} {:>14}", "model", "jobs/s", "events/s", "mean response");
    let mut speeds = Vec::new();
    for (name, network, rate) in models() {
        let (measures, seconds) = best(&network, rate, JOBS);
        let per_s = (JOBS + JOBS / 10) as f64 / seconds;
        let mean = measures.response.mean().expect("requests were measured") / SERVICE;
        println!("{name:30} {per_s:12.0} {:12.0} {mean:14.3}", measures.events as f64 / seconds);
        speeds.push((name.to_owned(), per_s));
    }
    let (drawn, seconds) = drawing(JOBS);
    println!("{:30} {:12.0}   (sum {drawn})\n", "drawing alone, M/M/1", JOBS as f64 / seconds);
    speeds
}

/// Returns the cost of drawing the load of an M/M/1 queue, without an engine.
fn drawing(jobs: u64) -> (u64, f64) {
    let begun = Instant::now();
    let mut random = StdRng::seed_from_u64(1);
    let mut now = 0.0;
    let mut sum = 0;
    for _ in 0..jobs {
        now += support::exponential(&mut random, SERVICE);
        sum ^= nanos(now).0 ^ nanos(SERVICE * memoryless(&mut random)).0;
    }
    (black_box(sum), begun.elapsed().as_secs_f64())
}

fn python(ours: &[(String, f64)]) {
    let interpreter = std::env::var("PYTHON").unwrap_or_else(|_| "python3".to_owned());
    let script = concat!(env!("CARGO_MANIFEST_DIR"), "/benches/engine_python.py");
    let output = match Command::new(&interpreter).args([script, "100000"]).output() {
        Ok(output) if output.status.success() => String::from_utf8_lossy(&output.stdout).into_owned(),
        Ok(output) => return println!("SKIPPED SimPy and Ciw: {}", String::from_utf8_lossy(&output.stderr)),
        Err(error) => return println!("SKIPPED SimPy and Ciw: {interpreter}: {error}"),
    };
    println!("The same models in Python, 100,000 requests each");
    println!(
        "{:20} {:8} {:>12} {:>14} {:>12}",
        "model", "program", "jobs/CPU-s", "mean response", "engine ÷ it"
    );
    for line in output.lines() {
        let fields: Vec<&str> = line.split('\t').collect();
        let [model, program, jobs, seconds, mean] = fields[..] else {
            println!("SKIPPED {}: not installed for {interpreter}", fields.join(" "));
            continue;
        };
        let number = |text: &str| text.parse::<f64>().expect("the script prints numbers");
        let per_s = number(jobs) / number(seconds);
        let mine = ours.iter().find(|(name, _)| name == model).expect("the same models").1;
        println!("{model:20} {program:8} {per_s:12.0} {:14.3} {:12.0}", number(mean), mine / per_s);
    }
    println!();
}

/// All requests are there at once, and then leave: the cost per job with n waiting.
fn waiting() {
    println!("Cost per job against the number of waiting requests, ns: arrive at 1 ns gaps, then drain");
    let counts = [1_000u64, 10_000, 100_000, 1_000_000];
    println!("{:26} {:>8} {:>8} {:>8} {:>8}", "discipline", counts[0], counts[1], counts[2], counts[3]);
    let slice = nanos(0.5 * SERVICE).0;
    let kinds = [
        ("FIFO", DisciplineSpec::Fifo),
        ("oldest first", DisciplineSpec::OldestFirst),
        ("PS", DisciplineSpec::Sharing { limit: None }),
        (
            "ORF, c = 6, slice of S/2",
            DisciplineSpec::Limited(LimitedSharingParameters::oldest_first(6, slice)),
        ),
        ("round-robin, slice of S/2", DisciplineSpec::Limited(LimitedSharingParameters::round_robin(slice))),
    ];
    for (name, kind) in kinds {
        let cost = counts.map(|count| {
            let network = single(1, kind.clone());
            let times = (1_000_000 / count).clamp(1, 100);
            let seconds: f64 = (0..times).map(|_| drain(&network, count)).sum();
            seconds * 1e9 / (count * times) as f64
        });
        println!("{name:26} {:8.0} {:8.0} {:8.0} {:8.0}", cost[0], cost[1], cost[2], cost[3]);
    }
    println!();
}

fn drain(network: &QueueingNetwork, count: u64) -> f64 {
    let mut load = entry(1, 1.0, memoryless);
    load.arrivals = sim::engine::EntryArrivals::Open(Box::new((0..count).map(units::Nanos)));
    let engine = SimulationEngine::new(network, vec![load], 1).expect("a valid model");
    let begun = Instant::now();
    engine
        .run(MeasurementWindow { warm_up: 0, ..MeasurementWindow::of_requests(count) })
        .expect("fewer than the limit");
    begun.elapsed().as_secs_f64()
}

fn memory() {
    println!("Memory against the number of simulated requests, chain of 3 M/M/3 under ORF");
    let (_, network, rate) = models().remove(3);
    for measured in [10_000u64, 100_000, 1_000_000, 4_000_000] {
        let (measures, _) = run(&network, rate, measured);
        println!("{measured:12} requests: resident {} (kB), mean {:.2} ms", resident(), mean_ms(&measures));
    }
    println!();
}

fn mean_ms(measures: &Measures) -> f64 {
    measures.response.mean().unwrap_or(f64::NAN) / 1e6
}

/// Largest resident set so far, from the system.
fn resident() -> String {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find(|line| line.starts_with("VmHWM")).unwrap_or("not known here");
    line.split_whitespace().nth(1).unwrap_or("not known here").to_owned()
}

/// The hold model: take the earliest, set it to a later time. For timers that are few and fixed.
fn queues() {
    println!("Event queues, hold model: ns per event with n timers");
    println!("{:>8} {:>12} {:>14} {:>14}", "timers", "tournament", "binary heap", "scan");
    for count in [2usize, 4, 10, 32, 100, 1000] {
        let cells = [tournament, binary_heap, scan].map(|queue| hold(count, queue));
        println!("{count:8} {:12.1} {:14.1} {:14.1}", cells[0], cells[1], cells[2]);
    }
}

const HOLDS: u32 = 2_000_000;

fn hold(count: usize, queue: fn(usize, &[u64]) -> u64) -> f64 {
    let mut random = StdRng::seed_from_u64(3);
    let steps: Vec<u64> = (0..4096).map(|_| random.random_range(1..2_000_000)).collect();
    let begun = Instant::now();
    black_box(queue(count, &steps));
    begun.elapsed().as_secs_f64() * 1e9 / f64::from(HOLDS)
}

// With its tests, which are not run here.
#[allow(dead_code, unused_imports)]
#[path = "../src/engine/timers.rs"]
mod timers;

fn tournament(count: usize, steps: &[u64]) -> u64 {
    let mut timers = timers::Timers::new(count);
    (0..count).for_each(|timer| timers.set(timer, steps[timer % steps.len()]));
    let mut sum = 0;
    for hold in 0..HOLDS as usize {
        let (timer, now) = timers.next();
        sum ^= now;
        timers.set(timer, now + steps[hold % steps.len()]);
    }
    sum
}

fn binary_heap(count: usize, steps: &[u64]) -> u64 {
    let key = |at: u64, timer: usize| Reverse(u128::from(at) << 64 | timer as u128);
    let mut heap: BinaryHeap<Reverse<u128>> = (0..count).map(|t| key(steps[t % steps.len()], t)).collect();
    let mut sum = 0;
    for hold in 0..HOLDS as usize {
        let mut first = heap.peek_mut().expect("timers are always set");
        let now = u64::try_from(first.0 >> 64).expect("64 bits are left");
        sum ^= now;
        let timer = usize::try_from(first.0 & u128::from(u64::MAX)).expect("a timer's number");
        *first = key(now + steps[hold % steps.len()], timer);
    }
    sum
}

fn scan(count: usize, steps: &[u64]) -> u64 {
    let mut at: Vec<u64> = (0..count).map(|timer| steps[timer % steps.len()]).collect();
    let mut sum = 0;
    for hold in 0..HOLDS as usize {
        let (timer, now) =
            at.iter().copied().enumerate().min_by_key(|(_, at)| *at).expect("timers are always set");
        sum ^= now;
        at[timer] = now + steps[hold % steps.len()];
    }
    sum
}
