//! The same tests with kernels of Debian, in guests: real servers, observed by what these kernels have instead of the
//! tracepoints that were added later. Times in a guest are those of an emulation, so that nothing here judges any.

use crate::{causes, protocols};
use std::path::{Path, PathBuf};
use testkit::guest::{Guest, GuestClock, GuestFigures, GuestKernel, be_first_program, report_figure};

/// What is run in a guest, with names.
const CHECKS: [(&str, fn()); 10] = [
    ("the_self_test", crate::the_self_test_finds_that_all_is_right),
    ("memcached_over_tcp", crate::memcached_over_tcp),
    ("memcached_over_udp", crate::memcached_over_udp),
    ("requests_in_flight", crate::memcached_with_threads_and_requests_in_flight),
    ("nginx", crate::nginx_keeps_connections_and_takes_several_writes),
    ("requests_of_many_packets", crate::requests_of_many_packets),
    ("http", protocols::http_with_bodies_in_several_goes_and_several_requests_at_once),
    ("memcached_in_several_goes", protocols::memcached_in_several_goes_and_several_at_once),
    ("accepts_late", protocols::a_server_that_accepts_late),
    ("a_hog", causes::a_hog_on_the_cpu_of_the_server),
];

/// The programs that the checks run.
const PROGRAMS: [&str; 5] = ["memcached", "nginx", "taskset", "yes", "kill"];

/// What the first program of a guest does.
fn checks() {
    for (name, check) in CHECKS {
        let outcome = std::panic::catch_unwind(check);
        report_figure(name, if outcome.is_ok() { "passed" } else { "failed" });
    }
}

fn in_a_guest(kernel: &GuestKernel, clock: GuestClock, test: &str) -> Option<GuestFigures> {
    if be_first_program(checks) {
        return None;
    }
    let mut others: Vec<PathBuf> = Vec::new();
    for name in PROGRAMS.into_iter().chain(["ip"]) {
        others.push(testkit::program(name)?);
    }
    let program = std::env::current_exe().expect("it is running");
    let guest = Guest {
        kernel,
        clock,
        program: &program,
        arguments: &["--exact", test, "--nocapture"],
        others: &others,
        cache: Path::new(env!("CARGO_TARGET_TMPDIR")),
    };
    guest.play()
}

#[track_caller]
fn expect_all(figures: &GuestFigures) {
    println!("{figures}");
    assert_eq!(figures.skipped(), Vec::<&str>::new());
    for (name, _) in CHECKS {
        assert_eq!(figures.text(name), "passed", "{name}: {figures}");
    }
}

/// Linux 6.1 lacks three of the tracepoints.
#[test]
fn debian_12() {
    let test = "guests::debian_12";
    let Some(figures) = in_a_guest(&GuestKernel::DEBIAN_12, GuestClock::Machine, test) else { return };
    expect_all(&figures);
}

/// Linux 6.12 lacks one of the tracepoints.
#[test]
fn debian_13() {
    let test = "guests::debian_13";
    let Some(figures) = in_a_guest(&GuestKernel::DEBIAN_13, GuestClock::Instructions, test) else { return };
    expect_all(&figures);
}

#[test]
fn backports_of_debian_13() {
    let test = "guests::backports_of_debian_13";
    let kernel = &GuestKernel::DEBIAN_13_BACKPORTS;
    let Some(figures) = in_a_guest(kernel, GuestClock::Instructions, test) else { return };
    expect_all(&figures);
}
