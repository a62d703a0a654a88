//! Laws and arrivals against their closed forms, and their text.

use arrivals::{
    ArrivalPattern, DistributionFamily, TimeDistribution, TimedRequest, TimedRequestSource, scale,
};
use proptest::prelude::*;
use rand::SeedableRng as _;
use rand::rngs::StdRng;
use units::{Nanos, Seconds};

const DRAWS: usize = 200_000;

fn law(text: &str) -> TimeDistribution {
    text.parse().unwrap_or_else(|error| panic!("{text}: {error}"))
}

/// Ascending, in milliseconds.
fn draws(law: &TimeDistribution, seed: u64) -> Vec<f64> {
    let sampler = law.sampler();
    let mut random = StdRng::seed_from_u64(seed);
    let mut values: Vec<f64> = (0..DRAWS).map(|_| sampler.draw(&mut random).0 as f64 / 1e6).collect();
    values.sort_by(f64::total_cmp);
    values
}

/// Sample mean and five times its standard error.
fn mean(values: impl Iterator<Item = f64>) -> (f64, f64) {
    let mut sum = 0.0;
    let mut squares = 0.0;
    for value in values {
        sum += value;
        squares += value * value;
    }
    let n = DRAWS as f64;
    (sum / n, 5.0 * ((squares / n - (sum / n).powi(2)).max(0.0) / n).sqrt() + 1e-9)
}

#[test]
fn sampled_moments_are_those_of_the_closed_forms() {
    // With finite fourth moments, without which a sampled second one says nothing of its error.
    for text in [
        "3ms",
        "exp(5ms)",
        "hyperexp(mean=2ms, c2=1)",
        "hyperexp(mean=2ms, c2=9)",
        "erlang(mean=2ms, c2=1)",
        "erlang(mean=2ms, c2=0.7)",
        "erlang(mean=2ms, c2=0.25)",
        "erlang(mean=2ms, c2=0.013)",
        "lognormal(mean=1ms, c2=0.5)",
        "lognormal(mu=-7, sigma=0.8)",
        "pareto(min=1ms, shape=6)",
        "pareto(min=1ms, max=40ms, shape=1.1)",
        "pareto(min=1ms, max=40ms, shape=1)",
        "pareto(min=1ms, max=40ms, shape=2)",
        "bimodal(90% 1ms, 10% 10ms)",
        "trimodal(33.3% 1ms, 33.3% 10ms, 33.4% 100ms)",
        "uniform(1ms, 3ms)",
        "empirical(1ms, 2ms, 3ms, 10ms)",
    ] {
        let law = law(text);
        let values = draws(&law, 11);
        let (first, error) = mean(values.iter().copied());
        let expected = law.mean().0 * 1e3;
        assert!((first - expected).abs() <= error, "{text}: mean {first} ± {error}, not {expected}");
        let (second, error) = mean(values.iter().map(|value| value * value));
        let expected = (1.0 + law.c2()) * expected * expected;
        assert!((second - expected).abs() <= error, "{text}: E X² {second} ± {error}, not {expected}");
    }
}

/// P(X ≤ x), x in milliseconds.
type Below = fn(f64) -> f64;

/// From the textbook formula of each family.
fn distributions() -> Vec<(&'static str, Below)> {
    vec![
        ("exp(5ms)", |x| 1.0 - (-x / 5.0).exp()),
        // Balanced means for C² = 3: p = (1 + √½)/2.
        ("hyperexp(mean=2ms, c2=3)", |x| {
            let p = 0.5 * (1.0 + 0.5f64.sqrt());
            1.0 - p * (-x * p).exp() - (1.0 - p) * (-x * (1.0 - p)).exp()
        }),
        ("erlang(mean=2ms, c2=0.5)", |x| 1.0 - (1.0 + x) * (-x).exp()),
        // Φ at quantiles of the normal law: −1.2816, 0, 2.3263.
        ("lognormal(mu=-6.907755278982137, sigma=1)", |x| match x {
            x if x < 0.5 => 0.1,
            x if x < 2.0 => 0.5,
            _ => 0.99,
        }),
        ("pareto(min=1ms, shape=1.5)", |x| 1.0 - x.powf(-1.5)),
        ("pareto(min=1ms, max=100ms, shape=1.5)", |x| (1.0 - x.powf(-1.5)) / (1.0 - 100f64.powf(-1.5))),
        ("uniform(1ms, 3ms)", |x| (x - 1.0) / 2.0),
        ("bimodal(90% 1ms, 10% 10ms)", |x| if x < 10.0 { 0.9 } else { 1.0 }),
    ]
}

#[test]
fn sampled_quantiles_are_those_of_the_closed_forms() {
    let points = |text: &str| match text {
        text if text.starts_with("logn") => vec![(-1.281_551_565_5f64).exp(), 1.0, 2.326_347_874f64.exp()],
        text if text.starts_with("uni") => vec![1.2, 2.0, 2.99],
        text if text.starts_with("bi") => vec![1.0, 9.9, 10.0],
        _ => vec![1.05, 3.0, 12.0],
    };
    for (text, below) in distributions() {
        let values = draws(&law(text), 12);
        for x in points(text) {
            let expected = below(x);
            let share = values.partition_point(|v| *v <= x) as f64 / DRAWS as f64;
            let error = 5.0 * (expected * (1.0 - expected) / DRAWS as f64).sqrt() + 1e-9;
            assert!((share - expected).abs() <= error, "{text} at {x}: {share}, not {expected} ± {error}");
        }
    }
}

#[test]
fn moments_that_do_not_exist_are_infinite() {
    assert_eq!(law("pareto(min=1ms, shape=1)").mean(), Seconds(f64::INFINITY));
    assert_eq!(law("pareto(min=1ms, shape=2)").c2(), f64::INFINITY);
    assert!((law("pareto(mean=3ms, shape=1.5)").mean().0 - 3e-3).abs() < 1e-15);
    assert_eq!((law("0s").mean(), law("0s").c2()), (Seconds(0.0), 0.0));
}

#[test]
fn errors_say_where_and_what() {
    for (text, column, part) in [
        ("", 1, "a time such as 50us"),
        ("50", 1, "a time such as 50us"),
        ("exq(1ms)", 1, "exp(50us)"),
        ("exp(1 parsec)", 5, "'1 parsec'"),
        ("exp()", 5, "mean="),
        ("exp(1ms", 8, "closing bracket"),
        ("exp(1ms) or so", 10, "nothing more"),
        ("exp(1ms, 2ms)", 10, "no such argument"),
        ("lognormal(mean=1ms)", 19, "c2="),
        ("lognormal(mean=1ms, c2=-1)", 1, "positive c2"),
        ("erlang(mean=1ms, c2=2)", 1, "0.0001 to 1"),
        ("hyperexp(mean=1ms, c2=0.5)", 1, "at least 1"),
        ("bimodal(90% 1ms)", 1, "2 shares"),
        ("bimodal(90% 1ms, 20% 2ms)", 1, "100%"),
        ("bimodal(90% 1ms, ten 2ms)", 18, "a share such as 90%"),
        ("uniform(2ms, 1ms)", 1, "above"),
        ("pareto(mean=1ms, shape=1)", 1, "above 1"),
        ("pareto(min=2ms, max=1ms, shape=1)", 1, "above the least"),
        ("exp(inf)", 5, "a time"),
        ("empirical()", 1, "at least one"),
    ] {
        let error = text.parse::<TimeDistribution>().expect_err(text);
        assert_eq!(error.column, column, "{text}: {error}");
        assert!(error.message.contains(part), "{text}: {error}");
    }
    for (text, column, part) in [
        ("poisson(5)", 9, "a rate"),
        ("poisson(0/s)", 1, "positive rate"),
        ("mmpp(5/s 1s)", 1, "2 states"),
        ("mmpp(5/s 1s, 6/s)", 14, "50/s 2s"),
        ("batch(0, poisson(1/s))", 1, "1 to 1000000"),
        ("batch(2, renewal(exp(1x)))", 22, "a time"),
        ("renewal(0s)", 1, "positive mean"),
        ("diurnal(renewal(1s), period=1s, amplitude=0.1)", 9, "poisson"),
    ] {
        let error = text.parse::<ArrivalPattern>().expect_err(text);
        assert_eq!(error.column, column, "{text}: {error}");
        assert!(error.message.contains(part), "{text}: {error}");
    }
    let deep = format!("{}constant(1/s){}", "sum(".repeat(100_000), ")".repeat(100_000));
    assert!(deep.parse::<ArrivalPattern>().unwrap_err().message.contains("brackets"));
}

#[test]
fn every_arrival_process_reads_back_and_repeats() {
    for text in [
        "poisson(500/s)",
        "constant(0.1/s)",
        "mmpp(50/s 2s, 2000/s 100ms)",
        "onoff(sources=20, rate=100/s, on=100ms, off=900ms, shape=1.4)",
        "bmodel(rate=300/s, bias=0.7, interval=1s, levels=20)",
        "diurnal(sum(poisson(3/s), constant(1/s)), period=86400s, amplitude=0.5, phase=0.25)",
        "renewal(lognormal(mean=1ms, c2=4))",
        "batch(4, poisson(10/s))",
        "batch(mean=2.5, renewal(exp(50us)))",
    ] {
        let arrival: ArrivalPattern = text.parse().unwrap();
        assert_eq!(arrival.to_string(), text);
        let stream = |seed| arrival.instants(seed).unwrap().take(500).collect::<Vec<_>>();
        assert_eq!(stream(3), stream(3), "{text}");
        assert!(stream(3).is_sorted(), "{text}");
        if !text.starts_with("constant") {
            assert_ne!(stream(3), stream(4), "{text}");
        }
    }
}

#[test]
fn arrivals_keep_their_rate_and_reach_the_wanted_utilisation() {
    let service = law("lognormal(mean=50us, c2=2)");
    for text in [
        "poisson(7/s)",
        "renewal(erlang(mean=1s, c2=0.2))",
        "batch(mean=3, poisson(2/s))",
        "batch(3, constant(1/s))",
    ] {
        let arrival: ArrivalPattern = text.parse().unwrap();
        let arrivals = arrival.at_utilisation(0.7, 4, &service).unwrap();
        assert!((arrivals.mean_rate() - 0.7 * 4.0 / 50e-6).abs() < 1e-6, "{text}");
        let demands: Vec<TimedRequest> = TimedRequestSource { arrivals, service: service.clone() }
            .requests(5)
            .unwrap()
            .take(DRAWS)
            .collect();
        let utilisation = scale::utilisation(&demands, 4).unwrap();
        // Batches of geometric size have the largest variance: C² of the work of a batch is below 2.
        assert!(
            (utilisation / 0.7 - 1.0).abs() < 5.0 * (6.0 / DRAWS as f64).sqrt() * 2.0,
            "{text}: {utilisation}"
        );
    }
    assert!("poisson(1/s)".parse::<ArrivalPattern>().unwrap().at_utilisation(0.0, 1, &service).is_err());
    let heavy = law("pareto(min=1ms, shape=1)");
    assert!("poisson(1/s)".parse::<ArrivalPattern>().unwrap().at_utilisation(0.5, 1, &heavy).is_err());
}

#[test]
fn batches_have_the_sizes_of_their_law() {
    let arrival: ArrivalPattern = "batch(mean=2.5, constant(1000/s))".parse().unwrap();
    let instants: Vec<Nanos> = arrival.instants(1).unwrap().take(DRAWS).collect();
    let sizes: Vec<usize> = instants.chunk_by(|a, b| a == b).map(<[_]>::len).collect();
    let batches = sizes.len() as f64;
    // A geometric size has variance m² − m.
    let error = 5.0 * ((2.5f64 * 2.5 - 2.5) / batches).sqrt();
    assert!((DRAWS as f64 / batches - 2.5).abs() < error);
    let single = sizes.iter().filter(|size| **size == 1).count() as f64 / batches;
    assert!((single - 0.4).abs() < 5.0 * (0.24 / batches).sqrt(), "{single}");
    let always: ArrivalPattern = "batch(mean=1, constant(1000/s))".parse().unwrap();
    assert!(always.instants(1).unwrap().take(1000).is_sorted_by(|a, b| a < b));
}

#[test]
fn a_measured_stream_is_compressed_or_thinned() {
    let demand =
        |i: u64| TimedRequest { arrival: Nanos(1_000_000 + i * i * 100), service: Nanos(1 + i % 7 * 1000) };
    let demands: Vec<TimedRequest> = (0..10_000).map(demand).collect();
    for wanted in [0.01, 0.5, 3.0] {
        let scaled = scale::to_utilisation(&demands, 3, wanted).unwrap();
        assert!((scale::utilisation(&scaled, 3).unwrap() / wanted - 1.0).abs() < 1e-6);
        assert!(scaled.is_sorted_by_key(|demand| demand.arrival) && scaled[0].arrival == Nanos::ZERO);
    }
    let kept = scale::thinned(demands.iter().copied(), 0.25, 9).unwrap().count() as f64;
    assert!((kept - 2500.0).abs() < 5.0 * (10_000.0 * 0.25 * 0.75f64).sqrt(), "{kept}");
    assert_eq!(scale::thinned(demands.iter().copied(), 1.0, 9).unwrap().count(), 10_000);
    assert!(scale::thinned(demands.into_iter(), 0.0, 9).is_err());
    let still = [demand(0), demand(0)];
    assert!(scale::to_utilisation(&still, 1, 0.5).is_err());
    assert!(scale::to_utilisation(&[], 1, 0.5).is_err());
}

fn shapes() -> impl Strategy<Value = DistributionFamily> {
    let time = || (1u64..1_000_000_000_000).prop_map(|ns| Seconds(ns as f64 / 1e9));
    let raw = || (1e-9f64..1e4).prop_map(Seconds);
    prop_oneof![
        raw().prop_map(DistributionFamily::Constant),
        raw().prop_map(|mean| DistributionFamily::Exponential { mean }),
        (time(), 1.0f64..1e4).prop_map(|(mean, c2)| DistributionFamily::Hyperexponential { mean, c2 }),
        (time(), 1e-4f64..=1.0).prop_map(|(mean, c2)| DistributionFamily::Erlang { mean, c2 }),
        (raw(), 1e-3f64..1e3).prop_map(|(mean, c2)| DistributionFamily::LogNormal { mean, c2 }),
        (raw(), 0.1f64..9.0).prop_map(|(min, shape)| DistributionFamily::Pareto { min, shape }),
        (raw(), 1.001f64..1e5, 0.1f64..9.0).prop_map(|(min, ratio, shape)| {
            DistributionFamily::BoundedPareto { min, max: Seconds(min.0 * ratio), shape }
        }),
        (raw(), 1.001f64..1e5)
            .prop_map(|(from, ratio)| DistributionFamily::Uniform { from, to: Seconds(from.0 * ratio) }),
        (1u32..=99, time(), time()).prop_map(|(p, a, b)| DistributionFamily::Points(vec![
            (f64::from(p) / 100.0, a),
            (f64::from(100 - p) / 100.0, b)
        ])),
        proptest::collection::vec(any::<u32>(), 1..9).prop_map(|ns| DistributionFamily::Empirical(
            ns.into_iter().map(|ns| Nanos(u64::from(ns))).collect()
        )),
    ]
}

proptest! {
    #[test]
    fn printed_laws_read_back(shape in shapes()) {
        let law = TimeDistribution::new(shape).unwrap();
        let text = law.to_string();
        let back: TimeDistribution = text.parse().unwrap();
        prop_assert_eq!(&back, &law, "{}", text);
    }

    #[test]
    fn scaling_scales_the_mean_and_keeps_the_shape(shape in shapes(), factor in 1e-2f64..1e2) {
        let law = TimeDistribution::new(shape).unwrap();
        let scaled = law.scaled(factor).unwrap();
        // Measured values round to nanoseconds.
        let rounding = if matches!(law.family(), DistributionFamily::Empirical(_)) { 1e-9 } else { 0.0 };
        let mean = scaled.mean().0;
        let expected = law.mean().0 * factor;
        prop_assert!(mean == expected || (mean - expected).abs() <= 1e-9 * expected + rounding);
        if rounding == 0.0 {
            let c2 = scaled.c2();
            let expected = law.c2();
            prop_assert!(c2 == expected || (c2 - expected).abs() <= 1e-6 * (1.0 + expected), "{c2} {expected}");
        }
    }

    #[test]
    fn any_text_is_read_or_refused(text in "[a-z0-9 (),=.%/µ]{0,40}") {
        let _ = text.parse::<TimeDistribution>();
        let _ = text.parse::<ArrivalPattern>();
    }
}
