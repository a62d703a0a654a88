//! Atoms of laws: exact as they come in, and as half as many bytes in tables, rounded up.

/// An amount of work and its probability.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct LawAtom {
    /// The work in seconds.
    pub work: f64,
    /// The probability of exactly this work.
    pub probability: f64,
}

/// An atom as tables keep it, rounded up.
#[derive(Debug, Clone, Copy)]
pub(super) struct StoredAtom {
    pub(super) work: f32,
    pub(super) probability: f32,
}

impl StoredAtom {
    pub(super) fn new(atom: &LawAtom) -> Self {
        Self { work: f32_up(atom.work), probability: f32_up(atom.probability) }
    }
}

/// The value as `f32`, rounded up to the next larger one where it has no exact one.
pub(super) fn f32_up(value: f64) -> f32 {
    #[allow(clippy::cast_possible_truncation, reason = "the difference is below what the tables resolve")]
    let near = value as f32;
    if f64::from(near) < value { near.next_up() } else { near }
}
