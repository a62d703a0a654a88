//! The client whose latency is measured: one request at a time, every reply checked.

use crate::caller::{BLOCK, Caller};
use crate::ground::{GOLD, Ground};
use std::io;
use std::sync::atomic::{AtomicBool, Ordering::SeqCst};
use std::time::{Duration, Instant};
use wire::Protocol;

/// Above best-effort clients, below the proxy.
const CLIENT_FIFO: u32 = 20;
/// Tag of its requests.
pub const PRIORITY_TAG: u8 = b'p';
/// Number of requests at the start that are not measured.
const WARM_UP: usize = 10;
/// Time by which the warm-up must have ended; otherwise the measurement ends.
const STUCK: Duration = Duration::from_secs(3);
/// Latency that a failed request counts as.
const FAILED: Duration = Duration::from_secs(20);

/// Requests of the priority client, and their timing.
#[derive(Debug, Clone, Copy)]
pub struct PriorityLane {
    pub protocol: Protocol,
    /// Interval between requests; without one, each follows the last answer.
    pub pace: Option<Duration>,
    /// True if requests move no data: FLUSH, GETATTR.
    pub syncs: bool,
    /// True if every request uses a new connection.
    pub connects: bool,
}

impl PriorityLane {
    pub const fn closed(protocol: Protocol) -> Self {
        Self { protocol, pace: None, syncs: false, connects: false }
    }
}

/// Measurements of a priority client.
#[derive(Debug, Clone, Default)]
pub struct LatencySample {
    /// In nanoseconds, ascending.
    pub latencies: Vec<u64>,
    pub per_s: f64,
    pub failed: u64,
    pub wrong: u64,
    /// 99th percentile of the delay with which the machine wakes a thread of the same real-time priority,
    /// nanoseconds.
    pub machine_p99_ns: f64,
}

impl LatencySample {
    pub fn p99(&self) -> f64 {
        let Some(last) = self.latencies.len().checked_sub(1) else { return f64::INFINITY };
        self.latencies[last.min(confidence::nearest_rank(99.0, last + 1) - 1)] as f64
    }

    pub fn max(&self) -> f64 {
        self.latencies.last().map_or(f64::INFINITY, |last| *last as f64)
    }
}

/// Measures for at least `window`; a request in flight at the end is completed.
pub fn measure(ground: &Ground, lane: PriorityLane, window: Duration) -> LatencySample {
    let is_over = AtomicBool::new(false);
    std::thread::scope(|scope| {
        let machine = scope.spawn(|| lateness_of_wakes(&is_over));
        let client = scope.spawn(|| {
            let _ = (machine::realtime::fifo(CLIENT_FIFO), machine::realtime::exact_timers());
            let mut sample = LatencySample::default();
            let mut caller = None;
            let first = Instant::now();
            let mut begun = first;
            let mut turn = 0;
            while (turn < WARM_UP && first.elapsed() < STUCK) || begun.elapsed() < window {
                if turn == WARM_UP {
                    (begun, sample.latencies) = (Instant::now(), Vec::new());
                }
                if let Some(pace) = lane.pace {
                    let next = begun + pace * u32::try_from(sample.latencies.len()).expect("few");
                    std::thread::sleep(next.saturating_duration_since(Instant::now()));
                }
                one(ground, lane, &mut caller, &mut sample);
                turn += 1;
            }
            sample.per_s = sample.latencies.len() as f64 / begun.elapsed().as_secs_f64();
            sample.latencies.sort_unstable();
            sample
        });
        let sample = client.join().expect("the priority client does not panic");
        is_over.store(true, SeqCst);
        let machine_p99_ns = machine.join().expect("a thread that sleeps does not panic");
        LatencySample { machine_p99_ns, ..sample }
    })
}

/// Returns the 99th percentile of the wake-up delay of a thread that sleeps a millisecond at a time until
/// the end, nanoseconds.
fn lateness_of_wakes(is_over: &AtomicBool) -> f64 {
    let _ = (machine::realtime::fifo(CLIENT_FIFO), machine::realtime::exact_timers());
    let mut sample = LatencySample::default();
    while !is_over.load(SeqCst) {
        let due = Instant::now() + Duration::from_millis(1);
        std::thread::sleep(Duration::from_millis(1));
        let late = due.elapsed().as_nanos();
        sample.latencies.push(u64::try_from(late).expect("less than centuries"));
    }
    sample.latencies.sort_unstable();
    sample.p99()
}

/// Makes one request, on the existing connection or a new one.
fn one(ground: &Ground, lane: PriorityLane, caller: &mut Option<Caller>, sample: &mut LatencySample) {
    let begun = Instant::now();
    let place = caller.as_ref().map_or(0, |caller| caller.place);
    if lane.connects {
        *caller = None;
    }
    let latency = match ask(ground, lane, caller, place) {
        Ok(right) => {
            sample.wrong += u64::from(!right);
            begun.elapsed()
        }
        Err(_) => {
            *caller = None;
            sample.failed += 1;
            std::thread::sleep(Duration::from_millis(5));
            FAILED.max(begun.elapsed())
        }
    };
    sample.latencies.push(u64::try_from(latency.as_nanos()).expect("less than centuries"));
}

fn ask(ground: &Ground, lane: PriorityLane, caller: &mut Option<Caller>, place: u64) -> io::Result<bool> {
    let caller = match caller {
        Some(caller) => caller,
        None => {
            let fresh = Caller::connect(&ground.fronts, lane.protocol, GOLD, PRIORITY_TAG)?;
            let caller = caller.insert(fresh);
            caller.place = place;
            caller
        }
    };
    if lane.syncs {
        caller.sync();
    } else {
        caller.read(BLOCK);
    }
    caller.send()?;
    let reply = caller.reply()?;
    Ok(lane.syncs || caller.is_right(&reply, caller.place))
}
