//! Where waiting requests are kept: nodes in one vector, linked into lists, so that any of them can be taken out at once.

use super::limiter::TakenTokens;
use super::rules::DeviceOperation;

/// The name of a waiting request, which it keeps until it is dispatched or withdrawn. Later another one may get it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct WaitingRequest(u32);

/// A request that waits.
#[derive(Debug, Clone, Copy)]
pub(super) struct QueuedRequest {
    pub(super) id: u32,
    pub(super) flow: u32,
    pub(super) operation: DeviceOperation,
    pub(super) cost: u64,
    /// Whether the cost is a guess.
    pub(super) is_estimate: bool,
    pub(super) bytes: u64,
    pub(super) arrived: u64,
    /// The position among all arrivals.
    pub(super) number: u64,
    /// Since when it may be served at its level: its arrival, or when it came within the limits.
    pub(super) since: u64,
    /// What it took from a limiter that let it pass.
    pub(super) taken: Option<TakenTokens>,
}

#[derive(Debug, Clone, Copy)]
struct RequestNode {
    /// None while the node is free.
    request: Option<QueuedRequest>,
    previous: Option<WaitingRequest>,
    /// The next one in its list, or the next free node.
    next: Option<WaitingRequest>,
}

/// All waiting requests. A node that is left is used again, so that memory grows only with the most that ever waited.
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

    /// Removes a request that is in no list any more.
    #[inline]
    pub(super) fn remove(&mut self, waiting: WaitingRequest) {
        self.used -= 1;
        let free = self.free.replace(waiting);
        self.nodes[waiting.0 as usize] = RequestNode { request: None, previous: None, next: free };
    }

    /// The request of this name.
    ///
    /// # Panics
    /// When none waits that has it.
    #[inline]
    pub(super) fn get(&self, waiting: WaitingRequest) -> &QueuedRequest {
        self.nodes[waiting.0 as usize].request.as_ref().expect("the request waits")
    }

    #[inline]
    pub(super) fn get_mut(&mut self, waiting: WaitingRequest) -> &mut QueuedRequest {
        self.nodes[waiting.0 as usize].request.as_mut().expect("the request waits")
    }

    /// The number of requests.
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

/// A list of waiting requests in their order.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct WaitingList {
    pub(super) first: Option<WaitingRequest>,
    last: Option<WaitingRequest>,
    pub(super) len: usize,
}

impl WaitingList {
    /// Adds a request that is in no list at the end.
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

    /// Takes a request of this list out of it.
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

    /// The requests from the first to the last.
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
