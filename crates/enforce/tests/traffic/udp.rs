//! Greedy UDP senders, and a receiver that keeps the kernel's time stamps.
//!
//! A veth device hands a packet to its peer, and the kernel stamps it, while the queue of the sender's device lets
//! it go: the stamps are those of the shaper, whatever the receiving thread is delayed by. Their error is the order of
//! a microsecond.

use super::{any, within};
use nix::sys::socket::{ControlMessageOwned, MsgFlags, SockaddrStorage, recvmsg, setsockopt, sockopt};
use std::io::IoSliceMut;
use std::net::{SocketAddr, UdpSocket};
use std::os::fd::AsRawFd;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::Duration;

/// Of Ethernet, IPv4 and UDP, which a token bucket counts and a socket does not.
pub(crate) const HEADERS: u64 = 14 + 20 + 8;
/// What a UDP sender puts into a packet.
pub(crate) const PAYLOAD: usize = 1400;

/// Sends UDP packets as fast as the queue takes them, until told to stop.
pub(crate) fn greedy(netns: &str, to: SocketAddr, stop: &Arc<AtomicBool>) -> JoinHandle<()> {
    let stop = Arc::clone(stop);
    within(netns, move || {
        let socket = UdpSocket::bind(any(to.is_ipv6(), 0)).expect("a port is free");
        // Less than a queue of 1000 packets: the sender waits, and nothing is dropped at its own host.
        setsockopt(&socket, sockopt::SndBufForce, &500_000).expect("root may");
        socket.set_write_timeout(Some(Duration::from_millis(100))).expect("not zero");
        while !stop.load(Ordering::Relaxed) {
            // Refused: nobody listens yet. Would block: the queue is full.
            let _ = socket.send_to(&[0; PAYLOAD], to);
        }
    })
}

/// Arrivals of frames: nanoseconds and bytes.
pub(crate) type Arrivals = Vec<(u64, u64)>;

/// Records what comes to a UDP port until told to stop. Returns when the port is open.
pub(crate) fn record(netns: &str, port: u16, ipv6: bool, stop: &Arc<AtomicBool>) -> JoinHandle<Arrivals> {
    let stop = Arc::clone(stop);
    let (opened, ready) = std::sync::mpsc::channel();
    let recorder = within(netns, move || {
        let socket = UdpSocket::bind(any(ipv6, port)).expect("the port is free");
        setsockopt(&socket, sockopt::ReceiveTimestampns, &true).expect("the kernel stamps");
        setsockopt(&socket, sockopt::RcvBufForce, &64_000_000).expect("root may");
        socket.set_read_timeout(Some(Duration::from_millis(50))).expect("not zero");
        until_stamped(&socket, port, ipv6);
        opened.send(()).expect("somebody waits");
        let mut arrivals = Vec::new();
        while !stop.load(Ordering::Relaxed) {
            arrivals.extend(arrival(&socket));
        }
        arrivals
    });
    ready.recv().expect("the recorder starts");
    recorder
}

/// Returns when the kernel stamps packets as they come: it begins some time after it was asked to, and until then
/// a packet gets the time at which it is read. Told apart by packets to oneself that are left waiting.
fn until_stamped(socket: &UdpSocket, port: u16, ipv6: bool) {
    const WAIT: Duration = Duration::from_millis(10);
    let itself: SocketAddr =
        if ipv6 { format!("[::1]:{port}") } else { format!("127.0.0.1:{port}") }.parse().expect("an address");
    for _ in 0..500 {
        socket.send_to(&[0], itself).expect("the loopback device is up");
        std::thread::sleep(WAIT);
        let read = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).expect("after 1970");
        let stamp = arrival(socket).map_or(u128::MAX, |(stamp, _)| u128::from(stamp));
        if stamp + WAIT.as_nanos() / 2 < read.as_nanos() {
            return;
        }
    }
    panic!("the kernel does not stamp packets as they come");
}

fn arrival(socket: &UdpSocket) -> Option<(u64, u64)> {
    let mut buffer = [0u8; 2048];
    let mut parts = [IoSliceMut::new(&mut buffer)];
    let mut control = nix::cmsg_space!(nix::sys::time::TimeSpec);
    let message =
        recvmsg::<SockaddrStorage>(socket.as_raw_fd(), &mut parts, Some(&mut control), MsgFlags::empty())
            .ok()?;
    let stamp = message.cmsgs().ok()?.find_map(|control| match control {
        ControlMessageOwned::ScmTimestampns(time) => Some(Duration::from(time)),
        _ => None,
    })?;
    Some((u64::try_from(stamp.as_nanos()).expect("this century"), message.bytes as u64 + HEADERS))
}

/// How traffic keeps to a token bucket.
#[derive(Debug)]
pub(crate) struct Conformance {
    /// The largest of bytes / (r·t + b + a packet) over all windows of 100 ms and longer.
    pub(crate) fullest: f64,
    /// Long-run rate / r, from when the burst is spent.
    pub(crate) steady: f64,
}

/// Over windows of at least 100 ms, however they lie.
pub(crate) fn conformance(arrivals: &[(u64, u64)], rate: f64, burst: f64) -> Conformance {
    const WINDOW_NS: u64 = 100_000_000;
    let packet = arrivals.iter().map(|(_, bytes)| *bytes).max().unwrap_or(0) as f64;
    let (mut fullest, mut before) = (0f64, vec![0u64]);
    arrivals.iter().for_each(|(_, bytes)| before.push(before[before.len() - 1] + bytes));
    for first in 0..arrivals.len() {
        for last in first..arrivals.len() {
            let length = arrivals[last].0.saturating_sub(arrivals[first].0);
            if length >= WINDOW_NS {
                let bytes = (before[last + 1] - before[first]) as f64;
                fullest = fullest.max(bytes / (rate * length as f64 / 1e9 + burst + packet));
            }
        }
    }
    Conformance { fullest, steady: steady(arrivals, burst) / rate }
}

/// Bytes per second once the burst is spent twice over and half a second has passed.
fn steady(arrivals: &[(u64, u64)], burst: f64) -> f64 {
    let Some(&(start, _)) = arrivals.first() else { return 0.0 };
    let mut sum = 0.0;
    let spent = arrivals.iter().position(|(at, bytes)| {
        sum += *bytes as f64;
        sum > 2.0 * burst && at - start > 500_000_000
    });
    let rest = &arrivals[spent.unwrap_or(arrivals.len())..];
    let [first, .., last] = rest else { return 0.0 };
    // The first opens the interval and is not in it.
    let bytes: u64 = rest[1..].iter().map(|(_, bytes)| bytes).sum();
    bytes as f64 / ((last.0 - first.0) as f64 / 1e9)
}
