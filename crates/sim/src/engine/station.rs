//! The workers of a station: who serves what since when, and what it costs.

use super::network::{Interference, NetworkStation};
use super::requests::Visit;
use super::timers::{NEVER, Timers};
use discipline::Sharing;
use discipline::serve::{Built, Discipline as _, Item, Run};

const NOBODY: u32 = u32::MAX;

/// A worker.
#[derive(Debug, Clone, Copy)]
struct Worker {
    /// In service, or [`NOBODY`].
    item: u32,
    /// What it served last and could go on with at no cost.
    last: u32,
    /// When service began or begins, after the costs of taking it up.
    begun: u64,
    /// What was left of the demand then.
    left: u64,
    /// Costs of taking it up, which a slice does not count.
    cost: u64,
    /// Taken away until then.
    away_until: u64,
    /// The discipline knows, and has to be told when the worker is back.
    gone: bool,
}

/// A station at work.
#[derive(Debug)]
pub(crate) struct Serving {
    discipline: Built,
    workers: Vec<Worker>,
    /// The timer of its first worker.
    first_timer: usize,
    /// The timer of what becomes able to be served by time alone, if there is such a thing.
    wake_timer: Option<usize>,
    switch: u64,
    dispatch: u64,
    dispatcher_free: u64,
    runs: Vec<Run>,
    /// Time spent on costs.
    pub(crate) costs: u64,
}

impl Serving {
    pub(crate) fn new(
        station: &NetworkStation,
        first_timer: usize,
        wake_timer: Option<usize>,
        seed: u64,
    ) -> Self {
        let idle =
            Worker { item: NOBODY, last: NOBODY, begun: 0, left: 0, cost: 0, away_until: 0, gone: false };
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

    #[inline]
    pub(crate) fn arrive(&mut self, now: u64, item: Item, visits: &mut [Visit], timers: &mut Timers) {
        match &mut self.discipline {
            Built::Workers(workers) => {
                workers.arrive(now, item, &mut self.runs);
                self.carry_out(now, visits, timers);
            }
            Built::Shared(sharing) => {
                sharing.arrive(now, item);
                timers.set(self.first_timer, sharing.next().unwrap_or(NEVER));
            }
        }
    }

    /// A worker's timer rings: the item that is done, if it is.
    #[inline]
    pub(crate) fn ring(
        &mut self,
        now: u64,
        worker: u32,
        visits: &mut [Visit],
        timers: &mut Timers,
    ) -> Option<u32> {
        let discipline = match &mut self.discipline {
            Built::Workers(workers) => workers,
            Built::Shared(sharing) => return shared_rings(now, sharing, self.first_timer, timers),
        };
        let timer = self.first_timer + worker as usize;
        let at = &mut self.workers[worker as usize];
        let end = at.begun.saturating_add(at.left);
        if now < end {
            // The slice was counted from behind the costs; what follows goes on without.
            at.cost = 0;
            timers.set(timer, end);
            discipline.expire(now, worker, &mut self.runs);
            self.carry_out(now, visits, timers);
            return None;
        }
        let item = at.item;
        (at.item, at.last) = (NOBODY, NOBODY);
        timers.set(timer, NEVER);
        discipline.depart(now, worker, &mut self.runs);
        self.carry_out(now, visits, timers);
        Some(item)
    }

    #[inline]
    fn carry_out(&mut self, now: u64, visits: &mut [Visit], timers: &mut Timers) {
        for at in 0..self.runs.len() {
            let run = self.runs[at];
            self.take_up(now, run, visits, timers);
        }
        self.runs.clear();
        if let (Some(timer), Built::Workers(workers)) = (self.wake_timer, &self.discipline) {
            timers.set(timer, workers.wake_at().unwrap_or(NEVER).max(now));
        }
    }

    /// Something may have become able to be served.
    pub(crate) fn wake(&mut self, now: u64, visits: &mut [Visit], timers: &mut Timers) {
        if let Built::Workers(workers) = &mut self.discipline {
            workers.wake(now, &mut self.runs);
            self.carry_out(now, visits, timers);
        }
    }

    #[inline]
    fn take_up(&mut self, now: u64, run: Run, visits: &mut [Visit], timers: &mut Timers) {
        let worker = &mut self.workers[run.worker as usize];
        if worker.item != run.item {
            if worker.item != NOBODY {
                let served = now.saturating_sub(worker.begun);
                visits[worker.item as usize].left = worker.left - served;
                worker.last = worker.item;
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

    /// Other work takes a worker; what runs there stops and goes on afterwards, or is the discipline's again. Whether
    /// [`Self::back`] has to be called when it is over.
    pub(crate) fn interfere(
        &mut self,
        now: u64,
        worker: u32,
        other: &Interference,
        visits: &mut [Visit],
        timers: &mut Timers,
    ) -> bool {
        let timer = self.first_timer + worker as usize;
        let length = other.length.0;
        self.costs += length;
        let at = &mut self.workers[worker as usize];
        at.away_until = now + length;
        if at.item != NOBODY && !other.requeue {
            // An item that is not yet begun begins later, one that runs pauses: both ends move.
            at.left -= now.saturating_sub(at.begun).min(at.left);
            at.begun = at.begun.max(now) + length;
            at.cost = at.cost.saturating_add(length);
            timers.set(timer, timers.at(timer).saturating_add(length));
            return false;
        }
        if at.item != NOBODY {
            visits[at.item as usize].left = at.left - now.saturating_sub(at.begun);
            (at.last, at.item) = (at.item, NOBODY);
            timers.set(timer, NEVER);
        }
        at.gone = true;
        if let Built::Workers(workers) = &mut self.discipline {
            workers.leave(now, worker, &mut self.runs);
        }
        self.carry_out(now, visits, timers);
        true
    }

    /// Whether other work on a worker that [`Self::interfere`] took is over now; then it works again.
    pub(crate) fn back(&mut self, now: u64, worker: u32, visits: &mut [Visit], timers: &mut Timers) -> bool {
        if !std::mem::take(&mut self.workers[worker as usize].gone) {
            return false;
        }
        if let Built::Workers(workers) = &mut self.discipline {
            workers.back(now, worker, &mut self.runs);
        }
        self.carry_out(now, visits, timers);
        true
    }
}

fn shared_rings(now: u64, sharing: &mut Sharing, timer: usize, timers: &mut Timers) -> Option<u32> {
    let done = sharing.depart(now);
    timers.set(timer, sharing.next().unwrap_or(NEVER));
    done
}
