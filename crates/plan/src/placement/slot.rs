//! A server as placement sees it: who is on it and how full it is.

use crate::instance::Instance;
use crate::limits::{Method, Standing};

/// Predicted bound ÷ budget above which a server is passed by without solving. The prediction is a lower
/// bound when one stage dominates; the margin covers what several stages bend.
const HOPELESS: f64 = 1.01;

/// Members and what their method says of them.
#[derive(Debug, Clone)]
pub(super) struct Slot {
    pub(super) class: usize,
    /// In the order in which they came.
    pub(super) members: Vec<usize>,
    pub(super) state: Standing,
}

impl Slot {
    /// A server for these members, if they fit together.
    pub(super) fn admit(
        instance: &Instance,
        method: Method,
        class: usize,
        members: Vec<usize>,
    ) -> Option<Self> {
        let state = method.admit(instance, class, &members).ok()?;
        Some(Self { class, members, state })
    }

    /// The server with one more member, if everybody's SLO still holds.
    pub(super) fn with(&self, instance: &Instance, method: Method, workload: usize) -> Option<Self> {
        let mut members = self.members.clone();
        members.push(workload);
        Self::admit(instance, method, self.class, members)
    }

    /// What a workload costs here to first order, as a share of the server; 0 where nothing is known.
    pub(super) fn cost(&self, instance: &Instance, workload: usize) -> f64 {
        match &self.state {
            Standing::Priced { prices, .. } => {
                prices.cost(instance.budget(workload, self.class), instance.relevant(workload, self.class))
            }
            Standing::Fitted(_) => 0.0,
        }
    }

    /// Bound ÷ budget of the tightest member; 0 where nothing is known.
    pub(super) fn ratio(&self) -> f64 {
        match &self.state {
            Standing::Priced { ratio, .. } => *ratio,
            Standing::Fitted(_) => 0.0,
        }
    }

    /// Whether a change of the ratio by `added` is not worth solving for.
    pub(super) fn is_hopeless(&self, added: f64) -> bool {
        self.ratio() + added > HOPELESS
    }
}
