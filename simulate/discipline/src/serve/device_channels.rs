//! The channels of a device behind an enforcer: which are idle, and what the others serve.

use super::{Assignment, UNTIL_DONE};
use crate::bit_set::BitSet;
use crate::enforce::DispatchedRequest;

/// The channels of a device, one per worker.
#[derive(Debug, Clone)]
pub(super) struct DeviceChannels {
    in_service: Vec<Option<DispatchedRequest>>,
    idle: BitSet,
}

impl DeviceChannels {
    /// So many idle channels.
    ///
    /// # Panics
    /// When there are none.
    pub(super) fn new(workers: u32) -> Self {
        assert!(workers > 0, "at least one worker");
        let workers = workers as usize;
        Self { in_service: vec![None; workers], idle: BitSet::full(workers) }
    }

    /// How many there are, idle or not.
    pub(super) fn len(&self) -> usize {
        self.in_service.len()
    }

    /// The lowest idle channel.
    #[inline]
    pub(super) fn first_idle(&self) -> Option<usize> {
        self.idle.first()
    }

    /// Has the idle channel serve the request until it is done.
    #[inline]
    pub(super) fn begin(&mut self, worker: usize, dispatch: DispatchedRequest) -> Assignment {
        self.idle.remove(worker);
        let item = dispatch.id;
        self.in_service[worker] = Some(dispatch);
        #[expect(clippy::cast_possible_truncation, reason = "workers were counted by a u32")]
        Assignment { worker: worker as u32, item, slice: UNTIL_DONE }
    }

    /// The channel is idle again; what it served.
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
