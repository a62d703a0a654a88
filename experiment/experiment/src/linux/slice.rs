//! For how long threads run that have no slice of their own.

use machine::scheduling::{ThreadScheduling, own_thread, scheduling, set_scheduling};
use std::thread;
use std::time::{Duration, Instant};

/// How long the default is taken to be the same: long enough for all threads of a switch.
const VALID: Duration = Duration::from_secs(1);

/// The slice of threads that have none of their own, which is looked for once for many threads.
#[derive(Debug, Default)]
pub(crate) struct DefaultSlice(Option<(Instant, Option<u64>)>);

impl DefaultSlice {
    /// The slice, looked for again if that was long ago.
    pub(crate) fn ns(&mut self) -> Option<u64> {
        let valid = self.0.filter(|(since, _)| since.elapsed() < VALID);
        let (_, slice) = *self.0.insert(valid.unwrap_or_else(|| (Instant::now(), default_slice_ns())));
        slice
    }
}

/// The slice of threads that have none of their own, if it can be found out. Slices are inherited, so that those of this
/// program do not tell: a thread that ends at once gives up its own.
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
