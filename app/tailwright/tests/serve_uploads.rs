//! Uploads of traces to a controller that end badly: clients that stop, disks that are full, and text that expands without
//! end. Each is refused in words, costs a bounded memory and time, and leaves nothing.

mod support;

use enforce::command::may_configure_networks;
use serde_json::Value;
use std::io::{Read as _, Write as _};
use std::net::TcpStream;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;
use support::openapi;
use support::service::Service;

/// Only a guard against tests that never end.
const TIMEOUT: Duration = Duration::from_secs(240);
const PATH: &str = "/v1/traces?file=mail.csv&tenant=shop";
const MIB: usize = 1 << 20;

/// Begins an upload of `length` bytes.
fn begin(service: &Service, length: usize) -> TcpStream {
    let mut stream = TcpStream::connect(service.address).expect("the controller listens");
    stream.set_read_timeout(Some(TIMEOUT)).expect("an option");
    let token = service.token("cluster/operator");
    let head = format!(
        "POST {PATH} HTTP/1.1\r\nhost: {}\r\nauthorization: Bearer {token}\r\nconnection: close\r\n\
         content-length: {length}\r\n\r\n",
        service.address
    );
    stream.write_all(head.as_bytes()).expect("the controller reads");
    stream
}

/// The status and the body of the answer, which is judged by the description of the interface.
fn answer(mut stream: TcpStream) -> (u16, Value) {
    let mut text = String::new();
    stream.read_to_string(&mut text).expect("an answer");
    let (head, body) = text.split_once("\r\n\r\n").unwrap_or_else(|| panic!("a head: {text}"));
    let status = head.split(' ').nth(1).and_then(|status| status.parse().ok()).expect("a status");
    openapi::check_answer("POST", PATH, status, Some("application/json"), body);
    (status, serde_json::from_str(body).expect("JSON"))
}

fn send(service: &Service, body: &[u8]) -> (u16, Value) {
    let mut stream = begin(service, body.len());
    stream.write_all(body).expect("the controller reads");
    answer(stream)
}

/// Files of uploads that are left.
fn left(service: &Service) -> usize {
    std::fs::read_dir(service.folder.join("cluster/uploads")).map_or(0, Iterator::count)
}

fn is_healthy(service: &Service) -> bool {
    service.send("GET", "/healthz", &[], "").status == 200
}

fn process(service: &Service) -> PathBuf {
    let id = service.controller.as_ref().expect("it runs").0.id();
    Path::new("/proc").join(id.to_string())
}

/// Most resident memory of the controller until now, bytes.
fn most_resident(service: &Service) -> usize {
    let status = std::fs::read_to_string(process(service).join("status")).expect("it runs");
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:")).expect("a size");
    line.trim().trim_end_matches(" kB").parse::<usize>().expect("a number") * 1024
}

/// CPU time of the controller, ticks.
fn cpu_ticks(service: &Service) -> u64 {
    let stat = std::fs::read_to_string(process(service).join("stat")).expect("it runs");
    let (_, fields) = stat.rsplit_once(") ").expect("a name");
    let fields: Vec<&str> = fields.split(' ').collect();
    [11, 12].iter().map(|at: &usize| fields[*at].parse::<u64>().expect("a number")).sum()
}

/// A client that sends half and then nothing is told so, and holds nothing of others.
#[test]
fn a_client_that_stops_is_told() {
    let service = Service::start();
    let mut stream = begin(&service, 1000);
    stream.write_all(b"0,0x00001000,DiskRead\n").expect("the controller reads");
    // Others are served meanwhile.
    assert_eq!(send(&service, service.folder.read("mail.csv").as_bytes()).0, 200);
    let (status, said) = answer(stream);
    assert_eq!(status, 408, "{said}");
    assert!(
        said["error"].as_str().is_some_and(|error| error.contains("no part of the trace came")),
        "{said}"
    );
    assert_eq!(left(&service), 0);
    assert!(is_healthy(&service));
}

/// A file system in memory, until the value is dropped.
struct SmallDisk(PathBuf);

impl SmallDisk {
    fn mount(folder: PathBuf, size: &str) -> Option<Self> {
        std::fs::create_dir_all(&folder).expect("ours");
        let size = format!("size={size}");
        let mounted = Command::new("mount").args(["-t", "tmpfs", "-o", &size, "tmpfs"]).arg(&folder).status();
        mounted.is_ok_and(|status| status.success()).then_some(Self(folder))
    }
}

impl Drop for SmallDisk {
    fn drop(&mut self) {
        let _ = Command::new("umount").arg("-l").arg(&self.0).status();
    }
}

/// A disk without room refuses a trace in words, and takes the next one that fits.
#[test]
fn a_full_disk_is_an_answer() {
    let service = Service::start();
    // A file is in the place of the folder.
    let uploads = service.folder.join("cluster/uploads");
    let _ = std::fs::remove_dir_all(&uploads);
    std::fs::write(&uploads, "").expect("ours");
    let (status, said) = send(&service, b"0,0x00001000,DiskRead\n");
    assert_eq!(status, 507, "{said}");
    std::fs::remove_file(&uploads).expect("ours");

    if !may_configure_networks() {
        return testkit::skip("a small disk cannot be mounted: it takes root");
    }
    let Some(_disk) = SmallDisk::mount(uploads, "2m") else {
        return testkit::skip("a small disk cannot be mounted");
    };
    let line = "0,0x00001000,DiskRead\n";
    let long = line.repeat(12 * MIB / line.len());
    let (status, said) = send(&service, long.as_bytes());
    assert_eq!(status, 507, "{said}");
    assert!(said["error"].as_str().is_some_and(|error| error.contains("cannot be kept")), "{said}");
    assert_eq!(left(&service), 0, "what was written is deleted");
    assert!(is_healthy(&service));
    assert_eq!(send(&service, service.folder.read("mail.csv").as_bytes()).0, 200);
    service.request("shop", "mail", "99% < 100ms", "127.0.0.6").expect_code(0);
}

/// A long trace takes no more memory than a short one.
#[test]
fn a_long_trace_is_not_in_memory() {
    /// Far less than the trace.
    const MORE_MAX: usize = 24 * MIB;
    let service = Service::start();
    assert_eq!(send(&service, service.folder.read("mail.csv").as_bytes()).0, 200);
    let before = most_resident(&service);
    let mut text = String::new();
    let mut at = 0u64;
    while text.len() < 60 * MIB {
        at += 1_000_000;
        text += &format!("{at},0x00001000,DiskRead\n");
    }
    let (status, said) = send(&service, text.as_bytes());
    assert_eq!(status, 200, "{said}");
    let most = most_resident(&service);
    println!(
        "most resident memory: {} KiB, with a trace of {} KiB: {} KiB",
        before >> 10,
        text.len() >> 10,
        most >> 10
    );
    assert!(most < before + MORE_MAX, "{before} bytes, then {most}");
    assert_eq!(left(&service), 0);
}

/// Compressed text that expands without end is refused, after a time that does not grow with it.
#[test]
fn compressed_text_that_expands_without_end_is_refused() {
    let service = Service::start();
    service.folder.write("member", &"\n".repeat(64 * MIB));
    let done = Command::new("gzip").arg("-9").arg(service.folder.join("member")).status();
    assert!(done.expect("it runs").success());
    let member = std::fs::read(service.folder.join("member.gz")).expect("it was written");
    let before = most_resident(&service);
    let mut times = Vec::new();
    // 4 GiB, and 32 GiB, of blank lines.
    for members in [64, 512] {
        let bomb = member.repeat(members);
        assert!(bomb.len() < 64 * MIB);
        let begun = cpu_ticks(&service);
        let (status, said) = send(&service, &bomb);
        times.push(cpu_ticks(&service) - begun);
        assert_eq!(status, 413, "{said}");
        assert!(
            said["error"].as_str().is_some_and(|error| error.contains("2 GiB when decompressed")),
            "{said}"
        );
    }
    let most = most_resident(&service);
    println!(
        "CPU time of 4 and of 32 GiB: {times:?} ticks; memory: {} KiB, then {} KiB",
        before >> 10,
        most >> 10
    );
    assert!(times[1] < 3 * times[0] + 100, "eight times the text: {times:?}");
    assert!(most < before + 48 * MIB, "{before} bytes, then {most}");
    assert_eq!(left(&service), 0);
    // Compressed text that is not too long is a trace as before.
    service.folder.write("good.csv", &service.folder.read("mail.csv"));
    let done = Command::new("gzip").arg(service.folder.join("good.csv")).status();
    assert!(done.expect("it runs").success());
    let good = std::fs::read(service.folder.join("good.csv.gz")).expect("it was written");
    assert_eq!(send(&service, &good).0, 200);
    assert!(is_healthy(&service));
}
