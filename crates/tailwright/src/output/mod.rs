//! What a plan looks like: as JSON for machines, as a table for people, in words.

pub(crate) mod admission;
pub(crate) mod bounds;
pub(crate) mod comparison;
pub(crate) mod derivation;
pub(crate) mod experiment;
pub(crate) mod ideal;
pub(crate) mod json;
pub(crate) mod measured;
pub(crate) mod placement;
pub(crate) mod predicted;
pub(crate) mod reproduced;
pub(crate) mod simulated;
pub(crate) mod table;
pub(crate) mod varied;
pub(crate) mod verified;
pub(crate) mod words;
pub(crate) mod workloads;

use units::Seconds;

/// A time as people read it.
pub(crate) fn time(seconds: f64) -> String {
    Seconds(seconds).to_string()
}

/// A fraction as a percentage with three digits that mean something.
pub(crate) fn percent(fraction: f64) -> String {
    let value = fraction * 100.0;
    let decimals = match value.abs() {
        v if v >= 9.995 => 1,
        v if v >= 0.9995 => 2,
        _ => 3,
    };
    format!("{value:.decimals$}%")
}
