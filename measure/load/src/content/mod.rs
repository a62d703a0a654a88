//! Contents of writes, and their comparison with the data of reads.

mod pattern;
mod tracker;

pub(crate) use pattern::ContentPattern;
pub(crate) use tracker::{BlockSize, ContentTracker, WriteEnd};

/// The block number under which contents know a value of memcached: keys of different sizes are different values.
pub(crate) fn value_number(size: u32, key: u64) -> u64 {
    u64::from(size) << 32 | key
}
