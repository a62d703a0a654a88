//! What the targets share.

#[path = "../../crates/trace/tests/common/exercise.rs"]
mod exercise;

pub use exercise::exercise;
