//! Many alignments on several threads.

use crate::{Alignment, Outcome, Percentiles, Replay, Service, System};
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};
use units::{Nanos, Percentile};

/// `run(state, i)` for every i below `count`, in order of i whatever the threads did; a thread makes its state
/// once.
pub(crate) fn for_each<S, T: Send>(
    count: usize,
    make: impl Fn() -> S + Sync,
    run: impl Fn(&mut S, usize) -> T + Sync,
) -> Vec<T> {
    let threads = std::thread::available_parallelism().map_or(1, usize::from).min(count).max(1);
    let next = AtomicUsize::new(0);
    let results = Mutex::new(Vec::with_capacity(count));
    let work = || {
        let mut state = make();
        loop {
            let index = next.fetch_add(1, Ordering::Relaxed);
            if index >= count {
                break;
            }
            let result = run(&mut state, index);
            results.lock().expect("no thread panics while it holds the lock").push((index, result));
        }
    };
    std::thread::scope(|scope| {
        (1..threads).for_each(|_| drop(scope.spawn(work)));
        work();
    });
    let mut results = results.into_inner().expect("all threads have ended well");
    results.sort_unstable_by_key(|(index, _)| *index);
    results.into_iter().map(|(_, result)| result).collect()
}

/// For each alignment: the percentile of each stream over its requests within the window (`None` without
/// requests), and how the replay went.
pub fn percentiles(
    system: &System<'_>,
    service: Service,
    alignments: &[Alignment],
    percentiles: &[Percentile],
) -> Vec<(Vec<Option<Nanos>>, Outcome)> {
    let make = || (Replay::new(system, service), Percentiles::default());
    for_each(alignments.len(), make, |(replay, tails), index| {
        let shifts = alignments[index].shifts(system);
        tails.reset(&replay.counts(&shifts), percentiles);
        let outcome = replay.run(&shifts, tails);
        (tails.take(), outcome)
    })
}
