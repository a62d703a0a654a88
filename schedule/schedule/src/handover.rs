//! Pool of a gate, shared by threads: a lock around its transitions, and their effects on threads.
//!
//! There is no dispatcher: the thread that causes a transition carries out its actions. Levels of threads are
//! changed under the lock, so that none changes after its request has left. Threads are woken after the lock
//! is released.

use crate::entry_cell::{EntryCell, LevelChange};
use crate::sync::{Arc, Mutex, MutexGuard, PoisonError};
use discipline::RequestKey;
use discipline::pool::{PoolAction, PoolCounts, PoolPlace, PoolRules, PooledRequest, RequestPool};
use std::collections::BTreeSet;
use std::num::NonZeroU32;

/// Totals since the gate was created.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct HandoverTotals {
    pub(crate) entered: u64,
    pub(crate) left: u64,
    pub(crate) given_up: u64,
    pub(crate) demotions: u64,
    pub(crate) promotions: u64,
    pub(crate) refused_changes: u64,
    pub(crate) looks: u64,
}

/// Result of entering a request.
#[derive(Debug, Clone, Copy)]
pub(crate) struct HandoverEntry {
    pub(crate) request: PooledRequest,
    /// A request waits or is demoted, so the gate's timer has to run.
    pub(crate) needs_time: bool,
}

/// A pool, and the threads of its requests.
#[derive(Debug)]
pub(crate) struct Handover<K> {
    shared: Mutex<HandoverState>,
    kernel: K,
}

#[derive(Debug)]
struct HandoverState {
    pool: RequestPool,
    /// Cell of each request, by its index.
    cells: Vec<Option<Arc<EntryCell>>>,
    /// Empty between transitions; kept to reuse the allocation.
    actions: Vec<PoolAction>,
    totals: HandoverTotals,
}

/// Cells of threads to wake once the lock is released.
#[derive(Debug, Default)]
struct WakeList {
    /// Most transitions admit at most one request, which needs no allocation.
    first: Option<Arc<EntryCell>>,
    others: Vec<Arc<EntryCell>>,
}

impl WakeList {
    fn push(&mut self, cell: Arc<EntryCell>) {
        match self.first {
            None => self.first = Some(cell),
            Some(_) => self.others.push(cell),
        }
    }

    fn wake(self) {
        self.first.iter().chain(&self.others).for_each(|cell| cell.wake());
    }
}

impl<K: LevelChange> Handover<K> {
    pub(crate) fn new(rules: PoolRules, kernel: K) -> Self {
        let state = HandoverState {
            pool: RequestPool::new(rules),
            cells: Vec::new(),
            actions: Vec::new(),
            totals: HandoverTotals::default(),
        };
        Self { shared: Mutex::new(state), kernel }
    }

    pub(crate) fn kernel(&self) -> &K {
        &self.kernel
    }

    /// Adds a request of the calling thread, whose cell has begun. It may run once the cell is admitted.
    pub(crate) fn enter(&self, now: u64, key: RequestKey, cell: &Arc<EntryCell>) -> HandoverEntry {
        let mut state = self.lock();
        let HandoverState { pool, cells, actions, totals } = &mut *state;
        let request = pool.enter(now, key, actions);
        if cells.len() <= request.index() {
            cells.resize(request.index() + 1, None);
        }
        cells[request.index()] = Some(Arc::clone(cell));
        totals.entered += 1;
        let needs_time = pool.is_contended();
        self.carry_out(state, Some(cell));
        HandoverEntry { request, needs_time }
    }

    /// Gives up waiting. Returns false if the request was admitted meanwhile; it then stays in the pool.
    pub(crate) fn give_up(&self, now: u64, request: PooledRequest, cell: &EntryCell) -> bool {
        let mut state = self.lock();
        if cell.is_admitted() {
            return false;
        }
        cell.end();
        state.totals.given_up += 1;
        self.remove(now, request, state);
        true
    }

    /// Removes an admitted request of the calling thread. Returns false if it has left before.
    pub(crate) fn leave(&self, now: u64, request: PooledRequest, cell: &EntryCell) -> bool {
        if !cell.end() {
            return false;
        }
        let own = cell.fix(&self.kernel);
        let mut state = self.lock();
        state.count_promotion(own);
        let is_present = state.is_present(request, cell);
        if is_present {
            self.remove(now, request, state);
        }
        is_present
    }

    /// Notes that an admitted request of the calling thread waits for something other than a CPU. Does
    /// nothing if it is blocked or has left.
    pub(crate) fn block(&self, now: u64, request: PooledRequest, cell: &EntryCell) {
        let own = cell.fix(&self.kernel);
        let mut state = self.lock();
        state.count_promotion(own);
        let is_present = state.is_present(request, cell);
        let HandoverState { pool, actions, .. } = &mut *state;
        if is_present && pool.place(request) != Some(PoolPlace::Blocked) {
            pool.block(now, request, actions);
        }
        self.carry_out(state, None);
    }

    /// Notes that a blocked request of the calling thread can continue, once its cell is admitted. Does
    /// nothing if it was not blocked or has left. Returns true if the gate's timer has to run, because a
    /// request waits or is demoted.
    pub(crate) fn unblock(&self, now: u64, request: PooledRequest, cell: &EntryCell) -> bool {
        let mut state = self.lock();
        let is_present = state.is_present(request, cell);
        let HandoverState { pool, actions, .. } = &mut *state;
        if is_present && pool.place(request) == Some(PoolPlace::Blocked) {
            cell.begin();
            pool.unblock(now, request, actions);
        }
        let needs_time = pool.is_contended();
        self.carry_out(state, Some(cell));
        needs_time
    }

    pub(crate) fn set_limit(&self, now: u64, limit: Option<NonZeroU32>) {
        let mut state = self.lock();
        let HandoverState { pool, actions, .. } = &mut *state;
        pool.set_limit(now, limit, actions);
        self.carry_out(state, None);
    }

    pub(crate) fn forbid_displacement(&self, now: u64) {
        let mut state = self.lock();
        let HandoverState { pool, actions, .. } = &mut *state;
        pool.forbid_displacement(now, actions);
        self.carry_out(state, None);
    }

    /// Advances the pool's time, and returns the instant of the next call.
    pub(crate) fn wake(&self, now: u64) -> Option<u64> {
        let mut state = self.lock();
        let HandoverState { pool, actions, .. } = &mut *state;
        pool.wake(now, actions);
        let next = pool.wake_at();
        self.carry_out(state, None);
        next
    }

    /// Returns the requests that the sentinel has to sample, with their cells; none if no request waits or is
    /// set aside.
    pub(crate) fn watched(&self) -> Vec<(PooledRequest, Arc<EntryCell>)> {
        let state = self.lock();
        let cell =
            |request: PooledRequest| Some((request, Arc::clone(state.cells[request.index()].as_ref()?)));
        state.pool.watched().filter_map(cell).collect()
    }

    /// Notes which of the sampled requests sleep. Those that have left since are ignored.
    pub(crate) fn look(&self, now: u64, asleep: &[(PooledRequest, Arc<EntryCell>)], workers: NonZeroU32) {
        let mut state = self.lock();
        let present = asleep.iter().filter(|(request, cell)| state.is_present(*request, cell));
        let asleep: BTreeSet<PooledRequest> = present.map(|(request, _)| *request).collect();
        let HandoverState { pool, actions, totals, .. } = &mut *state;
        pool.look(now, &asleep, workers, actions);
        totals.looks += 1;
        self.carry_out(state, None);
    }

    /// Counts a promotion by the thread itself without leaving.
    pub(crate) fn add_own_promotion(&self, is_done: Option<bool>) {
        if is_done.is_some() {
            self.lock().count_promotion(is_done);
        }
    }

    pub(crate) fn counts(&self) -> (PoolCounts, HandoverTotals, PoolRules) {
        let state = self.lock();
        (state.pool.counts(), state.totals, *state.pool.rules())
    }

    fn lock(&self) -> MutexGuard<'_, HandoverState> {
        // A panic under the lock is a bug here, and must not stop the service as well.
        self.shared.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn remove(&self, now: u64, request: PooledRequest, mut state: MutexGuard<'_, HandoverState>) {
        let HandoverState { pool, cells, actions, totals } = &mut *state;
        pool.leave(now, request, actions);
        cells[request.index()] = None;
        totals.left += 1;
        self.carry_out(state, None);
    }

    /// Carries out the pool's actions and releases the lock. `own` is the cell of the calling thread, which
    /// is not woken. That thread may be demoted as soon as the lock is free, so it wakes the others before
    /// releasing it.
    fn carry_out(&self, mut state: MutexGuard<'_, HandoverState>, own: Option<&EntryCell>) {
        let HandoverState { cells, actions, totals, .. } = &mut *state;
        let mut woken = WakeList::default();
        for action in actions.drain(..) {
            match action {
                PoolAction::Admit(request) => {
                    if let Some(cell) = &cells[request.index()] {
                        cell.admit();
                        if !own.is_some_and(|own| std::ptr::eq(own, &**cell)) {
                            woken.push(Arc::clone(cell));
                        }
                    }
                }
                PoolAction::Demote(request) => {
                    let is_done = cells[request.index()].as_ref().and_then(|cell| cell.demote(&self.kernel));
                    totals.demotions += u64::from(is_done == Some(true));
                    totals.refused_changes += u64::from(is_done == Some(false));
                }
                PoolAction::Promote(request) => {
                    let is_done = cells[request.index()].as_ref().and_then(|cell| cell.promote(&self.kernel));
                    totals.promotions += u64::from(is_done == Some(true));
                    totals.refused_changes += u64::from(is_done == Some(false));
                }
            }
        }
        if own.is_some() {
            woken.wake();
        } else {
            drop(state);
            woken.wake();
        }
    }
}

impl HandoverState {
    /// Returns true if the request is that of the cell: a later one may have the same index.
    fn is_present(&self, request: PooledRequest, cell: &EntryCell) -> bool {
        let present = self.cells.get(request.index()).and_then(Option::as_deref);
        present.is_some_and(|present| std::ptr::eq(present, cell))
    }

    fn count_promotion(&mut self, is_done: Option<bool>) {
        self.totals.promotions += u64::from(is_done == Some(true));
        self.totals.refused_changes += u64::from(is_done == Some(false));
    }
}
