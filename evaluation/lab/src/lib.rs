//! Experiments on one machine.
//!
//! - [`cluster_run`] plays a cluster that was planned from half of its traces with the other half.
//! - [`experiment`] plays policies side by side, on all of the following.
//! - [`device`] is an emulated SSD, whose every completion is known.
//! - [`nbd`] is the same with bytes in it, as a server on the network.
//! - [`persistent_lab`] is a set of hosts and servers that stay until they are taken down.
//! - [`servers`] runs memcached, nbdkit, nfs-ganesha and nginx as children in network namespaces.

pub mod cluster_run;
pub mod device;
pub mod experiment;
mod file_lock;
pub mod nbd;
pub mod persistent_lab;
pub mod programs;
pub mod servers;
