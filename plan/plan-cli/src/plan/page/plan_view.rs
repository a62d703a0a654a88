//! A plan as the parts of its page look at it.

use plan::planning::{ObjectiveBound, PlannedCluster, WorkloadPlace};

/// A plan with what the parts of its page share.
pub(super) struct PlanView<'a> {
    pub(super) planned: &'a PlannedCluster,
    /// Place of each workload, by index.
    places: Vec<Option<WorkloadPlace>>,
    /// Admitted workloads, those with the least slack first.
    pub(super) tightest: Vec<usize>,
}

impl<'a> PlanView<'a> {
    pub(super) fn new(planned: &'a PlannedCluster) -> Self {
        let places = planned.places();
        let mut tightest: Vec<usize> = (0..places.len()).filter(|&w| places[w].is_some()).collect();
        let view = Self { planned, places, tightest: Vec::new() };
        tightest.sort_by(|&a, &b| view.used(b).total_cmp(&view.used(a)));
        Self { tightest, ..view }
    }

    /// The place of an admitted workload.
    pub(super) fn place(&self, workload: usize) -> &WorkloadPlace {
        self.places[workload].as_ref().expect("asked for admitted workloads only")
    }

    pub(super) fn name(&self, workload: usize) -> &str {
        &self.planned.instance.workloads[workload].name
    }

    pub(super) fn slo(&self, workload: usize) -> f64 {
        self.planned.instance.workloads[workload].slo.latency.0
    }

    /// The bound of an admitted workload as a fraction of its SLO, the tightest of them if it has several.
    pub(super) fn used(&self, workload: usize) -> f64 {
        let place = self.place(workload);
        let class = self.planned.placement.servers[place.server].class;
        self.planned.instance.share_of_slos(workload, class, place.guarantee.total)
    }

    /// The SLOs of an admitted workload beside the first one.
    pub(super) fn further(&self, workload: usize) -> Vec<ObjectiveBound> {
        self.planned.further_objectives(workload, self.place(workload))
    }
}
