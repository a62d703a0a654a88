//! Jobs on all CPUs of this machine.
//!
//! Jobs start in order and results come back in order, so that an answer does not depend on the number of
//! CPUs. There are as many threads as CPUs that this process may use, and never more than jobs. The
//! calling thread is one of them, so each concurrent caller adds one. Jobs may have jobs of their own:
//! these use idle CPUs, or their caller's thread if there are none. Threads that must run at the same
//! time, such as the clients of a load generator, are not jobs.

use std::convert::Infallible;
use std::panic::resume_unwind;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};

/// Returns the results of `run` for all jobs, in the order of the jobs.
pub fn map<J: Sync, T: Send>(jobs: &[J], run: impl Fn(&J) -> T + Sync) -> Vec<T> {
    map_with(jobs.len(), || (), |(), index| run(&jobs[index]))
}

/// Returns the results of `run` for the indices below `count`, in order. Each thread creates one scratch
/// value and passes it to all its jobs, so that they can share allocations.
pub fn map_with<S, T: Send>(
    count: usize,
    make_scratch: impl Fn() -> S + Sync,
    run: impl Fn(&mut S, usize) -> T + Sync,
) -> Vec<T> {
    let run = |scratch: &mut S, index: usize| Ok::<_, Infallible>(run(scratch, index));
    let Ok(results) = fan_out(count, make_scratch, run, || ());
    results
}

/// Returns the results of `run` for all jobs in order, or the error of the first failing job in that
/// order. After an error no further job starts. `job_done` is called after each job, on its thread.
///
/// # Errors
/// The first error in the order of the jobs. It does not depend on timing, because all jobs before it have started.
pub fn try_map<J: Sync, T: Send, E: Send>(
    jobs: &[J],
    run: impl Fn(&J) -> Result<T, E> + Sync,
    job_done: impl Fn() + Sync,
) -> Result<Vec<T>, E> {
    fan_out(jobs.len(), || (), |(), index| run(&jobs[index]), job_done)
}

/// Number of threads of this process that run jobs beside their callers' threads.
static OCCUPIED: AtomicUsize = AtomicUsize::new(0);

/// A CPU taken by a thread that runs jobs; released on drop.
struct OccupiedCpu(());

/// Number of CPUs that this process may use.
fn cpus() -> usize {
    std::thread::available_parallelism().map_or(1, usize::from)
}

impl OccupiedCpu {
    /// Takes a CPU beside that of the caller; `None` when all are taken.
    fn find() -> Option<Self> {
        let cpus = cpus();
        let more = |occupied: usize| (occupied + 1 < cpus).then_some(occupied + 1);
        OCCUPIED.fetch_update(Ordering::Relaxed, Ordering::Relaxed, more).ok().map(|_| Self(()))
    }
}

impl Drop for OccupiedCpu {
    fn drop(&mut self) {
        OCCUPIED.fetch_sub(1, Ordering::Relaxed);
    }
}

fn fan_out<S, T: Send, E: Send>(
    count: usize,
    make_scratch: impl Fn() -> S + Sync,
    run: impl Fn(&mut S, usize) -> Result<T, E> + Sync,
    job_done: impl Fn() + Sync,
) -> Result<Vec<T>, E> {
    let next = AtomicUsize::new(0);
    let finished = Mutex::new(Vec::with_capacity(count));
    on_idle_cpus(count, &|| {
        let mut scratch = make_scratch();
        let mut results = Vec::new();
        loop {
            let index = next.fetch_add(1, Ordering::Relaxed);
            if index >= count {
                break;
            }
            let result = run(&mut scratch, index);
            if result.is_err() {
                next.store(count, Ordering::Relaxed);
            }
            results.push((index, result));
            job_done();
        }
        finished.lock().unwrap_or_else(PoisonError::into_inner).append(&mut results);
    });
    let mut results = finished.into_inner().unwrap_or_else(PoisonError::into_inner);
    results.sort_unstable_by_key(|(index, _)| *index);
    results.into_iter().map(|(_, result)| result).collect()
}

/// Calls `work` on the calling thread and on a thread for every idle CPU, but on no more threads than `count`.
/// Without type parameters, because threads are much to compile for every kind of job.
fn on_idle_cpus(count: usize, work: &(dyn Fn() + Sync)) {
    // A thread may have done all jobs, and so have left its CPU, before the next one starts.
    let threads = count.min(cpus());
    std::thread::scope(|scope| {
        let mut others = Vec::new();
        while others.len() + 1 < threads {
            let Some(cpu) = OccupiedCpu::find() else { break };
            others.push(scope.spawn(|| {
                let _cpu = cpu;
                work();
            }));
        }
        work();
        for thread in others {
            thread.join().unwrap_or_else(|panic| resume_unwind(panic));
        }
    });
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn results_are_in_the_order_of_the_jobs() {
        for count in [0, 1, 2, 3, 1000] {
            let jobs: Vec<usize> = (0..count).collect();
            let squares: Vec<usize> = jobs.iter().map(|job| job * job).collect();
            assert_eq!(map(&jobs, |job| job * job), squares);
            assert_eq!(map_with(count, || 0, |_, index| index * index), squares);
        }
    }

    #[test]
    fn a_thread_keeps_its_scratch_value() {
        let makings = AtomicUsize::new(0);
        let make_scratch = || makings.fetch_add(1, Ordering::Relaxed);
        let runs = map_with(100, make_scratch, |scratch, _| *scratch);
        let threads = makings.load(Ordering::Relaxed);
        assert!(threads <= cpus());
        assert!(runs.iter().all(|scratch| *scratch < threads));
    }

    #[test]
    fn jobs_of_jobs_run_on_no_more_threads_than_there_are_cpus() {
        let running = AtomicUsize::new(0);
        let most = AtomicUsize::new(0);
        let leaf = |number: &usize| {
            most.fetch_max(running.fetch_add(1, Ordering::Relaxed) + 1, Ordering::Relaxed);
            std::thread::yield_now();
            running.fetch_sub(1, Ordering::Relaxed);
            number + 1
        };
        let numbers: Vec<usize> = (0..50).collect();
        let sums = map(&numbers, |_| map(&numbers, leaf).into_iter().sum::<usize>());
        assert_eq!(sums, vec![50 * 51 / 2; 50]);
        assert!(most.into_inner() <= cpus());
    }

    #[test]
    fn the_first_failing_job_in_order_is_reported() {
        let jobs: Vec<usize> = (0..200).collect();
        for failing in [[0, 199], [57, 58], [198, 199]] {
            let done = AtomicUsize::new(0);
            let run = |job: &usize| if failing.contains(job) { Err(*job) } else { Ok(()) };
            let answer = try_map(&jobs, run, || _ = done.fetch_add(1, Ordering::Relaxed));
            assert_eq!(answer, Err(failing[0]));
            assert!((failing[0] + 1..=200).contains(&done.load(Ordering::Relaxed)));
        }
        assert_eq!(try_map(&jobs, |job| Ok::<_, ()>(*job), || ()), Ok(jobs.clone()));
    }

    #[test]
    #[should_panic(expected = "job 7")]
    fn a_panic_of_a_job_is_that_of_the_caller() {
        map_with(20, || (), |(), index| assert_ne!(index, 7, "job 7"));
    }
}
