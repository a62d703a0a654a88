//! Requests of workers that serve in the order of arrival.

use super::attribution::AttributedRequest;
use super::cause::{CAUSES, Cause};

/// A request that a worker begins with when it is done with those before, with work and the time of another process.
pub(super) fn request(worker: u32, ready: u64, free: u64, work: u64, other: u64) -> AttributedRequest {
    let start = free.max(ready);
    let mut own = [0; CAUSES];
    own[Cause::Work as usize] = work;
    own[Cause::OtherProcess as usize] = other;
    let mut queued = [0; CAUSES];
    queued[Cause::AllBusy as usize] = start - ready;
    AttributedRequest {
        ready,
        start,
        begun: start,
        done: start + work + other,
        worker,
        process: 1,
        peer: ([127, 0, 0, 1], 1).into(),
        read: start + other,
        own,
        own_after_read: {
            let mut after = [0; CAUSES];
            after[Cause::Work as usize] = work;
            after
        },
        held_up: crate::request::HeldUpTime { reading: other, ..Default::default() },
        queued,
        interferers: Vec::new(),
    }
}

/// First come, first served by one worker: (arrival, work, other process).
pub(super) fn served(jobs: &[(u64, u64, u64)], worker: u32) -> Vec<AttributedRequest> {
    let mut free = 0;
    let serve = |&(ready, work, other): &(u64, u64, u64)| {
        let request = request(worker, ready, free, work, other);
        free = request.done;
        request
    };
    jobs.iter().map(serve).collect()
}
