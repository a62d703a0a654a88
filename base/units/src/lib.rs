//! Physical quantities as types: parsed from what people write (`150ms`, `64KiB`, `1Gbps`, `99.9%`),
//! printed so that it parses back, and never mixed up.
//!
//! Integers where exactness matters (trace times and sizes, work), `f64` where analysis happens
//! (rates, computed latencies). Text forms are what files and flags carry; serde uses the same text
//! for human-facing files, while machine output states its unit in the field name (`bound_s`) and has
//! numbers ([`in_base_units`]).

mod base_units;
mod bytes;
mod count;
mod error;
mod percentile;
mod quantity;
mod time;
mod work;

pub use base_units::{BaseUnits, in_base_units};
pub use bytes::{ByteRate, Bytes};
pub use count::plural;
pub use error::ParseError;
pub use percentile::Percentile;
pub use time::{Nanos, Seconds};
pub use work::{MILLI, Work};
