//! Knobs: what can be changed about a running server or the machine under it, as changes of settings.
//!
//! A knob decides nothing and changes nothing: it says which settings get which values, and the rest is the same for all
//! of them. A knob of one's own is a pair of commands.

mod catalogue;
mod definition;
mod files;
mod groups;
mod interrupts;
mod rights;
mod sockets;
mod threads;

pub use catalogue::{KNOBS, knob};
pub use definition::{Knob, KnobTarget};
pub use rights::missing_right;
