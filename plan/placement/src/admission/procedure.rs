//! Decision rule of an admission controller.

use super::applicant::{Priority, SharedServer};
use model::UndefinedLatency;

/// A rule that says which workloads may share a server.
pub trait AdmissionProcedure {
    type Sketch;

    /// The name under which users choose the procedure.
    fn name(&self) -> &'static str;

    /// The priorities that it would give the members, in their order; the best that it finds when no
    /// priorities keep every SLO. A function of the members and their order alone.
    fn priorities(&self, server: &SharedServer<'_, Self::Sketch>) -> Vec<Priority>;

    /// The latency of each member at its SLO's percentile, base latency included, seconds.
    fn latencies(
        &self,
        server: &SharedServer<'_, Self::Sketch>,
        priorities: &[Priority],
    ) -> Vec<Result<f64, UndefinedLatency>>;

    /// Returns true if every latency is within its SLO. Must agree with [`Self::latencies`] up to rounding,
    /// but may stop early.
    fn fits(&self, server: &SharedServer<'_, Self::Sketch>, priorities: &[Priority]) -> bool {
        let latencies = self.latencies(server, priorities);
        latencies.iter().enumerate().all(|(i, latency)| latency.is_ok_and(|l| server.keeps(i, l)))
    }

    /// The answer of [`Self::fits`] as far as a quick look gives it: `Some` is that answer, `None` says that a part of
    /// what decides it speaks for yes.
    fn likely_fits(&self, server: &SharedServer<'_, Self::Sketch>, priorities: &[Priority]) -> Option<bool> {
        Some(self.fits(server, priorities))
    }
    /// Forgets what it remembers of earlier questions, on which the answers of [`Self::likely_fits`] may depend.
    fn forget(&self) {}
}
