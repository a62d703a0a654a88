use crate::measurement::Measurement;
use crate::plan::{Cell, Plan};
use crate::target::{AlignedBuffer, MIN_REQUESTS, Target};
use model::{Op, OperationError};
use rand::rngs::StdRng;
use rand::{Rng, RngExt, SeedableRng};
use std::sync::RwLock;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};
use units::Bytes;

/// How far a run is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Step {
    /// Filling a created file, in MiB.
    Fill {
        /// So far.
        done: u64,
        /// In all.
        total: u64,
    },
    /// Measuring, in repeats of cells of equal duration.
    Measure {
        /// So far.
        done: u64,
        /// In all.
        total: u64,
    },
}

/// What one repeat of one cell saw.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Repeat {
    pub(crate) bytes_per_s: f64,
    pub(crate) requests: u64,
    /// Of every request, nanoseconds, in no order.
    pub(crate) latencies_ns: Vec<u64>,
}

/// Runs the plan on the target. When `stop` is set, returns what was measured until then.
///
/// # Errors
/// A target too small for the plan, and what the device or operating system refuses.
pub fn measure(
    target: &Target,
    plan: &Plan,
    progress: &mut dyn FnMut(Step),
    stop: &AtomicBool,
) -> Result<Measurement, OperationError> {
    let needed = Bytes(plan.size_max().0.saturating_mul(MIN_REQUESTS));
    if target.length() < needed {
        let message = format!("{} holds {}, too little", target.path().display(), target.length());
        return Err(OperationError::input(message)
            .hint(format!("requests of {} need a target of at least {needed}", plan.size_max())));
    }
    let mut measurement = Measurement::new(plan);
    let schedule = plan.schedule();
    for (done, &at) in schedule.iter().enumerate() {
        let seed = plan.seed().wrapping_add((done as u64 + 1) << 16);
        let repeat = run_repeat(target, plan.cells()[at], plan.per_repeat(), seed, stop)?;
        if stop.load(Ordering::Relaxed) {
            break;
        }
        measurement.add(at, repeat);
        progress(Step::Measure { done: done as u64 + 1, total: schedule.len() as u64 });
    }
    Ok(measurement)
}

/// Keeps `cell.parallelism` requests outstanding for `duration`.
fn run_repeat(
    target: &Target,
    cell: Cell,
    duration: Duration,
    seed: u64,
    stop: &AtomicBool,
) -> Result<Repeat, OperationError> {
    // Closed until all threads are there; holds the common start.
    let gate = RwLock::new(Instant::now());
    let mut outcomes = Vec::with_capacity(cell.parallelism);
    thread::scope(|scope| {
        let mut start = gate.write().expect("no thread panics while it holds the gate");
        let threads: Vec<_> = (0..cell.parallelism as u64)
            .map(|thread| {
                let client = Client { target, cell, duration, seed: seed.wrapping_add(thread), stop };
                let gate = &gate;
                scope.spawn(move || client.run(gate))
            })
            .collect();
        *start = Instant::now();
        drop(start);
        outcomes.extend(threads.into_iter().map(|thread| thread.join().expect("clients do not panic")));
    });
    let start = *gate.read().expect("all threads have ended");
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
struct Client<'run> {
    target: &'run Target,
    cell: Cell,
    duration: Duration,
    seed: u64,
    stop: &'run AtomicBool,
}

impl Client<'_> {
    /// Latencies and the end of the last request. Every client completes at least one request.
    fn run(&self, gate: &RwLock<Instant>) -> Result<(Vec<u64>, Instant), OperationError> {
        let mut rng = StdRng::seed_from_u64(self.seed);
        let size = self.cell.size.0;
        let len =
            usize::try_from(size).map_err(|_| OperationError::input("a request does not fit in memory"))?;
        let mut buffer = AlignedBuffer::random(len, &mut rng);
        let positions = self.target.length().0 / size;
        let mut latencies = Vec::new();
        let start = *gate.read().expect("no thread panics while it holds the gate");
        loop {
            if self.cell.op == Op::Write {
                buffer.bytes()[..8].copy_from_slice(&rng.next_u64().to_le_bytes());
            }
            let begin = Instant::now();
            self.target.transfer(self.cell.op, buffer.bytes(), rng.random_range(0..positions) * size)?;
            let end = Instant::now();
            latencies.push(u64::try_from((end - begin).as_nanos()).unwrap_or(u64::MAX));
            if end - start >= self.duration || self.stop.load(Ordering::Relaxed) {
                return Ok((latencies, end));
            }
        }
    }
}
