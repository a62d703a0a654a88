//! The storage enforcer: a proxy before a storage server that queues every workload's requests, lets them go by
//! priority within their limits, and bounds what is at the device (thesis §2.2.1).
//!
//! [`Proxy::bind`] takes addresses as a hosts file has them, [`Proxy::run`] serves until a [`Remote`] ends it; the same
//! remote changes the policy while traffic flows. The order of requests is decided by
//! [`discipline::enforce::Enforcer`], the code that the simulator runs; here are sockets, bytes and clocks.
//!
//! The path: `engine` (events) → `session` (bytes ↔ requests, through crate `wire`) → `queue` → `session` → server.
//! `who` says whose a connection is, `rules` what a policy means in flows and device time, `status` what was seen.
//!
//! One thread and one connection to the server per client connection: a crash of the proxy is to clients a connection
//! that closes, and nothing is acknowledged that the server has not acknowledged.
//!
//! Not covered: UDP, TLS and Kerberos privacy (what cannot be read cannot be scheduled), clients of one address that
//! mount NFS exports of several workloads, and the work of metadata requests, which count as a small read.

mod buffer;
mod engine;
mod queue;
mod remote;
mod request;
mod rules;
mod session;
mod shared;
mod spin;
mod status;
mod who;

pub use queue::Baseline;
pub use remote::{Remote, Socket, apply, control_path, listen, status};
pub use status::{Seen, Snapshot, UNKNOWN_NAME};

use crate::deployment::Deployment;
use engine::{Door, Engine, Lines};
use model::{Observations, OperationError, Policy};
use queue::Queue;
use rules::{Enforced, Names};
use rustix::event::epoll;
use shared::Shared;
use spin::Spin;
use std::net::{SocketAddr, TcpListener};
use std::time::Instant;
use units::Nanos;
use workload::device::StorageProfile;

/// What a proxy is to do.
#[derive(Debug, Clone)]
pub struct Options {
    /// The policy's server that it stands before.
    pub server: String,
    /// Where servers and clients are.
    pub deployment: Deployment,
    /// What is enforced; without one everybody is best effort, in order of arrival.
    pub policy: Option<Policy>,
    /// Of the server's device.
    pub profile: StorageProfile,
    /// A discipline to compare with, in the place of the policy's priorities and limits.
    pub baseline: Option<Baseline>,
    /// Most connections of clients.
    pub connections_max: u64,
    /// How long to look for events before sleeping, while that finds some: shorter latency for CPU time. 0: never.
    pub spin: Nanos,
    /// How long requests may take after the proxy was told to drain.
    pub drain: Nanos,
    /// How many requests are kept for [`Report::observations`]; 72 bytes each.
    pub record: usize,
}

impl Options {
    /// The usual [`Self::spin`]: a few times what a wake-up takes.
    pub const SPIN: Nanos = Nanos(50_000);

    /// The usual: 1024 connections, looking for events for 50 µs, ten seconds to drain, nothing recorded.
    pub fn new(
        server: &str,
        deployment: Deployment,
        policy: Option<Policy>,
        profile: StorageProfile,
    ) -> Self {
        Self {
            server: server.to_owned(),
            deployment,
            policy,
            profile,
            baseline: None,
            connections_max: 1024,
            spin: Self::SPIN,
            drain: Nanos(10_000_000_000),
            record: 0,
        }
    }
}

/// What a proxy has to say in the end.
#[derive(Debug)]
pub struct Report {
    /// Counts.
    pub snapshot: Snapshot,
    /// Requests from their arrival at the proxy, with the stages `proxy` and `server`; as many as were to be kept.
    pub observations: Observations,
    /// Requests that were not kept because there were more.
    pub left_out: u64,
}

/// A proxy that listens and does not serve yet.
#[derive(Debug)]
pub struct Proxy {
    engine: Engine,
    remote: Remote,
}

impl Proxy {
    /// Takes the addresses of the server's fronts, in the network namespace of the calling thread.
    ///
    /// # Errors
    /// When the policy or the deployment is wrong, or an address cannot be had.
    pub fn bind(options: Options) -> Result<Self, OperationError> {
        let Options { server, deployment, policy, profile, baseline, .. } = options;
        let mut names = Names::default();
        let Enforced { rules, table, batch } =
            rules::enforced(policy.as_ref(), &deployment, &server, &profile, &mut names)?;
        let wrong = |fault: String| OperationError::input(fault).hint("docs/proxy.md says what is allowed");
        let queue = Queue::new(0, &rules, baseline.as_ref()).map_err(wrong)?;
        let doors = doors(&deployment, &server)?;
        let fault = |error: std::io::Error| {
            OperationError::machine(format_args!("epoll: {error}")).hint("raise the limit of open files")
        };
        let poll = epoll::create(epoll::CreateFlags::CLOEXEC).map_err(|error| fault(error.into()))?;
        let (remote, orders) = remote::channel()?;
        let mut shared = Shared::new(queue, names, table, batch, profile);
        shared.status.keep(options.record);
        let spare = engine::spare(&poll);
        // On a single CPU nothing happens while somebody looks for it.
        let is_alone = std::thread::available_parallelism().is_ok_and(|cpus| cpus.get() == 1);
        let engine = Engine {
            poll,
            doors,
            orders,
            shared,
            deployment,
            server,
            connections_max: options.connections_max,
            spin: Spin::new(if is_alone { 0 } else { options.spin.0 }),
            drain_ns: options.drain.0,
            begun: Instant::now(),
            sessions: Vec::new(),
            free: Vec::new(),
            uses: Vec::new(),
            touched: Vec::new(),
            draining: None,
            stopped: false,
            lines: Lines::default(),
            spare,
        };
        engine.watch().map_err(fault)?;
        Ok(Self { engine, remote })
    }

    /// To give it orders from other threads.
    pub fn remote(&self) -> Remote {
        self.remote.clone()
    }

    /// Where it listens.
    pub fn addresses(&self) -> Vec<SocketAddr> {
        self.engine.doors.iter().filter_map(|door| door.listener.local_addr().ok()).collect()
    }

    /// Serves on the calling thread until it is told to end.
    ///
    /// # Errors
    /// When events cannot be waited for.
    pub fn run(mut self) -> Result<Report, OperationError> {
        let fault = |error: std::io::Error| {
            OperationError::machine(format_args!("epoll: {error}"))
                .hint("this is a bug of the kernel or of the proxy")
        };
        // Limits are as exact as timers; where they cannot be made so, 50 µs later.
        let _ = machine::realtime::exact_timers();
        self.engine.run().map_err(fault)?;
        let snapshot = self.engine.snapshot();
        let Shared { status, names, .. } = &mut self.engine.shared;
        let (observations, left_out) = status.observations(names);
        Ok(Report { snapshot, observations, left_out })
    }
}

fn doors(deployment: &Deployment, server: &str) -> Result<Vec<Door>, OperationError> {
    let (_, storage) = rules::server(deployment, server)?;
    let mut doors = Vec::new();
    for front in &storage.front {
        let pairs = front
            .pairs()
            .map_err(|fault| OperationError::input(fault).hint("docs/proxy.md describes fronts"))?;
        for (listen, forward) in pairs {
            let fault = |error: std::io::Error| {
                let hint = "is something else listening there, and is the address this host's? Ports below 1024 take root";
                OperationError::machine(format_args!("{listen}: {error}")).hint(hint)
            };
            let listener = TcpListener::bind(listen).map_err(fault)?;
            listener.set_nonblocking(true).map_err(fault)?;
            doors.push(Door { protocol: front.protocol, listener, forward });
        }
    }
    Ok(doors)
}
