//! Collection of measures during a run: opening and closing of the window, and the counts within it.

use super::completion_order::OrderTracker;
use super::histogram::Histogram;
use super::logged_request::{LoggedRequest, RequestRecorder};
use super::measures::Measures;
use super::network::QueueingNetwork;
use super::requests::{ActiveRequest, StepVisit};
use super::window::MeasurementWindow;
use units::{Nanos, Percentile};

/// Collects measures during a run.
#[derive(Debug)]
pub(crate) struct MeasureCollector {
    window: MeasurementWindow,
    pub(crate) measures: Measures,
    /// Order in which requests complete.
    order: OrderTracker,
    /// True if the order of visits is tracked at each station: on request, and only with more than one step.
    /// With a single step it is the order of the requests.
    pub(crate) follows_steps: bool,
    station_orders: Vec<OrderTracker>,
    pub(crate) arrived: u64,
    /// Measured requests that are complete.
    done: u64,
    /// Opening of the window, nanoseconds.
    opened: u64,
    state: WindowState,
    /// By station, the number of items and the instant of its latest change.
    present: Vec<(u64, u64)>,
    /// Number of requests inside or before an entry, and the instant of its latest change.
    inside: (u64, u64),
    quarter: WindowQuarter,
    /// Total demands of the requests of the warm-up.
    totals: Histogram,
    /// Largest total demand of a request that counts as short.
    short_max: u64,
    log: Option<RequestRecorder>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum WindowState {
    Before,
    Open,
    Closed,
}

/// Current quarter of the window's arrivals.
#[derive(Debug, Default)]
struct WindowQuarter {
    /// Number of quarters before it.
    index: usize,
    began: u64,
    /// Integral of the requests inside over its time, nanoseconds.
    area: u128,
}

impl MeasureCollector {
    pub(crate) fn new(window: MeasurementWindow, network: &QueueingNetwork) -> Self {
        let stations = network.stations.len();
        Self {
            window,
            measures: Measures::new(network.classes, stations),
            order: OrderTracker::default(),
            follows_steps: window.by_station && network.steps.len() > 1,
            station_orders: vec![OrderTracker::default(); stations],
            arrived: 0,
            done: 0,
            opened: 0,
            state: WindowState::Before,
            present: vec![(0, 0); stations],
            inside: (0, 0),
            quarter: WindowQuarter::default(),
            totals: Histogram::default(),
            short_max: 0,
            log: None,
        }
    }

    /// Enables recording of every request.
    pub(crate) fn recording(self) -> Self {
        Self { log: Some(RequestRecorder::new(self.present.len())), ..self }
    }

    /// Returns the recorded requests of the window.
    pub(crate) fn take_log(&mut self) -> Vec<LoggedRequest> {
        self.log.take().map(|log| log.into_window(&self.window)).unwrap_or_default()
    }

    /// Returns true once all requested measures are complete.
    #[inline]
    pub(crate) fn is_finished(&self) -> bool {
        self.done == self.window.measured && self.state == WindowState::Closed
    }

    /// Returns true if the request with this number is measured.
    #[inline]
    fn is_measured(&self, number: u64) -> bool {
        number.wrapping_sub(self.window.warm_up) < self.window.measured
    }

    /// A request arrives at its entry.
    #[inline]
    pub(crate) fn arrive(&mut self, now: u64, request: &ActiveRequest, slot: u32) {
        if let Some((begin, end)) = self.window.span {
            self.count_span(now, begin.0, end.0);
        }
        if self.arrived < self.window.warm_up {
            self.totals.record(request.demand);
        } else if self.arrived == self.window.warm_up {
            self.open(now);
        }
        if self.state == WindowState::Open {
            self.close_past_quarters(now);
        }
        self.arrived += 1;
        self.measures.played += 1;
        if let Some(log) = &mut self.log {
            log.arrive(request);
        }
        self.inside_changes(now);
        self.inside.0 += 1;
        self.order.enter(request.ideal, request.number, slot);
    }

    /// Converts a window of time into counts: arrivals before it opened, and, once it has closed, arrivals
    /// within it.
    fn count_span(&mut self, now: u64, begin: u64, end: u64) {
        if self.state == WindowState::Before {
            let opens = now >= begin;
            self.window.warm_up = if opens { self.arrived } else { u64::MAX };
            // Half of all numbers: those before the window wrap around into the other half.
            self.window.measured = if opens { u64::MAX / 2 } else { 0 };
        }
        if self.state != WindowState::Closed && now >= end {
            // Without arrivals in the window, it opens and closes with this request.
            self.window.measured = self.arrived - self.window.warm_up;
        }
    }

    /// Registers the instant at which an item would leave a station without any queueing.
    #[inline]
    pub(crate) fn expect_departure(&mut self, station: usize, ideal: u64, number: u64, item: u32) {
        self.station_orders[station].enter(ideal, number, item);
    }

    /// A request is complete.
    #[inline]
    pub(crate) fn complete(&mut self, now: u64, request: &ActiveRequest, slot: u32) {
        self.inside_changes(now);
        self.inside.0 -= 1;
        let order = self.order.complete(now, slot);
        if let Some(log) = &mut self.log {
            log.complete(now, request.number);
        }
        self.measures.completions += u64::from(self.state == WindowState::Open);
        if self.is_measured(request.number) {
            self.done += 1;
            self.measures.record_completion(now, request, order, self.short_max);
        }
    }

    /// An item arrives at a station.
    #[inline]
    pub(crate) fn arrive_at_station(&mut self, now: u64, station: usize, demand: u64) {
        self.station_changes(now, station);
        self.present[station].0 += 1;
        if self.state == WindowState::Open {
            let at = &mut self.measures.stations[station];
            at.demand += u128::from(demand);
            at.present_max = at.present_max.max(self.present[station].0);
        }
    }

    /// An item leaves a station.
    #[inline]
    pub(crate) fn leave_station(
        &mut self,
        now: u64,
        station: usize,
        visit: &StepVisit,
        item: u32,
        number: u64,
    ) {
        self.station_changes(now, station);
        self.present[station].0 -= 1;
        if let Some(log) = &mut self.log {
            log.leave_station(now, station, visit, number);
        }
        if self.is_measured(number) {
            self.measures.stations[station].record_visit(now, visit);
        }
        if self.window.by_station {
            let displaced = self.follows_steps && self.station_orders[station].complete(now, item).displaced;
            if self.is_measured(number) {
                self.measures.stations[station].record_order(now, visit, displaced);
            }
        }
    }

    /// Accounts for the items that were at a station until now.
    #[inline]
    fn station_changes(&mut self, now: u64, station: usize) {
        let (present, since) = &mut self.present[station];
        if self.state == WindowState::Open {
            self.measures.stations[station].area += u128::from(*present) * u128::from(now - *since);
        }
        *since = now;
    }

    /// Accounts for the requests that were inside until now.
    #[inline]
    fn inside_changes(&mut self, now: u64) {
        self.quarter.area += u128::from(self.inside.0) * u128::from(now - self.inside.1);
        self.inside.1 = now;
    }

    /// Opens the window, unless no request is measured.
    #[cold]
    fn open(&mut self, now: u64) {
        if self.window.measured == 0 {
            self.state = WindowState::Closed;
            return;
        }
        self.state = WindowState::Open;
        self.opened = now;
        self.present.iter_mut().for_each(|(_, since)| *since = now);
        self.inside.1 = now;
        self.quarter = WindowQuarter { began: now, ..WindowQuarter::default() };
        let share = Percentile::new(self.window.short_share * 100.0);
        let least = share.and_then(|share| self.totals.percentile(share));
        // A percentile is the middle of a bucket. Raised to the bucket's upper end, it classifies equal
        // totals alike.
        self.short_max = least.map_or(0, |least| least.0.saturating_add(least.0 / 512));
    }

    /// Closes the quarters that are over, and the window with the last.
    #[inline]
    fn close_past_quarters(&mut self, now: u64) {
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
        self.quarter = WindowQuarter { index: self.quarter.index + 1, began: now, area: 0 };
    }

    #[cold]
    fn close(&mut self, now: u64) {
        (0..self.present.len()).for_each(|station| self.station_changes(now, station));
        self.state = WindowState::Closed;
        self.measures.duration = Nanos(now - self.opened);
        self.measures.arrivals = self.arrived - self.window.warm_up;
    }

    /// Returns the measures of the completed run; `stations` yields each station's workers and the time spent
    /// on costs.
    pub(crate) fn finish(mut self, now: u64, stations: impl Iterator<Item = (u32, u64)>) -> Measures {
        if self.state == WindowState::Open {
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
