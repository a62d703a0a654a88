//! Enforces a policy on hosts.
//!
//! - [`deployment`]: where servers and clients are, as people write it down.
//! - [`network`]: priorities and rate limits of traffic, by the kernel's traffic control.
//! - [`storage`]: priorities and limits of storage requests, by a proxy before the server.
//! - [`state_folder`]: where it is remembered what was found and made.
//! - [`facade`]: what `apply` and `proxy` ask for: files and settings in, answers out.
//! - [`command`]: how programs of the system are run, so that what is decided can be tested without them.
//!
//! Decides nothing about who gets what: that is in the [`model::Policy`].

pub mod address;
pub mod command;
pub mod deployment;
pub mod facade;
pub mod network;
pub mod state_folder;
pub mod storage;
