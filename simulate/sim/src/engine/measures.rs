//! Measures of the requests that arrive within the window.

use super::completion_order::OrderDeviation;
use super::histogram::Histogram;
use super::requests::{ActiveRequest, StepVisit};
use units::Nanos;

/// The unit of slowdowns, which are kept as integer multiples of it.
pub const SLOWDOWN_UNIT: f64 = 1.0 / 1024.0;

/// The measures of one station within the window.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct StationMeasures {
    /// Time from arrival at the station to departure, one value per visit, nanoseconds.
    pub time: Histogram,
    /// That time ÷ the demand there, in [`SLOWDOWN_UNIT`]s; visits without demand are left out. Only with
    /// `MeasurementWindow::by_station`.
    pub slowdown: Histogram,
    /// Visits whose position among departures differs from that in the ideal order. Only with
    /// `MeasurementWindow::by_station`.
    pub displaced: u64,
    /// Requests there, in service or not, averaged over time.
    pub present_mean: f64,
    /// Maximum number of requests there at once.
    pub present_max: u64,
    /// Demand that arrived ÷ (time × workers): 1 and above cannot be served, whatever the discipline.
    pub offered: f64,
    /// Time that workers spent on switching, on waiting for the dispatcher and on other work, over the whole run ÷
    /// (time × workers).
    pub overhead: f64,
    /// The integral of the requests there over the time of the window, in nanoseconds.
    pub(crate) area: u128,
    /// Demand that arrived, nanoseconds.
    pub(crate) demand: u128,
}

impl StationMeasures {
    /// Records the time of a visit that ends.
    #[inline]
    pub(crate) fn record_visit(&mut self, now: u64, visit: &StepVisit) {
        self.time.record(now - visit.arrived);
    }

    /// Records slowdown and order of a visit that ends, for `MeasurementWindow::by_station`.
    #[inline]
    pub(crate) fn record_order(&mut self, now: u64, visit: &StepVisit, displaced: bool) {
        if visit.demand > 0 {
            self.slowdown.record(slowdown_units((now - visit.arrived) as f64 / visit.demand as f64));
        }
        self.displaced += u64::from(displaced);
    }

    /// Share of visits that leave at another position than in the ideal order, percent.
    pub fn displaced_pct(&self) -> Option<f64> {
        percent(self.displaced, self.time.count())
    }
}

/// The measures of one run.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Measures {
    /// Response times from arrival at the entry to completion, nanoseconds.
    pub response: Histogram,
    /// Response ÷ sum of own demands, in [`SLOWDOWN_UNIT`]s; requests without demand are left out.
    pub slowdown: Histogram,
    /// Response times by class; empty if there is only one class.
    pub by_class: Vec<Histogram>,
    /// Slowdowns by class, as [`Self::slowdown`].
    pub slowdown_by_class: Vec<Histogram>,
    /// Response times of the requests with the least total demand.
    pub shortest: Histogram,
    /// The measures of each station.
    pub stations: Vec<StationMeasures>,
    /// Requests whose position among completions differs from that in the ideal order.
    pub displaced: u64,
    /// Requests that are complete after one that is later in the ideal order.
    pub overtaken: u64,
    /// Maximum over all requests of the time in the system minus the time it would have taken alone.
    pub longest_wait: Nanos,
    /// The time from the first measured arrival to the first arrival after the window.
    pub duration: Nanos,
    /// Completions within that time, of measured and other requests.
    pub completions: u64,
    /// Arrivals within that time: all of them are measured.
    pub arrivals: u64,
    /// Requests inside or before an entry, averaged over each quarter of the arrivals.
    pub inside_by_quarter: [f64; 4],
    /// Measured requests that were not complete when the run ended.
    pub unfinished: u64,
    /// Requests of the whole run, those of the warm-up included.
    pub played: u64,
    /// Events of the whole run: arrivals, deliveries, departures, ends of slices, interferences.
    pub events: u64,
    pub(crate) slowdown_sum: f64,
    pub(crate) slowdown_squares: f64,
}

impl Measures {
    pub(crate) fn new(classes: u32, stations: usize) -> Self {
        Self {
            by_class: vec![Histogram::default(); classes as usize],
            slowdown_by_class: vec![Histogram::default(); classes as usize],
            stations: vec![StationMeasures::default(); stations],
            ..Self::default()
        }
    }

    /// Returns the response times of a class, also if it is the only one.
    pub fn response_of(&self, class: usize) -> &Histogram {
        if self.by_class.len() > 1 { &self.by_class[class] } else { &self.response }
    }

    /// Returns the slowdowns of a class, also if it is the only one.
    pub fn slowdown_of(&self, class: usize) -> &Histogram {
        if self.slowdown_by_class.len() > 1 { &self.slowdown_by_class[class] } else { &self.slowdown }
    }

    /// Records a measured request that is complete.
    #[inline]
    pub(crate) fn record_completion(
        &mut self,
        now: u64,
        request: &ActiveRequest,
        order: OrderDeviation,
        short_below: u64,
    ) {
        let response = now - request.arrival;
        self.response.record(response);
        if self.by_class.len() > 1 {
            self.by_class[request.class as usize].record(response);
        }
        if request.demand > 0 {
            let slowdown = response as f64 / request.demand as f64;
            self.slowdown_sum += slowdown;
            self.slowdown_squares += slowdown * slowdown;
            self.slowdown.record(slowdown_units(slowdown));
            if self.by_class.len() > 1 {
                self.slowdown_by_class[request.class as usize].record(slowdown_units(slowdown));
            }
        }
        if request.demand <= short_below {
            self.shortest.record(response);
        }
        self.displaced += u64::from(order.displaced);
        self.overtaken += u64::from(order.overtaken);
        self.longest_wait = self.longest_wait.max(Nanos(now - request.ideal));
    }

    /// Share of requests that are displaced, percent: the reordering of TailClipper (§5.4).
    pub fn displaced_pct(&self) -> Option<f64> {
        percent(self.displaced, self.response.count())
    }

    /// Share of requests that are overtaken, percent.
    pub fn overtaken_pct(&self) -> Option<f64> {
        percent(self.overtaken, self.response.count())
    }

    /// Completions per second within the window.
    pub fn throughput_per_s(&self) -> Option<f64> {
        (self.duration > Nanos::ZERO).then(|| self.completions as f64 / self.duration.as_secs())
    }

    /// Jain's index of the slowdowns, (Σx)² ÷ (n Σx²): 1 when all are slowed down alike, 1/n when a single request is.
    pub fn fairness(&self) -> Option<f64> {
        let n = self.slowdown.count() as f64;
        (n > 0.0).then(|| self.slowdown_sum * self.slowdown_sum / (n * self.slowdown_squares))
    }
}

#[inline]
fn slowdown_units(slowdown: f64) -> u64 {
    // A float beyond u64 becomes the largest.
    #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)]
    let units = (slowdown / SLOWDOWN_UNIT) as u64;
    units
}

fn percent(part: u64, whole: u64) -> Option<f64> {
    (whole > 0).then(|| 100.0 * part as f64 / whole as f64)
}
