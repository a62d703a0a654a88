//! Programs on the host of an emulated device: the device, and a proxy in front of it.

use super::namespace_thread::{NamespaceThread, join, spawn_in};
use crate::device::SsdModel;
use crate::nbd::{ExportedVolume, NbdServer, NbdServerConfig};
use enforce::storage::{Proxy, ProxyHandle, ProxyOptions, ProxyReport};
use model::OperationError;
use std::net::{SocketAddr, TcpListener};
use std::sync::mpsc;
use units::Nanos;

/// The port of a device, and of the proxy before it.
pub(crate) const DEVICE_PORT: u16 = 10809;
/// The real-time priority of devices and other servers: above that of the load generator, so that it never makes them late.
pub(crate) const DEVICE_PRIORITY: u32 = 12;
const PROXY_PRIORITY: u32 = 11;
/// The size of each volume in bytes.
pub(crate) const VOLUME_SIZE: u64 = 64 << 20;
/// Time before a completion at which a device stops sleeping and polls.
const SPIN: Nanos = Nanos(20_000);
/// Time that a proxy gives requests to end when it is stopped.
const DRAIN: Nanos = Nanos(1_000_000_000);

/// Starts a device in a namespace, with a volume for each name, under SCHED_FIFO at the given priority if
/// any.
///
/// # Errors
/// If the address is taken, or the machine is out of files or threads; `what` names the device in the
/// message.
pub(crate) fn start_device(
    netns: &str,
    listen: SocketAddr,
    model: SsdModel,
    volumes: &[String],
    priority: Option<u32>,
    what: &str,
) -> Result<NbdServer, OperationError> {
    let exports = volumes.iter().map(|name| ExportedVolume { name: name.clone(), size: VOLUME_SIZE });
    let config = NbdServerConfig { model, exports: exports.collect(), spin: SPIN };
    let started = join(spawn_in(netns, priority, move || {
        let listener = TcpListener::bind(listen)?;
        // The thread of the device inherits namespace and priority of this one.
        NbdServer::start(listener, config, Box::new(|_| {}))
    }))?;
    started.map_err(|error| OperationError::machine(format_args!("{what}: {error}")).hint("see `ulimit -n`"))
}

/// A proxy that runs on a thread of its own.
pub(crate) struct RunningProxy {
    remote: ProxyHandle,
    thread: NamespaceThread<ProxyReport>,
}

impl RunningProxy {
    /// Starts a proxy in a namespace, under SCHED_FIFO if `realtime`. `None` when it ended without an error before it
    /// listened.
    ///
    /// # Errors
    /// When it cannot listen.
    pub(crate) fn start(
        netns: &str,
        options: ProxyOptions,
        realtime: bool,
    ) -> Result<Option<Self>, OperationError> {
        // It shares the CPUs with generator and device; polling would take time from the generator, which has the lowest
        // priority.
        let options = ProxyOptions { drain: DRAIN, busy_poll_max: Nanos::ZERO, ..options };
        let (send, bound) = mpsc::channel();
        let thread = spawn_in(netns, realtime.then_some(PROXY_PRIORITY), move || {
            let proxy = Proxy::bind(options)?;
            // The receiver is gone if the run has ended already.
            let _ = send.send(proxy.handle());
            proxy.run()
        });
        let thread = std::thread::spawn(move || join(thread).and_then(|served| served));
        match bound.recv() {
            Ok(remote) => Ok(Some(Self { remote, thread })),
            // The proxy ended before it listened, and its result says why.
            Err(_) => join(thread).map(|_| None),
        }
    }

    /// Stops the proxy and waits for its end.
    ///
    /// # Errors
    /// When it ended with an error.
    pub(crate) fn stop(self) -> Result<(), OperationError> {
        self.remote.stop();
        join(self.thread).map(drop)
    }
}
