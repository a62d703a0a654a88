//! Flat Parquet columns: what traces and observations have in common when they are read and written.

pub(crate) mod decode;
pub(crate) mod encode;
