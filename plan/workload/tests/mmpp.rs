//! The published fit of a Markov-modulated process, on streams whose states are known.

use proptest::prelude::*;
use units::Nanos;
use workload::mmpp::{FitOptions, FittedProcess, Fitter};

const SECOND: u64 = 1_000_000_000;

/// As many requests of `work` in each second.
fn fit(counts: &[u64], work: impl Fn(usize) -> f64) -> FittedProcess {
    let mut fitter = Fitter::new(FitOptions::PUBLISHED);
    for (second, &count) in counts.iter().enumerate() {
        for k in 0..count {
            fitter.push(Nanos(second as u64 * SECOND + k * SECOND / count), work(second));
        }
    }
    fitter.finish().expect("requests")
}

#[test]
fn two_levels_are_two_states_with_their_transitions_and_sizes() {
    // Ten seconds of 400, ten of 100, and again.
    let counts: Vec<u64> = (0..40).map(|s| if s / 10 % 2 == 0 { 400 } else { 100 }).collect();
    let fitted = fit(&counts, |second| if second / 10 % 2 == 0 { 3.0 } else { 5.0 });
    assert_eq!(fitted.states.len(), 2);
    // √λ = √(400 + 1) − 1 from the top; 100 is in the range of √λ = that − 5·2.
    let top = 401_f64.sqrt() - 1.0;
    assert!((fitted.states[0].rate - top * top).abs() < 1e-9);
    assert!((fitted.states[1].rate - (top - 8.0).powi(2)).abs() < 1e-9, "{}", fitted.states[1].rate);
    assert_eq!((fitted.states[0].mean_work, fitted.states[1].mean_work), (3.0, 5.0));
    assert_eq!((fitted.states[0].share, fitted.states[1].share), (0.5, 0.5));
    // 20 seconds of 100,000 steps each in either state; down twice, up once.
    assert!((fitted.states[0].next[1] - 2.0 / 2e6).abs() < 1e-15);
    assert!((fitted.states[1].next[0] - 1.0 / 2e6).abs() < 1e-15);
}

#[test]
fn a_nearly_constant_rate_is_one_state() {
    for counts in [vec![1], vec![1; 30], vec![100; 30], vec![100, 101, 99, 100]] {
        let fitted = fit(&counts, |_| 1.0);
        assert_eq!(fitted.states.len(), 1, "{counts:?}");
        assert_eq!(fitted.states[0].next, [1.0]);
    }
    assert_eq!(Fitter::new(FitOptions::PUBLISHED).finish(), None);
}

#[test]
fn windows_begin_at_the_origin_or_at_the_first_request() {
    let stream = |fitter: Fitter| {
        let mut fitter = fitter;
        // 50 requests late in the first second, 50 early in the next.
        (0..100).for_each(|k| fitter.push(Nanos(SECOND / 2 + k * SECOND / 100), 1.0));
        fitter.finish().expect("requests").states[0].rate
    };
    let from_first = stream(Fitter::new(FitOptions::PUBLISHED));
    let from_origin = stream(Fitter::new(FitOptions::PUBLISHED).from_origin(Nanos::ZERO));
    assert!(from_first > 1.8 * from_origin, "{from_first} {from_origin}");
}

#[test]
fn real_traces_have_one_to_ten_states_and_their_mean_work() {
    let Some(folder) = testkit::shared("traces") else { return };
    for entry in std::fs::read_dir(folder).expect("a folder") {
        let path = entry.expect("readable").path();
        if path.extension().is_none_or(|end| end != "gz") {
            continue;
        }
        let mut fitter = Fitter::new(FitOptions::PUBLISHED);
        let mut count = 0_u32;
        let file = std::fs::File::open(&path).expect("readable");
        let lines = std::io::BufRead::lines(std::io::BufReader::new(flate2::read::GzDecoder::new(file)));
        for line in lines {
            let line = line.expect("text");
            let arrival = line.split(',').next().expect("a field").parse().expect("nanoseconds");
            fitter.push(Nanos(arrival), 1.0);
            count += 1;
        }
        let fitted = fitter.finish().expect("requests");
        assert!((1..=10).contains(&fitted.states.len()), "{path:?}");
        assert!(
            count > 0 && fitted.states.iter().all(|s| s.mean_work == 1.0 || s.mean_work == 0.0),
            "{path:?}"
        );
    }
}

proptest! {
    #[test]
    fn every_fit_is_a_chain_that_covers_all_windows(counts in prop::collection::vec(0_u64..300, 1..60)) {
        prop_assume!(counts[0] > 0 && counts[counts.len() - 1] > 0);
        let fitted = fit(&counts, |second| second as f64);
        let shares: f64 = fitted.states.iter().map(|s| s.share).sum();
        prop_assert!((shares - 1.0).abs() < 1e-9);
        prop_assert!((1..=10).contains(&fitted.states.len()));
        for state in &fitted.states {
            prop_assert!((state.next.iter().sum::<f64>() - 1.0).abs() < 1e-12);
            prop_assert!(state.next.iter().all(|p| (0.0..=1.0).contains(p)));
            prop_assert!(state.share > 0.0 && state.rate >= 0.0);
        }
        prop_assert!(fitted.states.windows(2).all(|pair| pair[0].rate > pair[1].rate));
        // Stored and read back.
        let text = serde_json::to_string(&fitted).unwrap();
        prop_assert_eq!(serde_json::from_str::<FittedProcess>(&text).unwrap(), fitted);
    }
}
