//! A server as placement sees it: who is on it, and what it has learned about who else could be.

use crate::chain::Prices;
use crate::instance::Instance;
use crate::limits::{Assessment, Blocked, Method, Rejection, Standing};
use crate::server::Server;

/// Predicted bound ÷ budget above which a change is not tried. The prediction is a lower bound when one
/// stage dominates; the margin covers what several stages bend.
const HOPELESS: f64 = 1.01;
/// What each failed attempt takes off that limit: a server that refused many is not asked for ever.
const STRICTER: f64 = 0.002;
/// Failed attempts are learned from when they came this close: predictions are local.
const NEAR: f64 = 1.1;
/// Predictions kept per server; more cost more to look through than they save.
const CUTS: usize = 8;

/// Members and what their method says of them.
#[derive(Debug, Clone)]
pub(super) struct Slot {
    pub(super) class: usize,
    /// In the order in which they came.
    pub(super) members: Vec<usize>,
    pub(super) state: Standing,
    /// The best prediction first among equals: whichever rejected last stands in front.
    cuts: Vec<Cut>,
    /// Attempts that failed since the members last changed.
    failures: u32,
}

/// A lower bound on the server's ratio that holds for any members: each adds at least its price.
#[derive(Debug, Clone)]
struct Cut {
    /// The bound for the present members.
    least_ratio: f64,
    prices: Prices,
}

/// One workload in, some out.
#[derive(Debug, Clone, Copy)]
pub(super) struct Change<'a> {
    pub(super) joins: usize,
    pub(super) leave: &'a [usize],
}

impl Slot {
    /// A server for one workload, or why it does not even fit alone.
    pub(super) fn open(
        instance: &Instance,
        method: Method,
        class: usize,
        workload: usize,
    ) -> Result<Self, Blocked> {
        match Self::of(instance, method, class, vec![workload]) {
            Ok(slot) => Ok(slot),
            Err(Rejection::Blocked(blocked)) => Err(blocked),
            // The user is told the whole, not what the optimiser knew when it stopped.
            Err(Rejection::Assessed(_)) => method.fit(instance, class, vec![workload]).map(Self::fitted),
        }
    }

    /// A server for these members.
    pub(super) fn of(
        instance: &Instance,
        method: Method,
        class: usize,
        members: Vec<usize>,
    ) -> Result<Self, Rejection> {
        let state = method.admit(instance, class, &members)?;
        let mut slot = Self { class, members, state, cuts: Vec::new(), failures: 0 };
        slot.remember_standing(instance);
        Ok(slot)
    }

    /// The server after a member has left, with limits chosen anew.
    pub(super) fn without(&self, instance: &Instance, method: Method, workload: usize) -> Self {
        let mut members = self.members.clone();
        members.retain(|&m| m != workload);
        Self::of(instance, method, self.class, members).unwrap_or_else(|_| {
            // Limits of a larger company hold for a smaller one, should the optimiser not find its own.
            let mut server =
                method.fit(instance, self.class, self.members.clone()).expect("the company was admitted");
            let position = server.members.iter().position(|&m| m == workload).expect("it was a member");
            server.members.remove(position);
            server.limits.remove(position);
            Self::fitted(server)
        })
    }

    /// A server whose limits are chosen.
    fn fitted(server: Server) -> Self {
        let (class, members) = (server.class, server.members.clone());
        Self { class, members, state: Standing::Fitted(server), cuts: Vec::new(), failures: 0 }
    }

    /// Makes the change if everybody's SLO holds after it; otherwise learns from the attempt.
    pub(super) fn try_change(&mut self, instance: &Instance, method: Method, change: Change) -> bool {
        let mut members: Vec<usize> =
            self.members.iter().copied().filter(|m| !change.leave.contains(m)).collect();
        members.push(change.joins);
        self.failures += 1;
        match method.admit(instance, self.class, &members) {
            Ok(state) => {
                for cut in &mut self.cuts {
                    cut.least_ratio += cut.prices.of_change(instance, self.class, change);
                }
                (self.members, self.state, self.failures) = (members, state, 0);
                self.remember_standing(instance);
                true
            }
            Err(Rejection::Assessed(Assessment { ratio, prices })) if ratio < NEAR => {
                self.remember(instance, prices);
                false
            }
            Err(_) => false,
        }
    }

    /// At least this bound ÷ budget after the change, to first order; 0 where nothing is known.
    pub(super) fn predict(&self, instance: &Instance, change: Change) -> f64 {
        let of_cut = |cut: &Cut| cut.least_ratio + cut.prices.of_change(instance, self.class, change);
        self.cuts.iter().map(of_cut).fold(0.0, f64::max)
    }

    /// Whether a prediction rules the change out.
    pub(super) fn is_hopeless(&mut self, instance: &Instance, change: Change) -> bool {
        let class = self.class;
        let hopeless = HOPELESS - STRICTER * f64::from(self.failures);
        let rejects = |cut: &Cut| cut.least_ratio + cut.prices.of_change(instance, class, change) > hopeless;
        match self.cuts.iter().position(rejects) {
            Some(position) => {
                self.cuts.swap(0, position);
                true
            }
            None => false,
        }
    }

    fn remember_standing(&mut self, instance: &Instance) {
        if let Standing::Assessed(Assessment { prices, .. }) = &self.state {
            let prices = prices.clone();
            self.remember(instance, prices);
        }
    }

    /// In front, in place of the oldest when there are enough.
    fn remember(&mut self, instance: &Instance, prices: Prices) {
        let cost = |&w: &usize| prices.cost(instance.budget(w, self.class), instance.relevant(w, self.class));
        let least_ratio = prices.floor() + self.members.iter().map(cost).sum::<f64>();
        self.cuts.truncate(CUTS - 1);
        self.cuts.insert(0, Cut { least_ratio, prices });
    }
}

impl Prices {
    /// What a change adds to the ratio at least.
    fn of_change(&self, instance: &Instance, class: usize, change: Change) -> f64 {
        let cost = |&w: &usize| self.cost(instance.budget(w, class), instance.relevant(w, class));
        cost(&change.joins) - change.leave.iter().map(cost).sum::<f64>()
    }
}
