//! When a server has ended: not while it accepts connections, though every process that has read from one is gone.

use crate::{may_observe, probes};
use machine::clock::now;
use observe::{ClientRequest, IntendedWaits, ObservationEnd, ObservationSettings, nesting, observe};
use std::io::{Read, Write};
use std::net::{Ipv4Addr, SocketAddr, TcpListener, TcpStream};
use std::os::fd::OwnedFd;
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::park_timeout;
use std::time::Duration;

const REQUESTS: usize = 12;

/// Between two requests: with all of them, longer than it takes to look a few times whether processes have ended.
const PAUSE: Duration = Duration::from_millis(300);

/// A child for each connection, which reads eight bytes, sends them back and ends.
fn serve(listener: &TcpListener, is_over: &AtomicBool) {
    while let Ok((stream, _)) = listener.accept() {
        if is_over.load(Ordering::Relaxed) {
            return;
        }
        let output = stream.try_clone().expect("a socket can be cloned");
        let [input, output] = [stream, output].map(|stream| Stdio::from(OwnedFd::from(stream)));
        let child = Command::new("head").args(["-c", "8"]).stdin(input).stdout(output).status();
        assert!(child.is_ok_and(|status| status.success()));
    }
}

fn ask(server: SocketAddr) -> ClientRequest {
    let mut stream = TcpStream::connect(server).expect("the server listens");
    let client = stream.local_addr().expect("it is connected");
    let sent = now();
    let mut buffer = Vec::new();
    stream.write_all(b"question").expect("there is room");
    stream.read_to_end(&mut buffer).expect("the server answers");
    assert_eq!(buffer, b"question");
    ClientRequest { client, sent, received: now() }
}

#[test]
fn a_server_lives_that_has_a_process_for_each_connection() {
    if !may_observe() {
        return;
    }
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).expect("a port is free");
    let address = listener.local_addr().expect("it is bound");
    let settings = ObservationSettings {
        probes: probes(address.port()),
        duration: Duration::from_secs(120),
        cost_duration: Duration::ZERO,
        intended_waits: IntendedWaits::Included,
        cost_limit: None,
    };
    let is_over = AtomicBool::new(false);
    let stop = AtomicBool::new(false);
    let mut requests = Vec::new();
    let clients = || {
        let asked = |_| {
            park_timeout(PAUSE);
            ask(address)
        };
        let sent: Vec<ClientRequest> = (0..REQUESTS).map(asked).collect();
        is_over.store(true, Ordering::Relaxed);
        drop(TcpStream::connect(address));
        sent
    };
    let (report, sent) = std::thread::scope(|scope| {
        scope.spawn(|| {
            serve(&listener, &is_over);
            drop(listener);
        });
        let mut running = None;
        let attached = || running = Some(scope.spawn(clients));
        let report = observe(&settings, &stop, attached, &mut |request| requests.push(*request));
        let sent = running.map(|clients| clients.join().expect("clients do not fail"));
        (report.unwrap_or_else(|error| panic!("{error}")), sent.expect("clients were started"))
    });
    assert_eq!(report.end, ObservationEnd::ServerEnded);
    assert_eq!(nesting(&requests, &sent).nested, REQUESTS as u64, "{:?}", report.counts);
}
