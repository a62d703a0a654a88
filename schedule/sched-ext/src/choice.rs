//! The scheduler's rule as a pure function: of the c oldest, the least recently served is next
//! (TailClipper, Algorithm 1: a heap by age and a round-robin queue of the c oldest).
//!
//! `choose` in `bpf/oldest_first.bpf.c` implements the same rule for the queue of a CPU.

/// A runnable thread that works for a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct RunnableThread {
    /// Kernel's number of the thread (TID).
    pub thread: u32,
    /// Key of its request: smaller is older.
    pub key: u64,
    /// Time at which it last stopped running; zero is never.
    pub served_at_ns: u64,
}

/// Returns the next thread to run, among threads waiting in the order of their keys and the running one
/// if it can continue.
///
/// Of the `oldest` threads with the smallest keys, it is the least recently served; of several, the
/// first. The running one counts as served last, and is first among equal keys. `None` if no thread is
/// runnable.
pub(crate) fn choose(
    waiting: &[RunnableThread],
    running: Option<RunnableThread>,
    oldest: u32,
) -> Option<RunnableThread> {
    let oldest = usize::try_from(oldest.max(1)).unwrap_or(usize::MAX);
    let older =
        |running: &RunnableThread| waiting.iter().take_while(|thread| thread.key < running.key).count();
    let running = running.filter(|running| older(running) < oldest);
    let places = oldest - usize::from(running.is_some());
    waiting.iter().take(places).min_by_key(|thread| thread.served_at_ns).copied().or(running)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// By the definition: no thread with fewer than c older ones may have been served less recently.
    fn is_right(all: &[RunnableThread], running: Option<u32>, oldest: u32, chosen: &RunnableThread) -> bool {
        let is_among_oldest = |one: &RunnableThread| {
            u32::try_from(all.iter().filter(|other| other.key < one.key).count()).unwrap() < oldest
        };
        let served = |one: &RunnableThread| (Some(one.thread) == running, one.served_at_ns);
        is_among_oldest(chosen)
            && all.iter().filter(|one| is_among_oldest(one)).all(|one| served(chosen) <= served(one))
    }

    proptest! {
        #[test]
        fn the_least_recently_served_of_the_oldest(
            keys in prop::collection::btree_set(1_u64..1000, 0..20),
            served in prop::collection::vec(0_u64..50, 20),
            runs in prop::option::of(0_usize..20),
            oldest in 1_u32..8,
        ) {
            let all: Vec<RunnableThread> = keys
                .iter()
                .zip(1..)
                .zip(&served)
                .map(|((key, thread), served)| RunnableThread { thread, key: *key, served_at_ns: *served })
                .collect();
            let running = runs.and_then(|place| all.get(place)).copied();
            let number = running.map(|running| running.thread);
            let waiting: Vec<RunnableThread> =
                all.iter().filter(|one| Some(one.thread) != number).copied().collect();
            match choose(&waiting, running, oldest) {
                Some(chosen) => prop_assert!(is_right(&all, number, oldest, &chosen), "{chosen:?} of {all:?}"),
                None => prop_assert!(all.is_empty()),
            }
        }
    }

    #[test]
    fn one_is_first_come_first_served_by_key() {
        let thread = |thread, key| RunnableThread { thread, key, served_at_ns: 100 - key };
        let waiting = [thread(1, 5), thread(2, 6)];
        assert_eq!(choose(&waiting, Some(thread(3, 4)), 1), Some(thread(3, 4)));
        assert_eq!(choose(&waiting, Some(thread(3, 7)), 1), Some(thread(1, 5)));
        assert_eq!(choose(&waiting, Some(thread(3, 7)), 0), Some(thread(1, 5)));
        assert_eq!(choose(&[], None, 3), None);
    }
}
