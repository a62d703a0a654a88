//! The scenario file as deserialised: stations, steps, entries and the length of the run.

use crate::server::{ScenarioWorkloadSpec, ServerSpec};
use crate::step_service::StepService;
use crate::text_field::{Skew, TextField};
use crate::times_source::TimesSource;
use crate::vary::VarySpec;
use arrivals::ArrivalPattern;
use discipline::serve::DisciplineSpec;
use serde::Deserialize;
use sim::engine::{Interference, LatencyStatistic};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use units::Nanos;

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Scenario {
    pub(crate) name: Option<String>,
    #[serde(default)]
    pub(crate) run: RunSpec,
    #[serde(default, rename = "station")]
    pub(crate) stations: Vec<StationSpec>,
    #[serde(default, rename = "step")]
    pub(crate) steps: Vec<StepSpec>,
    #[serde(default, rename = "class")]
    pub(crate) classes: Vec<ClassSpec>,
    /// The policy with the SLOs of classes that have none here.
    pub(crate) slos: Option<PathBuf>,
    pub(crate) call_graph: Option<CallGraphSpec>,
    #[serde(default, rename = "entry")]
    pub(crate) entries: Vec<EntrySpec>,
    pub(crate) server: Option<ServerSpec>,
    #[serde(default, rename = "workload")]
    pub(crate) workloads: Vec<ScenarioWorkloadSpec>,
    #[serde(default)]
    pub(crate) vary: Vec<VarySpec>,
}

impl Scenario {
    /// Makes paths relative to a folder.
    pub(crate) fn move_to(&mut self, folder: &Path) {
        self.server.iter_mut().for_each(|server| server.move_to(folder));
        self.workloads.iter_mut().for_each(|workload| workload.move_to(folder));
    }
}

#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct RunSpec {
    pub(crate) requests: Option<u64>,
    pub(crate) warm_up: Option<u64>,
    pub(crate) duration: Option<Nanos>,
    pub(crate) warm_up_duration: Option<Nanos>,
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
    pub(crate) of: TextField<LatencyStatistic>,
    pub(crate) relative: f64,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct ClassSpec {
    pub(crate) name: String,
    pub(crate) slo: Option<Nanos>,
}

/// A class as an entry or a kind names it.
#[derive(Debug, Clone, Deserialize)]
#[serde(untagged)]
pub(crate) enum ClassRef {
    Number(u32),
    Name(String),
}

/// The section `[call_graph]`: the source of recorded requests, and parameters of the stations of their
/// services.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct CallGraphSpec {
    pub(crate) spans: PathBuf,
    pub(crate) workers: u32,
    pub(crate) discipline: TextField<DisciplineSpec>,
}

#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct StationSpec {
    pub(crate) name: String,
    pub(crate) copies: Option<u32>,
    pub(crate) workers: u32,
    pub(crate) discipline: TextField<DisciplineSpec>,
    #[serde(default)]
    pub(crate) switch: Nanos,
    #[serde(default)]
    pub(crate) dispatch: Nanos,
    pub(crate) interference: Option<InterferenceSpec>,
}

impl StationSpec {
    /// A station without costs.
    pub(crate) fn new(name: &str, workers: u32, discipline: TextField<DisciplineSpec>) -> Self {
        let switch = Nanos::ZERO;
        let dispatch = Nanos::ZERO;
        Self {
            name: name.to_owned(),
            copies: None,
            workers,
            discipline,
            switch,
            dispatch,
            interference: None,
        }
    }
}

#[derive(Debug, Clone, Copy, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct InterferenceSpec {
    gap: Nanos,
    length: Nanos,
    #[serde(default)]
    requeue: bool,
}

impl From<InterferenceSpec> for Interference {
    fn from(spec: InterferenceSpec) -> Self {
        Self { gap: spec.gap, length: spec.length, requeue: spec.requeue }
    }
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct StepSpec {
    pub(crate) name: Option<String>,
    pub(crate) station: String,
    #[serde(default)]
    pub(crate) after: Vec<String>,
    pub(crate) delay: Option<TextField<TimesSource>>,
}

impl StepSpec {
    /// The name of the step, or of its station where it has none.
    pub(crate) fn name(&self) -> &str {
        self.name.as_deref().unwrap_or(&self.station)
    }
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct EntrySpec {
    pub(crate) name: Option<String>,
    pub(crate) arrivals: Option<TextField<ArrivalPattern>>,
    pub(crate) trace: Option<PathBuf>,
    pub(crate) clients: Option<u32>,
    pub(crate) think: Option<TextField<TimesSource>>,
    pub(crate) service: Option<BTreeMap<String, TextField<StepService>>>,
    pub(crate) class: Option<ClassRef>,
    #[serde(default, rename = "kind")]
    pub(crate) kinds: Vec<KindSpec>,
    pub(crate) window: Option<u32>,
    pub(crate) skew: Option<TextField<Skew>>,
    pub(crate) delay: Option<TextField<TimesSource>>,
}

#[derive(Debug, Clone, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct KindSpec {
    pub(crate) name: Option<String>,
    pub(crate) share: Option<f64>,
    pub(crate) class: Option<ClassRef>,
    pub(crate) service: BTreeMap<String, TextField<StepService>>,
}

impl EntrySpec {
    /// The kinds of the entry; service and class of the entry itself are a kind, too.
    pub(crate) fn all_kinds(&self) -> Result<Vec<KindSpec>, String> {
        match (&self.service, self.kinds.as_slice()) {
            (Some(service), []) => {
                let class = self.class.clone();
                Ok(vec![KindSpec { name: self.name.clone(), share: None, class, service: service.clone() }])
            }
            (None, [_, ..]) if self.class.is_none() => Ok(self.kinds.clone()),
            (None, [_, ..]) => Err("class: with kinds, each of them has its own".into()),
            (Some(_), _) => Err("expected either service or [[entry.kind]], found both".into()),
            (None, []) => Err("expected service, or [[entry.kind]] with service".into()),
        }
    }
}
