//! Parts of the benchmarks with live servers: rounds, arrivals, and a period of memcached with knobs set and
//! undone. Periods require root and the rights to observe.

#[path = "../benches/support/mod.rs"]
mod support;

use load::OfferedLoad;
use observe::RequestPoint;
use std::io::Write;
use std::process::Command;
use std::time::Duration;
use support::figures::PeriodFigures;
use support::fix::{Fix, PeriodProcesses, identities};
use support::offered::{Offered, OfferedArrivals, RecordedGaps};
use support::period::PeriodPlan;
use support::rounds::{RoundFigure, order};
use support::server::{ServerKind, ServerPlan};
use support::site::{PeriodTimes, Site};
use units::Nanos;

#[test]
fn a_round_has_every_arm_once() {
    let all = order(5, 40, 3);
    let mut firsts = [0; 5];
    for round in all.chunks(5) {
        let mut sorted = round.to_vec();
        sorted.sort_unstable();
        assert_eq!(sorted, [0, 1, 2, 3, 4]);
        firsts[round[0]] += 1;
    }
    assert!(firsts.iter().all(|count| *count > 0), "{firsts:?}");
}

#[test]
fn a_figure_is_the_median_with_its_range() {
    let figure = RoundFigure::of([3.0, 100.0, 1.0]).expect("there are rounds");
    assert_eq!((figure.median, figure.least, figure.most), (3.0, 1.0, 100.0));
    assert_eq!(RoundFigure::of([4.0, 2.0]).map(|figure| figure.median), Some(3.0));
    assert_eq!(RoundFigure::of([]), None);
}

fn arrivals(offered: &Offered, seconds: u64) -> Vec<u64> {
    let load = offered.load((0.9, 1024), Duration::from_secs(seconds), 5).expect("it is possible");
    let OfferedLoad::Open(requests) = load else { panic!("an open loop") };
    requests.iter().map(|request| request.arrival.0).collect()
}

#[test]
fn recorded_gaps_keep_their_proportions_at_another_rate() {
    let mut file = tempfile::Builder::new().suffix(".csv").tempfile().expect("a file can be made");
    writeln!(file, "arrival_ns,size_bytes,op").expect("there is room");
    let mut at = 0u64;
    for gap in [1u64, 1, 1, 97].iter().cycle().take(401) {
        writeln!(file, "{at},4096,read").expect("there is room");
        at += gap * 1_000_000;
    }
    let gaps = RecordedGaps::read(file.path()).unwrap_or_else(|error| panic!("{error}"));
    let found = arrivals(&Offered::of(OfferedArrivals::Recorded(gaps, 1000.0)), 2);
    assert!(found.is_sorted() && found.len().abs_diff(2000) <= 1, "{}", found.len());
    let long = found.windows(2).filter(|pair| pair[1] - pair[0] > 3_000_000).count();
    assert!(long.abs_diff(500) <= 2, "a quarter of the gaps is 97 of 100: {long}");
}

#[test]
fn batches_are_sent_at_multiples_of_their_interval_and_never_early() {
    let poisson = Offered::poisson(20_000.0);
    let batched = Offered { batch_interval: Some(Duration::from_micros(500)), ..poisson.clone() };
    let single = arrivals(&poisson, 1);
    let batched = arrivals(&batched, 1);
    assert_eq!(single.len(), batched.len());
    for (single, batched) in single.iter().zip(&batched) {
        assert!(batched % 500_000 == 0 && single <= batched && batched - single < 500_000);
    }
}

fn memcached() -> ServerPlan {
    ServerPlan::on_one_cpu("memcached", ServerKind::Memcached { udp: false, threads: 1, arguments: &[] })
}

fn site(state: &tempfile::TempDir) -> Option<Site> {
    let times = PeriodTimes {
        guard: Duration::from_millis(300),
        counted: Duration::from_millis(1500),
        quiet_wait: Duration::ZERO,
    };
    if !memcached().is_installed() {
        return None;
    }
    Site::open(state.path(), times).unwrap_or_else(|error| panic!("{error}"))
}

/// The CPUs that do the receive work of the server's device, as the kernel has them.
fn receive_mask(site: &Site) -> String {
    let line = site.network.receive_on_cpus_command("");
    let (before, _) = line.split_once("echo").expect("it is an echo");
    let read = format!("{before}cat /sys/class/net/eth0/queues/rx-0/rps_cpus'");
    let output = Command::new("sh").args(["-c", &read]).output().expect("there is a shell");
    String::from_utf8_lossy(&output.stdout).trim().to_owned()
}

/// 3,000 requests per second, which a loaded machine does as well.
#[test]
fn a_period_counts_what_arrives_in_it_and_undoes_what_it_sets() {
    let state = tempfile::tempdir().expect("a temporary folder can be made");
    let Some(mut site) = site(&state) else { return };
    let fixes = vec![Fix::Nice, Fix::InterruptCore];
    let plan =
        PeriodPlan { fixes, background: true, ..PeriodPlan::new(memcached(), Offered::poisson(3000.0)) };
    let seen = match site.play(&plan, 1) {
        Ok(seen) => seen,
        Err(error) if error.message.contains("CAP_SYS_NICE") => return testkit::skip(&error.message),
        Err(error) => panic!("{error}"),
    };
    assert!(site.switch.is_off(), "everything is undone");
    assert_eq!(receive_mask(&site), "1");
    let journal = std::fs::read_to_string(state.path().join("experiment.jsonl")).expect("there is a journal");
    assert_eq!(journal, "");
    let sent = seen.client.observations.requests.len();
    assert!(sent > 3000, "{sent} of 5,400 expected");
    assert!(seen.requests.len() < seen.all.len(), "the guard time does not count");
    let expected = seen.rate() * seen.seconds;
    assert!(
        (0.3..1.5).contains(&(expected / (3000.0 * seen.seconds))),
        "{} requests per second",
        seen.rate()
    );
    let is_ordered = |request: &observe::ObservedRequest| {
        request.at(RequestPoint::Stack) <= request.at(RequestPoint::Transmitted)
    };
    assert!(seen.requests.iter().all(is_ordered));
    let figures = PeriodFigures::of(&seen, Some(Nanos(1000)), 1).expect("there are requests");
    // A real server takes longer than the model, whose service time is shorter than any real one.
    assert!(figures.factor(0) > 1.0 && figures.measured_us.is_sorted(), "{figures:?}");
    assert!(figures.utilisation < 0.1, "{}", figures.utilisation);
}

#[test]
fn the_interrupt_core_is_another_cpu_and_undone() {
    let state = tempfile::tempdir().expect("a temporary folder can be made");
    let Some(mut site) = site(&state) else { return };
    assert!(site.network.receive_on_cpus("1"));
    let server = memcached().start(&site.network);
    let on = PeriodProcesses {
        network: &site.network,
        server: identities(&server.process_ids()),
        background: None,
        receive_mask: "1",
    };
    assert_eq!(on.server.len(), 1);
    let changes = Fix::InterruptCore.changes(&on).unwrap_or_else(|error| panic!("{error}"));
    site.switch.on(&changes).unwrap_or_else(|error| panic!("{error}"));
    assert_eq!(receive_mask(&site), "2");
    site.switch.off();
    assert_eq!(receive_mask(&site), "1");
}

#[test]
fn a_fix_without_the_process_that_it_is_about_is_refused() {
    let state = tempfile::tempdir().expect("a temporary folder can be made");
    let Some(mut site) = site(&state) else { return };
    let plan = PeriodPlan {
        fixes: vec![Fix::MoveBackground],
        ..PeriodPlan::new(memcached(), Offered::poisson(100.0))
    };
    assert!(site.play(&plan, 1).is_err() && site.switch.is_off());
}
