//! Small servers of the three protocols on threads of this process. They store data, and misbehave on
//! request.

#![allow(dead_code, unreachable_pub, reason = "several test programs use parts of it")]

mod memcached;
mod nbd;
mod nfs;

use std::collections::BTreeMap;
use std::io::{self, Read};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::SeqCst};
use std::sync::{Arc, Condvar, Mutex};
use std::time::Duration;

/// State shared by all connections of a server.
#[derive(Default)]
pub struct Store {
    /// Values by key, file or (under "") of the volume.
    pub values: Mutex<BTreeMap<Vec<u8>, Vec<u8>>>,
    /// Number of requests received.
    pub seen: AtomicU64,
    /// One of this many reads has a wrong byte; one of that many writes is dropped. 0: never.
    pub wrong_read: AtomicU64,
    pub dropped_write: AtomicU64,
    reads: AtomicU64,
    writes: AtomicU64,
    open: Mutex<bool>,
    opened: Condvar,
    stop: AtomicBool,
}

impl Store {
    fn lies(turn: &AtomicU64, every: &AtomicU64) -> bool {
        let every = every.load(SeqCst);
        every > 0 && (turn.fetch_add(1, SeqCst) + 1).is_multiple_of(every)
    }

    /// Returns the data of a read, sometimes with a wrong byte.
    fn read(&self, mut data: Vec<u8>) -> Vec<u8> {
        if Self::lies(&self.reads, &self.wrong_read)
            && let Some(byte) = data.last_mut()
        {
            *byte ^= 1;
        }
        data
    }

    fn drops_write(&self) -> bool {
        Self::lies(&self.writes, &self.dropped_write)
    }

    /// Returns bytes of a volume or file, with zeroes beyond its end.
    fn slice(&self, name: &[u8], offset: usize, len: usize) -> Vec<u8> {
        let values = self.values.lock().unwrap();
        let whole = values.get(name).map_or(&[][..], Vec::as_slice);
        let mut data: Vec<u8> = whole.iter().skip(offset).take(len).copied().collect();
        data.resize(len, 0);
        self.read(data)
    }

    fn put(&self, name: &[u8], offset: usize, data: &[u8]) {
        if self.drops_write() {
            return;
        }
        let mut values = self.values.lock().unwrap();
        let whole = values.entry(name.to_vec()).or_default();
        whole.resize(whole.len().max(offset + data.len()), 0);
        whole[offset..offset + data.len()].copy_from_slice(data);
    }

    /// Answers the held requests, and later ones at once.
    pub fn open(&self) {
        *self.open.lock().unwrap() = true;
        self.opened.notify_all();
    }

    fn hold(&self) {
        let mut open = self.open.lock().unwrap();
        while !*open {
            open = self.opened.wait(open).unwrap();
        }
    }

    /// Waits until this many requests have come.
    pub fn await_seen(&self, count: u64) {
        let what = format!("{count} requests at the server");
        testkit::wait_until(Duration::from_secs(60), &what, || self.seen.load(SeqCst) >= count);
    }
}

/// A server.
pub struct Mini {
    pub address: SocketAddr,
    pub store: Arc<Store>,
}

type Serve = fn(&mut TcpStream, &Store) -> io::Result<()>;

impl Mini {
    fn start(serve: Serve) -> Self {
        Self::start_on(TcpListener::bind("127.0.0.1:0").expect("a free port"), serve)
    }

    fn start_on(listener: TcpListener, serve: Serve) -> Self {
        let address = listener.local_addr().unwrap();
        let store = Arc::new(Store::default());
        let shared = store.clone();
        std::thread::spawn(move || {
            for stream in listener.incoming() {
                if shared.stop.load(SeqCst) {
                    return;
                }
                let (Ok(mut stream), store) = (stream, shared.clone()) else { continue };
                let _ = stream.set_nodelay(true);
                std::thread::spawn(move || serve(&mut stream, &store));
            }
        });
        Self { address, store }
    }

    pub fn memcached() -> Self {
        Self::start(memcached::serve)
    }

    pub fn memcached_at(address: SocketAddr) -> Self {
        Self::start_on(TcpListener::bind(address).expect("the port is free"), memcached::serve)
    }

    pub fn nbd() -> Self {
        Self::start(nbd::serve)
    }

    pub fn nfs() -> Self {
        Self::start(nfs::serve)
    }
}

impl Drop for Mini {
    fn drop(&mut self) {
        self.store.stop.store(true, SeqCst);
        self.store.open();
        drop(TcpStream::connect(self.address));
    }
}

fn take(stream: &mut impl Read, count: usize) -> io::Result<Vec<u8>> {
    let mut bytes = vec![0; count];
    stream.read_exact(&mut bytes)?;
    Ok(bytes)
}

fn word(bytes: &[u8], at: usize) -> usize {
    u32::from_be_bytes(bytes[at..at + 4].try_into().unwrap()) as usize
}

fn long(bytes: &[u8], at: usize) -> usize {
    usize::try_from(u64::from_be_bytes(bytes[at..at + 8].try_into().unwrap())).unwrap()
}
