//! Pages for a browser. Each decides what is said in which order; `plot` decides how it looks.
//!
//! The same answer gives the same page, but for the last line of its small print, which says when it was made.

pub(crate) mod bounds;
mod curves;
pub(crate) mod experiment;
pub(crate) mod inspected;
mod latency;
mod made;
pub(crate) mod observed;
pub(crate) mod placement;
mod plan_view;
pub(crate) mod planned;
pub(crate) mod reproduced;
mod servers;
mod shares;
pub(crate) mod simulated;
mod table;
mod tables;
pub(crate) mod varied;
pub(crate) mod verified;
