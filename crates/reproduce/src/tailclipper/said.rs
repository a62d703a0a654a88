//! Claims about one scheduler beside another, as tables of what is said.

use super::grid::{At, Grid, Measure};
use crate::claim::{Claim, Expected, change};

/// What is said of a figure with one scheduler beside another.
pub(super) struct Said {
    /// The claim; what is ours and not the paper's begins so.
    pub(super) said: &'static str,
    pub(super) expected: Expected,
    /// What the two have in common.
    pub(super) at: &'static At<'static>,
    /// The scheduler, and the one that it is compared with.
    pub(super) pair: [&'static str; 2],
    pub(super) measure: Measure,
    /// What the paper leaves open and what decides.
    pub(super) open: Option<&'static str>,
}

/// ORF and what stands for Shinjuku.
pub(super) const ROUND_ROBIN: [&str; 2] = ["orf", "round-robin"];
/// ORF and what stands for CFS.
pub(super) const FAIR: [&str; 2] = ["orf", "fair"];
/// ORF and its cap without age.
pub(super) const LIMITED: [&str; 2] = ["orf", "limited"];

/// With verdicts; a claim about something that has no figures is left out.
pub(super) fn judged(grid: &Grid, said: &[Said]) -> Vec<Claim> {
    said.iter().filter_map(|said| judge(grid, said)).collect()
}

fn judge(grid: &Grid, said: &Said) -> Option<Claim> {
    let found = grid.change(said.at, "scheduler", said.pair, said.measure)?;
    let claim = Claim::new(said.said, said.expected, found, change);
    Some(match said.open {
        Some(open) => claim.underspecified(open),
        None => claim,
    })
}

/// A printed change in percent, to a twentieth of it.
pub(super) fn about(change: f64) -> Expected {
    Expected::About { value: change, within: 0.05 }
}
