//! Sizes of bodies.

/// Largest body of a request other than a trace, bytes.
pub const BODY_MAX: usize = 4 << 20;
/// Largest report of an agent, bytes; the counters of a workload take about 2 KiB.
pub const REPORT_MAX: usize = 64 << 20;
/// Largest trace, bytes as sent.
pub const TRACE_MAX: usize = 64 << 20;
