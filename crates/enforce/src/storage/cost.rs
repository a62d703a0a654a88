//! What requests cost: the device time that the profile says, as the planner counts it.

use model::{Op, Request};
use units::{Bytes, Nanos};
use workload::device::{StorageProfile, StorageWork};

/// The size of the read that a control request counts as: the smallest that file systems issue.
const CONTROL_REQUEST_SIZE: Bytes = Bytes(4096);

/// The cost of a flow's requests, which may depend on those before: a disk seeks between distant offsets.
#[derive(Debug)]
pub(super) struct RequestCost(StorageWork);

impl RequestCost {
    pub(super) fn new(profile: &StorageProfile) -> Self {
        Self(profile.work_model())
    }

    /// The device time of the next request in nanoseconds, rounded up, at least 1. A size of 0 means a control request.
    pub(super) fn next_ns(&mut self, op: Op, size: Bytes, offset: Option<u64>) -> u64 {
        let size = if size.0 == 0 { CONTROL_REQUEST_SIZE } else { size };
        let request = Request { arrival: Nanos::ZERO, size, op, offset, response: None };
        #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "the cast saturates")]
        let ns = self.0.work(&request).base_units().ceil() as u64;
        ns.max(1)
    }
}

/// The device time of a control request in nanoseconds.
pub(super) fn control_request_ns(profile: &StorageProfile) -> u64 {
    RequestCost::new(profile).next_ns(Op::Read, CONTROL_REQUEST_SIZE, None)
}
