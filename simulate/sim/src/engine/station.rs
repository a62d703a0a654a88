//! A station during a run: the item and start of service on each worker, and the costs of switching.

use super::network::{Interference, NetworkStation, QueueingNetwork};
use super::requests::StepVisit;
use super::timers::{NEVER, Timers};
use discipline::ProcessorSharing;
use discipline::serve::{Assignment, BuiltDiscipline, Discipline as _, NO_ITEM, QueueItem};
use rand::RngExt as _;
use rand::rngs::StdRng;

/// A worker of a station. Times are in nanoseconds.
#[derive(Debug, Clone, Copy)]
struct WorkerState {
    /// The item in service, or [`NO_ITEM`].
    item: u32,
    /// Item that it served last; continuing with it costs no switch.
    last: u32,
    /// Start of service, after the costs of taking the item up.
    begun: u64,
    /// Remaining demand when service began.
    left: u64,
    /// The costs of taking the item up, which a slice does not count.
    cost: u64,
    /// End of the other work on the worker.
    away_until: u64,
    /// True if the discipline knows that the worker is away, and must be notified of its return.
    reported_away: bool,
}

/// A station with its discipline, its workers and their timers.
#[derive(Debug)]
pub(crate) struct StationState {
    discipline: BuiltDiscipline,
    workers: Vec<WorkerState>,
    /// Timer of its first worker.
    first_timer: usize,
    /// Timer for changes by the passage of time alone, if the discipline has any.
    wake_timer: Option<usize>,
    switch: u64,
    dispatch: u64,
    dispatcher_free: u64,
    /// Assignments of the discipline that have not been carried out; empty between events.
    runs: Vec<Assignment>,
    /// The time that workers spent on costs so far, nanoseconds.
    pub(crate) costs: u64,
}

/// The stations of a network before the first arrival. Their timers are in the order of `TimerLayout`.
pub(crate) fn stations_at_rest(network: &QueueingNetwork, random: &mut StdRng) -> Vec<StationState> {
    let mut first_timer = 0;
    let mut wake_timer = network.stations.iter().map(|station| station.workers as usize).sum();
    let mut states = Vec::new();
    for station in network.stations.iter().rev() {
        let wakes = station.discipline.needs_wake_ups();
        let wake = wakes.then_some(wake_timer);
        states.push(StationState::at_rest(station, first_timer, wake, random.random()));
        first_timer += station.workers as usize;
        wake_timer += usize::from(wakes);
    }
    states.reverse();
    states
}

impl StationState {
    fn at_rest(station: &NetworkStation, first_timer: usize, wake_timer: Option<usize>, seed: u64) -> Self {
        let idle = WorkerState {
            item: NO_ITEM,
            last: NO_ITEM,
            begun: 0,
            left: 0,
            cost: 0,
            away_until: 0,
            reported_away: false,
        };
        Self {
            discipline: station.discipline.build(station.workers, seed),
            workers: vec![idle; station.workers as usize],
            first_timer,
            wake_timer,
            switch: station.switch.0,
            dispatch: station.dispatch.0,
            dispatcher_free: 0,
            runs: Vec::new(),
            costs: 0,
        }
    }

    /// An item arrives at the station.
    #[inline]
    pub(crate) fn on_arrival(
        &mut self,
        now: u64,
        item: QueueItem,
        visits: &mut [StepVisit],
        timers: &mut Timers,
    ) {
        match &mut self.discipline {
            BuiltDiscipline::Workers(workers) => {
                workers.arrive(now, item, &mut self.runs);
                self.carry_out(now, visits, timers);
            }
            BuiltDiscipline::Shared(sharing) => {
                sharing.arrive(now, item);
                timers.set(self.first_timer, sharing.next_due().unwrap_or(NEVER));
            }
        }
    }

    /// The timer of a worker rings. Returns its item if that is done; otherwise the slice is over.
    #[inline]
    pub(crate) fn on_worker_timer(
        &mut self,
        now: u64,
        worker: u32,
        visits: &mut [StepVisit],
        timers: &mut Timers,
    ) -> Option<u32> {
        let discipline = match &mut self.discipline {
            BuiltDiscipline::Workers(workers) => workers,
            BuiltDiscipline::Shared(sharing) => {
                return on_sharing_timer(now, sharing, self.first_timer, timers);
            }
        };
        let timer = self.first_timer + worker as usize;
        let state = &mut self.workers[worker as usize];
        let end = state.begun.saturating_add(state.left);
        if now < end {
            // The slice began after the costs; a further slice of the item has none.
            state.cost = 0;
            timers.set(timer, end);
            discipline.expire(now, worker, &mut self.runs);
            self.carry_out(now, visits, timers);
            return None;
        }
        let item = state.item;
        (state.item, state.last) = (NO_ITEM, NO_ITEM);
        timers.set(timer, NEVER);
        discipline.depart(now, worker, &mut self.runs);
        self.carry_out(now, visits, timers);
        Some(item)
    }

    /// Carries out the assignments of the discipline, and sets the timer for its next wake-up.
    #[inline]
    fn carry_out(&mut self, now: u64, visits: &mut [StepVisit], timers: &mut Timers) {
        for index in 0..self.runs.len() {
            let run = self.runs[index];
            self.begin_service(now, run, visits, timers);
        }
        self.runs.clear();
        if let (Some(timer), BuiltDiscipline::Workers(workers)) = (self.wake_timer, &self.discipline) {
            timers.set(timer, workers.wake_at().unwrap_or(NEVER).max(now));
        }
    }

    /// Lets the discipline react to the passage of time alone.
    pub(crate) fn on_wake(&mut self, now: u64, visits: &mut [StepVisit], timers: &mut Timers) {
        if let BuiltDiscipline::Workers(workers) = &mut self.discipline {
            workers.wake(now, &mut self.runs);
            self.carry_out(now, visits, timers);
        }
    }

    /// Puts an item on a worker, or begins another slice of the item that the worker has.
    #[inline]
    fn begin_service(&mut self, now: u64, run: Assignment, visits: &mut [StepVisit], timers: &mut Timers) {
        let worker = &mut self.workers[run.worker as usize];
        if worker.item != run.item {
            if worker.item != NO_ITEM {
                let served = now.saturating_sub(worker.begun);
                visits[worker.item as usize].left = worker.left - served;
                worker.last = worker.item;
            }
            if run.item == NO_ITEM {
                worker.item = NO_ITEM;
                return timers.set(self.first_timer + run.worker as usize, NEVER);
            }
            let away = worker.away_until.saturating_sub(now);
            worker.cost = away;
            if self.dispatch > 0 {
                self.dispatcher_free = self.dispatcher_free.max(now) + self.dispatch;
                worker.cost = worker.cost.max(self.dispatcher_free - now);
            }
            if worker.last != run.item {
                worker.cost += self.switch;
            }
            self.costs += worker.cost - away;
            worker.item = run.item;
            worker.begun = now + worker.cost;
            worker.left = visits[run.item as usize].left;
        }
        let slice_end = now.saturating_add(worker.cost).saturating_add(run.slice);
        let rings = worker.begun.saturating_add(worker.left).min(slice_end);
        timers.set(self.first_timer + run.worker as usize, rings);
    }

    /// Lets other work take a worker. An item that runs there stops and continues afterwards, or returns
    /// to the discipline. Returns true if [`Self::end_interference`] has to be called when the other work
    /// is done.
    pub(crate) fn begin_interference(
        &mut self,
        now: u64,
        worker: u32,
        other: &Interference,
        visits: &mut [StepVisit],
        timers: &mut Timers,
    ) -> bool {
        let timer = self.first_timer + worker as usize;
        let length = other.length.0;
        self.costs += length;
        let state = &mut self.workers[worker as usize];
        state.away_until = now + length;
        if state.item != NO_ITEM && !other.requeue {
            // An item that is not yet begun begins later, one that runs pauses: both ends move.
            state.left -= now.saturating_sub(state.begun).min(state.left);
            state.begun = state.begun.max(now) + length;
            state.cost = state.cost.saturating_add(length);
            timers.set(timer, timers.get(timer).saturating_add(length));
            return false;
        }
        if state.item != NO_ITEM {
            visits[state.item as usize].left = state.left - now.saturating_sub(state.begun);
            (state.last, state.item) = (state.item, NO_ITEM);
            timers.set(timer, NEVER);
        }
        state.reported_away = true;
        if let BuiltDiscipline::Workers(workers) = &mut self.discipline {
            workers.take_worker(now, worker, &mut self.runs);
        }
        self.carry_out(now, visits, timers);
        true
    }

    /// Gives back a worker that [`Self::begin_interference`] took and reported to the discipline. Returns
    /// false if there was no such worker.
    pub(crate) fn end_interference(
        &mut self,
        now: u64,
        worker: u32,
        visits: &mut [StepVisit],
        timers: &mut Timers,
    ) -> bool {
        if !std::mem::take(&mut self.workers[worker as usize].reported_away) {
            return false;
        }
        if let BuiltDiscipline::Workers(workers) = &mut self.discipline {
            workers.return_worker(now, worker, &mut self.runs);
        }
        self.carry_out(now, visits, timers);
        true
    }
}

/// The timer of a station that shares its capacity rings. Returns the item that is done.
fn on_sharing_timer(
    now: u64,
    sharing: &mut ProcessorSharing,
    timer: usize,
    timers: &mut Timers,
) -> Option<u32> {
    let done = sharing.depart(now);
    timers.set(timer, sharing.next_due().unwrap_or(NEVER));
    done
}
