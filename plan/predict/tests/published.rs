//! SNC-Meister over a whole path: brute force, closed forms, simulation of the same network, and the thesis's figures.

mod support;

use calculus::snc::{
    ArrivalProcess, LatencyQuery, RandomSource, ServiceProcess, TimeStep, aggregate_in_groups,
};
use model::{CircularTrace, Job, LatencyModel, PerStage, ServerMember, Stage, UndefinedLatency};
use predict::{Convolution, PathSketch, PublishedSnc, SncByStage, WorstCase, markov_arrivals};
use rand::rngs::StdRng;
use rand::{RngExt as _, SeedableRng as _};
use sim::{Alignment, Latencies, PreemptionMode, Replay, ReplayStream, ReplaySystem, ReplayTrace};
use std::sync::Arc;
use support::Through;
use units::{Nanos, Percentile};

/// Workloads with these priorities and groups.
fn members<'a, S>(sketches: &'a [S], order: &[(u32, usize)], percent: f64) -> Vec<ServerMember<'a, S>> {
    let member = |(sketch, &(priority, group))| ServerMember {
        sketch,
        priority: PerStage::from_fn(|_| priority),
        group,
        percentile: Percentile::new(percent).expect("in range"),
    };
    sketches.iter().zip(order).map(member).collect()
}

fn bounds<M: LatencyModel>(model: &M, members: &[ServerMember<'_, M::Sketch>]) -> Vec<f64> {
    model.predict(members).into_iter().map(|bound| bound.expect("stable").bound).collect()
}

/// One request every `gap` nanoseconds, of this work by stage.
fn regular(work: [u64; 3], gap: u64) -> CircularTrace<Job> {
    let job =
        |k| Job { arrival: Nanos(k * gap), work: PerStage::from_fn(|stage| Nanos(work[stage as usize])) };
    CircularTrace::repeating((0..2000).map(job).collect()).expect("in order")
}

/// Least latency of Theorem 1 over a fine grid of θ, by plain code: `flows` are rates and mean works of one state each, of
/// which the last is the workload's, on so many queues of which each differs by a hundredth from the slowest.
fn brute_force(flows: &[(f64, f64)], queues: usize, exceeded: f64) -> f64 {
    let step = 1e-5;
    let mut least = f64::INFINITY;
    for point in 0..400_000 {
        let theta = 0.05 * 10_f64.powf(f64::from(point) / 50_000.0);
        let slope = |&(rate, mean): &(f64, f64)| {
            let mgf = if theta * mean < 1.0 { 1.0 / (1.0 - theta * mean) } else { f64::INFINITY };
            (1.0 + rate * step * (mgf - 1.0)).ln() / (theta * step)
        };
        let over_steps = |gap: f64| -(1.0 - (-theta * gap * step).exp()).ln() / theta;
        let rate = if queues > 1 { 0.99 } else { 1.0 };
        let convolution = (queues - 1) as f64 * over_steps(0.01);
        let (own, others) = flows.split_last().expect("a workload");
        let left = rate - others.iter().map(slope).sum::<f64>();
        let gap = left - slope(own);
        if gap > 0.0 {
            least = least.min((over_steps(gap) - exceeded.ln() / theta + convolution) / left);
        }
    }
    least
}

#[test]
fn a_search_by_plain_code_finds_the_same_latency() {
    for (works, stages) in [
        ([[0, 300_000, 0], [0, 200_000, 0]], [Stage::Storage].as_slice()),
        ([[300_000, 0, 100_000], [50_000, 0, 200_000]], &[Stage::NetworkIn, Stage::NetworkOut]),
        ([[10_000, 300_000, 400_000], [10_000, 200_000, 20_000]], &Stage::ALL),
    ] {
        for client_link in [false, true] {
            let model = PublishedSnc { client_link, ..PublishedSnc::default() };
            let traffic = works.map(|work| regular(work, 1_000_000));
            let sketches: Vec<PathSketch> = traffic.iter().map(|traffic| model.sketch(traffic)).collect();
            let links = stages.iter().filter(|stage| **stage != Stage::Storage).count();
            let queues = stages.len() + if client_link { links } else { 0 };
            let flow = |(k, traffic): (usize, &CircularTrace<Job>)| {
                let fitted = model.fitted(traffic, Nanos::ZERO).expect("requests");
                let [state] = &fitted.states[..] else { panic!("a steady stream has one state") };
                let largest = *works[k].iter().max().expect("stages") as f64 * 1e-9;
                assert!((state.mean_work / largest - 1.0).abs() < 1e-9, "{state:?}");
                (state.rate, state.mean_work)
            };
            let flows: Vec<(f64, f64)> = traffic.iter().enumerate().map(flow).collect();
            for percent in [90.0, 99.9] {
                let found = bounds(&model, &members(&sketches, &[(0, 0), (1, 1)], percent))[1];
                let plain = brute_force(&flows, queues, 1.0 - percent / 100.0);
                assert!((plain * 0.999_999..plain * 1.01).contains(&found), "{found} {plain}");
            }
        }
    }
}

/// The tables and one search over θ and Hölder's weights beside the expressions of the operators, as A.4 writes them.
#[test]
fn tables_give_what_the_expression_of_the_thesis_gives() {
    let Some(real) = support::published(Through::Server) else { return };
    let model = PublishedSnc::default();
    let some = &real[..4];
    let sketches: Vec<PathSketch> = some.iter().map(|real| model.sketch(&real.traffic)).collect();
    for groups in [[0, 1, 2, 3], [0, 1, 1, 3], [0, 1, 2, 0]] {
        let source = |k: usize| {
            let fitted = model.fitted(&some[k].traffic, Nanos::ZERO).expect("requests");
            let chain = Arc::new(markov_arrivals(&fitted).expect("few requests per step"));
            ArrivalProcess::source(&some[k].name, RandomSource(groups[k]), chain)
        };
        let [into, device, out] = ["in", "device", "out"].map(|name| ServiceProcess::constant(name, 1.0));
        let others = aggregate_in_groups(&[0, 1, 2].map(source));
        let service = into.convolve(&device).convolve(&out).leftover(&others);
        let step = TimeStep::new(1e-5).expect("positive");
        let query = LatencyQuery { arrivals: source(3), service, exceeded: 1e-3, step };
        let exact = query.solve().expect("stable").latency;
        let order: Vec<(u32, usize)> = (0..).zip(groups).collect();
        let found = bounds(&model, &members(&sketches, &order, 99.9))[3];
        assert!((exact * 0.995..exact * 1.03).contains(&found), "{groups:?}: {found} {exact}");
    }
}

/// Requests of a Poisson process with independent exponential works, seconds, at the stages that have one.
fn poisson(seed: u64, requests: usize, rate: impl Fn(f64) -> f64, mean: [f64; 3]) -> CircularTrace<Job> {
    let mut random = StdRng::seed_from_u64(seed);
    let mut exponential = move |mean: f64| -(1.0 - random.random::<f64>()).ln() * mean;
    let mut now = 0.0;
    let mut jobs = Vec::new();
    for _ in 0..requests {
        now += exponential(1.0 / rate(now));
        let work = mean.map(|mean| Nanos::from_secs(exponential(mean)).expect("short"));
        let arrival = Nanos::from_secs(now).expect("minutes");
        jobs.push(Job { arrival, work: PerStage::from_fn(|stage| work[stage as usize]) });
    }
    CircularTrace::repeating(jobs).expect("in order")
}

/// By Burke's theorem, the time in two M/M/1 queues of the same load in sequence has an Erlang distribution.
#[test]
fn never_below_the_closed_forms_of_one_and_two_hops() {
    let theorem = PublishedSnc::default();
    let exact = PublishedSnc { convolution: Convolution::Exact, ..PublishedSnc::default() };
    for load in [0.2, 0.4, 0.55] {
        let rate = load * 1e3;
        let sketch = |mean| [theorem.sketch(&poisson(1, 200_000, |_| rate, mean))];
        let [one, two] = [sketch([0.0, 1e-3, 0.0]), sketch([1e-3, 0.0, 1e-3])];
        let slack = 1e3 - rate;
        for percent in [90.0, 99.0, 99.9] {
            let exceeded = 1.0 - percent / 100.0;
            let bound_by =
                |model: &PublishedSnc, sketch| bounds(model, &members(sketch, &[(0, 0)], percent))[0];
            let bound = |sketch| bound_by(&exact, sketch).min(bound_by(&theorem, sketch));
            let tail_of_one = |t: f64| (-slack * t).exp();
            let tail_of_two = |t: f64| (-slack * t).exp() * (1.0 + slack * t);
            assert!(tail_of_one(bound(&one)) <= exceeded, "one hop, load {load}, p{percent}");
            assert!(tail_of_two(bound(&two)) <= exceeded, "two hops, load {load}, p{percent}");
            // Not by much more than the steps of 10 µs cost: a bound of everything would pass, too.
            let quantile = -exceeded.ln() / slack;
            assert!(bound(&one) < 6.0 * quantile, "load {load}, p{percent}: {} {quantile}", bound(&one));
        }
    }
}

const ALIGNMENTS: usize = 12;

/// The lower 99.9 % confidence limit of the share of each workload's requests that take longer than its limit in seconds, on
/// stages that pass on whole requests: each alignment is one observation.
fn exceeded(traffic: &[CircularTrace<Job>], order: &[(u32, usize)], limits: &[f64]) -> Vec<f64> {
    let traces: Vec<ReplayTrace> =
        traffic.iter().map(|traffic| ReplayTrace::new(traffic.clone()).expect("minutes")).collect();
    let stream = |(trace, &(priority, group))| ReplayStream {
        trace,
        priority: PerStage::from_fn(|_| priority),
        group,
    };
    let system = ReplaySystem::new(traces.iter().zip(order).map(stream).collect()).expect("not overloaded");
    let mut replay = Replay::new(&system, PreemptionMode::Preemptive);
    let mut shares = vec![Vec::new(); traffic.len()];
    for alignment in Alignment::random(11, ALIGNMENTS) {
        let mut latencies = Latencies::new(traffic.len());
        replay.run(&alignment.shifts(&system), &mut latencies);
        for ((stream, limit), shares) in latencies.streams.iter().zip(limits).zip(&mut shares) {
            let late = stream.iter().filter(|latency| latency.as_secs() > *limit).count();
            shares.push(late as f64 / stream.len() as f64);
        }
    }
    shares.iter().map(|shares| support::lower_limit(shares)).collect()
}

/// Traffic of the kind that the procedure fits: a rate that changes every few seconds, and exponential works. With one, two
/// and three hops, priorities of their own and shared ones, independent workloads and such that are busy together.
#[test]
fn no_simulated_percentile_of_fitted_traffic_is_above_its_bound() {
    for mean in [[0.0, 1e-3, 0.0], [1e-3, 0.0, 1e-3], [4e-4, 1e-3, 8e-4]] {
        let traffic: Vec<CircularTrace<Job>> = (0..4u32)
            .map(|k| {
                let changing = move |now: f64| {
                    let is_busy = (now / 4.0 + f64::from(k) * 0.4).rem_euclid(3.0) < 1.0;
                    if is_busy { 120.0 } else { 25.0 }
                };
                poisson(u64::from(k), 30_000, changing, mean)
            })
            .collect();
        for order in [
            [(0, 0), (1, 1), (2, 2), (3, 3)],
            [(0, 0), (0, 1), (1, 2), (1, 3)],
            [(0, 0), (1, 0), (1, 1), (2, 0)],
        ] {
            let theorem = PublishedSnc::default();
            let exact = PublishedSnc { convolution: Convolution::Exact, ..PublishedSnc::default() };
            judge(&theorem, &traffic, &order);
            judge(&exact, &traffic, &order);
            judge(&SncByStage::default(), &traffic, &order);
        }
    }
}

/// No workload is late more often than its percentile allows, at any percentile; and the simulation can say that one is.
fn judge<M: LatencyModel>(model: &M, traffic: &[CircularTrace<Job>], order: &[(u32, usize)]) {
    let sketches: Vec<M::Sketch> = traffic.iter().map(|traffic| model.sketch(traffic)).collect();
    for percent in [90.0, 99.0, 99.9] {
        let allowed = 1.0 - percent / 100.0;
        let found = bounds(model, &members(&sketches, order, percent));
        let late = exceeded(traffic, order, &found);
        assert!(late.iter().all(|late| *late <= allowed), "{} {order:?} p{percent}: {late:?}", model.name());
        let short: Vec<f64> = found.iter().map(|bound| bound / 30.0).collect();
        let late = exceeded(traffic, order, &short);
        assert!(late.iter().any(|late| *late > allowed), "{} {order:?} p{percent}: {late:?}", model.name());
    }
}

#[test]
fn overload_and_unknown_traffic_are_never_a_number() {
    let model = PublishedSnc::default();
    let half =
        [model.sketch(&regular([600_000; 3], 1_000_000)), model.sketch(&regular([600_000; 3], 1_000_000))];
    let found = model.predict(&members(&half, &[(0, 0), (1, 1)], 99.0));
    assert!(found[0].is_ok());
    assert!(
        matches!(found[1], Err(UndefinedLatency::Overload { stage: Stage::NetworkIn, utilisation }) if utilisation > 1.1)
    );
    // No stage is overloaded, but the largest works together need more than there is.
    let turns = [regular([600_000, 1, 1], 1_000_000), regular([1, 600_000, 1], 1_000_000)];
    let turns = turns.map(|traffic| model.sketch(&traffic));
    let found = model.predict(&members(&turns, &[(0, 0), (1, 1)], 99.0));
    assert_eq!(found[1], Err(UndefinedLatency::NoBound));
    let light = [model.sketch(&regular([1_000; 3], 1_000_000))];
    assert_eq!(model.predict(&members(&light, &[(0, 0)], 100.0)), [Err(UndefinedLatency::NoBound)]);
    let nothing = [model.sketch(&regular([0; 3], 1_000_000))];
    assert_eq!(bounds(&model, &members(&nothing, &[(0, 0)], 99.0)), [0.0]);
    assert!(model.predict(&[]).is_empty());
}

#[test]
fn equals_wait_for_each_other_and_the_addends_are_the_bound() {
    let model = PublishedSnc::default();
    let sketches = [(); 3].map(|()| model.sketch(&regular([50_000, 100_000, 20_000], 1_000_000)));
    let last = bounds(&model, &members(&sketches, &[(0, 0), (1, 1), (2, 2)], 99.0))[2];
    let equal = members(&sketches, &[(5, 0), (5, 1), (5, 2)], 99.0);
    for (member, bound) in bounds(&model, &equal).into_iter().enumerate() {
        assert!((bound / last - 1.0).abs() < 1e-9, "{bound} {last}");
        let found = model.latency(&equal, member).expect("stable").expect("work");
        let terms = found.latency;
        assert!((terms.any_start + terms.exceeded + terms.convolution - bound).abs() < 1e-9, "{terms:?}");
        assert_eq!((found.queues, found.ahead), (3, 2));
    }
    // A workload that is higher at one stage counts as higher on the path.
    let mut crossed = members(&sketches[..2], &[(0, 0), (1, 1)], 99.0);
    crossed[1].priority[Stage::Storage] = 0;
    crossed[0].priority[Stage::Storage] = 1;
    let found = bounds(&model, &crossed);
    assert!((found[0] / found[1] - 1.0).abs() < 1e-9, "{found:?}");
}

/// Figure 4.8: seven copies from one client through two links in each direction, of which more and more depend on each other.
/// Each dependent workload costs, and the bound is above the worst case only when nearly all of them are.
#[test]
fn dependence_costs_and_only_nearly_all_of_it_exceeds_the_worst_case() {
    let Some(real) = support::published(Through::Link) else { return };
    let model = PublishedSnc { client_link: true, ..PublishedSnc::default() };
    let worst = WorstCase::default();
    for bursty in [1, 3] {
        let traffic = &real[bursty].traffic;
        let sketches = [(); 7].map(|()| model.sketch(traffic));
        let at = |dependent: usize| {
            let order: Vec<(u32, usize)> = (0..7).map(|k| (0, if k < dependent { 0 } else { k })).collect();
            bounds(&model, &members(&sketches, &order, 99.9))[0]
        };
        let found: Vec<f64> = (1..=7).map(at).collect();
        assert!(found.is_sorted() && found[6] > 4.0 * found[0], "{found:?}");
        let limit = bounds(&worst, &members(&[(); 7].map(|()| worst.sketch(traffic)), &[(0, 0); 7], 99.9))[0];
        assert!(found[3] < limit, "{found:?} {limit}");
    }
}

/// Figure 4.13: what a nine more costs is little beside the distance to the worst case.
#[test]
fn nines_cost_little_beside_the_worst_case() {
    let Some(real) = support::published(Through::Server) else { return };
    let model = PublishedSnc::default();
    let worst = WorstCase::default();
    let order: Vec<(u32, usize)> = (0..4).zip(0..4).collect();
    let sketches: Vec<PathSketch> = real[..4].iter().map(|real| model.sketch(&real.traffic)).collect();
    let at = |percent: f64| bounds(&model, &members(&sketches, &order, percent))[3];
    let sketches: Vec<_> = real[..4].iter().map(|real| worst.sketch(&real.traffic)).collect();
    let limit = bounds(&worst, &members(&sketches, &order, 99.9))[3];
    let [one, three, ten] = [90.0, 99.9, 99.999_999_99].map(at);
    assert!(one < three && three < ten && ten < limit, "{one} {three} {ten} {limit}");
    assert!(three - one < 0.1 * (limit - three), "{one} {three} {limit}");
}
