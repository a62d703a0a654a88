//! Single requests of a run, for callers that look at each.

use super::requests::{ActiveRequest, StepVisit};
use super::window::MeasurementWindow;
use units::Nanos;

/// A request that arrived within the window.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LoggedRequest {
    /// The class that the entry gave it.
    pub class: u32,
    /// When it arrived at its entry.
    pub arrival: Nanos,
    /// When it was complete; none when the run ended before.
    pub done: Option<Nanos>,
    /// The time that it spent at each station, from arrival there to departure, of all its visits together.
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

    /// A request arrives. Where windows are times, it is not known yet whether it is measured.
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

    /// The requests of the window, whose counts are known when the run is over.
    pub(super) fn into_window(self, window: &MeasurementWindow) -> Vec<LoggedRequest> {
        let warm_up = usize::try_from(window.warm_up).unwrap_or(usize::MAX);
        let measured = usize::try_from(window.measured).unwrap_or(usize::MAX);
        self.requests.into_iter().skip(warm_up).take(measured).collect()
    }
}
