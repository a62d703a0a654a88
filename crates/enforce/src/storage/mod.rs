//! The storage enforcer: a proxy before a storage server that queues every workload's requests, dispatches them by
//! priority within their limits, and bounds what is outstanding at the device (thesis §2.2.1).
//!
//! [`Proxy::bind`] takes the addresses of a hosts file, [`Proxy::run`] serves until a [`ProxyHandle`] ends it; the same
//! handle changes the policy while traffic flows. The order of requests is decided by
//! [`discipline::enforce::Enforcer`], the code that the simulator runs; here are sockets, bytes and clocks.
//!
//! The path of a request: `engine` (events) → `session` (bytes ↔ requests, through crate `wire`) → `queue` → `session` →
//! server. `client_identity` says which workload a connection belongs to, `rules` what a policy means in flows and
//! device time, and `statistics` counts.
//!
//! One thread serves all connections, and each client connection has a connection to the server of its own: a crash of
//! the proxy is to clients a connection that closes, and nothing is acknowledged that the server has not acknowledged.
//!
//! Not covered: UDP, TLS and Kerberos privacy (what cannot be read cannot be scheduled), clients of one address that
//! mount NFS exports of several workloads, and the work of metadata requests, which count as a small read.

mod buffer;
mod busy_poll;
mod client_identity;
mod configurator;
mod control;
mod control_socket;
mod cost;
mod engine;
mod event_log;
mod event_token;
mod flows;
mod listener;
mod options;
mod policy_memory;
mod queue;
mod request;
mod rules;
mod session;
mod shared;
mod statistics;

pub use configurator::{ConfiguredPolicy, PolicyOrigin, ProxyConfigurator};
pub use control::ProxyHandle;
pub use control_socket::{
    ControlSocket, ProxyCheck, ProxyStatus, check_policy, control_path, is_listening, listen_for_control,
    query_status, restore_policy, send_policy,
};
pub use options::ProxyOptions;
pub use policy_memory::PolicyMemory;
pub use queue::BaselineDiscipline;
pub use statistics::{ProxiedWorkload, ProxySnapshot, UNKNOWN_WORKLOAD};

use engine::ProxyEngine;
use model::{Observations, OperationError};
use std::net::SocketAddr;

/// What a proxy has counted and recorded in the end.
#[derive(Debug)]
pub struct ProxyReport {
    /// The counters at the end.
    pub snapshot: ProxySnapshot,
    /// The recorded requests from their arrival at the proxy, with the stages `proxy` and `server`.
    pub observations: Observations,
    /// How many requests were not recorded because there were more than [`ProxyOptions::record`].
    pub left_out: u64,
}

/// A proxy that listens and does not serve yet.
#[derive(Debug)]
pub struct Proxy {
    engine: ProxyEngine,
    handle: ProxyHandle,
}

impl Proxy {
    /// Listens at the server's fronts, in the network namespace of the calling thread.
    ///
    /// # Errors
    /// When the policy or the deployment is wrong, or an address cannot be had.
    pub fn bind(options: ProxyOptions) -> Result<Self, OperationError> {
        let (handle, commands) = control::channel()?;
        Ok(Self { engine: ProxyEngine::new(options, commands)?, handle })
    }

    /// A handle for other threads to control the proxy with.
    pub fn handle(&self) -> ProxyHandle {
        self.handle.clone()
    }

    /// The addresses that the proxy listens at.
    pub fn addresses(&self) -> Vec<SocketAddr> {
        self.engine.addresses()
    }

    /// Serves on the calling thread until the proxy is told to end.
    ///
    /// # Errors
    /// When the kernel does not deliver events.
    pub fn run(mut self) -> Result<ProxyReport, OperationError> {
        // Limits are as exact as timers. Where those cannot be made exact, a request is dispatched up to 50 µs late.
        let _ = machine::realtime::exact_timers();
        self.engine.run().map_err(|error| {
            OperationError::machine(format_args!("epoll: {error}"))
                .hint("this is a bug of the kernel or of the proxy")
        })?;
        let snapshot = self.engine.snapshot();
        let (observations, left_out) = self.engine.take_observations();
        Ok(ProxyReport { snapshot, observations, left_out })
    }
}
