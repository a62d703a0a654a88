//! Who may come, decided one after the other, and why somebody is refused.

mod decide;
mod events;

pub use decide::{
    AdmissionAnswer, AdmissionDecision, AdmissionOutcome, AdmissionQuestion, admission_policy, admit, decide,
};
pub use events::AdmissionEvent;
