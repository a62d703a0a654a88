//! Slicing, merging and scaling against their definitions.

mod common;

use common::requests;
use model::Request;
use proptest::prelude::*;
use std::convert::Infallible;
use trace::{SliceOrigin, merge, scale_time, slice};
use units::Nanos;

type Item = Result<Request, Infallible>;

fn stream(requests: &[Request]) -> impl Iterator<Item = Item> + '_ {
    requests.iter().copied().map(Ok)
}

fn collect(requests: impl Iterator<Item = Item>) -> Vec<Request> {
    requests.map(|Ok(request)| request).collect()
}

proptest! {
    #[test]
    fn merging_is_sorted_and_keeps_every_request(parts in proptest::collection::vec(requests(0..30), 0..6)) {
        let merged = collect(merge(parts.iter().map(|part| stream(part)).collect()));
        prop_assert!(merged.is_sorted_by_key(|request| request.arrival));
        // A stable sort of the parts in order is the definition, ties included.
        let mut expected = parts.concat();
        expected.sort_by_key(|request| request.arrival);
        prop_assert_eq!(merged, expected);
    }

    #[test]
    fn slices_partition_a_trace(requests in requests(1..60), at in 0u64..20_000_000) {
        let head = collect(slice(stream(&requests), Nanos::ZERO, Some(Nanos(at)), SliceOrigin::Keep));
        let tail = collect(slice(stream(&requests), Nanos(at), None, SliceOrigin::Keep));
        let first = requests[0].arrival.0;
        prop_assert!(head.iter().all(|request| request.arrival.0 - first < at));
        prop_assert!(tail.iter().all(|request| request.arrival.0 - first >= at));
        let rebased = collect(slice(stream(&requests), Nanos(at), None, SliceOrigin::Rebase));
        let shifted = tail.iter().map(|r| Request { arrival: Nanos(r.arrival.0 - first - at), ..*r });
        prop_assert_eq!(rebased, shifted.collect::<Vec<_>>());
        prop_assert_eq!([head, tail].concat(), requests);
    }

    #[test]
    fn scaling_keeps_order_and_first_arrival(requests in requests(1..60), factor in 0.01..100.0) {
        let scaled = collect(scale_time(stream(&requests), factor));
        prop_assert!(scaled.is_sorted_by_key(|request| request.arrival));
        prop_assert_eq!(scaled[0].arrival, requests[0].arrival);
        let span = |r: &[Request]| (r[r.len() - 1].arrival - r[0].arrival).0 as f64;
        prop_assert!((span(&scaled) - factor * span(&requests)).abs() <= 1.0 + 1e-12 * span(&scaled));
    }
}

#[test]
fn an_error_passes_through_a_merge() {
    let good = Request {
        arrival: Nanos(3),
        size: units::Bytes(1),
        op: model::Op::Read,
        offset: None,
        response: None,
    };
    let inputs = vec![vec![Ok(good), Err("broken")].into_iter(), vec![Ok(good)].into_iter()];
    let merged: Vec<Result<Request, &str>> = merge(inputs).collect();
    assert_eq!(merged, [Ok(good), Err("broken"), Ok(good)]);
}
