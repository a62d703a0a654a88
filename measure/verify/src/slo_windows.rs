//! The percentile of an SLO in windows of time.
//!
//! Over a whole run a percentile may be kept although all requests of one bad minute were late. The
//! thesis therefore judges SLOs by the percentile in intervals of three minutes (§4.3.3). Windows follow
//! each other from the first request of the run; an incomplete window at the end is not judged. A window
//! has no confidence interval: it affects neither the verdict on the run nor the exit code.

use crate::finding::{Findings, SloWindow};
use crate::percentile::percentile;
use model::{Observation, Observations, Slo, Verdict};
use units::Nanos;

impl Findings {
    /// Adds to each workload its windows of this length over the run that the findings are about.
    ///
    /// # Panics
    /// When the length is zero.
    #[must_use]
    pub fn with_windows(mut self, observations: &Observations, length: Nanos) -> Self {
        let windows = RunWindows::of(observations, length);
        for finding in &mut self.workloads {
            let number = observations.workloads.iter().position(|name| *name == finding.name);
            let objective = finding.objective();
            let own = |request: &&Observation| {
                number.is_some_and(|number| request.workload as usize == number)
                    && objective.is_about(request.op)
            };
            finding.windows = windows.judge(observations.requests.iter().filter(own), finding.judgement.slo);
        }
        self.window_s = Some(length.as_secs());
        self
    }
}

/// The whole windows of a run, in nanoseconds.
struct RunWindows {
    from: u64,
    length: u64,
    count: usize,
}

impl RunWindows {
    fn of(observations: &Observations, length: Nanos) -> Self {
        assert!(length > Nanos::ZERO, "windows have a length");
        let instants = || observations.requests.iter().map(|request| request.intended.0);
        let from = instants().min().unwrap_or(0);
        let until = instants().max().unwrap_or(0);
        let count = usize::try_from((until - from) / length.0).unwrap_or(usize::MAX);
        Self { from, length: length.0, count }
    }

    /// Every window of these requests of one workload.
    fn judge<'a>(&self, requests: impl Iterator<Item = &'a Observation>, slo: Slo) -> Vec<SloWindow> {
        let mut latencies: Vec<Vec<Nanos>> = vec![Vec::new(); self.count];
        for request in requests {
            let window =
                usize::try_from((request.intended.0 - self.from) / self.length).unwrap_or(usize::MAX);
            if let Some(latencies) = latencies.get_mut(window) {
                latencies.push(request.latency().unwrap_or(NO_ANSWER));
            }
        }
        let windows = latencies.iter_mut().enumerate();
        windows.map(|(number, latencies)| slo_window(self.begin_s(number), latencies, slo)).collect()
    }

    /// When a window begins, seconds.
    fn begin_s(&self, number: usize) -> f64 {
        Nanos(self.from + number as u64 * self.length).as_secs()
    }
}

/// The latency of a request without an answer: longer than any other.
const NO_ANSWER: Nanos = Nanos(u64::MAX);

fn slo_window(from_s: f64, latencies: &mut [Nanos], slo: Slo) -> SloWindow {
    latencies.sort_unstable();
    let allowed = Nanos::from_secs(slo.latency.0).unwrap_or(Nanos(u64::MAX - 1));
    let over = latencies.len() - latencies.partition_point(|latency| *latency <= allowed);
    let measured = percentile(latencies, slo.percentile.percent());
    // A hair of tolerance, because 1 − 0.999 is not exactly a thousandth.
    let is_longest = latencies.len() as f64 * (1.0 - slo.percentile.fraction()) < 1.0 - 1e-9;
    // If all requests must meet the SLO, a late longest one refutes it, but one in time does not prove
    // it.
    let is_open = |latency: Nanos| is_longest && (slo.percentile.fraction() < 1.0 || latency <= allowed);
    let verdict = match measured {
        None => Verdict::TooFew,
        Some(latency) if is_open(latency) => Verdict::TooFew,
        Some(latency) if latency <= allowed => Verdict::Met,
        Some(_) => Verdict::NotMet,
    };
    SloWindow {
        from_s,
        requests: latencies.len() as u64,
        over: over as u64,
        measured_s: measured.filter(|latency| *latency != NO_ANSWER).map(Nanos::as_secs),
        verdict,
    }
}
