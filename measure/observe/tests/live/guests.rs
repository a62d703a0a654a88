//! The same tests with kernels of Debian, in guests: real servers, observed by what these kernels have instead of the
//! tracepoints that were added later. Times in a guest are those of an emulation, so that nothing here judges any.

use crate::{block, causes, kernel_nfs, protocols};
use std::path::{Path, PathBuf};
use testkit::guest::{Guest, GuestCheck, GuestFigures, GuestKernel, be_first_program, run_checks};

/// What is run in every guest.
const CHECKS: [GuestCheck; 6] = [
    ("the_self_test", crate::the_self_test_finds_that_all_is_right),
    ("memcached_over_tcp", crate::memcached_over_tcp),
    ("memcached_over_udp", crate::memcached_over_udp),
    ("requests_in_flight", crate::memcached_with_threads_and_requests_in_flight),
    ("nginx", crate::nginx_keeps_connections_and_takes_several_writes),
    ("requests_of_many_packets", crate::requests_of_many_packets),
];

/// What is run besides where the kernel skips no run of a program: these judge every request.
const EXACT_CHECKS: [GuestCheck; 4] = [
    ("http", protocols::http_with_bodies_in_several_goes_and_several_requests_at_once),
    ("memcached_in_several_goes", protocols::memcached_in_several_goes_and_several_at_once),
    ("accepts_late", protocols::a_server_that_accepts_late),
    ("a_hog", causes::a_hog_on_the_cpu_of_the_server),
];

/// What is run of disks, with the modules of a null device.
const BLOCK_CHECKS: [GuestCheck; 2] = [
    ("block_requests", block::every_direct_request_is_seen_and_takes_no_longer_than_its_client_says),
    ("a_hog_on_a_disk", block::who_keeps_reads_waiting_is_named),
];

/// What is run of the server in the kernel, with its modules.
const KERNEL_NFS: GuestCheck = ("kernel_nfs", kernel_nfs::the_nfs_server_of_the_kernel);

/// The programs that the checks run.
const PROGRAMS: [&str; 7] = ["ip", "memcached", "nginx", "taskset", "yes", "kill", "rpcbind"];

/// A kernel, how many CPUs of a guest it brings up, and the name of the test that boots it.
struct TestedKernel {
    kernel: GuestKernel,
    cpus: u32,
    test: &'static str,
    /// Modules of the kernel that the checks take.
    modules: Vec<&'static str>,
    checks: Vec<GuestCheck>,
}

fn expect_all(tested: &TestedKernel) {
    if be_first_program(|| run_checks(&tested.checks)) {
        return;
    }
    let Some(figures) = booted(tested) else { return };
    println!("{figures}");
    assert_eq!(figures.skipped(), Vec::<&str>::new());
    figures.expect_passed(&tested.checks);
}

fn booted(tested: &TestedKernel) -> Option<GuestFigures> {
    let mut others: Vec<PathBuf> = Vec::new();
    for name in PROGRAMS {
        others.push(testkit::program(name)?);
    }
    others.extend(kernel_nfs::FILES.map(PathBuf::from));
    let program = std::env::current_exe().expect("it is running");
    let guest = Guest {
        kernel: &tested.kernel,
        cpus: tested.cpus,
        program: &program,
        arguments: &["--exact", tested.test, "--nocapture"],
        others: &others,
        modules: &tested.modules,
        cache: Path::new(env!("CARGO_TARGET_TMPDIR")),
    };
    guest.play()
}

/// Linux 6.1 lacks three of the tracepoints.
#[test]
fn debian_12() {
    let checks = [&CHECKS[..], &EXACT_CHECKS, &BLOCK_CHECKS].concat();
    let kernel = GuestKernel::DEBIAN_12;
    let test = "guests::debian_12";
    expect_all(&TestedKernel { kernel, cpus: 1, test, modules: block::MODULES.to_vec(), checks });
}

/// Linux 6.12 lacks one of the tracepoints.
#[test]
fn debian_13() {
    let checks = [&CHECKS[..], &EXACT_CHECKS, &BLOCK_CHECKS, &[KERNEL_NFS]].concat();
    let modules = [&[block::SCHEDULER], &block::MODULES[..], &kernel_nfs::MODULES].concat();
    let kernel = GuestKernel::DEBIAN_13;
    let test = "guests::debian_13";
    expect_all(&TestedKernel { kernel, cpus: 3, test, modules, checks });
}

/// Linux 7.3 interrupts programs and skips some of their runs for it, most where CPUs are emulated.
#[test]
fn backports_of_debian_13() {
    let kernel = GuestKernel::DEBIAN_13_BACKPORTS;
    let test = "guests::backports_of_debian_13";
    let checks = [&CHECKS[..], &BLOCK_CHECKS].concat();
    let modules = [&[block::SCHEDULER], &block::MODULES[..]].concat();
    expect_all(&TestedKernel { kernel, cpus: 3, test, modules, checks });
}
