//! WIP
pub mod event;
pub mod probe;
