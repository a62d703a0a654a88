//! Byte loops: threads that move bytes between sockets and the engine, which alone decides.
//!
//! Without them the engine's thread makes all system calls, and these take most of its time. With them a
//! connection belongs to a loop, which reads and writes its socket. The engine stays one state machine with
//! one scheduler for the device: [`LoopedSystem`] is a [`System`](super::System) for it, whose connections are
//! messages to the loops and back.
//!
//! ```text
//! engine ── LoopedSystem ──orders──▶ mailbox ──▶ ByteLoop ── socket
//!               ▲                                   │
//!               └──────────── mailbox ◀──reports────┘
//! ```
//! A connection has at most [`WINDOW`](conduit::WINDOW) bytes on their way in each direction, so no sender
//! waits for a full mailbox, and neither side waits for a lock. `conduit` has both ends of a connection as state
//! machines, `byte_loop` runs one end over a system, `mailbox` wakes the receiver of messages, and `threads` are
//! the loops of the program. Tests run the same ends over simulated systems with late messages.

mod byte_loop;
mod conduit;
#[cfg(test)]
mod interleavings;
mod looped_system;
mod mailbox;
mod sync;
mod threads;

pub use byte_loop::ByteLoop;
pub use conduit::{ByteOrder, ByteReport, ConnectionId};
pub use looped_system::{ByteLoops, LoopedStream, LoopedSystem};
pub(super) use threads::LoopThreads;
