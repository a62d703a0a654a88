//! Cost of requests: the device time by the profile, as the planner computes it.
//!
//! A request is charged for its requested work when it enters the queue, and for its served work when its
//! reply arrives. A refused read then costs as much as a control request, or as the bytes returned. A read
//! whose size only the reply shows (memcached) is assumed to be as large as the latest ones. A write costs
//! its requested work in any case: an error does not prove that nothing was written.

use model::{Op, Request};
use units::{Bytes, Nanos};
use wire::RequestClass;
use workload::device::{StorageProfile, StorageWork};

/// Size of the read that a control request is charged as: the smallest that file systems issue.
pub(super) const CONTROL_REQUEST_SIZE: Bytes = Bytes(4096);

/// Cost of a flow's requests. It may depend on earlier ones: a disk seeks between distant offsets.
#[derive(Debug)]
pub(super) struct RequestCost {
    work: StorageWork,
    /// Running mean of reply sizes of requests without a size.
    usual_reply: u64,
}

impl RequestCost {
    pub(super) fn new(profile: &StorageProfile) -> Self {
        Self { work: profile.work_model(), usual_reply: CONTROL_REQUEST_SIZE.0 }
    }

    /// Returns the device time of the next request in nanoseconds, rounded up, at least 1.
    pub(super) fn next_ns(&mut self, class: RequestClass, offset: Option<u64>) -> u64 {
        let (op, size) = match class {
            RequestClass::Write(size) => (Op::Write, size),
            RequestClass::Read(Bytes(0)) => (Op::Read, Bytes(self.usual_reply)),
            RequestClass::Read(size) => (Op::Read, size),
            RequestClass::Control => (Op::Read, CONTROL_REQUEST_SIZE),
        };
        self.size_ns(op, size, offset)
    }

    /// Learns the reply size of a request without a size.
    pub(super) fn learn_reply(&mut self, bytes: u64) {
        self.usual_reply = ((self.usual_reply * 7 + bytes) / 8).max(1);
    }

    fn size_ns(&mut self, op: Op, size: Bytes, offset: Option<u64>) -> u64 {
        let size = if size.0 == 0 { CONTROL_REQUEST_SIZE } else { size };
        let request = Request { arrival: Nanos::ZERO, size, op, offset, response: None };
        #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "the cast saturates")]
        let ns = self.work.work(&request).base_units().ceil() as u64;
        ns.max(1)
    }
}

/// Cost of requests regardless of position, to correct charges.
#[derive(Debug)]
pub(super) struct ServedCost {
    cost: RequestCost,
    control_ns: u64,
}

/// Work shown by a reply.
#[derive(Debug, Clone, Copy)]
pub(super) struct ServedReply {
    /// Size of the reply, bytes.
    pub(super) bytes: u64,
    /// The server refused the request.
    pub(super) is_error: bool,
}

impl ServedCost {
    pub(super) fn new(profile: &StorageProfile) -> Self {
        Self { cost: RequestCost::new(profile), control_ns: control_request_ns(profile) }
    }

    /// Returns the device time of a request's served work, nanoseconds; `charged` was the charge for its
    /// requested work.
    pub(super) fn served_ns(&mut self, class: RequestClass, charged: u64, reply: ServedReply) -> u64 {
        let ServedReply { bytes, is_error } = reply;
        if is_error && !matches!(class, RequestClass::Write(_)) {
            // Data before the error was served: a compound may fail after its reads.
            let moved = self.cost.size_ns(Op::Read, Bytes(bytes), None);
            return charged.min(moved.max(self.control_ns));
        }
        match class {
            RequestClass::Read(asked) if asked.0 == 0 => self.cost.size_ns(Op::Read, Bytes(bytes), None),
            RequestClass::Read(asked) if bytes < asked.0 => {
                // Refund the difference of the two sizes; the seek stays charged.
                let whole = self.cost.size_ns(Op::Read, asked, None);
                let part = self.cost.size_ns(Op::Read, Bytes(bytes), None);
                charged.saturating_sub(whole.saturating_sub(part)).max(1)
            }
            RequestClass::Control if bytes > CONTROL_REQUEST_SIZE.0 => {
                charged.max(self.cost.size_ns(Op::Read, Bytes(bytes), None))
            }
            RequestClass::Read(_) | RequestClass::Write(_) | RequestClass::Control => charged,
        }
    }
}

/// Returns the device time of a control request, nanoseconds.
pub(super) fn control_request_ns(profile: &StorageProfile) -> u64 {
    RequestCost::new(profile).next_ns(RequestClass::Control, None)
}

/// Returns the maximum device time of a read or write of `size` bytes, nanoseconds.
pub(super) fn largest_cost_ns(profile: &StorageProfile, size: Bytes) -> u64 {
    let costs = [RequestClass::Read(size), RequestClass::Write(size)]
        .map(|class| RequestCost::new(profile).next_ns(class, None));
    costs[0].max(costs[1])
}

#[cfg(test)]
mod tests {
    use super::*;
    use units::ByteRate;
    use workload::device::{BandwidthRow, DeviceModel, SsdTable};

    #[test]
    fn what_was_not_served_is_not_charged() {
        // A gigabyte a second: a nanosecond a byte.
        let rate = ByteRate::from_bytes_per_sec(1e9).expect("a rate");
        let row = BandwidthRow { request: Bytes(4096), read: rate, write: rate };
        let device = DeviceModel::Ssd(SsdTable::new(vec![row]).expect("one row ascends"));
        let mut cost = ServedCost::new(&StorageProfile::new("ssd", device));
        let reply = |bytes, is_error| ServedReply { bytes, is_error };
        let control = cost.control_ns;
        let whole = cost.cost.size_ns(Op::Read, Bytes(1 << 20), None);
        let read = RequestClass::Read(Bytes(1 << 20));
        assert_eq!(cost.served_ns(read, 1 << 20, reply((1 << 20) + 100, false)), 1 << 20);
        assert_eq!(cost.served_ns(read, 1 << 20, reply(40, true)), control);
        let part = cost.cost.size_ns(Op::Read, Bytes(8192), None);
        assert_eq!(cost.served_ns(read, whole, reply(8192, false)), part);
        let unknown = RequestClass::Read(Bytes(0));
        assert_eq!(cost.served_ns(unknown, 4096, reply(1 << 20, false)), whole);
        // A control request that moves data is charged for them.
        let moved = cost.cost.size_ns(Op::Read, Bytes(65536), None);
        assert_eq!(cost.served_ns(RequestClass::Control, 4096, reply(65536, false)), moved);
        assert_eq!(cost.served_ns(RequestClass::Control, 4096, reply(20, false)), 4096);
    }
}
