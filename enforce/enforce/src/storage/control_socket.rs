//! Control of a running proxy by other processes through a Unix socket. Request and reply are one line of
//! JSON each.

use super::configurator::{ConfiguredPolicy, PolicyOrigin, ProxyConfigurator};
use super::control::proxy_ended;
use super::handover::VERSION;
use super::statistics::{ProxiedWorkload, ProxyMetrics, ProxySnapshot};
use super::take_over::{self, TakeOver};
use crate::state_folder::StateFolder;
use model::{OperationError, Policy};
use rustix::event::{EventfdFlags, PollFd, PollFlags, eventfd, poll};
use rustix::fd::OwnedFd;
use rustix::net::sockopt::{Timeout, set_socket_timeout};
use rustix::net::{AddressFamily, SocketAddrUnix, SocketFlags, SocketType};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::collections::VecDeque;
use std::io::{BufRead, BufReader, ErrorKind, Read, Write};
use std::net::Shutdown;
use std::os::unix::fs::PermissionsExt;
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;
use workload::live::{CurveMark, CurveReport};

/// Maximum length of a request, bytes; enough for a policy of a hundred thousand workloads.
const REQUEST_BYTES_MAX: u64 = 64 << 20;
/// Timeout of reads and writes of both sides, with room for such a policy.
const TIMEOUT: Duration = Duration::from_secs(10);

/// Maximum number of clients whose requests are not complete; a further one ends the oldest.
const SILENT_MAX: usize = 16;

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
    /// Report the counters with distributions.
    Observe,
    /// Report burst curves of what clients send, after those that the reader has.
    Curves {
        after: Option<CurveMark>,
    },
    /// Take over, by this version of the conversation.
    TakeOver {
        version: u32,
    },
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

/// Counters of a running proxy that another process adds up.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ProxyObservation {
    /// Identity of the counters: with another one they have begun at zero.
    pub counters: String,
    /// Number of requests in the queue.
    pub waiting: u64,
    /// Number of requests outstanding at the server's device.
    pub outstanding: u64,
    pub workloads: Vec<ObservedTraffic>,
}

/// Counters of a workload with the distribution of its latencies.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ObservedTraffic {
    #[serde(flatten)]
    pub counted: ProxiedWorkload,
    /// Numbers of reads and writes by the time from their arrival to their reply. Each pair is the upper end of a
    /// bucket in nanoseconds (`None` for the last) and the number in it alone. Empty buckets are left out.
    pub latencies: Vec<(Option<u64>, u64)>,
}

impl From<ProxyMetrics> for ProxyObservation {
    fn from(metrics: ProxyMetrics) -> Self {
        let ProxyMetrics { counters, snapshot, times } = metrics;
        let workload = |counted: ProxiedWorkload| {
            let times = times.iter().find(|times| times.workload == counted.workload);
            let latencies = times.map_or_else(Vec::new, |times| times.answered.filled_buckets().collect());
            ObservedTraffic { counted, latencies }
        };
        Self {
            counters,
            waiting: snapshot.waiting,
            outstanding: snapshot.outstanding,
            workloads: snapshot.workloads.into_iter().map(workload).collect(),
        }
    }
}

/// A reply on the socket.
#[derive(Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
enum ControlReply {
    /// The configuration is enforced; true if the rules have changed.
    Done(bool),
    Checked(Box<ProxyCheck>),
    Status(Box<ProxyStatus>),
    Observed(Box<ProxyObservation>),
    Curves(Box<CurveReport>),
    Error {
        message: String,
        hint: String,
    },
}

/// Path of a listening socket. Dropping the value removes the socket, unless another process has taken it over.
#[derive(Debug)]
pub struct ControlSocket {
    path: PathBuf,
    passed_on: Arc<PassedOn>,
}

impl Drop for ControlSocket {
    fn drop(&mut self) {
        if !self.passed_on.is_set.load(Ordering::SeqCst) {
            let _ = std::fs::remove_file(&self.path);
        }
    }
}

/// Tells the thread that accepts clients that another process does so now.
#[derive(Debug)]
struct PassedOn {
    is_set: AtomicBool,
    /// Readable once it is set.
    event: OwnedFd,
}

impl PassedOn {
    fn new() -> Result<Arc<Self>, OperationError> {
        let event = eventfd(0, EventfdFlags::CLOEXEC).map_err(|error| {
            OperationError::machine(format_args!("eventfd: {error}")).hint("raise the limit of open files")
        })?;
        Ok(Arc::new(Self { is_set: AtomicBool::new(false), event }))
    }

    fn set(&self) {
        self.is_set.store(true, Ordering::SeqCst);
        let _ = rustix::io::write(&self.event, &1u64.to_ne_bytes());
    }

    /// Accepts the next client; `None` once another process does so.
    fn accept(&self, listener: &UnixListener) -> Option<UnixStream> {
        loop {
            let mut awaited = [PollFd::new(listener, PollFlags::IN), PollFd::new(&self.event, PollFlags::IN)];
            let _ = poll(&mut awaited, None);
            if self.is_set.load(Ordering::SeqCst) {
                return None;
            }
            // It does not block: another process may have accepted the client.
            if let Ok((stream, _)) = listener.accept()
                && stream.set_nonblocking(false).is_ok()
            {
                return Some(stream);
            }
        }
    }
}

/// Returns the default path of the socket of the proxy in front of a server.
pub fn control_path(folder: &Path, server: &str) -> PathBuf {
    folder.join(format!("proxy-{server}.sock"))
}

/// Returns true if a proxy may listen at `path`. Errors such as a missing permission count as true; the next
/// request reports them.
pub fn is_listening(path: &Path) -> bool {
    let error = connect(path).err().map(|error| error.kind());
    !matches!(error, Some(ErrorKind::NotFound | ErrorKind::ConnectionRefused))
}

/// Listens for requests to a proxy at `path`, which only the proxy's user may open.
///
/// # Errors
/// If another proxy listens there, or the path cannot be used.
pub fn listen_for_control(path: &Path, proxy: ProxyConfigurator) -> Result<ControlSocket, OperationError> {
    // A proxy that is stopped accepts no client in time.
    if connect(path).map_or_else(|error| error.kind() == ErrorKind::WouldBlock, |_| true) {
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
    serve_control(path, listener, proxy)
}

/// Serves the control socket at `path`, on a thread of its own.
fn serve_control(
    path: &Path,
    listener: UnixListener,
    proxy: ProxyConfigurator,
) -> Result<ControlSocket, OperationError> {
    listener.set_nonblocking(true).map_err(|error| {
        OperationError::machine(format_args!("{}: {error}", path.display())).hint("choose another --control")
    })?;
    let passed_on = PassedOn::new()?;
    let passes = Arc::clone(&passed_on);
    std::thread::spawn(move || serve_clients(&listener, &proxy, &passes));
    Ok(ControlSocket { path: path.to_owned(), passed_on })
}

/// Begins to take over from the proxy that listens at `path`, which serves until [`Proxy::take_over`].
///
/// # Errors
/// If no proxy listens there, or it does not hand over.
///
/// [`Proxy::take_over`]: super::Proxy::take_over
pub fn take_over(path: &Path) -> Result<TakeOver, OperationError> {
    let mut stream = connect(path).map_err(|error| no_answer(path, &error))?;
    let request = ControlRequest::TakeOver { version: VERSION };
    let text = serde_json::to_string(&request).expect("a request is plain data");
    stream.write_all((text + "\n").as_bytes()).map_err(|error| no_answer(path, &error))?;
    TakeOver::begin(stream)
}

/// Serves the control socket of another proxy at `path`, after it has been taken over.
///
/// # Errors
/// If the process may open no more files.
pub fn serve_taken_control(
    path: &Path,
    mut from: TakeOver,
    proxy: ProxyConfigurator,
) -> Result<ControlSocket, OperationError> {
    let listener = from.take_control().ok_or_else(proxy_ended)?;
    serve_control(path, listener, proxy)
}

/// Serves clients until the process exits, each on a thread of its own: one that says nothing delays no other.
fn serve_clients(listener: &UnixListener, proxy: &ProxyConfigurator, passed_on: &Arc<PassedOn>) {
    // Clients whose requests are not complete, the oldest first.
    let silent: Arc<Mutex<VecDeque<(u64, UnixStream)>>> = Arc::default();
    let streams = std::iter::from_fn(|| passed_on.accept(listener));
    for (number, stream) in (0..).zip(streams) {
        let Ok(handle) = stream.try_clone() else { continue };
        let Ok(own) = listener.try_clone() else { continue };
        let passed_on = Arc::clone(passed_on);
        let mut waiting = silent.lock().unwrap_or_else(PoisonError::into_inner);
        if waiting.len() >= SILENT_MAX
            && let Some((_, oldest)) = waiting.pop_front()
        {
            // Its thread reads the end of the stream.
            let _ = oldest.shutdown(Shutdown::Both);
        }
        waiting.push_back((number, handle));
        drop(waiting);
        let silent = Arc::clone(&silent);
        let proxy = proxy.clone();
        std::thread::spawn(move || {
            let request = read_request(&stream);
            silent.lock().unwrap_or_else(PoisonError::into_inner).retain(|(other, _)| *other != number);
            let Ok(request) = request else { return };
            if let Ok(ControlRequest::TakeOver { version }) = serde_json::from_str(&request) {
                // A proxy that has just begun takes the lock of its configuration before it serves.
                let shared = proxy.handle().listeners();
                // No other policy meanwhile: the new proxy has not read the present one yet.
                proxy.keeping(|| {
                    take_over::serve(&stream, version, shared, proxy.handle(), &own, || passed_on.set());
                });
                return;
            }
            let _ = answer(&stream, &request, &proxy);
        });
    }
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

fn read_request(stream: &UnixStream) -> std::io::Result<String> {
    stream.set_read_timeout(Some(TIMEOUT))?;
    stream.set_write_timeout(Some(TIMEOUT))?;
    let mut text = String::new();
    BufReader::new(stream.take(REQUEST_BYTES_MAX)).read_line(&mut text)?;
    Ok(text)
}

fn answer(stream: &UnixStream, request: &str, proxy: &ProxyConfigurator) -> std::io::Result<()> {
    let reply = match serve_request(request, proxy) {
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
        ControlRequest::Observe => Ok(ControlReply::Observed(Box::new(proxy.handle().metrics()?.into()))),
        ControlRequest::Curves { after } => Ok(ControlReply::Curves(Box::new(proxy.handle().curves(after)?))),
        ControlRequest::TakeOver { .. } => Err(proxy_ended()),
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
pub fn check_policy(
    path: &Path,
    policy: Option<&Policy>,
    hosts: String,
) -> Result<ProxyCheck, OperationError> {
    let request = ControlRequest::Check { policy: policy.cloned().map(Box::new), hosts };
    match exchange(path, &request)? {
        ControlReply::Checked(check) => Ok(*check),
        ControlReply::Error { message, hint } => Err(OperationError::input(message).hint(hint)),
        _ => Err(proxy_ended()),
    }
}

/// Restores the configuration that an earlier check of the proxy at `path` reported.
///
/// # Errors
/// If no proxy listens there, or it refuses the configuration.
pub fn restore_policy(path: &Path, before: ConfiguredPolicy) -> Result<bool, OperationError> {
    done(exchange(path, &ControlRequest::Restore(Box::new(before)))?)
}

fn done(reply: ControlReply) -> Result<bool, OperationError> {
    match reply {
        ControlReply::Done(is_change) => Ok(is_change),
        ControlReply::Error { message, hint } => Err(OperationError::input(message).hint(hint)),
        _ => Err(proxy_ended()),
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
        _ => Err(proxy_ended()),
    }
}

/// Returns the counters of the proxy that listens at `path`, with distributions.
///
/// # Errors
/// If no proxy listens there, or it is of a version without this question.
pub fn query_observation(path: &Path) -> Result<ProxyObservation, OperationError> {
    match exchange(path, &ControlRequest::Observe)? {
        ControlReply::Observed(observation) => Ok(*observation),
        ControlReply::Error { message, hint } => Err(OperationError::machine(message).hint(hint)),
        _ => Err(proxy_ended()),
    }
}

/// Returns burst curves of what clients of the proxy that listens at `path` send, after those that the reader has.
///
/// # Errors
/// If no proxy listens there, or it is of a version without this question.
pub fn query_curves(path: &Path, after: Option<CurveMark>) -> Result<CurveReport, OperationError> {
    match exchange(path, &ControlRequest::Curves { after })? {
        ControlReply::Curves(curves) => Ok(*curves),
        ControlReply::Error { message, hint } => Err(OperationError::machine(message).hint(hint)),
        _ => Err(proxy_ended()),
    }
}

fn exchange(path: &Path, request: &ControlRequest) -> Result<ControlReply, OperationError> {
    let text = serde_json::to_string(request).expect("a request is plain data");
    send_and_receive(path, text).map_err(|error| no_answer(path, &error))
}

fn no_answer(path: &Path, error: &std::io::Error) -> OperationError {
    match error.kind() {
        ErrorKind::WouldBlock | ErrorKind::TimedOut => OperationError::machine(format_args!(
            "the proxy at {} does not answer within {} s",
            path.display(),
            TIMEOUT.as_secs()
        ))
        .hint("its process may be stopped (kill -CONT) or overloaded"),
        _ => OperationError::machine(format_args!("no proxy answers at {}: {error}", path.display()))
            .hint("start it there: tailwright proxy --help"),
    }
}

/// Connects within [`TIMEOUT`], which is also that of later reads and writes. A stopped proxy accepts no client,
/// and connecting would wait for it once the listener's backlog is full.
fn connect(path: &Path) -> std::io::Result<UnixStream> {
    let flags = SocketFlags::CLOEXEC;
    let socket = rustix::net::socket_with(AddressFamily::UNIX, SocketType::STREAM, flags, None)?;
    for kind in [Timeout::Send, Timeout::Recv] {
        set_socket_timeout(&socket, kind, Some(TIMEOUT))?;
    }
    rustix::net::connect(&socket, &SocketAddrUnix::new(path)?)?;
    Ok(UnixStream::from(socket))
}

fn send_and_receive(path: &Path, text: String) -> std::io::Result<ControlReply> {
    let mut stream = connect(path)?;
    stream.write_all((text + "\n").as_bytes())?;
    let mut reply = String::new();
    BufReader::new(stream).read_line(&mut reply)?;
    Ok(serde_json::from_str(&reply)?)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::deployment::Deployment;
    use crate::storage::{Proxy, ProxyOptions};
    use std::time::Instant;
    use workload::device::StorageProfile;

    const PROFILE: &str = r#"{ "bandwidthTable": [
        { "requestSize": 512, "readBandwidth": 4096000, "writeBandwidth": 4096000 } ] }"#;

    #[test]
    fn clients_that_say_nothing_delay_no_other() {
        let any = std::net::SocketAddr::from(([127, 0, 0, 1], 0));
        let hosts = testkit::one_server_hosts(&[("memcached", any, any)], "", "");
        let deployment = Deployment::parse(&hosts).expect("a hosts file");
        let profile = StorageProfile::from_json(PROFILE).expect("a profile");
        let options = ProxyOptions::new("ssd", deployment, None, profile);
        let proxy = Proxy::bind(options.clone()).expect("a free address");
        let handle = proxy.handle();
        let current = ConfiguredPolicy { policy: None, hosts, origin: PolicyOrigin::Files };
        let configurator =
            ProxyConfigurator::new(proxy.handle(), &options, current, None).expect("a configuration");
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("proxy.sock");
        let _socket = listen_for_control(&path, configurator).expect("a socket");
        let running = std::thread::spawn(move || proxy.run());
        let begun = Instant::now();
        let mut silent: Vec<UnixStream> =
            (0..SILENT_MAX + 4).map(|_| UnixStream::connect(&path).expect("it listens")).collect();
        assert_eq!(query_status(&path).expect("it answers").snapshot.connections, 0);
        assert!(begun.elapsed() < TIMEOUT, "it waited for a silent client");
        // The oldest silent clients were ended for the latest.
        assert_eq!(silent[0].read(&mut [0]).expect("an end"), 0);
        handle.stop();
        running.join().expect("no panic").expect("it ran");
    }

    #[test]
    fn a_proxy_that_accepts_no_client_is_an_error() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("proxy.sock");
        let listener = UnixListener::bind(&path).expect("a socket");
        let error = query_status(&path).expect_err("nothing answers");
        assert!(error.message.contains("does not answer within"), "{}", error.message);
        drop(listener);
    }
}
