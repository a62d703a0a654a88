use super::applicant::{Priority, ServerView};
use model::UndefinedLatency;

/// A rule that says which workloads may share a server.
pub trait Procedure {
    /// What it keeps of a workload.
    type Sketch;

    /// The name under which users choose it.
    fn name(&self) -> &'static str;

    /// The priorities that it would give the members, in their order; the best that it finds when no
    /// priorities keep every SLO. A function of the members and their order alone.
    fn priorities(&self, server: &ServerView<'_, Self::Sketch>) -> Vec<Priority>;

    /// The latency of each member at its SLO's percentile, base latency included, seconds.
    fn latencies(
        &self,
        server: &ServerView<'_, Self::Sketch>,
        priorities: &[Priority],
    ) -> Vec<Result<f64, UndefinedLatency>>;

    /// Whether every latency is within its SLO. Must agree with [`Self::latencies`] up to what these are rounded
    /// by, but may stop early.
    fn fits(&self, server: &ServerView<'_, Self::Sketch>, priorities: &[Priority]) -> bool {
        let latencies = self.latencies(server, priorities);
        latencies.iter().enumerate().all(|(i, latency)| latency.is_ok_and(|l| server.keeps(i, l)))
    }
}
