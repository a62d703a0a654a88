//! Claims about one scheduler compared with another, written as tables.

use super::scenario_runs::{Measure, ScenarioRuns, VariantChoices};
use crate::claim::{Claim, ClaimSource, Expected, format_change};

/// A claim about the change of a measure from one scheduler to another.
pub(super) struct ComparisonClaim {
    pub(super) statement: &'static str,
    /// The rule for the relative change.
    pub(super) expected: Expected,
    /// The values that both variants have on the other axes.
    pub(super) choices: &'static VariantChoices<'static>,
    /// The scheduler, and the one that it is compared with.
    pub(super) pair: [&'static str; 2],
    pub(super) measure: Measure,
    pub(super) source: ClaimSource,
    /// Point left open by the paper that decides the claim, if there is one.
    pub(super) open: Option<&'static str>,
    /// Why it is otherwise here, in case it is; empty when that is not known.
    pub(super) why: &'static str,
}

/// ORF compared with the model of Shinjuku.
pub(super) const ROUND_ROBIN: [&str; 2] = ["orf", "round-robin"];
/// ORF compared with the model of CFS.
pub(super) const FAIR: [&str; 2] = ["orf", "fair"];
/// ORF compared with its cap without age.
pub(super) const LIMITED: [&str; 2] = ["orf", "limited"];

/// Compares these claims with the runs. A claim about variants that have no figures is left out.
pub(super) fn compare(runs: &ScenarioRuns, claims: &[ComparisonClaim]) -> Vec<Claim> {
    let mut compared = Vec::new();
    for ComparisonClaim { statement, expected, choices, pair, measure, source, open, why } in claims {
        let Some(change) = runs.change(choices, "scheduler", *pair, *measure) else { continue };
        let claim = Claim::new(statement, *expected, change, format_change).with_source(*source);
        compared.push(match open {
            Some(open) => claim.underspecified(open),
            None => claim.because(why),
        });
    }
    compared
}

/// A printed number, read to a twentieth of it.
pub(super) fn within_a_twentieth(value: f64) -> Expected {
    Expected::About { value, within: 0.05 }
}
