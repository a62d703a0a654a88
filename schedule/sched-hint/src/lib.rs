//! Tells the kernel's scheduler (`tailwright schedule kernel`) which request a thread works for.
//!
//! The scheduler shares an array of slots with programs. A thread takes a slot once and from then on
//! declares its request by one store, without a system call. The kernel keeps the number of the slot with
//! the thread, frees the slot when the thread ends, and marks the array when the scheduler ends, so that
//! programs see that it is no longer read.
//!
//! Without a scheduler nothing is stored, and each thread checks for one at most once a second. Requests are named by
//! keys, of which the smaller goes first: the time of entry in nanoseconds, or a deadline, but one kind for all programs.
//! The order of threads is under the control of every program that may write the array.
#![warn(missing_docs)]

mod layout;
mod slots;
mod thread;

pub use layout::{ALIVE, DEFAULT_FOLDER, SLOT_BYTES, SLOTS_FILE, THREADS_FILE};
pub use slots::{SlotArray, ThreadSlot};
pub use thread::{is_scheduled, tag_current, untag_current};
