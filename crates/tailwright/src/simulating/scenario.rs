//! The scenario file: stations, steps, entries and how long to run, as people write them.

use super::load::Case;
use super::text::{Service, Skew, Text};
use crate::failure::Failure;
use crate::input::read_text;
use discipline::serve::Kind;
use serde::Deserialize;
use sim::engine::{Interference, Quantity};
use sim::source::{Arrival, Law};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use units::Nanos;

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Scenario {
    pub(super) name: Option<String>,
    #[serde(default)]
    pub(super) run: RunSpec,
    #[serde(rename = "station")]
    pub(super) stations: Vec<StationSpec>,
    #[serde(default, rename = "step")]
    pub(super) steps: Vec<StepSpec>,
    #[serde(rename = "entry")]
    pub(super) entries: Vec<EntrySpec>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct RunSpec {
    pub(super) requests: Option<u64>,
    pub(super) warm_up: Option<u64>,
    pub(super) replications: Option<usize>,
    pub(super) replications_max: Option<usize>,
    pub(super) confidence: Option<f64>,
    pub(super) load: Option<f64>,
    pub(super) precision: Option<PrecisionSpec>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct PrecisionSpec {
    pub(super) of: Text<Quantity>,
    pub(super) relative: f64,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct StationSpec {
    pub(super) name: String,
    pub(super) workers: u32,
    pub(super) discipline: Text<Kind>,
    #[serde(default)]
    pub(super) switch: Nanos,
    #[serde(default)]
    pub(super) dispatch: Nanos,
    pub(super) interference: Option<InterferenceSpec>,
}

#[derive(Debug, Clone, Copy, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct InterferenceSpec {
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
pub(super) struct StepSpec {
    pub(super) name: Option<String>,
    pub(super) station: String,
    #[serde(default)]
    pub(super) after: Vec<String>,
    #[serde(default)]
    pub(super) delay: Nanos,
}

impl StepSpec {
    pub(super) fn name(&self) -> &str {
        self.name.as_deref().unwrap_or(&self.station)
    }
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct EntrySpec {
    pub(super) arrivals: Option<Text<Arrival>>,
    pub(super) trace: Option<PathBuf>,
    pub(super) clients: Option<u32>,
    pub(super) think: Option<Text<Law>>,
    pub(super) service: BTreeMap<String, Text<Service>>,
    #[serde(default)]
    pub(super) class: u32,
    pub(super) window: Option<u32>,
    pub(super) skew: Option<Text<Skew>>,
    #[serde(default)]
    pub(super) delay: Nanos,
}

/// Reads and checks a scenario. `load` replaces that of the file.
pub(crate) fn read(path: &Path, load: Option<f64>) -> Result<Case, Failure> {
    let text = read_text(path, "scenario")?;
    let mut scenario: Scenario =
        toml::from_str(&text).map_err(|error| fault(path, error.to_string().trim_end()))?;
    scenario.run.load = load.or(scenario.run.load);
    let stem = path.file_stem().unwrap_or_default().to_string_lossy().into_owned();
    let name = scenario.name.take().unwrap_or(stem);
    let folder = path.parent().unwrap_or(Path::new(""));
    let traces = scenario.entries.iter_mut().filter_map(|entry| entry.trace.as_mut());
    traces.for_each(|trace| *trace = folder.join(&trace));
    Case::new(name, &scenario, |message| fault(path, message))
}

fn fault(path: &Path, message: &str) -> Failure {
    Failure::bad_input(format_args!("{}: {message}", path.display()))
        .hint("docs/simulate.md describes a scenario; `tailwright simulate --help` shows one")
}
