//! What a plan looks like: as JSON for machines, as a table for people, in words.

pub(crate) mod admission;
pub(crate) mod bounds;
pub(crate) mod comparison;
pub(crate) mod derivation;
pub(crate) mod experiment;
pub(crate) mod ideal;
pub(crate) mod json;
pub(crate) mod loaded;
pub(crate) mod measured;
pub(crate) mod placement;
pub(crate) mod planned;
pub(crate) mod predicted;
pub(crate) mod reproduced;
pub(crate) mod simulated;
pub(crate) mod table;
pub(crate) mod varied;
pub(crate) mod verified;
pub(crate) mod workloads;
