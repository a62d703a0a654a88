//! Choosing rate limits for the workloads that share one server.

mod exact;
mod fixed;
mod relaxed;
mod share;
#[cfg(test)]
mod tests;

use crate::chain::Prices;
use crate::instance::Instance;
use crate::server::Server;
use model::Stage;

pub(crate) use exact::chain_of;

/// A way to choose limits. All of them guarantee Eq. 5.5.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Method {
    /// Limits that minimise the largest bound ÷ SLO under Eq. 5.5 itself.
    Exact,
    /// The linear program of thesis Eq. 5.2–5.7 (WorkloadCompactor), with a general LP solver.
    Relaxed,
    /// Effective bandwidth: no bursts, the SLO split evenly over the stages (§5.3.1).
    EffectiveEven,
    /// Effective bandwidth with the split that needs the least rate at the stage that needs most; where
    /// that does not fit, the even split.
    EffectiveBest,
    /// The knee of each r-b curve, the point that minimises r + b (§5.3.1).
    Knee,
    /// `k` × the mean rate, and the burst that the curve then asks for (Silo's rule in §5.3.1).
    Average(f64),
}

/// Why the workloads do not fit together.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Blocked {
    /// The rates that the workloads need exceed this stage's capacity.
    Capacity {
        /// Where.
        stage: Stage,
        /// Σ r ÷ allowed rate, above 1.
        ratio: f64,
    },
    /// An SLO cannot be met.
    Latency {
        /// The SLO's latency that is exceeded most, seconds.
        slo: f64,
        /// Best bound found ÷ SLO budget, above 1.
        ratio: f64,
        /// The stage that contributes most to that bound.
        stage: Stage,
    },
    /// The linear program has no solution; it does not say which constraint is to blame.
    NoLimits,
    /// The idle storage stack alone is slower than the SLO allows.
    BaseLatency {
        /// The SLO's latency, seconds.
        slo: f64,
        /// The class's base latency, seconds.
        base: f64,
    },
}

impl Method {
    /// The name in files and flags.
    pub fn name(&self) -> String {
        match self {
            Self::Exact => "tailwright".into(),
            Self::Relaxed => "workload-compactor".into(),
            Self::EffectiveEven => "effective-bandwidth-even".into(),
            Self::EffectiveBest => "effective-bandwidth".into(),
            Self::Knee => "knee".into(),
            Self::Average(k) => format!("average-{k}"),
        }
    }

    /// Whether the members fit together on a server of this class; if so, the server with limits for
    /// all of them. What is returned passes [`Server::verify`].
    pub fn fit(&self, instance: &Instance, class: usize, members: Vec<usize>) -> Result<Server, Blocked> {
        check_base(instance, class, &members)?;
        let limits = match self {
            Self::Exact => exact::fit(instance, class, &members)?,
            Self::Relaxed => relaxed::fit(instance, class, &members)?,
            fixed => members.iter().map(|&w| fixed::limits(*fixed, instance, class, w)).collect(),
        };
        let server = Server { class, members, limits };
        match server.verify(instance) {
            Ok(()) => Ok(server),
            // Each workload's own best split need not be the best for all of them together.
            Err(_) if *self == Self::EffectiveBest => {
                Self::EffectiveEven.fit(instance, class, server.members)
            }
            Err(blocked) => Err(blocked),
        }
    }

    /// As [`Method::fit`], but only as much as placement needs to know.
    pub(crate) fn admit(
        &self,
        instance: &Instance,
        class: usize,
        members: &[usize],
    ) -> Result<Standing, Rejection> {
        if *self != Self::Exact {
            return self
                .fit(instance, class, members.to_vec())
                .map(Standing::Fitted)
                .map_err(Rejection::from);
        }
        check_base(instance, class, members)?;
        exact::assess(instance, class, members).map(Standing::Assessed)
    }
}

/// What placement knows of a server in use.
#[derive(Debug, Clone)]
pub(crate) enum Standing {
    /// Limits exist.
    Assessed(Assessment),
    /// Limits are chosen.
    Fitted(Server),
}

/// A set of workloads on one server, judged by its tightest bound ÷ budget.
#[derive(Debug, Clone)]
pub(crate) struct Assessment {
    /// The least ratio found.
    pub(crate) ratio: f64,
    /// What more workload would cost.
    pub(crate) prices: Prices,
}

/// A set of workloads that do not fit on one server.
#[derive(Debug, Clone)]
pub(crate) enum Rejection {
    /// The reason is known.
    Blocked(Blocked),
    /// The optimiser stopped as soon as it was sure: enough to learn from, not to tell a user.
    Assessed(Assessment),
}

impl From<Blocked> for Rejection {
    fn from(blocked: Blocked) -> Self {
        Self::Blocked(blocked)
    }
}

fn check_base(instance: &Instance, class: usize, members: &[usize]) -> Result<(), Blocked> {
    let base = instance.classes[class].base_latency;
    match members.iter().find(|&&w| instance.budget(w, class) <= 0.0) {
        Some(&w) => Err(Blocked::BaseLatency { slo: instance.workloads[w].slo.latency.0, base }),
        None => Ok(()),
    }
}
