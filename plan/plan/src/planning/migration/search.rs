//! The search for steps between two policies of a cluster.

use crate::cluster::{ClusterProblem, ClusterSource, stored};
use crate::footprints::characterise;
use crate::planning::migration::copies::PacedCopies;
use crate::planning::migration::document::{MigrationPlan, PolicyMove, StageKind};
use crate::planning::migration::fleet::{Fleet, forgotten};
use crate::planning::migration::stage::StageInputs;
use crate::planning::recipe::PlanningRecipe;
use crate::planning::search::instance;
use model::{OperationError, Policy};
use operation::{Notice, ProgressObserver};
use placement::migration::{ChangeRefusal, MigrationProblem, MigrationRefusal, StuckReason, migrate};
use placement::{FitRefusal, LimitMethod, PlannedServer, PlanningProblem};
use std::collections::BTreeMap;
use units::{ByteRate, Bytes, Seconds};

/// Policies to get from and to.
#[derive(Debug, Clone, Copy)]
pub struct MigrationQuestion<'a> {
    pub source: &'a ClusterSource,
    pub old: &'a Policy,
    pub new: &'a Policy,
    /// The highest rate of a copy.
    pub copy_rate: ByteRate,
    /// The size of its requests.
    pub copy_request: Bytes,
}

/// Finds steps between two policies of a cluster.
///
/// # Errors
///
/// If a file cannot be read, or a policy does not belong to the cluster.
pub fn plan_migration(
    question: &MigrationQuestion<'_>,
    observer: &dyn ProgressObserver,
) -> Result<MigrationPlan, OperationError> {
    let problem = ClusterProblem::read(question.source, observer)?;
    if !problem.hosts.is_empty() {
        return Err(OperationError::input(format_args!(
            "{}: there are client hosts ([[host]]), whose links a migration does not count",
            problem.origin.display()
        ))
        .hint("leave out [[host]] and `host` if no link of a client's host is a bottleneck"));
    }
    let recipe = PlanningRecipe::of(LimitMethod::Exact);
    let footprints = characterise(&problem, observer)?;
    let instance = instance(&problem, &footprints, &recipe)?;
    let task = observer.begin("looking for steps", 1, "migrations");
    let fleet = Fleet::new(&problem, &instance, [question.old, question.new])?;
    for workload in fleet.moved_without_size(&problem) {
        observer.notice(Notice::Note(format!(
            "workload '{workload}' moves and has no `size` in the cluster file: how long its copy takes is unknown"
        )));
    }
    let plan = find_steps(&fleet, &problem, &instance, question);
    task.advance();
    Ok(plan)
}

/// Asks for the steps, and describes them.
fn find_steps(
    fleet: &Fleet,
    problem: &ClusterProblem,
    instance: &PlanningProblem,
    question: &MigrationQuestion<'_>,
) -> MigrationPlan {
    let specs = &problem.workloads;
    let copies = PacedCopies { problem, instance, rate: question.copy_rate, request: question.copy_request };
    let keeps_rules = |members: &[Vec<usize>]| fleet.broken_rule(problem, members).is_none();
    let mut groups: BTreeMap<&str, usize> = BTreeMap::new();
    let mut together = Vec::new();
    for spec in specs {
        let next = groups.len();
        together.push(spec.together.as_deref().map(|group| *groups.entry(group).or_insert(next)));
    }
    let servers = MigrationProblem {
        instance,
        servers: fleet.changes.clone(),
        bytes: specs.iter().map(|spec| spec.size.map_or(0, |size| size.0)).collect(),
        together,
        keeps_rules: &keeps_rules,
        copies: &copies,
    };
    let name = |workload: usize| specs[workload].name.clone();
    let changes = |is_leaving: bool| {
        let changes = (0..specs.len()).filter(|&workload| {
            let [here, there] = [fleet.home(workload, is_leaving), fleet.home(workload, !is_leaving)];
            here.is_some() && there.is_none()
        });
        changes.map(name).collect::<Vec<String>>()
    };
    let mut leaving = changes(true);
    leaving.extend(forgotten(problem, question.old));
    let moves = fleet.moves(specs.len()).into_iter().map(|(workload, from, to)| PolicyMove {
        workload: name(workload),
        from: fleet.names[from].clone(),
        to: fleet.names[to].clone(),
        bytes: specs[workload].size.map(|size| size.0),
    });
    let moves: Vec<PolicyMove> = moves.collect();
    let mut plan = MigrationPlan {
        found: true,
        reason: None,
        bytes: moves.iter().filter_map(|it| it.bytes).sum(),
        moves,
        renamed: fleet.renamed.clone(),
        leaving,
        arriving: changes(false),
        broken_before: Vec::new(),
        steps: Vec::new(),
        copies_s: None,
    };
    match migrate(&servers) {
        Ok(migration) => {
            plan.broken_before = migration.broken_before.iter().map(|&workload| name(workload)).collect();
            let mut before: Vec<PlannedServer> =
                fleet.changes.iter().map(|change| change.before.clone()).collect();
            for (at, step) in migration.steps.iter().enumerate() {
                let stage = StageInputs {
                    names: &fleet.names,
                    new: question.new,
                    copies: &copies,
                    migration: &migration,
                    step,
                };
                plan.steps.push(stage.stage(at + 1, &before));
                before.clone_from(&step.servers);
            }
            let copying = plan.steps.iter().filter(|step| step.kind == StageKind::Copy);
            plan.copies_s = copying.map(|step| step.takes_s).sum();
        }
        Err(refusal) => {
            plan.found = false;
            plan.reason = Some(words(fleet, problem, &refusal));
        }
    }
    plan
}

/// Says why there are no steps, and what would help.
fn words(fleet: &Fleet, problem: &ClusterProblem, refusal: &MigrationRefusal) -> String {
    let name = |server: usize| fleet.names[server].as_str();
    match refusal {
        MigrationRefusal::Unreachable { server, reason } => format!(
            "the limits of '{}' cannot become the new ones while hosts have either: {}; a looser SLO or another new \
                 plan may help",
            name(*server),
            change_words(*reason)
        ),
        MigrationRefusal::Stuck { remaining, reason } => {
            let (workload, from, to) = remaining[0];
            let first = &problem.workloads[workload].name;
            let why = match reason {
                StuckReason::NoRoom { server } => {
                    format!("'{}' has no room for it and its slowest copy", name(*server))
                }
                StuckReason::NoCapacity { server } => format!(
                    "'{}' cannot store its {} beside what is there",
                    name(*server),
                    stored(problem.workloads[workload].size.map_or(0, |size| size.0))
                ),
                StuckReason::Unreachable { server, reason } => format!(
                    "the limits of '{}' cannot change for it while hosts have either: {}",
                    name(*server),
                    change_words(*reason)
                ),
                StuckReason::Rule => "a rule of the cluster file would be broken meanwhile".to_owned(),
            };
            let more = match remaining.len() {
                1 => String::new(),
                count => format!(", and {} more cannot move either", count - 1),
            };
            format!(
                "'{first}' cannot move from '{}' to '{}' ({why}){more}; a server without workloads that may be used \
                     meanwhile may help (`count` of its class), or a plan with fewer moves (`plan --keep`)",
                name(from),
                name(to)
            )
        }
    }
}

fn change_words(reason: ChangeRefusal) -> String {
    match reason {
        ChangeRefusal::Priorities => {
            "workloads would change their priority relative to each other, because there are more SLOs than priorities"
                .to_owned()
        }
        ChangeRefusal::Promise(FitRefusal::Capacity { stage, .. }) => format!("{stage} would be overloaded"),
        ChangeRefusal::Promise(FitRefusal::Latency { slo, stage, .. }) => {
            format!("an SLO of {} would not hold, mostly because of {stage}", Seconds(slo))
        }
        ChangeRefusal::Promise(FitRefusal::NoLimits) => "no limits keep all SLOs".to_owned(),
        ChangeRefusal::Promise(FitRefusal::BaseLatency { slo, .. }) => {
            format!("an SLO of {} is shorter than the latency of the idle server", Seconds(slo))
        }
    }
}
