//! Policies and deployments of simulated worlds: three workloads, whose clients are in separate networks,
//! in several orders of priority.

use super::plan::WorldPlan;
use enforce::deployment::Deployment;
use model::Policy;
use std::fmt::Write;
use workload::device::StorageProfile;

/// Name of the storage server behind the proxy.
pub const SERVER: &str = "ssd";
/// Names of the workloads; the clients of the fourth network belong to none.
const WORKLOADS: [&str; 3] = ["gold", "silver", "tin"];
/// Level of requests without a guarantee.
pub const NO_LEVEL: u32 = u32::MAX;

/// Configuration in force.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Configuration {
    /// Order of priority of the policy, or no policy.
    pub order: PriorityOrder,
    /// True if the first two networks have exchanged their workloads.
    pub is_swapped: bool,
}

/// An order of priority.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PriorityOrder {
    /// Gold, silver, tin.
    GoldFirst,
    /// Silver, gold, tin.
    SilverFirst,
    /// No policy.
    Without,
}

impl Configuration {
    /// Initial configuration of worlds.
    pub const FIRST: Self = Self { order: PriorityOrder::GoldFirst, is_swapped: false };

    /// Returns the position of the workload that a network belongs to.
    pub fn workload(self, network: usize) -> Option<usize> {
        match (network, self.is_swapped) {
            (3.., _) => None,
            (0 | 1, true) => Some(1 - network),
            _ => Some(network),
        }
    }

    /// Returns the level of a network's requests.
    pub fn level(self, network: usize) -> u32 {
        let Some(workload) = self.workload(network) else { return NO_LEVEL };
        match (self.order, workload) {
            (PriorityOrder::Without, _) => NO_LEVEL,
            (PriorityOrder::GoldFirst, 0) | (PriorityOrder::SilverFirst, 1) => 0,
            (_, 2) => 2,
            _ => 1,
        }
    }

    pub fn policy(self, plan: &WorldPlan) -> Option<Policy> {
        if self.order == PriorityOrder::Without {
            return None;
        }
        let mut workloads = Vec::new();
        for (position, name) in WORKLOADS.iter().enumerate() {
            let level = match (self.order, position) {
                (PriorityOrder::SilverFirst, 0 | 1) => 1 - position,
                _ => position,
            };
            let (permille, burst_ms) = if position == 2 { plan.limit } else { (1000, 1_000_000) };
            let rate = permille as f64 / 1e3;
            let burst = burst_ms as f64 / 1e3;
            workloads.push(format!(
                r#"{{ "name": "{name}", "admitted": true, "server": "{SERVER}", "priority": {level},
                "slo": "99% < 1s", "slo_percentile": 99.0, "slo_s": 1.0, "bound_s": 0.5, "limits": [{{ "stage":
                "storage", "rate": {rate}, "burst": {burst}, "rate_per_s": {rate}, "burst_work": {burst} }}] }}"#
            ));
        }
        let text = format!(
            r#"{{ "format": "tailwright-policy-1", "policy_name": "worlds", "servers": [{{ "name": "{SERVER}", "class":
            "ssd", "network_bytes_per_s": 1e9, "storage_profile": "p" }}], "workloads": [{}] }}"#,
            workloads.join(",")
        );
        Some(Policy::from_json(&text).unwrap_or_else(|error| panic!("{error}\n{text}")))
    }

    pub fn deployment(self, plan: &WorldPlan) -> Deployment {
        self.deployment_of(plan, SERVER)
    }

    /// Returns a deployment that lacks the server.
    pub fn wrong_deployment(self, plan: &WorldPlan) -> Deployment {
        self.deployment_of(plan, "other")
    }

    fn deployment_of(self, plan: &WorldPlan, server: &str) -> Deployment {
        let mut fronts = Vec::new();
        for (number, protocol) in plan.fronts.iter().enumerate() {
            let name = protocol.row().name;
            let port = 4000 + number;
            fronts.push(format!(
                "{{ protocol = \"{name}\", listen = \"10.0.0.1:{port}\", forward = \"127.0.0.1:{port}\" }}"
            ));
        }
        let over = if plan.queues_over_limits { "queue" } else { "demote" };
        let mut text = format!(
            "[[host]]\nname = \"here\"\ndevice.lo = \"1Gbps\"\n[[server]]\nname = \"{server}\"\nhost = \"here\"\n\
            address = [\"10.0.0.1\"]\n[server.storage]\nprofile = \"none\"\nover = \"{over}\"\n\
            outstanding = {}\nfront = [{}]\n",
            plan.outstanding,
            fronts.join(",")
        );
        for network in 0..3 {
            let workload = self.workload(network).map_or("", |workload| WORKLOADS[workload]);
            write!(
                text,
                "[[client]]\nworkload = \"{workload}\"\nhost = \"here\"\naddress = [\"10.1.{network}.0/24\"]\n"
            )
            .expect("a string takes all");
        }
        Deployment::parse(&text).unwrap_or_else(|error| panic!("{error}\n{text}"))
    }
}

/// Returns a profile of an SSD with the plan's time for 4 KiB, and in proportion.
pub fn profile(plan: &WorldPlan) -> StorageProfile {
    let bandwidth = 4096.0 * 1e9 / plan.service_4k_ns as f64;
    let row = |size: u64| {
        format!(r#"{{ "requestSize": {size}, "readBandwidth": {bandwidth}, "writeBandwidth": {bandwidth} }}"#)
    };
    let text = format!(r#"{{ "bandwidthTable": [{}, {}] }}"#, row(512), row(1 << 20));
    StorageProfile::from_json(&text).unwrap_or_else(|error| panic!("{error}\n{text}"))
}

impl PriorityOrder {
    pub const ALL: [Self; 3] = [Self::GoldFirst, Self::SilverFirst, Self::Without];
}
