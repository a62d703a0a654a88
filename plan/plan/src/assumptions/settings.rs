//! What the tests take for granted, and how sure they are.

/// How traces are tested.
#[derive(Debug, Clone, Copy)]
pub struct AssumptionSettings {
    /// Whether the instants of all traces count from the same origin. Without that, no two can be compared.
    pub one_clock: bool,
    /// Of the pairs, and of the changes, that are reported, the share that may on average be there by chance, between 0
    /// and 1; also the probability of reporting any where there is none.
    pub false_discoveries: f64,
}
