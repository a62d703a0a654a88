//! How few servers any placement could use.

use crate::instance::Instance;
use crate::limits::Method;

/// No placement of all workloads that could be admitted uses fewer servers.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct LowerBound {
    /// The bound before rounding up.
    pub fractional: f64,
    /// The bound.
    pub servers: usize,
}

/// A bound for placements whose limits `method` chooses; workloads that fit on no empty server are left
/// out of it.
pub fn lower_bound(_instance: &Instance, _method: Method) -> LowerBound {
    LowerBound { fractional: 0.0, servers: 0 }
}
