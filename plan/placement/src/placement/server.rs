//! A server as placement sees it: its members, and what has been learned about other sets of members.
//!
//! Choosing limits is what placement spends its time on. Each attempt leaves prices behind (see [`Prices`]); they are
//! cutting planes that bound the ratio of any other set of members from below, and so rule out attempts that would fail.

use crate::chain::Prices;
use crate::limits::{Assessment, AssessmentRefusal, FitRefusal, FittingServer, LimitMethod};
use crate::problem::PlanningProblem;
use crate::rules::{RuledServer, RuledServers};
use crate::server::PlannedServer;
use model::PerStage;

/// A change is not tried when its predicted bound ÷ budget is above this. The prediction is a lower bound when one
/// stage dominates; the margin covers most of what several stages bend, not all.
pub(super) const HOPELESS: f64 = 1.01;
/// Decrease of that limit after each failed attempt, so that a server that refused many is not tried for
/// ever.
const STRICTER: f64 = 0.002;
/// Failed attempts are learned from when their ratio is below this: predictions are local.
const NEAR: f64 = 1.1;
/// Predictions kept per server; more cost more to look through than they save.
const CUTTING_PLANES: usize = 8;

/// A server of a placement that is still changing.
#[derive(Debug, Clone)]
pub(super) struct PlacementServer {
    pub(super) class: usize,
    /// The members in the order in which they came.
    pub(super) members: Vec<usize>,
    /// The method's knowledge about the members.
    pub(super) state: FittingServer,
    /// Its number within the class, where it has been given one.
    pub(super) number: Option<usize>,
    /// The plane that rejected last comes first: it is the most likely to reject again.
    cutting_planes: Vec<CuttingPlane>,
    /// Attempts that failed since the members last changed.
    failures: u32,
}

/// A lower bound on the server's ratio that holds for any members: each adds at least its price.
#[derive(Debug, Clone)]
struct CuttingPlane {
    /// The bound for the present members.
    least_ratio: f64,
    prices: Prices,
}

/// Workloads join a server, and others leave it.
#[derive(Debug, Clone, Copy)]
pub(super) struct MembershipChange<'a> {
    pub(super) joins: &'a [usize],
    pub(super) leave: &'a [usize],
}

impl RuledServers for [PlacementServer] {
    fn count(&self) -> usize {
        self.len()
    }

    fn at(&self, position: usize) -> RuledServer<'_> {
        let PlacementServer { class, members, number, .. } = &self[position];
        RuledServer { class: *class, members, number: *number }
    }
}

impl PlacementServer {
    /// A server for workloads that come together.
    ///
    /// # Errors
    /// When they do not even fit alone, with the reason.
    pub(super) fn open(
        problem: &PlanningProblem,
        method: LimitMethod,
        class: usize,
        workloads: &[usize],
    ) -> Result<Self, FitRefusal> {
        match Self::new(problem, method, class, workloads.to_vec()) {
            Ok(server) => Ok(server),
            Err(AssessmentRefusal::Explained(refusal)) => Err(refusal),
            // The message needs the whole reason, not just the optimiser's state when it stopped.
            Err(AssessmentRefusal::Assessed(_)) => {
                method.fit(problem, class, workloads.to_vec()).map(Self::with_limits)
            }
        }
    }

    /// A server for these members.
    ///
    /// # Errors
    /// When they do not fit together.
    pub(super) fn new(
        problem: &PlanningProblem,
        method: LimitMethod,
        class: usize,
        members: Vec<usize>,
    ) -> Result<Self, AssessmentRefusal> {
        let state = method.assess(problem, class, &members)?;
        let mut server =
            Self { class, members, state, number: None, cutting_planes: Vec::new(), failures: 0 };
        server.remember_state(problem);
        Ok(server)
    }

    /// A server without members.
    pub(super) fn empty(problem: &PlanningProblem, class: usize) -> Self {
        let queue = problem.shortest_queue(class);
        Self::with_limits(PlannedServer { class, members: Vec::new(), limits: Vec::new(), queue })
    }

    /// The server after a member has left, with limits chosen again.
    pub(super) fn without(&self, problem: &PlanningProblem, method: LimitMethod, workload: usize) -> Self {
        let mut members = self.members.clone();
        members.retain(|&m| m != workload);
        let rest = Self::new(problem, method, self.class, members).unwrap_or_else(|_| {
            // Limits that hold for all members hold for some of them, should the optimiser not find better ones.
            let mut server =
                method.fit(problem, self.class, self.members.clone()).expect("the members were admitted");
            let position = server.members.iter().position(|&m| m == workload).expect("it was a member");
            server.members.remove(position);
            server.limits.remove(position);
            Self::with_limits(server)
        });
        Self { number: self.number, ..rest }
    }

    /// A server whose limits are chosen.
    pub(super) fn with_limits(server: PlannedServer) -> Self {
        let class = server.class;
        let members = server.members.clone();
        let state = FittingServer::Fitted(server);
        Self { class, members, state, number: None, cutting_planes: Vec::new(), failures: 0 }
    }

    /// Makes the change if every SLO holds after it; otherwise learns from the attempt. Says whether it was made.
    pub(super) fn try_change(
        &mut self,
        problem: &PlanningProblem,
        method: LimitMethod,
        change: MembershipChange,
    ) -> bool {
        let mut members = self.members.clone();
        members.retain(|member| !change.leave.contains(member));
        members.extend(change.joins);
        self.failures += 1;
        match method.assess(problem, self.class, &members) {
            Ok(state) => {
                for plane in &mut self.cutting_planes {
                    plane.least_ratio += plane.prices.cost_of_change(problem, self.class, change);
                }
                (self.members, self.state, self.failures) = (members, state, 0);
                self.remember_state(problem);
                true
            }
            Err(AssessmentRefusal::Assessed(Assessment { ratio, prices })) if ratio < NEAR => {
                self.remember(problem, prices);
                false
            }
            Err(_) => false,
        }
    }

    /// A lower bound on bound ÷ budget after the change, to first order; 0 where nothing is known.
    pub(super) fn predict(&self, problem: &PlanningProblem, change: MembershipChange) -> f64 {
        let planes = self.cutting_planes.iter();
        planes.map(|plane| plane.ratio_after(problem, self.class, change)).fold(0.0, f64::max)
    }

    /// Returns true if a prediction rules the change out.
    pub(super) fn is_hopeless(&mut self, problem: &PlanningProblem, change: MembershipChange) -> bool {
        let class = self.class;
        let hopeless = HOPELESS - STRICTER * f64::from(self.failures);
        let mut planes = self.cutting_planes.iter();
        match planes.position(|plane| plane.ratio_after(problem, class, change) > hopeless) {
            Some(position) => {
                self.cutting_planes.swap(0, position);
                true
            }
            None => false,
        }
    }

    /// Learns from what the method says of the present members.
    fn remember_state(&mut self, problem: &PlanningProblem) {
        if let FittingServer::Assessed(Assessment { prices, .. }) = &self.state {
            let prices = prices.clone();
            self.remember(problem, prices);
        }
    }

    /// Inserts a plane of these prices in front, and drops the last one if there are enough.
    fn remember(&mut self, problem: &PlanningProblem, prices: Prices) {
        let members = self.members.iter();
        let cost: f64 = members.map(|&w| prices.cost_of_workload(problem, self.class, w)).sum();
        let least_ratio = prices.least_without_members() + cost;
        self.cutting_planes.truncate(CUTTING_PLANES - 1);
        self.cutting_planes.insert(0, CuttingPlane { least_ratio, prices });
    }
}

impl CuttingPlane {
    fn ratio_after(&self, problem: &PlanningProblem, class: usize, change: MembershipChange) -> f64 {
        self.least_ratio + self.prices.cost_of_change(problem, class, change)
    }
}

impl Prices {
    /// The least that a change adds to the ratio.
    fn cost_of_change(&self, problem: &PlanningProblem, class: usize, change: MembershipChange) -> f64 {
        let cost_of = |workloads: &[usize]| -> f64 {
            workloads.iter().map(|&w| self.cost_of_workload(problem, class, w)).sum()
        };
        cost_of(change.joins) - cost_of(change.leave)
    }

    fn cost_of_workload(&self, problem: &PlanningProblem, class: usize, workload: usize) -> f64 {
        // The server's chain already contains the work begun.
        let nothing = PerStage::default();
        self.cost(problem.budget(workload, class), problem.relevant_curves(workload, class), &nothing)
    }
}
