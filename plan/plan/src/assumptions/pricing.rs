//! Price of dependence: servers and bounds with all workloads independent, and with groups that burst
//! together.

use crate::prediction::{ModelName, PredictionProblem, WorkloadBound, place, predict_bounds};
use operation::ProgressObserver;

/// Price of the groups under one model.
#[derive(Debug)]
pub struct ModelPrice {
    /// The model that places and bounds.
    pub model: ModelName,
    /// Servers needed with all workloads independent, of as many as there are workloads.
    pub servers_independent: usize,
    /// Servers needed with the groups.
    pub servers_grouped: usize,
    /// Workloads without a place, without and with groups.
    pub refused: [usize; 2],
    /// The latency of each workload when all share one server.
    pub workloads: Vec<WorkloadPrice>,
}

/// Price of the groups for one workload, with all workloads on one server.
#[derive(Debug, Clone, Copy)]
pub struct WorkloadPrice {
    /// Index into the workloads of the problem.
    pub workload: usize,
    /// Its bound, seconds, when all are independent; infinite without one.
    pub independent_s: f64,
    /// Its bound, seconds, with the groups.
    pub grouped_s: f64,
}

/// Prices the groups, given as the group of each workload, under each model; groups that the problem came with do not
/// count.
pub fn price(
    problem: &PredictionProblem,
    groups: &[usize],
    models: &[ModelName],
    observer: &dyn ProgressObserver,
) -> Vec<ModelPrice> {
    let independent: Vec<usize> = (0..problem.cluster.workloads.len()).collect();
    let without: Vec<GroupedAnswer> =
        models.iter().map(|model| answer(problem, &independent, *model, observer)).collect();
    let with: Vec<GroupedAnswer> =
        models.iter().map(|model| answer(problem, groups, *model, observer)).collect();
    let mut prices = Vec::with_capacity(models.len());
    for ((&model, without), with) in models.iter().zip(without).zip(with) {
        let workloads = without.bounds.iter().zip(&with.bounds).map(|(independent, grouped)| WorkloadPrice {
            workload: independent.workload,
            independent_s: independent.seconds(),
            grouped_s: grouped.seconds(),
        });
        prices.push(ModelPrice {
            model,
            servers_independent: without.servers,
            servers_grouped: with.servers,
            refused: [without.refused, with.refused],
            workloads: workloads.collect(),
        });
    }
    prices
}

/// Answer of a model under some groups.
struct GroupedAnswer {
    servers: usize,
    refused: usize,
    bounds: Vec<WorkloadBound>,
}

fn answer(
    problem: &PredictionProblem,
    groups: &[usize],
    model: ModelName,
    observer: &dyn ProgressObserver,
) -> GroupedAnswer {
    let mut workloads = problem.cluster.workloads.clone();
    for (workload, group) in workloads.iter_mut().zip(groups) {
        workload.group = *group;
    }
    let everybody: Vec<usize> = (0..workloads.len()).collect();
    let mut grouped = problem.with_workloads(workloads);
    grouped.cluster.servers[0].count = everybody.len();
    let placement = place(&grouped, model, &|| false, observer);
    let bounds = predict_bounds(&grouped, &everybody, &[model], None, observer);
    GroupedAnswer {
        servers: placement.packing.servers.len(),
        refused: placement.packing.refused.len(),
        bounds,
    }
}
