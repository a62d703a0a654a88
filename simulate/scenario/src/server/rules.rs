//! The rules by which the stages of a storage server serve: disciplines by name, or a policy.
//!
//! Nothing here is preemptive: a device does not give back a request that it has begun. A best-effort
//! workload is below all workloads with a promise, wherever there are priorities; its deadline is
//! infinite; its proportional share is its own weight.
//!
//! Under a policy, the device stands behind the rules that a storage proxy derives from it: work beyond
//! the limits is best effort there, because unused device time would be lost (thesis §2.2.1). On the
//! network, packets beyond the limits wait, as HTB queues hold back traffic that exceeds their rate
//! (§2.2.2).

use super::storage_server::{StorageServer, packet_bytes};
use super::workload::SimulatedWorkload;
use crate::discipline_text::parse_discipline;
use ::discipline::enforce::{EnforcementRules as Enforced, FlowRules, LARGEST_WITH_LEVEL, OverLimit};
use ::discipline::serve::{
    DisciplineSpec, EnforcedDeviceParameters, FeedbackClass, FeedbackParameters, PacketClass,
    PacketLinkParameters,
};
use ::model::{PerStage, Policy, PolicyWorkload, ServerEnforcement, Stage};
use std::collections::BTreeMap;
use toml::Value;
use units::Bytes;

/// The rules by which the stages of a server serve.
#[derive(Debug, Clone)]
pub enum ServerRules {
    /// Each stage has a rule of its own.
    Stages(Box<PerStage<StageRule>>),
    /// Priorities and rate limits.
    Policy(Box<Policy>),
}

/// The rule by which a stage serves.
#[derive(Debug, Clone, PartialEq)]
pub enum StageRule {
    /// Shares in proportion to the weights of the workloads.
    Proportional,
    /// Earliest deadline first, a request's deadline being its arrival plus its workload's SLO.
    Deadline,
    /// Strict priority, the tightest SLO first; equal SLOs share a level.
    BySlo,
    /// Shares that follow measured latencies, adjusted at this interval, nanoseconds.
    Feedback(u64),
    /// Any other discipline; the class of a request is the position of its workload.
    Other(DisciplineSpec),
}

/// The interval of control by feedback, unless the scenario says otherwise.
const FEEDBACK_INTERVAL_NS: u64 = 10_000_000_000;
/// Nanoseconds in a second, for a second of device time.
const NS_PER_S: f64 = 1e9;
/// A deadline that never comes: 36 years.
const NEVER: u64 = 1 << 60;

impl Default for ServerRules {
    /// All stages serve first come, first served.
    fn default() -> Self {
        Self::Stages(Box::new(PerStage::from_fn(|_| StageRule::Other(DisciplineSpec::Fifo))))
    }
}

impl ServerRules {
    /// The policy that the stages keep, if they keep one.
    pub(crate) fn policy(&self) -> Option<&Policy> {
        match self {
            Self::Stages(_) => None,
            Self::Policy(policy) => Some(policy),
        }
    }

    /// Reads one name for all stages, or a table by stage; stages that it leaves out serve first come, first served.
    pub(crate) fn read(value: &Value) -> Result<Self, String> {
        if let Some(text) = value.as_str() {
            let rule = StageRule::read(text)?;
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
        let mut rules = PerStage::from_fn(|_| StageRule::Other(DisciplineSpec::Fifo));
        for stage in Stage::ALL {
            if let Some(value) = table.get(stage.name()) {
                let text =
                    value.as_str().ok_or_else(|| format!("server.discipline.{stage}: expected a name"))?;
                rules[stage] = StageRule::read(text)?;
            }
        }
        Ok(Self::Stages(Box::new(rules)))
    }

    /// The discipline of each stage for these workloads.
    pub(crate) fn disciplines(
        &self,
        server: &StorageServer,
        workloads: &[SimulatedWorkload],
    ) -> Result<[DisciplineSpec; 3], String> {
        match self {
            Self::Stages(rules) => {
                let mut disciplines = Stage::ALL.map(|stage| rules[stage].discipline(workloads));
                if server.has_bounds() {
                    let storage = &mut disciplines[Stage::Storage as usize];
                    *storage = behind_bounds(std::mem::replace(storage, DisciplineSpec::Fifo), server)?;
                }
                Ok(disciplines)
            }
            Self::Policy(policy) => {
                check_policy(policy, workloads)?;
                Ok(Stage::ALL.map(|stage| policy_discipline(policy, stage, server, workloads)))
            }
        }
    }
}

impl StageRule {
    fn read(text: &str) -> Result<Self, String> {
        let interval = text.trim().strip_prefix("feedback(interval=").and_then(|rest| rest.strip_suffix(')'));
        match (text.trim(), interval) {
            ("none", _) => Ok(Self::Other(DisciplineSpec::Fifo)),
            ("proportional", _) => Ok(Self::Proportional),
            ("edf", _) => Ok(Self::Deadline),
            ("by-slo", _) => Ok(Self::BySlo),
            ("feedback", _) => Ok(Self::Feedback(FEEDBACK_INTERVAL_NS)),
            (_, Some(interval)) => match interval.parse::<units::Nanos>() {
                Ok(units::Nanos(interval)) if interval > 0 => Ok(Self::Feedback(interval)),
                _ => Err(format!("'{text}': expected an interval above 0, such as 10s")),
            },
            (other, None) => parse_discipline(other).map_err(|error| {
                format!("server.discipline: expected none, proportional, edf, by-slo, feedback, or a discipline of stations; {error}")
            }).map(Self::Other),
        }
    }

    fn discipline(&self, workloads: &[SimulatedWorkload]) -> DisciplineSpec {
        match self {
            Self::Proportional => DisciplineSpec::Proportional {
                weights: workloads.iter().map(|workload| workload.weight).collect(),
            },
            Self::Deadline => {
                let allowed = workloads.iter().map(|workload| slo_ns(workload).unwrap_or(NEVER));
                DisciplineSpec::Deadline { allowed: allowed.collect() }
            }
            Self::BySlo => DisciplineSpec::Enforced(priorities_by_slo(workloads)),
            Self::Feedback(interval) => {
                let classes = workloads
                    .iter()
                    .map(|workload| FeedbackClass { weight: workload.weight, slo: slo_ns(workload) });
                DisciplineSpec::Feedback(FeedbackParameters::new(classes.collect(), *interval))
            }
            Self::Other(kind) => kind.clone(),
        }
    }
}

/// Levels before a device that holds more requests than it serves at a time.
fn behind_bounds(discipline: DisciplineSpec, server: &StorageServer) -> Result<DisciplineSpec, String> {
    let DisciplineSpec::Enforced(Enforced { flows, .. }) = discipline else {
        return Err("server: outstanding, beside, reserve and batch go with a policy or by-slo".into());
    };
    let used = server.device_use(None);
    let has_guarantees = !flows.is_empty();
    let rules = used.rules(flows, has_guarantees);
    let batch = used.batch;
    Ok(DisciplineSpec::EnforcedDevice(EnforcedDeviceParameters { rules, batch }))
}

/// The latency of the SLO that a workload is promised, nanoseconds; none for best effort.
fn slo_ns(workload: &SimulatedWorkload) -> Option<u64> {
    let slo = workload.slo.filter(|_| !workload.best_effort)?;
    // Rounded up; a latency that no request ever has becomes the longest.
    #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)]
    let ns = (slo.latency.0 * 1e9).ceil() as u64;
    Some(ns.clamp(1, NEVER))
}

/// A priority level for each workload with an SLO, the tightest SLO first.
fn priorities_by_slo(workloads: &[SimulatedWorkload]) -> Enforced {
    let mut slos: Vec<u64> = workloads.iter().filter_map(slo_ns).collect();
    slos.sort_unstable();
    slos.dedup();
    let mut flows = BTreeMap::new();
    for (class, workload) in (0u32..).zip(workloads) {
        if let Some(slo) = slo_ns(workload) {
            let level = slos.partition_point(|other| *other < slo);
            let level = u32::try_from(level).expect("fewer workloads than 2³²");
            let rules = FlowRules {
                level,
                limits: Vec::new(),
                over_limit: OverLimit::Demote,
                largest: None,
                shares_limits_of: None,
            };
            flows.insert(class, rules);
        }
    }
    Enforced { flows, ..Enforced::none() }
}

/// The place of a workload in a policy.
fn policy_workload<'a>(policy: &'a Policy, workload: &SimulatedWorkload) -> Option<&'a PolicyWorkload> {
    policy.workloads.iter().find(|placed| placed.name == workload.name)
}

/// Checks that every workload except best effort is placed by the policy, all on one server.
fn check_policy(policy: &Policy, workloads: &[SimulatedWorkload]) -> Result<(), String> {
    let mut server: Option<&str> = None;
    for workload in workloads.iter().filter(|workload| !workload.best_effort) {
        let name = &workload.name;
        let Some(placed) = policy_workload(policy, workload) else {
            let known: Vec<&str> = policy.workloads.iter().map(|placed| placed.name.as_str()).collect();
            let known = if known.is_empty() { "none".to_owned() } else { known.join(", ") };
            return Err(format!(
                "the policy does not know workload '{name}'; it has {known}; best_effort = true needs no place"
            ));
        };
        let own = placed.server.as_deref().filter(|_| placed.admitted).ok_or_else(|| {
            format!("the policy gives workload '{name}' no place; best_effort = true needs none")
        })?;
        if let Some(other) = server.filter(|other| *other != own) {
            return Err(format!("the policy has workload '{name}' on server '{own}', others on '{other}'"));
        }
        server = Some(own);
    }
    Ok(())
}

/// Returns the discipline of a stage for these workloads under a policy.
fn policy_discipline(
    policy: &Policy,
    stage: Stage,
    server: &StorageServer,
    workloads: &[SimulatedWorkload],
) -> DisciplineSpec {
    let enforcement = policy_enforcement(policy, workloads);
    let guaranteed = |workload: &SimulatedWorkload| {
        let placed = policy_workload(policy, workload).filter(|_| !workload.best_effort);
        placed.and_then(|placed| stage_rules(placed, stage, server))
    };
    if stage != Stage::Storage {
        let packet = packet_bytes(enforcement);
        let class = |workload| match guaranteed(workload) {
            Some(FlowRules { level, limits, .. }) => PacketClass { level, limits },
            None => PacketClass::best_effort(),
        };
        return DisciplineSpec::PacketLink(PacketLinkParameters {
            classes: workloads.iter().map(class).collect(),
            packet: nanoseconds_up(packet * byte_ns(server)),
        });
    }
    let rules = (0u32..).zip(workloads).filter_map(|(class, workload)| Some((class, guaranteed(workload)?)));
    let flows: BTreeMap<u32, FlowRules> = rules.collect();
    let used = server.device_use(enforcement);
    let has_guarantees = !flows.is_empty();
    DisciplineSpec::EnforcedDevice(EnforcedDeviceParameters {
        rules: used.rules(flows, has_guarantees),
        batch: used.batch,
    })
}

/// Returns the policy's terms of use of the server of these workloads.
fn policy_enforcement<'a>(
    policy: &'a Policy,
    workloads: &[SimulatedWorkload],
) -> Option<&'a ServerEnforcement> {
    let placed = workloads.iter().filter(|workload| !workload.best_effort);
    let name = placed.filter_map(|workload| policy_workload(policy, workload)?.server.as_deref()).next()?;
    policy.servers.iter().find(|server| server.name == name)?.enforcement.as_ref()
}

/// The rules of a workload of the policy at a stage.
fn stage_rules(placed: &PolicyWorkload, stage: Stage, server: &StorageServer) -> Option<FlowRules> {
    match stage {
        Stage::Storage => {
            let largest = server.largest_work(Bytes(LARGEST_WITH_LEVEL));
            FlowRules::of_policy(placed, stage, NS_PER_S, OverLimit::Demote, Some(largest))
        }
        Stage::NetworkIn | Stage::NetworkOut => {
            FlowRules::of_policy(placed, stage, byte_ns(server), OverLimit::Queue, None)
        }
    }
}

/// Returns the time of a byte on a link of the server, nanoseconds.
fn byte_ns(server: &StorageServer) -> f64 {
    NS_PER_S / server.network().bytes_per_sec()
}

/// Whole nanoseconds, at least 1.
#[allow(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "a float beyond u64 becomes the largest"
)]
fn nanoseconds_up(value: f64) -> u64 {
    (value.ceil() as u64).max(1)
}
