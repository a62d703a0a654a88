//! Simulations and ideal latencies, as the program gives them.
//!
//! Tests of one kind share a program, since linking one takes longer than most of them run.

#[path = "../support/mod.rs"]
mod support;

mod ideal;
mod simulate;
mod simulate_graphs;
mod simulate_server;
