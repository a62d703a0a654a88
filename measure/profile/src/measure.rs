//! Runs a plan on a target: threads that each keep one request outstanding, all started at the same time.

use crate::aligned_buffer::AlignedBuffer;
use crate::measurement::{Measurement, Repeat};
use crate::plan::{MeasurementCell, MeasurementPlan};
use crate::progress::ProfileProgress;
use crate::target::{MIN_REQUESTS, StorageTarget};
use model::{Op, OperationError};
use rand::rngs::StdRng;
use rand::{Rng, RngExt, SeedableRng};
use std::fmt::Display;
use std::sync::RwLock;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};
use units::Bytes;

/// Runs the plan on the target. When `stop` is set, returns what was measured until then.
///
/// # Errors
/// When the target is too small for the plan, or the device or operating system refuses a request.
pub fn measure(
    target: &StorageTarget,
    plan: &MeasurementPlan,
    progress: &mut dyn FnMut(ProfileProgress),
    stop: &AtomicBool,
) -> Result<Measurement, OperationError> {
    check_room(plan, &target.path().display(), target.length())?;
    measure_cells(plan, progress, stop, &mut |cell, seed| {
        run_repeat(target, plan.cells()[cell], plan.per_repeat(), seed, stop)
    })
}

/// Refuses a target that is too small for random offsets.
///
/// # Errors
/// When fewer than [`MIN_REQUESTS`] requests of the largest size fit into `length`.
pub fn check_room(plan: &MeasurementPlan, target: &dyn Display, length: Bytes) -> Result<(), OperationError> {
    let needed = Bytes(plan.size_max().0.saturating_mul(MIN_REQUESTS));
    if length < needed {
        let message = format!("{target} holds {length}, too little");
        return Err(OperationError::input(message)
            .hint(format!("requests of {} need a target of at least {needed}", plan.size_max())));
    }
    Ok(())
}

/// Measures every repeat of every cell in the order of the plan. `run` measures one repeat of the cell with this index
/// and with a seed of its own. When `stop` is set, returns what was measured until then.
///
/// # Errors
/// The first error of `run`.
pub fn measure_cells(
    plan: &MeasurementPlan,
    progress: &mut dyn FnMut(ProfileProgress),
    stop: &AtomicBool,
    run: &mut dyn FnMut(usize, u64) -> Result<Repeat, OperationError>,
) -> Result<Measurement, OperationError> {
    let mut measurement = Measurement::new(plan);
    let schedule = plan.schedule();
    for (done, &cell) in schedule.iter().enumerate() {
        // Above the low 16 bits, which distinguish the threads of a repeat.
        let seed = plan.seed().wrapping_add((done as u64 + 1) << 16);
        let repeat = run(cell, seed)?;
        // A repeat that was cut short is not comparable with the others.
        if stop.load(Ordering::Relaxed) {
            break;
        }
        measurement.add(cell, repeat);
        progress(ProfileProgress::Measure { done: done as u64 + 1, total: schedule.len() as u64 });
    }
    Ok(measurement)
}

/// Keeps `cell.parallelism` requests outstanding for `duration`.
fn run_repeat(
    target: &StorageTarget,
    cell: MeasurementCell,
    duration: Duration,
    seed: u64,
    stop: &AtomicBool,
) -> Result<Repeat, OperationError> {
    // The common start. It is locked until all threads exist, so that none begins earlier than the others.
    let start = RwLock::new(Instant::now());
    let mut outcomes = Vec::with_capacity(cell.parallelism);
    thread::scope(|scope| {
        let mut locked_start = start.write().expect("no thread panics while it holds the lock");
        let mut threads = Vec::with_capacity(cell.parallelism);
        for thread in 0..cell.parallelism as u64 {
            let requester = Requester { target, cell, duration, seed: seed.wrapping_add(thread), stop };
            let start = &start;
            threads.push(scope.spawn(move || requester.run(start)));
        }
        *locked_start = Instant::now();
        drop(locked_start);
        outcomes.extend(threads.into_iter().map(|thread| thread.join().expect("requesters do not panic")));
    });
    let start = *start.read().expect("all threads have ended");
    let mut end = start;
    let mut latencies_ns = Vec::new();
    for outcome in outcomes {
        let (latencies, ended) = outcome?;
        latencies_ns.extend(latencies);
        end = end.max(ended);
    }
    let requests = latencies_ns.len() as u64;
    let bytes_per_s = (requests * cell.size.0) as f64 / (end - start).as_secs_f64();
    Ok(Repeat { bytes_per_s, requests, latencies_ns })
}

/// One thread with one outstanding request.
struct Requester<'run> {
    target: &'run StorageTarget,
    cell: MeasurementCell,
    duration: Duration,
    seed: u64,
    stop: &'run AtomicBool,
}

impl Requester<'_> {
    /// Waits for `start` to be unlocked and issues requests until the time is over, at least one. Returns their
    /// latencies in nanoseconds and the end of the last one.
    fn run(&self, start: &RwLock<Instant>) -> Result<(Vec<u64>, Instant), OperationError> {
        let mut rng = StdRng::seed_from_u64(self.seed);
        let size = self.cell.size.0;
        let len =
            usize::try_from(size).map_err(|_| OperationError::input("a request does not fit in memory"))?;
        let mut buffer = AlignedBuffer::random(len, &mut rng);
        let positions = self.target.length().0 / size;
        let mut latencies = Vec::new();
        let start = *start.read().expect("no thread panics while it holds the lock");
        loop {
            if self.cell.op == Op::Write {
                // Different contents each time, so that no layer recognises a repeated write.
                buffer.bytes_mut()[..8].copy_from_slice(&rng.next_u64().to_le_bytes());
            }
            let begin = Instant::now();
            let offset = rng.random_range(0..positions) * size;
            self.target.transfer(self.cell.op, buffer.bytes_mut(), offset)?;
            let end = Instant::now();
            latencies.push(u64::try_from((end - begin).as_nanos()).unwrap_or(u64::MAX));
            if end - start >= self.duration || self.stop.load(Ordering::Relaxed) {
                return Ok((latencies, end));
            }
        }
    }
}
