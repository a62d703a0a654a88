//! Control of a running proxy by other processes through a Unix socket. Request and reply are one line of
//! JSON each.

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

/// Maximum length of a request, bytes; enough for a policy of a hundred thousand workloads.
const REQUEST_BYTES_MAX: u64 = 64 << 20;
/// Timeout of reads and writes of both sides, with room for such a policy.
const TIMEOUT: Duration = Duration::from_secs(10);

/// A request on the socket.
#[derive(Serialize, Deserialize)]
#[serde(rename_all = "lowercase", deny_unknown_fields)]
enum ControlRequest {
    /// Enforce a policy or none, with the text of a hosts file.
    Apply {
        policy: Option<Box<Policy>>,
        hosts: String,
    },
    /// Check that the policy would be accepted, and report the configuration that it would replace.
    Check {
        policy: Option<Box<Policy>>,
        hosts: String,
    },
    /// Enforce the configuration that an earlier check reported.
    Restore(Box<ConfiguredPolicy>),
    Status,
}

/// Result of checking a policy at a running proxy.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ProxyCheck {
    /// The policy would change the enforced rules, or the saved configuration.
    pub is_change: bool,
    /// Configuration that the proxy enforces now.
    pub present: ConfiguredPolicy,
}

/// Counters of a running proxy, and the source of its policy.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ProxyStatus {
    #[serde(flatten)]
    pub snapshot: ProxySnapshot,
    /// Method that decided the policy; `None` if all requests are best effort.
    pub policy_name: Option<String>,
    /// Source of the policy, or of its removal.
    pub policy_from: PolicyOrigin,
}

/// A reply on the socket.
#[derive(Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
enum ControlReply {
    /// The configuration is enforced; true if the rules have changed.
    Done(bool),
    Checked(Box<ProxyCheck>),
    Status(Box<ProxyStatus>),
    Error {
        message: String,
        hint: String,
    },
}

/// Path of a listening socket. Dropping the value removes the socket.
#[derive(Debug)]
pub struct ControlSocket(PathBuf);

impl Drop for ControlSocket {
    fn drop(&mut self) {
        let _ = std::fs::remove_file(&self.0);
    }
}

/// Returns the default path of the socket of the proxy in front of a server.
pub fn control_path(folder: &Path, server: &str) -> PathBuf {
    folder.join(format!("proxy-{server}.sock"))
}

/// Returns true if a proxy may listen at `path`. Errors such as a missing permission count as true; the next
/// request reports them.
pub fn is_listening(path: &Path) -> bool {
    let error = UnixStream::connect(path).err().map(|error| error.kind());
    !matches!(error, Some(ErrorKind::NotFound | ErrorKind::ConnectionRefused))
}

/// Listens for requests to a proxy at `path`, which only the proxy's user may open.
///
/// # Errors
/// If another proxy listens there, or the path cannot be used.
pub fn listen_for_control(path: &Path, proxy: ProxyConfigurator) -> Result<ControlSocket, OperationError> {
    if UnixStream::connect(path).is_ok() {
        let hint = "stop that one first, or choose another --control";
        return Err(OperationError::machine(format_args!("{}: a proxy is running already", path.display()))
            .hint(hint));
    }
    // A user who could replace the socket would receive the policies meant for this proxy.
    StateFolder::create(folder_of(path))?;
    let listener = bind(path).map_err(|error| {
        OperationError::machine(format_args!("{}: {error}", path.display()))
            .hint("run as root, or choose another --control")
    })?;
    // One thread serves requests one by one, until the process exits.
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
    // A proxy that crashed leaves its socket behind, and bind(2) fails on an existing path.
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
        OperationError::input(format_args!("invalid request: {error}")).hint("docs/reference/proxy.md")
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

/// Sends a policy, or none, and the text of a hosts file to the proxy that listens at `path`. Returns true if
/// the enforced rules have changed.
///
/// # Errors
/// If no proxy listens there, or it refuses the policy or the hosts file.
pub fn send_policy(path: &Path, policy: Option<&Policy>, hosts: String) -> Result<bool, OperationError> {
    let request = ControlRequest::Apply { policy: policy.cloned().map(Box::new), hosts };
    done(exchange(path, &request)?)
}

/// Asks the proxy that listens at `path` if it would accept a policy, and what that would replace.
///
/// # Errors
/// If no proxy listens there, or it would refuse the policy or the hosts file.
pub(crate) fn check_policy(
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

/// Restores the configuration that an earlier check of the proxy at `path` reported.
///
/// # Errors
/// If no proxy listens there, or it refuses the configuration.
pub(crate) fn restore_policy(path: &Path, before: ConfiguredPolicy) -> Result<bool, OperationError> {
    done(exchange(path, &ControlRequest::Restore(Box::new(before)))?)
}

fn done(reply: ControlReply) -> Result<bool, OperationError> {
    match reply {
        ControlReply::Done(is_change) => Ok(is_change),
        ControlReply::Error { message, hint } => Err(OperationError::input(message).hint(hint)),
        ControlReply::Checked(_) | ControlReply::Status(_) => Err(proxy_ended()),
    }
}

/// Returns the counters of the proxy that listens at `path`, and the source of its policy.
///
/// # Errors
/// If no proxy listens there.
pub fn query_status(path: &Path) -> Result<ProxyStatus, OperationError> {
    match exchange(path, &ControlRequest::Status)? {
        ControlReply::Status(status) => Ok(*status),
        ControlReply::Error { message, hint } => Err(OperationError::machine(message).hint(hint)),
        ControlReply::Done(_) | ControlReply::Checked(_) => Err(proxy_ended()),
    }
}

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
