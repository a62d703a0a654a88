//! A proxy that may open fewer files than it has clients. It runs in a separate process: this test again,
//! with a limit.

use crate::codec::Protocol;
use crate::honest::{HonestClient, proxy_before, read_to_end};
use crate::mini::Mini;
use crate::proxy::Running;
use std::io::{BufRead, BufReader, Read};
use std::net::{SocketAddr, TcpStream};
use std::process::{Command, Stdio};
use std::time::Duration;

/// Set in the second run: address of the server.
const SERVER: &str = "TAILWRIGHT_ENFORCE_TEST_FEW_FILES";
/// Set in the second run: limit of open files once the proxy listens.
const LATER: &str = "TAILWRIGHT_ENFORCE_TEST_FEWER_FILES";
const NAME: &str = "files::whom_there_are_no_files_for_is_turned_away";

#[test]
fn whom_there_are_no_files_for_is_turned_away() {
    if let Ok(server) = std::env::var(SERVER) {
        let proxy = Running::plain("memcached", server.parse().unwrap());
        lower_limit();
        println!("\nlistens at {}", proxy.address);
        std::io::stdin().read_to_end(&mut Vec::new()).unwrap();
        return;
    }
    // Each client needs two files: with one to spare the second is missing, with none the first.
    for files in [64, 65] {
        with_limit(files, files);
        // The limit is lowered after the proxy has counted on more files.
        with_limit(1024, files);
    }
}

/// Lowers the limit of open files as the environment says.
fn lower_limit() {
    use rustix::process::{Resource, Rlimit, setrlimit};
    let files: u64 = std::env::var(LATER).expect("it is set").parse().expect("it is a number");
    setrlimit(Resource::Nofile, Rlimit { current: Some(files), maximum: Some(files) }).expect("it is lower");
}

fn with_limit(files: u32, later: u32) {
    let server = Mini::memcached();
    let itself = std::env::current_exe().expect("a test has a path");
    let mut command = Command::new("sh");
    command.args(["-c", "ulimit -n \"$FILES\" && exec \"$0\" \"$@\""]).arg(itself);
    command
        .args(["--exact", NAME, "--nocapture"])
        .env(SERVER, server.address.to_string())
        .env(LATER, later.to_string())
        .env("FILES", files.to_string());
    let child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null()).spawn();
    let mut child = child.expect("a shell");
    let mut lines = BufReader::new(child.stdout.take().expect("it is piped")).lines();
    let address =
        lines.by_ref().map_while(Result::ok).find_map(|line| line.strip_prefix("listens at ")?.parse().ok());
    let address: SocketAddr = address.expect("it says where it listens");
    // Talks to the other process; the proxy here only provides its client code.
    let mut near = proxy_before(&server, Protocol::Memcached, "");
    near.address = address;
    let mut honest = HonestClient::new(&near, Protocol::Memcached, 1);
    honest.round(50);
    let mut silent: Vec<TcpStream> = (0..100).map(|_| near.connect()).collect();
    assert_eq!(read_to_end(silent.last_mut().expect("there are some")), b"", "the last is turned away");
    honest.round(200);
    drop(silent);
    // As soon as places are free again.
    while !admitted(address) {
        std::thread::yield_now();
    }
    honest.round(200);
    drop(child.stdin.take());
    assert!(child.wait().expect("it was started").success());
}

/// Returns true if a new client is answered.
fn admitted(address: SocketAddr) -> bool {
    let mut stream = TcpStream::connect(address).expect("it listens");
    stream.set_read_timeout(Some(Duration::from_secs(60))).expect("a timeout");
    let said = std::io::Write::write_all(&mut stream, b"get none\r\n");
    said.is_ok() && stream.read(&mut [0; 5]).is_ok_and(|read| read == 5)
}
