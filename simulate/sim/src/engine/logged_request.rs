//! Individual requests of a run, for callers that need each.

use super::requests::{ActiveRequest, StepVisit};
use super::window::MeasurementWindow;
use units::Nanos;

/// A request that arrived within the window.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LoggedRequest {
    /// Class assigned by the entry.
    pub class: u32,
    /// Arrival at its entry.
    pub arrival: Nanos,
    /// Completion; `None` if the run ended before.
    pub done: Option<Nanos>,
    /// Time spent at each station, from arrival to departure, summed over its visits.
    pub stations: Vec<Nanos>,
}

/// Records every request of a run in order of arrival. Memory grows with the run.
#[derive(Debug)]
pub(super) struct RequestRecorder {
    stations: usize,
    requests: Vec<LoggedRequest>,
}

impl RequestRecorder {
    pub(super) fn new(stations: usize) -> Self {
        Self { stations, requests: Vec::new() }
    }

    /// Records an arrival. With windows of time it is not known yet if it is measured.
    pub(super) fn arrive(&mut self, request: &ActiveRequest) {
        let stations = vec![Nanos::ZERO; self.stations];
        let class = request.class;
        let arrival = Nanos(request.arrival);
        self.requests.push(LoggedRequest { class, arrival, done: None, stations });
    }

    /// The request with this number leaves a station.
    pub(super) fn leave_station(&mut self, now: u64, station: usize, visit: &StepVisit, number: u64) {
        if let Some(request) = self.request_mut(number) {
            request.stations[station] = request.stations[station] + Nanos(now - visit.arrived);
        }
    }

    /// The request with this number is complete.
    pub(super) fn complete(&mut self, now: u64, number: u64) {
        if let Some(request) = self.request_mut(number) {
            request.done = Some(Nanos(now));
        }
    }

    fn request_mut(&mut self, number: u64) -> Option<&mut LoggedRequest> {
        self.requests.get_mut(usize::try_from(number).ok()?)
    }

    /// Returns the requests of the window, whose counts are known when the run is over.
    pub(super) fn into_window(self, window: &MeasurementWindow) -> Vec<LoggedRequest> {
        let warm_up = usize::try_from(window.warm_up).unwrap_or(usize::MAX);
        let measured = usize::try_from(window.measured).unwrap_or(usize::MAX);
        self.requests.into_iter().skip(warm_up).take(measured).collect()
    }
}
