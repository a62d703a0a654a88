//! A server of three protocols before one device, on one thread, which counts the requests that reach it.

use crate::device::{ChanneledDevice, ServiceCost};
use crate::oracle::{ServedRequest, ServerCounts};
use crate::speech::memcached::MemcachedSpeech;
use crate::speech::nbd::{GREETING, NbdSpeech};
use crate::speech::nfs::NfsSpeech;
use crate::speech::{DeviceRequest, Heard, ReplyBytes, ServerSpeech};
use rustix::event::{Timespec, epoll};
use rustix::fd::OwnedFd;
use slab::Slab;
use std::collections::{HashMap, VecDeque};
use std::io::{ErrorKind, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, Ordering::SeqCst};
use std::sync::{Arc, Mutex};
use std::time::Instant;

/// Above the proxy and the clients: the server is not under test.
pub const SERVER_FIFO: u32 = 40;
/// A connection with more pending output is not read.
const OUTPUT_MAX: usize = 4 << 20;
const READ_SIZE: usize = 256 << 10;
const CALLBACK_NS: u64 = 20_000_000;
const LISTENERS: u64 = 3;

/// A connection at the server.
struct ServedConnection {
    stream: TcpStream,
    serial: u64,
    speech: Box<dyn ServerSpeech>,
    input: Vec<u8>,
    output: Vec<u8>,
    written: usize,
    is_reading: bool,
    /// True if one of its requests is at the device, which serves this connection in order.
    is_busy: bool,
    behind: VecDeque<DeviceRequest>,
    /// Time of the server's next call, and of the one in progress.
    callback_at: Option<u64>,
    called_at: Option<u64>,
}

/// The event loop.
struct DeviceServer {
    epoll: OwnedFd,
    listeners: Vec<TcpListener>,
    connections: Slab<ServedConnection>,
    serials: u64,
    device: ChanneledDevice,
    cost: ServiceCost,
    jobs: HashMap<u64, (usize, u64, DeviceRequest)>,
    next_job: u64,
    counts: Arc<Mutex<ServerCounts>>,
    begun: Instant,
    piece: Vec<u8>,
}

/// A server that runs until dropped. Addresses are those of NBD, memcached and NFS.
pub struct RunningServer {
    pub addresses: [SocketAddr; 3],
    pub counts: Arc<Mutex<ServerCounts>>,
    over: Arc<AtomicBool>,
    thread: Option<std::thread::JoinHandle<()>>,
}

impl RunningServer {
    pub fn start(channels: usize, cost: ServiceCost) -> Self {
        let listeners: Vec<TcpListener> =
            (0..LISTENERS).map(|_| listen().expect("a free port of the loopback device")).collect();
        let addresses = std::array::from_fn(|at| listeners[at].local_addr().expect("it is bound"));
        let counts = Arc::new(Mutex::default());
        let over = Arc::new(AtomicBool::new(false));
        let of_thread = Arc::clone(&counts);
        let end = Arc::clone(&over);
        let thread = std::thread::spawn(move || {
            let _ = (machine::realtime::fifo(SERVER_FIFO), machine::realtime::exact_timers());
            DeviceServer::new(listeners, channels, cost, of_thread).run(&end);
        });
        Self { addresses, counts, over, thread: Some(thread) }
    }

    pub fn counts(&self) -> std::sync::MutexGuard<'_, ServerCounts> {
        self.counts.lock().expect("nobody panics with it")
    }
}

impl Drop for RunningServer {
    fn drop(&mut self) {
        self.over.store(true, SeqCst);
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

/// Listens with a backlog for many connections at once.
fn listen() -> std::io::Result<TcpListener> {
    use rustix::net::{AddressFamily, SocketFlags, SocketType, bind, listen, socket_with};
    let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
    let socket = socket_with(AddressFamily::INET, SocketType::STREAM, flags, None)?;
    bind(&socket, &SocketAddr::from(([127, 0, 0, 1], 0)))?;
    listen(&socket, 4096)?;
    Ok(TcpListener::from(socket))
}

impl ServedConnection {
    fn new(stream: TcpStream, serial: u64, speech: Box<dyn ServerSpeech>) -> Self {
        Self {
            stream,
            serial,
            speech,
            input: Vec::new(),
            output: Vec::new(),
            written: 0,
            is_reading: true,
            is_busy: false,
            behind: VecDeque::new(),
            callback_at: None,
            called_at: None,
        }
    }

    /// Writes as much as the socket accepts. Returns false if the connection has failed.
    fn write(&mut self) -> bool {
        while self.written < self.output.len() {
            match self.stream.write(&self.output[self.written..]) {
                Ok(0) => return false,
                Ok(count) => self.written += count,
                Err(error) if error.kind() == ErrorKind::WouldBlock => return true,
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(_) => return false,
            }
        }
        self.output.clear();
        self.written = 0;
        true
    }

    fn pending(&self) -> usize {
        self.output.len() - self.written
    }

    fn say(&mut self, reply: &ReplyBytes) {
        self.output.extend_from_slice(&reply.head);
        self.output.resize(self.output.len() + reply.filling, 7);
        self.output.extend_from_slice(&reply.tail);
    }

    fn flags(&self) -> epoll::EventFlags {
        let mut flags = epoll::EventFlags::empty();
        flags.set(epoll::EventFlags::IN, self.is_reading && self.pending() < OUTPUT_MAX);
        flags.set(epoll::EventFlags::OUT, self.pending() > 0);
        flags
    }
}

impl DeviceServer {
    fn new(
        listeners: Vec<TcpListener>,
        channels: usize,
        cost: ServiceCost,
        counts: Arc<Mutex<ServerCounts>>,
    ) -> Self {
        let epoll = epoll::create(epoll::CreateFlags::CLOEXEC).expect("the kernel has epoll");
        for (listener, at) in listeners.iter().zip(0..) {
            let data = epoll::EventData::new_u64(at);
            epoll::add(&epoll, listener, data, epoll::EventFlags::IN).expect("a listener can be watched");
        }
        Self {
            epoll,
            listeners,
            connections: Slab::new(),
            serials: 0,
            device: ChanneledDevice::new(channels),
            cost,
            jobs: HashMap::new(),
            next_job: 0,
            counts,
            begun: Instant::now(),
            piece: vec![0; READ_SIZE],
        }
    }

    fn now(&self) -> u64 {
        u64::try_from(self.begun.elapsed().as_nanos()).expect("less than centuries")
    }

    fn run(&mut self, over: &AtomicBool) {
        let mut events = Vec::with_capacity(256);
        while !over.load(SeqCst) {
            let idle = self.now() + 10_000_000;
            let callbacks = self.connections.iter().filter_map(|(_, connection)| connection.callback_at);
            let wake = self.device.wake_at().into_iter().chain(callbacks).fold(idle, u64::min);
            let wait = wake.saturating_sub(self.now());
            let timeout = Timespec { tv_sec: 0, tv_nsec: i64::try_from(wait).expect("milliseconds") };
            events.clear();
            let spare = rustix::buffer::spare_capacity(&mut events);
            let _ = epoll::wait(&self.epoll, spare, Some(&timeout));
            for event in &events {
                let token = event.data.u64();
                match token.checked_sub(LISTENERS) {
                    None => self.accept(usize::try_from(token).expect("few listeners")),
                    Some(slot) => self.on_event(usize::try_from(slot).expect("a slot"), event.flags),
                }
            }
            self.finish();
            self.call_back();
        }
    }

    fn accept(&mut self, at: usize) {
        while let Ok((stream, _)) = self.listeners[at].accept() {
            let _ = (stream.set_nonblocking(true), stream.set_nodelay(true));
            let speech: Box<dyn ServerSpeech> = match at {
                0 => Box::new(NbdSpeech::default()),
                1 => Box::new(MemcachedSpeech),
                _ => Box::new(NfsSpeech::default()),
            };
            self.serials += 1;
            let mut connection = ServedConnection::new(stream, self.serials, speech);
            if at == 0 {
                connection.output.extend(GREETING);
            }
            let entry = self.connections.vacant_entry();
            let slot = entry.key();
            let data = epoll::EventData::new_u64(slot as u64 + LISTENERS);
            epoll::add(&self.epoll, &connection.stream, data, epoll::EventFlags::IN).expect("it is new");
            entry.insert(connection);
            self.counts.lock().expect("nobody panics with it").connections += 1;
            self.settle(slot);
        }
    }

    fn on_event(&mut self, slot: usize, flags: epoll::EventFlags) {
        let Some(connection) = self.connections.get_mut(slot) else { return };
        let broken = epoll::EventFlags::ERR | epoll::EventFlags::HUP;
        if flags.intersects(epoll::EventFlags::IN | broken) && connection.is_reading {
            match connection.stream.read(&mut self.piece) {
                Ok(0) => connection.is_reading = false,
                Ok(count) => connection.input.extend_from_slice(&self.piece[..count]),
                Err(error) if error.kind() == ErrorKind::WouldBlock => {}
                Err(_) => return self.end(slot),
            }
            if !self.hear(slot) {
                return self.end(slot);
            }
        } else if flags.intersects(broken) {
            return self.end(slot);
        }
        self.settle(slot);
    }

    /// Writes pending output, and registers for the next events; drops a finished connection.
    fn settle(&mut self, slot: usize) {
        let connection = &mut self.connections[slot];
        if !connection.write() {
            return self.end(slot);
        }
        if !connection.is_busy
            && connection.pending() < OUTPUT_MAX
            && let Some(next) = connection.behind.pop_front()
        {
            self.begin(slot, next);
        }
        let connection = &mut self.connections[slot];
        let is_over = !connection.is_reading
            && !connection.is_busy
            && connection.pending() == 0
            && !self.jobs.values().any(|(of, serial, _)| (*of, *serial) == (slot, connection.serial));
        if is_over {
            return self.end(slot);
        }
        let data = epoll::EventData::new_u64(slot as u64 + LISTENERS);
        let _ = epoll::modify(&self.epoll, &connection.stream, data, connection.flags());
    }

    fn end(&mut self, slot: usize) {
        let connection = self.connections.remove(slot);
        // Requests that were not begun are no longer served.
        let mut counts = self.counts.lock().expect("nobody panics with it");
        for request in connection.behind {
            counts.serve(ServedRequest { tag: request.tag, end_ns: 0, cost_ns: 0 });
        }
    }

    /// Parses all requests received. Returns false if the connection must end.
    fn hear(&mut self, slot: usize) -> bool {
        let mut used = 0;
        loop {
            let connection = &mut self.connections[slot];
            let heard = connection.speech.hear(&connection.input[used..]);
            let count = match heard {
                Heard::Incomplete => break,
                Heard::Over => return false,
                Heard::Answer(count, said) => {
                    connection.output.extend(said);
                    count
                }
                Heard::CallbackWanted(count, said) => {
                    connection.output.extend(said);
                    connection.callback_at = Some(0);
                    count
                }
                Heard::CallbackAnswered(count) => {
                    self.on_callback_answered(slot);
                    count
                }
                Heard::Request(count, request) => {
                    self.on_request(slot, request);
                    count
                }
            };
            used += count;
        }
        self.connections[slot].input.drain(..used);
        true
    }

    fn on_request(&mut self, slot: usize, request: DeviceRequest) {
        self.counts.lock().expect("nobody panics with it").arrive(request.tag, request.place);
        let connection = &mut self.connections[slot];
        if connection.speech.is_serial() {
            connection.behind.push_back(request);
        } else {
            self.begin(slot, request);
        }
    }

    fn begin(&mut self, slot: usize, request: DeviceRequest) {
        let now = self.now();
        let connection = &mut self.connections[slot];
        connection.is_busy = connection.speech.is_serial();
        let takes = self.cost.of(request.accesses, request.bytes);
        self.device.arrive(now, self.next_job, takes);
        self.jobs.insert(self.next_job, (slot, connection.serial, request));
        self.next_job += 1;
    }

    /// Answers the requests that the device has served.
    fn finish(&mut self) {
        while let Some((job, end_ns)) = self.device.finish(self.now()) {
            let (slot, serial, request) = self.jobs.remove(&job).expect("it is at the device");
            let cost_ns = self.cost.of(request.accesses, request.bytes);
            let served = ServedRequest { tag: request.tag, end_ns, cost_ns };
            self.counts.lock().expect("nobody panics with it").serve(served);
            let Some(connection) = self.connections.get_mut(slot) else { continue };
            if connection.serial != serial {
                continue;
            }
            connection.say(&request.reply);
            connection.is_busy = false;
            self.settle(slot);
        }
    }

    fn on_callback_answered(&mut self, slot: usize) {
        let now = self.now();
        let connection = &mut self.connections[slot];
        if let Some(called_at) = connection.called_at.take() {
            self.counts.lock().expect("nobody panics with it").callbacks_ns.push(now - called_at);
            connection.callback_at = Some(now + CALLBACK_NS);
        }
    }

    fn call_back(&mut self) {
        let now = self.now();
        let due: Vec<usize> = (self.connections.iter())
            .filter(|(_, connection)| connection.callback_at.is_some_and(|at| at <= now))
            .map(|(slot, _)| slot)
            .collect();
        for slot in due {
            let connection = &mut self.connections[slot];
            (connection.callback_at, connection.called_at) = (None, Some(now));
            let call = connection.speech.callback();
            connection.output.extend(call);
            self.settle(slot);
        }
    }
}
