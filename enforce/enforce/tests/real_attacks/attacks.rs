//! Attacks on real servers, each by a process of its own, until it is killed.

use crate::proxy::nbd;
use std::io::{Read, Write};
use std::net::{Ipv4Addr, SocketAddr, TcpStream};
use std::thread;
use std::time::Duration;
use testkit::connect_from;

/// Size of the values that attacks ask for.
pub const LARGE: usize = 1_000_000;
/// Key of such a value.
pub const LARGE_KEY: &str = "large";

/// An attack, by clients that no entry names or that are of a workload of low priority.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RealAttack {
    /// Two addresses hold half a `set` on every place, and send a byte every 25 s.
    HalfSets,
    /// A thousand idle connections, where the proxy may open 1024 files.
    FewFiles,
    /// `get`s of 20,000 keys that are not there.
    MissingKeys,
    /// 40 connections a second, each asking for 200 large values and reading nothing.
    UnreadReplies,
    /// Connections that are reset with 20 large replies outstanding, 100 a second.
    ResetReplies,
    /// Connections that are reset after a small request, 1,000 a second.
    ResetStorm,
    /// 700 clients with requests at work hang up at once, every half second.
    HangUps,
    /// Reads of 32 MiB of an NBD server.
    LargeReads,
    /// Bytes of no protocol, on connection after connection.
    Garbage,
    /// Connections that are closed at once, 1,000 a second.
    Churn,
    /// 50 clients that read large values slowly.
    SlowReaders,
}

impl RealAttack {
    pub const ALL: [Self; 11] = [
        Self::HalfSets,
        Self::FewFiles,
        Self::MissingKeys,
        Self::UnreadReplies,
        Self::ResetReplies,
        Self::ResetStorm,
        Self::HangUps,
        Self::LargeReads,
        Self::Garbage,
        Self::Churn,
        Self::SlowReaders,
    ];

    pub fn name(self) -> &'static str {
        match self {
            Self::HalfSets => "half-sets",
            Self::FewFiles => "few-files",
            Self::MissingKeys => "missing-keys",
            Self::UnreadReplies => "unread-replies",
            Self::ResetReplies => "reset-replies",
            Self::ResetStorm => "reset-storm",
            Self::HangUps => "hang-ups",
            Self::LargeReads => "large-reads",
            Self::Garbage => "garbage",
            Self::Churn => "churn",
            Self::SlowReaders => "slow-readers",
        }
    }

    pub fn named(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|attack| attack.name() == name)
    }

    /// Returns true if it attacks the NBD server.
    pub fn is_nbd(self) -> bool {
        self == Self::LargeReads
    }

    /// Returns the number of files that the proxy may open.
    pub fn files(self) -> u32 {
        if self == Self::FewFiles { 1024 } else { 8192 }
    }

    /// Returns the time until it has taken effect.
    pub fn begins_after(self) -> Duration {
        Duration::from_millis(if self == Self::UnreadReplies { 1500 } else { 500 })
    }

    /// Attacks a front or a server until the process is killed.
    pub fn act(self, target: SocketAddr) {
        match self {
            Self::HalfSets => hold(target, 1000, |number| 1 + number % 2, b"set half 0 0 100000\r\nhalf"),
            Self::FewFiles => hold(target, 1000, |_| 1, b""),
            Self::MissingKeys => on_threads(4, |_| ask_again(target, &missing_keys(), b"END\r\n")),
            Self::UnreadReplies => unread_replies(target),
            Self::ResetReplies => on_threads(4, |_| {
                let asked = format!("get {LARGE_KEY}\r\n").repeat(20);
                repeat(Duration::from_millis(40), || reset_after(target, asked.as_bytes(), 10));
            }),
            Self::ResetStorm => on_threads(4, |_| {
                repeat(Duration::from_millis(4), || reset_after(target, b"get small\r\n", 0));
            }),
            Self::HangUps => hang_ups(target),
            Self::LargeReads => on_threads(4, |_| large_reads(target)),
            Self::Garbage => on_threads(4, |_| {
                repeat(Duration::from_millis(4), || {
                    let Some(mut stream) = connect(target, 1) else { return };
                    let _ = stream.write_all(&[0xfe; 16 << 10]);
                });
            }),
            Self::Churn => {
                on_threads(4, |_| repeat(Duration::from_millis(4), || drop(connect(target, 1))));
            }
            Self::SlowReaders => on_threads(50, |_| slow_reader(target)),
        }
    }
}

fn connect(target: SocketAddr, host: usize) -> Option<TcpStream> {
    let host = u8::try_from(host).expect("few addresses");
    connect_from(Ipv4Addr::new(127, 0, 2, host), target).ok()
}

fn on_threads(count: usize, each: impl Fn(usize) + Sync) {
    thread::scope(|scope| {
        for number in 0..count {
            let each = &each;
            thread::Builder::new()
                .stack_size(128 << 10)
                .spawn_scoped(scope, move || each(number))
                .expect("a thread");
        }
    });
}

fn repeat(interval: Duration, mut act: impl FnMut()) {
    loop {
        act();
        thread::sleep(interval);
    }
}

/// Keeps as many connections as possible, with these bytes sent; opens those again that are closed.
fn hold(target: SocketAddr, count: usize, host: impl Fn(usize) -> usize, said: &[u8]) {
    let mut held: Vec<Option<TcpStream>> = (0..count).map(|_| None).collect();
    let mut piece = [0; 4096];
    let mut turn = 0;
    loop {
        for (number, place) in held.iter_mut().enumerate() {
            let is_open = place.as_mut().is_some_and(|stream| {
                let read = stream.set_nonblocking(true).and_then(|()| stream.read(&mut piece));
                !matches!(read, Ok(0))
                    && !read.is_err_and(|error| error.kind() != std::io::ErrorKind::WouldBlock)
            });
            if !is_open {
                *place = connect(target, host(number));
                if let Some(stream) = place {
                    let _ = stream.write_all(said);
                }
            } else if turn % 100 == 99 && !said.is_empty() {
                let _ = place.as_mut().map(|stream| stream.write_all(b"x"));
            }
        }
        turn += 1;
        thread::sleep(Duration::from_millis(250));
    }
}

fn missing_keys() -> Vec<u8> {
    let keys: String = (0..20_000).map(|number| format!(" none{number}")).collect();
    format!("get{keys}\r\n").into_bytes()
}

/// Asks again and again, and reads the answers up to their end.
fn ask_again(target: SocketAddr, said: &[u8], end: &[u8]) {
    repeat(Duration::from_millis(10), || {
        let Some(mut stream) = connect(target, 1) else { return };
        let mut tail = Vec::new();
        let mut piece = vec![0; 64 << 10];
        while stream.write_all(said).is_ok() {
            tail.clear();
            while !tail.ends_with(end) {
                match stream.read(&mut piece) {
                    Ok(count) if count > 0 => tail.extend_from_slice(&piece[..count]),
                    _ => return,
                }
            }
        }
    });
}

fn unread_replies(target: SocketAddr) {
    let asked = format!("get {LARGE_KEY}\r\n").repeat(200);
    let mut held = Vec::new();
    loop {
        if let Some(mut stream) = connect(target, 1) {
            let _ = stream.write_all(asked.as_bytes());
            held.push(stream);
        }
        if held.len() > 400 {
            held.remove(0);
        }
        thread::sleep(Duration::from_millis(25));
    }
}

fn reset_after(target: SocketAddr, said: &[u8], wait_ms: u64) {
    let Some(mut stream) = connect(target, 1) else { return };
    let _ = stream.write_all(said);
    thread::sleep(Duration::from_millis(wait_ms));
    let _ = rustix::net::sockopt::set_socket_linger(&stream, Some(Duration::ZERO));
}

fn hang_ups(target: SocketAddr) {
    let asked = format!("get {LARGE_KEY}\r\n").repeat(2);
    repeat(Duration::from_millis(500), || {
        let mut streams: Vec<TcpStream> = (0..700).filter_map(|_| connect(target, 1)).collect();
        for stream in &mut streams {
            let _ = stream.write_all(asked.as_bytes());
        }
        drop(streams);
    });
}

fn large_reads(target: SocketAddr) {
    let mut stream = nbd(target, "");
    let mut piece = vec![0; 1 << 20];
    let mut asked = Vec::new();
    for cookie in 0..4 {
        wire::nbd::client::read(&mut asked, cookie, 0, 32 << 20);
    }
    while stream.write_all(&asked).is_ok() {
        let mut missing = 4 * (16 + (32 << 20));
        while missing > 0 {
            match stream.read(&mut piece) {
                Ok(count) if count > 0 => missing -= count.min(missing),
                _ => return,
            }
        }
    }
}

fn slow_reader(target: SocketAddr) {
    let asked = format!("get {LARGE_KEY}\r\n").repeat(50);
    let mut piece = vec![0; 64 << 10];
    repeat(Duration::from_millis(100), || {
        let Some(mut stream) = connect(target, 1) else { return };
        let _ = stream.write_all(asked.as_bytes());
        while stream.read(&mut piece).is_ok_and(|count| count > 0) {
            thread::sleep(Duration::from_millis(10));
        }
    });
}
