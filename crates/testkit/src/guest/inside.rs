//! What the first program of a guest does besides its checks.

use std::fmt::Display;
use std::process::Command;
use std::time::Duration;

/// What the kernel of a guest hands to its first program as a variable: namespaces have a first process, too.
pub(super) const GUEST: &str = "TAILWRIGHT_TEST_GUEST";

/// Runs `checks` if this process is the first one of a guest, and switches the guest off; false elsewhere.
pub fn be_first_program(checks: impl FnOnce()) -> bool {
    if std::process::id() != 1 || std::env::var_os(GUEST).is_none() {
        return false;
    }
    mount();
    for folder in ["/tmp", "/etc", "/var/log/nginx"] {
        std::fs::create_dir_all(folder).ok();
    }
    std::fs::write("/etc/passwd", "root:x:0:0::/:/bin/sh\nnobody:x:65534:65534::/:/bin/false\n").ok();
    std::fs::write("/etc/group", "root:x:0:\nnogroup:x:65534:\n").ok();
    // Where there is no such program, nobody needs loopback.
    Command::new("ip").args(["link", "set", "lo", "up"]).status().ok();
    // The kernel stops when this program ends, and with it what was to be printed.
    std::panic::set_hook(Box::new(|panic| {
        println!("GUEST FAILED {panic}");
        std::thread::sleep(Duration::from_millis(500));
    }));
    // The kernel still has work of its own when it starts the first program.
    std::thread::sleep(Duration::from_secs(1));
    let uptime = std::fs::read_to_string("/proc/uptime").unwrap_or_default();
    report_figure("uptime_s", uptime.split(' ').next().unwrap_or_default());
    checks();
    println!("GUEST DONE");
    // Without it the last lines stay in the device.
    std::thread::sleep(Duration::from_millis(200));
    let _ = rustix::system::reboot(rustix::system::RebootCommand::PowerOff);
    true
}

/// Prints a figure, as the host reads it.
pub fn report_figure(name: &str, value: impl Display) {
    println!("FIGURE {name} {value}");
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
