//! The papers' figures, as the program gives them.
//!
//! Tests of one kind share a program, since linking one takes longer than most of them run.

#[path = "../support/mod.rs"]
mod support;

mod reproduce;
mod reproduce_tailclipper;
mod reproduce_thesis;
