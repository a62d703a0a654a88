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

/// What a volume does beside what it should.
#[derive(Debug, Clone, Copy, Default)]
pub struct Manners {
    /// Each request takes so long.
    pub service: Duration,
    /// This request, counted from 0 over all connections, takes so long instead.
    pub stall: Option<(u64, Duration)>,
    /// Before the first request of each connection is read, so long passes.
    pub deaf: Duration,
    /// The first read from this one on is answered with one bit changed in this byte.
    pub corrupt: Option<(u64, usize)>,
    /// The connection that brings a multiple of this one is closed instead of answered.
    pub hang_up: Option<u64>,
    /// This one is answered with an error.
    pub refuse: Option<u64>,
    /// From this one on nothing is answered.
    pub silent: Option<u64>,
}

struct Shared {
    manners: Manners,
    data: Mutex<Vec<u8>>,
    count: AtomicU64,
    corrupted: AtomicBool,
    stopped: AtomicBool,
    open: Mutex<Vec<TcpStream>>,
}

/// A server that ends with this value.
pub struct Volume {
    pub address: SocketAddr,
    shared: Arc<Shared>,
    thread: Option<JoinHandle<()>>,
}

impl Volume {
    pub fn start(size: usize, manners: Manners) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        let shared = Arc::new(Shared {
            manners,
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
                let (stream, shared) = (stream.unwrap(), owned.clone());
                owned.open.lock().unwrap().push(stream.try_clone().unwrap());
                std::thread::spawn(move || {
                    let _ = serve(&stream, &shared);
                    let _ = stream.shutdown(Shutdown::Both);
                });
            }
        });
        Self { address, shared, thread: Some(thread) }
    }

    /// Requests that came.
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
    shake(stream, shared.data.lock().unwrap().len() as u64)?;
    let manners = shared.manners;
    wait_until(Instant::now() + manners.deaf);
    loop {
        let mut head = [0; REQUEST_HEADER_LEN];
        stream.read_exact(&mut head)?;
        let came = Instant::now();
        let word = |at: usize| u32::from_be_bytes(head[at..at + 4].try_into().unwrap());
        let (kind, len) = (u16::from_be_bytes([head[6], head[7]]), word(24) as usize);
        let offset = usize::try_from(u64::from(word(16)) << 32 | u64::from(word(20))).unwrap();
        let mut data = vec![0; len];
        if kind == CMD_WRITE {
            stream.read_exact(&mut data)?;
        }
        let count = shared.count.fetch_add(1, Ordering::SeqCst);
        if manners.hang_up.is_some_and(|every| count % every == every - 1) {
            return Ok(());
        }
        if manners.silent.is_some_and(|from| count >= from) {
            continue;
        }
        let stall = manners.stall.filter(|(which, _)| *which == count);
        wait_until(came + stall.map_or(manners.service, |(_, long)| long));
        let refused = manners.refuse == Some(count);
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
            && let Some((_, byte)) = manners.corrupt.filter(|(from, _)| count >= *from)
            && !shared.corrupted.swap(true, Ordering::SeqCst)
        {
            reply[16 + byte] ^= 1;
        }
        stream.write_all(&reply)?;
    }
}

/// Exactly as long as told: sleeping is too coarse for what takes microseconds.
fn wait_until(instant: Instant) {
    let left = instant.saturating_duration_since(Instant::now());
    std::thread::sleep(left.saturating_sub(Duration::from_millis(1)));
    while Instant::now() < instant {
        std::hint::spin_loop();
    }
}

/// Grants whatever export is asked for by OPT_GO, which comes first.
fn shake(mut stream: &TcpStream, size: u64) -> io::Result<()> {
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
