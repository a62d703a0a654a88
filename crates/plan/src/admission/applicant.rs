//! Who asks for a guarantee, and a server as a procedure sees it.

use model::{PerStage, Slo};
use std::sync::Arc;

/// Strict priority by stage; 0 is served first.
pub type Priority = PerStage<u32>;

/// A workload that asks for a guarantee.
#[derive(Debug)]
pub struct Applicant<S> {
    /// Unique among the workloads present.
    pub name: String,
    /// What it asks for.
    pub slo: Slo,
    /// Workloads of the same group may burst together; `None` is independent of everybody.
    pub group: Option<u32>,
    /// What the procedure keeps of its traffic; shared, because many desks may look at the same trace.
    pub sketch: Arc<S>,
}

impl<S> Clone for Applicant<S> {
    fn clone(&self) -> Self {
        Self { name: self.name.clone(), sketch: Arc::clone(&self.sketch), ..*self }
    }
}

/// Workloads that would share a server, in the order in which they came.
#[derive(Debug)]
pub struct ServerView<'a, S> {
    /// Everybody, the newcomers last.
    pub members: &'a [&'a Applicant<S>],
    /// Latency of a request on the idle server, seconds; part of every prediction.
    pub base_latency: f64,
    /// Latencies stay below this fraction of the SLO.
    pub slo_factor: f64,
}

impl<S> ServerView<'_, S> {
    /// The longest latency that a member may see, base latency included, seconds.
    pub fn allowed(&self, member: usize) -> f64 {
        self.members[member].slo.latency.0 * self.slo_factor
    }

    /// What is left of [`Self::allowed`] for queueing, seconds; may be negative.
    pub fn budget(&self, member: usize) -> f64 {
        self.allowed(member) - self.base_latency
    }

    /// Whether a latency is a number that keeps the member's SLO.
    pub fn keeps(&self, member: usize, latency: f64) -> bool {
        (0.0..=self.allowed(member)).contains(&latency)
    }

    /// A number for each member's group. It depends on the group's number alone, and on the name of an
    /// independent member: whoever comes or goes, a model that draws random numbers by group draws the same.
    pub fn groups(&self) -> Vec<usize> {
        let number = |member: &&Applicant<S>| match member.group {
            Some(group) => fold(group.to_le_bytes()),
            None => fold(b"independent:".iter().copied().chain(member.name.bytes())),
        };
        self.members.iter().map(number).collect()
    }
}

/// FNV-1a: the same on every machine of the same width, and different for different bytes in all but one of
/// 2^64 pairs. Two that were not would be taken for dependent, which is the safe side.
fn fold(bytes: impl IntoIterator<Item = u8>) -> usize {
    let step = |hash: u64, byte| (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3);
    let hash = bytes.into_iter().fold(0xcbf2_9ce4_8422_2325, step);
    // Narrower machines have fewer groups.
    #[allow(clippy::cast_possible_truncation)]
    let number = hash as usize;
    number
}
