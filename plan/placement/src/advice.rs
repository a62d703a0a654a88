//! Changes that would admit a refused workload: the smallest sufficient one of each kind.

use crate::limits::LimitMethod;
use crate::placement::{Placement, PlacementRefusal};
use crate::problem::PlanningProblem;
use crate::rules::{Exclusion, Place, PlacementRules, RuleKind};
use crate::server::PlannedServer;
use calculus::EnforcedClass;

/// One change that on its own would admit the workload.
#[derive(Debug, Clone, PartialEq)]
pub enum SuggestedChange {
    /// Other inputs of a class of servers.
    Inputs {
        /// The inputs, as the caller has them in [`ClassVariant::inputs`].
        inputs: ClassInputs,
        /// The name of the class.
        class: String,
        /// The server it would join, by its number in the placement; `None` for an empty one.
        server: Option<usize>,
    },
    /// More servers of one class.
    MoreServers {
        /// The name of the class.
        class: String,
        /// One, and one for each workload that was refused before it for lack of servers.
        count: usize,
        /// Their price together, if servers have prices.
        price: Option<f64>,
    },
    /// One rule less on where the workload may go.
    Rule {
        /// The rule that it would not have.
        kind: RuleKind,
        /// The server it would join, by its number in the placement; `None` for an empty one.
        server: Option<usize>,
    },
    /// Fewer bytes.
    Size {
        /// The most bytes that fit.
        bytes: u64,
        /// The server it would join, by its number in the placement; `None` for an empty one.
        server: Option<usize>,
    },
    /// An SLO with a longer latency.
    Latency {
        /// The least latency that can be promised, seconds (rounded up to three digits).
        slo: f64,
        /// Factor on the latencies of all its SLOs, rounded up to three digits, if it has several; `slo` is then the first.
        factor: Option<f64>,
        /// The server it would join, by its number in the placement; `None` for an empty one.
        server: Option<usize>,
    },
    /// Less work per request or fewer requests: the workload scaled by this factor (below 1).
    Load {
        /// The largest factor that fits, rounded down to three digits.
        factor: f64,
        /// The server it would join, by its number in the placement; `None` for an empty one.
        server: Option<usize>,
    },
}

/// Inputs of a class of servers that a user may set.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ClassInputs {
    /// Bytes of the largest best-effort request, if that is to change.
    pub best_effort_request: Option<u64>,
    /// Bytes of the largest packet, if that is to change.
    pub packet: Option<u64>,
}

/// A class of servers with other inputs.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct ClassVariant {
    /// The index of the class in the problem.
    pub class: usize,
    /// The inputs that differ.
    pub inputs: ClassInputs,
    /// Non-preemptible work of the class with these inputs.
    pub enforced: EnforcedClass,
}

/// Looser SLOs are considered up to this factor.
const LOOSEST: f64 = 100.0;
/// Smaller loads are considered down to this factor.
const LIGHTEST: f64 = 0.001;
/// Looser SLOs are tried in this many geometric steps: a looser SLO may rank behind another workload, so
/// what fits does not grow steadily with it, and bisection alone could miss the first that fits.
const STEPS: i32 = 32;
/// The number of bisections after that: enough for three digits.
const BISECTIONS: usize = 10;
/// The number of servers considered, the emptiest first; a change that suits none of them suits hardly any other.
const SERVERS: usize = 32;

/// The changes that would admit a workload that a placement refused, the cheapest first. Empty when nothing simple
/// does. Each was tried. The first of the `variants` of a class that suffices is named.
pub fn advise(
    problem: &PlanningProblem,
    method: LimitMethod,
    placement: &Placement,
    refusal: &PlacementRefusal,
    variants: &[ClassVariant],
) -> Vec<SuggestedChange> {
    let advisor = Advisor::new(problem, method, placement, refusal.workload);
    let mut changes = advisor.other_inputs(variants);
    changes.extend(advisor.looser_slo());
    changes.extend(advisor.lighter_load());
    changes.extend(fewer_rules(problem, method, placement, refusal.workload));
    if refusal.alone.is_none() {
        let joins = unplaced_unit(&problem.rules, placement, refusal.workload);
        let mut classes = problem.classes_by_price().into_iter();
        let takes = |class: &usize| {
            let number = problem.classes[*class].count + 1;
            let place = Place::Numbered { class: *class, number };
            problem.rules.exclusion(placement, place, &joins, &[]).is_none()
                && method.assess(problem, *class, &joins).is_ok()
        };
        if let Some(class) = classes.find(takes) {
            let before = placement.refused.iter().take_while(|other| !joins.contains(&other.workload));
            let before = before.filter(|other| other.alone.is_none() && problem.rules.leads(other.workload));
            let count = 1 + before.count();
            let price = problem.prices.get(class).map(|price| count as f64 * price);
            let class = problem.classes[class].name.clone();
            changes.push(SuggestedChange::MoreServers { class, count, price });
        }
    }
    changes
}

/// The workloads that are to be placed with a refused one: those that are together with it and have no place.
fn unplaced_unit(rules: &PlacementRules, placement: &Placement, workload: usize) -> Vec<usize> {
    let is_placed = |member: usize| placement.servers.iter().any(|server| server.members.contains(&member));
    rules.unit(&workload).iter().copied().filter(|&member| !is_placed(member)).collect()
}

/// The rules of a refused workload that it would be admitted without, or with a smaller size.
fn fewer_rules(
    problem: &PlanningProblem,
    method: LimitMethod,
    placement: &Placement,
    workload: usize,
) -> Vec<SuggestedChange> {
    let mut changes = Vec::new();
    for kind in RuleKind::ALL {
        let Some(rules) = problem.rules.without(workload, kind) else { continue };
        let joins = unplaced_unit(&rules, placement, workload);
        let candidates = candidates(problem, &rules, placement, &joins);
        let mut fitting = candidates
            .iter()
            .filter(|candidate| method.assess(problem, candidate.class, &candidate.members).is_ok());
        if kind != RuleKind::Size {
            let server = fitting.next().map(|candidate| candidate.server);
            changes.extend(server.map(|server| SuggestedChange::Rule { kind, server }));
            continue;
        }
        let company = problem.rules.bytes(&joins) - problem.rules.bytes(&[workload]);
        let room = |candidate: &CandidateServer| match problem.rules.exclusion(
            placement,
            candidate.place(),
            &joins,
            &[],
        )? {
            Exclusion::Bytes { left } => Some((left.checked_sub(company)?, candidate.server)),
            _ => None,
        };
        let room = fitting.filter_map(room).filter(|(bytes, _)| *bytes > 0).max_by_key(|(bytes, _)| *bytes);
        changes.extend(room.map(|(bytes, server)| SuggestedChange::Size { bytes, server }));
    }
    changes
}

/// The servers that rules leave to workloads that join together: an empty one of each class, and the emptiest in use.
fn candidates(
    problem: &PlanningProblem,
    rules: &PlacementRules,
    placement: &Placement,
    joins: &[usize],
) -> Vec<CandidateServer> {
    let mut candidates = Vec::new();
    let mut add = |candidate: CandidateServer| {
        if rules.exclusion(placement, candidate.place(), joins, &[]).is_none() {
            candidates.push(candidate);
        }
    };
    for class in 0..problem.classes.len() {
        let used = placement.servers.iter().filter(|s| s.class == class).count();
        if used < problem.classes[class].count {
            add(CandidateServer { server: None, class, members: joins.to_vec() });
        }
    }
    for number in by_mean_rate(problem, placement).into_iter().take(SERVERS) {
        let server = &placement.servers[number];
        let mut members = server.members.clone();
        members.extend(joins);
        add(CandidateServer { server: Some(number), class: server.class, members });
    }
    candidates
}

/// A workload without a place, on the server that could take it with the least latency.
#[derive(Debug, Clone)]
pub struct RefusedPlace {
    /// The problem in which that latency is its SLO.
    pub problem: PlanningProblem,
    /// The server with the workload.
    pub server: PlannedServer,
    /// The server's number in the placement; `None` for an empty one.
    pub number: Option<usize>,
}

/// Returns the place that a refused workload would have with the least SLO that `advise` names; `None` if no SLO
/// admits it.
pub fn place_refused(
    problem: &PlanningProblem,
    method: LimitMethod,
    placement: &Placement,
    workload: usize,
) -> Option<RefusedPlace> {
    let advisor = Advisor::new(problem, method, placement, workload);
    let SuggestedChange::Latency { slo, server: number, .. } = advisor.looser_slo()? else { return None };
    let problem = problem.with_slo(workload, slo);
    let joins = unplaced_unit(&problem.rules, placement, workload);
    let candidates = candidates(&problem, &problem.rules, placement, &joins);
    let mut candidates = candidates.into_iter().filter(|candidate| candidate.server == number);
    let server = candidates.find_map(|it| method.fit(&problem, it.class, it.members).ok())?;
    Some(RefusedPlace { problem, server, number })
}

/// A server that could take the workload.
#[derive(Debug, Clone)]
struct CandidateServer {
    /// The server's number in the placement; `None` for an empty server.
    server: Option<usize>,
    class: usize,
    /// The workloads that it would have, the refused one and those that come with it last.
    members: Vec<usize>,
}

impl CandidateServer {
    fn place(&self) -> Place {
        self.server.map_or(Place::Empty { class: self.class }, Place::On)
    }
}

/// Looks for changes on a problem of its own, of the workloads that matter, because it is varied many times.
struct Advisor {
    problem: PlanningProblem,
    method: LimitMethod,
    workload: usize,
    candidates: Vec<CandidateServer>,
}

impl Advisor {
    fn new(problem: &PlanningProblem, method: LimitMethod, placement: &Placement, workload: usize) -> Self {
        let joins = unplaced_unit(&problem.rules, placement, workload);
        let mut candidates = candidates(problem, &problem.rules, placement, &joins);
        let mut involved: Vec<usize> =
            candidates.iter().flat_map(|candidate| candidate.members.iter().copied()).collect();
        involved.push(workload);
        involved.sort_unstable();
        involved.dedup();
        let renumbered = |w: usize| involved.binary_search(&w).expect("every member is involved");
        for member in candidates.iter_mut().flat_map(|candidate| &mut candidate.members) {
            *member = renumbered(*member);
        }
        Self { problem: problem.subset(&involved), method, workload: renumbered(workload), candidates }
    }

    /// The first server that takes the workload as `problem` describes it.
    fn first_fitting(&self, problem: &PlanningProblem) -> Option<&CandidateServer> {
        let mut candidates = self.candidates.iter();
        candidates.find(|candidate| self.method.assess(problem, candidate.class, &candidate.members).is_ok())
    }

    /// The first server that takes the workload with this latency in its SLO, seconds.
    fn first_fitting_slo(&self, slo: f64) -> Option<&CandidateServer> {
        self.first_fitting(&self.problem.with_slo(self.workload, slo))
    }

    /// The first server that takes the workload with its work multiplied by `factor`.
    fn first_fitting_load(&self, factor: f64) -> Option<&CandidateServer> {
        self.first_fitting(&self.problem.with_load(self.workload, factor))
    }

    /// The first sufficient variant of each class that changes one input, or if no single one suffices, of those that
    /// change several.
    fn other_inputs(&self, variants: &[ClassVariant]) -> Vec<SuggestedChange> {
        let mut changes = Vec::new();
        let mut found: Vec<(usize, bool)> = Vec::new();
        for variant in variants {
            let ClassInputs { best_effort_request, packet } = variant.inputs;
            let is_known = match (best_effort_request, packet) {
                (Some(_), Some(_)) => found.iter().any(|(class, _)| *class == variant.class),
                (request, _) => found.contains(&(variant.class, request.is_some())),
            };
            if is_known {
                continue;
            }
            let problem = self.problem.with_enforced(variant.class, variant.enforced);
            let mut candidates = self.candidates.iter().filter(|candidate| candidate.class == variant.class);
            let fitting = candidates.find(|at| self.method.assess(&problem, at.class, &at.members).is_ok());
            if let Some(candidate) = fitting {
                found.push((variant.class, best_effort_request.is_some()));
                changes.push(SuggestedChange::Inputs {
                    inputs: variant.inputs,
                    class: problem.classes[variant.class].name.clone(),
                    server: candidate.server,
                });
            }
        }
        changes
    }

    /// The least latency that some server can promise.
    fn looser_slo(&self) -> Option<SuggestedChange> {
        let asked = self.problem.workloads[self.workload].slo.latency.0;
        let step = LOOSEST.powf(1.0 / f64::from(STEPS));
        let mut slos = (1..=STEPS).map(|i| asked * step.powi(i));
        let mut high = slos.find(|&slo| self.first_fitting_slo(slo).is_some())?;
        let mut low = high / step;
        for _ in 0..BISECTIONS {
            let middle = (low * high).sqrt();
            if self.first_fitting_slo(middle).is_some() { high = middle } else { low = middle }
        }
        // Rounding up may cross another workload's SLO and change the order: ask once more.
        let is_one = self.problem.further_slos(self.workload).is_empty();
        let factor = three_digits(high / asked, f64::ceil);
        let rounded = if is_one { three_digits(high, f64::ceil) } else { asked * factor };
        for (slo, factor) in [(rounded, factor), (high, high / asked)] {
            if let Some(candidate) = self.first_fitting_slo(slo) {
                let factor = (!is_one).then_some(factor);
                return Some(SuggestedChange::Latency { slo, factor, server: candidate.server });
            }
        }
        None
    }

    /// The largest share of the load that some server takes.
    fn lighter_load(&self) -> Option<SuggestedChange> {
        let mut low = LIGHTEST;
        let mut high = 1.0;
        self.first_fitting_load(low)?;
        for _ in 0..BISECTIONS {
            let middle = 0.5 * (low + high);
            if self.first_fitting_load(middle).is_some() { low = middle } else { high = middle }
        }
        for factor in [three_digits(low, f64::floor), low] {
            if let Some(candidate) = self.first_fitting_load(factor) {
                return Some(SuggestedChange::Load { factor, server: candidate.server });
            }
        }
        None
    }
}

/// The servers of a placement by their number, the one with the least mean rate first.
fn by_mean_rate(problem: &PlanningProblem, placement: &Placement) -> Vec<usize> {
    let mut by_rate: Vec<(f64, usize)> = Vec::with_capacity(placement.servers.len());
    for (number, server) in placement.servers.iter().enumerate() {
        let largest_rates = server.members.iter().map(|&w| {
            let rates = problem.workloads[w].on_class[server.class].mean_rate;
            rates.iter().map(|(_, rate)| *rate).fold(0.0, f64::max)
        });
        by_rate.push((largest_rates.sum(), number));
    }
    by_rate.sort_by(|a, b| a.0.total_cmp(&b.0).then(a.1.cmp(&b.1)));
    by_rate.into_iter().map(|(_, number)| number).collect()
}

/// Rounds to three significant digits.
fn three_digits(value: f64, direction: fn(f64) -> f64) -> f64 {
    let scale = 10f64.powf(2.0 - value.log10().floor());
    direction(value * scale) / scale
}
