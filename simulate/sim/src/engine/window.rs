//! Which requests of a run are measured.

use units::Nanos;

/// The requests that are measured, by position among all arrivals or by the time at which they arrive.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct MeasurementWindow {
    /// Arrivals before the first that is measured.
    pub warm_up: u64,
    /// How many requests are measured.
    pub measured: u64,
    /// Instead of counts: requests are measured that arrive from the first of these instants until before the
    /// second. Where clients wait for answers, a time says how much is measured of everybody else and a count does not.
    pub span: Option<(Nanos, Nanos)>,
    /// The run ends as growing without bound when more requests than this are inside.
    pub inside_max: usize,
    /// Requests whose total demand is at most this quantile, 0 to 1, of those of the warm-up are also measured apart.
    pub short_share: f64,
    /// Whether slowdown and order are measured at each station, too: about a fifth more work for one queue, half more
    /// for a chain.
    pub by_station: bool,
}

impl MeasurementWindow {
    /// A window of `measured` requests after a tenth of that as warm-up, with at most 10 million inside, the shortest
    /// 1 % apart, nothing more by station.
    pub fn of_requests(measured: u64) -> Self {
        Self {
            warm_up: measured / 10,
            measured,
            span: None,
            inside_max: 10_000_000,
            short_share: 0.01,
            by_station: false,
        }
    }
}
