//! Flat Parquet columns: what reading and writing them has in common, whatever the rows are.

pub(crate) mod decode;
pub(crate) mod encode;
