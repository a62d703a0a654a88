//! The search for a plan, from a cluster, its footprints and a choice of method.

use crate::cluster::{ClusterProblem, enforced_class, warn_of_preemption};
use crate::footprints::Footprints;
use crate::planning::kept::{KeptServer, kept_changes, kept_servers};
use crate::planning::names::{ServerNames, fresh_names};
use crate::planning::recipe::PlanningRecipe;
use crate::planning::solution::PlannedCluster;
use model::{FRAME, OperationError, Policy};
use operation::ProgressObserver;
use placement::{
    ClassInputs, ClassVariant, Fleet, Normalisation, Placement, PlacementOrder, PlannedServer, PlanningClass,
    PlanningProblem, PlanningWorkload, SearchEffort, WorkloadOnClass,
};
use std::time::{Duration, Instant};
use units::Bytes;
use workload::Footprint;
use workload::burst::EnvelopeReduction;
use workload::profile_file::base_latency;

/// Logarithm of the smallest best-effort request that is suggested besides none at all: 4 KiB.
const SMALLEST_REQUEST_LOG2: u32 = 12;
/// Advice takes a search for each refused workload; of more, the first get it.
const ADVISED_MAX: usize = 20;

/// Plans a cluster from its footprints; with `keep`, from the placement of that policy. Every bound of the
/// result is recomputed from the limits of all workloads on the server.
///
/// # Errors
///
/// If the cluster cannot be planned, or the kept policy does not belong to it.
///
/// # Panics
///
/// If the search returns a plan that breaks its own promise.
pub fn plan(
    problem: &ClusterProblem,
    footprints: &Footprints,
    recipe: &PlanningRecipe,
    keep: Option<&Policy>,
    observer: &dyn ProgressObserver,
) -> Result<PlannedCluster, OperationError> {
    if recipe.preemptive {
        warn_of_preemption(observer);
    }
    let instance = instance(problem, footprints, recipe)?;
    let start = cpu_time();
    let lower_bound = placement::lower_bound(&instance, recipe.method);
    let (placement, names, changed) = match keep {
        None => {
            let placement = search(&instance, recipe, lower_bound.servers, observer);
            let names = fresh_names(&instance, &placement.servers);
            (placement, names, None)
        }
        Some(policy) => {
            let (placement, names) = extend(&instance, recipe, kept_servers(policy, &instance)?);
            let changed = kept_changes(policy, &instance, &placement.servers, &names);
            (placement, names, Some(changed))
        }
    };
    let cpu = cpu_time().saturating_sub(start);
    verify(&instance, &placement.servers);
    let refused = placement.refused.iter().take(ADVISED_MAX);
    let variants = if recipe.preemptive { Vec::new() } else { class_variants(problem) };
    let advice = refused
        .map(|refusal| placement::advise(&instance, recipe.method, &placement, refusal, &variants))
        .collect();
    Ok(PlannedCluster { recipe: *recipe, instance, placement, names, advice, lower_bound, changed, cpu })
}

/// The classes with smaller best-effort requests, the largest first, with packets of a frame, and with both.
pub(crate) fn class_variants(problem: &ClusterProblem) -> Vec<ClassVariant> {
    let mut variants = Vec::new();
    for (class, (server, profile)) in problem.servers.iter().zip(&problem.profiles).enumerate() {
        let sizes = (SMALLEST_REQUEST_LOG2..u64::BITS).rev().map(|power| 1 << power).chain([0]);
        let requests: Vec<u64> = sizes.filter(|size| *size < server.best_effort_request.0).collect();
        let frame = (server.packet.0 > FRAME.0).then_some(FRAME.0);
        let mut add = |best_effort_request: Option<u64>, packet: Option<u64>| {
            let mut changed = server.clone();
            changed.best_effort_request = best_effort_request.map_or(server.best_effort_request, Bytes);
            changed.packet = packet.map_or(server.packet, Bytes);
            let inputs = ClassInputs { best_effort_request, packet };
            variants.push(ClassVariant { class, inputs, enforced: enforced_class(&changed, profile) });
        };
        requests.iter().for_each(|size| add(Some(*size), None));
        if frame.is_some() {
            add(None, frame);
            requests.iter().for_each(|size| add(Some(*size), frame));
        }
    }
    variants
}

/// Computes every bound again from the limits.
///
/// # Panics
///
/// When one is above its SLO.
pub(super) fn verify(instance: &PlanningProblem, servers: &[PlannedServer]) {
    for (number, server) in servers.iter().enumerate() {
        if let Err(broken) = server.verify(instance) {
            panic!("the plan breaks its own promise on its server {number}: {broken:?}");
        }
    }
}

/// The problem in numbers, normalised by what each class of server can do.
///
/// # Errors
///
/// When names are not unique.
pub(super) fn instance(
    problem: &ClusterProblem,
    footprints: &Footprints,
    recipe: &PlanningRecipe,
) -> Result<PlanningProblem, OperationError> {
    let mut classes = Vec::new();
    for (server, profile) in problem.servers.iter().zip(&problem.profiles) {
        let base_latency = base_latency(profile);
        let enforced = (!recipe.preemptive).then(|| enforced_class(server, profile));
        classes.push(PlanningClass {
            name: server.class.clone(),
            count: server.count,
            base_latency,
            enforced,
        });
    }
    let mut workloads = Vec::new();
    for (number, spec) in problem.workloads.iter().enumerate() {
        let mut on_class = Vec::new();
        for (class, server) in problem.servers.iter().enumerate() {
            let normalisation = Normalisation {
                network: server.network,
                safety_margin: problem.safety_margin,
                sustained: recipe.sustained,
                enforced: classes[class].enforced,
            };
            on_class.push(curves(&normalisation, footprints.get(class, number), recipe));
        }
        workloads.push(PlanningWorkload { name: spec.name.clone(), slo: spec.slo, on_class });
    }
    PlanningProblem::new(classes, workloads, PlanningProblem::MAX_RATE, PlanningProblem::SLO_FACTOR)
        .map_err(|error| OperationError::input(format_args!("{}: {error}", problem.origin.display())))
}

/// Curves reduced within what each stage can do, where the recipe says so: rates up to its capacity, bursts
/// up to the cut.
fn curves(normalisation: &Normalisation, footprint: &Footprint, recipe: &PlanningRecipe) -> WorkloadOnClass {
    let Some((segments, burst_max_s)) = recipe.reduction else { return normalisation.apply(footprint) };
    normalisation.apply_reduced(footprint, |stage, envelope| {
        let capacity = normalisation.base_units_per_s(stage) / normalisation.safety_margin;
        let within =
            EnvelopeReduction::to_segments(segments).up_to_rate(capacity).up_to_burst(burst_max_s * capacity);
        envelope.reduce_within(&within)
    })
}

/// Searches for a plan with few servers, until there are at most `goal`.
pub(super) fn search(
    instance: &PlanningProblem,
    recipe: &PlanningRecipe,
    goal: usize,
    observer: &dyn ProgressObserver,
) -> Placement {
    let start = Instant::now();
    let effort = recipe.effort.unwrap_or_else(|| SearchEffort::for_workloads(instance.workloads.len()));
    let task = observer.begin("packing", effort.evaluations_max(), "trials");
    let mut watch = |progress: placement::SearchProgress| {
        task.update(progress.spent, progress.allowed);
        task.rename(&format!("packing, now {}", progress.servers));
        recipe.time_budget.is_none_or(|budget| start.elapsed() < budget)
    };
    placement::place(instance, recipe.method, recipe.order, effort, goal, &mut watch)
}

/// Leaves the workloads of a policy where they are, removes those that are not there any more, and places
/// new ones first fit. Returns the placement with the names of its servers.
fn extend(
    instance: &PlanningProblem,
    recipe: &PlanningRecipe,
    kept: Vec<KeptServer>,
) -> (Placement, Vec<String>) {
    let fast = recipe.order == PlacementOrder::GivenFast;
    let mut fleet = Fleet::new(instance, recipe.method).skipping_full(fast);
    let mut names = ServerNames::default();
    let mut is_placed = vec![false; instance.workloads.len()];
    for KeptServer { name, server, is_whole } in kept {
        let members = server.members.clone();
        // The workloads that stay get new limits when another one leaves.
        let (number, displaced) =
            if is_whole { fleet.adopt(server) } else { fleet.open_with(server.class, &members) };
        for member in members {
            is_placed[member] = !displaced.contains(&member);
        }
        if let Some(number) = number {
            names.give(number, name);
        }
    }
    let arriving = (0..instance.workloads.len()).filter(|&workload| !is_placed[workload]);
    let refused = arriving.filter_map(|workload| fleet.arrive(workload).err()).collect();
    let (numbers, servers): (Vec<usize>, Vec<PlannedServer>) =
        fleet.into_numbered_servers().into_iter().unzip();
    let names = names.complete(instance, &numbers, &servers);
    (Placement { servers, refused }, names)
}

/// CPU time of this thread so far.
pub(super) fn cpu_time() -> Duration {
    let time = rustix::time::clock_gettime(rustix::time::ClockId::ThreadCPUTime);
    Duration::try_from(time).expect("CPU time is not negative")
}
