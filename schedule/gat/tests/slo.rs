//! Deadlines: SLOs of classes, the order derived from them, and clients' claims.

use gat::{
    ClassSlos, Edge, InnerTier, ReceivedTag, RequestSlo, RequestTag, SloError, TagCase, TagCodec, TagOrder,
    TagTolerance,
};
use proptest::prelude::*;
use std::time::Duration;

const NOW_NS: u64 = 1_700_000_000_000_000_000;

fn slo(ms: u64) -> RequestSlo {
    RequestSlo::new(Duration::from_millis(ms)).expect("it is in its range")
}

#[test]
fn classes_by_name() {
    let classes = ClassSlos::new(
        [("web", 50), ("report", 2000), ("batch", 500)].map(|(name, ms)| (name, Duration::from_millis(ms))),
    );
    let classes = classes.unwrap();
    assert_eq!((classes.of("web"), classes.of("batch")), (Ok(slo(50)), Ok(slo(500))));
    assert_eq!((classes.longest(), classes.overtaken_for()), (slo(2000), Duration::from_millis(1950)));
    assert_eq!(classes.order(), TagOrder::Deadline { default_slo: slo(2000) });
    let unknown = classes.of("wbe").unwrap_err();
    assert_eq!(unknown.to_string(), "no class has the name 'wbe'; with an SLO there are: batch, report, web");
}

#[test]
fn what_is_no_slo_is_refused_with_the_class() {
    let day = Duration::from_secs(86_400);
    let one = |length| ClassSlos::new([("web", length)]).map(drop).map_err(|error| error.to_string());
    assert_eq!((one(Duration::from_nanos(1)), one(day)), (Ok(()), Ok(())));
    let expected = "expected more than zero, and at most a day";
    for (length, shown) in [
        (Duration::ZERO, "0ns"),
        (day + Duration::from_nanos(1), "86400.000000001s"),
        (Duration::MAX, "18446744073709551615.999999999s"),
    ] {
        assert_eq!(one(length), Err(format!("class 'web': an SLO of {shown}; {expected}")));
        assert!(RequestSlo::new(length).is_err());
    }
    let twice = ClassSlos::new([("web", day), ("web", day)]).unwrap_err();
    assert_eq!(twice, SloError::Repeated("web".into()));
    assert_eq!(ClassSlos::new(Vec::<(String, Duration)>::new()), Err(SloError::NoClass));
}

/// Nothing that a client sends, in any spelling, influences the order of deadlines behind an edge.
#[test]
fn a_client_cannot_claim_a_deadline() {
    let codec = TagCodec::baggage();
    let order = TagOrder::Deadline { default_slo: slo(1000) };
    for claimed in [
        "tailwright-deadline=1",
        "tailwright-start=1,tailwright-deadline=2",
        "tailwright-start=1699999999000000000,tailwright-deadline=1700000000000000001",
        "tailwright%2Ddeadline=1,%74ailwright-start=1",
        "Tailwright-Deadline=1, TAILWRIGHT-START=1",
        "+tailwright-deadline%20=1,tailwright%252dstart=1",
        "tailwright-deadline=1;ttl=3,tailwright-deadline=2",
    ] {
        for edge in [Edge::default(), Edge::default().with_slo(slo(200))] {
            let mut edge = edge;
            let stamped = edge.enter(NOW_NS);
            let sent = codec.write([claimed.as_bytes()], stamped).value;
            let mut tier = InnerTier::default();
            let accepted = tier.receive(codec.read([&sent[..]]), NOW_NS + 1_000_000);
            assert_eq!((accepted, tier.counts().accepted), (stamped, 1), "{claimed}");
            assert!(accepted.key(order) >= NOW_NS + slo(200).ns(), "{claimed}: {accepted:?}");
            assert_eq!(
                sent.split(|byte| *byte == b',').count(),
                1 + usize::from(stamped.deadline_ns.is_some())
            );
        }
    }
}

const HOUR_NS: i64 = 3_600_000_000_000;
const DAY_NS: i64 = 24 * HOUR_NS;

proptest! {
    /// An accepted deadline is after the start and within a day of it, for any received tag.
    #[test]
    fn accepted_deadlines_are_possible(
        age_ns in -2 * HOUR_NS..2 * HOUR_NS, ahead_ns in -2 * DAY_NS..2 * DAY_NS, is_at_limit: bool,
    ) {
        let start_ns = NOW_NS.saturating_add_signed(-age_ns);
        let ahead_ns = if is_at_limit { ahead_ns.signum() * DAY_NS } else { ahead_ns };
        let deadline_ns = start_ns.saturating_add_signed(ahead_ns);
        let now_ns = NOW_NS;
        let received = RequestTag { start_ns, deadline_ns: Some(deadline_ns) };
        let (accepted, case) = TagTolerance::default().judge(received, now_ns);
        let is_near = (-1_000_000_000..=HOUR_NS).contains(&age_ns);
        prop_assert_eq!(case == TagCase::Accepted, is_near && (0..=DAY_NS).contains(&ahead_ns));
        if let Some(due) = accepted.deadline_ns {
            prop_assert!(accepted.start_ns <= due && due - accepted.start_ns <= RequestSlo::MAX.ns());
            prop_assert_eq!(due, deadline_ns);
        }
        prop_assert!(case != TagCase::Accepted || accepted == received);
        let by_tier = InnerTier::default().receive(ReceivedTag::Tagged(received), now_ns);
        prop_assert_eq!(by_tier, accepted);
    }

    /// With one SLO the order of deadlines is that of starts; with several, overtaking requests entered
    /// soon after.
    #[test]
    fn deadlines_order_by_start_and_slo(
        slos in proptest::collection::vec(1u64..10_000, 1..4),
        entered in proptest::collection::vec((0u64..100_000, any::<usize>()), 2..30),
    ) {
        let names = (0..slos.len()).map(|class| class.to_string());
        let lengths = slos.iter().map(|ms| Duration::from_millis(*ms));
        let classes = ClassSlos::new(names.zip(lengths)).unwrap();
        let tag = |(at_ms, class): &(u64, usize)| {
            RequestTag::starting_at(NOW_NS + at_ms * 1_000_000)
                .with_slo(classes.of(&(class % slos.len()).to_string()).unwrap())
        };
        let tags: Vec<RequestTag> = entered.iter().map(tag).collect();
        for (first, second) in tags.iter().flat_map(|a| tags.iter().map(move |b| (a, b))) {
            let is_overtaken = second.start_ns > first.start_ns && second.key(classes.order()) < first.key(classes.order());
            let after = Duration::from_nanos(second.start_ns.saturating_sub(first.start_ns));
            prop_assert!(!is_overtaken || after < classes.overtaken_for(), "{first:?} {second:?}");
            prop_assert!(slos.len() > 1 || !is_overtaken);
        }
    }
}
