//! Loops in a simulated world: the proxy's own, with messages that are late.

use super::dice::Dice;
use super::system::{SimulatedStream, SimulatedSystem};
use enforce::storage::{ByteLoop, ByteLoops, ByteOrder, ByteReport, ConnectionId, System, SystemEvent};
use std::collections::VecDeque;
use std::io;

/// Purpose of the dice, which shifts no other choices of the world.
const PURPOSE: u64 = 77;
/// Maximum time of a message on its way, nanoseconds.
pub const LATE_NS: u64 = 20_000;

/// Orders of one round.
type Orders = Vec<(ConnectionId, ByteOrder<SimulatedStream>)>;

/// Loops in a simulated world.
#[derive(Debug)]
pub struct SimulatedLoops {
    loops: Vec<SimulatedLoop>,
    dice: Dice,
    now: u64,
}

/// A loop, with messages to and from it and the times of their arrival.
#[derive(Debug, Default)]
struct SimulatedLoop {
    bytes: ByteLoop<SimulatedStream>,
    orders: VecDeque<(u64, Orders)>,
    reports: VecDeque<(u64, ConnectionId, ByteReport)>,
}

impl SimulatedLoops {
    /// Creates one to three loops.
    pub fn new(seed: u64) -> Self {
        let mut dice = Dice::new(seed, PURPOSE);
        let loops = std::iter::repeat_with(SimulatedLoop::default).take(1 + dice.index(3)).collect();
        Self { loops, dice, now: 0 }
    }

    fn has_due_reports(&self) -> bool {
        self.loops.iter().any(|one| one.reports.front().is_some_and(|(at, ..)| *at <= self.now))
    }
}

impl ByteLoops<SimulatedSystem> for SimulatedLoops {
    fn count(&self) -> usize {
        self.loops.len()
    }

    fn send(&mut self, loop_index: usize, orders: Orders) {
        let at = self.now + self.dice.below(LATE_NS);
        let line = &mut self.loops[loop_index].orders;
        let at = line.back().map_or(at, |(last, _)| at.max(*last));
        line.push_back((at, orders));
    }

    fn receive(&mut self, reports: &mut Vec<(usize, ConnectionId, ByteReport)>) -> io::Result<()> {
        for (index, one) in self.loops.iter_mut().enumerate() {
            while one.reports.front().is_some_and(|(at, ..)| *at <= self.now) {
                let (_, id, report) = one.reports.pop_front().expect("it is not empty");
                reports.push((index, id, report));
            }
        }
        Ok(())
    }

    fn prepare_to_wait(&mut self) -> bool {
        !self.has_due_reports()
    }

    fn end_wait(&mut self) {}

    fn run(&mut self, system: &mut SimulatedSystem, events: &mut Vec<SystemEvent>) -> Option<u64> {
        self.now = system.now();
        let mut wake_at = None;
        for one in &mut self.loops {
            let mut reports = Vec::new();
            // A serial number belongs to one loop.
            events.iter().for_each(|event| one.bytes.on_event(*event, &mut reports));
            while one.orders.front().is_some_and(|(at, _)| *at <= self.now) {
                let (_, orders) = one.orders.pop_front().expect("it is not empty");
                for (id, order) in orders {
                    one.bytes.on_order(id, order, self.now);
                }
            }
            one.bytes.settle(system, &mut reports);
            for (id, report) in reports {
                let at = self.now + self.dice.below(LATE_NS);
                let at = one.reports.back().map_or(at, |(last, ..)| at.max(*last));
                one.reports.push_back((at, id, report));
            }
            let due = [
                one.orders.front().map(|(at, _)| *at),
                one.reports.front().map(|(at, ..)| *at),
                one.bytes.wake_at(),
            ];
            wake_at = wake_at.into_iter().chain(due.into_iter().flatten()).min();
        }
        system.0.borrow_mut().loops_have_orders = self.loops.iter().any(|one| !one.orders.is_empty());
        events.retain(|event| !matches!(event, SystemEvent::Stream { .. }));
        wake_at
    }
}
