//! The JSON documents of the program: the name and version of each, and its schema.
//!
//! A schema is made from the type that is written, so that it has every field. The hidden verb `schemas` writes them to a
//! folder; docs/schemas has them, and a test holds it to the types.

use crate::output::json::{JsonDocument, PlanDocument};
use crate::output::{
    admission, assumptions, bounds, call_graph, experiment, experiments, ideal, inspected, kernel_scheduler,
    knobs, loaded, observed, observed_block, placement, profiled, profiled_disk, reproduced, scheduled,
    simulated, tried, varied, verified,
};
use crate::verb::{apply, explain, lab, proxy, simulate_policy};
use model::Policy;
use schemars::generate::SchemaSettings;
use schemars::{JsonSchema, Schema};
use serde::Serialize;
use serde_json::{Value, json};
use workflow::planning::GuaranteeDerivation;
use workflow::prediction::PredictionDerivation;

/// A kind of document, as people look it up.
pub(crate) struct DocumentFormat {
    /// What follows `tailwright.` in its format, and names the file of its schema.
    pub(crate) name: &'static str,
    /// The schema of its fields.
    pub(crate) schema: Schema,
}

macro_rules! documents {
    ($($document:ty: $name:literal, $version:literal;)*) => {
        $(impl JsonDocument for $document {
            const NAME: &'static str = $name;
            const VERSION: u32 = $version;
        })*

        /// Every kind of document, by name.
        pub(crate) fn all() -> Vec<DocumentFormat> {
            let mut formats = vec![$(format_of::<$document>()),*];
            formats.push(policy());
            formats.sort_by_key(|format| format.name);
            formats
        }
    };
}

documents! {
    admission::AdmissionDocument<'_>: "admission", 1;
    apply::ApplyDocument<'_>: "apply", 1;
    apply::FeaturesDocument<'_>: "kernel-features", 1;
    assumptions::AssumptionsDocument<'_>: "assumptions", 1;
    bounds::BoundsDocument<'_>: "bounds", 1;
    call_graph::CallGraphDocument<'_>: "call-graph", 1;
    explain::RefusalDocument<'_>: "refusal", 1;
    experiments::ReproductionsDocument: "reproductions", 1;
    experiments::LabExperimentsDocument: "lab-experiments", 1;
    GuaranteeDerivation: "guarantee-derivation", 1;
    ideal::IdealDocument<'_>: "ideal", 2;
    inspected::TraceDocument: "trace", 1;
    kernel_scheduler::KernelSchedulerDocument: "schedule-kernel", 1;
    experiment::LabPlanDocument<'_>: "lab-plan", 1;
    knobs::KnobsDocument: "knobs", 1;
    knobs::UndoneKnobsDocument: "undone", 1;
    lab::LabDocument<'_>: "lab", 1;
    lab::RemovedLabDocument<'_>: "lab-removed", 1;
    lab::LabRunDocument<'_>: "lab-run", 1;
    loaded::LoadDocument<'_>: "load", 1;
    observed::ObservedDocument<'_>: "observation", 1;
    observed::SelfTestDocument: "observation-selftest", 1;
    observed_block::BlockDocument: "block-observation", 1;
    PredictionDerivation: "prediction-derivation", 1;
    profiled::DeviceDocument<'_>: "device-measurement", 1;
    profiled_disk::DiskDocument: "disk-measurement", 1;
    proxy::ProxyCountersDocument<'_>: "proxy-counters", 1;
    proxy::ProxyStatusDocument<'_>: "proxy-status", 1;
    reproduced::ReproductionDocument<'_>: "reproduction", 1;
    scheduled::ScheduledDocument<'_>: "schedule", 1;
    simulate_policy::PolicySimulationDocument<'_>: "policy-simulation", 1;
    simulated::VariantDocument<'_>: "simulation", 2;
    tried::TriedDocument: "experiment", 1;
    varied::VariedDocument<'_>: "simulation-variants", 2;
    verified::FindingsDocument<'_>: "findings", 1;
}

/// What `plan`, `plan --model` and `admit -o` write, all of them policies.
#[derive(Serialize, JsonSchema)]
#[serde(untagged)]
#[allow(dead_code, reason = "only its schema is used")]
enum PolicyFile<'a> {
    Plan(PlanDocument<'a>),
    Placement(placement::PlacementDocument<'a>),
    Policy(Policy),
}

fn policy() -> DocumentFormat {
    let mut schema = schema_of::<PolicyFile>();
    schema.insert("title".to_owned(), "policy".into());
    DocumentFormat { name: "policy", schema }
}

fn format_of<D: JsonDocument>() -> DocumentFormat {
    let mut schema = schema_of::<D>();
    let format = format!("tailwright.{}", D::NAME);
    schema.insert("title".to_owned(), D::NAME.into());
    let object = schema.ensure_object();
    if let Some(Value::Object(properties)) = object.get_mut("properties") {
        properties.insert("format".to_owned(), json!({ "type": "string", "const": format }));
        properties.insert("version".to_owned(), json!({ "type": "integer", "const": D::VERSION }));
    }
    if let Some(Value::Array(required)) = object.get_mut("required") {
        required.splice(0..0, ["format".into(), "version".into()]);
    }
    DocumentFormat { name: D::NAME, schema }
}

fn schema_of<T: JsonSchema>() -> Schema {
    let mut schema =
        SchemaSettings::draft2020_12().for_serialize().into_generator().into_root_schema_for::<T>();
    schema.ensure_object().values_mut().for_each(say_units);
    schema
}

/// What the end of a field's name says of its unit.
const UNITS: [(&str, &str); 7] = [
    ("bytes_per_s", "Bytes per second."),
    ("_per_s", "Per second."),
    ("_s2", "Square seconds."),
    ("_s", "Seconds."),
    ("bytes", "Bytes."),
    ("_pct", "Percent."),
    ("_j", "Joules."),
];

/// Describes the fields that have a unit and no description of their own.
fn say_units(schema: &mut Value) {
    match schema {
        Value::Object(fields) => {
            for (name, field) in fields.iter_mut() {
                let unit = UNITS.iter().find(|(ending, _)| name.ends_with(ending));
                if let (Some((_, unit)), Value::Object(field)) = (unit, &mut *field)
                    && field.contains_key("type")
                {
                    field.entry("description").or_insert_with(|| (*unit).into());
                }
                say_units(field);
            }
        }
        Value::Array(parts) => parts.iter_mut().for_each(say_units),
        _ => {}
    }
}

/// A schema as the text of its file.
pub(crate) fn text(format: &DocumentFormat) -> String {
    crate::output::json::pretty(&format.schema)
}
