//! Footprints: the demand of every workload on every class of server. Each trace is read once and cached by
//! content.

mod cache;
mod read;
mod stored;

pub use read::{Footprints, characterise};
