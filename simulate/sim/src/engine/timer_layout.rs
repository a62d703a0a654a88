//! Assignment of timers to their owners. Among timers for the same instant the lowest number fires first, so
//! this layout defines the documented order of simultaneous events.

use super::network::QueueingNetwork;
use std::ops::Range;

/// Owner of a timer.
#[derive(Debug, Clone, Copy)]
pub(crate) enum TimerOwner {
    /// A worker finishes its item, or the slice that the item has is over.
    Worker { station: u32, worker: u32 },
    /// Time alone makes something able to be served at a station.
    Wake { station: u32 },
    /// Other work takes a worker away or gives it back.
    Interference { station: u32, worker: u32 },
    /// An item arrives at a station after its network delay.
    DelayLine { station: u32 },
    /// A request reaches the first steps after the delay of its entry.
    EntryDelay { entry: u32 },
    /// The next request arrives at an entry.
    Arrival { entry: u32 },
}

/// The timers of a network with its entries.
#[derive(Debug)]
pub(crate) struct TimerLayout {
    owners: Vec<TimerOwner>,
    first_interference: usize,
    first_delay_line: usize,
    first_entry_delay: usize,
    first_arrival: usize,
}

impl TimerLayout {
    pub(crate) fn new(network: &QueueingNetwork, entries: usize) -> Self {
        let stations = indices(network.stations.len());
        let mut owners = Vec::new();
        for station in stations.clone().rev() {
            let workers = 0..network.stations[station as usize].workers;
            owners.extend(workers.map(|worker| TimerOwner::Worker { station, worker }));
        }
        for station in stations.clone().rev() {
            if network.stations[station as usize].discipline.needs_wake_ups() {
                owners.push(TimerOwner::Wake { station });
            }
        }
        let first_interference = owners.len();
        for station in stations.clone().rev() {
            if network.stations[station as usize].interference.is_some() {
                let workers = 0..network.stations[station as usize].workers;
                owners.extend(workers.map(|worker| TimerOwner::Interference { station, worker }));
            }
        }
        let first_delay_line = owners.len();
        owners.extend(stations.map(|station| TimerOwner::DelayLine { station }));
        let first_entry_delay = owners.len();
        owners.extend(indices(entries).map(|entry| TimerOwner::EntryDelay { entry }));
        let first_arrival = owners.len();
        owners.extend(indices(entries).map(|entry| TimerOwner::Arrival { entry }));
        Self { owners, first_interference, first_delay_line, first_entry_delay, first_arrival }
    }

    /// Returns the number of timers.
    pub(crate) fn len(&self) -> usize {
        self.owners.len()
    }

    #[inline]
    pub(crate) fn owner(&self, timer: usize) -> TimerOwner {
        self.owners[timer]
    }

    /// The timers of interferences, in the order of [`Self::disturbed_worker`].
    pub(crate) fn interferences(&self) -> Range<usize> {
        self.first_interference..self.first_delay_line
    }

    /// Returns the index, among all disturbed workers, of the worker whose interference this timer is.
    pub(crate) fn disturbed_worker(&self, timer: usize) -> usize {
        timer - self.first_interference
    }

    #[inline]
    pub(crate) fn delay_line(&self, station: usize) -> usize {
        self.first_delay_line + station
    }

    #[inline]
    pub(crate) fn entry_delay(&self, entry: usize) -> usize {
        self.first_entry_delay + entry
    }

    #[inline]
    pub(crate) fn arrival(&self, entry: usize) -> usize {
        self.first_arrival + entry
    }
}

fn indices(count: usize) -> Range<u32> {
    0..u32::try_from(count).unwrap_or(u32::MAX)
}
