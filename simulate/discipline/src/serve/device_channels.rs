//! Channels of a device behind an enforcer, and the requests in service.

use super::{Assignment, UNTIL_DONE};
use crate::bit_set::BitSet;
use crate::enforce::DispatchedRequest;

/// Channels of a device, one per worker.
#[derive(Debug, Clone)]
pub(super) struct DeviceChannels {
    in_service: Vec<Option<DispatchedRequest>>,
    idle: BitSet,
}

impl DeviceChannels {
    /// Creates idle channels.
    ///
    /// # Panics
    /// When `workers` is 0.
    pub(super) fn new(workers: u32) -> Self {
        assert!(workers > 0, "at least one worker");
        let workers = workers as usize;
        Self { in_service: vec![None; workers], idle: BitSet::full(workers) }
    }

    /// Returns the number of channels, idle or not.
    pub(super) fn len(&self) -> usize {
        self.in_service.len()
    }

    /// Returns the lowest idle channel.
    #[inline]
    pub(super) fn first_idle(&self) -> Option<usize> {
        self.idle.first()
    }

    /// Starts service of a request on an idle channel.
    #[inline]
    pub(super) fn begin(&mut self, worker: usize, dispatch: DispatchedRequest) -> Assignment {
        self.idle.remove(worker);
        let item = dispatch.id;
        self.in_service[worker] = Some(dispatch);
        #[expect(clippy::cast_possible_truncation, reason = "workers were counted by a u32")]
        Assignment { worker: worker as u32, item, slice: UNTIL_DONE }
    }

    /// Makes a channel idle again and returns the request that it served.
    pub(super) fn end(&mut self, worker: u32) -> Option<DispatchedRequest> {
        self.give(worker);
        self.in_service[worker as usize].take()
    }

    /// Makes a channel unavailable.
    pub(super) fn take(&mut self, worker: u32) {
        self.idle.remove(worker as usize);
    }

    /// Makes a channel available that serves nothing.
    pub(super) fn give(&mut self, worker: u32) {
        self.idle.insert(worker as usize);
    }
}
