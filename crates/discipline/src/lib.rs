//! Queueing disciplines as pure state machines: what is served next. The clock is an argument, so that a
//! simulator and a live system run the same code.
//!
//! Here: [`StrictPriority`], which needs no clock at all. Not covered: limiters.

mod bits;
mod priority;

pub use priority::StrictPriority;
