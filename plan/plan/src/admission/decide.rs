//! A stream of arrivals and departures, decided one after the other.

use crate::admission::events::{AdmissionEvent, everybody_arrives, read_events};
use crate::cluster::{PlacedWorkload, broken_rule, placement_rules};
use crate::prediction::{
    ModelName, PredictionProblem, PredictionSource, ProcedureName, ProcedureVisitor, TracedWorkload,
    WorkloadAssignment, admission_host, applicants, assignment_policy, describe_prediction_refusal,
    promised_slo, server_name,
};
use crate::refusal::RefusedWorkload;
use model::{OperationError, Policy, WorkloadSpec};
use operation::ProgressObserver;
use placement::admission::{AdmissionController, AdmissionGuarantee, AdmissionProcedure, StageCurves};
use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;
use std::time::{Duration, Instant};

/// Arrivals and departures to decide on.
#[derive(Debug, Clone)]
pub struct AdmissionQuestion {
    /// Servers and workloads.
    pub source: PredictionSource,
    /// Rule that must hold for all workloads after each arrival.
    pub procedure: ProcedureName,
    /// File of arrivals and departures; without it all workloads arrive, in the order of the input.
    pub events: Option<PathBuf>,
}

/// A decision on one event.
#[derive(Debug)]
pub struct AdmissionDecision {
    pub event: AdmissionEvent,
    /// The answer to it.
    pub answer: AdmissionAnswer,
    /// Wall time of the decision.
    pub elapsed: Duration,
}

/// The answer to an event.
#[derive(Debug)]
pub enum AdmissionAnswer {
    /// All who arrive go to the server of this number.
    Accepted(usize),
    /// No arrival of the group is admitted, and why.
    Refused(String),
    /// The workload has left its server.
    Departed,
    /// The workload was not there to depart.
    Absent,
}

/// All decisions, and who is there in the end.
#[derive(Debug)]
pub struct AdmissionOutcome {
    /// The rule that decided.
    pub procedure: ProcedureName,
    /// The decisions, in the order of the events.
    pub decisions: Vec<AdmissionDecision>,
    /// Guarantees of the workloads present, by server and order of arrival.
    pub guarantees: Vec<AdmissionGuarantee>,
    /// Wall time of making sketches of the traces.
    pub sketching: Duration,
}

impl AdmissionOutcome {
    /// The number of servers that have a workload in the end.
    pub fn servers_used(&self) -> usize {
        self.guarantees.iter().map(|guaranteed| guaranteed.server).collect::<BTreeSet<usize>>().len()
    }

    /// Workloads that are not there and were refused when they last asked, with the reason.
    pub fn refused(&self, problem: &PredictionProblem) -> Vec<RefusedWorkload> {
        let mut refused = Vec::new();
        for (index, TracedWorkload { spec, .. }) in problem.cluster.workloads.iter().enumerate() {
            // A workload that is present and arrives again is refused the second place only.
            if self.guarantees.iter().any(|guaranteed| guaranteed.name == spec.name) {
                continue;
            }
            if let Some(AdmissionAnswer::Refused(why)) = self.last_answer(index) {
                refused.push(RefusedWorkload {
                    index,
                    workload: spec.name.clone(),
                    slo: spec.slo,
                    reason: why.clone(),
                    remedies: Vec::new(),
                });
            }
        }
        refused
    }

    /// Returns the workloads that are present and were refused a second place.
    pub fn refused_again(&self, problem: &PredictionProblem) -> Vec<usize> {
        let is_there = |name: &str| self.guarantees.iter().any(|guaranteed| guaranteed.name == name);
        let is_refused = |workload: &usize| {
            is_there(&problem.spec(*workload).name)
                && matches!(self.last_answer(*workload), Some(AdmissionAnswer::Refused(_)))
        };
        (0..problem.cluster.workloads.len()).filter(is_refused).collect()
    }

    /// The answer to a workload when it last asked for a place.
    fn last_answer(&self, workload: usize) -> Option<&AdmissionAnswer> {
        let mut latest_first = self.decisions.iter().rev();
        let last = latest_first.find(
            |decision| matches!(&decision.event, AdmissionEvent::Arrive(who) if who.contains(&workload)),
        );
        last.map(|decision| &decision.answer)
    }
}

/// Reads servers, workloads and events, and decides.
///
/// # Errors
///
/// When a file cannot be read, or the rule is not defined for these servers or this traffic.
pub fn admit(
    question: &AdmissionQuestion,
    observer: &dyn ProgressObserver,
) -> Result<(PredictionProblem, AdmissionOutcome), OperationError> {
    let problem = PredictionProblem::read(&question.source, observer)?;
    check_links(&problem, question.procedure)?;
    let names: Vec<&str> =
        problem.cluster.workloads.iter().map(|workload| workload.spec.name.as_str()).collect();
    let events = match &question.events {
        Some(path) => read_events(path, &names)?,
        None => {
            let order: Vec<usize> = (0..names.len()).collect();
            let groups: Vec<usize> =
                problem.cluster.workloads.iter().map(|workload| workload.group).collect();
            everybody_arrives(&order, &groups)
        }
    };
    let outcome = decide(&problem, events, question.procedure, observer);
    Ok((problem, outcome))
}

/// Checks that a rule for links alone meets nothing else, and traffic that can be counted.
fn check_links(problem: &PredictionProblem, procedure: ProcedureName) -> Result<(), OperationError> {
    if !procedure.row().is_for_links {
        return Ok(());
    }
    if problem.profile().is_some() {
        let name = procedure.name();
        return Err(OperationError::input(format_args!("{name} is defined for network links alone"))
            .hint("add --link-only, or choose another --model"));
    }
    for workload in &problem.cluster.workloads {
        if let Err(error) = StageCurves::from_trace(&workload.traffic) {
            let name = &workload.spec.name;
            return Err(OperationError::input(format_args!("workload '{name}': {error}")));
        }
    }
    Ok(())
}

/// Decides the events in their order.
pub(crate) fn decide(
    problem: &PredictionProblem,
    events: Vec<AdmissionEvent>,
    procedure: ProcedureName,
    observer: &dyn ProgressObserver,
) -> AdmissionOutcome {
    procedure.visit(problem, observer, DecideEvents { problem, events, name: procedure, observer })
}

struct DecideEvents<'a> {
    problem: &'a PredictionProblem,
    events: Vec<AdmissionEvent>,
    name: ProcedureName,
    observer: &'a dyn ProgressObserver,
}

impl ProcedureVisitor for DecideEvents<'_> {
    type Output = AdmissionOutcome;

    fn visit<P: AdmissionProcedure<Sketch: Send> + Clone>(
        self,
        procedure: P,
        sketch: impl Fn(&TracedWorkload) -> P::Sketch + Sync,
    ) -> AdmissionOutcome {
        let Self { problem, events, name, observer } = self;
        let start = Instant::now();
        let applicants = applicants(problem, 0..problem.cluster.workloads.len(), observer, sketch);
        let sketching = start.elapsed();
        let specs = || problem.cluster.workloads.iter().map(|workload| &workload.spec);
        let domain = problem.cluster.failure_domain.as_deref();
        let rules = placement_rules(&problem.cluster.servers, domain, specs());
        let mut desk = AdmissionController::new(procedure, admission_host(problem))
            .with_rules(rules, specs().map(|spec| spec.name.as_str()));
        let task = observer.begin("deciding", events.len() as u64, "events");
        let mut decisions = Vec::new();
        for event in events {
            let start = Instant::now();
            let answer = match &event {
                AdmissionEvent::Arrive(who) => {
                    let who = who.iter().map(|&workload| applicants[workload].clone());
                    match desk.arrive(who.collect()) {
                        Ok(server) => AdmissionAnswer::Accepted(server),
                        Err(why) => AdmissionAnswer::Refused(describe_prediction_refusal(problem, &why)),
                    }
                }
                AdmissionEvent::Depart(who) => match desk.depart(&applicants[*who].name) {
                    Some(_) => AdmissionAnswer::Departed,
                    None => AdmissionAnswer::Absent,
                },
            };
            task.advance();
            decisions.push(AdmissionDecision { event, answer, elapsed: start.elapsed() });
        }
        let mut guarantees = desk.guarantees();
        check_rules(problem, &guarantees);
        for guaranteed in guarantees.iter_mut().filter(|_| name == ModelName::Calibrated.into()) {
            let is_it = |workload: &TracedWorkload| workload.spec.name == guaranteed.name;
            let workload =
                problem.cluster.workloads.iter().position(is_it).expect("it came from the problem");
            let promised = promised_slo(problem, workload);
            if let (Some(slo), Ok(latency)) = (promised, &mut guaranteed.latency)
                && *latency <= slo
            {
                *latency = slo;
            }
        }
        AdmissionOutcome { procedure: name, decisions, guarantees, sketching }
    }
}

/// Checks the rules of the cluster file by names, whatever decided.
///
/// # Panics
///
/// When one is broken.
fn check_rules(problem: &PredictionProblem, guarantees: &[AdmissionGuarantee]) {
    let names: Vec<String> = guarantees.iter().map(|it| server_name(problem, it.server)).collect();
    let specs: BTreeMap<&str, &WorkloadSpec> =
        problem.cluster.workloads.iter().map(|it| (it.spec.name.as_str(), &it.spec)).collect();
    let placed = guarantees.iter().zip(&names).map(|(guaranteed, server)| PlacedWorkload {
        workload: specs[guaranteed.name.as_str()],
        server,
        class: problem.server(),
    });
    let placed: Vec<PlacedWorkload<'_>> = placed.collect();
    if let Some(broken) = broken_rule(problem.cluster.failure_domain.as_deref(), &placed) {
        panic!("an admission breaks a rule of the cluster file: {broken}");
    }
}

/// Returns the final placement as the policy that the enforcers and the simulator read.
pub fn admission_policy(problem: &PredictionProblem, outcome: &AdmissionOutcome) -> Policy {
    let mut assignments = vec![None; problem.cluster.workloads.len()];
    for guaranteed in &outcome.guarantees {
        let assignment = WorkloadAssignment {
            server: guaranteed.server,
            priority: guaranteed.priority,
            bound_s: guaranteed.latency.unwrap_or(f64::INFINITY),
        };
        let workload =
            problem.cluster.workloads.iter().position(|workload| workload.spec.name == guaranteed.name);
        assignments[workload.expect("who is there came from the problem")] = Some(Ok(assignment));
    }
    for refused in outcome.refused(problem) {
        assignments[refused.index] = Some(Err(refused.reason));
    }
    assignment_policy(problem, outcome.procedure, &assignments)
}
