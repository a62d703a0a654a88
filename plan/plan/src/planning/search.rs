//! The search for a plan, from a cluster, its footprints and a choice of method.

use crate::cluster::{
    ClusterProblem, PlacedWorkload, broken_rule, enforced_class, placement_rules, prices, server_number,
    warn_of_preemption,
};
use crate::footprints::Footprints;
use crate::planning::fleet::{FleetPrices, MissingServers};
use crate::planning::hosts::client_places;
use crate::planning::kept::{KeptServer, check_kept_rules, kept_changes, kept_servers};
use crate::planning::names::{ServerNames, names_of};
use crate::planning::recipe::PlanningRecipe;
use crate::planning::solution::PlannedCluster;
use model::{FRAME, Op, OperationError, Policy, WorkloadSpec};
use operation::ProgressObserver;
use placement::{
    CheapestFleet, ClassInputs, ClassVariant, Fleet, FurtherSlo, LowerBound, Normalisation, Placement,
    PlacementOrder, PlacementRefusal, PlannedServer, PlanningClass, PlanningProblem, PlanningWorkload,
    SearchEffort, SuggestedChange, WorkloadOnClass,
};
use std::time::{Duration, Instant};
use units::{Bytes, Seconds};
use workload::Footprint;
use workload::burst::EnvelopeReduction;

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
    let mut alone = Vec::new();
    let (placement, names, changed) = match keep {
        None => {
            let found = search(&instance, recipe, &lower_bound, observer);
            let names = names_of(&instance, &found.placement);
            alone = found.alone;
            (found.placement, names, None)
        }
        Some(policy) => {
            check_kept_rules(policy, problem)?;
            let (placement, names) = extend(&instance, recipe, kept_servers(policy, &instance)?);
            let changed = kept_changes(policy, &instance, &placement.servers, &names);
            (placement, names, Some(changed))
        }
    };
    let cpu = cpu_time().saturating_sub(start);
    verify(problem, &instance, &placement.servers, &names);
    let advice = advice(problem, &instance, recipe, &placement);
    let mut fleet = FleetPrices::new(&instance, &placement, &alone, lower_bound.price);
    if let Some(fleet) = fleet.as_mut().filter(|_| keep.is_none()) {
        fleet.missing = missing_servers(&instance, recipe, &placement, observer);
    }
    Ok(PlannedCluster {
        recipe: *recipe,
        instance,
        placement,
        names,
        host_networks: problem
            .hosts
            .iter()
            .map(|host| (host.name.clone(), host.network.bytes_per_sec()))
            .collect(),
        advice,
        lower_bound,
        fleet,
        changed,
        cpu,
    })
}

/// Changes that would admit each of the first refused workloads.
pub(super) fn advice(
    problem: &ClusterProblem,
    instance: &PlanningProblem,
    recipe: &PlanningRecipe,
    placement: &Placement,
) -> Vec<Vec<SuggestedChange>> {
    let refused = placement.refused.iter().take(ADVISED_MAX);
    let variants = if recipe.preemptive { Vec::new() } else { class_variants(problem) };
    // No change of servers admits a workload that the links of its host cannot serve.
    let is_served = |workload: usize| instance.clients.get(workload).is_none_or(|it| it.served().is_some());
    let advise = |refusal: &PlacementRefusal| {
        if is_served(refusal.workload) {
            placement::advise(instance, recipe.method, placement, refusal, &variants)
        } else {
            Vec::new()
        }
    };
    refused.map(advise).collect()
}

/// The classes with smaller best-effort requests, the largest first, with packets of a frame, and with both.
pub(crate) fn class_variants(problem: &ClusterProblem) -> Vec<ClassVariant> {
    let mut variants = Vec::new();
    for (class, (server, profile)) in problem.servers.iter().zip(&problem.profiles).enumerate() {
        let sizes = (SMALLEST_REQUEST_LOG2..u64::BITS).rev().map(|power| 1 << power).chain([0]);
        let requests: Vec<u64> = sizes.filter(|size| *size < server.best_effort_request.0).collect();
        // With client hosts, the packets of other links count as well.
        let frame = (server.packet.0 > FRAME.0 && problem.hosts.is_empty()).then_some(FRAME.0);
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

/// Computes every bound again from the limits, and checks by their names that the servers keep the rules of the cluster
/// file.
///
/// # Panics
///
/// When a bound is above its SLO, or a rule is broken.
pub(super) fn verify(
    problem: &ClusterProblem,
    instance: &PlanningProblem,
    servers: &[PlannedServer],
    names: &[String],
) {
    let members = servers.iter().map(|server| (server.class, server.members.as_slice()));
    verify_rules(problem, members, names);
    for (number, server) in servers.iter().enumerate() {
        if let Err(broken) = server.verify(instance) {
            panic!("the plan breaks its own promise on its server {number}: {broken:?}");
        }
    }
}

/// Checks by their names that servers of these classes with these members keep the rules of the cluster file.
///
/// # Panics
///
/// When a rule is broken.
pub(super) fn verify_rules<'a>(
    problem: &ClusterProblem,
    servers: impl Iterator<Item = (usize, &'a [usize])>,
    names: &[String],
) {
    let mut placed = Vec::new();
    for ((class, members), server) in servers.zip(names) {
        placed.extend(members.iter().map(|&workload| PlacedWorkload {
            workload: &problem.workloads[workload],
            server,
            class: &problem.servers[class],
        }));
    }
    if let Some(broken) = broken_rule(problem.failure_domain.as_deref(), &placed) {
        panic!("the plan breaks a rule of the cluster file: {broken}");
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
        let enforced = (!recipe.preemptive).then(|| enforced_class(server, profile));
        classes.push(PlanningClass { name: server.class.clone(), count: server.count, enforced });
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
            let workload = curves(&normalisation, footprints.get(class, number), recipe);
            on_class.push(workload.with_base_latency(&problem.profiles[class]));
        }
        workloads.push(PlanningWorkload { name: spec.name.clone(), slo: spec.slo, on_class });
    }
    let further = workloads.iter().zip(&problem.workloads);
    let further = further.map(|(workload, spec)| further_slos(problem, workload, spec)).collect();
    let rules =
        placement_rules(&problem.servers, problem.failure_domain.as_deref(), problem.workloads.iter());
    let mut instance =
        PlanningProblem::new(classes, workloads, PlanningProblem::MAX_RATE, PlanningProblem::SLO_FACTOR)
            .map_err(|error| OperationError::input(format_args!("{}: {error}", problem.origin.display())))?
            .with_further_slos(further)
            .with_rules(rules);
    // The bytes that cross a link are the same for every class.
    let on_link = |link: &Normalisation, number| curves(link, footprints.get(0, number), recipe);
    let clients = client_places(problem, recipe.sustained, &instance, on_link);
    if !clients.is_empty() {
        instance = instance.with_clients(clients);
    }
    let prices = prices(&problem.servers);
    if !prices.is_empty() {
        instance = instance.with_prices(prices);
    }
    Ok(instance)
}

/// Returns the SLOs of a workload beside the first one.
///
/// A guarantee is the sum of waiting, the service of the workload's largest request, and the latency of the idle storage
/// stack. The first two bound every request, whatever its direction; only the idle stack's latency is known by direction.
/// So the guarantee of reads is shorter by the difference between the idle latency of the workload's slowest requests
/// and that of its reads.
fn further_slos(
    problem: &ClusterProblem,
    workload: &PlanningWorkload,
    spec: &WorkloadSpec,
) -> Vec<FurtherSlo> {
    let shorter_by = |requests: Option<Op>| {
        let mut by_class = Vec::with_capacity(workload.on_class.len());
        for (on, profile) in workload.on_class.iter().zip(&problem.profiles) {
            let longest = Seconds(on.largest_request);
            let of_requests =
                requests.map_or(on.base_latency, |op| profile.base_latency_of_op_within(op, longest).0);
            by_class.push(on.base_latency - of_requests);
        }
        by_class
    };
    let further = spec.further_slos.iter();
    further.map(|&slo| FurtherSlo { slo, shorter_by: shorter_by(slo.requests) }).collect()
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

/// Searches for a plan with few servers, or with cheap ones where they have prices, until it is at the bound. Without
/// prices, no class alone is compared.
pub(super) fn search(
    instance: &PlanningProblem,
    recipe: &PlanningRecipe,
    goal: &LowerBound,
    observer: &dyn ProgressObserver,
) -> CheapestFleet {
    let start = Instant::now();
    let effort = recipe.effort.unwrap_or_else(|| SearchEffort::for_workloads(instance.workloads.len()));
    let task = observer.begin("packing", effort.evaluations_max(), "trials");
    let mut watch = |progress: placement::SearchProgress| {
        task.update(progress.spent, progress.allowed);
        task.rename(&format!("packing, now {}", progress.servers));
        recipe.time_budget.is_none_or(|budget| start.elapsed() < budget)
    };
    let PlanningRecipe { method, order, .. } = *recipe;
    if instance.prices.is_empty() {
        let placement = placement::place(instance, method, order, effort, goal.servers, &mut watch);
        return CheapestFleet { placement, alone: Vec::new() };
    }
    placement::place_cheapest(instance, method, order, effort, goal.price, &mut watch)
}

/// Returns the servers with which every workload is admitted that some class suits, by a plan with those numbers; empty if
/// none are missing or none help.
fn missing_servers(
    instance: &PlanningProblem,
    recipe: &PlanningRecipe,
    placement: &Placement,
    observer: &dyn ProgressObserver,
) -> Vec<MissingServers> {
    let lacks_servers =
        |placement: &Placement| placement.refused.iter().any(|refusal| refusal.alone.is_none());
    if instance.prices.is_empty() || !lacks_servers(placement) {
        return Vec::new();
    }
    let given: Vec<usize> = instance.classes.iter().map(|class| class.count).collect();
    let ample: Vec<usize> = given.iter().map(|count| count + instance.workloads.len()).collect();
    let goal = placement::lower_bound(&instance.with_counts(&ample), recipe.method);
    let found = search(&instance.with_counts(&ample), recipe, &goal, observer).placement;
    let mut needed = given.clone();
    for (class, count) in needed.iter_mut().enumerate() {
        let used = found.servers.iter().filter(|server| server.class == class).count();
        *count = used.max(*count);
    }
    // The search may find other servers when it has fewer to choose from.
    let checked = search(&instance.with_counts(&needed), recipe, &goal, observer).placement;
    if lacks_servers(&checked) {
        return Vec::new();
    }
    let mut missing = Vec::new();
    for (class, (needed, given)) in needed.iter().zip(&given).enumerate().filter(|(_, (n, g))| n > g) {
        let count = needed - given;
        let price = count as f64 * instance.prices[class];
        missing.push(MissingServers { class: instance.classes[class].name.clone(), count, price });
    }
    missing
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
    for (position, KeptServer { name, server, is_whole, .. }) in kept.into_iter().enumerate() {
        let members = server.members.clone();
        // A name of another form is none that a rule asks for.
        let number_in_class =
            server_number(&instance.classes[server.class].name, &name).unwrap_or(usize::MAX - position);
        // The workloads that stay get new limits when another one leaves.
        let (number, displaced) =
            if is_whole { fleet.adopt(server) } else { fleet.open_with(server.class, &members) };
        for member in members {
            is_placed[member] = !displaced.contains(&member);
        }
        if let Some(number) = number {
            fleet.give_number(number, number_in_class);
            names.give(number, name);
        }
    }
    let arriving = (0..instance.workloads.len()).filter(|&workload| !is_placed[workload]);
    let refused = arriving.filter_map(|workload| fleet.arrive(workload).err()).collect();
    let numbers: Vec<usize> = fleet.numbers_in_use().collect();
    let placement = fleet.into_placement(refused);
    let names = names.complete(instance, &numbers, &placement);
    (placement, names)
}

/// CPU time of this thread so far.
pub(super) fn cpu_time() -> Duration {
    let time = rustix::time::clock_gettime(rustix::time::ClockId::ThreadCPUTime);
    Duration::try_from(time).expect("CPU time is not negative")
}
