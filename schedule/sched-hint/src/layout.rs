//! Layout shared by the scheduler and programs. `layout.h` of the scheduler is the same in C.

/// Directory in which the scheduler pins its shared maps.
pub const DEFAULT_FOLDER: &str = "/sys/fs/bpf/tailwright";

/// Name of the array of slots in that directory.
pub const SLOTS_FILE: &str = "slots";

/// Name of the map of slot numbers by thread in that directory.
pub const THREADS_FILE: &str = "threads";

/// Size of a slot: a cache line, so that threads do not disturb each other.
pub const SLOT_BYTES: usize = 64;

/// Value of the first word of the first slot while the scheduler is attached.
pub const ALIVE: u64 = 1;

pub(crate) const SLOT_WORDS: usize = SLOT_BYTES / 8;

/// Index of the word with the key of the thread's request; zero is none.
pub(crate) const KEY: usize = 0;

/// Index of the word that is not zero if a thread has the slot.
pub(crate) const OWNER: usize = 1;
