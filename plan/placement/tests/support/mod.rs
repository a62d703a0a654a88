//! A procedure that is simple enough to know the answers, and workloads for it.

use model::{PerStage, Slo, UndefinedLatency};
use placement::admission::{AdmissionProcedure, Applicant, Priority, SharedServer};
use std::sync::Arc;

/// Every latency is the load of the server.
#[derive(Clone)]
pub(crate) struct Load;

impl AdmissionProcedure for Load {
    type Sketch = f64;

    fn name(&self) -> &'static str {
        "load"
    }

    fn priorities(&self, server: &SharedServer<'_, f64>) -> Vec<Priority> {
        vec![PerStage::from_fn(|_| 0); server.members.len()]
    }

    fn latencies(
        &self,
        server: &SharedServer<'_, f64>,
        _: &[Priority],
    ) -> Vec<Result<f64, UndefinedLatency>> {
        let load = server.members.iter().map(|member| *member.sketch).sum();
        vec![Ok(load); server.members.len()]
    }
}

/// Workloads w0, w1, … of these loads, with these SLOs in turn, seconds.
pub(crate) fn applicants(loads: &[f64], slos: &[f64]) -> Vec<Applicant<f64>> {
    let slo = |latency: f64| format!("99% < {latency}s").parse::<Slo>().expect("an SLO");
    let applicant = |(i, &load): (usize, &f64)| Applicant {
        name: format!("w{i}"),
        slo: slo(slos[i % slos.len()]),
        base_latency: 0.0,
        group: None,
        sketch: Arc::new(load),
    };
    loads.iter().enumerate().map(applicant).collect()
}

/// Repeats each load at every stage.
pub(crate) fn by_stage(loads: &[f64]) -> Vec<PerStage<f64>> {
    loads.iter().map(|&load| PerStage::from_fn(|_| load)).collect()
}
