//! Greedy UDP senders, and a receiver with the kernel's time stamps.
//!
//! A veth device hands a packet to its peer, and the kernel stamps it, at the moment when the sender's
//! queue releases it. So the stamps are those of the shaper, independent of delays of the receiving
//! thread. Their error is about a microsecond.

use super::{any, within};
use nix::sys::socket::{ControlMessageOwned, MsgFlags, SockaddrStorage, recvmsg, setsockopt, sockopt};
use std::io::IoSliceMut;
use std::net::{SocketAddr, UdpSocket};
use std::os::fd::AsRawFd;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::{Duration, Instant, SystemTime};
use testkit::wait_until;

/// Bytes of the headers of Ethernet, IPv4 and UDP, which a token bucket counts and a socket does not.
pub(crate) const HEADERS: u64 = 14 + 20 + 8;
/// Payload of a UDP packet.
pub(crate) const PAYLOAD: usize = 1400;

/// Sends UDP packets as fast as the queue accepts them, until stopped.
pub(crate) fn greedy(netns: &str, to: SocketAddr, stop: &Arc<AtomicBool>) -> JoinHandle<()> {
    let stop = Arc::clone(stop);
    within(netns, move || {
        let socket = UdpSocket::bind(any(to.is_ipv6(), 0)).expect("a port is free");
        // Less than a queue of 1000 packets: the sender blocks, and its own host drops nothing.
        setsockopt(&socket, sockopt::SndBufForce, &500_000).expect("root may");
        socket.set_write_timeout(Some(Duration::from_millis(100))).expect("not zero");
        while !stop.load(Ordering::Relaxed) {
            // Refused: the receiver is not listening yet. Would block: the queue is full.
            let _ = socket.send_to(&[0; PAYLOAD], to);
        }
    })
}

/// Arrivals of frames: times in nanoseconds since 1970, and sizes in bytes.
pub(crate) type Arrivals = Vec<(u64, u64)>;

/// Maximum time that a recorder waits for traffic.
const PATIENCE: Duration = Duration::from_secs(60);

/// Records the arrivals at a UDP port, until `is_enough` accepts them (its second argument is true during
/// a pause), or until nothing has arrived for a minute. Returns when the port is open.
pub(crate) fn record(
    netns: &str,
    port: u16,
    ipv6: bool,
    is_enough: impl Fn(&Arrivals, bool) -> bool + Send + 'static,
) -> JoinHandle<Arrivals> {
    let (opened, ready) = std::sync::mpsc::channel();
    let recorder = within(netns, move || {
        let socket = UdpSocket::bind(any(ipv6, port)).expect("the port is free");
        setsockopt(&socket, sockopt::ReceiveTimestampns, &true).expect("the kernel stamps");
        setsockopt(&socket, sockopt::RcvBufForce, &64_000_000).expect("root may");
        socket.set_read_timeout(Some(Duration::from_millis(50))).expect("not zero");
        wait_until(PATIENCE, "the kernel stamps packets as they come", || stamps_as_they_come(&socket, ipv6));
        opened.send(()).expect("somebody waits");
        let mut arrivals = Vec::new();
        let mut latest = Instant::now();
        while latest.elapsed() < PATIENCE {
            let arrival = arrival(&socket);
            if arrival.is_some() {
                latest = Instant::now();
            }
            arrivals.extend(arrival);
            if is_enough(&arrivals, arrival.is_none()) {
                break;
            }
        }
        arrivals
    });
    ready.recv().expect("the recorder starts");
    recorder
}

/// Returns true if the first and the last arrival are that far apart, by the kernel's stamps.
pub(crate) fn spans(arrivals: &Arrivals, time: Duration) -> bool {
    let (Some((first, _)), Some((last, _))) = (arrivals.first(), arrivals.last()) else { return false };
    u128::from(last.saturating_sub(*first)) >= time.as_nanos()
}

/// Returns true if the kernel stamps packets on arrival. It begins some time after the request, and until
/// then a packet gets the time at which it is read. A packet to oneself, which arrives before it is read,
/// distinguishes the two.
fn stamps_as_they_come(socket: &UdpSocket, ipv6: bool) -> bool {
    let port = socket.local_addr().expect("it is bound").port();
    let itself: SocketAddr =
        if ipv6 { format!("[::1]:{port}") } else { format!("127.0.0.1:{port}") }.parse().expect("an address");
    socket.send_to(&[0], itself).expect("the loopback device is up");
    let before_reading =
        SystemTime::now().duration_since(std::time::UNIX_EPOCH).expect("after 1970").as_nanos();
    arrival(socket).is_some_and(|(stamp, _)| u128::from(stamp) < before_reading)
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

/// Conformance of traffic to a token bucket.
#[derive(Debug)]
pub(crate) struct Conformance {
    /// Largest ratio of bytes / (r·t + b + a packet) over all windows of 100 ms and longer.
    pub(crate) fullest: f64,
    /// Ratio of the long-run rate to r, after the burst is exhausted.
    pub(crate) steady: f64,
}

/// Returns the conformance of arrivals to a token bucket, over all windows of at least 100 ms.
pub(crate) fn conformance(arrivals: &[(u64, u64)], rate: f64, burst: f64) -> Conformance {
    const WINDOW_NS: u64 = 100_000_000;
    let packet = arrivals.iter().map(|(_, bytes)| *bytes).max().unwrap_or(0) as f64;
    let mut fullest = 0f64;
    let mut before = vec![0u64];
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

/// Returns the rate in bytes per second once the burst has been spent twice over and half a second has
/// passed.
fn steady(arrivals: &[(u64, u64)], burst: f64) -> f64 {
    let Some(&(start, _)) = arrivals.first() else { return 0.0 };
    let mut sum = 0.0;
    let spent = arrivals.iter().position(|(at, bytes)| {
        sum += *bytes as f64;
        sum > 2.0 * burst && at - start > 500_000_000
    });
    let rest = &arrivals[spent.unwrap_or(arrivals.len())..];
    let [first, .., last] = rest else { return 0.0 };
    // The first arrival opens the interval and is outside it.
    let bytes: u64 = rest[1..].iter().map(|(_, bytes)| bytes).sum();
    bytes as f64 / ((last.0 - first.0) as f64 / 1e9)
}
