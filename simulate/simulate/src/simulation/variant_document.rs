//! The documents of simulated scenarios: of one, and of all variants of one.

use crate::simulation::figures::{LatencyFigures, intervals};
use crate::simulation::variant::{
    ClassFigures, RequestEvenness, SimulatedVariant, StationOccupancy, VariantFigures,
};
use scenario::server::WorkloadOutcome;
use schemars::JsonSchema;
use serde::Serialize;
use std::collections::BTreeMap;

/// Everything about one experiment.
#[derive(Serialize, JsonSchema)]
pub struct VariantDocument<'a> {
    scenario: &'a str,
    seed: u64,
    replications: usize,
    confidence: f64,
    #[schemars(extend("enum" = ["done", "transient", "unstable", "imprecise"]))]
    verdict: &'static str,
    message: String,
    /// Why the bounds of its policy do not apply, where they do not: --without-bounds accepts that, or the policy is of version 1 and for several channels.
    #[serde(skip_serializing_if = "Option::is_none")]
    bounds_do_not_apply: Option<&'a str>,
    #[serde(flatten)]
    end_to_end: LatencyFigures,
    #[serde(flatten)]
    evenness: RequestEvenness,
    tiers: Vec<StationDocument<'a>>,
    /// Empty if there is only one.
    classes: Vec<ClassFigures<'a>>,
    /// Results of the workloads of a storage server.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    workloads: Vec<WorkloadOutcome>,
}

#[derive(Serialize, JsonSchema)]
struct StationDocument<'a> {
    name: &'a str,
    #[serde(flatten)]
    occupancy: StationOccupancy,
    #[serde(flatten)]
    figures: LatencyFigures,
}

/// All variants of a scenario, each with its choices.
#[derive(Serialize, JsonSchema)]
pub struct VariedDocument<'a> {
    scenario: &'a str,
    seed: u64,
    variants: Vec<VariedChoice<'a>>,
}

#[derive(Serialize, JsonSchema)]
struct VariedChoice<'a> {
    choices: BTreeMap<&'a str, &'a str>,
    #[serde(flatten)]
    found: VariantDocument<'a>,
}

impl<'a> VariedDocument<'a> {
    /// Describes the variants of a scenario.
    pub fn new(variants: &'a [SimulatedVariant], seed: u64) -> Self {
        let scenario = variants.first().map_or("", |first| first.run.case.name.as_str());
        Self { scenario, seed, variants: variants.iter().map(|variant| variant.document(seed)).collect() }
    }
}

impl SimulatedVariant {
    fn document(&self, seed: u64) -> VariedChoice<'_> {
        let choices = self.run.choices.iter().map(|choice| (choice.axis.as_str(), choice.value.as_str()));
        VariedChoice { choices: choices.collect(), found: self.figures(seed).document() }
    }
}

impl<'a> VariantFigures<'a> {
    /// Returns the figures as a document, end to end and by tier.
    pub fn document(&self) -> VariantDocument<'a> {
        let mut end_to_end = self.end_to_end();
        let evenness = self.evenness();
        end_to_end.ci.extend(intervals(&evenness.named()));
        VariantDocument {
            scenario: &self.case.name,
            seed: self.seed,
            replications: self.report.runs.len(),
            confidence: self.report.confidence,
            verdict: self.verdict(),
            message: self.message(),
            bounds_do_not_apply: self.broken_bounds,
            end_to_end,
            evenness,
            tiers: (0..self.case.network.stations.len()).map(|station| self.tier(station)).collect(),
            classes: self.classes(),
            workloads: self.workloads.clone(),
        }
    }

    fn tier(&self, station: usize) -> StationDocument<'a> {
        let mut figures = self.station(station);
        let occupancy = self.occupancy(station);
        figures.ci.extend(intervals(&occupancy.named()));
        StationDocument { name: &self.case.network.stations[station].name, occupancy, figures }
    }
}
