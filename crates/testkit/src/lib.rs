//! What tests of several crates share: real data where it is present, loud skips where it is not.

use std::io::Write;
use std::net::{Ipv4Addr, SocketAddr, TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::process::Child;
use std::sync::atomic::{AtomicU16, Ordering};

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

/// A real program that tests judge by, one of those in `programs.txt`, where it is installed. Otherwise `None`, and a
/// line on stderr that says which package has it.
pub fn program(name: &str) -> Option<PathBuf> {
    let package = machine::programs::package(name).expect("programs stand in the list");
    let found = machine::programs::find(name);
    if found.is_none() {
        skip(&format!("{name} is not installed (Debian package {package})"));
    }
    found
}

/// An effect that is measured in real time: shown if one of five rounds shows it. What else runs on the machine hides an
/// effect, or makes the machine late; it does not make one.
///
/// # Panics
/// With what each round says, if none shows it.
pub fn shown(mut round: impl FnMut() -> Result<(), String>) {
    let mut said = Vec::new();
    while said.len() < 5 {
        match round() {
            Ok(()) => return,
            Err(why) => said.push(why),
        }
    }
    panic!("not shown in {} rounds: {said:#?}", said.len());
}

/// An address of this machine at which a server may be started. Its port is none of those that the kernel gives to who asks
/// for any: nobody takes it before the server does, and who calls there too early does not reach itself.
pub fn free_address() -> SocketAddr {
    static TAKEN: AtomicU16 = AtomicU16::new(0);
    // Test programs that run at the same time begin elsewhere.
    let first = (std::process::id() % 100) as u16 * 100;
    let address = || {
        let number = first.wrapping_add(TAKEN.fetch_add(1, Ordering::Relaxed));
        SocketAddr::from((Ipv4Addr::LOCALHOST, 20_000 + number % 10_000))
    };
    let mut tried = std::iter::repeat_with(address).take(10_000);
    tried.find(|address| TcpListener::bind(address).is_ok()).expect("a port of ten thousand is free")
}

/// Waits until a server that was started listens.
///
/// # Panics
/// When it ends instead.
pub fn until_it_listens(server: &mut Child, address: SocketAddr) {
    while TcpStream::connect(address).is_err() {
        let ended = server.try_wait().expect("a child can be asked");
        assert!(ended.is_none(), "the server ended: {ended:?}");
        std::thread::yield_now();
    }
}

/// Says on stderr, past test capture, that the current test does not run and why.
pub fn skip(reason: &str) {
    let test = std::thread::current().name().unwrap_or("a test").to_owned();
    // Written directly: eprintln! would be captured and lost for passing tests.
    let _ = writeln!(std::io::stderr(), "SKIPPED {test}: {reason}");
}

/// Erlang's distribution of the wait in M/D/1, in units of the service time: P(W ≤ t) = (1 − ρ) Σ_{k ≤ t} (−ρ(t − k))ᵏ/k!
/// e^{ρ(t − k)}. Terms of both signs: for small t.
pub fn waits_in_m_d_1(utilisation: f64, t: f64) -> f64 {
    let (mut sum, mut k, mut factorial) = (0.0, 0.0, 1.0);
    while k <= t {
        let x = utilisation * (t - k);
        sum += (-x).powf(k) / factorial * x.exp();
        k += 1.0;
        factorial *= k;
    }
    (1.0 - utilisation) * sum
}
