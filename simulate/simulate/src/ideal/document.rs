//! The document of ideal latencies.

use crate::ideal::figures::IdealOutcome;
use crate::ideal::settings::{IdealAnswer, IdealSettings};
use schemars::JsonSchema;
use serde::Serialize;

/// Ideal latencies: the figures of the first discipline, those of the others under `compared`.
#[derive(Serialize, JsonSchema)]
pub struct IdealDocument<'a> {
    stream: &'a str,
    service: String,
    workers: usize,
    utilisation: f64,
    seed: u64,
    /// Number of requests that this utilisation takes, if there are fewer: figures and intervals may be off.
    requests_needed: Option<u64>,
    #[serde(flatten)]
    first: &'a IdealOutcome,
    compared: &'a [IdealOutcome],
}

impl IdealAnswer {
    /// Returns the latencies as a document; `settings` are those that they answer.
    pub fn document(&self, settings: &IdealSettings) -> IdealDocument<'_> {
        IdealDocument {
            stream: &self.name,
            service: settings.service.to_string(),
            workers: settings.workers.get(),
            utilisation: self.utilisation,
            seed: settings.seed,
            requests_needed: self.requests_needed,
            first: &self.outcomes[0],
            compared: &self.outcomes[1..],
        }
    }
}
