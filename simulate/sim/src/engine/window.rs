//! Selection of the requests of a run that are measured.

use units::Nanos;

/// Window of measured requests, by position among all arrivals or by arrival time.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct MeasurementWindow {
    /// Arrivals before the first that is measured.
    pub warm_up: u64,
    /// Number of measured requests.
    pub measured: u64,
    /// Replaces the counts: measures the requests that arrive from the first of these instants until before
    /// the second. With clients that wait for responses, a span bounds the measured requests of every other
    /// source; a count does not.
    pub span: Option<(Nanos, Nanos)>,
    /// Maximum number of requests inside; beyond it the run ends as unbounded.
    pub inside_max: usize,
    /// Quantile of the warm-up's total demands, 0 to 1, up to which requests are also measured separately as
    /// short.
    pub short_share: f64,
    /// Measures slowdown and order at each station, too. Costs about a fifth more time for one queue, half
    /// more for a chain.
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
