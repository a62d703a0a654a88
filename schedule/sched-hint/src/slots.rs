//! The array of slots, and the slot of a thread.

use crate::layout::{ALIVE, KEY, OWNER, SLOT_WORDS, SLOTS_FILE, THREADS_FILE};
use machine::bpf::{BpfMap, MappedWords};
use rustix::fd::{AsRawFd, OwnedFd};
use rustix::process::{PidfdFlags, pidfd_open};
use rustix::thread::gettid;
use std::io;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering::{Acquire, Relaxed, Release};

/// PIDFD_THREAD of `linux/pidfd.h`: the descriptor refers to a thread and not to its process.
const OF_A_THREAD: u32 = 0o200;

/// The array of slots that a scheduler shares.
#[derive(Debug)]
pub struct SlotArray {
    words: Arc<MappedWords>,
    threads: BpfMap,
}

/// The slot of a thread. Other threads may also write it, to tag a thread before waking it.
#[derive(Debug, Clone)]
pub struct ThreadSlot {
    words: Arc<MappedWords>,
    slot: usize,
}

impl SlotArray {
    /// Opens the array that a scheduler has pinned in this folder; `None` if none is attached.
    ///
    /// # Errors
    /// When the folder may not be read or the array has another layout.
    pub fn open(folder: &Path) -> io::Result<Option<Self>> {
        let slots = match BpfMap::open(&folder.join(SLOTS_FILE)) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            slots => slots?,
        };
        if usize::try_from(slots.value_bytes()) != Ok(SLOT_WORDS * 8) {
            return Err(io::Error::new(
                io::ErrorKind::InvalidData,
                "slots of another size: another version schedules",
            ));
        }
        let array =
            Self { words: Arc::new(slots.map_memory()?), threads: BpfMap::open(&folder.join(THREADS_FILE))? };
        Ok(is_alive(&array.words).then_some(array))
    }

    /// Assigns a slot to the calling thread; repeated calls return the same one.
    ///
    /// # Errors
    /// When all slots are taken, or the kernel refuses the number.
    pub fn register(&self) -> io::Result<ThreadSlot> {
        let thread = descriptor_of_this_thread()?;
        let key = thread.as_raw_fd().to_ne_bytes();
        let mut number = [0; 4];
        match self.threads.look_up(&key, &mut number) {
            Ok(()) => return Ok(self.slot(number)),
            Err(error) if error.kind() == io::ErrorKind::NotFound => {}
            Err(error) => return Err(error),
        }
        let slot = self.take()?;
        if let Err(error) = self.threads.update(&key, &slot.number()) {
            slot.word(OWNER).store(0, Release);
            return Err(error);
        }
        Ok(slot)
    }

    /// Returns the number of slots taken by threads.
    pub fn taken(&self) -> usize {
        self.words.chunks_exact(SLOT_WORDS).skip(1).filter(|slot| slot[OWNER].load(Relaxed) != 0).count()
    }

    fn slot(&self, number: [u8; 4]) -> ThreadSlot {
        let slot = usize::try_from(u32::from_ne_bytes(number)).unwrap_or(0);
        ThreadSlot { words: Arc::clone(&self.words), slot }
    }

    /// Takes a free slot. The search starts at a position that depends on the thread, so that threads
    /// seldom collide.
    fn take(&self) -> io::Result<ThreadSlot> {
        let count = self.words.len() / SLOT_WORDS;
        let first = usize::try_from(gettid().as_raw_nonzero().get()).unwrap_or(0);
        for step in 0..count {
            // The first slot is the scheduler's own.
            let slot = ThreadSlot { words: Arc::clone(&self.words), slot: 1 + (first + step) % (count - 1) };
            if slot.word(OWNER).compare_exchange(0, 1, Acquire, Relaxed).is_ok() {
                slot.untag();
                return Ok(slot);
            }
        }
        Err(io::Error::new(io::ErrorKind::StorageFull, format!("all {count} slots are taken by threads")))
    }
}

impl ThreadSlot {
    /// Declares that the thread works for the request with this key; zero is none.
    pub fn tag(&self, key: u64) {
        self.word(KEY).store(key, Release);
    }

    /// Declares that the thread works for no request.
    pub fn untag(&self) {
        self.tag(0);
    }

    /// Returns the key of the request that the thread works for; zero without one.
    pub fn key(&self) -> u64 {
        self.word(KEY).load(Acquire)
    }

    /// Returns true if a scheduler still reads the slot.
    pub fn is_read(&self) -> bool {
        is_alive(&self.words)
    }

    fn number(&self) -> [u8; 4] {
        u32::try_from(self.slot).unwrap_or(0).to_ne_bytes()
    }

    /// Returns a word of the slot. A slot number written by another program may be beyond the array; it
    /// is clamped to the last slot.
    fn word(&self, word: usize) -> &AtomicU64 {
        let last = self.words.len() / SLOT_WORDS - 1;
        &self.words[self.slot.min(last) * SLOT_WORDS + word]
    }
}

fn is_alive(words: &MappedWords) -> bool {
    words.first().is_some_and(|word| word.load(Relaxed) == ALIVE)
}

fn descriptor_of_this_thread() -> io::Result<OwnedFd> {
    Ok(pidfd_open(gettid(), PidfdFlags::from_bits_retain(OF_A_THREAD))?)
}
