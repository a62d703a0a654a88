//! The planning question as plain numbers.

use calculus::ArrivalCurve;
use model::{PerStage, Slo};
use std::collections::BTreeSet;
use std::fmt;

/// Identical servers.
#[derive(Debug, Clone, PartialEq)]
pub struct Class {
    /// Unique.
    pub name: String,
    /// How many there are.
    pub count: usize,
    /// Latency of a request on the idle storage stack at the promised percentile, seconds; it is added
    /// to every queueing bound (thesis §2.3.2).
    pub base_latency: f64,
}

/// A workload as it looks on one class of server.
#[derive(Debug, Clone, PartialEq)]
pub struct OnClass {
    /// Normalised by the class's stage capacities; safety margin included.
    pub curves: PerStage<ArrivalCurve>,
    /// Mean rate at each stage, fraction of capacity (for the average-rate baseline).
    pub mean_rate: PerStage<f64>,
}

/// A workload that asks for a guarantee.
#[derive(Debug, Clone, PartialEq)]
pub struct Workload {
    /// Unique.
    pub name: String,
    /// What it asks for.
    pub slo: Slo,
    /// One entry per class, in the order of [`Instance::classes`].
    pub on: Vec<OnClass>,
}

/// Servers, workloads and the two constants of the method.
#[derive(Debug, Clone, PartialEq)]
pub struct Instance {
    /// Kinds of server; new servers are taken from the first class that has one left.
    pub classes: Vec<Class>,
    /// In order of arrival.
    pub workloads: Vec<Workload>,
    /// Σ r at a stage never exceeds this fraction of capacity.
    pub max_rate: f64,
    /// Bounds stay below this fraction of the SLO.
    pub slo_factor: f64,
    /// By class, then workload: curves cut to the bursts that the workload's own SLO allows.
    relevant: Vec<Vec<PerStage<ArrivalCurve>>>,
}

/// An instance that cannot be planned.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct InstanceError(String);

impl fmt::Display for InstanceError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for InstanceError {}

impl Instance {
    /// Rates up to this fraction of capacity are handed out unless the caller says otherwise.
    pub const MAX_RATE: f64 = 0.999;
    /// Bounds stay below this fraction of the SLO unless the caller says otherwise.
    pub const SLO_FACTOR: f64 = 0.999;

    /// Checks that names are unique and every workload is described on every class.
    ///
    /// `max_rate` and `slo_factor` are [`Instance::MAX_RATE`] and [`Instance::SLO_FACTOR`] unless the
    /// caller has a reason.
    pub fn new(
        classes: Vec<Class>,
        workloads: Vec<Workload>,
        max_rate: f64,
        slo_factor: f64,
    ) -> Result<Self, InstanceError> {
        if let Some(name) = repeated(classes.iter().map(|c| c.name.as_str())) {
            return Err(InstanceError(format!("server class '{name}' is given twice; names must be unique")));
        }
        if let Some(name) = repeated(workloads.iter().map(|w| w.name.as_str())) {
            return Err(InstanceError(format!("workload '{name}' is given twice; names must be unique")));
        }
        assert!(workloads.iter().all(|w| w.on.len() == classes.len()), "one description per class");
        let mut instance = Self { classes, workloads, max_rate, slo_factor, relevant: Vec::new() };
        let of_class = |class| (0..instance.workloads.len()).map(|w| instance.cut(w, class)).collect();
        instance.relevant = (0..instance.classes.len()).map(of_class).collect();
        Ok(instance)
    }

    fn cut(&self, workload: usize, class: usize) -> PerStage<ArrivalCurve> {
        let budget = self.budget(workload, class).max(0.0);
        self.workloads[workload].on[class].curves.map(|curve| curve.within_burst(budget))
    }

    /// Some of the workloads, in this order.
    pub(crate) fn subset(&self, workloads: &[usize]) -> Self {
        Self {
            classes: self.classes.clone(),
            workloads: workloads.iter().map(|&w| self.workloads[w].clone()).collect(),
            relevant: self
                .relevant
                .iter()
                .map(|of| workloads.iter().map(|&w| of[w].clone()).collect())
                .collect(),
            ..*self
        }
    }

    /// The instance with another latency in one workload's SLO, seconds (positive).
    pub(crate) fn with_slo(&self, workload: usize, latency: f64) -> Self {
        let mut changed = self.clone();
        changed.workloads[workload].slo.latency.0 = latency;
        changed.cut_anew(workload)
    }

    /// The instance with one workload's work multiplied by `factor`.
    pub(crate) fn with_load(&self, workload: usize, factor: f64) -> Self {
        let mut changed = self.clone();
        for on in &mut changed.workloads[workload].on {
            on.curves = on.curves.map(|curve| curve.scaled(factor));
            on.mean_rate = on.mean_rate.map(|rate| rate * factor);
        }
        changed.cut_anew(workload)
    }

    fn cut_anew(mut self, workload: usize) -> Self {
        for class in 0..self.classes.len() {
            self.relevant[class][workload] = self.cut(workload, class);
        }
        self
    }

    /// The workload's curves on a class, cut to the bursts that its own SLO allows: no limits above them
    /// can be part of any plan, so optimisation looks no further.
    pub(crate) fn relevant(&self, workload: usize, class: usize) -> &PerStage<ArrivalCurve> {
        &self.relevant[class][workload]
    }

    /// What queueing may take of a workload's SLO on a class, seconds; may be negative.
    pub fn budget(&self, workload: usize, class: usize) -> f64 {
        self.workloads[workload].slo.latency.0 * self.slo_factor - self.classes[class].base_latency
    }

    /// Servers over all classes.
    pub fn server_count(&self) -> usize {
        self.classes.iter().map(|c| c.count).sum()
    }
}

/// The first name that was seen before.
fn repeated<'a>(mut names: impl Iterator<Item = &'a str>) -> Option<&'a str> {
    let mut seen = BTreeSet::new();
    names.find(|name| !seen.insert(*name))
}
