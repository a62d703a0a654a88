//! Storage of waiting requests: nodes in one vector, linked into lists, so that removal from the middle costs
//! O(1).

use super::limiter::TakenTokens;
use super::rules::DeviceOperation;

/// Handle of a waiting request until it is dispatched or withdrawn. Handles are reused.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct WaitingRequest(u32);

#[derive(Debug, Clone, Copy)]
pub(super) struct QueuedRequest {
    pub(super) id: u32,
    pub(super) flow: u32,
    pub(super) operation: DeviceOperation,
    pub(super) cost: u64,
    /// True if the cost is an estimate.
    pub(super) is_estimate: bool,
    pub(super) bytes: u64,
    pub(super) arrived: u64,
    /// Sequence number among all arrivals.
    pub(super) number: u64,
    /// Instant from which it may be served at its level: its arrival, or when it conformed to the limits.
    pub(super) since: u64,
    /// Record of the limiter that let it pass.
    pub(super) taken: Option<TakenTokens>,
    /// True once the buckets lacked tokens for it while it was the next to pass.
    pub(super) has_lacked_tokens: bool,
}

#[derive(Debug, Clone, Copy)]
struct RequestNode {
    /// None while the node is free.
    request: Option<QueuedRequest>,
    previous: Option<WaitingRequest>,
    /// Next node of the list, or of the free list.
    next: Option<WaitingRequest>,
}

/// All waiting requests. Free nodes are reused, so memory grows only with the peak number of waiting
/// requests.
#[derive(Debug, Clone, Default)]
pub(super) struct WaitingSlab {
    nodes: Vec<RequestNode>,
    free: Option<WaitingRequest>,
    used: usize,
}

impl WaitingSlab {
    /// Adds a request that is in no list yet.
    #[inline]
    pub(super) fn insert(&mut self, request: QueuedRequest) -> WaitingRequest {
        self.used += 1;
        let node = RequestNode { request: Some(request), previous: None, next: None };
        if let Some(free) = self.free {
            let place = &mut self.nodes[free.0 as usize];
            self.free = place.next;
            *place = node;
            return free;
        }
        let index = u32::try_from(self.nodes.len()).expect("fewer than 2³² requests wait");
        self.nodes.push(node);
        WaitingRequest(index)
    }

    /// Removes a request that is no longer in any list.
    #[inline]
    pub(super) fn remove(&mut self, waiting: WaitingRequest) {
        self.used -= 1;
        let free = self.free.replace(waiting);
        self.nodes[waiting.0 as usize] = RequestNode { request: None, previous: None, next: free };
    }

    /// Returns the request with this handle.
    ///
    /// # Panics
    /// When no request waits under it.
    #[inline]
    pub(super) fn get(&self, waiting: WaitingRequest) -> &QueuedRequest {
        self.nodes[waiting.0 as usize].request.as_ref().expect("the request waits")
    }

    #[inline]
    pub(super) fn get_mut(&mut self, waiting: WaitingRequest) -> &mut QueuedRequest {
        self.nodes[waiting.0 as usize].request.as_mut().expect("the request waits")
    }

    /// Returns the number of requests.
    pub(super) fn len(&self) -> usize {
        self.used
    }

    #[inline]
    pub(super) fn next(&self, waiting: WaitingRequest) -> Option<WaitingRequest> {
        self.nodes[waiting.0 as usize].next
    }

    #[inline]
    fn node(&mut self, waiting: WaitingRequest) -> &mut RequestNode {
        &mut self.nodes[waiting.0 as usize]
    }

    /// Checks the list of free nodes.
    ///
    /// # Panics
    /// When it is inconsistent.
    pub(super) fn check_free(&self) {
        let free = std::iter::successors(self.free, |free| self.next(*free)).take(self.nodes.len() + 1);
        let count = free
            .inspect(|free| assert!(self.nodes[free.0 as usize].request.is_none(), "a free node is in use"));
        assert_eq!(count.count() + self.used, self.nodes.len(), "every node is free or in use");
    }
}

/// A linked list of waiting requests in order.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct WaitingList {
    pub(super) first: Option<WaitingRequest>,
    last: Option<WaitingRequest>,
    pub(super) len: usize,
}

impl WaitingList {
    /// Appends a request that is in no list.
    #[inline]
    pub(super) fn push(&mut self, slab: &mut WaitingSlab, waiting: WaitingRequest) {
        let previous = self.last.replace(waiting);
        match previous {
            Some(previous) => slab.node(previous).next = Some(waiting),
            None => self.first = Some(waiting),
        }
        let node = slab.node(waiting);
        (node.previous, node.next) = (previous, None);
        self.len += 1;
    }

    /// Unlinks a request of this list.
    #[inline]
    pub(super) fn unlink(&mut self, slab: &mut WaitingSlab, waiting: WaitingRequest) {
        let &mut RequestNode { previous, next, .. } = slab.node(waiting);
        match previous {
            Some(previous) => slab.node(previous).next = next,
            None => self.first = next,
        }
        match next {
            Some(next) => slab.node(next).previous = previous,
            None => self.last = previous,
        }
        self.len -= 1;
    }

    /// Returns the requests from the first to the last.
    pub(super) fn iter<'a>(&self, slab: &'a WaitingSlab) -> impl Iterator<Item = WaitingRequest> + use<'a> {
        std::iter::successors(self.first, |waiting| slab.next(*waiting))
    }

    /// Checks the links in both directions.
    ///
    /// # Panics
    /// When they are inconsistent.
    pub(super) fn check(&self, slab: &WaitingSlab) {
        let mut previous = None;
        let mut count = 0;
        for waiting in self.iter(slab) {
            assert_eq!(slab.nodes[waiting.0 as usize].previous, previous, "links go both ways");
            previous = Some(waiting);
            count += 1;
            assert!(count <= self.len, "the list has as many requests as it counts");
        }
        assert_eq!((previous, count), (self.last, self.len), "the list ends where it says");
    }
}
