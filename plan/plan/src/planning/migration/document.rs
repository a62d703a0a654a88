//! The document of a migration.

use crate::cluster::stored;
use model::Policy;
use schemars::JsonSchema;
use serde::Serialize;
use units::plural;

/// Steps from one policy to another.
#[derive(Debug, Serialize, JsonSchema)]
pub struct MigrationPlan {
    /// True if steps were found, or none are needed.
    pub found: bool,
    /// Reason why none were found.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    /// Workloads that change their server, by name.
    pub moves: Vec<PolicyMove>,
    /// Data of these workloads, bytes; those of unknown size left out.
    pub bytes: u64,
    /// Servers that have other names than in the new policy, so that fewer bytes move.
    pub renamed: Vec<RenamedServer>,
    /// Workloads that the old policy promises something and the new one nothing.
    pub leaving: Vec<String>,
    /// Workloads that only the new policy promises something, from the last step on.
    pub arriving: Vec<String>,
    /// Workloads whose SLO does not hold by the old policy for these inputs.
    pub broken_before: Vec<String>,
    pub steps: Vec<MigrationStage>,
    /// Least time of all copies, one round after the other, seconds; absent if a size is unknown.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub copies_s: Option<f64>,
}

/// A workload that is on another server in the new policy.
#[derive(Debug, Clone, Serialize, JsonSchema)]
pub struct PolicyMove {
    pub workload: String,
    pub from: String,
    pub to: String,
    /// Bytes that it stores; absent if unknown.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub bytes: Option<u64>,
}

/// A server with another name than in the new policy.
#[derive(Debug, Clone, Serialize, JsonSchema)]
pub struct RenamedServer {
    /// Name in the new policy.
    pub was: String,
    pub name: String,
}

/// The purpose of a step.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum StageKind {
    /// Limits change so that others may.
    MakeRoom,
    /// Data is copied.
    Copy,
    /// Clients switch to the server with the copy.
    Switch,
    /// Limits become those of the new policy.
    Settle,
}

/// A step of a migration: a policy that all hosts enforce before the next step.
#[derive(Debug, Serialize, JsonSchema)]
pub struct MigrationStage {
    /// 1 for the first.
    pub number: usize,
    pub kind: StageKind,
    /// Servers with other workloads or limits than before.
    pub servers_changed: Vec<String>,
    /// Copies that are made, or whose clients switch.
    pub copies: Vec<PolicyCopy>,
    /// Least time of its copies, which go on at the same time, seconds; absent without copies, or if a size is unknown.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub takes_s: Option<f64>,
    /// The workload whose bound is closest to its SLO, copies left out.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tightest: Option<String>,
    /// Part of the SLO of that workload that its bound leaves.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub slack: Option<f64>,
    /// Limits of all workloads, those of copies included.
    #[serde(skip)]
    pub policy: Policy,
}

/// A copy of a workload's data.
#[derive(Debug, Clone, Serialize, JsonSchema)]
pub struct PolicyCopy {
    pub workload: String,
    pub from: String,
    pub to: String,
    /// Bytes that it stores; absent if unknown.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub bytes: Option<u64>,
    /// The highest rate of the copy, bytes per second.
    pub rate_bytes_per_s: f64,
    /// Size of the largest request of the copy, bytes.
    pub request_bytes: u64,
    /// Names in the policy of what reads from the old server, and what writes to the new one.
    pub reads_as: String,
    pub writes_as: String,
    /// Least time, seconds; absent if the size is unknown.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub takes_s: Option<f64>,
}

impl MigrationStage {
    /// Name for the file of the step's policy.
    pub fn file_name(&self) -> String {
        let word = match self.kind {
            StageKind::MakeRoom => "make-room",
            StageKind::Copy => "copy",
            StageKind::Switch => "switch",
            StageKind::Settle => "settle",
        };
        format!("{:02}-{word}.json", self.number)
    }
}

impl MigrationPlan {
    /// Says in one sentence what happens.
    pub fn summary(&self) -> String {
        if let Some(reason) = &self.reason {
            return format!("no steps were found that keep every SLO: {reason}");
        }
        if self.steps.is_empty() {
            return "nothing changes: both policies have the same servers and limits".to_owned();
        }
        let moved = match self.moves.len() {
            0 => "no workload moves; limits change".to_owned(),
            1 => "1 workload moves".to_owned(),
            moved => format!("{moved} workloads move"),
        };
        let bytes = if self.bytes > 0 { format!(" ({})", stored(self.bytes)) } else { String::new() };
        let held = match self.broken_before.len() {
            0 => "every SLO holds at every step and between steps".to_owned(),
            count => format!(
                "every SLO that holds now holds at every step and between steps; {} from the step that changes its server on",
                match count {
                    1 => "1 more does".to_owned(),
                    count => format!("{count} more do"),
                }
            ),
        };
        format!("{moved}{bytes}, in {}; {held}", plural(self.steps.len(), "step"))
    }
}
