//! For how long threads run that have no slice of their own.

use machine::scheduling::{ThreadScheduling, scheduling, set_scheduling};
use std::thread;

/// The slice of threads that have none of their own, if it can be found out. Slices are inherited, so that those of this
/// program do not tell: a thread that ends at once gives up its own.
pub(crate) fn default_slice_ns() -> Option<u64> {
    let given_up = || {
        let thread = rustix::thread::gettid().as_raw_nonzero().get().unsigned_abs();
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
    fn threads_that_have_chosen_a_slice_find_the_default_too() {
        let Some(default) = default_slice_ns() else {
            return testkit::skip("threads have no slices of their own");
        };
        let chooses = move || {
            let thread = rustix::thread::gettid().as_raw_nonzero().get().unsigned_abs();
            let own = scheduling(thread).expect("it runs");
            let chosen = ThreadScheduling { slice_ns: default + 1_000_000, ..own };
            set_scheduling(thread, &chosen).expect("anybody may");
            assert_eq!(scheduling(thread).expect("it runs"), chosen);
            assert_eq!(default_slice_ns(), Some(default));
        };
        thread::spawn(chooses).join().expect("all is as promised");
    }
}
