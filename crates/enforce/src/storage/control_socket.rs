//! Control of a running proxy by other processes, through a socket in the file system: one JSON document a line for the
//! request, and one for the reply.

use super::control::{ProxyHandle, proxy_ended};
use super::statistics::ProxySnapshot;
use crate::deployment::Deployment;
use model::{OperationError, Policy};
use serde::{Deserialize, Serialize};
use std::io::{BufRead, BufReader, Read, Write};
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
    /// A policy or none, and the text of a hosts file.
    Apply {
        policy: Option<Box<Policy>>,
        hosts: String,
    },
    Status,
}

/// A reply as it is written to the socket.
#[derive(Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
enum ControlReply {
    Done,
    Status(ProxySnapshot),
    Error { message: String, hint: String },
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

/// Listens for requests to a proxy at `path`, which only the user of the proxy may open.
///
/// # Errors
/// When another proxy listens there, or the path cannot be used.
pub fn listen_for_control(path: &Path, handle: ProxyHandle) -> Result<ControlSocket, OperationError> {
    if UnixStream::connect(path).is_ok() {
        let hint = "stop that one first, or choose another --control";
        return Err(OperationError::machine(format_args!("{}: a proxy is running already", path.display()))
            .hint(hint));
    }
    let listener = bind(path).map_err(|error| {
        OperationError::machine(format_args!("{}: {error}", path.display()))
            .hint("run as root, or choose another --control")
    })?;
    // One thread answers one request after the other; it ends with the process.
    std::thread::spawn(move || {
        for stream in listener.incoming().flatten() {
            let _ = answer(&stream, &handle);
        }
    });
    Ok(ControlSocket(path.to_owned()))
}

fn bind(path: &Path) -> std::io::Result<UnixListener> {
    if let Some(folder) = path.parent() {
        std::fs::create_dir_all(folder)?;
    }
    // A proxy that crashed has left its socket, at which nobody listens.
    let _ = std::fs::remove_file(path);
    let listener = UnixListener::bind(path)?;
    std::fs::set_permissions(path, PermissionsExt::from_mode(0o600))?;
    Ok(listener)
}

fn answer(stream: &UnixStream, handle: &ProxyHandle) -> std::io::Result<()> {
    stream.set_read_timeout(Some(TIMEOUT))?;
    stream.set_write_timeout(Some(TIMEOUT))?;
    let mut text = String::new();
    BufReader::new(stream.take(REQUEST_BYTES_MAX)).read_line(&mut text)?;
    let reply = match serve_request(&text, handle) {
        Ok(reply) => reply,
        Err(OperationError { message, hint, .. }) => {
            ControlReply::Error { message, hint: hint.unwrap_or_default() }
        }
    };
    let mut stream = stream;
    let reply = serde_json::to_string(&reply).expect("a reply is plain data");
    stream.write_all((reply + "\n").as_bytes())
}

fn serve_request(text: &str, handle: &ProxyHandle) -> Result<ControlReply, OperationError> {
    let request = serde_json::from_str(text).map_err(|error| {
        OperationError::input(format_args!("an order that cannot be read: {error}")).hint("docs/proxy.md")
    })?;
    match request {
        ControlRequest::Apply { policy, hosts } => {
            let deployment = Deployment::parse(&hosts)?;
            handle.configure(policy.map(|policy| *policy), Some(deployment)).map(drop)?;
            Ok(ControlReply::Done)
        }
        ControlRequest::Status => handle.status().map(ControlReply::Status),
    }
}

/// Gives the proxy that listens at `path` another policy, or none, and the text of a hosts file.
///
/// # Errors
/// When no proxy listens there, or it refuses policy or hosts file.
pub fn send_policy(path: &Path, policy: Option<&Policy>, hosts: String) -> Result<(), OperationError> {
    let request = ControlRequest::Apply { policy: policy.cloned().map(Box::new), hosts };
    match exchange(path, &request)? {
        ControlReply::Error { message, hint } => Err(OperationError::input(message).hint(hint)),
        ControlReply::Done | ControlReply::Status(_) => Ok(()),
    }
}

/// The counters of the proxy that listens at `path`.
///
/// # Errors
/// When no proxy listens there.
pub fn query_status(path: &Path) -> Result<ProxySnapshot, OperationError> {
    match exchange(path, &ControlRequest::Status)? {
        ControlReply::Status(snapshot) => Ok(snapshot),
        ControlReply::Error { message, hint } => Err(OperationError::machine(message).hint(hint)),
        ControlReply::Done => Err(proxy_ended()),
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
