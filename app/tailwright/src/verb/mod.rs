//! One module per verb: its arguments, what it calls, what it prints.

pub(crate) mod admit;
pub(crate) mod apply;
pub(crate) mod bound;
pub(crate) mod completions;
pub(crate) mod demo;
pub(crate) mod experiment;
mod experiment_load;
pub(crate) mod explain;
pub(crate) mod ideal;
pub(crate) mod lab;
pub(crate) mod load;
pub(crate) mod man;
pub(crate) mod observe;
mod observe_live;
pub(crate) mod plan;
pub(crate) mod profile;
pub(crate) mod proxy;
pub(crate) mod reproduce;
pub(crate) mod schedule;
pub(crate) mod schemas;
pub(crate) mod simulate;
pub(crate) mod simulate_policy;
pub(crate) mod trace;
pub(crate) mod verify;
