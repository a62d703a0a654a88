//! What would admit a refused workload.

use crate::instance::Instance;
use crate::limits::Method;
use crate::placement::{Placement, Refusal};

/// One change that on its own would admit the workload.
#[derive(Debug, Clone, PartialEq)]
pub enum Change {
    /// One more server of this class.
    OneMoreServer {
        /// Class name.
        class: String,
    },
    /// A looser SLO.
    Latency {
        /// The least latency that can be promised, seconds (rounded up to three digits).
        slo: f64,
        /// The server it would join, by its number in the placement; `None` for an empty one.
        server: Option<usize>,
    },
    /// Less work per request or fewer requests: the workload scaled by this factor (below 1).
    Load {
        /// Largest factor that fits, rounded down to three digits.
        factor: f64,
        /// The server it would join, by its number in the placement; `None` for an empty one.
        server: Option<usize>,
    },
}

/// Changes that would admit the workload, the smallest first of each kind. Empty when nothing simple does.
pub fn advise(
    _instance: &Instance,
    _method: Method,
    _placement: &Placement,
    _refusal: &Refusal,
) -> Vec<Change> {
    Vec::new()
}
