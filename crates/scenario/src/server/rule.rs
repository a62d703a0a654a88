//! What the stages of a storage server do: disciplines by name, or a policy.
//!
//! Nothing here is preemptive: a device does not give back a request that it has begun. A workload that is best
//! effort is below everybody who is promised something, wherever there are priorities; its deadline never comes;
//! its share in proportion is its own weight.
//!
//! Under a policy, work beyond the limits is best effort at the storage, where unused device time would be lost
//! (thesis §2.2.1), and waits on the network, where HTB queues hold back what exceeds their rate (§2.2.2).

use super::StorageServer;
use super::tenant::Tenant;
use crate::discipline::kind;
use ::discipline::Limit;
use ::discipline::enforce::{BEST_EFFORT, FlowRules, Over, Rules as Enforced};
use ::discipline::serve::{FeedbackClass, FeedbackParameters, Kind};
use ::model::{PerStage, Policy, PolicyWorkload, Stage};
use std::collections::BTreeMap;
use toml::Value;

type Result<T> = std::result::Result<T, String>;

/// What the stages of a server do.
#[derive(Debug, Clone)]
pub enum Rules {
    /// A discipline each.
    Stages(Box<PerStage<Rule>>),
    /// Priorities and rate limits.
    Policy(Box<Policy>),
}

/// What a stage does.
#[derive(Debug, Clone, PartialEq)]
pub enum Rule {
    /// Shares in proportion to the weights of the workloads.
    Proportional,
    /// Earliest deadline first, a request's deadline being its arrival plus its workload's SLO.
    Deadline,
    /// Strict priority, the tightest SLO first; equal SLOs share a level.
    BySlo,
    /// Shares that follow measured latencies, adjusted after every interval of so many nanoseconds.
    Feedback(u64),
    /// Any other; the class of a request is the position of its workload.
    Other(Kind),
}

/// Of control by feedback unless the scenario says otherwise.
const INTERVAL_NS: u64 = 10_000_000_000;
/// A deadline that never comes: 36 years.
const NEVER: u64 = 1 << 60;

impl Default for Rules {
    /// First come, first served.
    fn default() -> Self {
        Self::Stages(Box::new(PerStage::from_fn(|_| Rule::Other(Kind::Fifo))))
    }
}

impl Rules {
    /// One name for all stages, or a table by stage; stages that it leaves out serve first come, first served.
    pub(crate) fn read(value: &Value) -> Result<Self> {
        if let Some(text) = value.as_str() {
            let rule = Rule::read(text)?;
            return Ok(Self::Stages(Box::new(PerStage::from_fn(|_| rule.clone()))));
        }
        let table = value.as_table().ok_or("server.discipline: expected a name, or names by stage")?;
        let known = Stage::ALL.map(Stage::name);
        if let Some(unknown) = table.keys().find(|key| !known.contains(&key.as_str())) {
            return Err(format!(
                "server.discipline: no stage is named '{unknown}'; there are {}",
                known.join(", ")
            ));
        }
        let mut rules = PerStage::from_fn(|_| Rule::Other(Kind::Fifo));
        for stage in Stage::ALL {
            if let Some(value) = table.get(stage.name()) {
                let text =
                    value.as_str().ok_or_else(|| format!("server.discipline.{stage}: expected a name"))?;
                rules[stage] = Rule::read(text)?;
            }
        }
        Ok(Self::Stages(Box::new(rules)))
    }

    /// The discipline of each stage for these tenants.
    pub(crate) fn kinds(&self, server: &StorageServer, tenants: &[Tenant]) -> Result<[Kind; 3]> {
        match self {
            Self::Stages(rules) => Ok(Stage::ALL.map(|stage| rules[stage].kind(tenants))),
            Self::Policy(policy) => {
                check(policy, tenants)?;
                Ok(Stage::ALL.map(|stage| Kind::Enforced(enforced(policy, stage, server, tenants))))
            }
        }
    }
}

impl Rule {
    fn read(text: &str) -> Result<Self> {
        let interval = text.trim().strip_prefix("feedback(interval=").and_then(|rest| rest.strip_suffix(')'));
        match (text.trim(), interval) {
            ("none", _) => Ok(Self::Other(Kind::Fifo)),
            ("proportional", _) => Ok(Self::Proportional),
            ("edf", _) => Ok(Self::Deadline),
            ("by-slo", _) => Ok(Self::BySlo),
            ("feedback", _) => Ok(Self::Feedback(INTERVAL_NS)),
            (_, Some(interval)) => match interval.parse::<units::Nanos>() {
                Ok(units::Nanos(interval)) if interval > 0 => Ok(Self::Feedback(interval)),
                _ => Err(format!("'{text}': expected an interval above 0, such as 10s")),
            },
            (other, None) => kind(other).map_err(|fault| {
                format!("server.discipline: expected none, proportional, edf, by-slo, feedback, or a discipline of stations; {fault}")
            }).map(Self::Other),
        }
    }

    fn kind(&self, tenants: &[Tenant]) -> Kind {
        match self {
            Self::Proportional => Kind::Proportional { weights: tenants.iter().map(|t| t.weight).collect() },
            Self::Deadline => {
                Kind::Deadline { allowed: tenants.iter().map(|t| slo_ns(t).unwrap_or(NEVER)).collect() }
            }
            Self::BySlo => Kind::Enforced(by_slo(tenants)),
            Self::Feedback(interval) => {
                let class = |tenant: &Tenant| FeedbackClass { weight: tenant.weight, slo: slo_ns(tenant) };
                Kind::Feedback(FeedbackParameters::of(tenants.iter().map(class).collect(), *interval))
            }
            Self::Other(kind) => kind.clone(),
        }
    }
}

/// What a workload is promised; none for best effort.
fn slo_ns(tenant: &Tenant) -> Option<u64> {
    let slo = tenant.slo.filter(|_| !tenant.best_effort)?;
    // Rounded up; beyond what is ever waited for becomes the longest.
    #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)]
    let ns = (slo.latency.0 * 1e9).ceil() as u64;
    Some(ns.clamp(1, NEVER))
}

fn rules(flows: BTreeMap<u32, FlowRules>) -> Enforced {
    Enforced { flows, ..Enforced::none() }
}

fn by_slo(tenants: &[Tenant]) -> Enforced {
    let mut slos: Vec<u64> = tenants.iter().filter_map(slo_ns).collect();
    slos.sort_unstable();
    slos.dedup();
    let flow = |(class, tenant): (u32, &Tenant)| {
        let slo = slo_ns(tenant)?;
        let level = number(slos.partition_point(|other| *other < slo));
        Some((class, FlowRules { level, limits: Vec::new(), over: Over::Demote }))
    };
    rules((0..).zip(tenants).filter_map(flow).collect())
}

fn find<'a>(policy: &'a Policy, tenant: &Tenant) -> Option<&'a PolicyWorkload> {
    policy.workloads.iter().find(|workload| workload.name == tenant.name)
}

/// Everybody who is not best effort has a place in the policy, all on one server.
fn check(policy: &Policy, tenants: &[Tenant]) -> Result<()> {
    let promised = tenants.iter().filter(|tenant| !tenant.best_effort);
    let mut server: Option<&str> = None;
    for tenant in promised {
        let Some(workload) = find(policy, tenant) else {
            let known: Vec<&str> = policy.workloads.iter().map(|workload| workload.name.as_str()).collect();
            return Err(format!(
                "the policy does not know workload '{}'; it has {}; best_effort = true needs no place",
                tenant.name,
                known.join(", ")
            ));
        };
        let own = workload.server.as_deref().filter(|_| workload.admitted).ok_or_else(|| {
            format!("the policy gives workload '{}' no place; best_effort = true needs none", tenant.name)
        })?;
        if let Some(other) = server.filter(|other| *other != own) {
            return Err(format!(
                "the policy has workload '{}' on server '{own}', others on '{other}'",
                tenant.name
            ));
        }
        server = Some(own);
    }
    Ok(())
}

fn enforced(policy: &Policy, stage: Stage, server: &StorageServer, tenants: &[Tenant]) -> Enforced {
    let over = if stage == Stage::Storage { Over::Demote } else { Over::Queue };
    let flow = |(class, tenant): (u32, &Tenant)| {
        let workload = find(policy, tenant).filter(|_| !tenant.best_effort)?;
        let level =
            workload.priority_by_stage.map(|by_stage| by_stage[stage as usize]).or(workload.priority)?;
        let limits = workload.limits.iter().filter(|limit| limit.stage == stage);
        let limits = limits.map(|limit| server.limit(stage, limit.rate_per_s, limit.burst_work)).collect();
        Some((class, FlowRules { level: level.min(BEST_EFFORT - 1), limits, over }))
    };
    rules((0..).zip(tenants).filter_map(flow).collect())
}

impl StorageServer {
    /// A limit in base units of the stage as nanoseconds of service there, rounded up.
    fn limit(&self, stage: Stage, rate_per_s: f64, burst: f64) -> Limit {
        let per_unit = match stage {
            Stage::Storage => 1e9 * f64::from(self.channels),
            Stage::NetworkIn | Stage::NetworkOut => 1e9 / self.network.bytes_per_sec(),
        };
        // Saturates; a limit of nothing at all lets a nanosecond pass.
        #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)]
        let up = |value: f64| ((value * per_unit).ceil() as u64).max(1);
        Limit { rate: up(rate_per_s), burst: up(burst) }
    }
}

fn number(position: usize) -> u32 {
    u32::try_from(position).expect("fewer workloads than 2³²")
}
