//! Experiments on one machine.
