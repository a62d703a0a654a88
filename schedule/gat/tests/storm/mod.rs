//! Clients of a storm, which check every answer, and the relay before a service that may be killed.

use serde_json::Value;
use std::collections::HashSet;
use std::io::{Read as _, Write as _};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, AtomicU16, Ordering};
use std::thread::Scope;
use std::time::{Duration, Instant};

/// Interval between the relay's checks for the end of the storm.
const LOOKS_EVERY: Duration = Duration::from_millis(5);
/// Pause of a client between requests, so that the judges do not take the whole machine.
const PAUSE: Duration = Duration::from_millis(20);
/// Time after which a client gives up on a request without progress.
const PATIENCE: Duration = Duration::from_secs(60);

#[derive(Debug, Default)]
pub(super) struct StormCounts {
    /// Number of answers with an intact tag.
    pub(super) right: u64,
    /// Starts of these answers.
    pub(super) starts: HashSet<u64>,
    /// Number of requests that failed or were not answered: the service behind is killed from time to
    /// time.
    pub(super) failed: u64,
    /// Number of requests that the client abandoned.
    pub(super) abandoned: u64,
}

impl StormCounts {
    pub(super) fn with(mut self, other: Self) -> Self {
        self.starts.extend(other.starts);
        Self {
            right: self.right + other.right,
            failed: self.failed + other.failed,
            abandoned: self.abandoned + other.abandoned,
            ..self
        }
    }
}

/// A storm on an entry point.
#[derive(Debug, Clone, Copy)]
pub(super) struct Storm {
    pub(super) port: u16,
    pub(super) end: Instant,
}

impl Storm {
    /// Sends one request after the other; each action is drawn by the number of the client.
    pub(super) fn client(self, number: u64) -> StormCounts {
        let mut counts = StormCounts::default();
        let mut state = number + 1;
        while Instant::now() < self.end {
            std::thread::park_timeout(PAUSE);
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            let drawn = state >> 33;
            if drawn.is_multiple_of(3) {
                self.abandon(drawn / 3);
                counts.abandoned += 1;
                continue;
            }
            match self.ask(&hostile(drawn / 3)) {
                Some(start) => {
                    counts.right += 1;
                    counts.starts.insert(start);
                }
                None => counts.failed += 1,
            }
        }
        counts
    }

    /// Repeats a request until it is answered. Returns its start.
    pub(super) fn answered(self) -> u64 {
        let end = Instant::now() + PATIENCE;
        loop {
            if let Some(start) = self.ask("") {
                return start;
            }
            assert!(Instant::now() < end, "the services answer again after the storm");
        }
    }

    /// Abandons a request in the middle, after it, or during the answer.
    fn abandon(self, how: u64) {
        let Ok(mut stream) = TcpStream::connect(("127.0.0.1", self.port)) else { return };
        let request = "GET / HTTP/1.1\r\nHost: a\r\nBaggage: tailwright-start=1,user=7\r\n\r\n";
        let sent = if how.is_multiple_of(3) { &request[..request.len() / 2] } else { request };
        let _ = stream.write_all(sent.as_bytes());
        if how % 3 == 2 {
            let _ = stream.set_read_timeout(Some(Duration::from_millis(1 + how / 3 % 30)));
            let _ = stream.read(&mut [0; 16]);
        }
    }

    /// Returns the start of a correctly answered request; `None` if a service was killed meanwhile.
    fn ask(self, headers: &str) -> Option<u64> {
        let mut stream = TcpStream::connect(("127.0.0.1", self.port)).ok()?;
        stream.set_read_timeout(Some(PATIENCE)).expect("it is no zero");
        let request = format!("GET / HTTP/1.1\r\nHost: a\r\nConnection: close\r\n{headers}\r\n");
        stream.write_all(request.as_bytes()).ok()?;
        let mut reply = Vec::new();
        stream.read_to_end(&mut reply).ok()?;
        let reply = String::from_utf8_lossy(&reply);
        let (head, body) = reply.split_once("\r\n\r\n")?;
        assert!(!head.to_ascii_lowercase().contains("tailwright"), "a reply has a tag: {reply}");
        let object = &body[body.find('{')?..=body.rfind('}')?];
        let answer: Value =
            if head.contains(" 200 ") { serde_json::from_str(object).ok()? } else { return None };
        Some(check(&answer))
    }
}

/// Checks that the entry point's start is that of its own call, and of no other request.
fn check(answer: &Value) -> u64 {
    let start = answer["start"].as_str().and_then(|digits| digits.parse().ok()).expect("a start");
    let tag = format!("tailwright-start={start}");
    let seen = answer["baggage"].as_str().expect("a text");
    assert_eq!(seen.split(',').next(), Some(&*tag), "{answer}");
    assert_eq!(seen.matches("tailwright-start=").count(), 1, "{answer}");
    let hop = &answer["called"][0];
    assert_eq!(hop["start"], answer["start"], "another request's tag: {answer}");
    assert_eq!(hop["baggage"], format!("{tag},own=1"), "{answer}");
    start
}

/// Returns headers that claim to be old, that are long, and that hide tags.
fn hostile(how: u64) -> String {
    match how % 6 {
        0 => "Baggage: tailwright-start=1,tailwright-deadline=2,user=7\r\n".to_owned(),
        1 => format!("Baggage: %{}74ailwright-start=1,user=7\r\n", "25".repeat(1000)),
        2 => format!("Baggage: {}user=7\r\n", "a=1,".repeat(1500)),
        3 => "Baggage: tailwright-start=1\r\n".repeat(20),
        4 => "Baggage: tailwright-start=18446744073709551616,,;=,%zz\r\nbaggage: Tailwright%2DStart=1\r\n"
            .to_owned(),
        _ => String::new(),
    }
}

/// Listens on a fixed port, and relays bytes to and from the service in `target`.
pub(super) fn relay<'scope>(
    scope: &'scope Scope<'scope, '_>,
    target: &'scope AtomicU16,
    is_over: &'scope AtomicBool,
) -> u16 {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port is free");
    let port = listener.local_addr().expect("it is bound").port();
    listener.set_nonblocking(true).expect("it is a socket");
    scope.spawn(move || {
        while !is_over.load(Ordering::Relaxed) {
            let Ok((client, _)) = listener.accept() else {
                std::thread::park_timeout(LOOKS_EVERY);
                continue;
            };
            client.set_nonblocking(false).expect("it is a socket");
            // Without a service, the client's connection ends.
            if let Ok(server) = TcpStream::connect(("127.0.0.1", target.load(Ordering::Relaxed))) {
                pass_both_ways(client, server);
            }
        }
    });
    port
}

/// Relays both directions in threads that end with the connections.
fn pass_both_ways(client: TcpStream, server: TcpStream) {
    let ways = [(client.try_clone(), server.try_clone()), (Ok(server), Ok(client))];
    for (from, to) in ways {
        let (Ok(mut from), Ok(mut to)) = (from, to) else { return };
        std::thread::spawn(move || {
            let _ = std::io::copy(&mut from, &mut to);
            let _ = to.shutdown(Shutdown::Write);
        });
    }
}
