//! Pages for a browser. Each decides what is said in which order; `plot` decides how it looks.
//!
//! Nothing here depends on the clock: the same answer gives the same page.

pub(crate) mod bounds;
mod curves;
pub(crate) mod experiment;
pub(crate) mod inspected;
mod latency;
pub(crate) mod observed;
pub(crate) mod placement;
mod plan_view;
pub(crate) mod planned;
pub(crate) mod reproduced;
mod servers;
pub(crate) mod simulated;
mod table;
mod tables;
pub(crate) mod varied;
pub(crate) mod verified;
