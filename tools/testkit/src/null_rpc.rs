//! A null RPC server: threads that send back what they receive, as in *Tales of the Tail*, section 3.1.1.

use rustix::buffer::spare_capacity;
use rustix::event::epoll::{self, CreateFlags, EventData, EventFlags};
use std::collections::BTreeMap;
use std::io::{self, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::os::fd::AsRawFd;
use std::sync::mpsc::{self, Receiver, Sender};
use std::time::{Duration, Instant};

/// Parameters of a null RPC server.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct NullRpcServer {
    /// Number of threads that share the connections, each of which belongs to one of them; `None` gives
    /// every connection a thread of its own, as the paper does.
    pub threads: Option<usize>,
    /// Time for which a thread computes for each piece that it reads.
    pub work: Duration,
    /// Maximum number of bytes of a read: with the size of a request, each request is a piece of its own.
    pub read_bytes: usize,
}

impl NullRpcServer {
    /// Serves the connections of a listener.
    ///
    /// # Errors
    /// When a connection cannot be accepted.
    pub fn serve(self, listener: &TcpListener) -> io::Result<()> {
        let workers: Vec<Sender<TcpStream>> =
            (0..self.threads.unwrap_or(0)).map(|_| start_worker(self)).collect();
        for (number, stream) in listener.incoming().enumerate() {
            let stream = stream?;
            stream.set_nodelay(true)?;
            match workers.get(number % workers.len().max(1)) {
                Some(worker) => worker.send(stream).map_err(io::Error::other)?,
                None => drop(std::thread::spawn(move || serve_one(stream, self))),
            }
        }
        Ok(())
    }
}

/// A thread that serves the connections that it is sent.
fn start_worker(server: NullRpcServer) -> Sender<TcpStream> {
    let (sender, connections) = mpsc::channel();
    std::thread::spawn(move || serve_many(&connections, server));
    sender
}

/// Serves a connection until it ends.
fn serve_one(mut stream: TcpStream, server: NullRpcServer) {
    let mut buffer = vec![0; server.read_bytes];
    while let Ok(count @ 1..) = stream.read(&mut buffer) {
        compute(server.work);
        if stream.write_all(&buffer[..count]).is_err() {
            return;
        }
    }
}

/// Serves all connections that this thread is given. It looks for new ones whenever it has waited for a while.
fn serve_many(new: &Receiver<TcpStream>, server: NullRpcServer) {
    let epoll = epoll::create(CreateFlags::CLOEXEC).expect("the kernel has epoll");
    let mut streams: BTreeMap<u64, TcpStream> = BTreeMap::new();
    let mut events = Vec::with_capacity(64);
    let mut buffer = vec![0; server.read_bytes];
    let patience = rustix::event::Timespec { tv_sec: 0, tv_nsec: 1_000_000 };
    loop {
        for stream in new.try_iter() {
            let id = u64::try_from(stream.as_raw_fd()).expect("descriptors are not negative");
            epoll::add(&epoll, &stream, EventData::new_u64(id), EventFlags::IN)
                .expect("it is not watched yet");
            streams.insert(id, stream);
        }
        if epoll::wait(&epoll, spare_capacity(&mut events), Some(&patience)).is_err() {
            continue;
        }
        for event in events.drain(..) {
            let id = event.data.u64();
            let Some(stream) = streams.get_mut(&id) else { continue };
            let is_open = match stream.read(&mut buffer) {
                Ok(count @ 1..) => {
                    compute(server.work);
                    stream.write_all(&buffer[..count]).is_ok()
                }
                _ => false,
            };
            if !is_open {
                streams.remove(&id);
            }
        }
    }
}

/// Keeps the CPU busy.
fn compute(work: Duration) {
    let start = Instant::now();
    while start.elapsed() < work {
        std::hint::spin_loop();
    }
}
