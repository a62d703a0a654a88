//! Effect of skew between the clocks of edges, in a simulation of two edges; a sort by true time is the
//! reference.

use gat::{Edge, EdgeClock, InnerTier, ReceivedTag, RequestSlo, RequestTag, TagCodec};
use rand::{RngExt, SeedableRng, rngs::StdRng};
use std::time::Duration;

const ORIGIN_NS: u64 = 1_700_000_000_000_000_000;

/// A request of the simulation: its true entry time, and its stamp.
struct Entered {
    at_ns: u64,
    edge: usize,
    start_ns: u64,
}

/// Returns requests that enter at two edges, whose clocks are ahead by `ahead_ns` each at that time.
fn run(seed: u64, ahead_ns: impl Fn(usize, u64) -> u64) -> Vec<Entered> {
    let mut random = StdRng::seed_from_u64(seed);
    let mut edges = [Edge::default(), Edge::default()];
    let mut at_ns = ORIGIN_NS;
    let mut enter = |_| {
        at_ns += random.random_range(0..400_000);
        let edge = random.random_range(0..2);
        let start_ns = edges[edge].enter(at_ns + ahead_ns(edge, at_ns)).start_ns;
        Entered { at_ns, edge, start_ns }
    };
    (0..3000).map(&mut enter).collect()
}

/// Returns the largest time between the entries of a request and of a later one that is ordered before
/// it; zero without any.
fn overtaken_by_ns(entered: &[Entered]) -> u64 {
    let mut worst = 0;
    for (index, early) in entered.iter().enumerate() {
        for late in &entered[index + 1..] {
            if late.start_ns < early.start_ns {
                assert_ne!(late.edge, early.edge, "an edge keeps its own order");
                worst = worst.max(late.at_ns - early.at_ns);
            }
        }
    }
    worst
}

#[test]
fn whoever_is_overtaken_is_overtaken_by_later_ones_within_the_skew() {
    for (seed, skew_ns) in [(1, 0), (2, 1_000), (3, 5_000_000), (4, 80_000_000)] {
        let entered = run(seed, |edge, _| if edge == 0 { skew_ns } else { 0 });
        let worst = overtaken_by_ns(&entered);
        assert!(worst <= skew_ns, "seed {seed}: {worst} ns with a skew of {skew_ns} ns");
        // The bound is tight: with many requests within the skew, it is nearly reached.
        assert!(skew_ns < 5_000_000 || worst * 10 >= skew_ns * 9, "seed {seed}: {worst} ns of {skew_ns} ns");
    }
}

#[test]
fn a_clock_that_is_set_back_counts_as_skew_and_never_reorders_its_edge() {
    let back_ns = 30_000_000;
    // Ahead in the first half, then set back.
    let half = ORIGIN_NS + 300_000_000;
    let entered = run(5, |edge, at_ns| if edge == 0 && at_ns < half { back_ns } else { 0 });
    let worst = overtaken_by_ns(&entered);
    assert!(worst <= back_ns && worst > 0, "{worst}");
}

#[test]
fn starts_of_an_edge_increase_whatever_its_clock_does() {
    let mut edge = Edge::default();
    let clock = [5, 5, 4, 0, 6, 100, 7, u64::MAX - 1, 0];
    let starts = clock.map(|now_ns| edge.enter(now_ns).start_ns);
    assert!(starts.is_sorted_by(|a, b| a < b), "{starts:?}");
    assert_eq!((starts[0], starts[5]), (5, 100));
    // The last number repeats: no overflow.
    assert_eq!((edge.enter(0).start_ns, edge.enter(0).start_ns), (u64::MAX, u64::MAX));
}

#[test]
fn logical_clocks_put_no_effect_before_its_cause() {
    let mut edges = [Edge::new(EdgeClock::Logical), Edge::new(EdgeClock::Logical)];
    let mut random = StdRng::seed_from_u64(6);
    for _ in 0..1000 {
        let cause = usize::from(random.random_bool(0.5));
        let tag = edges[cause].enter(random.random());
        // The other edge observes it, and then enters a request.
        edges[1 - cause].observe(tag.start_ns);
        assert!(edges[1 - cause].enter(random.random()).start_ns > tag.start_ns);
    }
    assert_eq!(Edge::new(EdgeClock::Logical).with_slo(RequestSlo::MAX).enter(9).deadline_ns, None);
}

#[test]
fn a_request_without_a_tag_is_as_young_as_the_youngest_where_clocks_are_logical() {
    let mut tier = InnerTier::with_logical_clock();
    let seen = tier.receive(ReceivedTag::Tagged(RequestTag::starting_at(40)), u64::MAX);
    assert_eq!((seen.start_ns, tier.receive(ReceivedTag::Untagged, 7).start_ns), (40, 40));
}

#[test]
fn a_chain_with_fan_out_join_and_retry_keeps_the_first_start() {
    let codec = TagCodec::baggage();
    let tag = Edge::default().with_slo(RequestSlo::new(Duration::from_millis(50)).unwrap()).enter(ORIGIN_NS);
    let mut sent = codec.write([], tag).value;
    for hop in 1..=6u64 {
        let now_ns = ORIGIN_NS + hop * 3_000_000;
        let received = InnerTier::default().receive(codec.read([&sent[..]]), now_ns);
        // Two calls, one of them retried; a third joins the answers.
        let calls = [received, received, received];
        let joined = calls.into_iter().reduce(RequestTag::joined).unwrap();
        sent = codec.write([&sent[..]], joined).value;
        assert_eq!(codec.read([&sent[..]]), ReceivedTag::Tagged(tag), "hop {hop}");
        assert_eq!(joined.age_ns(now_ns), hop * 3_000_000);
    }
}
