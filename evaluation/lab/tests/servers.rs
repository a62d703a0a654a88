//! Real servers in namespaces: they answer clients, say why they do not start, and leave nothing when they end.

use enforce::command::{CommandRunner, Programs, SystemCommand, may_configure_networks};
use lab::servers::{
    HttpServer, LabService, MemcachedServer, NbdkitServer, NfsServer, ServerEnvironment, ServerLifetime,
    ServerProcess, is_running, may_be_realtime, started_at,
};
use machine::virtual_network::VirtualNetwork;
use std::io::{Read, Write};
use std::net::{Ipv4Addr, SocketAddr, TcpStream};
use std::process::Stdio;
use tempfile::TempDir;
use units::Bytes;

/// A host with a folder for its servers.
struct TestHosts {
    lab: VirtualNetwork,
    folder: TempDir,
}

impl TestHosts {
    /// `None`, after a loud skip, where the machine does not allow it.
    fn new(name: &str) -> Option<Self> {
        if !may_configure_networks() {
            testkit::skip("namespaces need root");
            return None;
        }
        let prefix = format!("tl{}{name}", std::process::id());
        let lab = match VirtualNetwork::create(
            |line, input| Programs.run_line(line, input),
            &prefix,
            &["client", "store"],
        ) {
            Ok(lab) => lab,
            Err(error) => {
                testkit::skip(&format!("no network namespaces here: {error}"));
                return None;
            }
        };
        let folder = tempfile::tempdir().expect("a temporary folder");
        Some(Self { lab, folder })
    }

    fn environment(&self) -> ServerEnvironment {
        let netns = Some(self.netns("store").to_owned());
        let realtime = may_be_realtime().then_some(5);
        ServerEnvironment {
            netns,
            folder: self.folder.path().to_owned(),
            realtime,
            lifetime: ServerLifetime::WithStarter,
        }
    }

    fn netns(&self, host: &str) -> &str {
        &self.lab.host(host).expect("a host").netns
    }

    fn start(&self, service: &LabService) -> ServerProcess {
        ServerProcess::start(service.name(), service, &self.environment())
            .unwrap_or_else(|error| panic!("{error}"))
    }

    /// Processes on the host of the servers.
    fn processes(&self) -> usize {
        let pids = Programs.run(&SystemCommand::new(&format!("ip netns pids {}", self.netns("store"))));
        pids.expect("the namespace is there").lines().count()
    }

    /// Sends a text from the other host and returns the answer.
    fn ask(&self, port: u16, text: &str, until: &str) -> String {
        let netns = self.netns("client");
        let store = self.lab.host("store").expect("a host").ipv4;
        std::thread::scope(|scope| {
            let asked = scope.spawn(|| {
                machine::netns::enter(netns).unwrap();
                let mut stream = TcpStream::connect((store, port)).unwrap();
                stream.write_all(text.as_bytes()).unwrap();
                let mut said = String::new();
                let mut piece = [0; 4096];
                while !said.contains(until) {
                    let read = stream.read(&mut piece).unwrap();
                    assert!(read > 0, "the server hung up after {said}");
                    said += &String::from_utf8_lossy(&piece[..read]);
                }
                said
            });
            asked.join().unwrap()
        })
    }

    /// Runs a program on the other host and returns its output.
    fn run(&self, program: &str, args: &[&str]) -> Vec<u8> {
        let path = testkit::program(program).expect("looked for before");
        let mut command = std::process::Command::new("ip");
        command.args(["netns", "exec", self.netns("client")]).arg(path).args(args).stdin(Stdio::null());
        let output = command.output().expect("ip runs");
        assert!(output.status.success(), "{program}: {}", String::from_utf8_lossy(&output.stderr));
        output.stdout
    }
}

impl Drop for TestHosts {
    fn drop(&mut self) {
        let down = self.lab.remove(|line, input| Programs.run_line(line, input));
        if !std::thread::panicking() {
            down.expect("the namespaces are removed");
        }
    }
}

fn everywhere(port: u16) -> SocketAddr {
    SocketAddr::new(Ipv4Addr::UNSPECIFIED.into(), port)
}

/// Locates, starts and queries a server, which must leave no process.
fn lives(
    name: &str,
    program: &str,
    service: &LabService,
    check: impl FnOnce(&TestHosts, &mut ServerProcess),
) {
    if testkit::program(program).is_none() {
        return;
    }
    let Some(hosts) = TestHosts::new(name) else { return };
    let mut running = hosts.start(service);
    assert!(running.is_alive() && hosts.processes() > 1);
    check(&hosts, &mut running);
    drop(running);
    assert_eq!(hosts.processes(), 0, "nothing is left");
}

#[test]
fn memcached() {
    let service = LabService::Memcached(MemcachedServer {
        address: everywhere(11211),
        memory: Bytes(16 << 20),
        threads: 1,
    });
    lives("m", "memcached", &service, |hosts, _| {
        assert!(hosts.ask(11211, "set k 0 0 2\r\nhi\r\nget k\r\n", "END").contains("hi"));
    });
}

#[test]
fn nbdkit() {
    let service = LabService::Nbd(NbdkitServer { address: everywhere(10809), size: Bytes(5 << 20) });
    lives("n", "nbdkit", &service, |hosts, _| {
        if testkit::program("nbdinfo").is_some() {
            let host = hosts.lab.host("store").unwrap().ipv4;
            let size = hosts.run("nbdinfo", &["--size", &service.uri(host.into())]);
            assert_eq!(String::from_utf8_lossy(&size).trim(), (5 << 20).to_string());
        }
    });
}

#[test]
fn nginx() {
    let files = vec![("small".to_owned(), Bytes(1000))];
    let service = LabService::Http(HttpServer { address: everywhere(8080), files });
    if lab::programs::find("nginx").is_err() {
        return testkit::skip("nginx is not installed (Debian package nginx-light)");
    }
    let Some(hosts) = TestHosts::new("h") else { return };
    let running = hosts.start(&service);
    let said = hosts.ask(8080, "GET /small HTTP/1.1\r\nHost: x\r\n\r\n", "Length: 1000");
    assert!(said.starts_with("HTTP/1.1 200"), "{said}");
    drop(running);
    assert_eq!(hosts.processes(), 0);
}

#[test]
fn nfs() {
    if testkit::program("rpcbind").is_none() || testkit::program("nfs-ls").is_none() {
        return;
    }
    let bind = Ipv4Addr::UNSPECIFIED.into();
    let service = LabService::Nfs(NfsServer { bind, port: 2049, mount_port: 20048, memory: Bytes(64 << 20) });
    lives("f", "ganesha.nfsd", &service, |hosts, _| {
        let host = hosts.lab.host("store").unwrap().ipv4;
        // The portmapper tells where MOUNT is.
        let root = format!("nfs://{host}/export?version=3");
        assert!(hosts.run("nfs-ls", &[&root]).is_empty(), "an empty export");
        let here = hosts.folder.path().join("here");
        let there = format!("nfs://{host}/export/file?version=3");
        std::fs::write(&here, "content").unwrap();
        let copy = testkit::program("nfs-ls").unwrap().with_file_name("nfs-cp");
        let netns = hosts.netns("client");
        let mut command = std::process::Command::new("ip");
        let copied =
            command.args(["netns", "exec", netns]).arg(copy).arg(&here).arg(&there).output().unwrap();
        assert!(copied.status.success(), "{}", String::from_utf8_lossy(&copied.stderr));
        let listed = hosts.run("nfs-ls", &[&root]);
        assert!(String::from_utf8_lossy(&listed).contains("file"), "{}", String::from_utf8_lossy(&listed));
    });
}

#[test]
fn a_server_that_does_not_start_says_why() {
    let Some(hosts) = TestHosts::new("w") else { return };
    if testkit::program("memcached").is_none() {
        return;
    }
    // An address that the host does not have.
    let address = "192.0.2.1:11211".parse().unwrap();
    let service = LabService::Memcached(MemcachedServer { address, memory: Bytes(1 << 20), threads: 1 });
    let error = ServerProcess::start("memcached", &service, &hosts.environment())
        .expect_err("it cannot listen there");
    assert!(error.message.contains("ended at once") && error.message.contains("\n  "), "{error}");
    assert_eq!(hosts.processes(), 0);
}

/// Set in the process that is to die: the namespace and the folder of its server.
const DOOMED: &str = "TAILWRIGHT_LAB_TEST_DOOMED";
const DOOMED_FOLDER: &str = "TAILWRIGHT_LAB_TEST_DOOMED_FOLDER";

#[test]
fn servers_die_with_whoever_started_them() {
    if testkit::program("memcached").is_none() {
        return;
    }
    if let Some(netns) = std::env::var_os(DOOMED) {
        let netns = netns.into_string().unwrap();
        let folder = std::env::var_os(DOOMED_FOLDER).expect("it is set with the namespace").into();
        let address = "127.0.0.1:11300".parse().unwrap();
        let environment = ServerEnvironment {
            netns: Some(netns),
            folder,
            realtime: None,
            lifetime: ServerLifetime::WithStarter,
        };
        let service = LabService::Memcached(MemcachedServer { address, memory: Bytes(1 << 20), threads: 1 });
        let running = ServerProcess::start("memcached", &service, &environment)
            .unwrap_or_else(|error| panic!("{error}"));
        println!("\npid {} {}", running.pid(), started_at(running.pid()).unwrap());
        std::process::abort();
    }
    let Some(hosts) = TestHosts::new("d") else { return };
    let itself = std::env::current_exe().unwrap();
    let args = ["--exact", "servers_die_with_whoever_started_them", "--nocapture"];
    let output = std::process::Command::new(itself)
        .args(args)
        .env(DOOMED, hosts.netns("store"))
        .env(DOOMED_FOLDER, hosts.folder.path())
        .output()
        .unwrap();
    let said = String::from_utf8_lossy(&output.stdout);
    let line =
        said.lines().find_map(|line| line.strip_prefix("pid ")).unwrap_or_else(|| panic!("{output:?}"));
    let (pid, started) = line.split_once(' ').unwrap();
    let pid = pid.parse().unwrap();
    let started = started.parse().unwrap();
    assert!(!output.status.success());
    // The kernel signals the servers at once, but their end takes time.
    testkit::wait_until(std::time::Duration::from_secs(60), "the servers are gone", || {
        !is_running(pid, started) && hosts.processes() == 0
    });
}
