//! The first program of a guest that the tests boot: it plays requests under the kernel's scheduler and under ours, and prints
//! what came of it, a line for each figure.
//!
//! Run by anybody but the kernel as its first program, it does one thing: `load FOLDER` has the scheduler run until SIGINT.

mod checks;
mod ending;
mod play;

use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;
use tailwright_sched_ext::{AttachRequest, KernelScheduler, OldestFirstSettings, QueueLayout};

fn main() {
    let arguments: Vec<String> = std::env::args().collect();
    if let [_, verb, folder] = &arguments[..]
        && verb == "load"
    {
        return load(PathBuf::from(folder));
    }
    if std::process::id() != 1 {
        eprintln!("this program is the first one of a guest; tests boot it");
        std::process::exit(2);
    }
    mount();
    // The kernel stops when this program ends, and with it what was to be printed.
    std::panic::set_hook(Box::new(|panic| {
        println!("GUEST FAILED {panic}");
        std::thread::sleep(Duration::from_millis(500));
    }));
    // The kernel still has work of its own when it starts the first program.
    std::thread::sleep(Duration::from_secs(1));
    report("uptime_s", uptime());
    checks::all();
    println!("GUEST DONE");
    // Without it the last lines stay in the device.
    std::thread::sleep(Duration::from_millis(200));
    let _ = rustix::system::reboot(rustix::system::RebootCommand::PowerOff);
}

/// Prints a figure, as the host reads it.
fn report(name: &str, value: impl std::fmt::Display) {
    println!("FIGURE {name} {value}");
}

fn uptime() -> String {
    let text = std::fs::read_to_string("/proc/uptime").unwrap_or_default();
    text.split(' ').next().unwrap_or_default().to_owned()
}

fn mount() {
    for (kind, place) in [("proc", "/proc"), ("sysfs", "/sys"), ("bpf", "/sys/fs/bpf"), ("devtmpfs", "/dev")]
    {
        std::fs::create_dir_all(place).ok();
        let mounted = rustix::mount::mount(kind, place, kind, rustix::mount::MountFlags::empty(), None);
        if let Err(error) = mounted {
            println!("mounting {kind}: {error}");
        }
    }
}

fn request(layout: QueueLayout, oldest: u32) -> AttachRequest {
    AttachRequest {
        settings: OldestFirstSettings { oldest, ..OldestFirstSettings::default() },
        layout,
        folder: PathBuf::from(sched_hint::DEFAULT_FOLDER),
        group: None,
        log_entries: 200_000,
    }
}

fn load(folder: PathBuf) {
    let stop = Arc::new(AtomicBool::new(false));
    signal_hook::flag::register(signal_hook::consts::SIGINT, Arc::clone(&stop))
        .expect("SIGINT can be handled");
    let request = AttachRequest { folder, log_entries: 0, ..request(QueueLayout::PerCpu, 3) };
    let scheduler = KernelScheduler::attach(&request).unwrap_or_else(|error| panic!("{error:?}"));
    while !stop.load(Ordering::Relaxed) {
        std::thread::sleep(Duration::from_millis(20));
    }
    let end = scheduler.detach().unwrap_or_else(|error| panic!("{error:?}"));
    println!("the scheduler ended: {} {}", end.kind, end.text);
}
