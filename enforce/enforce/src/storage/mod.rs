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
//! One thread serves all connections, or decides for `loops` that move their bytes. A client has a connection to the server of its own, or shares some
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
mod handover;
mod linux;
mod listener;
mod loops;
mod machine_system;
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
mod take_over;
mod warnings;
mod watched_stream;

pub use configurator::{ConfiguredPolicy, PolicyOrigin, ProxyConfigurator};
pub use control::ProxyHandle;
pub use control_socket::{
    ControlSocket, ObservedTraffic, ProxyCheck, ProxyObservation, ProxyStatus, check_policy, control_path,
    is_listening, listen_for_control, query_curves, query_observation, query_status, restore_policy,
    send_policy, serve_taken_control, take_over,
};
pub use descriptors::raise_open_files;
pub(crate) use device_conditions::storage_conditions;
pub use engine::ProxyEngine;
pub use flows::UNKNOWN_WORKLOAD;
pub use handover::HandOverDocument;
pub use loops::{ByteLoop, ByteLoops, ByteOrder, ByteReport, ConnectionId, LoopedStream, LoopedSystem};
pub use options::ProxyOptions;
pub use policy_memory::PolicyMemory;
pub use queue::{BaselineQueue, BaselineRequest};
pub use recording::ProxiedRequest;
pub use redirection::Redirection;
pub use statistics::{ProxiedWorkload, ProxyMetrics, ProxySnapshot, WorkloadTimes};
pub use system::{ProxyStream, StreamInterest, StreamRole, StreamToken, System, SystemEvent};
pub use take_over::TakeOver;

use crate::deployment::Deployment;
use control::{CommandReceiver, ControlCommand, HandOver, SharedListeners};
use export_probe::ProbedServer;
use linux::LinuxSystem;
use listener::{FrontListener, InheritedListeners};
use loops::LoopThreads;
use machine_system::{MachineStream, MachineSystem};
use model::{Observations, OperationError};
use rustix::fd::{AsFd, OwnedFd};
use std::collections::BTreeSet;
use std::io;
use std::net::SocketAddr;
use std::sync::mpsc::{self, Receiver, Sender};

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
    /// Another process has taken over.
    pub is_taken_over: bool,
}

/// Time in which a proxy has to come to rest for another one, nanoseconds.
const HOLD_NS: u64 = 1_000_000_000;

/// Returns the error of a machine that does not open the proxy's descriptors or threads.
#[expect(clippy::needless_pass_by_value, reason = "a function for map_err")]
fn no_files(error: io::Error) -> OperationError {
    OperationError::machine(format_args!("epoll: {error}")).hint("raise the limit of open files")
}

/// A proxy that listens but does not serve yet.
#[derive(Debug)]
pub struct Proxy {
    engine: ProxyEngine<MachineSystem>,
    commands: CommandReceiver,
    handle: ProxyHandle,
    addresses: Vec<SocketAddr>,
    /// Capabilities that connections to the server require.
    capabilities: BTreeSet<&'static str>,
    /// Servers that answer MOUNT calls: behind the NFS fronts.
    nfs_servers: Vec<ProbedServer>,
    /// Receiver of the state, while the proxy comes to rest for another process.
    successor: Option<Sender<Result<HandOver, OperationError>>>,
    is_taken_over: bool,
}

impl Proxy {
    /// Listens at the server's fronts, in the network namespace of the calling thread.
    ///
    /// # Errors
    /// When the policy or the deployment is invalid, or an address cannot be bound.
    #[expect(clippy::needless_pass_by_value, reason = "options are made for one proxy")]
    pub fn bind(options: ProxyOptions) -> Result<Self, OperationError> {
        Self::new(&options, None)
    }

    /// Prepares to serve at the listeners of another proxy. Nothing is served before
    /// [`take_over`](Self::take_over).
    ///
    /// # Errors
    /// When the policy or the deployment is invalid, or has other fronts.
    #[expect(clippy::needless_pass_by_value, reason = "options are made for one proxy")]
    pub fn inherit(options: ProxyOptions, from: &mut TakeOver) -> Result<Self, OperationError> {
        Self::new(&options, from.take_listeners())
    }

    fn new(options: &ProxyOptions, inherited: Option<InheritedListeners>) -> Result<Self, OperationError> {
        let (handle, commands, waker) = control::channel()?;
        let listeners = FrontListener::bind_all(&options.deployment, &options.server, inherited)?;
        let fronts = listeners.iter().map(|front| front.protocol).collect();
        let nfs_servers = export_probe::nfs_servers(&listeners);
        let capabilities =
            listeners.iter().flat_map(|front| front.connector.capabilities()).copied().collect();
        let system = LinuxSystem::new(listeners, waker.clone(), options.busy_poll_max.0).map_err(no_files)?;
        let addresses = system.addresses();
        let system = match options.loops {
            0 => MachineSystem::Direct(system),
            count => {
                let loops = LoopThreads::prepare(count.into(), &waker, options.busy_poll_max.0);
                MachineSystem::Looped(Box::new(LoopedSystem::new(system, loops.map_err(no_files)?)))
            }
        };
        let engine = ProxyEngine::new(system, fronts, options)?;
        Ok(Self {
            engine,
            commands,
            handle,
            addresses,
            capabilities,
            nfs_servers,
            successor: None,
            is_taken_over: false,
        })
    }

    /// Takes over the sessions of the other proxy, which ends. Returns its process and the number of sessions.
    ///
    /// # Errors
    /// When the other proxy does not come to rest in time, or its state is not understood. It then goes on.
    pub fn take_over(&mut self, from: &TakeOver) -> Result<(u32, usize), OperationError> {
        let (document, descriptors) = from.state()?;
        let places = document.places();
        let mut streams = Vec::new();
        for (descriptor, (front, is_to_server)) in descriptors.into_iter().zip(places) {
            streams.push(self.engine.system().adopt(descriptor.into(), front, is_to_server));
        }
        let process = document.process;
        let count = document.sessions.len();
        self.engine.adopt(document, streams)?;
        from.commit()?;
        self.engine.begin_adopted();
        Ok((process, count))
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
        self.learn_exports_first();
        while !self.engine.is_stopped() {
            let has_orders = self.engine.round().map_err(|error| {
                OperationError::machine(format_args!("epoll: {error}"))
                    .hint("this is a bug of the kernel or of the proxy")
            })?;
            if has_orders {
                self.handle_commands();
            }
            self.hand_over_if_at_rest();
            #[cfg(debug_assertions)]
            self.engine.check_invariants_now_and_then();
        }
        let snapshot = self.engine.snapshot();
        let (observations, left_out) = self.engine.take_observations();
        let unrecorded = self.engine.unrecorded();
        let is_taken_over = self.is_taken_over;
        Ok(ProxyReport { snapshot, observations, left_out, unrecorded, is_taken_over })
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
                        drop(self.ask_for_exports());
                    }
                    let _ = reply.send(outcome);
                }
                ControlCommand::Status(reply) => {
                    let _ = reply.send(self.engine.snapshot());
                }
                ControlCommand::Metrics(reply) => {
                    let _ = reply.send(self.engine.metrics());
                }
                ControlCommand::Curves(after, reply) => {
                    let _ = reply.send(self.engine.curves(after.as_ref()));
                }
                ControlCommand::LearnExport(mount) => self.engine.learn_export(&mount.path, &mount.root),
                ControlCommand::Listeners(reply) => {
                    let _ = reply.send(self.listeners());
                }
                ControlCommand::HandOver(reply) if self.successor.is_some() => {
                    let _ = reply.send(Err(OperationError::machine("another process takes over already")));
                }
                ControlCommand::HandOver(reply) if self.engine.system().has_loops() => {
                    let error =
                        OperationError::machine("the running proxy has --loops, which keep its connections");
                    let _ = reply.send(Err(error.hint("stop it, and start this one")));
                }
                ControlCommand::HandOver(reply) => {
                    self.successor = Some(reply);
                    self.engine.hold(HOLD_NS);
                }
                ControlCommand::Drain => self.engine.drain(),
                ControlCommand::Stop => self.engine.stop(),
            }
        }
    }

    /// Duplicates the listeners for another process.
    fn listeners(&mut self) -> Result<SharedListeners, OperationError> {
        let fronts = self.engine.system().fronts();
        if fronts.is_empty() {
            return Err(OperationError::machine("the running proxy is about to end")
                .hint("start this one without --take-over when it has ended"));
        }
        let records = fronts.iter().map(FrontListener::record).collect();
        let copies = fronts.iter().map(|front| front.listener.as_fd().try_clone_to_owned());
        let copies: io::Result<_> = copies.collect();
        Ok((records, copies.map_err(|error| no_descriptors(&error))?))
    }

    /// Hands over to the process that waits for it, as soon as the proxy is at rest, or lets it know that this takes too
    /// long. Until the other process has decided, nothing is served.
    fn hand_over_if_at_rest(&mut self) {
        if self.successor.is_none() {
            return;
        }
        let mut is_at_rest = self.engine.is_at_rest();
        if !is_at_rest && !self.engine.is_hold_late() {
            return;
        }
        is_at_rest = is_at_rest || self.engine.leave_clients_behind();
        let Some(successor) = self.successor.take() else { return };
        let copies = self
            .engine
            .streams()
            .filter_map(MachineStream::socket)
            .map(|socket| socket.as_fd().try_clone_to_owned());
        let copies: io::Result<Vec<OwnedFd>> = copies.collect();
        let (decide, decision) = mpsc::channel();
        let offer = match copies {
            Ok(descriptors) if is_at_rest => {
                Ok(HandOver { document: self.engine.document(), descriptors, decide })
            }
            Ok(_) => Err(OperationError::machine("the server has not answered all requests within 1 s")
                .hint("nothing has changed; try again")),
            Err(error) => Err(no_descriptors(&error)),
        };
        let is_offer = offer.is_ok();
        let is_offered = successor.send(offer).is_ok() && is_offer;
        self.is_taken_over = is_offered && decision.recv().unwrap_or(false);
        if self.is_taken_over {
            self.engine.stop();
        } else {
            self.engine.go_on();
        }
    }

    /// Prints the deployment's warnings on stderr.
    fn warn(&self) {
        self.engine.warnings().iter().for_each(|warning| eprintln!("proxy: warning: {warning}"));
    }

    /// Queries the server for the handles of the NFS exports that the deployment names, on a separate
    /// thread. The receiver is disconnected when the server has been asked for each of them once.
    fn ask_for_exports(&self) -> Option<Receiver<()>> {
        let exports = self.engine.named_exports();
        let is_needed = !exports.is_empty() && !self.nfs_servers.is_empty();
        is_needed.then(|| export_probe::ask(self.nfs_servers.clone(), exports, self.handle.clone()))
    }

    /// Queries the server for the handles of exports, and waits before the first client is accepted. The root of one
    /// export alone would claim the handles of others, and a client that mounted earlier would be unknown.
    fn learn_exports_first(&mut self) {
        let Some(asked) = self.ask_for_exports() else { return };
        // Clients of a proxy that takes over do not wait, and its predecessor knew the exports.
        if !self.engine.knows_exports() {
            let _ = asked.recv_timeout(export_probe::TIMEOUT);
            self.handle_commands();
        }
    }
}

fn no_descriptors(error: &io::Error) -> OperationError {
    OperationError::machine(format_args!("connections cannot be duplicated for the other proxy: {error}"))
        .hint("raise the limit of open files; nothing has changed")
}
