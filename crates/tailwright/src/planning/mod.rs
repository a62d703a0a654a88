//! From a [`Problem`] and a choice of method to a plan: the only place that calls `plan`.

mod explain;
mod policy;
mod recipe;

pub(crate) use explain::{Explanation, Neighbour, StageStep, explain};
pub(crate) use policy::{policy_of, read as read_policy, stage_limit};
pub(crate) use recipe::{MethodArgs, Recipe, recipe_of_policy};

use crate::input::{Footprints, Problem, base_latency};
use crate::terminal;
use model::{OperationError, PerStage, Policy};
use plan::{
    Fleet, Guarantee, LowerBound, Normalisation, Placement, PlacementOrder, PlannedServer, PlanningClass,
    PlanningProblem, PlanningWorkload, SearchEffort, SuggestedChange, WorkloadOnClass,
};
use std::time::{Duration, Instant};
use workload::Footprint;
use workload::burst::Reduction;

/// Advice takes a search for each refused workload; of more, the first get it.
const ADVISED_MAX: usize = 20;

/// A plan and what it took.
#[derive(Debug)]
pub(crate) struct Planned {
    pub(crate) recipe: Recipe,
    pub(crate) instance: PlanningProblem,
    pub(crate) placement: Placement,
    /// Names of the servers in use, in the order of the placement.
    pub(crate) names: Vec<String>,
    /// By refused workload, what would admit it; empty for those beyond the first few.
    pub(crate) advice: Vec<Vec<SuggestedChange>>,
    pub(crate) lower_bound: LowerBound,
    /// Servers whose limits are not those of the policy that was kept; `None` without one.
    pub(crate) changed: Option<Vec<String>>,
    /// CPU time of placement, limits and lower bound.
    pub(crate) cpu: Duration,
}

/// A workload's place in a plan.
#[derive(Debug, Clone)]
pub(crate) struct Place {
    /// Index into the placement's servers.
    pub(crate) server: usize,
    pub(crate) guarantee: Guarantee,
}

impl Planned {
    /// By workload of the instance: where it is and what it is promised; `None` for refused ones.
    pub(crate) fn places(&self) -> Vec<Option<Place>> {
        let mut places = vec![None; self.instance.workloads.len()];
        for (number, server) in self.placement.servers.iter().enumerate() {
            for guarantee in server.guarantees(&self.instance) {
                let workload = guarantee.workload;
                places[workload] = Some(Place { server: number, guarantee });
            }
        }
        places
    }

    /// How many workloads have a guarantee.
    pub(crate) fn admitted(&self) -> usize {
        self.instance.workloads.len() - self.placement.refused.len()
    }

    /// The admitted workload whose bound is closest to its SLO.
    pub(crate) fn tightest(&self) -> Option<usize> {
        let guarantees = self.placement.servers.iter().flat_map(|server| server.guarantees(&self.instance));
        let ratio = |g: &Guarantee| g.total / self.instance.workloads[g.workload].slo.latency.0;
        guarantees.max_by(|a, b| ratio(a).total_cmp(&ratio(b))).map(|g| g.workload)
    }

    /// Mean load of a server by stage, fraction of capacity.
    pub(crate) fn mean_load(&self, server: &PlannedServer) -> PerStage<f64> {
        let of = |w: &usize, stage| self.instance.workloads[*w].on_class[server.class].mean_rate[stage];
        PerStage::from_fn(|stage| server.members.iter().map(|w| of(w, stage)).sum())
    }
}

/// Builds the question in numbers.
pub(crate) fn instance(
    problem: &Problem,
    footprints: &Footprints,
    recipe: &Recipe,
) -> Result<PlanningProblem, OperationError> {
    let classes = problem.cluster.servers.iter().zip(&problem.profiles).map(|(server, profile)| {
        PlanningClass { name: server.class.clone(), count: server.count, base_latency: base_latency(profile) }
    });
    let describe = |workload: usize| {
        let on = |class: usize| {
            let normalisation = Normalisation {
                network: problem.cluster.servers[class].network,
                safety_margin: problem.cluster.safety_margin,
                sustained: recipe.sustained,
            };
            curves(&normalisation, footprints.of(class, workload), recipe)
        };
        let spec = &problem.cluster.workloads[workload];
        PlanningWorkload {
            name: spec.name.clone(),
            slo: spec.slo,
            on_class: (0..problem.cluster.servers.len()).map(on).collect(),
        }
    };
    let workloads = (0..problem.cluster.workloads.len()).map(describe).collect();
    PlanningProblem::new(classes.collect(), workloads, PlanningProblem::MAX_RATE, PlanningProblem::SLO_FACTOR)
        .map_err(|error| OperationError::input(format_args!("{}: {error}", problem.origin.display())))
}

/// Curves reduced within what each stage can do, where the recipe says so: rates up to its capacity, bursts
/// up to the cut.
fn curves(normalisation: &Normalisation, footprint: &Footprint, recipe: &Recipe) -> WorkloadOnClass {
    let Some((segments, burst_max_s)) = recipe.reduction else { return normalisation.apply(footprint) };
    normalisation.apply_reduced(footprint, |stage, envelope| {
        let capacity = normalisation.base_units_per_s(stage) / normalisation.safety_margin;
        let within = Reduction::to(segments).up_to_rate(capacity).up_to_burst(burst_max_s * capacity);
        envelope.reduce_within(&within)
    })
}

/// Plans a problem from its footprints; with `keep`, from the placement that this policy has.
pub(crate) fn plan(
    problem: &Problem,
    footprints: &Footprints,
    recipe: &Recipe,
    keep: Option<&Policy>,
) -> Result<Planned, OperationError> {
    let instance = instance(problem, footprints, recipe)?;
    let start = cpu_time();
    let lower_bound = plan::lower_bound(&instance, recipe.method);
    let (placement, names, changed) = match keep {
        None => {
            let placement = search(&instance, recipe, lower_bound.servers);
            let names = policy::fresh_names(&instance, &placement.servers);
            (placement, names, None)
        }
        Some(policy) => keep_placement(&instance, recipe, policy)?,
    };
    let cpu = cpu_time().saturating_sub(start);
    for (server, name) in placement.servers.iter().zip(&names) {
        if let Err(broken) = server.verify(&instance) {
            panic!("the plan breaks its own promise on {name}: {broken:?}");
        }
    }
    let advise = |refusal| plan::advise(&instance, recipe.method, &placement, refusal);
    let advice = placement.refused.iter().take(ADVISED_MAX).map(advise).collect();
    Ok(Planned { recipe: *recipe, instance, placement, names, advice, lower_bound, changed, cpu })
}

fn search(instance: &PlanningProblem, recipe: &Recipe, goal: usize) -> Placement {
    let start = Instant::now();
    let effort = recipe.effort.unwrap_or_else(|| SearchEffort::for_workloads(instance.workloads.len()));
    let bar = terminal::progress(effort.evaluations_max(), "packing", "trials");
    let mut watch = |progress: plan::SearchProgress| {
        bar.set_length(progress.allowed);
        bar.set_position(progress.spent);
        bar.set_message(format!("packing, now {}", progress.servers));
        recipe.time_budget.is_none_or(|budget| start.elapsed() < budget)
    };
    let placement = plan::place(instance, recipe.method, recipe.order, effort, goal, &mut watch);
    bar.finish_and_clear();
    placement
}

type Kept = (Placement, Vec<String>, Option<Vec<String>>);

/// Leaves the workloads of a policy where they are, removes those that are gone, and places new ones
/// first fit.
fn keep_placement(
    instance: &PlanningProblem,
    recipe: &Recipe,
    policy: &Policy,
) -> Result<Kept, OperationError> {
    let fast = recipe.order == PlacementOrder::GivenFast;
    let mut fleet = Fleet::new(instance, recipe.method).skipping_full(fast);
    let mut names = policy::Names::default();
    let mut at_home = vec![false; instance.workloads.len()];
    for policy::KeptServer { name, server, is_whole } in policy::servers_of(policy, instance)? {
        let members = server.members.clone();
        // Who stays gets new limits when somebody left.
        let (number, displaced) =
            if is_whole { fleet.adopt(server) } else { fleet.open_with(server.class, &members) };
        members.iter().for_each(|&w| at_home[w] = !displaced.contains(&w));
        if let Some(number) = number {
            names.give(number, name);
        }
    }
    let arriving = (0..instance.workloads.len()).filter(|&w| !at_home[w]);
    let refused = arriving.filter_map(|w| fleet.arrive(w).err()).collect();
    let (numbers, servers): (Vec<usize>, Vec<PlannedServer>) =
        fleet.into_numbered_servers().into_iter().unzip();
    let names = names.complete(instance, &numbers, &servers);
    let changed = policy::changed(policy, instance, &servers, &names);
    Ok((Placement { servers, refused }, names, Some(changed)))
}

/// CPU time of this thread so far.
fn cpu_time() -> Duration {
    let time = rustix::time::clock_gettime(rustix::time::ClockId::ThreadCPUTime);
    Duration::try_from(time).expect("CPU time is not negative")
}
