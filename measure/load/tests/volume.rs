//! Runs against a server with known faults and delays.

mod common;

use common::volume::{Faults, Volume};
use common::{MS, options, play, poisson, volume, workload};
use load::{LoadOptions, LoadReport, OfferedLoad};
use model::{Blame, Observation, Op, Request, RequestOutcome};
use std::collections::BTreeMap;
use std::time::Duration;
use units::{Bytes, Nanos};

const SIZE: usize = 1 << 20;

fn done(report: &LoadReport) -> usize {
    report
        .observations
        .requests
        .iter()
        .filter(|request| matches!(request.outcome, RequestOutcome::Done(_)))
        .count()
}

fn verified(duration_ms: u64) -> LoadOptions {
    LoadOptions { verify_data: true, ..options(duration_ms) }
}

/// Latencies of a server that takes one request at a time, in order: Lindley's recursion.
fn lindley(arrivals: &[Nanos], service: impl Fn(usize) -> u64) -> Vec<u64> {
    let mut free = 0;
    let end = |(index, arrival): (usize, &Nanos)| {
        free = free.max(arrival.0) + service(index);
        free - arrival.0
    };
    arrivals.iter().enumerate().map(end).collect()
}

#[test]
fn a_stall_delays_all_requests_intended_during_it() {
    testkit::Rounds { count: 5, must_hold: 3 }.check(stalled_round);
}

fn stalled_round() -> Result<(), String> {
    const STALLED: u64 = 300;
    let service_time = Duration::from_micros(100);
    let stall = Duration::from_millis(200);
    let server =
        Volume::start(SIZE, Faults { service_time, stalled: Some((STALLED, stall)), ..Faults::default() });
    let requests = poisson(1000.0, 1000, 7, &[4096]);
    let arrivals: Vec<Nanos> = requests.iter().map(|request| request.arrival).collect();
    let report =
        play(vec![workload("w", volume(server.address), 1, OfferedLoad::Open(requests))], &options(1000))
            .unwrap();
    let observed = &report.observations.requests;
    assert_eq!((observed.len(), done(&report)), (arrivals.len(), arrivals.len()));
    assert!(observed.iter().map(|request| request.intended).eq(arrivals.iter().copied()));
    let nanos = |time: Duration| u64::try_from(time.as_nanos()).unwrap();
    let judge = lindley(&arrivals, |index| nanos(if index as u64 == STALLED { stall } else { service_time }));
    let measured: Vec<u64> = observed.iter().map(|request| request.latency().unwrap().0).collect();
    // No request can be faster than the queue allows, independently of the load of the machine.
    for (index, (measured, judge)) in measured.iter().zip(&judge).enumerate() {
        assert!(measured >= judge, "request {index}: {measured} ns, at least {judge} are needed");
    }
    let felt: Vec<usize> = (0..judge.len()).filter(|index| judge[*index] > 20 * MS).collect();
    assert!(felt.len() > 100, "{} requests were meant to come in the stall", felt.len());
    let sum_measured: f64 = felt.iter().map(|index| measured[*index] as f64).sum();
    let sum_expected: f64 = felt.iter().map(|index| judge[*index] as f64).sum();
    let ratio = sum_measured / sum_expected;
    if ratio < 1.5 {
        Ok(())
    } else {
        Err(format!("in the stall latencies are {ratio} of what they should be"))
    }
}

#[test]
fn waiting_for_a_full_socket_is_latency_and_not_lag() {
    let first_read_delay = Duration::from_millis(300);
    let server = Volume::start(8 << 20, Faults { first_read_delay, ..Faults::default() });
    // 64 MiB in 100 ms, more than sockets hold.
    let request = |index: u64| Request {
        arrival: Nanos(index * MS * 100 / 64),
        size: Bytes(1 << 20),
        op: Op::Write,
        offset: None,
        response: None,
    };
    let requests = (0..64).map(request).collect();
    let report =
        play(vec![workload("w", volume(server.address), 1, OfferedLoad::Open(requests))], &options(100))
            .unwrap();
    assert_eq!(done(&report), 64);
    let last = report.observations.requests.last().unwrap();
    let latency = last.latency().unwrap().0;
    let lag = (last.sent - last.intended).0;
    assert!(latency > 100 * MS, "the last waited {latency} ns");
    assert!(lag < latency / 2, "and the generator was {lag} ns late");
    assert!(report.observations.requests.iter().all(|request| match request.outcome {
        RequestOutcome::Done(at) => at >= request.sent && request.sent >= request.intended,
        _ => false,
    }));
}

#[test]
fn reads_return_what_was_written() {
    let server = Volume::start(SIZE, Faults::default());
    let requests = poisson(4000.0, 1000, 3, &[512, 4096, 5000, 65536]);
    let total = requests.len();
    let report =
        play(vec![workload("w", volume(server.address), 3, OfferedLoad::Open(requests))], &verified(1000))
            .unwrap();
    assert_eq!(done(&report), total);
    assert_eq!((report.comparison.mismatches, report.comparison.first), (0, None));
    // How many writes overlap, after which data is unknown, depends on the load of the machine.
    assert!(report.comparison.bytes > Bytes(0) && report.comparison.unknown > Bytes(0));
    assert_eq!(server.count(), total as u64);
}

#[test]
fn one_flipped_bit_is_a_mismatch() {
    const BYTE: usize = 1000;
    const BLOCK: usize = 4096;
    const BLOCKS: usize = SIZE / BLOCK;
    // Reads long after all writes: of a block that is being written, the right content is not known.
    let request = |number: usize| {
        let (op, due_ms) =
            if number < BLOCKS { (Op::Write, number as u64 / 4) } else { (Op::Read, 400 + number as u64) };
        let offset = Some((number % BLOCKS * BLOCK) as u64);
        Request { arrival: Nanos(due_ms * MS), size: Bytes(BLOCK as u64), op, offset, response: None }
    };
    let requests: Vec<Request> = (0..2 * BLOCKS).map(request).collect();
    let corrupted = Some((BLOCKS as u64 * 3 / 2, BYTE));
    let server = Volume::start(SIZE, Faults { corrupted, ..Faults::default() });
    let report =
        play(vec![workload("mail", volume(server.address), 1, OfferedLoad::Open(requests))], &verified(1000))
            .unwrap();
    assert_eq!(report.comparison.mismatches, 1, "{:?}", report.comparison);
    let first = report.comparison.first.unwrap();
    assert!(first.contains("workload mail, offset "), "{first}");
    let offset: u64 = first.split("offset ").nth(1).unwrap().split(':').next().unwrap().parse().unwrap();
    assert_eq!(offset % 4096, BYTE as u64, "{first}");
}

#[test]
fn lost_connections_are_set_up_again() {
    let server = Volume::start(SIZE, Faults { closes_every: Some(500), ..Faults::default() });
    let requests = poisson(3000.0, 1000, 5, &[4096, 16384]);
    let total = requests.len();
    let report =
        play(vec![workload("w", volume(server.address), 2, OfferedLoad::Open(requests))], &verified(1000))
            .unwrap();
    let failed: Vec<&Observation> = report
        .observations
        .requests
        .iter()
        .filter(|request| matches!(request.outcome, RequestOutcome::Failed(_)))
        .collect();
    assert_eq!(done(&report) + failed.len(), total, "nothing is lost when the server is there");
    assert!(report.counters[0].disconnects >= 4, "{:?}", report.counters);
    // The last lost connection may not be replaced, if no request needs it.
    assert!(report.reconnects() + 2 >= report.counters[0].disconnects, "{:?}", report.counters);
    assert!(!failed.is_empty() && failed.len() * 10 < total, "{} of {total} failed", failed.len());
    assert!(
        report.warnings.iter().any(|warning| warning.contains("the server hung up")),
        "{:?}",
        report.warnings
    );
    assert_eq!(report.comparison.mismatches, 0);
}

#[test]
fn unsent_requests_of_a_lost_connection_go_to_the_next() {
    let service_time = Duration::from_millis(2);
    let closes_every = Some(10);
    let server = Volume::start(8 << 20, Faults { service_time, closes_every, ..Faults::default() });
    // At once, more than sockets hold.
    let request =
        Request { arrival: Nanos::ZERO, size: Bytes(1 << 20), op: Op::Write, offset: None, response: None };
    let offered = OfferedLoad::Open(vec![request; 64]);
    let report = play(vec![workload("w", volume(server.address), 1, offered)], &options(100)).unwrap();
    let failed = |request: &&Observation| matches!(request.outcome, RequestOutcome::Failed(_));
    let failed = report.observations.requests.iter().filter(failed).count();
    assert_eq!(done(&report) + failed, 64, "{:?}", report.warnings);
    assert!(
        done(&report) > 9 && report.counters[0].disconnects > 1,
        "{} done, {:?}",
        done(&report),
        report.counters
    );
}

#[test]
fn failed_and_lost_requests_are_distinguished() {
    let server = Volume::start(SIZE, Faults { refused: Some(3), silent_from: Some(90), ..Faults::default() });
    let requests = poisson(1000.0, 100, 5, &[512]);
    let total = requests.len();
    assert!(total > 90);
    let options = LoadOptions { drain: Nanos(50 * MS), ..options(100) };
    let report =
        play(vec![workload("w", volume(server.address), 1, OfferedLoad::Open(requests))], &options).unwrap();
    let mut found = BTreeMap::new();
    for request in &report.observations.requests {
        *found
            .entry(match request.outcome {
                RequestOutcome::Done(_) => "done",
                RequestOutcome::Failed(_) => "failed",
                RequestOutcome::Lost => "lost",
            })
            .or_insert(0) += 1;
    }
    assert_eq!(found, [("done", 89), ("failed", 1), ("lost", total - 90)].into());
    assert!(report.warnings.iter().any(|warning| warning.contains("error 1")), "{:?}", report.warnings);
}

#[test]
fn a_closed_loop_keeps_its_number_in_flight() {
    let service_time = Duration::from_millis(2);
    let server = Volume::start(SIZE, Faults { service_time, ..Faults::default() });
    let offered = OfferedLoad::Closed { in_flight: 4, op: Op::Write, size: Bytes(4096), sequential: true };
    let report = play(vec![workload("w", volume(server.address), 2, offered)], &options(300)).unwrap();
    let requests = &report.observations.requests;
    assert_eq!(done(&report), requests.len());
    assert!(requests.len() > 8);
    // As many begin as have ended, and four more.
    for (index, request) in requests.iter().enumerate() {
        let ended = requests
            .iter()
            .filter(|other| matches!(other.outcome, RequestOutcome::Done(at) if at <= request.intended));
        assert!(index < ended.count() + 4, "request {index} came too early");
    }
}

#[test]
fn the_warm_up_is_sent_and_not_observed() {
    let server = Volume::start(SIZE, Faults::default());
    let requests = poisson(1000.0, 600, 5, &[512]);
    let observed =
        requests.iter().filter(|request| (200 * MS..500 * MS).contains(&request.arrival.0)).count();
    let sent = requests.iter().filter(|request| request.arrival.0 < 500 * MS).count();
    let options = LoadOptions { warm_up: Nanos(200 * MS), ..options(300) };
    let report =
        play(vec![workload("w", volume(server.address), 1, OfferedLoad::Open(requests))], &options).unwrap();
    assert_eq!((report.observations.requests.len(), server.count()), (observed, sent as u64));
    assert_eq!((report.observed_duration, report.generator_lags(0).count()), (Nanos(300 * MS), observed));
    assert!(report.observations.requests.is_sorted_by_key(|request| request.intended));
    assert!(report.observations.requests.last().unwrap().intended < Nanos(300 * MS));
}

#[test]
fn requests_due_just_before_the_end_are_observed() {
    let server = Volume::start(SIZE, Faults::default());
    let request = |arrival| Request { arrival, ..poisson(1e6, 1, 1, &[512])[0] };
    let end = 50 * MS;
    let offered = OfferedLoad::Open([end - 2, end - 1, end].map(|at| request(Nanos(at))).to_vec());
    let report = play(vec![workload("w", volume(server.address), 1, offered)], &options(50)).unwrap();
    assert_eq!((report.observations.requests.len(), done(&report)), (2, 2));
    // Requests that the generator never handled count as lost too.
    let offered = OfferedLoad::Open(vec![request(Nanos::ZERO); 100_000]);
    let options = LoadOptions { drain: Nanos::ZERO, ..options(1) };
    let report = play(vec![workload("w", volume(server.address), 1, offered)], &options).unwrap();
    assert_eq!(report.observations.requests.len(), 100_000);
    assert!(report.observations.requests.iter().any(|request| request.outcome == RequestOutcome::Lost));
}

#[test]
fn runs_without_requests_succeed() {
    assert_eq!(play(Vec::new(), &options(50)).unwrap().observations.requests, []);
    let server = Volume::start(SIZE, Faults::default());
    let report =
        play(vec![workload("w", volume(server.address), 1, OfferedLoad::Open(Vec::new()))], &options(50))
            .unwrap();
    assert_eq!((report.observations.requests.len(), report.observations.workloads.len()), (0, 1));
}

#[test]
fn impossible_workloads_are_refused() {
    let server = Volume::start(SIZE, Faults::default());
    let at = volume(server.address);
    let of =
        |size: u64| OfferedLoad::Closed { in_flight: 1, op: Op::Read, size: Bytes(size), sequential: false };
    let nowhere = Volume::start(SIZE, Faults::default()).address;
    let nfs: load::LoadTarget = "nfs://127.0.0.1/e/f".parse().unwrap();
    for (workloads, blame, part) in [
        (vec![workload("w", at.clone(), 0, of(512))], Blame::Input, "0 connections"),
        (vec![workload("w", at.clone(), 1, of(0))], Blame::Input, "a request of 0 bytes"),
        (vec![workload("w", at.clone(), 1, of(33 << 20))], Blame::Input, "33554432 are possible"),
        (vec![workload("w", at.clone(), 1, of(2 << 20))], Blame::Input, "2097152 bytes to 1048576 bytes"),
        (vec![workload("w", nfs, 1, of(2 << 20))], Blame::Input, "1048576 are possible"),
        (vec![workload("w", at.clone(), 1, of(512)), workload("w", at, 1, of(512))], Blame::Input, "'w'"),
        (vec![workload("w", volume(nowhere), 1, of(512))], Blame::Machine, "cannot be reached"),
    ] {
        let error = play(workloads, &options(50)).unwrap_err();
        assert!(error.message.contains(part) && error.blame == blame, "{error:?}");
    }
}
