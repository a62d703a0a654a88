//! When threads were last seen to do something for a request: until then they were busy with it.

use std::collections::BTreeMap;

/// The most threads that are kept; servers with a thread for each connection have many that end.
const THREADS_MAX: usize = 1 << 16;

/// The last activity of each thread that was seen to read or write.
#[derive(Debug, Default)]
pub(super) struct ThreadActivity(BTreeMap<u32, u64>);

impl ThreadActivity {
    /// Notes that a thread was active, and returns when it was before that; 0 if never.
    pub(super) fn touch(&mut self, thread: u32, time: u64) -> u64 {
        if self.0.len() > THREADS_MAX {
            self.0.clear();
        }
        let last = self.0.entry(thread).or_default();
        let before = *last;
        *last = before.max(time);
        before
    }
}
