//! Knobs: settings of a running server or its machine, as lists of changes.
//!
//! A knob neither decides nor changes anything: it names settings and values, and the rest is common code. A
//! user's own knob is a pair of commands.

mod catalogue;
mod definition;
mod files;
mod groups;
mod interrupts;
mod rights;
mod sockets;
mod threads;

pub use catalogue::{KNOBS, knob};
pub use definition::{Knob, KnobFlag, KnobObstacle, KnobTarget};
pub use rights::missing_right;
