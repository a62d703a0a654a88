//! Simulated clusters: a controller, its history, agents, tenants, a network and clocks, with faults.
#![allow(dead_code, unreachable_pub, reason = "a test program and bench programs use parts of it")]

pub mod count;
pub mod host;
pub mod judge;
pub mod mistake;
pub mod traffic;
pub mod world;
