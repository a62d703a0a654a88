//! Name of this machine, and what its network devices say of themselves.

use std::fs;
use std::path::Path;

/// Returns the name of this machine, as `hostname` prints it.
pub fn host_name() -> Option<String> {
    let name = fs::read_to_string("/proc/sys/kernel/hostname").ok()?;
    Some(name.trim().to_owned()).filter(|name| !name.is_empty())
}

/// Returns the speed that a network device reports, in bytes per second; `None` if it reports none, as many virtual
/// devices.
pub fn device_speed(device: &str) -> Option<f64> {
    let megabits = fs::read_to_string(Path::new("/sys/class/net").join(device).join("speed")).ok()?;
    let megabits: f64 = megabits.trim().parse().ok()?;
    (megabits > 0.0).then_some(megabits * 125_000.0)
}
