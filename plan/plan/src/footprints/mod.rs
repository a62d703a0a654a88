//! What every workload asks of every class of server: its trace read once, and kept by content.

mod cache;
mod read;

pub use read::{Footprints, characterise};
