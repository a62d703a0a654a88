//! What the scheduler and programs agree on. `layout.h` of the scheduler says the same in C.

/// Where the scheduler pins what it shares.
pub const DEFAULT_FOLDER: &str = "/sys/fs/bpf/tailwright";

/// The array of slots in that folder.
pub const SLOTS_FILE: &str = "slots";

/// The numbers of slots by thread in that folder.
pub const THREADS_FILE: &str = "threads";

/// Bytes of a slot: a cache line, so that threads do not disturb each other.
pub const SLOT_BYTES: usize = 64;

/// What the first word of the first slot is while the scheduler schedules.
pub const ALIVE: u64 = 1;

pub(crate) const SLOT_WORDS: usize = SLOT_BYTES / 8;

/// The word of a slot that says which request its thread works for; zero is none.
pub(crate) const KEY: usize = 0;

/// The word of a slot that says whether a thread has it.
pub(crate) const OWNER: usize = 1;
