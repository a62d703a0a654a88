//! From a scenario file to a network with its load, ready for the simulator.

mod discipline;
mod load;
mod scenario;
mod text;

pub(crate) use load::{Case, arrivals_of};
pub(crate) use scenario::read;
