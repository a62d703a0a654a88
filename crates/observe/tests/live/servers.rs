//! Servers as Debian has them, on free ports, and a server with a client in network namespaces of their own.
#![allow(dead_code, reason = "tests and the benchmark use their parts")]

use machine::virtual_network::VirtualNetwork;
use std::net::{IpAddr, Ipv4Addr, SocketAddr, TcpStream};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};
use tempfile::TempDir;

/// A server that ends with the value.
pub(crate) struct RunningServer {
    child: Child,
    pub(crate) port: u16,
    _folder: Option<TempDir>,
}

impl RunningServer {
    /// CPU time that the server has used, in ticks of the kernel.
    pub(crate) fn cpu_ticks(&self) -> u64 {
        let stat =
            std::fs::read_to_string(format!("/proc/{}/stat", self.child.id())).expect("the server runs");
        let (_, after_name) = stat.rsplit_once(')').expect("the name is in parentheses");
        // utime and stime, fields 14 and 15.
        after_name.split_whitespace().skip(11).take(2).filter_map(|field| field.parse::<u64>().ok()).sum()
    }
}

impl RunningServer {
    /// Sends the server a signal.
    pub(crate) fn signal(&self, name: &str) {
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
pub(crate) fn memcached(threads: usize) -> Option<RunningServer> {
    testkit::program("memcached")?;
    let port = testkit::free_address().port();
    let mut command = Command::new("memcached");
    command.args(["-l", "127.0.0.1,::1"]);
    Some(start_memcached(command, port, threads))
}

/// memcached on some CPUs.
pub(crate) fn pinned_memcached(threads: usize, cpus: &str) -> Option<RunningServer> {
    testkit::program("memcached")?;
    testkit::program("taskset")?;
    let port = testkit::free_address().port();
    let mut command = Command::new("taskset");
    command.args(["-c", cpus, "memcached", "-l", "127.0.0.1"]);
    Some(start_memcached(command, port, threads))
}

fn start_memcached(mut command: Command, port: u16, threads: usize) -> RunningServer {
    let port_text = port.to_string();
    command.args(["-u", "nobody", "-p", &port_text, "-U", &port_text, "-t", &threads.to_string()]);
    let mut child = command.stderr(Stdio::null()).spawn().expect("memcached starts");
    if command.get_program() != "ip" {
        testkit::connect_when_ready(&mut child, || TcpStream::connect((Ipv4Addr::LOCALHOST, port)));
    }
    RunningServer { child, port, _folder: None }
}

/// nginx with two workers and a page of 20,000 bytes, and `/up`, which reads bodies; `None` where it is not installed.
pub(crate) fn nginx() -> Option<RunningServer> {
    testkit::program("nginx")?;
    let folder = tempfile::tempdir().expect("a temporary folder can be made");
    let port = testkit::free_address().port();
    let place = folder.path().display();
    let temporary = |what: &str| format!("{what}_temp_path {place}/{what};");
    let paths: String = ["client_body", "proxy", "fastcgi", "uwsgi", "scgi"].map(temporary).concat();
    let configuration = format!(
        "worker_processes 2; pid {place}/pid; error_log {place}/error; daemon off; user root;\n\
         events {{ worker_connections 64; }}\n\
         http {{ access_log off; keepalive_requests 100000; {paths}\n\
         server {{ listen 127.0.0.1:{port}; listen [::1]:{port}; root {place};\n\
         location /up {{ proxy_pass http://unix:{place}/behind:/index.html; proxy_method GET; }} }}\n\
         server {{ listen unix:{place}/behind; root {place}; }} }}\n"
    );
    let write = |name: &str, text: &[u8]| {
        std::fs::write(folder.path().join(name), text).expect("files can be written");
    };
    write("nginx.conf", configuration.as_bytes());
    write("index.html", &[b'x'; 20_000]);
    let mut child =
        Command::new("nginx").arg("-c").arg(folder.path().join("nginx.conf")).spawn().expect("nginx starts");
    testkit::connect_when_ready(&mut child, || TcpStream::connect((Ipv4Addr::LOCALHOST, port)));
    Some(RunningServer { child, port, _folder: Some(folder) })
}

/// nbdkit with 1 MiB of memory that takes its time to read, and none to write; `None` where it is not installed.
pub(crate) fn slow_reading_nbdkit() -> Option<RunningServer> {
    testkit::program("nbdkit")?;
    let port = testkit::free_address().port();
    let mut command = Command::new("nbdkit");
    command.args(["-f", "-i", "127.0.0.1", "-p", &port.to_string()]);
    command.args(["--filter=delay", "memory", "1M", "rdelay=2ms"]);
    let mut child = command.stdin(Stdio::null()).spawn().expect("nbdkit starts");
    testkit::connect_when_ready(&mut child, || TcpStream::connect((Ipv4Addr::LOCALHOST, port)));
    Some(RunningServer { child, port, _folder: None })
}

/// Two hosts of a virtual network.
pub(crate) struct ServerAndClient(VirtualNetwork);

impl ServerAndClient {
    /// `None`, loudly, where networks cannot be made.
    pub(crate) fn create() -> Option<Self> {
        static NEXT: AtomicU32 = AtomicU32::new(0);
        testkit::program("ip")?;
        let prefix = format!("two-{}-{}", std::process::id(), NEXT.fetch_add(1, Ordering::Relaxed));
        match VirtualNetwork::create(run, &prefix, &["server", "client"]) {
            Ok(network) => Some(Self(network)),
            Err(error) => {
                testkit::skip(&format!("network namespaces cannot be made: {error}"));
                None
            }
        }
    }

    pub(crate) fn client(&self) -> &str {
        &self.0.host("client").expect("it was made").netns
    }

    pub(crate) fn addresses(&self, port: u16) -> [SocketAddr; 2] {
        let server = self.0.host("server").expect("it was made");
        [IpAddr::V4(server.ipv4), IpAddr::V6(server.ipv6)].map(|address| SocketAddr::new(address, port))
    }

    /// The receive work of the server's device is done by these CPUs, a mask; false where that is refused.
    pub(crate) fn receive_on_cpus(&self, mask: &str) -> bool {
        let netns = &self.0.host("server").expect("it was made").netns;
        let write = format!("echo {mask} > /sys/class/net/eth0/queues/rx-0/rps_cpus");
        let status = Command::new("ip").args(["netns", "exec", netns, "sh", "-c", &write]).status();
        status.is_ok_and(|status| status.success())
    }

    /// memcached on the server.
    pub(crate) fn memcached(&self) -> Option<RunningServer> {
        self.start_memcached(&["memcached"])
    }

    /// memcached on the server and on some CPUs.
    pub(crate) fn pinned_memcached(&self, cpus: &str) -> Option<RunningServer> {
        testkit::program("taskset")?;
        self.start_memcached(&["taskset", "-c", cpus, "memcached"])
    }

    fn start_memcached(&self, program: &[&str]) -> Option<RunningServer> {
        testkit::program("memcached")?;
        let netns = &self.0.host("server").expect("it was made").netns;
        let mut command = Command::new("ip");
        command.args(["netns", "exec", netns]).args(program);
        let mut server = start_memcached(command, 11211, 2);
        let address = self.addresses(server.port)[0];
        let client = self.client();
        std::thread::scope(|scope| {
            let child = &mut server.child;
            scope.spawn(move || {
                machine::netns::enter(client).unwrap_or_else(|error| panic!("{error}"));
                testkit::connect_when_ready(child, || TcpStream::connect(address));
            });
        });
        Some(server)
    }
}

impl Drop for ServerAndClient {
    fn drop(&mut self) {
        let _ = self.0.remove(run);
    }
}

/// Runs a command line with standard input.
fn run(line: &str, input: Option<&str>) -> Result<String, String> {
    let mut words = line.split_whitespace();
    let mut command = Command::new(words.next().expect("a command has a name"));
    command.args(words);
    let file = tempfile::NamedTempFile::new().map_err(|error| error.to_string())?;
    std::fs::write(file.path(), input.unwrap_or_default()).map_err(|error| error.to_string())?;
    command.stdin(open(file.path())?);
    let output = command.output().map_err(|error| format!("{line}: {error}"))?;
    if output.status.success() {
        Ok(String::from_utf8_lossy(&output.stdout).into_owned())
    } else {
        Err(format!("{line}: {}", String::from_utf8_lossy(&output.stderr)))
    }
}

fn open(path: &Path) -> Result<std::fs::File, String> {
    std::fs::File::open(path).map_err(|error| error.to_string())
}
