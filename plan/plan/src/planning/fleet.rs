//! Prices of a plan: the servers of each class, what one class alone would cost, and the servers that are missing.

use placement::{OneClass, Placement, PlanningProblem};
use schemars::JsonSchema;
use serde::Serialize;

/// The servers of a plan by class, where classes have prices.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct FleetPrices {
    /// Price of all servers in use.
    pub price: f64,
    /// No servers that hold all workloads are cheaper.
    pub price_lower_bound: f64,
    /// The classes, in the order of the cluster file.
    pub classes: Vec<ClassUse>,
    /// Servers beyond those of the cluster file with which all workloads are admitted that some class suits; empty if none
    /// are missing, or more servers do not help.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub missing: Vec<MissingServers>,
}

/// Servers of one class in a plan.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct ClassUse {
    pub class: String,
    /// Price of one server.
    pub price_each: f64,
    /// Number of servers in use.
    pub servers: usize,
    /// Number of servers in the cluster file.
    pub count: usize,
    /// Price of the servers in use.
    pub price: f64,
    /// Plan with servers of this class alone, as many as it takes; absent with --keep.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub alone: Option<ClassAlone>,
}

/// Plan with servers of one class alone.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, JsonSchema)]
pub struct ClassAlone {
    /// Number of servers.
    pub servers: usize,
    /// Their price.
    pub price: f64,
    /// Number of workloads that no server of the class takes.
    pub workloads_refused: usize,
}

/// Servers that a class lacks.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct MissingServers {
    pub class: String,
    /// Number of servers beyond those of the cluster file.
    pub count: usize,
    /// Their price.
    pub price: f64,
}

impl FleetPrices {
    /// Returns the prices of a placement; `None` if servers have none.
    pub(super) fn new(
        instance: &PlanningProblem,
        placement: &Placement,
        alone: &[OneClass],
        price_lower_bound: f64,
    ) -> Option<Self> {
        if instance.prices.is_empty() {
            return None;
        }
        let mut classes = Vec::new();
        for (number, (class, &price_each)) in instance.classes.iter().zip(&instance.prices).enumerate() {
            let servers = placement.servers.iter().filter(|server| server.class == number).count();
            let alone = alone.get(number).map(|alone| ClassAlone {
                servers: alone.servers,
                price: alone.servers as f64 * price_each,
                workloads_refused: alone.refused,
            });
            classes.push(ClassUse {
                class: class.name.clone(),
                price_each,
                servers,
                count: class.count,
                price: servers as f64 * price_each,
                alone,
            });
        }
        let price = price_of(instance, placement);
        Some(Self { price, price_lower_bound, classes, missing: Vec::new() })
    }

    /// The class that holds all workloads alone at the least price.
    pub fn cheapest_alone(&self) -> Option<(&ClassUse, ClassAlone)> {
        let holding = self.classes.iter().filter_map(|class| Some((class, class.alone?)));
        let holding = holding.filter(|(_, alone)| alone.workloads_refused == 0);
        holding.min_by(|a, b| a.1.price.total_cmp(&b.1.price))
    }

    /// Returns true if the bound proves that no servers are cheaper.
    pub fn is_least(&self) -> bool {
        self.price <= self.price_lower_bound * (1.0 + 1e-9)
    }

    /// Returns the number of classes in use.
    pub fn classes_in_use(&self) -> usize {
        self.classes.iter().filter(|class| class.servers > 0).count()
    }
}

/// Returns the price of the servers of a placement.
pub(super) fn price_of(instance: &PlanningProblem, placement: &Placement) -> f64 {
    instance.price(placement.servers.iter().map(|server| server.class))
}
