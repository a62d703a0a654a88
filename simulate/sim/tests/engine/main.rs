//! The engine against closed forms and conservation laws.

mod closed_forms;
mod costs;
mod forms;
mod laws;
mod logged;
mod support;
