//! Services in other languages under a storm of interrupted, abandoned and hostile requests, while the
//! service behind the entry point is repeatedly killed and restarted. The judge is outside: it uses
//! answers, the stranger's requests, and the kernel's counts of the entry point's memory, files and
//! threads.
//!
//! A few seconds for each language; the long form is `TAILWRIGHT_SOAK_SECONDS=600 cargo test -p
//! tailwright-gat --test soak -- --nocapture --test-threads 4`.

#[expect(dead_code, reason = "tests of single chains use more of it")]
mod services;
mod storm;

use services::{Language, Service, baggage, stranger};
use std::collections::HashSet;
use std::sync::atomic::{AtomicBool, AtomicU16, Ordering};
use std::thread;
use std::time::{Duration, Instant};
use storm::{Storm, StormCounts, relay};

/// Default number of seconds for each language.
const SECONDS: u64 = 4;
/// Number of concurrent clients.
const CLIENTS: u64 = 8;
/// Number of times that the service behind the entry point is killed.
const KILLS: u32 = 3;
/// Minimum length of the warm-up, a storm of a tenth of the measured one's length: afterwards one-time
/// allocations of the runtime are done.
const WARM_UP_LEAST: Duration = Duration::from_secs(1);
/// Maximum growth of the entry point's resources from the warm-up to the end.
const MORE_FILES: u64 = 64;
const MORE_THREADS: u64 = 64;
const MORE_MEMORY_KIB: u64 = 96 * 1024;
/// Maximum time for the last requests of a storm to end on a busy machine.
const ENDS_WITHIN: Duration = Duration::from_secs(60);

fn storm_on(language: Option<Language>) {
    let text = std::env::var("TAILWRIGHT_SOAK_SECONDS").unwrap_or_else(|_| SECONDS.to_string());
    let length = Duration::from_secs(text.parse().expect("TAILWRIGHT_SOAK_SECONDS: a whole number"));
    if let Some(language) = language {
        soak(&language, length);
    }
}

#[test]
fn python() {
    storm_on(Language::python());
}

#[test]
fn node() {
    storm_on(Language::node());
}

#[test]
fn go() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    storm_on(Language::go(folder.path()));
}

#[test]
fn java() {
    storm_on(Language::java());
}

/// Ends the relay, also if a check fails.
struct OverAtTheEnd<'a>(&'a AtomicBool);

impl Drop for OverAtTheEnd<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

/// The kernel's counts of a process: open files, threads, and memory in KiB.
#[derive(Debug, Clone, Copy)]
struct Usage {
    files: u64,
    threads: u64,
    memory_kib: u64,
}

fn usage(service: &Service) -> Usage {
    let folder = format!("/proc/{}", service.child.id());
    let status = std::fs::read_to_string(format!("{folder}/status")).expect("the entry point runs");
    let value = |name: &str| {
        let line = status.lines().find_map(|line| line.strip_prefix(name)).expect("Linux has it");
        line.split_whitespace().next().and_then(|number| number.parse().ok()).expect("a number")
    };
    let files = std::fs::read_dir(format!("{folder}/fd")).expect("it is ours").count();
    Usage { files: files as u64, threads: value("Threads:"), memory_kib: value("VmRSS:") }
}

/// Runs all clients of a storm, until it is over.
fn clients(storm: Storm) -> StormCounts {
    thread::scope(|scope| {
        let clients: Vec<_> = (0..CLIENTS).map(|client| scope.spawn(move || storm.client(client))).collect();
        let counts = clients.into_iter().map(|client| client.join().expect("no answer is wrong"));
        counts.fold(StormCounts::default(), StormCounts::with)
    })
}

fn soak(language: &Language, length: Duration) {
    let (strange, seen) = stranger();
    let stranger_url = format!("http://localhost:{strange}/");
    let start_inner = || language.start("inner", std::slice::from_ref(&stranger_url));
    let mut inner = start_inner();
    let target = AtomicU16::new(inner.port);
    let is_over = AtomicBool::new(false);
    thread::scope(|scope| {
        let _over = OverAtTheEnd(&is_over);
        let front = relay(scope, &target, &is_over);
        let entry = language.start("edge", &[format!("http://127.0.0.1:{front}/"), stranger_url.clone()]);
        let warm_up = Instant::now() + (length / 10).max(WARM_UP_LEAST);
        let warm = clients(Storm { port: entry.port, end: warm_up });
        assert!(warm.right > 0, "{language:?}: no request is answered before a service is killed");
        let before = usage(&entry);
        let storm = Storm { port: entry.port, end: Instant::now() + length };
        let storming = scope.spawn(move || clients(storm));
        for _ in 0..KILLS {
            thread::park_timeout(length / (KILLS + 1));
            // Kills the service by SIGKILL at an arbitrary moment.
            drop(std::mem::replace(&mut inner, start_inner()));
            target.store(inner.port, Ordering::Relaxed);
        }
        let counts = storming.join().expect("no answer is wrong");
        check_after(language, storm, &entry, before, &counts);
    });
    drop(inner);
    let mut strangers = 0;
    while let Ok(head) = seen.try_recv() {
        strangers += 1;
        // A killed service leaves incomplete heads.
        assert!(!head.contains("tailwright"), "{language:?}: the stranger was sent {head}");
        assert!(baggage(&head).iter().all(|value| value == "own=1"), "{language:?}: {head}");
    }
    assert!(strangers > 0, "{language:?}: the stranger was called");
}

/// Checks that as many requests as before run at once, and that everything the storm has opened is
/// closed.
fn check_after(language: &Language, storm: Storm, entry: &Service, before: Usage, counts: &StormCounts) {
    let again: HashSet<u64> = thread::scope(|scope| {
        let clients: Vec<_> = (0..CLIENTS).map(|_| scope.spawn(move || storm.answered())).collect();
        clients.into_iter().map(|client| client.join().expect("it is answered")).collect()
    });
    assert_eq!(again.len() as u64, CLIENTS, "{language:?}: starts differ");
    let what = format!("{language:?}: connections are closed and threads end as of {before:?}");
    testkit::wait_until(ENDS_WITHIN, &what, || {
        let now = usage(entry);
        now.files <= before.files + MORE_FILES && now.threads <= before.threads + MORE_THREADS
    });
    let after = usage(entry);
    assert!(
        after.memory_kib <= before.memory_kib + MORE_MEMORY_KIB,
        "{language:?}: {before:?} became {after:?}"
    );
    assert_eq!(counts.starts.len() as u64, counts.right, "{language:?}: no start belongs to two requests");
    assert!(counts.right > 0 && counts.abandoned > 0, "{language:?}: {} right", counts.right);
    println!(
        "{language:?}: {} answers right, {} without an answer, {} abandoned; {before:?}, then {after:?}",
        counts.right, counts.failed, counts.abandoned
    );
}
