//! Shared code of tests: real data where it is present, loud skips where it is not, servers, guests with
//! other kernels, effects in real time, and the search for the worst case.

mod bpf_mount;
mod bpf_objects;
mod c_library;
mod climbing;
pub mod guest;
pub mod live_servers;
pub mod nfs;
pub mod null_rpc;
mod option_server;
mod proxies;
mod python;
mod real_time;
mod server_and_client;
mod servers;
mod terminal;

pub use bpf_mount::with_bpf_file_system;
pub use bpf_objects::expect_compiled_objects;
pub use c_library::{functions_named, printed_from_c};
pub use climbing::Climb;
pub use option_server::{OptionClient, OptionServer, OptionServerPlace, SeenOptions};
pub use proxies::{HostsFront, connect_from, one_server_hosts};
pub use python::{python_with_numpy, python_with_opentelemetry};
pub use real_time::{Rounds, wait_until};
pub use server_and_client::ServerAndClient;
pub use servers::{connect_when_ready, free_address};
pub use terminal::Terminal;

use std::ffi::OsStr;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::Command;

/// `relative` inside the `shared` folder beside the project, where that exists. Otherwise `None`, and a
/// line on stderr that test capture does not swallow says what was skipped.
pub fn shared(relative: &str) -> Option<PathBuf> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../shared").join(relative);
    if path.exists() {
        return Some(path);
    }
    skip(&format!("real data {relative} is not beside the project"));
    None
}

/// Returns a real program as a reference for tests, one of those in `programs.txt` and
/// `schedule/bindings/programs.txt`. If it is not installed, returns `None`, and a line on stderr says
/// how to install it.
pub fn program(name: &str) -> Option<PathBuf> {
    let package = machine::programs::package(name).expect("programs stand in the list");
    let found = machine::programs::find(name);
    if found.is_none() {
        skip(&format!("{name} is not installed: {INSTALL} {package}"));
    }
    found
}

/// The command that installs a Debian package, as root.
pub(crate) const INSTALL: &str = "apt-get install --no-install-recommends";

/// Makes a command for a program with default actions for signals. `nohup` would make it ignore SIGHUP,
/// and the setting is inherited. The process is that of the program.
pub fn command_with_signals(program: impl AsRef<OsStr>) -> Command {
    let mut command = Command::new("env");
    command.arg(DEFAULT_SIGNALS).arg(program);
    command
}

/// The option of `env` that restores the default actions of signals.
const DEFAULT_SIGNALS: &str = "--default-signal=INT,TERM,HUP";

/// Says on stderr, past test capture, that the current test does not run and why.
pub fn skip(reason: &str) {
    let test = std::thread::current().name().unwrap_or("a test").to_owned();
    // Written directly: eprintln! would be captured and lost for passing tests.
    let _ = writeln!(std::io::stderr(), "SKIPPED {test}: {reason}");
}

/// Erlang's distribution of the wait in M/D/1, in units of the service time: P(W ≤ t) = (1 − ρ) Σ_{k ≤ t} (−ρ(t − k))ᵏ/k!
/// e^{ρ(t − k)}. The terms alternate in sign, so that the result is exact enough for small t only.
pub fn waits_in_m_d_1(utilisation: f64, t: f64) -> f64 {
    let mut sum = 0.0;
    let mut k = 0.0;
    let mut factorial = 1.0;
    while k <= t {
        let x = utilisation * (t - k);
        sum += (-x).powf(k) / factorial * x.exp();
        k += 1.0;
        factorial *= k;
    }
    (1.0 - utilisation) * sum
}
