//! Rounding outward, the same for all bounds.

/// Moves a computed value outward by more than the rounding of the few operations behind it.
pub fn round_up(value: f64) -> f64 {
    value * (1.0 + 8.0 * f64::EPSILON)
}
