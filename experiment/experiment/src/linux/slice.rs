//! Time slice of threads that have none of their own.

use machine::scheduling::{ThreadScheduling, own_thread, scheduling, set_scheduling};
use std::thread;
use std::time::{Duration, Instant};

/// Lifetime of the cached value: all threads of a switch are set within it.
const VALID: Duration = Duration::from_secs(1);

/// Cached default slice.
#[derive(Debug, Default)]
pub(crate) struct DefaultSlice(Option<(Instant, Option<u64>)>);

impl DefaultSlice {
    /// Returns the default slice in nanoseconds, from the cache if it is recent.
    pub(crate) fn ns(&mut self) -> Option<u64> {
        let valid = self.0.filter(|(since, _)| since.elapsed() < VALID);
        let (_, slice) = *self.0.insert(valid.unwrap_or_else(|| (Instant::now(), default_slice_ns())));
        slice
    }
}

/// Measures the default slice. Threads inherit slices, so a thread of this program must give up its own
/// first; it ends at once.
pub(crate) fn default_slice_ns() -> Option<u64> {
    let given_up = || {
        let thread = own_thread();
        let own = scheduling(thread).ok()?;
        let without = match own.policy.is_real_time() {
            true => ThreadScheduling { resets_on_fork: own.resets_on_fork, ..ThreadScheduling::ordinary(0) },
            false => ThreadScheduling { slice_ns: 0, ..own },
        };
        set_scheduling(thread, &without).ok()?;
        scheduling(thread).ok().map(|own| own.slice_ns).filter(|slice| *slice > 0)
    };
    thread::Builder::new().spawn(given_up).ok()?.join().ok()?
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_default_is_looked_for_once() {
        let mut slice = DefaultSlice::default();
        assert_eq!(slice.ns(), default_slice_ns());
        slice.0 = Some((Instant::now(), Some(7)));
        assert_eq!(slice.ns(), Some(7));
        slice.0 = Instant::now().checked_sub(VALID).map(|long_ago| (long_ago, Some(7)));
        assert_eq!(slice.ns(), default_slice_ns());
    }

    #[test]
    fn threads_that_have_chosen_a_slice_find_the_default_too() {
        let Some(default) = default_slice_ns() else {
            return testkit::skip("threads have no slices of their own");
        };
        let chooses = move || {
            let thread = own_thread();
            let own = scheduling(thread).expect("it runs");
            let chosen = ThreadScheduling { slice_ns: default + 1_000_000, ..own };
            set_scheduling(thread, &chosen).expect("anybody may");
            assert_eq!(scheduling(thread).expect("it runs"), chosen);
            assert_eq!(default_slice_ns(), Some(default));
        };
        thread::spawn(chooses).join().expect("all is as promised");
    }
}
