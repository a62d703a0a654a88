//! Requests in order of arrival, each on a separate thread from a pool, on some CPUs.

use machine::scheduling::set_cpus;
use rustix::thread::gettid;
use rustix::time::{ClockId, clock_gettime};
use sched_hint::{SlotArray, ThreadSlot};
use std::sync::atomic::{AtomicU64, Ordering::SeqCst};
use std::sync::mpsc::{Sender, channel};
use std::thread;
use std::time::Duration;

/// A request, with times in nanoseconds from the begin of the play.
#[derive(Debug, Clone, Copy)]
pub(crate) struct PlayedRequest {
    /// Time at which it entered the system, some time before it arrives here.
    pub(crate) entered: u64,
    pub(crate) arrival: u64,
    pub(crate) work: u64,
}

/// Outcome of a play's requests.
#[derive(Debug)]
pub(crate) struct PlayOutcome {
    pub(crate) p50_ms: f64,
    pub(crate) p99_ms: f64,
    pub(crate) mean_ms: f64,
    /// Share of requests whose position among completions differs from that by entry.
    pub(crate) reordered: f64,
}

/// A generator of random numbers; the same seed gives the same numbers in every guest.
pub(crate) struct Draws(u64);

impl Draws {
    pub(crate) fn new(seed: u64) -> Self {
        Self(seed)
    }

    /// SplitMix64 (Steele, Lea and Flood, 2014), as a number between 0 and 1.
    fn uniform(&mut self) -> f64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (self.0 ^ self.0 >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = (mixed ^ mixed >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
        ((mixed ^ mixed >> 31) >> 11) as f64 / (1_u64 << 53) as f64
    }

    fn exponential(&mut self, mean_ns: f64) -> u64 {
        nanos_of(Duration::from_secs_f64(-mean_ns * 1e-9 * (1.0 - self.uniform()).ln()))
    }
}

fn nanos_of(time: Duration) -> u64 {
    u64::try_from(time.as_nanos()).expect("less than centuries")
}

/// Returns requests with exponential gaps and exponential work of this mean, which entered the system an
/// exponential time before.
pub(crate) fn requests(count: usize, work_ns: f64, load: f64) -> Vec<PlayedRequest> {
    let mut draws = Draws::new(7);
    let mut arrival = 0;
    let mut drawn = Vec::new();
    for _ in 0..count {
        arrival += draws.exponential(work_ns / load);
        let lag = draws.exponential(4.0 * work_ns);
        let work = draws.exponential(work_ns).max(50_000);
        drawn.push(PlayedRequest { entered: (arrival + ORIGIN).saturating_sub(lag), arrival, work });
    }
    drawn
}

/// Origin of entry times, so that those before the beginning are not negative.
const ORIGIN: u64 = 10_000_000_000;

struct Worker {
    slot: Option<ThreadSlot>,
    work: Sender<(usize, u64)>,
}

/// Plays requests on these CPUs; each thread may run on any of them, and the calling thread stays on the
/// first. `at_half` is called when half have arrived.
pub(crate) fn play(
    requests: &[PlayedRequest],
    cpus: &[usize],
    is_tagged: bool,
    at_half: impl FnOnce(),
) -> PlayOutcome {
    play_by(requests, |_| cpus, is_tagged, at_half)
}

/// Does the same with tagged threads that stay on one CPU each, assigned in turn.
pub(crate) fn play_on_one_each(requests: &[PlayedRequest], cpus: &[usize]) -> PlayOutcome {
    play_by(requests, |number| std::slice::from_ref(&cpus[number % cpus.len()]), true, || ())
}

fn play_by<'a>(
    requests: &[PlayedRequest],
    cpus_of: impl Fn(usize) -> &'a [usize],
    is_tagged: bool,
    at_half: impl FnOnce(),
) -> PlayOutcome {
    let (finished, done) = channel();
    let workers: Vec<Worker> =
        (0..WORKERS).map(|number| worker(number, cpus_of(number), is_tagged, finished.clone())).collect();
    let mut free: Vec<usize> = (0..WORKERS).collect();
    let mut ends = vec![0; requests.len()];
    let mut at_half = Some(at_half);
    let begin = now();
    for (number, request) in requests.iter().enumerate() {
        while now() < begin + request.arrival {
            thread::sleep(Duration::from_nanos((begin + request.arrival).saturating_sub(now())));
        }
        if number == requests.len() / 2 {
            at_half.take().into_iter().for_each(|at_half| at_half());
        }
        while let Ok((worker, request, end)) = done.try_recv() {
            free.push(worker);
            ends[request] = end;
        }
        let chosen = free.pop().unwrap_or_else(|| {
            let (worker, request, end): (usize, usize, u64) = done.recv().expect("workers live");
            ends[request] = end;
            worker
        });
        let worker = &workers[chosen];
        // Tagged before it is woken.
        worker.slot.iter().for_each(|slot| slot.tag(request.entered));
        worker.work.send((number, request.work)).expect("workers live");
    }
    drop((workers, finished));
    done.iter().for_each(|(_, request, end)| ends[request] = end);
    outcome(requests, &ends.iter().map(|end| end - begin).collect::<Vec<_>>())
}

/// Number of threads in the pool: more than the tests ever need, so that no request waits for one.
const WORKERS: usize = 96;

fn worker(number: usize, cpus: &[usize], is_tagged: bool, finished: Sender<(usize, usize, u64)>) -> Worker {
    let (work, requests) = channel();
    let (ready, slots) = channel();
    let cpus = cpus.to_vec();
    thread::spawn(move || {
        keep_to(&cpus);
        let slot = is_tagged.then(|| {
            let array = SlotArray::open(sched_hint::DEFAULT_FOLDER.as_ref()).expect("the folder is ours");
            array.expect("a scheduler runs").register().expect("a slot is free")
        });
        ready.send(slot.clone()).expect("it is waited for");
        for (request, work) in requests {
            spend(work);
            let end = now();
            slot.iter().for_each(ThreadSlot::untag);
            let _ = finished.send((number, request, end));
        }
    });
    Worker { slot: slots.recv().expect("it starts"), work }
}

/// Restricts the calling thread to these CPUs.
pub(crate) fn keep_to(cpus: &[usize]) {
    let thread = gettid().as_raw_nonzero().get().unsigned_abs();
    set_cpus(thread, &cpus.iter().copied().collect()).expect("the guest has these CPUs");
}

/// Uses this much CPU time. The emulated CPUs take turns, and one that never pauses may leave no time to
/// the others: a thread of another CPU then stalls for 0.2 s and more.
pub(crate) fn spend(work_ns: u64) {
    let begin = cpu_time();
    while cpu_time() - begin < work_ns {
        std::hint::spin_loop();
        std::hint::black_box(
            (0..200_u64)
                .fold(0, |sum: u64, step| sum.wrapping_mul(31).wrapping_add(std::hint::black_box(step))),
        );
    }
}

/// Returns the CPU time of the calling thread, nanoseconds.
pub(crate) fn cpu_time() -> u64 {
    nanos(ClockId::ThreadCPUTime)
}

/// Returns the time since boot, nanoseconds.
pub(crate) fn now() -> u64 {
    nanos(ClockId::Monotonic)
}

fn nanos(clock: ClockId) -> u64 {
    let time = clock_gettime(clock);
    time.tv_sec.unsigned_abs() * 1_000_000_000 + time.tv_nsec.unsigned_abs()
}

/// Threads that spend CPU time until stopped, and the time that each has spent.
pub(crate) struct Spinners {
    pub(crate) spent: Vec<std::sync::Arc<AtomicU64>>,
    stop: std::sync::Arc<AtomicU64>,
    threads: Vec<thread::JoinHandle<()>>,
}

impl Spinners {
    /// Starts a thread for each key on a CPU; zero is untagged.
    pub(crate) fn start(cpu: usize, keys: &[u64]) -> Self {
        let stop = std::sync::Arc::new(AtomicU64::new(0));
        let mut spinners = Self { spent: Vec::new(), stop, threads: Vec::new() };
        for key in keys.iter().copied() {
            let spent = std::sync::Arc::new(AtomicU64::new(0));
            let counter = std::sync::Arc::clone(&spent);
            let stop = std::sync::Arc::clone(&spinners.stop);
            spinners.spent.push(spent);
            spinners.threads.push(thread::spawn(move || {
                keep_to(&[cpu]);
                while stop.load(SeqCst) == 0 {
                    // A scheduler may have started since.
                    sched_hint::tag_current(key);
                    spend(200_000);
                    counter.store(cpu_time(), SeqCst);
                }
            }));
        }
        spinners
    }

    /// Returns the time that each has spent since it started, nanoseconds.
    pub(crate) fn spent(&self) -> Vec<u64> {
        self.spent.iter().map(|spent| spent.load(SeqCst)).collect()
    }

    /// Returns the share of each in the CPU time of all, in this time.
    pub(crate) fn shares(&self, within: Duration) -> Vec<f64> {
        let before = self.spent();
        thread::sleep(within);
        let gained: Vec<u64> =
            before.iter().zip(self.spent()).map(|(before, after)| after - before).collect();
        let all = gained.iter().sum::<u64>().max(1) as f64;
        gained.into_iter().map(|gained| gained as f64 / all).collect()
    }

    pub(crate) fn stop(self) {
        self.stop.store(1, SeqCst);
        self.threads.into_iter().for_each(|thread| thread.join().expect("spinners do not fail"));
    }
}

fn outcome(requests: &[PlayedRequest], ends: &[u64]) -> PlayOutcome {
    let mut latencies: Vec<f64> = requests
        .iter()
        .zip(ends)
        .map(|(request, end)| (end + ORIGIN - request.entered) as f64 / 1e6)
        .collect();
    let mut by_entry: Vec<usize> = (0..requests.len()).collect();
    by_entry.sort_by_key(|number| requests[*number].entered);
    let mut by_end: Vec<usize> = (0..requests.len()).collect();
    by_end.sort_by_key(|number| ends[*number]);
    let moved = by_entry.iter().zip(&by_end).filter(|(entry, end)| entry != end).count();
    let mean_ms = latencies.iter().sum::<f64>() / latencies.len() as f64;
    latencies.sort_by(f64::total_cmp);
    PlayOutcome {
        p50_ms: latencies[latencies.len() / 2],
        p99_ms: latencies[latencies.len() * 99 / 100],
        mean_ms,
        reordered: moved as f64 / requests.len() as f64,
    }
}
