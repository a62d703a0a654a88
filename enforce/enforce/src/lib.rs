//! Enforces a policy on hosts.
//!
//! - [`deployment`]: hosts, devices and addresses of servers and clients, from the hosts file.
//! - [`network`]: priorities and rate limits of traffic, by the kernel's traffic control.
//! - [`storage`]: priorities and limits of storage requests, by a proxy before the server.
//! - [`state_folder`]: records of changes to the system and its original state.
//! - [`facade`]: the operations of `apply` and `proxy`: files and settings in, answers out.
//! - [`command`]: execution of system programs, separate from decisions, so that those can be tested
//!   without them.
//!
//! Priorities and limits of workloads are not decided here: they are in the [`model::Policy`].

pub mod address;
pub mod command;
pub mod deployment;
pub mod facade;
pub mod network;
pub mod state_folder;
pub mod storage;
