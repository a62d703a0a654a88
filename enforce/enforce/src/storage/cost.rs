//! Cost of requests: the device time by the profile, as the planner computes it.
//!
//! A request is charged for its requested work when it enters the queue, and for its served work when its
//! reply arrives. A refused read then costs as much as a control request, or as the bytes returned. A read
//! whose size only the reply shows (memcached) is assumed to be as large as the latest ones. A write costs
//! its requested work in any case: an error does not prove that nothing was written.
//!
//! A request that looks up several keys costs more than its bytes show, whether or not they are there. Each
//! key beyond the first adds the profile's time for a key, or as much as a control request if the profile
//! has none. A read without a size is never charged as smaller than the smallest that the profile knows.
//! A request that is no read and has a larger reply than a control request is charged at least for a read of its reply.

use model::{Op, Request};
use units::{Bytes, Nanos};
use wire::RequestClass;
use workload::device::{DeviceModel, StorageProfile, StorageWork};

/// Size of the read that a control request is charged as: the smallest that file systems issue.
pub(super) const CONTROL_REQUEST_SIZE: Bytes = Bytes(4096);

/// Work that a request's head shows.
#[derive(Debug, Clone, Copy)]
pub(super) struct RequestedWork {
    pub(super) class: RequestClass,
    /// Number of keys to look up, at least 1.
    pub(super) keys: u32,
    pub(super) offset: Option<u64>,
}

/// Cost of a flow's requests. It may depend on earlier ones: a disk seeks between distant offsets.
#[derive(Debug)]
pub(super) struct RequestCost {
    work: StorageWork,
    /// Running mean of reply sizes, for each key, of requests without a size.
    usual_reply: u64,
    /// Size that a request without a size has at least.
    smallest: u64,
    /// Device time of a key beyond the first, nanoseconds.
    key_ns: u64,
}

impl RequestCost {
    pub(super) fn new(profile: &StorageProfile) -> Self {
        let smallest = match profile.device() {
            DeviceModel::Ssd(table) => table.rows()[0].request.0.min(CONTROL_REQUEST_SIZE.0),
            DeviceModel::Disk(_) => CONTROL_REQUEST_SIZE.0,
        };
        let usual_reply = CONTROL_REQUEST_SIZE.0;
        let mut cost = Self { work: profile.work_model(), usual_reply, smallest, key_ns: 0 };
        let control_ns = cost.size_ns(Op::Read, CONTROL_REQUEST_SIZE, None);
        cost.key_ns = profile.operation().map_or(control_ns, |operation| operation.key.0);
        // The model has seen a request that did not take place.
        cost.work = profile.work_model();
        cost
    }

    /// Returns the device time of the next request in nanoseconds, rounded up, at least 1.
    pub(super) fn next_ns(&mut self, requested: RequestedWork) -> u64 {
        let RequestedWork { class, keys, offset } = requested;
        let (op, size) = match class {
            RequestClass::Write(size) => (Op::Write, size),
            RequestClass::Read(Bytes(0)) => (Op::Read, self.unknown_size(self.usual_reply * u64::from(keys))),
            RequestClass::Read(size) => (Op::Read, size),
            RequestClass::Control => (Op::Read, CONTROL_REQUEST_SIZE),
        };
        self.size_ns(op, size, offset) + self.keys_ns(keys)
    }

    /// Returns the device time of all keys but the first, nanoseconds.
    fn keys_ns(&self, keys: u32) -> u64 {
        u64::from(keys.max(1) - 1) * self.key_ns
    }

    /// Returns the size that a request with this reply is charged as.
    fn unknown_size(&self, reply: u64) -> Bytes {
        Bytes(reply.max(self.smallest))
    }

    /// Returns the expected length of the reply to a request without a size, bytes.
    pub(super) fn reply_expected(&self, keys: u32) -> u64 {
        self.usual_reply * u64::from(keys)
    }

    /// Learns the reply size of a request without a size.
    pub(super) fn learn_reply(&mut self, bytes: u64, keys: u32) {
        self.usual_reply = ((self.usual_reply * 7 + bytes / u64::from(keys.max(1))) / 8).max(1);
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
    pub(super) fn served_ns(&mut self, requested: RequestedWork, charged: u64, reply: ServedReply) -> u64 {
        let ServedReply { bytes, is_error } = reply;
        let RequestedWork { class, keys, .. } = requested;
        let keys_ns = self.cost.keys_ns(keys);
        if is_error && !matches!(class, RequestClass::Write(_)) {
            // Data before the error was served: a compound may fail after its reads.
            let moved = self.cost.size_ns(Op::Read, Bytes(bytes), None);
            return charged.min(moved.max(self.control_ns) + keys_ns);
        }
        match class {
            RequestClass::Read(asked) if asked.0 == 0 => {
                let size = self.cost.unknown_size(bytes);
                self.cost.size_ns(Op::Read, size, None) + keys_ns
            }
            RequestClass::Read(asked) if bytes < asked.0 => {
                // Refund the difference of the two sizes; the seek stays charged.
                let whole = self.cost.size_ns(Op::Read, asked, None);
                let part = self.cost.size_ns(Op::Read, Bytes(bytes), None);
                charged.saturating_sub(whole.saturating_sub(part)).max(1)
            }
            // A command of RESP may write and return much at once.
            RequestClass::Control | RequestClass::Write(_) if bytes > CONTROL_REQUEST_SIZE.0 => {
                charged.max(self.cost.size_ns(Op::Read, Bytes(bytes), None) + keys_ns)
            }
            RequestClass::Read(_) | RequestClass::Write(_) | RequestClass::Control => charged,
        }
    }
}

/// Returns the device time of a control request, nanoseconds.
pub(super) fn control_request_ns(profile: &StorageProfile) -> u64 {
    next_alone_ns(profile, RequestClass::Control)
}

/// Returns the maximum device time of a read or write of `size` bytes, nanoseconds.
pub(super) fn largest_cost_ns(profile: &StorageProfile, size: Bytes) -> u64 {
    let costs =
        [RequestClass::Read(size), RequestClass::Write(size)].map(|class| next_alone_ns(profile, class));
    costs[0].max(costs[1])
}

fn next_alone_ns(profile: &StorageProfile, class: RequestClass) -> u64 {
    RequestCost::new(profile).next_ns(RequestedWork { class, keys: 1, offset: None })
}

#[cfg(test)]
mod tests {
    use super::*;
    use units::ByteRate;
    use workload::device::{BandwidthRow, OperationCost, SsdTable};

    /// A gigabyte a second: a nanosecond a byte.
    fn profile() -> StorageProfile {
        let rate = ByteRate::from_bytes_per_sec(1e9).expect("a rate");
        let row = BandwidthRow { request: Bytes(512), read: rate, write: rate };
        let device = DeviceModel::Ssd(SsdTable::new(vec![row]).expect("one row ascends"));
        StorageProfile::new("ssd", device)
    }

    fn asked(class: RequestClass, keys: u32) -> RequestedWork {
        RequestedWork { class, keys, offset: None }
    }

    fn reply(bytes: u64, is_error: bool) -> ServedReply {
        ServedReply { bytes, is_error }
    }

    #[test]
    fn what_was_not_served_is_not_charged() {
        let mut cost = ServedCost::new(&profile());
        let control = cost.control_ns;
        let whole = cost.cost.size_ns(Op::Read, Bytes(1 << 20), None);
        let read = asked(RequestClass::Read(Bytes(1 << 20)), 1);
        assert_eq!(cost.served_ns(read, 1 << 20, reply((1 << 20) + 100, false)), 1 << 20);
        assert_eq!(cost.served_ns(read, 1 << 20, reply(40, true)), control);
        let part = cost.cost.size_ns(Op::Read, Bytes(8192), None);
        assert_eq!(cost.served_ns(read, whole, reply(8192, false)), part);
        let unknown = asked(RequestClass::Read(Bytes(0)), 1);
        assert_eq!(cost.served_ns(unknown, 4096, reply(1 << 20, false)), whole);
        // A control request that moves data is charged for them.
        let moved = cost.cost.size_ns(Op::Read, Bytes(65536), None);
        let control = asked(RequestClass::Control, 1);
        assert_eq!(cost.served_ns(control, 4096, reply(65536, false)), moved);
        assert_eq!(cost.served_ns(control, 4096, reply(20, false)), 4096);
        // So is a write that returns more than it brings; a larger write covers its reply.
        let write = asked(RequestClass::Write(Bytes(10)), 1);
        assert_eq!(cost.served_ns(write, 4096, reply(65536, false)), moved);
        assert_eq!(cost.served_ns(write, 1 << 20, reply(65536, false)), 1 << 20);
        assert_eq!(cost.served_ns(write, 4096, reply(20, false)), 4096);
    }

    /// Keys that are not there move nothing.
    #[test]
    fn keys_are_charged_whether_or_not_they_are_there() {
        let missed = reply(5, false);
        let get = |keys| asked(RequestClass::Read(Bytes(0)), keys);
        // Each part of a charge is rounded up to a nanosecond.
        let is = |charged: u64, expected: u64| {
            assert!((expected..=expected + 64).contains(&charged), "{charged} instead of {expected}");
        };
        // Without a measured time, a key costs as much as the smallest read of file systems.
        let mut unmeasured = ServedCost::new(&profile());
        is(unmeasured.served_ns(get(1), 9999, missed), 512);
        is(unmeasured.served_ns(get(64), 9999, missed), 512 + 63 * 4096);
        is(RequestCost::new(&profile()).next_ns(get(64)), 64 * 4096 + 63 * 4096);
        let operation = OperationCost { request: Nanos(3000), key: Nanos(200) };
        let mut measured = ServedCost::new(&profile().with_operation(operation));
        is(measured.served_ns(get(1), 9999, missed), 3000);
        is(measured.served_ns(get(64), 9999, missed), 3000 + 63 * 200);
        is(measured.served_ns(get(2), 9999, reply(1 << 20, false)), (1 << 20) + 200);
        // A list that is refused was looked up until then.
        is(measured.served_ns(get(64), 99_999, reply(40, true)), 4096 + 63 * 200);
    }

    #[test]
    fn replies_are_learnt_by_key() {
        let mut cost = RequestCost::new(&profile());
        (0..100).for_each(|_| cost.learn_reply(64_000, 64));
        let one = cost.next_ns(asked(RequestClass::Read(Bytes(0)), 1));
        assert!((990..=1010).contains(&one), "about a thousand bytes: {one}");
    }
}
