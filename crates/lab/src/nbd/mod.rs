//! An NBD server that answers each request at the instant that an emulated SSD ([`crate::device`]) says.
//!
//! It holds real bytes, in memory, so that whoever uses it can check what it reads; a write takes effect when it is
//! answered, and is what any later request on any connection reads. One thread serves all connections: the device
//! is one queue, and threads would add waits that are none of its own. It sleeps until the next completion with a
//! kernel timer of nanoseconds, and may spin for the last microseconds, since waking takes some.
//!
//! A completion that is answered late makes no later one late: the device's channels go on as the model says. What the
//! model does not have is the way of a request to the server and of the reply back, some 10 to 50 µs.
//!
//! TRIM and WRITE_ZEROES take as long as a write without bytes; FLUSH takes no time. Not covered: structured replies
//! (refused, as the protocol allows), TLS, persistence.

mod connection;
mod serve;
mod store;
mod talk;

pub use talk::Export;

use crate::device::Model;
use rustix::event::{EventfdFlags, eventfd};
use serve::Loop;
use std::io;
use std::net::{SocketAddr, TcpListener};
use std::os::fd::OwnedFd;
use std::thread::JoinHandle;
use units::Nanos;

/// Says what happened: a connection that was given up, and why.
pub type Log = Box<dyn FnMut(&str) + Send>;

/// What to serve.
#[derive(Debug, Clone, PartialEq)]
pub struct Config {
    /// How long requests take.
    pub model: Model,
    /// At least one, names differ.
    pub exports: Vec<Export>,
    /// How long before a completion to stop sleeping; at most a millisecond is worth anything.
    pub spin: Nanos,
}

/// A server on a thread of its own, until it is dropped.
#[derive(Debug)]
pub struct Server {
    address: SocketAddr,
    stop: OwnedFd,
    thread: Option<JoinHandle<io::Result<()>>>,
}

impl Server {
    /// Serves on a listener, which may belong to any network namespace.
    ///
    /// # Errors
    /// When the system has no descriptors or threads left.
    ///
    /// # Panics
    /// Without exports, or with one twice.
    pub fn start(listener: TcpListener, config: Config, log: Log) -> io::Result<Self> {
        assert!(!config.exports.is_empty(), "a server has an export");
        for (at, export) in config.exports.iter().enumerate() {
            let before = &config.exports[..at];
            assert!(
                before.iter().all(|other| other.name != export.name),
                "export {} is there twice",
                export.name
            );
            assert!(
                export.size <= 1 << 62 && export.name.len() <= 4096,
                "export {} has its limits",
                export.name
            );
        }
        let address = listener.local_addr()?;
        let stop = eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK)?;
        let serving = Loop::new(listener, stop.try_clone()?, config, log)?;
        let thread = std::thread::Builder::new().name("device".into()).spawn(move || serving.run())?;
        Ok(Self { address, stop, thread: Some(thread) })
    }

    /// Where it listens.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Waits for its end, which is an error unless it was stopped.
    ///
    /// # Errors
    /// What the system would not do any more.
    pub fn wait(mut self) -> io::Result<()> {
        match self.thread.take().map(JoinHandle::join) {
            Some(Ok(result)) => result,
            Some(Err(panic)) => std::panic::resume_unwind(panic),
            None => Ok(()),
        }
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        // The counter of a fresh eventfd takes a one.
        let _ = rustix::io::write(&self.stop, &1u64.to_ne_bytes());
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}
