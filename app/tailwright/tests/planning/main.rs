//! Plans, bounds, admission, explanations and traces, as the program gives them.
//!
//! Tests of one kind share a program, since linking one takes longer than most of them run.

#[path = "../support/mod.rs"]
mod support;

mod admit;
mod bound;
mod bound_conditions;
mod cluster_verbs;
mod demo;
mod explain;
mod implausible;
mod migrate;
mod plan;
mod plan_hosts;
mod plan_input;
mod plan_keep;
mod plan_limits;
mod plan_model;
mod plan_prices;
mod plan_real;
mod plan_rules;
mod plan_slos;
mod plan_survive;
mod promises;
mod trace;
mod trace_assumptions;
