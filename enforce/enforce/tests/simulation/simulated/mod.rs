//! A deterministic simulation of the storage proxy and its environment: clients, servers, device, control
//! and faults. It runs in one thread, under a simulated clock, from one seed. An observer between them
//! checks the proxy's promises; it shares no code with it.

#![allow(dead_code, unreachable_pub, reason = "a test program and a bench program use parts of it")]

mod accidents;
pub mod attack;
mod book;
mod checks;
mod client;
mod configuration;
mod dice;
mod engine;
pub mod faults;
mod link;
mod loops;
mod memcached_reader;
mod nbd_reader;
mod pipe;
mod plan;
mod reader;
mod requests;
mod resp_reader;
mod rpc_reader;
pub mod run;
mod server;
mod session;
mod system;
pub mod tamper;
mod world;
