//! Analyses of networks against closed forms, against each other, and against searched trajectories.

use calculus::network::{
    FeedForwardError, FeedForwardNetwork, FlowBound, Hop, NetworkFlow, linear_program, multiplexing_once,
    separated_flow, total_flow,
};
use calculus::{ArrivalCurve, ServiceCurve};
use proptest::prelude::*;

fn flow(burst: f64, rate: f64, path: &[(usize, u32)]) -> NetworkFlow {
    let path = path.iter().map(|&(server, priority)| Hop { server, priority }).collect();
    NetworkFlow { arrival: ArrivalCurve::from_limits(&[(rate, burst)]), path }
}

fn servers(rates: &[(f64, f64)]) -> Vec<ServiceCurve> {
    rates.iter().map(|&(rate, latency)| ServiceCurve::rate_latency(rate, latency)).collect()
}

fn network(rates: &[(f64, f64)], flows: Vec<NetworkFlow>) -> FeedForwardNetwork {
    FeedForwardNetwork::new(servers(rates), flows).unwrap()
}

fn close(a: f64, b: f64) -> bool {
    (a - b).abs() < 1e-5 * (1.0 + a.abs())
}

/// Delay of flow `f` under each analysis: total flow, separated flow, multiplexing once, linear program.
fn all(network: &FeedForwardNetwork, f: usize) -> [f64; 4] {
    let of = |bounds: Vec<FlowBound>| bounds[f].delay;
    [
        of(total_flow(network)),
        of(separated_flow(network)),
        of(multiplexing_once(network)),
        of(linear_program(network)),
    ]
}

#[test]
fn a_token_bucket_alone_pays_its_burst_once() {
    let hops = network(&[(1.0, 3.0), (2.0, 1.0)], vec![flow(2.0, 0.5, &[(0, 0), (1, 0)])]);
    let [total, separated, once, program] = all(&hops, 0);
    // b/R + ΣT with the slower rate; hop by hop the burst is paid again, grown by the first latency.
    assert!(close(separated, 6.0) && close(once, 6.0) && close(program, 6.0), "{separated} {once} {program}");
    assert!(total > 6.5, "{total}");
}

#[test]
fn two_priorities_on_one_server() {
    let both = network(&[(1.0, 0.0)], vec![flow(0.1, 0.5, &[(0, 0)]), flow(0.2, 0.3, &[(0, 1)])]);
    assert!(all(&both, 0).iter().all(|&d| close(d, 0.1)));
    assert!(all(&both, 1).iter().all(|&d| close(d, 0.3 / 0.5)), "{:?}", all(&both, 1));
}

#[test]
fn others_on_both_hops_are_paid_once() {
    let [high, low] = [0, 1].map(|priority| [(0, priority), (1, priority)]);
    let both = network(&[(1.0, 0.0), (1.0, 0.0)], vec![flow(1.0, 0.5, &high), flow(2.0, 0.25, &low)]);
    let [total, separated, once, program] = all(&both, 1);
    assert!(close(once, 3.0 / 0.5) && close(program, 3.0 / 0.5), "{once} {program}");
    assert!(separated > once + 1.0 && total >= separated, "{total} {separated} {once}");
}

#[test]
fn a_fifo_hop_is_the_sum_of_bursts() {
    let both = network(&[(2.0, 1.0)], vec![flow(3.0, 0.5, &[(0, 0)]), flow(1.0, 0.7, &[(0, 0)])]);
    let [total, separated, ..] = all(&both, 1);
    assert!(close(total, 3.0) && close(separated, 3.0), "{total} {separated}");
}

#[test]
fn derivations_name_the_hops() {
    let both = network(&[(1.0, 0.0), (1.0, 0.0)], vec![flow(1.0, 0.5, &[(1, 0), (0, 0)])]);
    let bound = &total_flow(&both)[0];
    assert_eq!(bound.hops.iter().map(|h| h.server).collect::<Vec<_>>(), [1, 0]);
    assert!(close(bound.hops.iter().filter_map(|h| h.delay).sum(), bound.delay));
    assert!(separated_flow(&both)[0].hops.iter().all(|h| h.arrival.is_some() && !h.leftover.is_none()));
}

#[test]
fn overload_is_infinite_and_spreads_downstream_only() {
    let flows = vec![
        flow(1.0, 0.5, &[(0, 0)]),
        flow(1.0, 0.6, &[(0, 1), (1, 0)]),
        flow(1.0, 0.1, &[(1, 1)]),
        flow(1.0, 0.1, &[(2, 0)]),
    ];
    let hops = network(&[(1.0, 0.0), (1.0, 0.0), (1.0, 0.0)], flows);
    for (f, finite) in [(0, true), (1, false), (2, false), (3, true)] {
        assert!(all(&hops, f).iter().all(|d| d.is_finite() == finite), "flow {f}: {:?}", all(&hops, f));
    }
}

#[test]
fn what_is_no_feed_forward_network() {
    let build = |flows| FeedForwardNetwork::new(servers(&[(1.0, 0.0); 3]), flows).map(|_| ()).unwrap_err();
    assert_eq!(build(vec![flow(1.0, 0.1, &[])]), FeedForwardError::NoPath(0));
    assert_eq!(
        build(vec![flow(1.0, 0.1, &[(3, 0)])]),
        FeedForwardError::UnknownServer { flow: 0, server: 3 }
    );
    assert_eq!(
        build(vec![flow(1.0, 0.1, &[(1, 0), (1, 0)])]),
        FeedForwardError::Revisit { flow: 0, server: 1 }
    );
    let ring = [[(0, 0), (1, 0)], [(1, 0), (2, 0)], [(2, 0), (0, 0)]];
    let ring = ring.iter().map(|path| flow(1.0, 0.1, path)).collect();
    let FeedForwardError::Cycle(mut circle) = build(ring) else { panic!("a ring is a cycle") };
    circle.sort_unstable();
    assert_eq!(circle, [0, 1, 2]);
}

/// A greedy source: burst at `start`, then its rate; on servers `first` to `last`.
#[derive(Clone, Copy)]
struct Source {
    burst: f64,
    rate: f64,
    start: usize,
    first: usize,
    last: usize,
}

impl Source {
    fn work(&self, step: usize) -> f64 {
        let burst = if step == self.start { self.burst } else { 0.0 };
        if step >= self.start { burst + self.rate * STEP } else { 0.0 }
    }
}

/// Length of a step of a simulated trajectory.
const STEP: f64 = 0.02;

/// The longest delay of the last source on two servers in a row, all others being served first in order.
fn simulate(rates: [f64; 2], sources: &[Source], steps: usize) -> f64 {
    let own = sources.len() - 1;
    let mut queued = vec![[0.0f64; 2]; sources.len()];
    let mut come = vec![0.0];
    let mut gone = vec![0.0];
    for step in 0..steps {
        for (queue, source) in queued.iter_mut().zip(sources) {
            queue[source.first] += source.work(step);
        }
        let mut left = 0.0;
        for server in 0..2 {
            let mut capacity = rates[server] * STEP;
            for (index, source) in sources.iter().enumerate() {
                let done = queued[index][server].min(capacity);
                queued[index][server] -= done;
                capacity -= done;
                if server < source.last {
                    queued[index][server + 1] += done;
                } else if index == own {
                    left += done;
                }
            }
        }
        come.push(come[step] + sources[own].work(step));
        gone.push(gone[step] + left);
    }
    longest_gap(&come, &gone)
}

/// The longest horizontal distance of two cumulative curves.
fn longest_gap(come: &[f64], gone: &[f64]) -> f64 {
    let mut longest = 0;
    let mut at = 0;
    for (step, &work) in come.iter().enumerate() {
        while at < gone.len() && gone[at] < work - 1e-9 {
            at += 1;
        }
        if at < gone.len() {
            longest = longest.max(at.saturating_sub(step));
        }
    }
    longest as f64 * STEP
}

/// The longest delay over starts of the others, the flow itself starting in the middle.
fn search(rates: [f64; 2], sources: &[Source]) -> f64 {
    let mut sources = sources.to_vec();
    let own = sources.len() - 1;
    sources[own].start = 75;
    let mut best = 0.0f64;
    for one in (0..=150).step_by(5) {
        for two in (0..=150).step_by(5) {
            (sources[0].start, sources[1].start) = (one, two);
            best = best.max(simulate(rates, &sources, 500));
        }
    }
    best
}

#[test]
fn the_linear_program_is_what_the_worst_starts_reach() {
    // Others on one server each, or on both; slow first, slow last.
    for (rates, stretches) in [
        ([1.0, 1.0], [(0, 0), (1, 1)]),
        ([1.0, 2.0], [(0, 0), (1, 1)]),
        ([2.0, 1.0], [(0, 1), (1, 1)]),
        ([1.0, 1.0], [(0, 1), (0, 0)]),
        ([1.5, 1.0], [(0, 0), (0, 1)]),
    ] {
        let source =
            |burst, rate, (first, last): (usize, usize)| Source { burst, rate, start: 0, first, last };
        let sources =
            [source(0.5, 0.2, stretches[0]), source(0.4, 0.3, stretches[1]), source(0.3, 0.1, (0, 1))];
        let path = |s: &Source, p: u32| (s.first..=s.last).map(|server| (server, p)).collect::<Vec<_>>();
        let flows = (0u32..).zip(&sources).map(|(p, s)| flow(s.burst, s.rate, &path(s, p))).collect();
        let hops = network(&[(rates[0], 0.0), (rates[1], 0.0)], flows);
        let [total, separated, once, program] = all(&hops, 2);
        let reached = search(rates, &sources);
        println!(
            "{rates:?} {stretches:?}: reached {reached:.3}, {program:.3} {once:.3} {separated:.3} {total:.3}"
        );
        assert!(program >= reached - STEP, "{rates:?} {stretches:?}: {program} < {reached}");
        assert!(program <= reached * 1.03 + 2.0 * STEP, "{rates:?} {stretches:?}: {program} ≫ {reached}");
    }
}

/// Flows on stretches of a tandem of three, each with a priority of its own.
fn any_tandem() -> impl Strategy<Value = FeedForwardNetwork> {
    let limits = prop::collection::vec((0.01..0.25f64, 0.05..2.0f64), 1..4);
    let flows = prop::collection::vec((limits, 0usize..3, 0usize..3), 1..5);
    (flows, prop::collection::vec((1.0..2.0f64, 0.0..0.5f64), 3)).prop_map(|(flows, rates)| {
        let flows = (0u32..).zip(flows).map(|(priority, (limits, a, b))| NetworkFlow {
            arrival: ArrivalCurve::from_limits(&limits),
            path: (a.min(b)..=a.max(b)).map(|server| Hop { server, priority }).collect(),
        });
        network(&rates, flows.collect())
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(ProptestConfig::default().cases / 4))]
    #[test]
    fn finer_analyses_give_smaller_bounds(hops in any_tandem()) {
        for f in 0..hops.flows().len() {
            let [total, separated, once, program] = all(&hops, f);
            prop_assert!(separated <= total * (1.0 + 1e-9), "{} {}", separated, total);
            let slack = 1e-5 * (1.0 + program);
            prop_assert!(program <= separated + slack, "{} {}", program, separated);
            prop_assert!(program <= once + slack, "{} {}", program, once);
        }
    }

    #[test]
    fn more_traffic_never_lowers_a_bound(hops in any_tandem(), priority in 0u32..4) {
        let last = hops.flows().len() - 1;
        let fewer = FeedForwardNetwork::new(hops.servers().to_vec(), hops.flows()[..last].to_vec()).unwrap();
        let mut raised = hops.flows().to_vec();
        raised[last].path.iter_mut().for_each(|hop| hop.priority = priority);
        let more = FeedForwardNetwork::new(hops.servers().to_vec(), raised).unwrap();
        for f in 0..last {
            let ([total, _, _, program], [total_more, _, _, program_more]) = (all(&fewer, f), all(&more, f));
            prop_assert!(total <= total_more * (1.0 + 1e-9), "{} {}", total, total_more);
            prop_assert!(program <= program_more + 1e-5 * (1.0 + program_more), "{} {}", program, program_more);
        }
    }
}
