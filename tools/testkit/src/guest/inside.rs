//! Work of the first program of a guest besides its checks.

use super::archive::MODULES;
use std::ffi::CString;
use std::fmt::Display;
use std::path::PathBuf;
use std::process::Command;
use std::time::Duration;

/// A variable that the kernel of a guest passes to its first program. The process ID alone is no
/// criterion: namespaces have a first process, too.
pub(super) const GUEST: &str = "TAILWRIGHT_TEST_GUEST";

/// Runs `checks` if this process is the first one of a guest, and switches the guest off; false elsewhere.
pub fn be_first_program(checks: impl FnOnce()) -> bool {
    if std::process::id() != 1 || std::env::var_os(GUEST).is_none() {
        return false;
    }
    mount();
    for folder in ["/tmp", "/etc", "/var/log/nginx", "/run/rpcbind"] {
        std::fs::create_dir_all(folder).ok();
    }
    std::fs::write(
        "/etc/passwd",
        "root:x:0:0::/:/bin/sh\nnobody:x:65534:65534::/:/bin/false\n\
        _rpc:x:100:65534::/run/rpcbind:/bin/false\n",
    )
    .ok();
    std::fs::write("/etc/group", "root:x:0:\nnogroup:x:65534:\n").ok();
    // The files with the port of the portmapper, and with the path at which the kernel expects its
    // socket.
    std::fs::write("/etc/services", "sunrpc 111/tcp portmapper\nsunrpc 111/udp portmapper\n").ok();
    std::os::unix::fs::symlink("/run", "/var/run").ok();
    // Images without this program do not use the loopback interface.
    Command::new("ip").args(["link", "set", "lo", "up"]).status().ok();
    // The kernel stops when this program ends, and drops output that is still in the device.
    std::panic::set_hook(Box::new(|panic| {
        println!("GUEST FAILED {panic}");
        std::thread::sleep(Duration::from_millis(500));
    }));
    load_modules();
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
        mount_in_guest(kind, place);
    }
}

/// Mounts a file system of this kind, which needs no device, at a place that is made where it is not there.
pub fn mount_in_guest(kind: &str, place: &str) {
    std::fs::create_dir_all(place).ok();
    let mounted = rustix::mount::mount(kind, place, kind, rustix::mount::MountFlags::empty(), None);
    if let Err(error) = mounted {
        println!("mounting {kind}: {error}");
    }
}

/// `MODULE_INIT_COMPRESSED_FILE`: the kernel accepts a module as compressed in the package.
const IS_COMPRESSED: i32 = 4;

/// Loads the modules that the guest was given, in their order.
fn load_modules() {
    let mut files: Vec<PathBuf> =
        std::fs::read_dir(MODULES).into_iter().flatten().flatten().map(|entry| entry.path()).collect();
    files.sort();
    for parameters in files.iter().filter(|file| file.extension().is_some_and(|it| it == "parameters")) {
        let text = std::fs::read_to_string(parameters).expect("it is in the archive");
        let text = CString::new(text).expect("parameters are text");
        let plain = parameters.with_extension("ko");
        let compressed = parameters.with_extension("ko.xz");
        let (file, flags) = if plain.exists() { (plain, 0) } else { (compressed, IS_COMPRESSED) };
        let opened = std::fs::File::open(&file).expect("it is in the archive");
        if let Err(error) = rustix::system::finit_module(opened, &text, flags) {
            println!("loading {}: {error}", file.display());
        }
    }
}
