//! Curves and footprints as bytes: parts of a trace merge to the whole, and nothing that comes from elsewhere panics.

use model::{Op, Request, Stage};
use proptest::prelude::*;
use units::{Bytes, Nanos, Work};
use workload::burst::{BurstCurve, BurstError, StageArrival};
use workload::device::StorageProfile;
use workload::{StoredFootprint, StoredFootprintError};

const SSD: &str = r#"{"bandwidthTable":[{"requestSize":4096,"readBandwidth":4e8,"writeBandwidth":1.5e8}]}"#;
const OTHER: &str = r#"{"bandwidthTable":[{"requestSize":4096,"readBandwidth":4e8,"writeBandwidth":1.6e8}]}"#;

fn profile(text: &str) -> StorageProfile {
    StorageProfile::from_json(text).expect("a profile")
}

fn requests(most: usize) -> impl Strategy<Value = Vec<Request>> {
    let gap = prop_oneof![3 => Just(0_u64), 3 => 0..4_u64, 3 => 0..1_000_000_u64, 1 => 0..1_u64 << 40];
    let size = prop_oneof![1 => Just(0_u64), 3 => 1..4_u64, 3 => 0..1_000_000_u64];
    (0..1_u64 << 40, prop::collection::vec((gap, size, any::<bool>()), 1..most)).prop_map(|(start, steps)| {
        let mut at = start;
        let mut request = |(gap, size, writes)| {
            at += gap;
            let op = if writes { Op::Write } else { Op::Read };
            Request { arrival: Nanos(at), size: Bytes(size), op, offset: None, response: None }
        };
        steps.into_iter().map(&mut request).collect()
    })
}

fn footprint(requests: &[Request]) -> StoredFootprint {
    StoredFootprint::from_requests(&profile(SSD), requests.iter().copied()).expect("requests in order")
}

fn curve(requests: &[Request]) -> BurstCurve {
    let arrivals =
        requests.iter().map(|request| StageArrival { at: request.arrival, work: Work(request.size.0) });
    BurstCurve::from_arrivals(&arrivals.collect::<Vec<_>>()).expect("requests in order")
}

/// Merges neighbours in an order that `choices` decides, each through bytes.
fn merged<T>(
    mut parts: Vec<T>,
    choices: &[prop::sample::Index],
    merge: impl Fn(&T, &T) -> T,
    through_bytes: impl Fn(&T) -> T,
) -> T {
    let mut choices = choices.iter().cycle();
    while parts.len() > 1 {
        let at = choices.next().expect("some choices").index(parts.len() - 1);
        let later = parts.remove(at + 1);
        parts[at] = merge(&through_bytes(&parts[at]), &through_bytes(&later));
    }
    parts.remove(0)
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 300, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn any_split_and_any_association_is_the_whole(
        requests in requests(200),
        cuts in prop::collection::vec(any::<prop::sample::Index>(), 0..12),
        choices in prop::collection::vec(any::<prop::sample::Index>(), 1..12),
    ) {
        let mut cuts: Vec<usize> = cuts.iter().map(|cut| cut.index(requests.len())).collect();
        cuts.extend([0, requests.len()]);
        cuts.sort_unstable();
        cuts.dedup();
        let parts: Vec<&[Request]> = cuts.windows(2).map(|cut| &requests[cut[0]..cut[1]]).collect();
        let read = |curve: &BurstCurve| BurstCurve::from_bytes(&curve.to_bytes()).expect("what was written");
        let curves = parts.iter().map(|part| curve(part)).collect();
        let whole = merged(curves, &choices, |a, b| a.merge(b).expect("consecutive"), read);
        prop_assert_eq!(whole.to_bytes(), curve(&requests).to_bytes());
        prop_assert_eq!(whole, curve(&requests));
        let read = |part: &StoredFootprint| StoredFootprint::from_bytes(&part.to_bytes()).expect("what was written");
        let footprints = parts.iter().map(|part| footprint(part)).collect();
        let whole = merged(footprints, &choices, |a, b| a.merge(b).expect("consecutive"), read);
        prop_assert_eq!(whole.to_bytes(), footprint(&requests).to_bytes());
        prop_assert_eq!(whole, footprint(&requests));
    }

    /// Simultaneous requests may be divided among parts in any way: partitions of a table know no order among them.
    #[test]
    fn the_order_of_simultaneous_requests_does_not_matter(
        before in 0..50_u64, batch in prop::collection::vec(0..50_u64, 1..8), after in 0..50_u64, turn in 0..8_usize,
    ) {
        let at = |at, size| Request {
            arrival: Nanos(at), size: Bytes(size), op: Op::Read, offset: None, response: None,
        };
        let of = |batch: &[u64]| {
            let batch = batch.iter().map(|size| at(7, *size));
            [at(3, before)].into_iter().chain(batch).chain([at(9, after)]).collect::<Vec<_>>()
        };
        let mut turned = batch.clone();
        turned.rotate_left(turn % batch.len());
        let turned = of(&turned);
        let whole = curve(&of(&batch));
        prop_assert_eq!(&curve(&turned), &whole);
        for cut in 1..turned.len() {
            let parts = curve(&turned[..cut]).merge(&curve(&turned[cut..])).expect("touching");
            prop_assert_eq!(&parts, &whole);
        }
    }

    #[test]
    fn hostile_bytes_are_refused(
        requests in requests(30), at in any::<prop::sample::Index>(), flip in 1..=255_u8, junk in prop::collection::vec(any::<u8>(), 0..80),
    ) {
        for good in [curve(&requests).to_bytes(), footprint(&requests).to_bytes()] {
            let mut flipped = good.clone();
            flipped[at.index(good.len())] ^= flip;
            let cut = &good[..at.index(good.len())];
            let mut longer = good.clone();
            longer.extend(&junk);
            let mut candidates = vec![flipped, cut.to_vec(), junk.clone()];
            candidates.extend((!junk.is_empty()).then_some(longer));
            for bytes in candidates {
                prop_assert!(BurstCurve::from_bytes(&bytes).is_err());
                prop_assert!(StoredFootprint::from_bytes(&bytes).is_err());
            }
        }
    }
}

/// Numbers with a valid checksum, most of them small, so that some are a curve's.
fn sealed(mark: &[u8; 4], body: &[u8]) -> Vec<u8> {
    let mut bytes = [&mark[..], body].concat();
    let sum = blake3::hash(&bytes);
    bytes.extend(&sum.as_bytes()[..8]);
    bytes
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 20_000, failure_persistence: None, ..ProptestConfig::default() })]

    /// A checksum does not protect from those who compute it: what is accepted merges, and nothing panics.
    #[test]
    fn invented_curves_with_a_checksum_are_refused_or_merge(
        scalars in (0..3_u8, 0..9_u8, 1..9_u8, 0..3_u8),
        chains in prop::collection::vec(prop::collection::vec((0..5_u8, 0..5_u8), 0..4), 3),
        wild in prop::collection::vec(any::<u8>(), 0..40),
        is_wild in any::<bool>(),
    ) {
        let (first, span, total, count) = scalars;
        let mut body = vec![first, span, total, count];
        for chain in chains {
            body.push(u8::try_from(chain.len()).unwrap());
            body.extend(chain.iter().flat_map(|(x, y)| [*x, *y]));
        }
        let body = if is_wild { wild } else { body };
        if let Ok(curve) = BurstCurve::from_bytes(&sealed(b"tbc1", &body)) {
            let later = BurstCurve::from_arrivals(&[StageArrival { at: Nanos(u64::MAX), work: Work(5) }]).unwrap();
            if let Ok(merged) = curve.merge(&later) {
                prop_assert_eq!(BurstCurve::from_bytes(&merged.to_bytes()).unwrap(), merged);
            }
        }
        let device = [0; 32];
        let footprint = [&device[..], &[1], &[0; 8], &body, &body, &body].concat();
        if let Ok(footprint) = StoredFootprint::from_bytes(&sealed(b"tfp1", &footprint)) {
            prop_assert_eq!(StoredFootprint::from_bytes(&footprint.to_bytes()).unwrap(), footprint);
        }
    }
}

#[test]
fn what_cannot_merge_is_said() {
    let at =
        |at| Request { arrival: Nanos(at), size: Bytes(4096), op: Op::Write, offset: None, response: None };
    let early = footprint(&[at(0), at(9)]);
    let overlap = early.merge(&footprint(&[at(8)])).unwrap_err();
    assert!(matches!(overlap, StoredFootprintError::Burst(BurstError::Overlap { .. })), "{overlap}");
    let other = StoredFootprint::from_requests(&profile(OTHER), [at(20)]).unwrap();
    assert_eq!(early.merge(&other), Err(StoredFootprintError::OtherDevice));
    assert_eq!(early.clone().on(&profile(OTHER)), Err(StoredFootprintError::OtherDevice));
    assert_eq!(early.clone().on(&profile(SSD)).unwrap().curve(Stage::Storage), early.curve(Stage::Storage));
    let none = StoredFootprint::from_requests(&profile(SSD), []);
    assert_eq!(none, Err(StoredFootprintError::Burst(BurstError::Empty)));
}

#[test]
fn a_curve_takes_a_few_hundred_bytes() {
    let at = |k: u64| StageArrival { at: Nanos(k * k % 7919 + k * 10_000), work: Work(4096 + k * k % 977) };
    let curve = BurstCurve::from_arrivals(&(0..20_000).map(at).collect::<Vec<_>>()).unwrap();
    let json = serde_json::to_string(&curve).unwrap();
    assert!(curve.to_bytes().len() * 2 < json.len(), "{} of {}", curve.to_bytes().len(), json.len());
}
