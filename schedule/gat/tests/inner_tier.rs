//! Tags that an inner tier accepts, case by case with their counts; joining; the hosts that may see tags.

use gat::{
    InnerTier, ReceivedTag, ReceivedTagCounts, RequestSlo, RequestTag, TagCase, TagCodec, TagDomain,
    TagFault, TagTolerance,
};
use proptest::prelude::*;
use serde_json::Value;

const NOW_NS: u64 = 1_000_000;
const TOLERANCE: TagTolerance =
    TagTolerance { ahead_ns_max: 100, age_ns_max: 10_000, slo_max: RequestSlo::MAX };
/// The longest SLO.
const DAY_NS: u64 = 86_400_000_000_000;

fn tag(start_ns: u64, deadline_ns: u64) -> RequestTag {
    RequestTag { start_ns, deadline_ns: Some(deadline_ns).filter(|ns| *ns > 0) }
}

#[test]
fn each_case_at_its_boundary() {
    for (received, expected, case) in [
        (tag(NOW_NS, 0), tag(NOW_NS, 0), TagCase::Accepted),
        (tag(NOW_NS + 100, 0), tag(NOW_NS + 100, 0), TagCase::Accepted),
        (tag(NOW_NS + 101, 0), tag(NOW_NS, 0), TagCase::Future),
        (tag(u64::MAX, u64::MAX), tag(NOW_NS, 0), TagCase::Future),
        (tag(NOW_NS - 10_000, 0), tag(NOW_NS - 10_000, 0), TagCase::Accepted),
        (tag(NOW_NS - 10_001, 0), tag(NOW_NS - 10_000, 0), TagCase::TooOld),
        (tag(0, 7), tag(NOW_NS - 10_000, 0), TagCase::TooOld),
        (tag(0, NOW_NS), tag(NOW_NS - 10_000, NOW_NS), TagCase::TooOld),
        (tag(NOW_NS, NOW_NS), tag(NOW_NS, NOW_NS), TagCase::Accepted),
        (tag(NOW_NS, NOW_NS - 1), tag(NOW_NS, 0), TagCase::DeadlineBeforeStart),
        (tag(NOW_NS, NOW_NS + DAY_NS), tag(NOW_NS, NOW_NS + DAY_NS), TagCase::Accepted),
        (tag(NOW_NS, NOW_NS + DAY_NS + 1), tag(NOW_NS, 0), TagCase::DeadlineTooFar),
        (tag(NOW_NS, u64::MAX), tag(NOW_NS, 0), TagCase::DeadlineTooFar),
        (tag(0, u64::MAX), tag(NOW_NS - 10_000, 0), TagCase::TooOld),
    ] {
        assert_eq!(TOLERANCE.judge(received, NOW_NS), (expected, case), "{received:?}");
    }
    // No overflow at either end of time.
    assert_eq!(TOLERANCE.judge(tag(0, 0), 0), (tag(0, 0), TagCase::Accepted));
    assert_eq!(TOLERANCE.judge(tag(u64::MAX, 0), u64::MAX), (tag(u64::MAX, 0), TagCase::Accepted));
}

/// Cases that the bindings of all languages accept (`schedule/bindings/received.json`).
#[test]
fn what_all_languages_accept() {
    let cases: Vec<Value> =
        serde_json::from_str(include_str!("../../../schedule/bindings/received.json")).unwrap();
    assert!(cases.len() > 10);
    for case in &cases {
        let values: Vec<&str> = case["values"].as_array().unwrap().iter().filter_map(Value::as_str).collect();
        let received = TagCodec::baggage().read(values.iter().map(|value| value.as_bytes()));
        let mut tier = InnerTier::default();
        let tag = tier.receive(received, 1_700_000_000_000_000_000);
        let number = |at: usize| case["tag"][at].as_str().map(|digits| digits.parse::<u64>().unwrap());
        assert_eq!((Some(tag.start_ns), tag.deadline_ns), (number(0), number(1)), "{case}");
        let mut expected = ReceivedTagCounts::default();
        expected.add(match case["case"].as_str().unwrap() {
            "accepted" => TagCase::Accepted,
            "untagged" => TagCase::Untagged,
            "malformed" => TagCase::Malformed,
            "future" => TagCase::Future,
            "too_old" => TagCase::TooOld,
            "deadline_before_start" => TagCase::DeadlineBeforeStart,
            "deadline_too_far" => TagCase::DeadlineTooFar,
            other => panic!("{other}"),
        });
        assert_eq!(tier.counts(), expected, "{case}");
    }
}

#[test]
fn cases_are_counted() {
    let mut tier = InnerTier::new(TOLERANCE);
    for received in [
        ReceivedTag::Untagged,
        ReceivedTag::Untagged,
        ReceivedTag::Malformed(TagFault::Conflict),
        ReceivedTag::Tagged(tag(NOW_NS, 0)),
        ReceivedTag::Tagged(tag(u64::MAX, 0)),
        ReceivedTag::Tagged(tag(1, 0)),
        ReceivedTag::Tagged(tag(NOW_NS, 1)),
        ReceivedTag::Tagged(tag(NOW_NS, u64::MAX)),
    ] {
        let tag = tier.receive(received, NOW_NS);
        assert!(tag.start_ns <= NOW_NS + TOLERANCE.ahead_ns_max);
        assert!(tag.age_ns(NOW_NS) <= TOLERANCE.age_ns_max);
    }
    let expected = ReceivedTagCounts {
        accepted: 1,
        untagged: 2,
        malformed: 1,
        future: 1,
        too_old: 1,
        deadline_before_start: 1,
        deadline_too_far: 1,
    };
    assert_eq!(tier.counts(), expected);
}

proptest! {
    #[test]
    fn tags_are_within_tolerance_and_swap_only_in_the_future(a: u64, b: u64, now_ns: u64) {
        let judged = |start_ns| TOLERANCE.judge(tag(start_ns, 0), now_ns).0.start_ns;
        let early = a.min(b);
        let late = a.max(b);
        for start_ns in [judged(early), judged(late)] {
            prop_assert!(start_ns <= now_ns.saturating_add(TOLERANCE.ahead_ns_max));
            prop_assert!(start_ns >= now_ns.saturating_sub(TOLERANCE.age_ns_max));
        }
        prop_assert!(judged(early) <= judged(late) || early > now_ns);
    }

    #[test]
    fn joining_has_the_laws_of_a_minimum(tags in proptest::collection::vec((any::<u64>(), any::<u64>()), 3)) {
        let [a, b, c] = [0, 1, 2].map(|index: usize| tag(tags[index].0, tags[index].1));
        prop_assert_eq!(a.joined(a), a);
        prop_assert_eq!(a.joined(b), b.joined(a));
        prop_assert_eq!(a.joined(b).joined(c), a.joined(b.joined(c)));
    }
}

#[test]
fn hosts_of_the_system_and_others() {
    let domain: TagDomain = "store, 10.0.0.7,*.svc.cluster.local,::1, Mixed.Example. ".parse().unwrap();
    for inside in [
        "store",
        "STORE",
        "store:8080",
        "store.",
        "10.0.0.7:80",
        "a.svc.cluster.local",
        "a.b.svc.cluster.local:1",
        "[::1]:80",
        "::1",
        "mixed.example",
    ] {
        assert!(domain.contains(inside), "{inside}");
    }
    for outside in [
        "",
        "stores",
        "a.store",
        "10.0.0.70",
        "svc.cluster.local",
        ".svc.cluster.local",
        "xsvc.cluster.local",
        "a.svc.cluster.local.evil.example",
        "[::2]:80",
        "store@evil.example",
        "store:80@evil.example",
    ] {
        assert!(!domain.contains(outside), "{outside}");
    }
    assert!(!TagDomain::default().contains("localhost"), "nobody, unless listed");
    assert!("*".parse::<TagDomain>().unwrap().contains("anything"));
    for bad in ["http://store", "store:80", "a b", "*.", "st*re", "store/x"] {
        assert!(bad.parse::<TagDomain>().unwrap_err().to_string().contains("names no host"), "{bad}");
    }
}
