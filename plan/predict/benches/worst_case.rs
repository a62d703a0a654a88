//! How far the worst case is from what replays reach, what a prediction costs, and what the analyses of
//! `calculus::network` give for the same server.
//!
//! `cargo bench -p predict --bench worst_case`, with `-- eight`, `analyses`, `speed` or `ratios` for one part.

#[path = "../tests/support/mod.rs"]
mod support;

use calculus::network::{
    FeedForwardNetwork, FlowBound, Hop, NetworkFlow, linear_program, multiplexing_once, separated_flow,
    total_flow,
};
use calculus::{ArrivalCurve, ServiceCurve};
use model::{CircularTrace, Job, LatencyModel as _, PerStage, ServerMember};
use predict::{Reshaping, WorstCase, WorstCaseSketch};
use rand::rngs::StdRng;
use rand::{RngExt as _, SeedableRng as _};
use sim::{Alignment, Percentiles, PreemptionMode, Replay, ReplayStream, ReplaySystem, ReplayTrace};
use std::time::Instant;
use support::{Real, Through};
use units::Nanos;

fn main() {
    let (Some(server), Some(link)) = (support::published(Through::Server), support::published(Through::Link))
    else {
        return;
    };
    let parts: [(&str, &dyn Fn()); 4] = [
        ("eight", &|| first_eight(&link)),
        ("analyses", &|| analyses(&server)),
        ("speed", &|| speed(&server)),
        ("ratios", &|| ratios(&server)),
    ];
    let wanted: Vec<String> = std::env::args().skip(1).filter(|arg| !arg.starts_with("--")).collect();
    let chosen = parts.iter().filter(|(name, _)| wanted.is_empty() || wanted.iter().any(|w| w == name));
    chosen.for_each(|(_, part)| part());
}

fn sketches(real: &[Real]) -> Vec<WorstCaseSketch> {
    real.iter().map(|r| WorstCase::default().sketch(&r.traffic)).collect()
}

/// By SLO, equal ones in the published order: a level for each.
fn by_slo(real: &[Real], chosen: &[usize]) -> Vec<u32> {
    let key = |at: usize| (real[chosen[at]].slo.latency.0, at);
    let rank = |at: usize| (0..chosen.len()).filter(|other| key(*other) < key(at)).count();
    (0..chosen.len()).map(|at| u32::try_from(rank(at)).expect("few")).collect()
}

fn members<'a>(
    real: &[Real],
    sketches: &'a [WorstCaseSketch],
    chosen: &[usize],
    priorities: &[u32],
) -> Vec<ServerMember<'a, WorstCaseSketch>> {
    let member = |(&i, &priority): (&usize, &u32)| ServerMember {
        sketch: &sketches[i],
        priority: PerStage::from_fn(|_| priority),
        group: i,
        percentile: real[i].slo.percentile,
    };
    chosen.iter().zip(priorities).map(member).collect()
}

/// By member, the longest latency in replays: all bursts together, and four random alignments.
fn replayed(real: &[Real], chosen: &[usize], priorities: &[u32]) -> Vec<f64> {
    let trace = |&i: &usize| ReplayTrace::new(real[i].traffic.clone()).expect("short");
    let traces: Vec<ReplayTrace> = chosen.iter().map(trace).collect();
    let stream = |(at, &priority): (usize, &u32)| ReplayStream {
        trace: &traces[at],
        priority: PerStage::from_fn(|_| priority),
        group: at,
    };
    let system = ReplaySystem::new(priorities.iter().enumerate().map(stream).collect()).expect("no overload");
    let mut replay = Replay::new(&system, PreemptionMode::Preemptive);
    let top: Vec<_> = chosen.iter().map(|&i| real[i].slo.percentile).collect();
    let mut longest = vec![0.0f64; chosen.len()];
    for alignment in [Alignment::BurstsTogether].into_iter().chain(Alignment::random(1, 4)) {
        let shifts = alignment.shifts(&system);
        let mut tail = Percentiles::default();
        tail.reset(&replay.counts(&shifts), &top);
        replay.run(&shifts, &mut tail);
        for (longest, latency) in longest.iter_mut().zip(tail.longest()) {
            *longest = longest.max(latency.map_or(0.0, Nanos::as_secs));
        }
    }
    longest
}

fn ratios(real: &[Real]) {
    println!("bound ÷ longest replayed latency (bursts together and 4 random alignments), priorities by SLO");
    println!("  n  mixes  violated   min   q25  median   q75    max   median if reshaped");
    let sketches = sketches(real);
    let mut random = StdRng::seed_from_u64(7);
    for (n, mixes) in [(1, 41), (2, 40), (4, 20), (8, 8), (16, 4), (32, 2)] {
        let mut ratios = Vec::new();
        let mut reshaped = Vec::new();
        for mix in 0..mixes {
            let chosen: Vec<usize> = match n {
                1 => vec![mix],
                _ => (0..n).map(|_| random.random_range(0..real.len())).collect(),
            };
            let priorities = by_slo(real, &chosen);
            let members = members(real, &sketches, &chosen, &priorities);
            let longest = replayed(real, &chosen, &priorities);
            let ratio = |model: WorstCase| {
                let bounds = model.predict(&members);
                let ratio = |(bound, longest): (Result<_, _>, &f64)| {
                    bound.map_or(f64::INFINITY, |b: model::Prediction| b.bound / longest)
                };
                bounds.into_iter().zip(&longest).map(ratio).collect::<Vec<f64>>()
            };
            ratios.extend(ratio(WorstCase::default()));
            reshaped.extend(ratio(WorstCase { reshaping: Reshaping::EveryStage }));
        }
        ratios.sort_by(f64::total_cmp);
        reshaped.sort_by(f64::total_cmp);
        let at = |values: &[f64], q: usize| values[(values.len() - 1) * q / 4];
        let violated = ratios.iter().filter(|r| **r < 1.0).count();
        println!(
            "{n:3} {mixes:6} {violated:9} {:5.2} {:5.2} {:7.2} {:5.2} {:6.1} {:8.2}",
            at(&ratios, 0),
            at(&ratios, 1),
            at(&ratios, 2),
            at(&ratios, 3),
            at(&ratios, 4),
            at(&reshaped, 2)
        );
    }
}

/// The published figure for the worst of the first eight clients on one link is 397–400 ms.
fn first_eight(real: &[Real]) {
    println!("\nfirst 8 workloads, one link of 125 MB/s, both directions, priorities by SLO: ms");
    println!("                                              worst   by priority");
    let chosen: Vec<usize> = (0..8).collect();
    let priorities = by_slo(real, &chosen);
    let sketches = sketches(real);
    let line = |name: &str, values: Vec<f64>| {
        let mut order = chosen.clone();
        order.sort_by_key(|&at| priorities[at]);
        let worst = values.iter().copied().fold(0.0, f64::max) * 1e3;
        let values: Vec<String> = order.iter().map(|&at| format!("{:.2}", values[at] * 1e3)).collect();
        println!("{name:44} {worst:7.1}   {}", values.join(" "));
    };
    let bounds = |model: WorstCase, sketches: &[WorstCaseSketch]| {
        let bounds = model.predict(&members(real, sketches, &chosen, &priorities));
        bounds.into_iter().map(|b| b.map_or(f64::INFINITY, |b| b.bound)).collect::<Vec<f64>>()
    };
    line("replayed", replayed(real, &chosen, &priorities));
    line("full curves", bounds(WorstCase::default(), &sketches));
    line("full curves, re-shaped", bounds(WorstCase { reshaping: Reshaping::EveryStage }, &sketches));
    let in_order: Vec<u32> = (0..8).collect();
    let bounds_in_order = WorstCase::default().predict(&members(real, &sketches, &chosen, &in_order));
    let bounds_in_order = bounds_in_order.into_iter().map(|b| b.map_or(f64::INFINITY, |b| b.bound)).collect();
    line("full curves, priorities in published order", bounds_in_order);
    line("full curves, hop by hop", hop_by_hop(real, &sketches, &priorities));
    for tolerance in [0.01, 0.1] {
        let limited: Vec<_> = sketches.iter().map(|s| s.map_curves(|c| limited(c, tolerance))).collect();
        line(&format!("limiters within {tolerance}"), bounds(WorstCase::default(), &limited));
    }
    for rate in [0.02, 0.05, 0.1] {
        let one = |c: &ArrivalCurve| {
            let rate = c.sustained_rate().max(rate);
            ArrivalCurve::from_limits(&[(rate, c.burst(rate))])
        };
        let one: Vec<_> = sketches.iter().map(|s| s.map_curves(one)).collect();
        line(
            &format!("one limiter each, rate {rate}, re-shaped"),
            bounds(WorstCase { reshaping: Reshaping::EveryStage }, &one),
        );
    }
    for k in [1.0, 1.5, 2.0, 3.0] {
        let one = |c: &ArrivalCurve| {
            let rate = c.sustained_rate() * k;
            ArrivalCurve::from_limits(&[(rate, c.burst(rate))])
        };
        let one: Vec<_> = sketches.iter().map(|s| s.map_curves(one)).collect();
        line(
            &format!("one limiter each, {k} × mean rate, re-shaped"),
            bounds(WorstCase { reshaping: Reshaping::EveryStage }, &one),
        );
    }
}

/// Bounds without runs of stages: a ninth member with next to no work stands in another order at every stage.
fn hop_by_hop(real: &[Real], sketches: &[WorstCaseSketch], priorities: &[u32]) -> Vec<f64> {
    let job = Job { arrival: Nanos::ZERO, work: PerStage::from_fn(|_| Nanos(1)) };
    let nothing = CircularTrace::from_first_arrival(vec![job], Nanos(1_000_000_000)).expect("a second");
    let nothing = WorstCase::default().sketch(&nothing);
    let chosen: Vec<usize> = (0..priorities.len()).collect();
    let mut members = members(real, sketches, &chosen, priorities);
    members.iter_mut().for_each(|m| m.priority = m.priority.map(|p| p + 1));
    let restless = PerStage::from_fn(|stage| if stage == model::Stage::Storage { 0 } else { 99 });
    members.push(ServerMember {
        sketch: &nothing,
        priority: restless,
        group: 99,
        percentile: real[0].slo.percentile,
    });
    let bounds = WorstCase::default().predict(&members);
    bounds.into_iter().take(priorities.len()).map(|b| b.map_or(f64::INFINITY, |b| b.bound)).collect()
}

fn limited(curve: &ArrivalCurve, tolerance: f64) -> ArrivalCurve {
    let limits: Vec<_> = placement::limiters(curve, tolerance).iter().map(|l| (l.rate, l.burst)).collect();
    ArrivalCurve::from_limits(&limits)
}

/// The four analyses on three stages, each as fast as the slowest for every job, and the model.
fn analyses(real: &[Real]) {
    println!(
        "\nanalyses of the server as fluid stages of equal speed (limiters within 5 %), priorities by SLO:"
    );
    println!("mean over workloads of bound ÷ that of the linear program, and seconds for all");
    println!(
        "  n  limiters  total flow       separated flow   mux. once        program          worst-case model"
    );
    let sketches = sketches(real);
    for n in [2, 4, 8, 16] {
        let chosen: Vec<usize> = (0..n).collect();
        let priorities = by_slo(real, &chosen);
        let curves: Vec<_> = chosen.iter().map(|&i| limited(sketches[i].path_curve(), 0.05)).collect();
        let flow = |(curve, &priority): (&ArrivalCurve, &u32)| NetworkFlow {
            arrival: curve.clone(),
            path: (0..3).map(|server| Hop { server, priority }).collect(),
        };
        let stage = ServiceCurve::rate_latency(1.0, 0.0);
        let flows = curves.iter().zip(&priorities).map(flow).collect();
        let network = FeedForwardNetwork::new(vec![stage; 3], flows).expect("a line");
        let timed = |analysis: fn(&FeedForwardNetwork) -> Vec<FlowBound>| {
            let start = Instant::now();
            let bounds: Vec<f64> = analysis(&network).iter().map(|b| b.delay).collect();
            (bounds, start.elapsed().as_secs_f64())
        };
        let all = [timed(total_flow), timed(separated_flow), timed(multiplexing_once), timed(linear_program)];
        let start = Instant::now();
        let model = WorstCase::default().predict(&members(real, &sketches, &chosen, &priorities));
        let seconds = start.elapsed().as_secs_f64();
        let model = model.into_iter().map(|b| b.map_or(f64::INFINITY, |b| b.bound)).collect::<Vec<f64>>();
        let limiters: usize = curves.iter().map(|c| c.limits().len()).sum();
        print!("{n:3} {limiters:9}");
        for (bounds, seconds) in all.iter().chain([&(model, seconds)]) {
            let ratio: f64 = bounds.iter().zip(&all[3].0).map(|(b, program)| b / program).sum();
            print!("  {:5.2} {:7.1} ms", ratio / n as f64, seconds * 1e3);
        }
        println!();
    }
}

/// One prediction for all of n workloads; works shrink so that the server is 60 % busy.
fn speed(real: &[Real]) {
    println!("\none prediction of all bounds of n workloads, a level for each, and with 8 levels");
    println!("     n  vertices        ms   µs per workload   ms, 8 levels");
    for n in [1usize, 10, 41, 100, 300, 1000] {
        let busy: f64 = (0..n).map(|i| real[i % real.len()].traffic.utilisation().into_array()[1]).sum();
        #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)]
        let shrink = |job: &Job| Job {
            arrival: job.arrival,
            // `as` truncates towards smaller work, which is what is wanted here.
            work: job.work.map(|w| Nanos((w.0 as f64 * 0.6 / busy.max(0.6)) as u64 + 1)),
        };
        let traffic = |r: &Real| {
            CircularTrace::from_first_arrival(
                r.traffic.items().iter().map(shrink).collect(),
                r.traffic.period(),
            )
        };
        let model = WorstCase::default();
        let sketches: Vec<_> = real.iter().map(|r| model.sketch(&traffic(r).expect("as it was"))).collect();
        let time = |priority: &dyn Fn(usize) -> usize| {
            let member = |i: usize| ServerMember {
                sketch: &sketches[i % sketches.len()],
                priority: PerStage::from_fn(|_| u32::try_from(priority(i)).expect("few")),
                group: i,
                percentile: real[0].slo.percentile,
            };
            let members: Vec<_> = (0..n).map(member).collect();
            let rounds = (2000 / n).clamp(1, 100);
            let start = Instant::now();
            for _ in 0..rounds {
                assert!(model.predict(&members).iter().all(Result::is_ok));
            }
            start.elapsed().as_secs_f64() * 1e3 / rounds as f64
        };
        let vertices: usize =
            (0..n).map(|i| sketches[i % sketches.len()].path_curve().vertices().len()).sum();
        let own = time(&|i| i);
        let shared = time(&|i| i % 8);
        println!("{n:6} {vertices:9} {own:9.3} {:17.2} {shared:14.3}", own * 1e3 / n as f64);
    }
}
