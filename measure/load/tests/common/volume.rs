//! An NBD server in this process: a volume in memory, one request at a time, and faults on demand.

use std::io::{self, Read, Write};
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};
use wire::nbd::protocol::{
    CMD_READ, CMD_WRITE, FLAG_CAN_MULTI_CONN, FLAG_HAS_FLAGS, INFO_EXPORT, OPT_GO, OPTION_REPLY_MAGIC,
    REP_ACK, REP_INFO, REQUEST_HEADER_LEN, SIMPLE_REPLY_MAGIC,
};

/// The delays and faults of a volume. Requests are counted from 0 over all connections.
#[derive(Debug, Clone, Copy, Default)]
pub struct Faults {
    /// The service time of each request.
    pub service_time: Duration,
    /// A request that has this service time instead.
    pub stalled: Option<(u64, Duration)>,
    /// Delay before the server reads the first request of a connection.
    pub first_read_delay: Duration,
    /// The first read from this request on is answered with one bit changed in this byte.
    pub corrupted: Option<(u64, usize)>,
    /// Each time that this many requests arrived, the connection of the last one is closed instead of answered.
    pub closes_every: Option<u64>,
    /// The request that is answered with an error.
    pub refused: Option<u64>,
    /// The request from which on nothing is answered.
    pub silent_from: Option<u64>,
}

struct Shared {
    faults: Faults,
    data: Mutex<Vec<u8>>,
    count: AtomicU64,
    corrupted: AtomicBool,
    stopped: AtomicBool,
    open: Mutex<Vec<TcpStream>>,
}

/// A server that is stopped when this value is dropped.
pub struct Volume {
    pub address: SocketAddr,
    shared: Arc<Shared>,
    thread: Option<JoinHandle<()>>,
}

impl Volume {
    pub fn start(size: usize, faults: Faults) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        let shared = Arc::new(Shared {
            faults,
            data: Mutex::new(vec![0; size]),
            count: AtomicU64::new(0),
            corrupted: AtomicBool::new(false),
            stopped: AtomicBool::new(false),
            open: Mutex::new(Vec::new()),
        });
        let owned = shared.clone();
        let thread = std::thread::spawn(move || {
            for stream in listener.incoming() {
                if owned.stopped.load(Ordering::SeqCst) {
                    return;
                }
                let stream = stream.unwrap();
                let shared = owned.clone();
                owned.open.lock().unwrap().push(stream.try_clone().unwrap());
                std::thread::spawn(move || {
                    let _ = serve(&stream, &shared);
                    let _ = stream.shutdown(Shutdown::Both);
                });
            }
        });
        Self { address, shared, thread: Some(thread) }
    }

    /// The number of requests that arrived.
    pub fn count(&self) -> u64 {
        self.shared.count.load(Ordering::SeqCst)
    }
}

impl Drop for Volume {
    fn drop(&mut self) {
        self.shared.stopped.store(true, Ordering::SeqCst);
        for stream in self.shared.open.lock().unwrap().iter() {
            let _ = stream.shutdown(Shutdown::Both);
        }
        drop(TcpStream::connect(self.address));
        self.thread.take().expect("dropped once").join().unwrap();
    }
}

fn serve(mut stream: &TcpStream, shared: &Shared) -> io::Result<()> {
    stream.set_nodelay(true)?;
    negotiate(stream, shared.data.lock().unwrap().len() as u64)?;
    let faults = shared.faults;
    occupy_until(Instant::now() + faults.first_read_delay);
    loop {
        let mut head = [0; REQUEST_HEADER_LEN];
        stream.read_exact(&mut head)?;
        let arrived = Instant::now();
        let word = |at: usize| u32::from_be_bytes(head[at..at + 4].try_into().unwrap());
        let kind = u16::from_be_bytes([head[6], head[7]]);
        let len = word(24) as usize;
        let offset = usize::try_from(u64::from(word(16)) << 32 | u64::from(word(20))).unwrap();
        let mut data = vec![0; len];
        if kind == CMD_WRITE {
            stream.read_exact(&mut data)?;
        }
        let count = shared.count.fetch_add(1, Ordering::SeqCst);
        if faults.closes_every.is_some_and(|every| count % every == every - 1) {
            return Ok(());
        }
        if faults.silent_from.is_some_and(|from| count >= from) {
            continue;
        }
        let stall = faults.stalled.filter(|(which, _)| *which == count);
        occupy_until(arrived + stall.map_or(faults.service_time, |(_, long)| long));
        let refused = faults.refused == Some(count);
        let mut reply =
            [&SIMPLE_REPLY_MAGIC.to_be_bytes()[..], &u32::from(refused).to_be_bytes(), &head[8..16]].concat();
        let mut stored = shared.data.lock().unwrap();
        match kind {
            _ if refused => {}
            CMD_READ => reply.extend(&stored[offset..offset + len]),
            CMD_WRITE => stored[offset..offset + len].copy_from_slice(&data),
            _ => return Ok(()),
        }
        drop(stored);
        if kind == CMD_READ
            && let Some((_, byte)) = faults.corrupted.filter(|(from, _)| count >= *from)
            && !shared.corrupted.swap(true, Ordering::SeqCst)
        {
            reply[16 + byte] ^= 1;
        }
        stream.write_all(&reply)?;
    }
}

/// Takes its time until `instant`, as a busy server does. A sleep alone is too coarse for service times of microseconds, so
/// that the last millisecond is spun.
fn occupy_until(instant: Instant) {
    let left = instant.saturating_duration_since(Instant::now());
    std::thread::sleep(left.saturating_sub(Duration::from_millis(1)));
    while Instant::now() < instant {
        std::hint::spin_loop();
    }
}

/// The handshake: expects OPT_GO as the first option, and grants any export.
fn negotiate(mut stream: &TcpStream, size: u64) -> io::Result<()> {
    stream.write_all(b"NBDMAGICIHAVEOPT\x00\x03")?;
    let mut head = [0; 20];
    stream.read_exact(&mut head)?;
    let mut data = vec![0; u32::from_be_bytes(head[16..20].try_into().unwrap()) as usize];
    stream.read_exact(&mut data)?;
    let reply = |kind: u32, data: &[u8]| {
        let len = u32::try_from(data.len()).unwrap().to_be_bytes();
        [&OPTION_REPLY_MAGIC.to_be_bytes()[..], &OPT_GO.to_be_bytes(), &kind.to_be_bytes(), &len, data]
            .concat()
    };
    let flags = FLAG_HAS_FLAGS | FLAG_CAN_MULTI_CONN;
    let info = [&INFO_EXPORT.to_be_bytes()[..], &size.to_be_bytes(), &flags.to_be_bytes()].concat();
    stream.write_all(&[reply(REP_INFO, &info), reply(REP_ACK, &[])].concat())
}
