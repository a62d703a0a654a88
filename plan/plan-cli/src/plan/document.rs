//! The JSON document of a plan, and the format of policy files.

use cli::terminal::answered_after_s;
use model::Policy;
use operation::document::{DocumentFormat, pretty, schema_of};
use plan::planning::{PlanDocument, PlanRun};
use plan::prediction::PlacementDocument;
use schemars::JsonSchema;
use serde::Serialize;

/// Policy files as `plan`, `plan --model` and `admit -o` write them.
#[derive(Serialize, JsonSchema)]
#[serde(untagged)]
#[allow(dead_code, reason = "only its schema is used")]
enum PolicyFile<'a> {
    Plan(PlanDocument<'a>),
    Placement(PlacementDocument<'a>),
    Policy(Policy),
}

/// Returns the format of policy files, which several verbs write.
pub fn policy_format() -> DocumentFormat {
    let mut schema = schema_of::<PolicyFile>();
    schema.insert("title".to_owned(), "policy".into());
    DocumentFormat { name: "policy", schema }
}

/// The plan as one JSON object, which is itself a policy file.
pub fn plan(run: &PlanRun) -> String {
    pretty(&run.document(answered_after_s()))
}
