//! Experiments on one machine.
//!
//! - [`device`]: an emulated SSD, whose every completion is known.
//! - [`nbd`]: the same with bytes in it, as a server on the network.

pub mod device;
pub mod nbd;
