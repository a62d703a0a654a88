//! A plan for a cluster: the problem in numbers, who is where, who has no place and why, and what it took.

use crate::cluster::server_number;
use crate::planning::fleet::FleetPrices;
use crate::planning::kept::KeptChanges;
use crate::planning::objectives::{ObjectiveBound, objectives};
use crate::planning::recipe::PlanningRecipe;
use crate::refusal::{Refusal, RefusedWorkload, Remedy, describe_refusal, excluded_words};
use model::{PerStage, Stage};
use operation::text::amount;
use placement::{
    ClientPlace, ExcludedServers, Guarantee, LowerBound, Placement, PlannedServer, PlanningProblem,
    PlanningWorkload, SuggestedChange,
};
use std::collections::BTreeMap;
use std::time::Duration;
use units::plural;

/// A plan for a cluster, and what it took.
#[derive(Debug)]
pub struct PlannedCluster {
    pub recipe: PlanningRecipe,
    /// The problem in numbers.
    pub instance: PlanningProblem,
    /// Servers in use with their workloads and limits, and who was refused.
    pub placement: Placement,
    /// Names of the servers in use, in the order of the placement.
    pub names: Vec<String>,
    /// Names of client hosts with the capacity of their links, bytes per second; empty if bounds count none.
    pub host_networks: Vec<(String, f64)>,
    /// Changes that would admit each refused workload; computed for the first few only.
    pub advice: Vec<Vec<SuggestedChange>>,
    /// Lower bound on the number of servers.
    pub lower_bound: LowerBound,
    /// Prices of the servers; `None` if they have none.
    pub fleet: Option<FleetPrices>,
    /// Differences from the kept policy; `None` without one.
    pub changed: Option<KeptChanges>,
    /// CPU time of placement, limits and lower bound.
    pub cpu: Duration,
}

/// A workload's place in a plan.
#[derive(Debug, Clone)]
pub struct WorkloadPlace {
    /// Index into the placement's servers.
    pub server: usize,
    pub guarantee: Guarantee,
}

/// The links of a host of clients, and what the plan has on them.
#[derive(Debug, Clone, PartialEq)]
pub struct HostUse {
    pub name: String,
    /// Capacity in each direction, bytes per second.
    pub network_bytes_per_s: f64,
    /// Number of admitted workloads.
    pub workloads: usize,
    /// Mean load of the links out of the host and into it, fractions of their capacity.
    pub mean_load: [f64; 2],
    /// Longest delay of any workload on the links out of the host and into it, seconds.
    pub delay_s: [f64; 2],
}

impl PlannedCluster {
    /// Returns what the plan has on the links of client hosts, in their order; empty if bounds count none.
    pub fn hosts(&self) -> Vec<HostUse> {
        let mut is_admitted = vec![true; self.instance.workloads.len()];
        self.placement.refused.iter().for_each(|refusal| is_admitted[refusal.workload] = false);
        let mut hosts = Vec::new();
        let mut positions = BTreeMap::new();
        for (position, (name, network_bytes_per_s)) in self.host_networks.iter().enumerate() {
            positions.insert(name.as_str(), position);
            hosts.push(HostUse {
                name: name.clone(),
                network_bytes_per_s: *network_bytes_per_s,
                workloads: 0,
                mean_load: [0.0; 2],
                delay_s: [0.0; 2],
            });
        }
        for (place, _) in self.instance.clients.iter().zip(is_admitted).filter(|(_, admitted)| *admitted) {
            let Some(links) = place.served() else { continue };
            let host = &mut hosts[positions[links.host.as_str()]];
            host.workloads += 1;
            for (direction, stage) in [Stage::NetworkIn, Stage::NetworkOut].into_iter().enumerate() {
                host.mean_load[direction] += links.mean_rate[stage];
                host.delay_s[direction] = host.delay_s[direction].max(links.delay_at(stage));
            }
        }
        hosts
    }

    /// Returns the place and guarantee of each workload of the instance; `None` for refused ones.
    pub fn places(&self) -> Vec<Option<WorkloadPlace>> {
        let mut places = vec![None; self.instance.workloads.len()];
        for (number, server) in self.placement.servers.iter().enumerate() {
            for guarantee in server.guarantees(&self.instance) {
                let workload = guarantee.workload;
                places[workload] = Some(WorkloadPlace { server: number, guarantee });
            }
        }
        places
    }

    /// Returns the SLOs of a workload beside the first one, with their bounds in its place.
    pub fn further_objectives(&self, workload: usize, place: &WorkloadPlace) -> Vec<ObjectiveBound> {
        let class = self.placement.servers[place.server].class;
        let objectives = objectives(&self.instance, class, workload, place.guarantee.total);
        objectives.into_iter().skip(1).collect()
    }

    /// Returns the number of workloads with a guarantee.
    pub fn admitted(&self) -> usize {
        self.instance.workloads.len() - self.placement.refused.len()
    }

    /// Returns the workloads without a guarantee, in the order in which they were tried.
    pub fn refused(&self) -> Vec<RefusedWorkload> {
        let mut refused_workloads = Vec::new();
        let numbers = self.numbers();
        for (number, refusal) in self.placement.refused.iter().enumerate() {
            let workload = &self.instance.workloads[refusal.workload];
            if let Some(refused) = self.refused_by_host(refusal.workload) {
                refused_workloads.push(refused);
                continue;
            }
            let changes = self.advice.get(number).map_or(&[][..], Vec::as_slice);
            let named = |other: usize| self.instance.workloads[other].name.clone();
            let excluded = excluded_words(&self.excluded(&numbers, refusal.workload), &named);
            let percentile = workload.slo.percentile;
            let refused_by =
                Refusal::Limits { alone: refusal.alone, percentile, changes, excluded: &excluded };
            let name = |server: usize| self.names[server].clone();
            refused_workloads.push(RefusedWorkload {
                index: refusal.workload,
                workload: workload.name.clone(),
                slo: workload.slo,
                reason: describe_refusal(&refused_by, self.instance.server_count(), &name),
                remedies: changes.iter().map(|change| Remedy::new(change, &name)).collect(),
            });
        }
        refused_workloads
    }

    /// Returns the refusal of a workload that the links of its client host cannot serve.
    fn refused_by_host(&self, workload: usize) -> Option<RefusedWorkload> {
        let ClientPlace::Refused { host, alone, why, sufficient } = self.instance.clients.get(workload)?
        else {
            return None;
        };
        let known = self.host_networks.iter().find(|(name, _)| name == host);
        let capacity = known.map(|(_, capacity)| *capacity);
        let sufficient =
            capacity.zip(*sufficient).map(|(capacity, factor)| three_digits_up(capacity * factor));
        let refusal = Refusal::ClientHost { host, alone: *alone, why: *why, sufficient };
        let remedy = sufficient
            .map(|network| Remedy::HostNetwork { host: host.clone(), network_bytes_per_s: network });
        let PlanningWorkload { name, slo, .. } = &self.instance.workloads[workload];
        Some(RefusedWorkload {
            index: workload,
            workload: name.clone(),
            slo: *slo,
            reason: describe_refusal(&refusal, self.instance.server_count(), &|_| String::new()),
            remedies: remedy.into_iter().collect(),
        })
    }

    /// Numbers of the servers within their classes, by their names.
    pub(super) fn numbers(&self) -> Vec<usize> {
        let servers = self.placement.servers.iter().zip(&self.names).enumerate();
        let number = |(position, (server, name)): (usize, (&PlannedServer, &String))| {
            let class = &self.instance.classes[server.class].name;
            server_number(class, name).unwrap_or(usize::MAX - position)
        };
        servers.map(number).collect()
    }

    /// The servers that rules keep a workload from.
    fn excluded(&self, numbers: &[usize], workload: usize) -> ExcludedServers {
        self.placement.excluded(&self.instance, numbers, workload)
    }

    /// Says in one sentence who fits where.
    pub fn summary(&self) -> String {
        let all = self.instance.workloads.len();
        let admitted = self.admitted();
        let mut servers = plural(self.placement.servers.len(), "server");
        let mut needed = match self.lower_bound.servers {
            0 => String::new(),
            1 => " (at least 1 is needed)".to_owned(),
            n => format!(" (at least {n} are needed)"),
        };
        if let Some(fleet) = &self.fleet {
            servers.push_str(&format!(" at a price of {}", amount(fleet.price)));
            needed = format!(" (at least {} is needed)", amount(fleet.price_lower_bound));
        }
        let of_all = plural(all, "workload");
        if admitted == all {
            format!("{admitted} of {of_all} fit on {servers}{needed}")
        } else {
            let without = if admitted + 1 == all { "1 has" } else { &format!("{} have", all - admitted) };
            format!("{admitted} of {of_all} fit on {servers}; {without} no guarantee")
        }
    }

    /// The admitted workload whose bound is closest to its SLO, the tightest of them if it has several.
    pub fn tightest(&self) -> Option<usize> {
        let mut used = Vec::new();
        for server in &self.placement.servers {
            for Guarantee { workload, total, .. } in server.guarantees(&self.instance) {
                used.push((self.instance.share_of_slos(workload, server.class, total), workload));
            }
        }
        used.into_iter().max_by(|a, b| a.0.total_cmp(&b.0)).map(|(_, workload)| workload)
    }

    /// Mean load of a server by stage, fraction of capacity.
    pub fn mean_load(&self, server: &PlannedServer) -> PerStage<f64> {
        PerStage::from_fn(|stage| {
            let members = server.members.iter().map(|&workload| &self.instance.workloads[workload]);
            members.map(|workload| workload.on_class[server.class].mean_rate[stage]).sum()
        })
    }
}

/// The number with three digits that is not below a positive one: what is printed is not less than what was found.
fn three_digits_up(value: f64) -> f64 {
    let unit = 10f64.powf(value.log10().floor() - 2.0);
    (value / unit * (1.0 - f64::EPSILON)).ceil() * unit
}

#[cfg(test)]
mod tests {
    use super::*;
    use calculus::{ArrivalCurve, CurveVertex};
    use model::Slo;
    use placement::{LimitMethod, PlanningClass, WorkloadOnClass};

    /// Two workloads, each of which needs a server of its own, and one server.
    fn one_of_two() -> PlannedCluster {
        let curve = ArrivalCurve::new(vec![CurveVertex { duration: 0.0, work: 0.05 }], 0.0).unwrap();
        let workload = |name: &str| PlanningWorkload {
            name: name.into(),
            slo: "99.9% < 200ms".parse::<Slo>().unwrap(),
            on_class: vec![WorkloadOnClass {
                curves: PerStage::from_fn(|_| curve.clone()),
                mean_rate: PerStage::from_fn(|_| 0.0),
                largest_request: 0.0,
                base_latency: 0.0,
                overtaking: 0.0,
            }],
        };
        let class = PlanningClass { name: "ssd".into(), count: 1, enforced: None };
        let instance =
            PlanningProblem::new(vec![class], vec![workload("a"), workload("b")], 0.999, 0.999).unwrap();
        let placement = placement::place_first_fit(&instance, LimitMethod::Exact, &[0, 1], false);
        let advice = vec![
            SuggestedChange::MoreServers { class: "ssd".into(), count: 1, price: None },
            SuggestedChange::Latency { slo: 0.301, factor: None, server: Some(0) },
            SuggestedChange::Load { factor: 0.332, server: None },
        ];
        PlannedCluster {
            recipe: PlanningRecipe::of(LimitMethod::Exact),
            instance,
            placement,
            names: vec!["ssd-1".into()],
            host_networks: Vec::new(),
            advice: vec![advice],
            lower_bound: LowerBound { fractional: 1.5, servers: 2, price: 0.0 },
            fleet: None,
            changed: None,
            cpu: Duration::ZERO,
        }
    }

    #[test]
    fn a_refusal_says_why_and_what_would_help() {
        let planned = one_of_two();
        assert_eq!(planned.summary(), "1 of 2 workloads fit on 1 server; 1 has no guarantee");
        assert_eq!(
            planned.refused()[0].reason,
            "it would fit on an empty server, but the only one is in use and has no room for it; it would be \
             admitted with one more server of class 'ssd', or an SLO of 99.9% < 301ms (on ssd-1), or 33.2% of its \
             load (on an empty server)"
        );
    }
}
