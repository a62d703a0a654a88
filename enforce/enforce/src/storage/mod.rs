//! The storage enforcer: a proxy before a storage server that queues every workload's requests,
//! dispatches them by priority within their limits, and bounds the requests outstanding at the device
//! (thesis §2.2.1).
//!
//! [`Proxy::bind`] binds the addresses of a hosts file, and [`Proxy::run`] serves until a [`ProxyHandle`]
//! ends it; the same handle changes the policy while traffic flows. [`discipline::enforce::Enforcer`]
//! decides the order of requests, the same code as in the simulator; this module adds sockets, bytes and
//! clocks.
//!
//! Path of a request: `engine` (events) → `session` (bytes ↔ requests, through crate `wire`) → `queue` →
//! `session` → server. `client_identity` and `exports` determine the workload of a request, `rules`
//! translates a policy into flows and device time, `cost` determines the charge, and `statistics` counts.
//!
//! Engine and sessions are a state machine over a [`System`]: `linux` is the real one, and tests simulate
//! others.
//!
//! One thread serves all connections. A client has a connection to the server of its own, or shares some
//! (`engine::shared_connections`). To clients, a crash of the proxy is a closed connection, and nothing is acknowledged that the server has
//! not acknowledged.
//!
//! Not covered: UDP, TLS and Kerberos privacy (unreadable requests cannot be scheduled), and the work of
//! metadata requests, which count as a small read.

mod address_table;
mod allowed_clients;
mod buffer;
mod busy_poll;
mod client_identity;
mod configurator;
mod connector;
mod control;
#[cfg(test)]
mod control_bounds;
mod control_socket;
mod cost;
mod descriptors;
mod device_conditions;
mod engine;
mod event_log;
mod event_token;
mod export_probe;
mod exports;
mod flows;
mod linux;
mod listener;
mod options;
mod overdue;
mod places;
mod policy_memory;
mod proxy_header;
mod queue;
mod recording;
mod redirection;
mod request;
mod reserved_ports;
mod round_work;
mod rules;
mod session;
mod shared;
mod shared_pool;
mod statistics;
mod system;
mod warnings;
mod watched_stream;

pub use configurator::{ConfiguredPolicy, PolicyOrigin, ProxyConfigurator};
pub use control::ProxyHandle;
pub use control_socket::{
    ControlSocket, ProxyCheck, ProxyStatus, control_path, is_listening, listen_for_control, query_status,
    send_policy,
};
pub(crate) use control_socket::{check_policy, restore_policy};
pub use descriptors::raise_open_files;
pub(crate) use device_conditions::storage_conditions;
pub use engine::ProxyEngine;
pub use flows::UNKNOWN_WORKLOAD;
pub use options::ProxyOptions;
pub use policy_memory::PolicyMemory;
pub use queue::{BaselineQueue, BaselineRequest};
pub use recording::ProxiedRequest;
pub use redirection::Redirection;
pub use statistics::{ProxiedWorkload, ProxyMetrics, ProxySnapshot, WorkloadTimes};
pub use system::{ProxyStream, StreamInterest, StreamRole, StreamToken, System, SystemEvent};

use crate::deployment::Deployment;
use control::{CommandReceiver, ControlCommand};
use export_probe::ProbedServer;
use linux::LinuxSystem;
use listener::FrontListener;
use model::{Observations, OperationError};
use std::collections::BTreeSet;
use std::net::SocketAddr;

/// Final counters and records of a proxy.
#[derive(Debug)]
pub struct ProxyReport {
    /// The counters at the end.
    pub snapshot: ProxySnapshot,
    /// The recorded requests from their arrival at the proxy, with the stages `proxy` and `server`.
    pub observations: Observations,
    /// Number of requests not recorded because there were more than [`ProxyOptions::record`].
    pub left_out: u64,
    /// Number of requests that [`ProxyOptions::recording`] did not accept.
    pub unrecorded: u64,
}

/// A proxy that listens but does not serve yet.
#[derive(Debug)]
pub struct Proxy {
    engine: ProxyEngine<LinuxSystem>,
    commands: CommandReceiver,
    handle: ProxyHandle,
    addresses: Vec<SocketAddr>,
    /// Capabilities that connections to the server require.
    capabilities: BTreeSet<&'static str>,
    /// Servers that answer MOUNT calls: behind the NFS fronts.
    nfs_servers: Vec<ProbedServer>,
}

impl Proxy {
    /// Listens at the server's fronts, in the network namespace of the calling thread.
    ///
    /// # Errors
    /// When the policy or the deployment is invalid, or an address cannot be bound.
    #[expect(clippy::needless_pass_by_value, reason = "options are made for one proxy")]
    pub fn bind(options: ProxyOptions) -> Result<Self, OperationError> {
        let (handle, commands, waker) = control::channel()?;
        let listeners = FrontListener::bind_all(&options.deployment, &options.server)?;
        let fronts = listeners.iter().map(|front| front.protocol).collect();
        let nfs_servers = export_probe::nfs_servers(&listeners);
        let capabilities =
            listeners.iter().flat_map(|front| front.connector.capabilities()).copied().collect();
        let system = LinuxSystem::new(listeners, waker, options.busy_poll_max.0).map_err(|error| {
            OperationError::machine(format_args!("epoll: {error}")).hint("raise the limit of open files")
        })?;
        let addresses = system.addresses();
        let engine = ProxyEngine::new(system, fronts, &options)?;
        Ok(Self { engine, commands, handle, addresses, capabilities, nfs_servers })
    }

    /// Returns a handle for other threads to control the proxy.
    pub fn handle(&self) -> ProxyHandle {
        self.handle.clone()
    }

    /// Returns the listening addresses of the proxy.
    pub fn addresses(&self) -> Vec<SocketAddr> {
        self.addresses.clone()
    }

    /// Returns the instant from which the times of recorded requests count, in nanoseconds since 1970.
    pub fn started_at(&mut self) -> u64 {
        let running = System::now(self.engine.system());
        machine::clock::real_time().saturating_sub(running)
    }

    /// Returns the capabilities that the process needs while it runs, by the `source` of the fronts.
    pub fn capabilities(&self) -> &BTreeSet<&'static str> {
        &self.capabilities
    }

    /// Serves on the calling thread until a handle ends the proxy.
    ///
    /// # Errors
    /// When the kernel does not deliver events.
    pub fn run(mut self) -> Result<ProxyReport, OperationError> {
        // Limits are as precise as timers. Without exact timers a request is dispatched up to 50 µs late.
        let _ = machine::realtime::exact_timers();
        self.warn();
        self.ask_for_exports();
        while !self.engine.is_stopped() {
            let has_orders = self.engine.round().map_err(|error| {
                OperationError::machine(format_args!("epoll: {error}"))
                    .hint("this is a bug of the kernel or of the proxy")
            })?;
            if has_orders {
                self.handle_commands();
            }
            #[cfg(debug_assertions)]
            self.engine.check_invariants_now_and_then();
        }
        let snapshot = self.engine.snapshot();
        let (observations, left_out) = self.engine.take_observations();
        let unrecorded = self.engine.unrecorded();
        Ok(ProxyReport { snapshot, observations, left_out, unrecorded })
    }

    /// Handles all pending commands.
    fn handle_commands(&mut self) {
        while let Some(command) = self.commands.next_command() {
            match command {
                // The requester may have given up, so a failure to reply is ignored.
                ControlCommand::Configure(policy, deployment, reply) => {
                    let deployment = deployment.map(|deployment: Box<Deployment>| *deployment);
                    let outcome = self.engine.configure(policy.as_deref(), deployment);
                    if matches!(outcome, Ok(true)) {
                        self.warn();
                        self.ask_for_exports();
                    }
                    let _ = reply.send(outcome);
                }
                ControlCommand::Status(reply) => {
                    let _ = reply.send(self.engine.snapshot());
                }
                ControlCommand::Metrics(reply) => {
                    let _ = reply.send(self.engine.metrics());
                }
                ControlCommand::LearnExport(mount) => self.engine.learn_export(&mount.path, &mount.root),
                ControlCommand::Drain => self.engine.drain(),
                ControlCommand::Stop => self.engine.stop(),
            }
        }
    }

    /// Prints the deployment's warnings on stderr.
    fn warn(&self) {
        self.engine.warnings().iter().for_each(|warning| eprintln!("proxy: warning: {warning}"));
    }

    /// Queries the server for the handles of the NFS exports that the deployment names, on a separate
    /// thread.
    fn ask_for_exports(&self) {
        let exports = self.engine.named_exports();
        if !exports.is_empty() && !self.nfs_servers.is_empty() {
            export_probe::ask(self.nfs_servers.clone(), exports, self.handle.clone());
        }
    }
}
