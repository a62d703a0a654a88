//! Servers of Debian packages on free ports of loopback, for the lifetime of a value.

use crate::{connect_when_ready, free_address, program};
use std::net::{Ipv4Addr, TcpStream};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use tempfile::TempDir;

/// A server that ends with the value.
#[derive(Debug)]
pub struct RunningServer {
    child: Child,
    port: u16,
    /// Its configuration and files, if it has any.
    folder: Option<TempDir>,
}

impl RunningServer {
    /// Wraps a server that was just started at this port, with the folder of its files. It may not listen
    /// yet.
    pub fn new(child: Child, port: u16, folder: Option<TempDir>) -> Self {
        Self { child, port, folder }
    }

    /// The port that it listens at.
    pub fn port(&self) -> u16 {
        self.port
    }

    /// The folder of its files, where it has one.
    pub fn folder(&self) -> Option<&Path> {
        self.folder.as_ref().map(TempDir::path)
    }

    /// Returns the process of the server, for example to check that it still runs.
    pub fn child(&mut self) -> &mut Child {
        &mut self.child
    }

    /// The number of its first process (PID).
    pub fn id(&self) -> u32 {
        self.child.id()
    }

    /// The numbers of its processes: the first one, and those that this one has started and that still run.
    pub fn process_ids(&self) -> Vec<u32> {
        let id = self.child.id();
        let children = std::fs::read_to_string(format!("/proc/{id}/task/{id}/children")).unwrap_or_default();
        [id].into_iter().chain(children.split_whitespace().filter_map(|id| id.parse().ok())).collect()
    }

    /// CPU time that its first process has used, in ticks of the kernel.
    ///
    /// # Panics
    /// When the server has ended.
    pub fn cpu_ticks(&self) -> u64 {
        let stat =
            std::fs::read_to_string(format!("/proc/{}/stat", self.child.id())).expect("the server runs");
        let (_, after_name) = stat.rsplit_once(')').expect("the name is in parentheses");
        // utime and stime, fields 14 and 15.
        after_name.split_whitespace().skip(11).take(2).filter_map(|field| field.parse::<u64>().ok()).sum()
    }

    /// Sends the server a signal, by its name.
    ///
    /// # Panics
    /// When that is refused.
    pub fn signal(&self, name: &str) {
        let sent = Command::new("kill").args(["-s", name, &self.child.id().to_string()]).status();
        assert!(sent.is_ok_and(|status| status.success()), "a signal can be sent");
    }
}

impl Drop for RunningServer {
    fn drop(&mut self) {
        // nginx has workers, which end with their master when it may end itself.
        let _ = Command::new("kill").arg(self.child.id().to_string()).status();
        let _ = self.child.wait();
    }
}

/// memcached with this many threads, over TCP and UDP, IPv4 and IPv6; `None` where it is not installed.
///
/// # Panics
/// When it does not start.
pub fn memcached(threads: usize) -> Option<RunningServer> {
    program("memcached")?;
    let mut command = Command::new("memcached");
    command.args(["-l", "127.0.0.1,::1"]);
    Some(start_memcached(command, threads))
}

/// memcached on some CPUs, as `taskset` names them; `None` where it is not installed.
///
/// # Panics
/// When it does not start.
pub fn pinned_memcached(threads: usize, cpus: &str) -> Option<RunningServer> {
    program("memcached")?;
    program("taskset")?;
    let mut command = Command::new("taskset");
    command.args(["-c", cpus, "memcached", "-l", "127.0.0.1"]);
    Some(start_memcached(command, threads))
}

fn start_memcached(mut command: Command, threads: usize) -> RunningServer {
    let port = free_address().port();
    command.args(memcached_arguments(port, threads));
    started(command.stderr(Stdio::null()), port, None)
}

/// The arguments of memcached for a port by TCP and UDP, and a number of threads.
pub(crate) fn memcached_arguments(port: u16, threads: usize) -> Vec<String> {
    let port = port.to_string();
    let threads = threads.to_string();
    ["-u", "nobody", "-p", &port, "-U", &port, "-t", &threads].map(str::to_owned).to_vec()
}

/// Starts a server at a port of loopback and waits until it accepts connections.
fn started(command: &mut Command, port: u16, folder: Option<TempDir>) -> RunningServer {
    let name = command.get_program().display().to_string();
    let child = command.spawn().unwrap_or_else(|error| panic!("{name} starts: {error}"));
    let mut server = RunningServer::new(child, port, folder);
    connect_when_ready(server.child(), || TcpStream::connect((Ipv4Addr::LOCALHOST, port)));
    server
}

/// nginx with two workers and a page of 20,000 bytes, and `/up`, which reads bodies; `None` where it is not installed.
///
/// # Panics
/// When it does not start.
pub fn nginx() -> Option<RunningServer> {
    program("nginx")?;
    let port = free_address().port();
    let site = |place: &str| {
        format!(
            "server {{ listen 127.0.0.1:{port}; listen [::1]:{port}; root {place};\n\
             location /up {{ proxy_pass http://unix:{place}/behind:/index.html; proxy_method GET; }} }}\n\
             server {{ listen unix:{place}/behind; root {place}; }}"
        )
    };
    let folder = nginx_folder(2, site, &[("index.html", &[b'x'; 20_000])]);
    let configuration = folder.path().join("nginx.conf");
    Some(started(Command::new("nginx").arg("-c").arg(configuration), port, Some(folder)))
}

/// A folder with the configuration of nginx, `nginx.conf`, for a number of workers and the sites that `sites` gives for
/// the path of the folder, and with files by name.
///
/// # Panics
/// When it cannot be written.
pub fn nginx_folder(workers: usize, sites: impl Fn(&str) -> String, files: &[(&str, &[u8])]) -> TempDir {
    let folder = tempfile::tempdir().expect("a temporary folder can be made");
    let place = folder.path().display().to_string();
    let temporary = |what: &str| format!("{what}_temp_path {place}/{what};");
    let paths: String = ["client_body", "proxy", "fastcgi", "uwsgi", "scgi"].map(temporary).concat();
    let configuration = format!(
        "worker_processes {workers}; pid {place}/pid; error_log {place}/error; daemon off; user root;\n\
         events {{ worker_connections 256; }}\n\
         http {{ access_log off; keepalive_requests 10000000; {paths}\n{} }}\n",
        sites(&place)
    );
    let configuration = ("nginx.conf", configuration.as_bytes());
    for (name, text) in files.iter().copied().chain([configuration]) {
        std::fs::write(folder.path().join(name), text).expect("files can be written");
    }
    folder
}

/// nbdkit with 1 MiB of memory that takes its time to read, and none to write; `None` where it is not installed.
///
/// # Panics
/// When it does not start.
pub fn slow_reading_nbdkit() -> Option<RunningServer> {
    program("nbdkit")?;
    let port = free_address().port();
    let mut command = Command::new("nbdkit");
    command.args(["-f", "-i", "127.0.0.1", "-p", &port.to_string()]);
    command.args(["--filter=delay", "memory", "1M", "rdelay=2ms"]);
    Some(started(command.stdin(Stdio::null()), port, None))
}
