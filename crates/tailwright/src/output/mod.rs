//! Answers as text: tables for people, JSON for machines.

pub(crate) mod admission;
pub(crate) mod assumptions;
pub(crate) mod bounds;
pub(crate) mod call_graph;
pub(crate) mod cluster_run;
pub(crate) mod comparison;
pub(crate) mod derivation;
pub(crate) mod experiment;
mod figure;
pub(crate) mod ideal;
pub(crate) mod inspected;
pub(crate) mod json;
pub(crate) mod loaded;
pub(crate) mod measured;
pub(crate) mod observed;
pub(crate) mod placement;
pub(crate) mod planned;
pub(crate) mod predicted;
pub(crate) mod profiled;
pub(crate) mod profiled_disk;
pub(crate) mod reproduced;
pub(crate) mod simulated;
pub(crate) mod table;
pub(crate) mod varied;
pub(crate) mod verified;
pub(crate) mod workloads;
