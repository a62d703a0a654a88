//! When the window opens and closes, and what is counted while it is open.

use super::histogram::Histogram;
use super::measure::{MeasurementWindow, Measures};
use super::network::QueueingNetwork;
use super::order::OrderTracker;
use super::passage::{Log, LoggedRequest};
use super::requests::{Request, Visit};
use units::{Nanos, Percentile};

/// Collects measures during a run.
#[derive(Debug)]
pub(crate) struct Meter {
    window: MeasurementWindow,
    pub(crate) measures: Measures,
    orders: OrderTracker,
    /// Whether the same is done at each station: if it is asked for, and there is more than one step. The order at an
    /// only step is that of the requests.
    pub(crate) follows_steps: bool,
    station_orders: Vec<OrderTracker>,
    pub(crate) arrived: u64,
    done: u64,
    opened: u64,
    state: State,
    /// Items at each station, and since when.
    present: Vec<(u64, u64)>,
    /// Requests inside or before an entry, and since when.
    inside: (u64, u64),
    quarter: Quarter,
    /// Total demands of the warm-up.
    totals: Histogram,
    short_below: u64,
    log: Option<Log>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum State {
    Before,
    Open,
    Closed,
}

/// The quarter of the window's arrivals that is going on.
#[derive(Debug, Default)]
struct Quarter {
    index: usize,
    began: u64,
    area: u128,
}

impl Meter {
    pub(crate) fn new(window: MeasurementWindow, network: &QueueingNetwork) -> Self {
        let stations = network.stations.len();
        Self {
            window,
            measures: Measures::new(network.classes, stations),
            orders: OrderTracker::default(),
            follows_steps: window.by_station && network.steps.len() > 1,
            station_orders: vec![OrderTracker::default(); stations],
            arrived: 0,
            done: 0,
            opened: 0,
            state: State::Before,
            present: vec![(0, 0); stations],
            inside: (0, 0),
            quarter: Quarter::default(),
            totals: Histogram::default(),
            short_below: 0,
            log: None,
        }
    }

    /// Writes down every request, too.
    pub(crate) fn logging(self) -> Self {
        Self { log: Some(Log::new(self.present.len())), ..self }
    }

    /// What was written down of the requests of the window.
    pub(crate) fn take_log(&mut self) -> Vec<LoggedRequest> {
        self.log.take().map(|log| log.of(&self.window)).unwrap_or_default()
    }

    /// Whether all that was asked for is known.
    #[inline]
    pub(crate) fn is_finished(&self) -> bool {
        self.done == self.window.measured && self.state == State::Closed
    }

    #[inline]
    fn measures(&self, number: u64) -> bool {
        number.wrapping_sub(self.window.warm_up) < self.window.measured
    }

    /// A request arrives.
    #[inline]
    pub(crate) fn arrive(&mut self, now: u64, request: &Request, slot: u32) {
        if let Some((begin, end)) = self.window.span {
            self.count_span(now, begin.0, end.0);
        }
        if self.arrived < self.window.warm_up {
            self.totals.record(request.demand);
        } else if self.arrived == self.window.warm_up {
            self.open(now);
        }
        if self.state == State::Open {
            self.quarters(now);
        }
        self.arrived += 1;
        if let Some(log) = &mut self.log {
            log.arrive(request);
        }
        self.inside_changes(now);
        self.inside.0 += 1;
        self.orders.enter(request.ideal, request.number, slot);
    }

    /// A window of time as counts: how many arrived before it opened, and, when it has closed, within it.
    fn count_span(&mut self, now: u64, begin: u64, end: u64) {
        if self.state == State::Before {
            let opens = now >= begin;
            self.window.warm_up = if opens { self.arrived } else { u64::MAX };
            // Half of all numbers: those before the window, which wrap around, are in the other half.
            self.window.measured = if opens { u64::MAX / 2 } else { 0 };
        }
        if self.state != State::Closed && now >= end {
            // Nobody arrived within it: it opens and closes with this one.
            self.window.measured = self.arrived - self.window.warm_up;
        }
    }

    /// When an item would leave a station if nobody ever waited.
    #[inline]
    pub(crate) fn expect(&mut self, station: usize, ideal: u64, number: u64, item: u32) {
        self.station_orders[station].enter(ideal, number, item);
    }

    /// A request is complete.
    #[inline]
    pub(crate) fn complete(&mut self, now: u64, request: &Request, slot: u32) {
        self.inside_changes(now);
        self.inside.0 -= 1;
        let place = self.orders.complete(now, slot);
        if let Some(log) = &mut self.log {
            log.complete(now, request.number);
        }
        self.measures.completions += u64::from(self.state == State::Open);
        if self.measures(request.number) {
            self.done += 1;
            self.measures.complete(now, request, place, self.short_below);
        }
    }

    /// An item comes to a station.
    #[inline]
    pub(crate) fn come(&mut self, now: u64, station: usize, demand: u64) {
        self.station_changes(now, station);
        self.present[station].0 += 1;
        if self.state == State::Open {
            let at = &mut self.measures.stations[station];
            at.demand += u128::from(demand);
            at.present_max = at.present_max.max(self.present[station].0);
        }
    }

    /// An item leaves a station.
    #[inline]
    pub(crate) fn leave(&mut self, now: u64, station: usize, visit: &Visit, item: u32, number: u64) {
        self.station_changes(now, station);
        self.present[station].0 -= 1;
        if let Some(log) = &mut self.log {
            log.leave(now, station, visit, number);
        }
        if self.measures(number) {
            self.measures.stations[station].left(now, visit);
        }
        if self.window.by_station {
            let displaced = self.follows_steps && self.station_orders[station].complete(now, item).displaced;
            if self.measures(number) {
                self.measures.stations[station].compared(now, visit, displaced);
            }
        }
    }

    #[inline]
    fn station_changes(&mut self, now: u64, station: usize) {
        let (present, since) = &mut self.present[station];
        if self.state == State::Open {
            self.measures.stations[station].area += u128::from(*present) * u128::from(now - *since);
        }
        *since = now;
    }

    #[inline]
    fn inside_changes(&mut self, now: u64) {
        self.quarter.area += u128::from(self.inside.0) * u128::from(now - self.inside.1);
        self.inside.1 = now;
    }

    #[cold]
    fn open(&mut self, now: u64) {
        if self.window.measured == 0 {
            self.state = State::Closed;
            return;
        }
        self.state = State::Open;
        self.opened = now;
        self.present.iter_mut().for_each(|(_, since)| *since = now);
        self.inside.1 = now;
        self.quarter = Quarter { began: now, ..Quarter::default() };
        let share = Percentile::new(self.window.short_share * 100.0);
        let least = share.and_then(|share| self.totals.percentile(share));
        // The middle of a bucket: raised to its upper end, so that equal totals are all below or all above.
        self.short_below = least.map_or(0, |least| least.0.saturating_add(least.0 / 512));
    }

    /// Closes the quarters that are over, and the window with the last.
    #[inline]
    fn quarters(&mut self, now: u64) {
        while self.quarter.index < 4 && self.quarter_is_over(now) {
            self.end_quarter(now);
        }
        if self.quarter.index == 4 {
            self.close(now);
        }
    }

    fn quarter_is_over(&self, now: u64) -> bool {
        let quarters = self.quarter.index as u128 + 1;
        if let Some((begin, end)) = self.window.span {
            return 4 * u128::from(now - begin.0) >= quarters * u128::from(end.0 - begin.0);
        }
        let end = (u128::from(self.window.measured) * quarters).div_ceil(4);
        u128::from(self.arrived - self.window.warm_up) >= end
    }

    fn end_quarter(&mut self, now: u64) {
        self.inside_changes(now);
        let length = now - self.quarter.began;
        if length > 0 {
            self.measures.inside_by_quarter[self.quarter.index] = self.quarter.area as f64 / length as f64;
        }
        self.quarter = Quarter { index: self.quarter.index + 1, began: now, area: 0 };
    }

    #[cold]
    fn close(&mut self, now: u64) {
        (0..self.present.len()).for_each(|station| self.station_changes(now, station));
        self.state = State::Closed;
        self.measures.duration = Nanos(now - self.opened);
        self.measures.arrivals = self.arrived - self.window.warm_up;
    }

    /// The run is over; workers and time spent on costs by station.
    pub(crate) fn finish(mut self, now: u64, stations: impl Iterator<Item = (u32, u64)>) -> Measures {
        if self.state == State::Open {
            while self.quarter.index < 4 {
                self.end_quarter(now);
            }
            self.close(now);
        }
        if self.window.by_station && !self.follows_steps {
            let displaced = self.measures.displaced;
            self.measures.stations.iter_mut().for_each(|at| at.displaced = displaced);
        }
        let measured = self.arrived.saturating_sub(self.window.warm_up).min(self.window.measured);
        self.measures.unfinished = measured - self.done;
        let duration = self.measures.duration.0 as f64;
        for (at, (workers, costs)) in self.measures.stations.iter_mut().zip(stations) {
            if duration > 0.0 {
                at.present_mean = at.area as f64 / duration;
                at.offered = at.demand as f64 / duration / f64::from(workers);
                at.overhead = costs as f64 / now as f64 / f64::from(workers);
            }
        }
        self.measures
    }
}
