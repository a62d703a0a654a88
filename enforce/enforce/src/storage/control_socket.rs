//! Control of a running proxy by other processes, through a socket in the file system: one JSON document a line for the
//! request, and one for the reply.

use super::configurator::{ConfiguredPolicy, PolicyOrigin, ProxyConfigurator};
use super::control::proxy_ended;
use super::statistics::ProxySnapshot;
use crate::state_folder::StateFolder;
use model::{OperationError, Policy};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::io::{BufRead, BufReader, ErrorKind, Read, Write};
use std::os::unix::fs::PermissionsExt;
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};
use std::time::Duration;

/// The longest request: a policy of a hundred thousand workloads.
const REQUEST_BYTES_MAX: u64 = 64 << 20;
/// How long either side waits for the other, with room for such a policy.
const TIMEOUT: Duration = Duration::from_secs(10);

/// A request as it is written to the socket.
#[derive(Serialize, Deserialize)]
#[serde(rename_all = "lowercase", deny_unknown_fields)]
enum ControlRequest {
    /// Enforce a policy or none, with the text of a hosts file.
    Apply {
        policy: Option<Box<Policy>>,
        hosts: String,
    },
    /// Say whether that would be accepted, and what it would replace.
    Check {
        policy: Option<Box<Policy>>,
        hosts: String,
    },
    /// Enforce again what a check has told.
    Restore(Box<ConfiguredPolicy>),
    Status,
}

/// What a running proxy says about a policy that it does not enforce yet.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ProxyCheck {
    /// Whether the policy would change what is enforced or remembered.
    pub is_change: bool,
    /// What the proxy enforces now.
    pub present: ConfiguredPolicy,
}

/// The counters of a running proxy, and where its policy is from.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ProxyStatus {
    /// The counters of the proxy.
    #[serde(flatten)]
    pub snapshot: ProxySnapshot,
    /// The method that decided the policy; none where everybody is best effort.
    pub policy_name: Option<String>,
    /// Where the policy, or that there is none, is from.
    pub policy_from: PolicyOrigin,
}

/// A reply as it is written to the socket.
#[derive(Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
enum ControlReply {
    /// It is enforced; whether that has changed anything.
    Done(bool),
    Checked(Box<ProxyCheck>),
    Status(Box<ProxyStatus>),
    Error {
        message: String,
        hint: String,
    },
}

/// The path of a socket that is listened at. The socket is removed when the value is dropped.
#[derive(Debug)]
pub struct ControlSocket(PathBuf);

impl Drop for ControlSocket {
    fn drop(&mut self) {
        let _ = std::fs::remove_file(&self.0);
    }
}

/// The path at which the proxy before a server listens unless another is asked for.
pub fn control_path(folder: &Path, server: &str) -> PathBuf {
    folder.join(format!("proxy-{server}.sock"))
}

/// Whether a proxy listens at `path`. Where that cannot be found out, whoever asks it something will learn why.
pub fn is_listening(path: &Path) -> bool {
    let error = UnixStream::connect(path).err().map(|error| error.kind());
    !matches!(error, Some(ErrorKind::NotFound | ErrorKind::ConnectionRefused))
}

/// Listens for requests to a proxy at `path`, which only the user of the proxy may open.
///
/// # Errors
/// When another proxy listens there, or the path cannot be used.
pub fn listen_for_control(path: &Path, proxy: ProxyConfigurator) -> Result<ControlSocket, OperationError> {
    if UnixStream::connect(path).is_ok() {
        let hint = "stop that one first, or choose another --control";
        return Err(OperationError::machine(format_args!("{}: a proxy is running already", path.display()))
            .hint(hint));
    }
    // Whoever could put another socket in its place would be given the policies of this one.
    StateFolder::create(folder_of(path))?;
    let listener = bind(path).map_err(|error| {
        OperationError::machine(format_args!("{}: {error}", path.display()))
            .hint("run as root, or choose another --control")
    })?;
    // One thread answers one request after the other; it ends with the process.
    std::thread::spawn(move || {
        for stream in listener.incoming().flatten() {
            let _ = answer(&stream, &proxy);
        }
    });
    Ok(ControlSocket(path.to_owned()))
}

fn folder_of(path: &Path) -> &Path {
    path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."))
}

fn bind(path: &Path) -> std::io::Result<UnixListener> {
    // A proxy that crashed has left its socket, at which nobody listens.
    let _ = std::fs::remove_file(path);
    let listener = UnixListener::bind(path)?;
    std::fs::set_permissions(path, PermissionsExt::from_mode(0o600))?;
    Ok(listener)
}

fn answer(stream: &UnixStream, proxy: &ProxyConfigurator) -> std::io::Result<()> {
    stream.set_read_timeout(Some(TIMEOUT))?;
    stream.set_write_timeout(Some(TIMEOUT))?;
    let mut text = String::new();
    BufReader::new(stream.take(REQUEST_BYTES_MAX)).read_line(&mut text)?;
    let reply = match serve_request(&text, proxy) {
        Ok(reply) => reply,
        Err(OperationError { message, hint, .. }) => {
            ControlReply::Error { message, hint: hint.unwrap_or_default() }
        }
    };
    let mut stream = stream;
    let reply = serde_json::to_string(&reply).expect("a reply is plain data");
    stream.write_all((reply + "\n").as_bytes())
}

fn serve_request(text: &str, proxy: &ProxyConfigurator) -> Result<ControlReply, OperationError> {
    let request = serde_json::from_str(text).map_err(|error| {
        OperationError::input(format_args!("an order that cannot be read: {error}"))
            .hint("docs/reference/proxy.md")
    })?;
    match request {
        ControlRequest::Apply { policy, hosts } => {
            proxy.configure(applied(policy, hosts)).map(ControlReply::Done)
        }
        ControlRequest::Check { policy, hosts } => {
            let is_change = proxy.would_change(&applied(policy, hosts))?;
            Ok(ControlReply::Checked(Box::new(ProxyCheck { is_change, present: proxy.current() })))
        }
        ControlRequest::Restore(before) => proxy.configure(*before).map(ControlReply::Done),
        ControlRequest::Status => {
            let snapshot = proxy.handle().status()?;
            let ConfiguredPolicy { policy, origin, .. } = proxy.current();
            let policy_name = policy.map(|policy| policy.policy_name);
            Ok(ControlReply::Status(Box::new(ProxyStatus { snapshot, policy_name, policy_from: origin })))
        }
    }
}

fn applied(policy: Option<Box<Policy>>, hosts: String) -> ConfiguredPolicy {
    ConfiguredPolicy { policy: policy.map(|policy| *policy), hosts, origin: PolicyOrigin::Apply }
}

/// Gives the proxy that listens at `path` another policy, or none, and the text of a hosts file; whether that has changed
/// what it enforces.
///
/// # Errors
/// When no proxy listens there, or it refuses policy or hosts file.
pub fn send_policy(path: &Path, policy: Option<&Policy>, hosts: String) -> Result<bool, OperationError> {
    let request = ControlRequest::Apply { policy: policy.cloned().map(Box::new), hosts };
    done(exchange(path, &request)?)
}

/// Asks the proxy that listens at `path` whether it would accept a policy, and what that would replace.
///
/// # Errors
/// When no proxy listens there, or it would refuse policy or hosts file.
pub fn check_policy(
    path: &Path,
    policy: Option<&Policy>,
    hosts: String,
) -> Result<ProxyCheck, OperationError> {
    let request = ControlRequest::Check { policy: policy.cloned().map(Box::new), hosts };
    match exchange(path, &request)? {
        ControlReply::Checked(check) => Ok(*check),
        ControlReply::Error { message, hint } => Err(OperationError::input(message).hint(hint)),
        ControlReply::Done(_) | ControlReply::Status(_) => Err(proxy_ended()),
    }
}

/// Gives the proxy that listens at `path` back what it enforced at an earlier check.
///
/// # Errors
/// When no proxy listens there, or it refuses that.
pub fn restore_policy(path: &Path, before: ConfiguredPolicy) -> Result<bool, OperationError> {
    done(exchange(path, &ControlRequest::Restore(Box::new(before)))?)
}

fn done(reply: ControlReply) -> Result<bool, OperationError> {
    match reply {
        ControlReply::Done(is_change) => Ok(is_change),
        ControlReply::Error { message, hint } => Err(OperationError::input(message).hint(hint)),
        ControlReply::Checked(_) | ControlReply::Status(_) => Err(proxy_ended()),
    }
}

/// The counters of the proxy that listens at `path`, and where its policy is from.
///
/// # Errors
/// When no proxy listens there.
pub fn query_status(path: &Path) -> Result<ProxyStatus, OperationError> {
    match exchange(path, &ControlRequest::Status)? {
        ControlReply::Status(status) => Ok(*status),
        ControlReply::Error { message, hint } => Err(OperationError::machine(message).hint(hint)),
        ControlReply::Done(_) | ControlReply::Checked(_) => Err(proxy_ended()),
    }
}

/// Sends a request and reads the reply.
fn exchange(path: &Path, request: &ControlRequest) -> Result<ControlReply, OperationError> {
    let text = serde_json::to_string(request).expect("a request is plain data");
    send_and_receive(path, text).map_err(|error| {
        let hint = "start it there: tailwright proxy --help";
        OperationError::machine(format_args!("no proxy answers at {}: {error}", path.display())).hint(hint)
    })
}

fn send_and_receive(path: &Path, text: String) -> std::io::Result<ControlReply> {
    let mut stream = UnixStream::connect(path)?;
    stream.set_read_timeout(Some(TIMEOUT))?;
    stream.write_all((text + "\n").as_bytes())?;
    let mut reply = String::new();
    BufReader::new(stream).read_line(&mut reply)?;
    Ok(serde_json::from_str(&reply)?)
}
