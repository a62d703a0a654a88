//! The machine's view of answers: documents that say their format and version, and a plan among them.
//!
//! Every document is an object whose `format` is `tailwright.NAME` and whose `version` grows when a field is taken away or
//! changes its meaning. `crate::formats` lists them; docs/schemas has a JSON Schema of each.

use crate::terminal::answered_after_s;
use model::Policy;
use schemars::JsonSchema;
use serde::Serialize;
use workflow::planning::{MethodComparison, MovedWorkload, PlanRun, policy_of};

/// A document under the name and the version that it says of itself.
pub(crate) trait JsonDocument: Serialize + JsonSchema {
    /// What follows `tailwright.` in its format.
    const NAME: &'static str;
    /// The version of its fields.
    const VERSION: u32;
}

/// What a document says of itself, before its content.
#[derive(Serialize)]
struct NamedDocument<'a, D> {
    format: String,
    version: u32,
    #[serde(flatten)]
    content: &'a D,
}

impl<'a, D: JsonDocument> NamedDocument<'a, D> {
    fn of(content: &'a D) -> Self {
        Self { format: format!("tailwright.{}", D::NAME), version: D::VERSION, content }
    }
}

/// The document with its format and version, over several lines.
pub(crate) fn document<D: JsonDocument>(content: &D) -> String {
    pretty(&NamedDocument::of(content))
}

/// The document with its format and version, in one line.
pub(crate) fn line<D: JsonDocument>(content: &D) -> String {
    let mut text =
        serde_json::to_string(&NamedDocument::of(content)).expect("plain data with text keys serialises");
    text.push('\n');
    text
}

/// A policy, with what is said of the plan that it comes from.
#[derive(Serialize, JsonSchema)]
pub(crate) struct PlanDocument<'a> {
    #[serde(flatten)]
    policy: Policy,
    /// How many servers have workloads.
    servers_used: usize,
    /// No plan needs fewer servers.
    servers_lower_bound: usize,
    /// The same before it is rounded up.
    servers_lower_bound_fractional: f64,
    /// How many workloads have a guarantee.
    workloads_admitted: usize,
    /// Wall time from the start of the program to this answer, seconds.
    elapsed_s: f64,
    /// CPU time of placement, limits and lower bound, seconds.
    cpu_s: f64,
    /// Wall time of reading the traces, seconds.
    characterise_s: f64,
    /// With --keep: the servers on which something is not as the policy had it.
    #[serde(skip_serializing_if = "Option::is_none")]
    servers_changed: Option<&'a [String]>,
    /// With --keep: the workloads that could not stay.
    #[serde(skip_serializing_if = "Option::is_none")]
    workloads_moved: Option<&'a [MovedWorkload]>,
    /// With --compare: what other methods need.
    #[serde(skip_serializing_if = "<[_]>::is_empty")]
    compared: &'a [MethodComparison],
}

/// The plan as one JSON object, which is itself a policy file.
pub(crate) fn plan(run: &PlanRun) -> String {
    let planned = &run.planned;
    pretty(&PlanDocument {
        policy: policy_of(&run.problem, planned),
        servers_used: planned.placement.servers.len(),
        servers_lower_bound: planned.lower_bound.servers,
        servers_lower_bound_fractional: planned.lower_bound.fractional,
        workloads_admitted: planned.admitted(),
        elapsed_s: answered_after_s(),
        cpu_s: planned.cpu.as_secs_f64(),
        characterise_s: run.characterise.as_secs_f64(),
        servers_changed: planned.changed.as_ref().map(|changed| changed.servers.as_slice()),
        workloads_moved: planned.changed.as_ref().map(|changed| changed.moved.as_slice()),
        compared: &run.compared,
    })
}

/// What says its format itself, as a policy does, over several lines.
pub(crate) fn pretty(value: &impl Serialize) -> String {
    let mut text = serde_json::to_string_pretty(value).expect("plain data with text keys serialises");
    text.push('\n');
    text
}
