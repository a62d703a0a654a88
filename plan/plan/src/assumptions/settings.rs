//! Assumptions and error rates of the tests.

/// Settings of the tests.
#[derive(Debug, Clone, Copy)]
pub struct AssumptionSettings {
    /// True if all traces use one clock; required to compare any two.
    pub one_clock: bool,
    /// False discovery rate of the reported pairs and of the reported changes, between 0 and 1. Also the
    /// probability of any report if there is nothing to find.
    pub false_discoveries: f64,
}
