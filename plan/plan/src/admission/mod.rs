//! Admission of workloads one by one, with the reason of each refusal.

mod decide;
mod document;
mod events;

pub use decide::{
    AdmissionAnswer, AdmissionDecision, AdmissionOutcome, AdmissionQuestion, admission_policy, admit,
};
pub use document::AdmissionDocument;
pub use events::AdmissionEvent;
