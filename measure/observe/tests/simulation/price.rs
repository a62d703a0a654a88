//! What a cause costs, by an event simulator that knows nothing of the replay: the same requests served with workers that
//! are held up now and then, and without.

#![allow(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "small counts and simulated instants"
)]

use observe::{
    AttributedRequest, CAUSES, Cause, HeldUpTime, IntendedWaits, ReplayDoubt, TakenOut, counterfactual,
};
use proptest::prelude::*;

/// How far a percentile may be from what the simulation without the cause says, as a factor.
const ACCURACY: f64 = 1.2;

/// Linear congruential numbers.
struct Numbers(u64);

impl Numbers {
    fn below(&mut self, limit: u64) -> u64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % limit.max(1)
    }

    fn exponential(&mut self, mean: u64) -> u64 {
        let uniform = (self.below(1 << 30) + 1) as f64 / f64::from(1u32 << 30);
        (-uniform.ln() * mean as f64) as u64
    }
}

/// A request that comes by a connection, and what it takes of a worker.
#[derive(Clone, Copy)]
struct Job {
    ready: u64,
    connection: u16,
    /// Until a worker that sleeps runs, if this request wakes it.
    wake_up: u64,
    /// Waiting for events and reading, of one that does not sleep.
    turn: u64,
    work: u64,
    /// After the last write.
    rest: u64,
}

/// When workers are held up: from, until.
type HeldUp = [(u64, u64)];

/// A loop around `epoll_wait`: it asks which connections are ready, and answers all that each of them has, one after the
/// other.
fn serve(jobs: &[Job], worker: u32, held_up: &HeldUp) -> Vec<AttributedRequest> {
    let mut now = 0;
    let mut next = 0;
    let mut active = 0;
    let mut waiting: Vec<Job> = Vec::new();
    let mut served = Vec::new();
    while served.len() < jobs.len() {
        let take = |now: u64, next: &mut usize, waiting: &mut Vec<Job>| {
            while *next < jobs.len() && jobs[*next].ready <= now {
                waiting.push(jobs[*next]);
                *next += 1;
            }
        };
        take(now, &mut next, &mut waiting);
        let mut wakes = false;
        if waiting.is_empty() {
            now = jobs[next].ready;
            wakes = true;
            take(now, &mut next, &mut waiting);
        }
        let mut connections: Vec<u16> = Vec::new();
        for job in &waiting {
            if !connections.contains(&job.connection) {
                connections.push(job.connection);
            }
        }
        for connection in connections {
            take(now, &mut next, &mut waiting);
            let (own, others): (Vec<Job>, Vec<Job>) =
                waiting.iter().copied().partition(|job| job.connection == connection);
            waiting = others;
            for job in own {
                let start = active.max(job.ready);
                let before = if std::mem::take(&mut wakes) { job.wake_up } else { job.turn };
                let read = run(now.max(job.ready), before, held_up);
                let done = run(read, job.work, held_up);
                served.push(attributed(&job, worker, (start, read, done), held_up));
                now = run(done, job.rest, held_up);
                active = now;
            }
        }
    }
    served
}

/// The most segments that a client sends before the first of them is acknowledged, which answers do.
const WINDOW: usize = 10;

/// A client end of a connection.
#[derive(Clone, Default)]
struct ClientEnd {
    unacknowledged: usize,
    /// Written by the client, and kept by its kernel.
    unsent: Vec<Job>,
}

/// A server that reads all that a connection has in one call and answers it with one write, for clients that have a
/// congestion window.
fn serve_in_batches(jobs: &[Job], connections: usize, held_up: &HeldUp) -> Vec<AttributedRequest> {
    let mut clients = vec![ClientEnd::default(); connections];
    let mut coming = jobs.iter().copied().peekable();
    let mut waiting: Vec<Job> = Vec::new();
    let mut served = Vec::new();
    let mut now = 0;
    let mut active = 0;
    let mut take = |until: u64, clients: &mut [ClientEnd], waiting: &mut Vec<Job>| {
        while let Some(job) = coming.next_if(|job| job.ready <= until) {
            let client = &mut clients[usize::from(job.connection)];
            if client.unacknowledged < WINDOW {
                client.unacknowledged += 1;
                waiting.push(job);
            } else {
                client.unsent.push(job);
            }
        }
        coming.peek().map(|job| job.ready)
    };
    while served.len() < jobs.len() {
        let mut next = take(now, &mut clients, &mut waiting);
        let finds_free = waiting.is_empty();
        if let (true, Some(ready)) = (finds_free, next) {
            now = ready;
            next = take(now, &mut clients, &mut waiting);
        }
        let Some(first) = waiting.first().copied() else { panic!("{next:?} is not served") };
        let read = run(now.max(first.ready), if finds_free { first.wake_up } else { first.turn }, held_up);
        take(read, &mut clients, &mut waiting);
        let (own, others): (Vec<Job>, Vec<Job>) =
            waiting.iter().copied().partition(|job| job.connection == first.connection && job.ready <= read);
        waiting = others;
        let done = run(read, own.iter().map(|job| job.work).sum(), held_up);
        served.extend(own.iter().map(|job| attributed(job, 1, (active.max(job.ready), read, done), held_up)));
        take(done, &mut clients, &mut waiting);
        let client = &mut clients[usize::from(first.connection)];
        client.unacknowledged = 0;
        let segment = std::mem::take(&mut client.unsent);
        client.unacknowledged += usize::from(!segment.is_empty());
        // The acknowledgement and the segment cross the network.
        waiting.extend(segment.into_iter().map(|job| Job { ready: done + 1_000, ..job }));
        now = run(done, first.rest, held_up);
        active = now;
    }
    served
}

/// When so much is done that is begun now.
fn run(begin: u64, mut work: u64, held_up: &HeldUp) -> u64 {
    let mut now = begin;
    for &(from, until) in held_up.iter().filter(|(_, until)| *until > begin) {
        let free = from.saturating_sub(now);
        if work < free {
            break;
        }
        work -= free.min(work);
        now = until.max(now);
    }
    now + work
}

fn overlap(from: u64, until: u64, held_up: &HeldUp) -> u64 {
    held_up.iter().map(|(a, b)| (*b).min(until).saturating_sub((*a).max(from))).sum()
}

fn attributed(
    job: &Job,
    worker: u32,
    (start, read, done): (u64, u64, u64),
    held_up: &HeldUp,
) -> AttributedRequest {
    let divide = |from: u64, until: u64, otherwise: Cause| {
        let mut times = [0; CAUSES];
        let stopped = overlap(from, until, held_up);
        times[Cause::Stopped as usize] = stopped;
        times[otherwise as usize] = until - from - stopped;
        times
    };
    AttributedRequest {
        ready: job.ready,
        start,
        begun: read.max(start),
        done,
        worker,
        process: 1,
        peer: ([127, 0, 0, 1], job.connection).into(),
        read,
        own: divide(start, done, Cause::Work),
        own_after_read: divide(read, done, Cause::Work),
        held_up: HeldUpTime::default(),
        queued: divide(job.ready, start, Cause::AllBusy),
        interferers: Vec::new(),
    }
}

/// Requests of some connections to some workers, in the mean one every `gap`, and each worker with its own work.
fn jobs(numbers: &mut Numbers, connections: u16, workers: u32, gap: u64) -> Vec<Vec<Job>> {
    let mut of_workers = vec![Vec::new(); workers as usize];
    let mut ready = 1_000_000;
    for _ in 0..12_000 {
        ready += numbers.exponential(gap);
        let connection = numbers.below(u64::from(connections)) as u16;
        let worker = usize::from(connection) % of_workers.len();
        of_workers[worker].push(Job {
            ready,
            connection,
            wake_up: 20_000 + numbers.exponential(15_000),
            turn: 3_000 + numbers.below(2_000),
            work: 6_000 + numbers.exponential(4_000),
            rest: 4_000 + numbers.below(9_000),
        });
    }
    of_workers
}

/// Held up for so long, twice a second in the mean, whatever is going on.
fn held_up(numbers: &mut Numbers, length: u64, every: u64, end: u64) -> Vec<(u64, u64)> {
    let mut found = Vec::new();
    let mut from = numbers.below(every);
    while from < end {
        found.push((from, from + length));
        from += length + every / 2 + numbers.below(every);
    }
    found
}

fn percentiles(requests: &[AttributedRequest]) -> [u64; 3] {
    let mut latencies: Vec<u64> = requests.iter().map(AttributedRequest::latency).collect();
    latencies.sort_unstable();
    [0.5, 0.99, 0.999].map(|rank: f64| latencies[(rank * latencies.len() as f64).ceil() as usize - 1])
}

#[test]
fn percentiles_without_a_cause_are_those_of_a_run_without_it() {
    println!("| connections | workers | gap | held up | p99 with | without, replayed | without, run |");
    let mut known = 0;
    let mut all = 0;
    for (number, connections) in [1u16, 2, 8, 32].into_iter().enumerate() {
        for workers in 1..=4u32 {
            for (length, every, gap) in [
                (20_000_000, 500_000_000, 333_000),
                (3_000_000, 30_000_000, 200_000),
                (500_000, 20_000_000, 60_000),
            ] {
                let mut numbers = Numbers(u64::from(workers) * 97 + number as u64 * 7 + length);
                let of_workers = jobs(&mut numbers, connections, workers, gap);
                let mut with = Vec::new();
                let mut without = Vec::new();
                for (jobs, worker) in of_workers.iter().zip(1..) {
                    let Some(last) = jobs.last() else { continue };
                    let held_up = held_up(&mut numbers, length, every, last.ready);
                    with.extend(serve(jobs, worker, &held_up));
                    without.extend(serve(jobs, worker, &[]));
                }
                let found = counterfactual(&with, TakenOut::Cause(Cause::Stopped), IntendedWaits::Included)
                    .expect("there are requests");
                let truth = percentiles(&without);
                println!(
                    "| {connections} | {workers} | {gap} | {length} | {} | {:?} | {} |",
                    found.measured[1], found.percentiles[1], truth[1]
                );
                assert_eq!(found.measured, percentiles(&with));
                for (found, truth) in found.percentiles.into_iter().zip(truth) {
                    all += 1;
                    if let Some(value) = found.known() {
                        known += 1;
                        let ratio = value as f64 / truth as f64;
                        assert!(
                            (1.0 / ACCURACY..ACCURACY).contains(&ratio),
                            "{ratio}: {found:?}, in truth {truth}"
                        );
                    } else {
                        let is_inside = found.least as f64 <= truth as f64 * ACCURACY
                            && found.most as f64 * ACCURACY >= truth as f64;
                        assert!(is_inside, "{found:?}, in truth {truth}");
                    }
                }
            }
        }
    }
    // Little is queued without the cause, so the order decides nothing in most of them.
    assert!(known * 10 >= all * 9, "{known} of {all} have a value");
}

/// While the server is stopped, clients run out of window, and then many requests come at once.
#[test]
fn requests_that_the_window_of_a_client_put_together_come_one_by_one() {
    println!("| connections | p99 with | without, replayed | without, run |");
    for connections in [1u16, 2, 8, 32] {
        for seed in 0..3 {
            let mut numbers = Numbers(seed * 31 + u64::from(connections));
            let jobs = jobs(&mut numbers, connections, 1, 333_000).remove(0);
            let end = jobs.last().expect("there are requests").ready;
            let held_up = held_up(&mut numbers, 20_000_000, 480_000_000, end);
            let with = serve_in_batches(&jobs, connections.into(), &held_up);
            let truth = percentiles(&serve_in_batches(&jobs, connections.into(), &[]));
            let found = counterfactual(&with, TakenOut::Cause(Cause::Stopped), IntendedWaits::Included)
                .expect("there are requests");
            println!("| {connections} | {} | {:?} | {} |", found.measured[1], found.percentiles[1], truth[1]);
            let value = found.percentiles[1].known().expect("there are enough wake-ups");
            let ratio = value as f64 / truth[1] as f64;
            assert!(
                (1.0 / ACCURACY..ACCURACY).contains(&ratio),
                "{connections}: {value}, in truth {truth:?}"
            );
        }
    }
}

/// A client that writes many requests at once does so without the cause, too.
#[test]
fn requests_that_a_client_writes_together_stay_together() {
    let mut numbers = Numbers(5);
    let mut jobs = jobs(&mut numbers, 1, 1, 333_000).remove(0);
    for batch in jobs.chunks_mut(8) {
        let ready = batch[0].ready;
        batch.iter_mut().for_each(|job| job.ready = ready);
    }
    let end = jobs.last().expect("there are requests").ready;
    let held_up = held_up(&mut numbers, 2_000_000, 480_000_000, end);
    let with = serve_in_batches(&jobs, 1, &held_up);
    let truth = percentiles(&serve_in_batches(&jobs, 1, &[]));
    let found = counterfactual(&with, TakenOut::Cause(Cause::Stopped), IntendedWaits::Included)
        .expect("there are requests");
    let value = found.percentiles[0].known().expect("there are enough wake-ups");
    // A few of the batches meet the stops, and no more.
    let ratio = value as f64 / truth[0] as f64;
    assert!((1.0 / ACCURACY..ACCURACY).contains(&ratio), "{value}, in truth {truth:?}");
}

/// Held up before every single request: what it takes to wake the worker otherwise was not seen.
#[test]
fn no_value_without_wake_ups_to_learn_from() {
    let mut numbers = Numbers(3);
    let jobs = jobs(&mut numbers, 2, 1, 200_000).remove(0);
    let held_up: Vec<(u64, u64)> = jobs.iter().map(|job| (job.ready - 1, job.ready + 100_000)).collect();
    let mut apart = vec![held_up[0]];
    for (from, until) in held_up.into_iter().skip(1) {
        let last = apart.last_mut().expect("there is one");
        if from <= last.1 { last.1 = until } else { apart.push((from, until)) }
    }
    let with = serve(&jobs, 1, &apart);
    let truth = percentiles(&serve(&jobs, 1, &[]));
    let found = counterfactual(&with, TakenOut::Cause(Cause::Stopped), IntendedWaits::Included)
        .expect("there are requests");
    for (found, truth) in found.percentiles.into_iter().zip(truth) {
        assert_eq!(found.doubt, Some(ReplayDoubt::WakeUps));
        assert!((found.least..=found.most).contains(&truth), "{found:?}: {truth}");
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(20))]

    /// A cause that nothing has is taken out without a trace, whatever the load; and no cause makes anything longer.
    #[test]
    fn nothing_and_no_longer(seed: u64, connections in 1u16..10, workers in 1u32..4, gap in 20_000u64..300_000) {
        let mut numbers = Numbers(seed);
        let mut with = Vec::new();
        for (jobs, worker) in jobs(&mut numbers, connections, workers, gap).iter().zip(1..) {
            let Some(last) = jobs.last() else { continue };
            let held_up = held_up(&mut numbers, 2_000_000, 40_000_000, last.ready);
            with.extend(serve(&jobs[..jobs.len().min(800)], worker, &held_up));
        }
        let measured = percentiles(&with);
        for cause in Cause::ALL {
            let found = counterfactual(&with, TakenOut::Cause(cause), IntendedWaits::Included).expect("requests");
            for (found, measured) in found.percentiles.into_iter().zip(measured) {
                prop_assert!(found.least <= found.most && found.most <= measured);
                let is_there = with.iter().any(|request| request.time(cause) > 0);
                prop_assert!(is_there || found.known() == Some(measured), "{cause:?} {found:?}");
            }
        }
    }
}
