//! Control of a running proxy by other threads of its process: a channel of commands, and a descriptor that wakes the
//! proxy up to handle them between two events.

use super::statistics::{ProxyMetrics, ProxySnapshot};
use crate::deployment::Deployment;
use model::{OperationError, Policy};
use rustix::event::{EventfdFlags, eventfd};
use rustix::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::Arc;
use std::sync::mpsc::{self, Receiver, Sender};
use std::time::Duration;
use wire::GrantedMount;

/// How long a reply may take. The proxy handles a command between two events, and reading a policy of a hundred
/// thousand workloads takes seconds.
const REPLY_TIMEOUT: Duration = Duration::from_secs(10);

/// A command to a proxy, with the channel for its reply.
pub(super) enum ControlCommand {
    /// Replaces the policy (`None` guarantees nothing to anybody), and the deployment if there is one; the reply says
    /// whether that changed anything.
    Configure(Option<Box<Policy>>, Option<Box<Deployment>>, Sender<Result<bool, OperationError>>),
    /// Tells the handle of the root of an NFS export.
    LearnExport(GrantedMount),
    /// Asks for the counters.
    Status(Sender<ProxySnapshot>),
    /// Asks for the counters with distributions.
    Metrics(Sender<ProxyMetrics>),
    /// Asks to answer what is in flight, to take nothing more, and to end.
    Drain,
    /// Asks to end at once.
    Stop,
}

/// The handle that controls a proxy from other threads.
#[derive(Debug, Clone)]
pub struct ProxyHandle {
    commands: Sender<ControlCommand>,
    waker: Arc<OwnedFd>,
}

/// The proxy's end of the channel.
#[derive(Debug)]
pub(super) struct CommandReceiver(Receiver<ControlCommand>);

/// What becomes readable when there are commands.
#[derive(Debug, Clone)]
pub(super) struct CommandWaker(Arc<OwnedFd>);

/// The error of a command to a proxy that does not run any more.
pub(super) fn proxy_ended() -> OperationError {
    OperationError::machine("the proxy has ended").hint("start it again: tailwright proxy --help")
}

/// A handle, and the receiver of its commands with what wakes it up.
///
/// # Errors
/// When the process may open no more files.
pub(super) fn channel() -> Result<(ProxyHandle, CommandReceiver, CommandWaker), OperationError> {
    let waker = eventfd(0, EventfdFlags::NONBLOCK | EventfdFlags::CLOEXEC).map_err(|error| {
        OperationError::machine(format_args!("eventfd: {error}")).hint("raise the limit of open files")
    })?;
    let waker = Arc::new(waker);
    let (sender, receiver) = mpsc::channel();
    let handle = ProxyHandle { commands: sender, waker: waker.clone() };
    Ok((handle, CommandReceiver(receiver), CommandWaker(waker)))
}

impl CommandReceiver {
    /// The oldest command that was not handled yet.
    pub(super) fn next_command(&self) -> Option<ControlCommand> {
        self.0.try_recv().ok()
    }
}

impl CommandWaker {
    /// The descriptor that becomes readable.
    pub(super) fn descriptor(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }

    /// Makes it unreadable. It is called before commands are taken, so that one which arrives later wakes again.
    pub(super) fn reset(&self) {
        let _ = rustix::io::read(&*self.0, &mut [0u8; 8]);
    }
}

impl ProxyHandle {
    fn send(&self, command: ControlCommand) -> Result<(), OperationError> {
        self.commands.send(command).map_err(|_| proxy_ended())?;
        // It fails only when the counter is full, and a full counter wakes the proxy as well.
        let _ = rustix::io::write(&*self.waker, &1u64.to_ne_bytes());
        Ok(())
    }

    /// Replaces the policy for all workloads at once; without a policy nobody is guaranteed anything. No request that
    /// waits is lost. Without a deployment the present one stays. Whether that changed anything: what is enforced
    /// already is left as it is.
    ///
    /// # Errors
    /// When the policy or the deployment is wrong; then nothing has changed. When the proxy has ended.
    pub fn configure(
        &self,
        policy: Option<Policy>,
        deployment: Option<Deployment>,
    ) -> Result<bool, OperationError> {
        let (sender, reply) = mpsc::channel();
        self.send(ControlCommand::Configure(policy.map(Box::new), deployment.map(Box::new), sender))?;
        reply.recv_timeout(REPLY_TIMEOUT).map_err(|_| proxy_ended())?
    }

    /// Tells the handle of the root of an NFS export.
    pub(super) fn learn_export(&self, mount: GrantedMount) {
        let _ = self.send(ControlCommand::LearnExport(mount));
    }

    /// The counters of the proxy now.
    ///
    /// # Errors
    /// When the proxy has ended.
    pub fn status(&self) -> Result<ProxySnapshot, OperationError> {
        let (sender, reply) = mpsc::channel();
        self.send(ControlCommand::Status(sender))?;
        reply.recv_timeout(REPLY_TIMEOUT).map_err(|_| proxy_ended())
    }

    /// The counters of the proxy now, with distributions.
    ///
    /// # Errors
    /// When the proxy has ended.
    pub fn metrics(&self) -> Result<ProxyMetrics, OperationError> {
        let (sender, reply) = mpsc::channel();
        self.send(ControlCommand::Metrics(sender))?;
        reply.recv_timeout(REPLY_TIMEOUT).map_err(|_| proxy_ended())
    }

    /// Ends the proxy when the requests in flight are answered; it takes no more. A second call ends it at once.
    pub fn drain(&self) {
        let _ = self.send(ControlCommand::Drain);
    }

    /// Ends the proxy at once; clients see their connections close.
    pub fn stop(&self) {
        let _ = self.send(ControlCommand::Stop);
    }
}
