//! Work: CPU time that a thread spends, with the intervals in which it ran.

use machine::{clock, cpu_time};

/// Time between two clock reads after which the thread counts as interrupted: far above the duration of
/// interrupts, and far below the slices of other threads.
const PAUSE_NS: u64 = 50_000;
/// Reads of the machine's clock, which is fast, per read of the thread's own, which is a system call.
const LOOKS: u32 = 200;

/// Work of a thread, one piece after the other, by its own CPU time.
#[derive(Debug)]
pub(crate) struct WorkingThread {
    /// CPU time of the thread at the end of the last piece, nanoseconds.
    settled_ns: u64,
}

impl WorkingThread {
    /// Creates the work of the calling thread, before its first piece.
    pub(crate) fn new() -> Self {
        Self { settled_ns: cpu_time::of_thread() }
    }

    /// Spends this much CPU time. Returns the intervals in which the thread ran, on the machine's clock.
    /// The thread's CPU time for reading and answering since the last piece counts as part of the work,
    /// up to half of it.
    pub(crate) fn spend(&mut self, work_ns: u64) -> Vec<(u64, u64)> {
        let now = cpu_time::of_thread();
        let target = now + work_ns - (now - self.settled_ns).min(work_ns / 2);
        let mut runs = Vec::new();
        let mut from = clock::now();
        let mut last = clock::now();
        loop {
            for _ in 0..LOOKS {
                let now = clock::now();
                if now - last > PAUSE_NS {
                    runs.push((from, last));
                    from = now;
                }
                last = now;
            }
            // Lets an emulator whose CPUs take turns switch to the next one.
            std::hint::spin_loop();
            let spent = cpu_time::of_thread();
            if spent >= target {
                self.settled_ns = spent;
                runs.push((from, last));
                return runs;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn work_is_cpu_time_and_lies_within_its_runs() {
        let mut thread = WorkingThread::new();
        let before = cpu_time::of_thread();
        let begin = clock::now();
        let runs = thread.spend(5_000_000);
        let spent = cpu_time::of_thread() - before;
        let end = clock::now();
        assert!(spent >= 2_500_000, "{spent}");
        assert!(runs[0].0 >= begin && runs[runs.len() - 1].1 <= end, "{runs:?}");
        assert!(runs.iter().all(|run| run.0 <= run.1) && runs.windows(2).all(|pair| pair[0].1 < pair[1].0));
        // The next piece is charged the time in between, up to half of it.
        let between = cpu_time::of_thread();
        while cpu_time::of_thread() < between + 1_000_000 {}
        let before = cpu_time::of_thread();
        thread.spend(10_000_000);
        assert!(cpu_time::of_thread() - before < 10_000_000);
    }
}
