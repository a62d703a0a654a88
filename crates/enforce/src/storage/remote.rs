//! Orders to a running proxy, from other threads of its process and, through a socket in the file system, from other
//! processes: one JSON document a line, one answer each.

use super::status::Snapshot;
use crate::deployment::Deployment;
use model::{OperationError, Policy};
use rustix::event::{EventfdFlags, eventfd};
use rustix::fd::{AsFd, BorrowedFd, OwnedFd};
use serde::{Deserialize, Serialize};
use std::io::{BufRead, BufReader, Read, Write};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::mpsc::{self, Receiver, Sender};
use std::time::Duration;

/// Longest order: a policy of a hundred thousand workloads.
const ORDER_MAX: u64 = 64 << 20;
/// How long an order may take to come, or its answer.
const PATIENCE: Duration = Duration::from_secs(10);

/// What can be asked of a proxy.
pub(super) enum Order {
    /// Another policy or none, and other clients if the hosts file has changed.
    Configure(Option<Box<Policy>>, Option<Box<Deployment>>, Sender<Result<(), OperationError>>),
    Status(Sender<Snapshot>),
    /// Finish what was asked, take nothing more.
    Drain,
    /// End now.
    Stop,
}

/// A proxy, from outside.
#[derive(Debug, Clone)]
pub struct Remote {
    orders: Sender<Order>,
    bell: Arc<OwnedFd>,
}

/// The proxy's end.
#[derive(Debug)]
pub(super) struct Orders {
    orders: Receiver<Order>,
    bell: Arc<OwnedFd>,
}

fn gone() -> OperationError {
    OperationError::machine("the proxy has ended").hint("start it again: tailwright proxy --help")
}

pub(super) fn channel() -> Result<(Remote, Orders), OperationError> {
    let bell = eventfd(0, EventfdFlags::NONBLOCK | EventfdFlags::CLOEXEC).map_err(|error| {
        OperationError::machine(format_args!("eventfd: {error}")).hint("raise the limit of open files")
    })?;
    let bell = Arc::new(bell);
    let (sender, receiver) = mpsc::channel();
    Ok((Remote { orders: sender, bell: bell.clone() }, Orders { orders: receiver, bell }))
}

impl Orders {
    pub(super) fn bell(&self) -> BorrowedFd<'_> {
        self.bell.as_fd()
    }

    /// The next order.
    pub(super) fn next(&self) -> Option<Order> {
        self.orders.try_recv().ok()
    }

    /// The bell was heard.
    pub(super) fn heard(&self) {
        let _ = rustix::io::read(&*self.bell, &mut [0u8; 8]);
    }
}

impl Remote {
    fn order(&self, order: Order) -> Result<(), OperationError> {
        self.orders.send(order).map_err(|_| gone())?;
        // A counter that is full wakes the proxy as well.
        let _ = rustix::io::write(&*self.bell, &1u64.to_ne_bytes());
        Ok(())
    }

    /// From now on this policy holds, for all workloads at once, or nobody is guaranteed anything; nothing that waits is
    /// lost. Without a deployment the one before stays.
    ///
    /// # Errors
    /// What is wrong with it; then nothing has changed.
    pub fn configure(
        &self,
        policy: Option<Policy>,
        deployment: Option<Deployment>,
    ) -> Result<(), OperationError> {
        let (answer, answered) = mpsc::channel();
        self.order(Order::Configure(policy.map(Box::new), deployment.map(Box::new), answer))?;
        answered.recv_timeout(PATIENCE).map_err(|_| gone())?
    }

    /// What it has seen.
    ///
    /// # Errors
    /// When it has ended.
    pub fn status(&self) -> Result<Snapshot, OperationError> {
        let (answer, answered) = mpsc::channel();
        self.order(Order::Status(answer))?;
        answered.recv_timeout(PATIENCE).map_err(|_| gone())
    }

    /// What was asked is answered, nothing more is taken, and the proxy ends.
    pub fn drain(&self) {
        let _ = self.order(Order::Drain);
    }

    /// It ends at once; clients see their connections close.
    pub fn stop(&self) {
        let _ = self.order(Order::Stop);
    }
}

/// An order as it is written to the socket.
#[derive(Serialize, Deserialize)]
#[serde(rename_all = "lowercase", deny_unknown_fields)]
enum Line {
    /// A policy or none, and the text of a hosts file.
    Apply {
        policy: Option<Box<Policy>>,
        hosts: String,
    },
    Status,
}

/// The answer.
#[derive(Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
enum Said {
    Done,
    Status(Snapshot),
    Error { message: String, hint: String },
}

/// Listens for orders in the file system, at `path`, which only the user of the proxy may open.
///
/// # Errors
/// When there is a proxy already, or the path cannot be used.
pub fn listen(path: &Path, remote: Remote) -> Result<Socket, OperationError> {
    let fault = |error: std::io::Error| {
        OperationError::machine(format_args!("{}: {error}", path.display()))
            .hint("run as root, or choose another --control")
    };
    if UnixStream::connect(path).is_ok() {
        let hint = "stop that one first, or choose another --control";
        return Err(OperationError::machine(format_args!("{}: a proxy is running already", path.display()))
            .hint(hint));
    }
    if let Some(folder) = path.parent() {
        std::fs::create_dir_all(folder).map_err(fault)?;
    }
    // Left by one that crashed.
    let _ = std::fs::remove_file(path);
    let listener = UnixListener::bind(path).map_err(fault)?;
    let mode = std::os::unix::fs::PermissionsExt::from_mode(0o600);
    std::fs::set_permissions(path, mode).map_err(fault)?;
    // One thread answers one order after the other; it ends with the process.
    std::thread::spawn(move || {
        for stream in listener.incoming().flatten() {
            let _ = answer(&stream, &remote);
        }
    });
    Ok(Socket(path.to_owned()))
}

/// A path that is removed in the end.
#[derive(Debug)]
pub struct Socket(PathBuf);

impl Drop for Socket {
    fn drop(&mut self) {
        let _ = std::fs::remove_file(&self.0);
    }
}

fn answer(stream: &UnixStream, remote: &Remote) -> std::io::Result<()> {
    stream.set_read_timeout(Some(PATIENCE))?;
    stream.set_write_timeout(Some(PATIENCE))?;
    let mut text = String::new();
    BufReader::new(stream.take(ORDER_MAX)).read_line(&mut text)?;
    let said = carry_out(&text, remote).unwrap_or_else(|OperationError { message, hint, .. }| Said::Error {
        message,
        hint: hint.unwrap_or_default(),
    });
    let mut stream = stream;
    let answer = serde_json::to_string(&said).expect("an answer is plain data");
    stream.write_all((answer + "\n").as_bytes())
}

fn carry_out(text: &str, remote: &Remote) -> Result<Said, OperationError> {
    let line = serde_json::from_str(text).map_err(|error| {
        OperationError::input(format_args!("an order that cannot be read: {error}")).hint("docs/proxy.md")
    })?;
    match line {
        Line::Apply { policy, hosts } => {
            let deployment = Deployment::parse(&hosts)?;
            remote.configure(policy.map(|policy| *policy), Some(deployment)).map(|()| Said::Done)
        }
        Line::Status => remote.status().map(Said::Status),
    }
}

fn ask(path: &Path, line: &Line) -> Result<Said, OperationError> {
    let fault = |error: std::io::Error| {
        let hint = "start it there: tailwright proxy --help";
        OperationError::machine(format_args!("no proxy answers at {}: {error}", path.display())).hint(hint)
    };
    let mut stream = UnixStream::connect(path).map_err(fault)?;
    stream.set_read_timeout(Some(PATIENCE)).map_err(fault)?;
    let text = serde_json::to_string(line).expect("an order is plain data");
    stream.write_all((text + "\n").as_bytes()).map_err(fault)?;
    let mut said = String::new();
    BufReader::new(stream).read_line(&mut said).map_err(fault)?;
    serde_json::from_str(&said).map_err(|error| fault(error.into()))
}

fn done(said: Said) -> Result<(), OperationError> {
    match said {
        Said::Error { message, hint } => Err(OperationError::input(message).hint(hint)),
        Said::Done | Said::Status(_) => Ok(()),
    }
}

/// Where the proxy before a server listens for orders when nothing else is said.
pub fn control_path(folder: &Path, server: &str) -> PathBuf {
    folder.join(format!("proxy-{server}.sock"))
}

/// Gives the proxy that listens at `path` another policy, or none, and the text of a hosts file.
///
/// # Errors
/// When none listens there, or what it says is wrong.
pub fn apply(path: &Path, policy: Option<&Policy>, hosts: String) -> Result<(), OperationError> {
    done(ask(path, &Line::Apply { policy: policy.cloned().map(Box::new), hosts })?)
}

/// What the proxy that listens at `path` has seen.
///
/// # Errors
/// When none listens there.
pub fn status(path: &Path) -> Result<Snapshot, OperationError> {
    match ask(path, &Line::Status)? {
        Said::Status(snapshot) => Ok(snapshot),
        Said::Error { message, hint } => Err(OperationError::machine(message).hint(hint)),
        Said::Done => Err(gone()),
    }
}
