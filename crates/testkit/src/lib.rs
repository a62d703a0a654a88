//! What tests of several crates share: real data where it is present, loud skips where it is not.

use rustix::net::{self, AddressFamily, SocketFlags, SocketType, sockopt};
use std::io::Write;
use std::net::{Ipv4Addr, SocketAddr, TcpStream};
use std::path::{Path, PathBuf};
use std::process::Child;

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

/// A loopback address for a server that this process starts. Nobody else gets the port while this process lives.
///
/// The kernel chooses the port for a socket that stays bound, without listening, until this process ends. So the kernel
/// gives the port to no other socket, neither to bind nor to connect from, and two test programs that run at the same
/// time can never start servers at one address. A server that sets `SO_REUSEADDR`, as all the servers of our tests do,
/// may bind the port beside it and listen.
///
/// # Panics
/// When the machine has no free port, or this process no free file descriptor.
pub fn free_address() -> SocketAddr {
    let socket = net::socket_with(AddressFamily::INET, SocketType::STREAM, SocketFlags::CLOEXEC, None)
        .expect("a socket can be made");
    let any_port = SocketAddr::from((Ipv4Addr::LOCALHOST, 0));
    net::bind(&socket, &any_port).expect("a loopback port is free");
    // Set after binding: the port was chosen exclusively, and the server is let in beside this socket.
    sockopt::set_socket_reuseaddr(&socket, true).expect("a TCP socket has this option");
    let address = net::getsockname(&socket).expect("a bound socket has an address");
    // The socket reserves the port until the process ends.
    std::mem::forget(socket);
    SocketAddr::try_from(address).expect("an IPv4 socket has an IPv4 address")
}

/// Waits until a server that was started accepts connections.
///
/// # Panics
/// When the server ends instead.
pub fn until_it_listens(server: &mut Child, address: SocketAddr) {
    loop {
        let listens = TcpStream::connect(address).is_ok();
        // Asked even where somebody answers: it has to be this server.
        let ended = server.try_wait().expect("a child can be asked");
        assert!(ended.is_none(), "the server ended: {ended:?}");
        if listens {
            return;
        }
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

#[cfg(test)]
mod tests {
    use super::free_address;
    use std::net::{SocketAddr, TcpListener, TcpStream};

    #[test]
    fn a_free_address_is_given_once_and_a_server_may_listen_there() {
        let addresses: Vec<SocketAddr> = std::iter::repeat_with(free_address).take(50).collect();
        for (index, address) in addresses.iter().enumerate() {
            assert!(!addresses[..index].contains(address), "{address} was given twice");
            assert!(TcpStream::connect(address).is_err(), "nobody listens at {address} yet");
            let _server = TcpListener::bind(address).expect("a listener of std sets SO_REUSEADDR");
            assert!(TcpStream::connect(address).is_ok(), "the server listens at {address}");
        }
    }
}
