//! Stochastic bounds against closed forms, enumeration and random search.

use calculus::snc::{
    ArrivalProcess, DependentSum, LatencyQuery, MarkovArrivals, MarkovState, MgfEnvelope, PoissonBatches,
    Prefactor, RandomSource, RateTable, ServiceProcess, SizeLaw, SquareMatrix, TabulatedQueue, ThetaGrid,
    TimeStep, TokenBucket, aggregate_by_clique, aggregate_in_groups, independent_groups,
};
use proptest::prelude::*;
use std::sync::Arc;

fn step() -> TimeStep {
    TimeStep::new(1e-4).expect("positive")
}

fn poisson(per_second: f64, sizes: SizeLaw) -> Arc<dyn MgfEnvelope> {
    Arc::new(PoissonBatches { per_second, sizes })
}

fn source(group: usize, envelope: Arc<dyn MgfEnvelope>) -> ArrivalProcess {
    ArrivalProcess::source(&format!("A{group}"), RandomSource(group), envelope)
}

fn alone(envelope: Arc<dyn MgfEnvelope>, exceeded: f64) -> Option<f64> {
    let service = ServiceProcess::constant("S", 1.0);
    let query = LatencyQuery { arrivals: source(0, envelope), service, exceeded, step: step() };
    Some(query.solve()?.latency)
}

#[test]
fn m_m_1_never_below_the_exact_quantile_and_with_its_decay() {
    for load in [0.1, 0.5, 0.9] {
        let envelope = || poisson(load * 100.0, SizeLaw::Exponential(0.01));
        for exceeded in [0.1, 1e-2, 1e-3, 1e-6] {
            let exact = -f64::ln(exceeded) / (100.0 * (1.0 - load));
            assert!(alone(envelope(), exceeded).unwrap() >= exact, "{load} {exceeded}");
        }
        // The bound's slope per decade tends to the exact one, 1/θ* with θ* = μ − λ.
        let slope =
            (alone(envelope(), 1e-290).unwrap() - alone(envelope(), 1e-200).unwrap()) / (90.0 * 10_f64.ln());
        let exact = 1.0 / (100.0 * (1.0 - load));
        assert!(slope >= exact * 0.999 && slope <= exact * 1.01, "{load}: {slope} {exact}");
    }
}

/// P(wait ≤ t) in M/D/1 with service time 1 (Erlang).
fn m_d_1_wait(load: f64, t: f64) -> f64 {
    #[allow(clippy::cast_possible_truncation)]
    let last = t.floor() as i32;
    let mut factorial = 1.0;
    let term = |k: i32| {
        factorial *= f64::from(k.max(1));
        let x = load * (f64::from(k) - t);
        x.powi(k) / factorial * (-x).exp()
    };
    (1.0 - load) * (0..=last).map(term).sum::<f64>()
}

#[test]
fn m_d_1_never_below_the_exact_tail_and_with_its_decay() {
    // Erlang's sum loses its digits to cancellation beyond this load.
    for load in [0.2, 0.4, 0.6] {
        let size = 0.01;
        for exceeded in [0.1, 1e-2, 1e-3] {
            let bound = alone(poisson(load / size, SizeLaw::Constant(size)), exceeded).unwrap();
            // Sojourn is wait and one service.
            let tail = 1.0 - m_d_1_wait(load, bound / size - 1.0);
            assert!(tail <= exceeded && tail > -1e-6, "{load} {exceeded} {bound} {tail}");
        }
        // θ* solves λ(e^{θ·size} − 1) = θ.
        let mut low = 1e-3 / size;
        let mut high = 100.0 / size;
        for _ in 0..200 {
            let middle = 0.5 * (low + high);
            if load / size * (middle * size).exp_m1() < middle { low = middle } else { high = middle }
        }
        let at = |exceeded| alone(poisson(load / size, SizeLaw::Constant(size)), exceeded).unwrap();
        let slope = (at(1e-290) - at(1e-200)) / (90.0 * 10_f64.ln());
        assert!((slope * low - 1.0).abs() < 0.01, "{load}: {slope} {low}");
    }
}

/// E e^{θA(0,n)} over every path of a two-state chain that starts in `start`.
fn enumerate(stay: [f64; 2], growth: [f64; 2], start: usize, steps: u32) -> f64 {
    let weight = |path: u32| {
        let mut at = start;
        let mut product = 1.0;
        for k in 0..steps {
            product *= growth[at];
            let next = usize::from(path >> k & 1 == 1);
            product *= if next == at { stay[at] } else { 1.0 - stay[at] };
            at = next;
        }
        product
    };
    (0..1 << steps).map(weight).sum()
}

fn two_states(stay: [f64; 2], states: [MarkovState; 2], prefactor: Prefactor) -> MarkovArrivals {
    let next = SquareMatrix::from_fn(2, |i, j| if i == j { stay[i] } else { 1.0 - stay[i] });
    MarkovArrivals::new(states.to_vec(), next, 0.5, prefactor).unwrap()
}

#[test]
fn without_the_prefactor_a_start_in_the_busy_state_exceeds_the_bound() {
    let states =
        [MarkovState { per_step: 0.5, mean_work: 0.4 }, MarkovState { per_step: 0.0, mean_work: 0.0 }];
    let stay = [0.9, 0.9];
    let growth = [1.0 + 0.5 * 0.4 / 0.6, 1.0];
    let at = |prefactor| two_states(stay, states, prefactor).bound_at(1.0).unwrap();
    let dropped = at(Prefactor::Dropped);
    let kept = at(Prefactor::Kept);
    let exact = enumerate(stay, growth, 0, 6);
    assert!(exact > (dropped.rate * 3.0 + dropped.burst).exp() * 1.1);
    assert!(exact <= (kept.rate * 3.0 + kept.burst).exp());
    // Even from a stationary start.
    let mixed = 0.5 * exact + 0.5 * enumerate(stay, growth, 1, 6);
    let short = 0.5 * growth[0] + 0.5;
    assert!(short <= (kept.rate * 0.5 + kept.burst).exp() && mixed <= (kept.rate * 3.0 + kept.burst).exp());
}

proptest! {
    #[test]
    fn the_perron_prefactor_bounds_every_path_length(
        stay in prop::array::uniform2(0.0..=1.0),
        per_step in prop::array::uniform2(0.0..=1.0),
        mean in prop::array::uniform2(0.0..0.9),
        start in 0_usize..2,
        steps in 1_u32..9,
    ) {
        let states = [0, 1].map(|i| MarkovState { per_step: per_step[i], mean_work: mean[i] });
        let growth = [0, 1].map(|i| 1.0 + per_step[i] * mean[i] / (1.0 - mean[i]));
        let bound = two_states(stay, states, Prefactor::Kept).bound_at(1.0).unwrap();
        let exact = enumerate(stay, growth, start, steps);
        let limit = (bound.rate * 0.5 * f64::from(steps) + bound.burst).exp();
        prop_assert!(exact <= limit * (1.0 + 1e-9), "{} {}", exact, limit);
    }
}

#[test]
fn chains_that_are_none_are_refused() {
    let state = MarkovState { per_step: 0.5, mean_work: 1.0 };
    let one = |entry| SquareMatrix::from_fn(1, |_, _| entry);
    let new = |states: Vec<MarkovState>, next, step| MarkovArrivals::new(states, next, step, Prefactor::Kept);
    assert!(new(vec![state], one(1.0), 1.0).is_ok());
    assert!(new(vec![], SquareMatrix::from_fn(0, |_, _| 0.0), 1.0).is_err());
    assert!(new(vec![state; 2], one(1.0), 1.0).is_err());
    assert!(new(vec![state], one(0.5), 1.0).is_err());
    assert!(new(vec![state], one(f64::NAN), 1.0).is_err());
    assert!(new(vec![state], one(1.0), 0.0).is_err());
    assert!(new(vec![MarkovState { per_step: 1.5, ..state }], one(1.0), 1.0).is_err());
    assert!(new(vec![MarkovState { mean_work: f64::INFINITY, ..state }], one(1.0), 1.0).is_err());
}

#[test]
fn a_silent_chain_and_an_absorbing_state_have_bounds() {
    let silent = MarkovState { per_step: 0.0, mean_work: 0.0 };
    let busy = MarkovState { per_step: 0.5, mean_work: 0.1 };
    assert!(two_states([0.5, 0.5], [silent; 2], Prefactor::Kept).bound_at(1e3).unwrap().rate.abs() < 1e-9);
    // The chain ends in the silent state or in the busy one; ρ is that of the busy one.
    for stay in [[0.5, 1.0], [1.0, 0.5], [1.0, 1.0]] {
        let bound = two_states(stay, [busy, silent], Prefactor::Dropped).bound_at(2.0).unwrap();
        let growth: f64 = 1.0 + 0.5 * 0.2 / 0.8;
        let expected = if stay[0] == 1.0 { growth.ln() } else { (0.5 * growth).ln().max(0.0) };
        assert!((bound.rate - expected).abs() < 1e-4, "{stay:?} {} {expected}", bound.rate);
    }
}

#[test]
fn a_token_bucket_approaches_the_deterministic_bound() {
    let bucket = || source(0, Arc::new(TokenBucket { rate: 0.5, burst: 0.2 }));
    let server = || ServiceProcess::constant("S", 1.0);
    let latency = |service| {
        LatencyQuery { arrivals: bucket(), service, exceeded: 1e-3, step: step() }.solve().unwrap().latency
    };
    let one = latency(server());
    assert!((0.2..0.2001).contains(&one), "{one}");
    // Pay bursts only once: two hops cost what one does, but for the 1 % that equal rates cost.
    let two = latency(server().convolve(&server()));
    assert!((0.2..0.2 / 0.98).contains(&two), "{two}");
    // Behind a bucket (0.3, 0.1) of higher priority: (0.2 + 0.1)/(1 − 0.3).
    let ahead = source(1, Arc::new(TokenBucket { rate: 0.3, burst: 0.1 }));
    let behind = latency(server().leftover(&ahead));
    assert!((0.3 / 0.7..0.3 / 0.7 + 1e-4).contains(&behind), "{behind}");
}

#[test]
fn overload_nan_and_ends_of_domains_are_no_bound() {
    assert_eq!(alone(poisson(100.0, SizeLaw::Exponential(0.01)), 0.01), None);
    assert_eq!(alone(poisson(150.0, SizeLaw::Constant(0.01)), 0.01), None);
    assert_eq!(alone(poisson(f64::NAN, SizeLaw::Constant(0.01)), 0.01), None);
    assert_eq!(alone(poisson(1.0, SizeLaw::Exponential(f64::INFINITY)), 0.01), None);
    for exceeded in [0.0, 1.0, -0.1, f64::NAN] {
        assert_eq!(alone(poisson(1.0, SizeLaw::Constant(0.01)), exceeded), None);
    }
    let table = RateTable::new(ThetaGrid::LATENCIES, poisson(50.0, SizeLaw::Exponential(0.01)).as_ref());
    let mut twice = table.clone();
    twice.add(&table);
    let service = ServiceProcess::constant("S", 1.0);
    for dependent in [false, true] {
        let full =
            TabulatedQueue { own: &table, others: Some(&table), dependent, service: &service, step: step() };
        assert_eq!(full.latency(0.01), None);
        assert_eq!(TabulatedQueue { others: Some(&twice), ..full }.latency(0.01), None);
    }
    let unknown = RateTable::unbounded(ThetaGrid::LATENCIES);
    let behind = TabulatedQueue {
        own: &table,
        others: Some(&unknown),
        dependent: false,
        service: &service,
        step: step(),
    };
    assert_eq!(behind.latency(0.01), None);
}

#[test]
fn a_derivation_names_the_expression_its_theta_and_its_parts() {
    let [a, b, c] = [0, 1, 1].map(|group| source(group, poisson(20.0, SizeLaw::Exponential(0.01))));
    let service = ServiceProcess::constant("S", 1.0).leftover(&aggregate_in_groups(&[b, c]));
    let query = LatencyQuery { arrivals: a, service, exceeded: 0.01, step: step() };
    let solved = query.solve().unwrap();
    let text = solved.to_string();
    assert!(text.starts_with("latency(A0, (S ⊖ (A1 ⊕* A1)), 99.0000%) = "), "{text}");
    assert!(text.contains("Hölder weights 0.5000, 0.5000"), "{text}");
    assert_eq!(solved.parts.len(), 6);
    // By symmetry of the two the sum is one of them at 2θ, twice.
    let rate = |theta| poisson(20.0, SizeLaw::Exponential(0.01)).bound_at(theta).unwrap().rate;
    let sum = solved.parts.iter().find(|part| part.expression == "(A1 ⊕* A1)").unwrap();
    assert!((sum.bound.rate - 2.0 * rate(2.0 * solved.theta)).abs() < 1e-3 * sum.bound.rate);
}

#[test]
fn the_optimised_weights_beat_ten_thousand_random_ones() {
    let sizes = [0.002, 0.01, 0.03, 0.005];
    let parts: Vec<_> =
        sizes.iter().map(|&mean| source(0, poisson(0.1 / mean, SizeLaw::Exponential(mean)))).collect();
    let service = ServiceProcess::constant("S", 1.0).leftover(&aggregate_in_groups(&parts[1..]));
    let query = LatencyQuery { arrivals: parts[0].clone(), service, exceeded: 1e-3, step: step() };
    assert_eq!(query.blocks(), [2, 3]);
    let best = query.solve().unwrap();
    let mut state = 7_u64;
    let mut uniform = || {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (state >> 11) as f64 / (1_u64 << 53) as f64
    };
    let mut found = 0;
    for _ in 0..10_000 {
        let mut block = |factors: usize| {
            let raw: Vec<f64> = (0..factors).map(|_| -uniform().ln()).collect();
            let sum: f64 = raw.iter().sum();
            raw.into_iter().map(move |w| w / sum)
        };
        let weights: Vec<f64> = block(2).chain(block(3)).collect();
        let theta = best.theta * 4_f64.powf(2.0 * uniform() - 1.0);
        if let Some(latency) = query.latency_at(theta, &weights) {
            found += 1;
            assert!(best.latency <= latency * (1.0 + 1e-6), "{} {latency}", best.latency);
        }
    }
    assert!(found > 100, "random weights reach the domain: {found}");
}

/// Workloads with a dependency group each, and room for all of them.
fn mixes() -> impl Strategy<Value = Vec<(usize, f64, f64)>> {
    prop::collection::vec((0_usize..4, 0.01..0.12, 0.001..0.05), 1..6)
}

fn processes(mix: &[(usize, f64, f64)], dependent: bool) -> Vec<ArrivalProcess> {
    let one = |(k, &(group, load, mean)): (usize, &(usize, f64, f64))| {
        source(if dependent { group } else { 10 + k }, poisson(load / mean, SizeLaw::Exponential(mean)))
    };
    mix.iter().enumerate().map(one).collect()
}

fn behind(others: &ArrivalProcess, exceeded: f64) -> f64 {
    let arrivals = source(99, poisson(10.0, SizeLaw::Exponential(0.005)));
    let service = ServiceProcess::constant("S", 1.0).leftover(others);
    LatencyQuery { arrivals, service, exceeded, step: step() }.solve().expect("stable").latency
}

proptest! {
    #[test]
    fn aggregation_takes_one_dependent_operation_less_than_the_largest_clique(
        groups in prop::collection::vec(0_usize..6, 1..20),
    ) {
        let parts: Vec<_> = groups.iter().map(|&g| source(g, poisson(1.0, SizeLaw::Constant(0.01)))).collect();
        let largest = (0..6).map(|g| groups.iter().filter(|&&other| other == g).count()).max().unwrap();
        prop_assert_eq!(aggregate_in_groups(&parts).dependent_operations(), largest - 1);
        let set = independent_groups(&parts);
        let mut seen: Vec<usize> = set.concat();
        seen.sort_unstable();
        prop_assert_eq!(seen, (0..groups.len()).collect::<Vec<_>>());
    }

    #[test]
    fn dependent_sums_of_tables_are_bounds_and_near_the_best_weights(
        loads in prop::array::uniform3(0.01..0.5), means in prop::array::uniform3(0.001..0.05), reach in 0.05..0.3,
    ) {
        let envelopes = [0, 1, 2].map(|i| poisson(loads[i] / means[i], SizeLaw::Exponential(means[i])));
        let tables = envelopes.each_ref().map(|e| RateTable::new(ThetaGrid::LATENCIES, e.as_ref()));
        let parts: Vec<&RateTable> = tables.iter().collect();
        let theta = reach / means.iter().sum::<f64>();
        let found = DependentSum(&parts).growth_at(theta);
        let total = |w: [f64; 3]| -> Option<f64> {
            (0..3).map(|i| envelopes[i].bound_at(theta / w[i]).map(|b| theta * b.rate)).sum()
        };
        let mut best = f64::INFINITY;
        for i in 1..60 {
            for j in 1..60 - i {
                let w = [f64::from(i) / 60.0, f64::from(j) / 60.0, f64::from(60 - i - j) / 60.0];
                best = best.min(total(w).unwrap_or(f64::INFINITY));
            }
        }
        prop_assert!(found <= best * 1.005, "{} {}", found, best);
        // The exact optimum is hardly below a fine grid's.
        prop_assert!(found >= best * 0.98, "{} {}", found, best);
        let tabulated = DependentSum(&parts).table().unwrap().growth_at(theta);
        prop_assert!(tabulated >= found * 0.999 && tabulated <= found * 1.02, "{} {}", tabulated, found);
    }

    #[test]
    fn a_table_is_above_its_process_and_close(load in 0.01..0.9, mean in 0.001..0.05, part in 0.001..0.7) {
        let envelope = poisson(load / mean, SizeLaw::Exponential(mean));
        let table = RateTable::new(ThetaGrid::LATENCIES, envelope.as_ref());
        let theta = part / mean;
        let end = 1.0 / mean;
        let exact = envelope.bound_at(theta).unwrap().rate;
        let chord = table.growth_at(theta) / theta;
        prop_assert!(chord >= exact * (1.0 - 1e-12));
        prop_assert!(chord <= exact * (1.0 + 1e-2), "{} {}", chord, exact);
        prop_assert!(table.growth_at(end * 1.001).is_infinite());
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]

    #[test]
    fn independence_a_lower_percentile_and_less_traffic_never_raise_a_bound(mix in mixes(), factor in 1.0..1.4) {
        let dependent = behind(&aggregate_in_groups(&processes(&mix, true)), 1e-3);
        let independent = behind(&aggregate_in_groups(&processes(&mix, false)), 1e-3);
        let clique = behind(&aggregate_by_clique(&processes(&mix, true)), 1e-3);
        let slack = 1.0 + 1e-4;
        prop_assert!(independent <= clique * slack, "{} {}", independent, clique);
        prop_assert!(clique <= dependent * slack, "{} {}", clique, dependent);
        prop_assert!(behind(&aggregate_in_groups(&processes(&mix, true)), 1e-2) <= dependent * slack);
        let more: Vec<_> = mix.iter().map(|&(g, load, mean)| (g, load * factor, mean)).collect();
        prop_assert!(behind(&aggregate_in_groups(&processes(&more, true)), 1e-3) * slack >= dependent);
    }

    #[test]
    fn tables_give_what_expressions_give(mix in mixes(), own in 0_usize..5) {
        let exceeded = 1e-3;
        let parts = processes(&mix, true);
        let arrivals = source(own, poisson(10.0, SizeLaw::Exponential(0.005)));
        let service = ServiceProcess::constant("S", 1.0);
        let others = aggregate_in_groups(&parts);
        let query = LatencyQuery { arrivals, service: service.leftover(&others), exceeded, step: step() };
        let exact = query.solve().unwrap().latency;
        let table = |load: f64, mean: f64| {
            RateTable::new(ThetaGrid::LATENCIES, poisson(load / mean, SizeLaw::Exponential(mean)).as_ref())
        };
        let group = |members: &Vec<usize>| {
            let mut tables = members.iter().map(|&m| table(mix[m].1, mix[m].2));
            let first = tables.next().unwrap();
            tables.fold(first, |mut sum, next| { sum.add(&next); sum })
        };
        let sums: Vec<RateTable> = independent_groups(&parts).iter().map(group).collect();
        let others = DependentSum(&sums.iter().collect::<Vec<_>>()).table().unwrap();
        let dependent = mix.iter().any(|&(g, ..)| g == own);
        let mine = table(0.05, 0.005);
        let queue = TabulatedQueue { own: &mine, others: Some(&others), dependent, service: &service, step: step() };
        let tabulated = queue.latency(exceeded).unwrap().seconds;
        prop_assert!(tabulated >= exact * 0.995, "{} {}", tabulated, exact);
        prop_assert!(tabulated <= exact * 1.08, "{} {}", tabulated, exact);
    }
}
