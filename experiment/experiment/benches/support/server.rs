//! The servers of the papers, and their start for a period.

use load::LoadTarget;
use model::OperationError;
use std::net::{SocketAddr, TcpListener};
use std::os::unix::fs::PermissionsExt as _;
use std::time::Duration;
use testkit::live_servers::{RunningServer, nginx_folder};
use testkit::null_rpc::NullRpcServer;
use testkit::{ServerAndClient, program};

/// First argument of this program to run as a null RPC server.
const NULL_RPC: &str = "--null-rpc";
/// Ports, which are free in a namespace of its own.
const NULL_RPC_PORT: u16 = 7007;
const MEMCACHED_PORT: u16 = 11211;
const HTTP_PORT: u16 = 80;
/// The bytes of a null RPC and of its answer (section 3.1.1).
const REQUEST_BYTES: usize = 128;
/// 48 characters, with which a request has the 85 bytes of *Tales of the Tail*, section 3.1.3.
const PAGE: &str = "a-static-page-with-a-name-of-48-characters.html";
/// With the head that nginx writes, an answer has the paper's 849 bytes.
const PAGE_BYTES: usize = 610;

/// A server and its parameters.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ServerKind {
    /// The null RPC server of *Tales of the Tail*.
    NullRpc(NullRpcServer),
    /// memcached by TCP or UDP, with this many threads and further arguments.
    Memcached { udp: bool, threads: usize, arguments: &'static [&'static str] },
    /// nginx with this many workers.
    Nginx { workers: usize },
    /// apache2 with threads and processes (mpm_event).
    Apache,
}

/// A server and its CPUs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct ServerPlan {
    /// Name in tables.
    pub(crate) name: &'static str,
    pub(crate) kind: ServerKind,
    /// The CPUs that it may use, as `taskset` names them.
    pub(crate) cpus: &'static str,
}

impl ServerPlan {
    /// On the server's CPU alone.
    pub(crate) fn on_one_cpu(name: &'static str, kind: ServerKind) -> Self {
        Self { name, kind, cpus: "0" }
    }

    /// The port that it listens at.
    pub(crate) fn port(&self) -> u16 {
        match self.kind {
            ServerKind::NullRpc(_) => NULL_RPC_PORT,
            ServerKind::Memcached { .. } => MEMCACHED_PORT,
            ServerKind::Nginx { .. } | ServerKind::Apache => HTTP_PORT,
        }
    }

    /// Returns true if the machine has all programs; prints those that are missing.
    pub(crate) fn is_installed(&self) -> bool {
        let name = match self.kind {
            ServerKind::NullRpc(_) => "taskset",
            ServerKind::Memcached { .. } => "memcached",
            ServerKind::Nginx { .. } => "nginx",
            ServerKind::Apache => "apache2",
        };
        program("taskset").is_some() && program(name).is_some()
    }

    /// Starts it, and waits until it accepts connections.
    pub(crate) fn start(&self, network: &ServerAndClient) -> RunningServer {
        let mut line = vec!["taskset".to_owned(), "-c".to_owned(), self.cpus.to_owned()];
        let mut folder = None;
        match self.kind {
            ServerKind::NullRpc(server) => line.extend(null_rpc_line(server)),
            ServerKind::Memcached { threads, arguments, .. } => {
                let port = MEMCACHED_PORT.to_string();
                let threads = threads.to_string();
                let first = ["memcached", "-u", "nobody", "-p", &port, "-U", &port, "-t", &threads];
                line.extend(first.iter().chain(arguments).map(|word| (*word).to_owned()));
            }
            ServerKind::Nginx { workers } => {
                let site = |place: &str| {
                    format!("default_type text/plain; server {{ listen {HTTP_PORT}; root {place}; }}")
                };
                let made = nginx_folder(workers, site, &[(PAGE, &[b'x'; PAGE_BYTES])]);
                let configuration = made.path().join("nginx.conf").display().to_string();
                line.extend(["nginx".to_owned(), "-c".to_owned(), configuration]);
                folder = Some(made);
            }
            ServerKind::Apache => {
                let made = apache_folder();
                let configuration = made.path().join("apache.conf").display().to_string();
                line.extend(["apache2", "-f", &configuration, "-DFOREGROUND"].map(str::to_owned));
                folder = Some(made);
            }
        }
        let words: Vec<&str> = line.iter().map(String::as_str).collect();
        network.start(&words, self.port(), folder)
    }

    /// Returns the target of the load.
    pub(crate) fn target(&self, address: SocketAddr) -> LoadTarget {
        let text = match self.kind {
            ServerKind::NullRpc(_) => format!("echo://{address}"),
            ServerKind::Memcached { udp: false, .. } => format!("memcached://{address}?key_size=64"),
            ServerKind::Memcached { udp: true, .. } => format!("memcached+udp://{address}?key_size=64"),
            ServerKind::Nginx { .. } | ServerKind::Apache => format!("http://{address}/{PAGE}"),
        };
        text.parse().unwrap_or_else(|error| panic!("{text}: {error}"))
    }

    /// The share of reads among its requests, and their size in bytes: 90 % of 1,024-byte values, or 128 bytes, or pages.
    pub(crate) fn mix(&self) -> (f64, u64) {
        match self.kind {
            ServerKind::NullRpc(_) => (1.0, REQUEST_BYTES as u64),
            ServerKind::Memcached { .. } => (0.9, 1024),
            ServerKind::Nginx { .. } | ServerKind::Apache => (1.0, 610),
        }
    }
}

/// A null RPC server that reads one request at a time.
pub(crate) fn null_rpc(threads: Option<usize>, work: Duration) -> NullRpcServer {
    NullRpcServer { threads, work, read_bytes: REQUEST_BYTES }
}

fn null_rpc_line(server: NullRpcServer) -> Vec<String> {
    let itself = std::env::current_exe().expect("a program has a path").display().to_string();
    let threads = server.threads.unwrap_or(0).to_string();
    let work = server.work.as_nanos().to_string();
    vec![itself, NULL_RPC.to_owned(), NULL_RPC_PORT.to_string(), threads, work]
}

/// Is a null RPC server, if that is what this program was started for; otherwise nothing.
pub(crate) fn serve_null_rpc_if_asked() -> Result<(), OperationError> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [first, port, threads, work] = arguments.as_slice() else { return Ok(()) };
    if first != NULL_RPC {
        return Ok(());
    }
    let number = |text: &String| text.parse::<u64>().map_err(OperationError::input);
    let threads = usize::try_from(number(threads)?).ok().filter(|threads| *threads > 0);
    let server = null_rpc(threads, Duration::from_nanos(number(work)?));
    let port = u16::try_from(number(port)?).map_err(OperationError::input)?;
    let listener = TcpListener::bind(("0.0.0.0", port)).map_err(OperationError::machine)?;
    server.serve(&listener).map_err(OperationError::machine)?;
    std::process::exit(0)
}

/// A folder with a page and the configuration of apache2, `apache.conf`.
fn apache_folder() -> tempfile::TempDir {
    let folder = tempfile::tempdir().expect("a temporary folder can be made");
    let place = folder.path().display();
    let modules = "/usr/lib/apache2/modules";
    let configuration = format!(
        "ServerRoot {place}\nServerName server\nPidFile {place}/pid\nErrorLog {place}/error\nListen {HTTP_PORT}\n\
         LoadModule mpm_event_module {modules}/mod_mpm_event.so\n\
         LoadModule authz_core_module {modules}/mod_authz_core.so\n\
         StartServers 2\nThreadsPerChild 32\nMaxRequestWorkers 64\nMinSpareThreads 64\nMaxSpareThreads 64\n\
         KeepAlive On\nMaxKeepAliveRequests 0\nKeepAliveTimeout 60\nUser nobody\nGroup nogroup\n\
         DocumentRoot {place}\n<Directory {place}>\nRequire all granted\n</Directory>\n"
    );
    let write = |name: &str, text: &[u8]| {
        std::fs::write(folder.path().join(name), text).expect("files can be written");
    };
    write("apache.conf", configuration.as_bytes());
    write(PAGE, &[b'x'; PAGE_BYTES]);
    let readable = std::fs::Permissions::from_mode(0o755);
    std::fs::set_permissions(folder.path(), readable).expect("it is ours");
    folder
}
