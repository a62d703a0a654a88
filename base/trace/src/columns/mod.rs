//! Decoding and encoding of flat Parquet columns, for traces and observations.

pub(crate) mod decode;
pub(crate) mod encode;
