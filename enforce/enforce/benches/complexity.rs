//! Cost of one step of the proxy while many requests wait, as a function of the number of connections,
//! each with 256 waiting requests.
//!
//! The engine runs over streams in memory and a server that never answers, so that only the proxy takes
//! time. Times are per operation; the last column is the growth from the fewest to the most connections.
//!
//! `cargo bench -p enforce --bench complexity`

#[path = "../tests/proxy/mod.rs"]
mod proxy;

use enforce::storage::{
    ProxyEngine, ProxyOptions, ProxyStream, StreamInterest, StreamRole, StreamToken, System, SystemEvent,
};
use proxy::{deployment, policy, profile};
use std::cell::RefCell;
use std::collections::BTreeMap;
use std::io::{self, IoSlice};
use std::net::SocketAddr;
use std::rc::Rc;
use std::time::Instant;
use wire::Protocol;

const WAITING: usize = 256;
const CONNECTIONS: [usize; 3] = [10, 100, 1000];
const STEPS: u32 = 200;

/// Bytes that have arrived for one stream, and a flag for a hang-up of its other end.
#[derive(Debug, Default)]
struct Pipe {
    input: Vec<u8>,
    has_hung_up: bool,
}

#[derive(Debug)]
struct MemoryStream(Rc<RefCell<Pipe>>);

impl ProxyStream for MemoryStream {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let mut pipe = self.0.borrow_mut();
        if pipe.input.is_empty() {
            return match pipe.has_hung_up {
                true => Err(io::ErrorKind::ConnectionReset.into()),
                false => Err(io::ErrorKind::WouldBlock.into()),
            };
        }
        let count = pipe.input.len().min(buffer.len());
        buffer[..count].copy_from_slice(&pipe.input[..count]);
        pipe.input.drain(..count);
        Ok(count)
    }

    fn write_vectored(&mut self, pieces: &[IoSlice<'_>]) -> io::Result<usize> {
        Ok(pieces.iter().map(|piece| piece.len()).sum())
    }

    fn shutdown_write(&mut self) -> io::Result<()> {
        Ok(())
    }

    fn finish_connecting(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// Streams in memory; every read of the clock advances it by a microsecond.
#[derive(Debug, Default)]
struct MemorySystem {
    clock: std::cell::Cell<u64>,
    arriving: Vec<(MemoryStream, SocketAddr)>,
    events: Vec<SystemEvent>,
    tokens: BTreeMap<usize, StreamToken>,
}

impl System for MemorySystem {
    type Stream = MemoryStream;

    fn now(&self) -> u64 {
        self.clock.set(self.clock.get() + 1000);
        self.clock.get()
    }

    fn accept(&mut self, _front: usize) -> io::Result<(MemoryStream, SocketAddr)> {
        self.arriving.pop().ok_or_else(|| io::ErrorKind::WouldBlock.into())
    }

    fn restore_reserve(&mut self) -> bool {
        true
    }

    fn clients_max(&self) -> u64 {
        u64::MAX
    }

    fn report_clients(&mut self, _are_reported: bool) {}

    fn may_share(&self, _front: usize) -> bool {
        false
    }

    fn connect(&mut self, _front: usize, _client: Option<SocketAddr>) -> io::Result<MemoryStream> {
        Ok(MemoryStream(Rc::default()))
    }

    fn watch(&mut self, stream: &mut MemoryStream, token: StreamToken, _: StreamInterest) -> io::Result<()> {
        if token.role == StreamRole::Client {
            self.tokens.insert(Rc::as_ptr(&stream.0) as usize, token);
        } else if !stream.0.borrow().has_hung_up {
            let event = SystemEvent::Stream { token, readable: false, writable: true, hung_up: false };
            self.events.push(event);
            stream.0.borrow_mut().has_hung_up = true;
        }
        Ok(())
    }

    fn unwatch(&mut self, _stream: &mut MemoryStream) {}

    fn wait(&mut self, _: Option<u64>, _: u32, events: &mut Vec<SystemEvent>) -> io::Result<()> {
        events.append(&mut self.events);
        Ok(())
    }

    fn stop_listening(&mut self) {}
}

/// An engine whose connections have the maximum number of waiting requests.
struct Crowd {
    engine: ProxyEngine<MemorySystem>,
    pipes: Vec<Rc<RefCell<Pipe>>>,
}

impl Crowd {
    fn new(connections: usize) -> Self {
        let clients = "[[client]]\nworkload = \"high\"\nhost = \"here\"\naddress = [\"10.0.0.1\"]\n\
            [[client]]\nworkload = \"low\"\nhost = \"here\"\naddress = [\"10.1.0.0/16\"]";
        let server = "127.0.0.1:1".parse().expect("an address");
        let hosts = deployment("memcached", server, "outstanding = 4", clients);
        let mut options = ProxyOptions::new("ssd", hosts, Some(levels(0, 1)), profile());
        options.connections_max = 4 * connections as u64 + 100;
        let engine = ProxyEngine::new(MemorySystem::default(), vec![Protocol::Memcached], &options);
        let mut crowd = Self { engine: engine.expect("rules"), pipes: Vec::new() };
        for number in 0..connections {
            let address = format!("10.1.{}.{}:1000", number / 250, number % 250);
            crowd.connect(&address);
        }
        for pipe in 0..connections {
            crowd.say(pipe, &b"get k\r\n".repeat(WAITING + 8));
        }
        let snapshot = crowd.engine.snapshot();
        let expected = ((connections - 1) * WAITING) as u64;
        assert!(snapshot.waiting >= expected, "{expected}: {snapshot:?}");
        crowd
    }

    fn connect(&mut self, address: &str) -> usize {
        let pipe = Rc::new(RefCell::new(Pipe::default()));
        let stream = MemoryStream(pipe.clone());
        let system = self.engine.system();
        system.arriving.push((stream, address.parse().expect("an address")));
        system.events.push(SystemEvent::Incoming(0));
        self.pipes.push(pipe);
        self.round();
        self.round();
        self.pipes.len() - 1
    }

    fn round(&mut self) {
        self.engine.round().expect("memory does not fail");
    }

    fn event(&mut self, pipe: usize, hung_up: bool) {
        let key = Rc::as_ptr(&self.pipes[pipe]) as usize;
        let system = self.engine.system();
        let token = system.tokens[&key];
        system.events.push(SystemEvent::Stream { token, readable: true, writable: false, hung_up });
        self.round();
    }

    fn say(&mut self, pipe: usize, bytes: &[u8]) {
        self.pipes[pipe].borrow_mut().input.extend_from_slice(bytes);
        self.event(pipe, false);
    }

    fn hang_up(&mut self, pipe: usize) {
        self.pipes[pipe].borrow_mut().has_hung_up = true;
        self.event(pipe, true);
    }
}

/// Returns the policy that gives the two workloads these levels.
fn levels(high: u32, low: u32) -> model::Policy {
    policy(&[("high", high, &[]), ("low", low, &[])])
}

/// Returns the microseconds per operation, averaged over this many.
fn time_us(count: u32, mut operation: impl FnMut(u32)) -> f64 {
    let begun = Instant::now();
    (0..count).for_each(&mut operation);
    begun.elapsed().as_secs_f64() * 1e6 / f64::from(count)
}

/// Returns the operations, with their time beside a crowd of this many connections.
fn measure(connections: usize) -> Vec<(&'static str, f64)> {
    let mut crowd = Crowd::new(connections);
    let high = crowd.connect("10.0.0.1:1000");
    let mut rows = vec![
        ("a request of the highest level arrives", time_us(100, |_| crowd.say(high, b"get k\r\n"))),
        ("a round without anything", time_us(STEPS, |_| crowd.round())),
    ];
    rows.push(("the counters", time_us(STEPS, |_| drop(crowd.engine.snapshot()))));
    rows.push((
        "a policy that changes every level",
        time_us(10, |turn| {
            let changed = crowd.engine.configure(Some(&levels(turn % 2 + 1, 2 - turn % 2)), None);
            assert!(changed.expect("a policy"), "it changes");
        }),
    ));
    rows.push((
        "a connection with 256 waiting requests hangs up",
        time_us(5, |turn| crowd.hang_up(turn as usize)),
    ));
    let left = u32::try_from(connections - 5).expect("few");
    let all = time_us(left, |turn| crowd.hang_up(turn as usize + 5));
    rows.push(("all others hang up, each", all));
    crowd.engine.check_invariants();
    rows
}

fn main() {
    let columns: Vec<_> = CONNECTIONS.iter().map(|connections| measure(*connections)).collect();
    println!(
        "{:<50} {:>10} {:>10} {:>10} {:>8}",
        "microseconds, beside connections:", 10, 100, 1000, "growth"
    );
    for (row, (name, few)) in columns[0].iter().enumerate() {
        let [some, many] = [1, 2].map(|column: usize| columns[column][row].1);
        println!("{name:<50} {few:>10.1} {some:>10.1} {many:>10.1} {:>7.1}x", many / few);
    }
}
