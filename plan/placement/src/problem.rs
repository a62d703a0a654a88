//! The question that placement answers, as plain numbers: classes of servers, and workloads as arrival curves on each
//! class. Files, traces and units are left behind here; what the numbers are fractions of is said by
//! [`Normalisation`](crate::Normalisation).

use calculus::{ArrivalCurve, EnforcedClass};
use model::{PerStage, Slo, Stage};
use std::collections::BTreeSet;
use std::fmt;

/// A class of identical servers.
#[derive(Debug, Clone, PartialEq)]
pub struct PlanningClass {
    /// The name of the class; no two classes share one.
    pub name: String,
    pub count: usize,
    /// The latency of a request on the idle storage stack at the promised percentile, seconds; it is added to every
    /// queueing bound (thesis §2.3.2).
    pub base_latency: f64,
    /// Non-preemptible work of its servers. Without it, bounds are those of the published formula for
    /// preemptive servers, which do not exist; for comparison.
    pub enforced: Option<EnforcedClass>,
}

/// A workload as it looks on one class of server.
#[derive(Debug, Clone, PartialEq)]
pub struct WorkloadOnClass {
    /// The workload's arrival curve at each stage, as fractions of the stage's capacity; the safety margin is included.
    pub curves: PerStage<ArrivalCurve>,
    /// The mean rate at each stage, fraction of capacity (for the average-rate baseline).
    pub mean_rate: PerStage<f64>,
    /// The work of the largest request at the storage, seconds; the safety margin is included.
    pub largest_request: f64,
    /// The work at network-out that may overtake one of its requests at a device that serves several at a time, seconds. The
    /// curve there contains it.
    pub overtaking: f64,
}

impl WorkloadOnClass {
    /// Enlarges the curve at network-out by `overtaking` seconds of work that may overtake a request.
    #[must_use]
    pub fn with_overtaking(mut self, overtaking: f64) -> Self {
        if overtaking > 0.0 {
            let out = &mut self.curves[Stage::NetworkOut];
            *out = ArrivalCurve::sum([&*out, &ArrivalCurve::from_limits(&[(0.0, overtaking)])]);
            self.overtaking += overtaking;
        }
        self
    }
}

/// A workload that asks for a guarantee.
#[derive(Debug, Clone, PartialEq)]
pub struct PlanningWorkload {
    /// The name of the workload; no two workloads share one.
    pub name: String,
    /// The latency that it asks for.
    pub slo: Slo,
    /// The workload on each class, in the order of [`PlanningProblem::classes`].
    pub on_class: Vec<WorkloadOnClass>,
}

/// Servers and workloads, and how far capacities and SLOs may be used.
#[derive(Debug, Clone, PartialEq)]
pub struct PlanningProblem {
    /// Classes of server; a new server is taken from the first class that has one left.
    pub classes: Vec<PlanningClass>,
    /// The workloads in their order of arrival.
    pub workloads: Vec<PlanningWorkload>,
    /// Σ r at a stage never exceeds this fraction of capacity.
    pub max_rate: f64,
    /// Bounds stay below this fraction of the SLO.
    pub slo_factor: f64,
    /// The curves cut to the bursts that the workload's own SLO allows, by class and then workload.
    relevant_curves: Vec<Vec<PerStage<ArrivalCurve>>>,
}

/// Why classes and workloads make no planning problem: a name is given twice.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PlanningProblemError(String);

impl fmt::Display for PlanningProblemError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for PlanningProblemError {}

impl PlanningProblem {
    /// Rates up to this fraction of capacity are handed out unless the caller says otherwise.
    pub const MAX_RATE: f64 = 0.999;
    /// Bounds stay below this fraction of the SLO unless the caller says otherwise.
    pub const SLO_FACTOR: f64 = 0.999;

    /// A problem whose names are unique and whose workloads are each described on every class.
    ///
    /// `max_rate` and `slo_factor` are [`PlanningProblem::MAX_RATE`] and [`PlanningProblem::SLO_FACTOR`] unless the
    /// caller has a reason.
    ///
    /// # Errors
    /// When two classes or two workloads share a name.
    ///
    /// # Panics
    /// When a workload is not described once for each class.
    pub fn new(
        classes: Vec<PlanningClass>,
        workloads: Vec<PlanningWorkload>,
        max_rate: f64,
        slo_factor: f64,
    ) -> Result<Self, PlanningProblemError> {
        if let Some(name) = repeated(classes.iter().map(|c| c.name.as_str())) {
            return Err(PlanningProblemError(format!(
                "server class '{name}' is given twice; names must be unique"
            )));
        }
        if let Some(name) = repeated(workloads.iter().map(|w| w.name.as_str())) {
            return Err(PlanningProblemError(format!(
                "workload '{name}' is given twice; names must be unique"
            )));
        }
        assert!(workloads.iter().all(|w| w.on_class.len() == classes.len()), "one description per class");
        let mut problem = Self { classes, workloads, max_rate, slo_factor, relevant_curves: Vec::new() };
        for class in 0..problem.classes.len() {
            let curves = (0..problem.workloads.len()).map(|w| problem.cut_curves(w, class)).collect();
            problem.relevant_curves.push(curves);
        }
        Ok(problem)
    }

    /// The workload's curves on a class, cut to the bursts that its own SLO allows.
    fn cut_curves(&self, workload: usize, class: usize) -> PerStage<ArrivalCurve> {
        let budget = self.budget(workload, class).max(0.0);
        self.workloads[workload].on_class[class].curves.map(|curve| curve.within_burst(budget))
    }

    /// The problem with some of its workloads only, in this order.
    pub(crate) fn subset(&self, workloads: &[usize]) -> Self {
        let mut relevant_curves = Vec::with_capacity(self.classes.len());
        for curves_of_class in &self.relevant_curves {
            relevant_curves.push(workloads.iter().map(|&w| curves_of_class[w].clone()).collect());
        }
        Self {
            classes: self.classes.clone(),
            workloads: workloads.iter().map(|&w| self.workloads[w].clone()).collect(),
            relevant_curves,
            ..*self
        }
    }

    /// The problem with another latency in one workload's SLO, seconds (positive).
    pub(crate) fn with_slo(&self, workload: usize, latency: f64) -> Self {
        let mut changed = self.clone();
        changed.workloads[workload].slo.latency.0 = latency;
        changed.with_curves_cut_again(workload)
    }

    /// The problem with other non-preemptible work of a class.
    pub(crate) fn with_enforced(&self, class: usize, enforced: EnforcedClass) -> Self {
        let mut changed = self.clone();
        changed.classes[class].enforced = Some(enforced);
        changed.relevant_curves[class] =
            (0..changed.workloads.len()).map(|workload| changed.cut_curves(workload, class)).collect();
        changed
    }

    /// The problem with one workload's work multiplied by `factor`.
    pub(crate) fn with_load(&self, workload: usize, factor: f64) -> Self {
        let mut changed = self.clone();
        for description in &mut changed.workloads[workload].on_class {
            description.curves = description.curves.map(|curve| curve.scaled(factor));
            description.mean_rate = description.mean_rate.map(|rate| rate * factor);
            description.largest_request *= factor;
            description.overtaking *= factor;
        }
        changed.with_curves_cut_again(workload)
    }

    fn with_curves_cut_again(mut self, workload: usize) -> Self {
        for class in 0..self.classes.len() {
            self.relevant_curves[class][workload] = self.cut_curves(workload, class);
        }
        self
    }

    /// The workload's curves on a class, cut to the bursts that its own SLO allows: no limits above them can be part of
    /// any plan, so optimisation looks no further.
    pub(crate) fn relevant_curves(&self, workload: usize, class: usize) -> &PerStage<ArrivalCurve> {
        &self.relevant_curves[class][workload]
    }

    /// Returns the part of a workload's SLO left for queueing on a class, seconds; negative if an idle server
    /// already exceeds the SLO.
    pub fn budget(&self, workload: usize, class: usize) -> f64 {
        self.workloads[workload].slo.latency.0 * self.slo_factor - self.time_on_idle_server(workload, class)
    }

    /// Returns the time of a workload's largest request on an idle server beyond its share of the device, seconds: the
    /// latency of the idle storage stack and, if they count, its service on one channel and the proxy.
    pub(crate) fn time_on_idle_server(&self, workload: usize, class: usize) -> f64 {
        let PlanningClass { base_latency, enforced, .. } = &self.classes[class];
        base_latency
            + enforced.map_or(0.0, |enforced| enforced.own_time(self.largest_request(workload, class)))
    }

    /// The work of a workload's largest request at the storage of a class, seconds.
    pub(crate) fn largest_request(&self, workload: usize, class: usize) -> f64 {
        self.workloads[workload].on_class[class].largest_request
    }

    /// The work at network-out that may overtake a request of a workload at the device of a class, seconds.
    pub(crate) fn overtaking(&self, workload: usize, class: usize) -> f64 {
        self.workloads[workload].on_class[class].overtaking
    }

    /// The number of servers of all classes together.
    pub fn server_count(&self) -> usize {
        self.classes.iter().map(|c| c.count).sum()
    }
}

/// The first name that occurs a second time.
fn repeated<'a>(mut names: impl Iterator<Item = &'a str>) -> Option<&'a str> {
    let mut seen = BTreeSet::new();
    names.find(|name| !seen.insert(*name))
}
