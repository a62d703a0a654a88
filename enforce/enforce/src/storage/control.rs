//! Control of a running proxy by other threads of its process: a channel of commands, and a descriptor
//! that wakes the proxy to handle them between two events.

use super::handover::HandOverDocument;
use super::listener::FrontRecord;
use super::statistics::{ProxyMetrics, ProxySnapshot};
use crate::deployment::Deployment;
use model::{OperationError, Policy};
use rustix::event::{EventfdFlags, eventfd};
use rustix::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::Arc;
use std::sync::mpsc::{self, Receiver, Sender};
use std::time::Duration;
use wire::GrantedMount;
use workload::live::{CurveMark, CurveReport};

/// Timeout of a reply. The proxy handles a command between two events, and reading a policy of a hundred
/// thousand workloads takes seconds.
const REPLY_TIMEOUT: Duration = Duration::from_secs(10);

/// A command to a proxy, with the channel for its reply.
pub(super) enum ControlCommand {
    /// Replaces the policy (`None` guarantees nothing), and the deployment if there is one. The reply is
    /// true if anything changed.
    Configure(Option<Box<Policy>>, Option<Box<Deployment>>, Sender<Result<bool, OperationError>>),
    /// Reports the handle of the root of an NFS export.
    LearnExport(GrantedMount),
    /// Requests the counters.
    Status(Sender<ProxySnapshot>),
    /// Requests the counters with distributions.
    Metrics(Sender<ProxyMetrics>),
    /// Requests the chunks of live burst curves after those that the reader has.
    Curves(Option<CurveMark>, Sender<CurveReport>),
    /// Requests the listeners for another process.
    Listeners(Sender<Result<SharedListeners, OperationError>>),
    /// Comes to rest and hands over everything, or goes on.
    HandOver(Sender<Result<HandOver, OperationError>>),
    /// Answers requests in flight, accepts no more, and ends.
    Drain,
    /// Ends at once.
    Stop,
}

/// Fronts and their listeners, for another process.
pub(super) type SharedListeners = (Vec<FrontRecord>, Vec<OwnedFd>);

/// State and connections of a proxy at rest, which waits for the decision.
pub(super) struct HandOver {
    pub(super) document: HandOverDocument,
    pub(super) descriptors: Vec<OwnedFd>,
    /// True lets the proxy end; false, or nothing, lets it go on.
    pub(super) decide: Sender<bool>,
}

/// Handle that controls a proxy from other threads.
#[derive(Debug, Clone)]
pub struct ProxyHandle {
    commands: Sender<ControlCommand>,
    waker: CommandWaker,
}

/// The proxy's end of the channel.
#[derive(Debug)]
pub(super) struct CommandReceiver(Receiver<ControlCommand>);

/// Descriptor that becomes readable when there are commands.
#[derive(Debug, Clone)]
pub(super) struct CommandWaker(Arc<OwnedFd>);

/// Returns the error of a command to a proxy that has ended.
pub(super) fn proxy_ended() -> OperationError {
    OperationError::machine("the proxy has ended").hint("start it again: tailwright proxy --help")
}

/// Creates a handle, the receiver of its commands, and the waker.
///
/// # Errors
/// When the process may open no more files.
pub(super) fn channel() -> Result<(ProxyHandle, CommandReceiver, CommandWaker), OperationError> {
    let waker = CommandWaker::new().map_err(|error| {
        OperationError::machine(format_args!("eventfd: {error}")).hint("raise the limit of open files")
    })?;
    let (sender, receiver) = mpsc::channel();
    let handle = ProxyHandle { commands: sender, waker: waker.clone() };
    Ok((handle, CommandReceiver(receiver), waker))
}

impl CommandReceiver {
    /// Returns the oldest unhandled command.
    pub(super) fn next_command(&self) -> Option<ControlCommand> {
        self.0.try_recv().ok()
    }
}

impl CommandWaker {
    /// Creates a waker.
    ///
    /// # Errors
    /// When the process may open no more files.
    pub(super) fn new() -> std::io::Result<Self> {
        Ok(Self(Arc::new(eventfd(0, EventfdFlags::NONBLOCK | EventfdFlags::CLOEXEC)?)))
    }

    /// Makes the descriptor readable.
    pub(super) fn notify(&self) {
        // Fails only when the counter is full, and a full counter also wakes the thread.
        let _ = rustix::io::write(&*self.0, &1u64.to_ne_bytes());
    }

    /// Returns the descriptor that becomes readable.
    pub(super) fn descriptor(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }

    /// Makes the descriptor unreadable. Called before commands are taken, so that a later one wakes the
    /// proxy again.
    pub(super) fn reset(&self) {
        let _ = rustix::io::read(&*self.0, &mut [0u8; 8]);
    }
}

impl ProxyHandle {
    fn send(&self, command: ControlCommand) -> Result<(), OperationError> {
        self.commands.send(command).map_err(|_| proxy_ended())?;
        self.waker.notify();
        Ok(())
    }

    /// Replaces the policy for all workloads at once; without a policy nothing is guaranteed. No waiting
    /// request is lost. Without a deployment the present one stays. Returns true if anything changed; an
    /// equal configuration has no effect.
    ///
    /// # Errors
    /// When the policy or the deployment is invalid; then nothing has changed. When the proxy has ended.
    pub fn configure(
        &self,
        policy: Option<Policy>,
        deployment: Option<Deployment>,
    ) -> Result<bool, OperationError> {
        let (sender, reply) = mpsc::channel();
        self.send(ControlCommand::Configure(policy.map(Box::new), deployment.map(Box::new), sender))?;
        reply.recv_timeout(REPLY_TIMEOUT).map_err(|_| proxy_ended())?
    }

    /// Reports the handle of the root of an NFS export.
    pub(super) fn learn_export(&self, mount: GrantedMount) {
        let _ = self.send(ControlCommand::LearnExport(mount));
    }

    /// Returns the present counters of the proxy.
    ///
    /// # Errors
    /// When the proxy has ended.
    pub fn status(&self) -> Result<ProxySnapshot, OperationError> {
        let (sender, reply) = mpsc::channel();
        self.send(ControlCommand::Status(sender))?;
        reply.recv_timeout(REPLY_TIMEOUT).map_err(|_| proxy_ended())
    }

    /// Returns the present counters of the proxy, with distributions.
    ///
    /// # Errors
    /// When the proxy has ended.
    pub fn metrics(&self) -> Result<ProxyMetrics, OperationError> {
        let (sender, reply) = mpsc::channel();
        self.send(ControlCommand::Metrics(sender))?;
        reply.recv_timeout(REPLY_TIMEOUT).map_err(|_| proxy_ended())
    }

    /// Returns chunks of burst curves of what clients send, after those that the reader has.
    ///
    /// # Errors
    /// When the proxy has ended.
    pub fn curves(&self, after: Option<CurveMark>) -> Result<CurveReport, OperationError> {
        let (sender, reply) = mpsc::channel();
        self.send(ControlCommand::Curves(after, sender))?;
        reply.recv_timeout(REPLY_TIMEOUT).map_err(|_| proxy_ended())
    }

    /// Returns the listeners of the proxy, for another process.
    ///
    /// # Errors
    /// When the proxy is about to end, or has ended.
    pub(super) fn listeners(&self) -> Result<SharedListeners, OperationError> {
        let (sender, reply) = mpsc::channel();
        self.send(ControlCommand::Listeners(sender))?;
        reply.recv_timeout(REPLY_TIMEOUT).map_err(|_| proxy_ended())?
    }

    /// Lets the proxy come to rest, and returns its state.
    ///
    /// # Errors
    /// When it does not come to rest in time; then it goes on.
    pub(super) fn hand_over(&self) -> Result<HandOver, OperationError> {
        let (sender, reply) = mpsc::channel();
        self.send(ControlCommand::HandOver(sender))?;
        reply.recv_timeout(REPLY_TIMEOUT).map_err(|_| proxy_ended())?
    }

    /// Ends the proxy once the requests in flight are answered; it accepts no more. A second call ends it
    /// at once.
    pub fn drain(&self) {
        let _ = self.send(ControlCommand::Drain);
    }

    /// Ends the proxy at once; clients see their connections close.
    pub fn stop(&self) {
        let _ = self.send(ControlCommand::Stop);
    }
}
