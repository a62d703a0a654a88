//! Simulated clusters: a controller, its history, agents, tenants, a network and clocks, with faults.
#![allow(dead_code, reason = "the tests and the benchmark use their parts")]

pub mod host;
pub mod judge;
pub mod mistake;
pub mod traffic;
pub mod world;
