//! The scenario file: stations, steps, entries and how long to run, as people write them.

use crate::text::{Service, Skew, Text};
use crate::vary::VarySpec;
use discipline::serve::Kind;
use serde::Deserialize;
use sim::engine::{Interference, Quantity};
use sim::source::{Arrival, Law};
use std::collections::BTreeMap;
use std::path::PathBuf;
use units::Nanos;

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Scenario {
    pub(crate) name: Option<String>,
    #[serde(default)]
    pub(crate) run: RunSpec,
    #[serde(rename = "station")]
    pub(crate) stations: Vec<StationSpec>,
    #[serde(default, rename = "step")]
    pub(crate) steps: Vec<StepSpec>,
    #[serde(rename = "entry")]
    pub(crate) entries: Vec<EntrySpec>,
    #[serde(default)]
    pub(crate) vary: Vec<VarySpec>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct RunSpec {
    pub(crate) requests: Option<u64>,
    pub(crate) warm_up: Option<u64>,
    pub(crate) replications: Option<usize>,
    pub(crate) replications_max: Option<usize>,
    pub(crate) confidence: Option<f64>,
    pub(crate) load: Option<f64>,
    #[serde(default)]
    pub(crate) transient: bool,
    pub(crate) precision: Option<PrecisionSpec>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct PrecisionSpec {
    pub(crate) of: Text<Quantity>,
    pub(crate) relative: f64,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct StationSpec {
    pub(crate) name: String,
    pub(crate) workers: u32,
    pub(crate) discipline: Text<Kind>,
    #[serde(default)]
    pub(crate) switch: Nanos,
    #[serde(default)]
    pub(crate) dispatch: Nanos,
    pub(crate) interference: Option<InterferenceSpec>,
}

#[derive(Debug, Clone, Copy, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct InterferenceSpec {
    gap: Nanos,
    length: Nanos,
}

impl From<InterferenceSpec> for Interference {
    fn from(spec: InterferenceSpec) -> Self {
        Self { gap: spec.gap, length: spec.length }
    }
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct StepSpec {
    pub(crate) name: Option<String>,
    pub(crate) station: String,
    #[serde(default)]
    pub(crate) after: Vec<String>,
    #[serde(default)]
    pub(crate) delay: Nanos,
}

impl StepSpec {
    pub(crate) fn name(&self) -> &str {
        self.name.as_deref().unwrap_or(&self.station)
    }
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct EntrySpec {
    pub(crate) arrivals: Option<Text<Arrival>>,
    pub(crate) trace: Option<PathBuf>,
    pub(crate) clients: Option<u32>,
    pub(crate) think: Option<Text<Law>>,
    pub(crate) service: BTreeMap<String, Text<Service>>,
    #[serde(default)]
    pub(crate) class: u32,
    pub(crate) window: Option<u32>,
    pub(crate) skew: Option<Text<Skew>>,
    #[serde(default)]
    pub(crate) delay: Nanos,
}
