//! A workload that asks for a guarantee, and a server as an admission procedure sees it.

use model::{PerStage, Slo};
use std::sync::Arc;

/// A workload's strict priority at each stage; 0 is served first.
pub type Priority = PerStage<u32>;

/// A workload that asks for a guarantee.
#[derive(Debug)]
pub struct Applicant<S> {
    /// The name, unique among the workloads that a controller has admitted.
    pub name: String,
    /// The latency that the workload asks for.
    pub slo: Slo,
    /// The latency of its requests on an idle server, seconds (thesis §2.3.2); part of every prediction.
    pub base_latency: f64,
    /// Workloads of the same group may burst together; `None` is independent of all others.
    pub group: Option<u32>,
    /// The procedure's data about the workload's traffic; shared, because several controllers may use the
    /// same trace.
    pub sketch: Arc<S>,
}

// A derived implementation would ask for sketches that can be cloned, which are shared instead.
impl<S> Clone for Applicant<S> {
    fn clone(&self) -> Self {
        Self { name: self.name.clone(), sketch: Arc::clone(&self.sketch), ..*self }
    }
}

/// Workloads that share a server, or would share it, in the order in which they came.
#[derive(Debug)]
pub struct SharedServer<'a, S> {
    /// All workloads of the server, the newcomers last.
    pub members: &'a [&'a Applicant<S>],
    /// Latencies stay below this fraction of the SLO.
    pub slo_factor: f64,
    /// Maximum number of priority levels at a stage of the server, at least 1.
    pub levels_max: usize,
}

impl<S> SharedServer<'_, S> {
    /// The longest latency that a member may see, base latency included, seconds.
    pub fn allowed(&self, member: usize) -> f64 {
        self.members[member].slo.latency.0 * self.slo_factor
    }

    /// Returns the part of [`Self::allowed`] left for queueing, seconds; may be negative.
    pub fn budget(&self, member: usize) -> f64 {
        self.allowed(member) - self.members[member].base_latency
    }

    /// Returns true if a latency is a number that keeps the member's SLO.
    pub fn keeps(&self, member: usize, latency: f64) -> bool {
        (0.0..=self.allowed(member)).contains(&latency)
    }

    /// A number for each member's group. It depends on the group's number alone, and on the name of an
    /// independent member: whichever workloads come or go, a model that draws random numbers by group draws the same.
    pub fn groups(&self) -> Vec<usize> {
        let mut groups = Vec::with_capacity(self.members.len());
        for member in self.members {
            groups.push(match member.group {
                Some(group) => fnv_1a(group.to_le_bytes()),
                None => fnv_1a(b"independent:".iter().copied().chain(member.name.bytes())),
            });
        }
        groups
    }
}

/// The hash FNV-1a: the same on every machine of the same width, and different for different bytes in all but one of
/// 2^64 pairs. Two groups with the same hash would be taken for dependent, which is the safe side.
fn fnv_1a(bytes: impl IntoIterator<Item = u8>) -> usize {
    let mut hash = 0xcbf2_9ce4_8422_2325_u64;
    for byte in bytes {
        hash = (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3);
    }
    #[allow(clippy::cast_possible_truncation, reason = "narrower machines have fewer groups")]
    let number = hash as usize;
    number
}
