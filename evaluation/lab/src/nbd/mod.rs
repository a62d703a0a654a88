//! An NBD server that answers each request at the instant that an emulated SSD ([`crate::device`]) says.
//!
//! It holds real bytes in memory, so that its users can check what they read. A write takes effect when it is answered,
//! and any later request on any connection reads it. One thread serves all connections, because the device is one
//! queue and threads would add waits of their own. It sleeps until the next completion with a kernel timer of
//! nanosecond resolution, and may spin for the last microseconds, since waking up takes some.
//!
//! A completion that is answered late delays no later one: the device's channels continue as modelled.
//! The model omits the path of a request to the server and of the reply back, some 10 to 50 µs.
//!
//! TRIM and WRITE_ZEROES take as long as a write without bytes; FLUSH takes no time. Not covered: structured replies
//! (refused, as the protocol allows), TLS, and persistence.

mod command;
mod config;
mod connection;
mod event_loop;
mod handshake;
mod sparse_volume;

pub use config::{ConnectionLog, ExportedVolume, NbdServerConfig};

use event_loop::DeviceEventLoop;
use rustix::event::{EventfdFlags, eventfd};
use std::io;
use std::net::{SocketAddr, TcpListener};
use std::os::fd::OwnedFd;
use std::thread::JoinHandle;

/// A server on a thread of its own, which ends when this is dropped.
#[derive(Debug)]
pub struct NbdServer {
    address: SocketAddr,
    stop: OwnedFd,
    thread: Option<JoinHandle<io::Result<()>>>,
}

impl NbdServer {
    /// Serves on a listener, which may belong to any network namespace.
    ///
    /// # Errors
    /// When the system has no descriptors or threads left.
    ///
    /// # Panics
    /// When there is no export, two have the same name, or one exceeds its limits.
    pub fn start(listener: TcpListener, config: NbdServerConfig, log: ConnectionLog) -> io::Result<Self> {
        config.check();
        let address = listener.local_addr()?;
        let stop = eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK)?;
        let event_loop = DeviceEventLoop::new(listener, stop.try_clone()?, config, log)?;
        let thread = std::thread::Builder::new().name("device".into()).spawn(move || event_loop.run())?;
        Ok(Self { address, stop, thread: Some(thread) })
    }

    /// The address on which it listens.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Waits until the server ends, which it does only after an error.
    ///
    /// # Errors
    /// The operation that the system refused.
    pub fn wait(mut self) -> io::Result<()> {
        match self.thread.take().map(JoinHandle::join) {
            Some(Ok(result)) => result,
            Some(Err(panic)) => std::panic::resume_unwind(panic),
            None => Ok(()),
        }
    }
}

impl Drop for NbdServer {
    fn drop(&mut self) {
        // This is the only write, so the counter of the eventfd cannot overflow and the write cannot fail.
        let _ = rustix::io::write(&self.stop, &1u64.to_ne_bytes());
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}
