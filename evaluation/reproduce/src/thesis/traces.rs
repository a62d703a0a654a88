//! The traces that stand in for workloads of Table 3.1.

/// The trace for A, whose gaps have a squared coefficient of variation of 1.3 in the table.
pub(super) const TRACE_A: &str = "traces/trace0039.csv.gz";
/// The trace for B, with 14 in the table.
pub(super) const TRACE_B: &str = "traces/trace0023.csv.gz";
/// The trace for C, with 2.2 in the table.
pub(super) const TRACE_C: &str = "traces/trace0042.csv.gz";
/// The trace for D, with 23 in the table.
pub(super) const TRACE_D: &str = "traces/trace0011.csv.gz";
