//! Single requests of a run, for whoever wants to look at each.

use super::measure::MeasurementWindow;
use super::requests::{Request, Visit};
use units::Nanos;

/// A request that arrived within the window.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LoggedRequest {
    /// What kind of request it is.
    pub class: u32,
    /// When it arrived at its entry.
    pub arrival: Nanos,
    /// When it was complete; none when the run ended before.
    pub done: Option<Nanos>,
    /// By station, the time from its arrival there to its departure, of all its visits together.
    pub stations: Vec<Nanos>,
}

/// Writes passages down in order of arrival. Memory grows with the window.
#[derive(Debug)]
pub(super) struct Log {
    stations: usize,
    passages: Vec<LoggedRequest>,
}

impl Log {
    pub(super) fn new(stations: usize) -> Self {
        Self { stations, passages: Vec::new() }
    }

    /// Of a request that arrives, whether it is measured is not known yet when windows are times.
    pub(super) fn arrive(&mut self, request: &Request) {
        let stations = vec![Nanos::ZERO; self.stations];
        let (class, arrival) = (request.class, Nanos(request.arrival));
        self.passages.push(LoggedRequest { class, arrival, done: None, stations });
    }

    pub(super) fn leave(&mut self, now: u64, station: usize, visit: &Visit, number: u64) {
        if let Some(passage) = self.at(number) {
            passage.stations[station] = passage.stations[station] + Nanos(now - visit.arrived);
        }
    }

    pub(super) fn complete(&mut self, now: u64, number: u64) {
        if let Some(passage) = self.at(number) {
            passage.done = Some(Nanos(now));
        }
    }

    fn at(&mut self, number: u64) -> Option<&mut LoggedRequest> {
        self.passages.get_mut(usize::try_from(number).ok()?)
    }

    /// Those of the window, whose counts are known by now.
    pub(super) fn of(self, window: &MeasurementWindow) -> Vec<LoggedRequest> {
        let index = |number: u64| usize::try_from(number).unwrap_or(usize::MAX);
        self.passages.into_iter().skip(index(window.warm_up)).take(index(window.measured)).collect()
    }
}
