//! When threads were last seen to do something for a request: until then they were busy with it.

use std::collections::BTreeMap;

/// The last activity of each thread that was seen to read or write. Servers with a thread for each connection have many that
/// end; when there are too many, all are forgotten.
#[derive(Debug)]
pub(super) struct ThreadActivity {
    times: BTreeMap<u32, u64>,
    threads_max: usize,
}

impl ThreadActivity {
    /// No thread, and at most so many.
    pub(super) fn new(threads_max: usize) -> Self {
        Self { times: BTreeMap::new(), threads_max }
    }

    /// Notes that a thread was active, and returns when it was before that; 0 if never.
    pub(super) fn touch(&mut self, thread: u32, time: u64) -> u64 {
        if self.times.len() >= self.threads_max && !self.times.contains_key(&thread) {
            self.times.clear();
        }
        let last = self.times.entry(thread).or_default();
        let before = *last;
        *last = before.max(time);
        before
    }

    /// The number of threads.
    pub(super) fn len(&self) -> usize {
        self.times.len()
    }
}
