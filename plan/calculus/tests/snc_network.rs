//! Networks of two columns of queues: the example of thesis Appendix A.3 and small ones with known answers.

use calculus::snc::{
    ArrivalProcess, LatencyBound, LatencyQuery, OperatorOrder, PoissonBatches, RandomSource, ServiceProcess,
    SizeLaw, TimeStep, TokenBucket, TwoColumnError, TwoColumnFlow, TwoColumnNetwork, aggregate_in_groups,
};
use std::sync::Arc;

fn step() -> TimeStep {
    TimeStep::new(1e-4).expect("positive")
}

fn workload(name: usize) -> ArrivalProcess {
    let envelope = PoissonBatches { per_second: 15.0, sizes: SizeLaw::Exponential(0.01) };
    ArrivalProcess::source(&format!("W{name}"), RandomSource(name), Arc::new(envelope))
}

fn queues(letter: char, count: usize) -> Vec<ServiceProcess> {
    (1..=count).map(|k| ServiceProcess::constant(&format!("{letter}{k}"), 1.0)).collect()
}

/// Figure A.1: W1 and W2 pass S1 and V1, W3 and W4 pass S2 and V1; W1 is last everywhere.
fn example() -> TwoColumnNetwork {
    let flow = |(name, priority, from)| TwoColumnFlow { arrivals: workload(name), priority, from, to: 0 };
    let flows = [(1, 9, 0), (2, 1, 0), (3, 2, 1), (4, 3, 1)].map(flow);
    TwoColumnNetwork::new(queues('S', 2), queues('V', 1), flows.into()).unwrap()
}

fn total(bounds: &[LatencyBound]) -> f64 {
    bounds.iter().map(|bound| bound.latency).sum()
}

fn hölder_blocks(bounds: &[LatencyBound]) -> usize {
    bounds.iter().map(|bound| bound.weights.len()).sum()
}

#[test]
fn aggregation_first_has_no_artificial_dependencies_and_the_lowest_latency() {
    let solve = |order| example().latency(0, order, 0.01, step()).unwrap();
    let [hops, convolved, first] =
        [OperatorOrder::HopByHop, OperatorOrder::Convolution, OperatorOrder::AggregateFirst].map(solve);
    assert_eq!((hops.len(), convolved.len(), first.len()), (2, 1, 1));
    assert_eq!(hölder_blocks(&first), 0);
    assert!(hölder_blocks(&hops) > 0 && hölder_blocks(&convolved) > 0);
    assert!(total(&first) < total(&convolved) && total(&convolved) < total(&hops));
    // Eq. A.4, in the notation of Figure A.3.
    let text = first[0].to_string();
    let expected = "latency(W1, ((S1 ⊗ (V1 ⊖ ((W3 ⊕ W4) ⊘ S2))) ⊖ W2), 99.0000%)";
    assert!(text.starts_with(expected), "{text}");
}

#[test]
fn an_output_is_taken_behind_all_as_urgent_as_the_last_of_its_flows() {
    // Figure A.2: priorities W3 > W4 > W5 > W6; W4 and W6 go on to V1.
    let flow = |(name, priority, from, to)| TwoColumnFlow { arrivals: workload(name), priority, from, to };
    let flows = [(1, 9, 0, 0), (3, 3, 1, 1), (4, 4, 1, 0), (5, 5, 1, 1), (6, 6, 1, 0)].map(flow);
    let network = TwoColumnNetwork::new(queues('S', 2), queues('V', 2), flows.into()).unwrap();
    let bound = network.latency(0, OperatorOrder::AggregateFirst, 0.01, step()).unwrap();
    let expected = "latency(W1, (S1 ⊗ (V1 ⊖ ((W4 ⊕ W6) ⊘ (S2 ⊖ (W3 ⊕ W5))))), 99.0000%)";
    assert!(bound[0].to_string().starts_with(expected), "{}", bound[0]);
    // Traffic less urgent than W6 has no effect on it.
    let urgent = network.latency(2, OperatorOrder::AggregateFirst, 0.01, step()).unwrap();
    assert!(urgent[0].to_string().starts_with("latency(W4, ((S2 ⊖ W3) ⊗ V1), 99.0000%)"), "{}", urgent[0]);
}

#[test]
fn a_second_queue_that_never_fills_costs_little() {
    let flow = TwoColumnFlow { arrivals: workload(1), priority: 0, from: 0, to: 0 };
    let fast = vec![ServiceProcess::constant("V", 1000.0)];
    let network = TwoColumnNetwork::new(queues('S', 1), fast, vec![flow]).unwrap();
    let both = network.latency(0, OperatorOrder::AggregateFirst, 0.01, step()).unwrap()[0].latency;
    let service = ServiceProcess::constant("S", 1.0);
    let one = LatencyQuery { arrivals: workload(1), service, exceeded: 0.01, step: step() }.solve().unwrap();
    assert!(both >= one.latency && both < one.latency * 1.2, "{both} {}", one.latency);
}

#[test]
fn token_buckets_through_two_hops_are_bounded_as_the_worst_case_is_but_for_the_equal_rates() {
    // Pay bursts only once: (0.1 + 0.2)/(1 − 0.3) behind a bucket (0.3, 0.2) on the same path.
    let bucket = |name: &str, source, rate, burst| {
        ArrivalProcess::source(name, RandomSource(source), Arc::new(TokenBucket { rate, burst }))
    };
    let flow = |arrivals, priority| TwoColumnFlow { arrivals, priority, from: 0, to: 0 };
    let flows = vec![flow(bucket("A", 0, 0.2, 0.1), 1), flow(bucket("B", 1, 0.3, 0.2), 0)];
    let network = TwoColumnNetwork::new(queues('S', 1), queues('V', 1), flows).unwrap();
    let latency = network.latency(0, OperatorOrder::AggregateFirst, 1e-3, step()).unwrap()[0].latency;
    assert!((0.3 / 0.7..0.3 / 0.69 * 1.001).contains(&latency), "{latency}");
}

#[test]
fn overload_anywhere_on_the_path_is_no_bound_and_paths_must_exist() {
    let flow = |name, from, to| TwoColumnFlow { arrivals: workload(name), priority: 0, from, to };
    assert_eq!(
        TwoColumnNetwork::new(queues('S', 1), queues('V', 1), vec![flow(1, 0, 1)]).unwrap_err(),
        TwoColumnError(0)
    );
    // Seven workloads of 0.15 each on the second queue.
    let flows = (0..7).map(|k| flow(k, k, 0)).collect();
    let network = TwoColumnNetwork::new(queues('S', 7), queues('V', 1), flows).unwrap();
    for order in [OperatorOrder::HopByHop, OperatorOrder::Convolution, OperatorOrder::AggregateFirst] {
        assert!(network.latency(0, order, 0.01, step()).is_none(), "{order:?}");
    }
}

#[test]
fn nothing_is_the_sum_of_none() {
    let none = aggregate_in_groups(&[]);
    assert_eq!(none.to_string(), "0");
    let service = ServiceProcess::constant("S", 1.0);
    let with =
        LatencyQuery { arrivals: workload(1), service: service.leftover(&none), exceeded: 0.1, step: step() };
    let without = LatencyQuery { service, ..with.clone() };
    assert_eq!(with.solve().unwrap().latency, without.solve().unwrap().latency);
}
