//! Experiments on one machine.
//!
//! - [`experiment`]: policies side by side, on all of the following.
//! - [`device`]: an emulated SSD, whose every completion is known.
//! - [`nbd`]: the same with bytes in it, as a server on the network.
//! - [`stand`]: hosts and servers that stay until they are taken down.
//! - [`servers`]: memcached, nbdkit, nfs-ganesha and nginx as children in network namespaces.

pub mod device;
pub mod experiment;
pub mod nbd;
pub mod programs;
pub mod servers;
pub mod stand;
