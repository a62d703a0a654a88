//! Burst curves against the definition: all intervals, one by one.

mod support;

use proptest::prelude::*;
use proptest::strategy::ValueTree;
use std::num::NonZeroUsize;
use support::definition::is_the_hull_of_all_intervals;
use units::{Nanos, Work};
use workload::burst::{BurstBuilder, BurstCurve, BurstError, SlidingBurstCurve, StageArrival};

/// Gaps and works with ties, zeros, batches, long pauses and large values.
fn arrivals(most: usize) -> impl Strategy<Value = Vec<StageArrival>> {
    let gap = prop_oneof![3 => Just(0_u64), 3 => 0..4_u64, 3 => 0..1_000_000_u64, 1 => 0..1_u64 << 40];
    let work = prop_oneof![1 => Just(0_u64), 3 => 1..4_u64, 3 => 0..1_000_000_u64, 1 => 0..1_u64 << 50];
    (0..1_u64 << 40, prop::collection::vec((gap, work), 1..most)).prop_map(|(start, steps)| {
        let mut at = start;
        let mut arrival = |(gap, work)| {
            at += gap;
            StageArrival { at: Nanos(at), work: Work(work) }
        };
        steps.into_iter().map(&mut arrival).collect()
    })
}

/// Long enough for several blocks and levels, on small numbers so that ties are common, or real-looking.
fn long_arrivals() -> impl Strategy<Value = Vec<StageArrival>> {
    prop_oneof![arrivals(700), any::<u64>().prop_map(|seed| support::synthetic(600, seed))]
}

fn built(chunks: &[&[StageArrival]]) -> BurstCurve {
    let mut builder = BurstBuilder::new();
    for chunk in chunks {
        builder.extend(chunk).unwrap();
    }
    builder.finish().unwrap()
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 400, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn equals_the_definition_on_few_arrivals(arrivals in arrivals(24)) {
        is_the_hull_of_all_intervals(BurstCurve::from_arrivals(&arrivals).unwrap().envelope(), &arrivals);
    }

    #[test]
    fn parts_merge_to_the_whole_bit_for_bit(arrivals in arrivals(200), cuts in prop::collection::vec(any::<prop::sample::Index>(), 1..6)) {
        let mut cuts: Vec<_> = cuts.iter().map(|c| c.index(arrivals.len())).collect();
        cuts.extend([0, arrivals.len()]);
        cuts.sort_unstable();
        cuts.dedup();
        let parts: Vec<_> = cuts.windows(2).map(|c| &arrivals[c[0]..c[1]]).collect();
        let curves: Vec<_> = parts.iter().map(|part| BurstCurve::from_arrivals(part).unwrap()).collect();
        let whole = BurstCurve::from_arrivals(&arrivals).unwrap();
        let from_left = curves[1..].iter().fold(curves[0].clone(), |sum, c| sum.merge(c).unwrap());
        let (last, rest) = curves.split_last().unwrap();
        let from_right = rest.iter().rev().fold(last.clone(), |sum, c| c.merge(&sum).unwrap());
        prop_assert_eq!(&from_left, &whole);
        prop_assert_eq!(&from_right, &whole);
        prop_assert_eq!(&built(&parts), &whole);
    }

    #[test]
    fn survives_serialisation(arrivals in arrivals(60)) {
        let curve = BurstCurve::from_arrivals(&arrivals).unwrap();
        let text = serde_json::to_string(&curve).unwrap();
        prop_assert_eq!(serde_json::from_str::<BurstCurve>(&text).unwrap(), curve);
    }

    #[test]
    fn margin_scales_up(arrivals in arrivals(60), margin in 0.1..10.0_f64) {
        let envelope = BurstCurve::from_arrivals(&arrivals).unwrap().envelope().clone();
        prop_assert_eq!(&envelope.scaled(1.0).unwrap(), &envelope);
        let scaled = envelope.scaled(margin).unwrap();
        for v in envelope.vertices() {
            let work = scaled.work_within(v.duration).0 as f64;
            prop_assert!(work >= v.work.0 as f64 * margin && work <= v.work.0 as f64 * margin * (1.0 + 1e-12) + 2.0);
        }
    }
}

/// Stored curves of small numbers: many are refused, some are accepted without being any stream's.
fn stored() -> impl Strategy<Value = String> {
    let chain = || prop::collection::vec((0..9_u64, 0..6_u64), 0..2);
    (0..3_u64, 2..9_u64, 2..6_u64, 0..9_u64, [chain(), chain(), chain()]).prop_map(|(first, last, total, count, c)| {
        let chains = c.map(|mut chain| {
            chain.sort_unstable();
            chain.insert(0, (0, total.min(2)));
            chain.push((last.saturating_sub(first), total));
            chain.dedup();
            serde_json::to_string(&chain).unwrap()
        });
        format!(
            r#"{{"first_ns":{first},"last_ns":{last},"total":{total},"count":{count},"intervals":{},"prefix":{},"suffix":{}}}"#,
            chains[0], chains[1], chains[2]
        )
    })
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 20_000, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn whatever_is_accepted_on_reading_merges(text in stored()) {
        if let Ok(curve) = serde_json::from_str::<BurstCurve>(&text) {
            let later = BurstCurve::from_arrivals(&[at(9, 3), at(u64::MAX, 5)]).unwrap();
            let merged = curve.merge(&later).unwrap();
            let again: BurstCurve = serde_json::from_str(&serde_json::to_string(&merged).unwrap()).unwrap();
            prop_assert_eq!(again, merged);
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 40, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn equals_the_definition_over_many_blocks(arrivals in long_arrivals()) {
        let curve = BurstCurve::from_arrivals(&arrivals).unwrap();
        is_the_hull_of_all_intervals(curve.envelope(), &arrivals);
        let mut builder = BurstBuilder::new();
        arrivals.iter().for_each(|&a| builder.push(a).unwrap());
        prop_assert_eq!(builder.finish().unwrap(), curve);
    }

    #[test]
    fn a_sliding_window_equals_recomputation(
        arrivals in arrivals(300), size in 1..20_usize, window in 1..9_usize, time in 0..1_u64 << 41,
    ) {
        let segments: Vec<_> = arrivals.chunks(size).collect();
        let mut by_count = SlidingBurstCurve::over_segments(window);
        let mut by_time = SlidingBurstCurve::over_duration(Nanos(time));
        for (k, segment) in segments.iter().enumerate() {
            let curve = BurstCurve::from_arrivals(segment).unwrap();
            by_count.push(curve.clone()).unwrap();
            by_time.push(curve).unwrap();
            let kept = segments[(k + 1).saturating_sub(window)..=k].concat();
            prop_assert_eq!(by_count.curve().unwrap().unwrap(), BurstCurve::from_arrivals(&kept).unwrap());
            let start = segment[segment.len() - 1].at.saturating_sub(Nanos(time));
            let reaches = |s: &&&[StageArrival]| s[s.len() - 1].at >= start;
            let kept: Vec<_> = segments[..=k].iter().filter(reaches).copied().flatten().copied().collect();
            prop_assert_eq!(by_time.curve().unwrap().unwrap(), BurstCurve::from_arrivals(&kept).unwrap());
        }
    }
}

fn at(ns: u64, work: u64) -> StageArrival {
    StageArrival { at: Nanos(ns), work: Work(work) }
}

#[test]
fn random_stored_curves_are_both_refused_and_accepted() {
    let mut runner = proptest::test_runner::TestRunner::deterministic();
    let mut draw = || stored().new_tree(&mut runner).unwrap().current();
    let accepted = (0..2000).filter(|_| serde_json::from_str::<BurstCurve>(&draw()).is_ok()).count();
    assert!((20..1980).contains(&accepted), "{accepted} of 2000");
}

#[test]
fn worked_example() {
    // A batch of 2 + 3 at 10, 4 at 12, a long pause, 6 at 100.
    let curve = BurstCurve::from_arrivals(&[at(10, 2), at(10, 3), at(12, 4), at(100, 6)]).unwrap();
    let corners: Vec<_> = curve.envelope().vertices().iter().map(|v| (v.duration.0, v.work.0)).collect();
    assert_eq!(corners, [(0, 6), (2, 9), (90, 15)]);
    assert_eq!((curve.first(), curve.last()), (Nanos(10), Nanos(100)));
    assert_eq!((curve.total(), curve.count()), (Work(15), 4));
    // 15 − 2·… at one thousandth per ns, that is 1e6 base units per second: 9 − 2 beats 6 and 15 − 90.
    let burst = curve.envelope().burst(1e6);
    assert!((0.007..0.007 + 1e-12).contains(&burst), "{burst}");
    assert_eq!(curve.envelope().work_within(Nanos(46)), Work(12));
    assert_eq!(curve.envelope().work_within(Nanos(47)), Work(13));
    assert_eq!(curve.envelope().work_within(Nanos(1000)), Work(15));
}

#[test]
fn regular_arrivals_have_two_corners() {
    let arrivals: Vec<_> = (0..10_000).map(|k| at(k * 1000, 7)).collect();
    let curve = BurstCurve::from_arrivals(&arrivals).unwrap();
    assert_eq!(curve.envelope().vertices().len(), 2);
}

#[test]
fn refuses_what_is_not_a_stream() {
    assert_eq!(BurstCurve::from_arrivals(&[]), Err(BurstError::Empty));
    assert_eq!(BurstBuilder::new().finish(), Err(BurstError::Empty));
    assert_eq!(BurstCurve::from_arrivals(&[at(0, u64::MAX), at(1, 1)]), Err(BurstError::Overflow));
    assert!(BurstCurve::from_arrivals(&[at(0, u64::MAX), at(u64::MAX, 0)]).is_ok());
    for index in [1, 63, 64, 65, 30_000] {
        let mut arrivals: Vec<_> = (0..40_000).map(|k| at(k + 5, 1)).collect();
        arrivals[index].at = arrivals[index - 1].at.saturating_sub(Nanos(1));
        let error = Err(BurstError::Unsorted { index: index as u64 });
        assert_eq!(BurstCurve::from_arrivals(&arrivals), error);
        assert_eq!(BurstCurve::from_arrivals_parallel(&arrivals, NonZeroUsize::new(4).unwrap()), error);
    }
    let a = BurstCurve::from_arrivals(&[at(0, 1), at(9, 1)]).unwrap();
    let b = BurstCurve::from_arrivals(&[at(8, 1)]).unwrap();
    assert_eq!(a.merge(&b), Err(BurstError::Overlap { ends: Nanos(9), starts: Nanos(8) }));
    let huge = BurstCurve::from_arrivals(&[at(9, u64::MAX)]).unwrap();
    assert_eq!(a.merge(&huge), Err(BurstError::Overflow));
}

#[test]
fn cores_agree() {
    let arrivals = support::synthetic(100_000, 7);
    let alone = BurstCurve::from_arrivals(&arrivals).unwrap();
    for threads in [1, 2, 3, 8] {
        let together =
            BurstCurve::from_arrivals_parallel(&arrivals, NonZeroUsize::new(threads).unwrap()).unwrap();
        assert_eq!(together, alone, "{threads} threads");
    }
}

#[test]
fn refuses_stored_curves_of_nothing() {
    let good = r#"{"first_ns":0,"last_ns":9,"total":5,"count":2,"intervals":[[0,3],[9,5]],"prefix":[[0,3],[9,5]],"suffix":[[0,2],[9,5]]}"#;
    assert!(serde_json::from_str::<BurstCurve>(good).is_ok());
    for (from, to) in [
        ("\"first_ns\":0", "\"first_ns\":10"),
        ("\"count\":2", "\"count\":0"),
        ("\"total\":5", "\"total\":6"),
        ("\"last_ns\":9", "\"last_ns\":8"),
        ("[[0,3],[9,5]]", "[]"),
        ("[[0,3],[9,5]]", "[[1,3],[9,5]]"),
        ("[[0,3],[9,5]]", "[[0,3],[4,4],[8,5]]"),
        ("[[0,3],[9,5]]", "[[0,5],[9,5]]"),
        ("\"prefix\":[[0,3]", "\"prefix\":[[0,4]"),
        ("\"suffix\"", "\"siffux\""),
    ] {
        let bad = good.replacen(from, to, 1);
        assert_ne!(bad, good);
        assert!(serde_json::from_str::<BurstCurve>(&bad).is_err(), "{bad}");
    }
}
