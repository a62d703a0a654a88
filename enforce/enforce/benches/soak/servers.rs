//! Real servers that can be restarted, and proxies in separate processes.

use crate::codec::Protocol;
use crate::world::{Fronts, World, count};
use std::net::TcpStream;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::atomic::Ordering::SeqCst;
use std::time::{Duration, Instant};

/// Set in a proxy process: the folder of its hosts file and its control socket.
pub const PROXY: &str = "TAILWRIGHT_SOAK_PROXY";

const GANESHA: &str = "
NFS_CORE_PARAM { NFS_Port = 2049; MNT_Port = 20048; NLM_Port = 0; Enable_NLM = false; Enable_RQUOTA = false;
    Protocols = 3, 4; mount_path_pseudo = true; Bind_addr = 127.0.0.1; }
NFSV4 { Graceless = true; }
EXPORT { Export_Id = 1; Path = /run/export; Pseudo = /export; Access_Type = RW; Squash = none; SecType = sys;
    Protocols = 3, 4; Transports = TCP; FSAL { Name = VFS; } }
";

/// A process that is killed on drop.
pub struct Process(Child);

impl Drop for Process {
    fn drop(&mut self) {
        let _ = (self.0.kill(), self.0.wait());
    }
}

impl Process {
    pub fn id(&self) -> u32 {
        self.0.id()
    }

    /// Asks the process to end, and waits.
    fn end(&mut self, time: Duration) -> bool {
        drop(self.0.stdin.take());
        let begun = Instant::now();
        while begun.elapsed() < time {
            if self.0.try_wait().is_ok_and(|ended| ended.is_some()) {
                return true;
            }
            std::thread::sleep(Duration::from_millis(20));
        }
        false
    }
}

fn spawn(program: &Path, args: &[&str]) -> Process {
    let mut command = Command::new(program);
    command.args(args).stdin(Stdio::null()).stdout(Stdio::null());
    Process(command.spawn().unwrap_or_else(|error| panic!("{}: {error}", program.display())))
}

pub struct Servers {
    programs: Vec<(Protocol, PathBuf)>,
    running: Vec<Option<Process>>,
    image: PathBuf,
    _portmap: Option<Process>,
}

impl Servers {
    /// Starts the installed servers; NFS only in a namespace.
    pub fn start(folder: &Path, world: &World, in_namespace: bool) -> Self {
        let image = folder.join("image");
        std::fs::File::create(&image).and_then(|file| file.set_len(64 << 20)).expect("a folder to write in");
        let mut programs: Vec<(Protocol, PathBuf)> = Vec::new();
        programs.extend(testkit::program("nbdkit").map(|path| (Protocol::Nbd, path)));
        programs.extend(testkit::program("memcached").map(|path| (Protocol::Memcached, path)));
        let mut portmap = None;
        if let (true, Some(ganesha), Some(rpcbind)) =
            (in_namespace, testkit::program("ganesha.nfsd"), testkit::program("rpcbind"))
        {
            std::fs::write("/run/ganesha.conf", GANESHA).expect("/run is of this namespace");
            portmap = Some(spawn(&rpcbind, &["-f"]));
            programs.push((Protocol::Nfs, ganesha));
        }
        let mut servers = Self { running: vec![None, None, None], programs, image, _portmap: portmap };
        for protocol in servers.protocols() {
            servers.run(protocol, world);
        }
        servers
    }

    pub fn protocols(&self) -> Vec<Protocol> {
        self.programs.iter().map(|(protocol, _)| *protocol).collect()
    }

    /// Starts a server; it listens when this returns.
    fn run(&mut self, protocol: Protocol, world: &World) {
        let (_, path) = self.programs.iter().find(|(of, _)| *of == protocol).expect("one that is installed");
        let image = self.image.to_string_lossy();
        let address = world.servers.of(protocol);
        let port = address.port().to_string();
        let args: Vec<&str> = match protocol {
            Protocol::Nbd => vec!["-f", "-i", "127.0.0.1", "-p", &port, "-t", "1", "file", &image],
            Protocol::Memcached => {
                vec![
                    "-u",
                    "root",
                    "-l",
                    "127.0.0.1",
                    "-p",
                    &port,
                    "-U",
                    "0",
                    "-t",
                    "2",
                    "-m",
                    "1024",
                    "-I",
                    "8m",
                ]
            }
            Protocol::Nfs => {
                vec!["-F", "-f", "/run/ganesha.conf", "-L", "/run/ganesha.log", "-p", "/run/ganesha.pid"]
            }
        };
        let process = spawn(path, &args);
        let listens = |address| TcpStream::connect(address).is_ok();
        while !listens(address) || (protocol == Protocol::Nfs && !listens(world.servers.mount)) {
            std::thread::sleep(Duration::from_millis(20));
        }
        self.running[protocol as usize] = Some(process);
    }

    /// Reports servers that have ended by themselves.
    pub fn check(&mut self, world: &World) {
        for (protocol, _) in &self.programs {
            let process = self.running[*protocol as usize].as_mut().expect("it was started");
            if let Ok(Some(status)) = process.0.try_wait() {
                world.error(format!("{}: the server has ended by itself: {status}", protocol.name()));
            }
        }
    }

    /// Restarts servers that have ended. nbdkit asks the kernel to end it together with the thread that
    /// started it (`PR_SET_PDEATHSIG`), and the thread that restarts servers has ended by now.
    pub fn revive(&mut self, world: &World) {
        for protocol in self.protocols() {
            let process = self.running[protocol as usize].as_mut().expect("it was started");
            if let Ok(Some(status)) = process.0.try_wait() {
                eprintln!("soak: {} had ended: {status}", protocol.name());
                self.run(protocol, world);
            }
        }
    }

    /// Kills a server and restarts it. Acknowledged data is in a file, except that of memcached.
    pub fn again(&mut self, protocol: Protocol, world: &World) {
        let turns = &world.server_turns[protocol as usize];
        turns.fetch_add(1, SeqCst);
        drop(self.running[protocol as usize].take());
        self.run(protocol, world);
        turns.fetch_add(1, SeqCst);
        count(&world.tally.servers, 1);
    }
}

/// A proxy, its folder, and its addresses.
pub struct ProxyProcess {
    folder: PathBuf,
    process: Option<Process>,
    fronts: Fronts,
}

impl ProxyProcess {
    pub fn start(folder: PathBuf, hosts: &str, fronts: Fronts) -> Self {
        std::fs::create_dir_all(&folder).expect("a folder to write in");
        std::fs::write(folder.join("hosts"), hosts).expect("a folder to write in");
        let mut proxy = Self { folder, process: None, fronts };
        proxy.run();
        proxy
    }

    fn run(&mut self) {
        let itself = std::env::current_exe().expect("a program has a path");
        let log = std::fs::File::options().create(true).append(true).open(self.folder.join("log"));
        let mut command = Command::new(itself);
        command.env(PROXY, &self.folder).stdin(Stdio::piped()).stdout(Stdio::null());
        command.stderr(log.expect("a folder to write in"));
        self.process = Some(Process(command.spawn().expect("it starts itself")));
        while TcpStream::connect(self.fronts.memcached).is_err() {
            std::thread::sleep(Duration::from_millis(10));
        }
    }

    pub fn socket(&self) -> PathBuf {
        self.folder.join("control")
    }

    /// Ends the proxy, at once or after answering outstanding requests, and restarts it.
    pub fn again(&mut self, drained: bool, number: usize, world: &World) {
        let turns = &world.proxy_turns[number];
        turns.fetch_add(1, SeqCst);
        let mut process = self.process.take().expect("it runs");
        if drained && !process.end(Duration::from_secs(15)) {
            world.error("a proxy that was to drain did not end".to_owned());
        }
        drop(process);
        self.run();
        turns.fetch_add(1, SeqCst);
        count(&world.tally.proxies, 1);
    }

    /// Returns true if the process still runs.
    pub fn lives(&mut self) -> bool {
        self.process.as_mut().is_some_and(|process| process.0.try_wait().is_ok_and(|ended| ended.is_none()))
    }

    /// Returns its resident memory, KiB.
    pub fn resident(&self) -> Option<u64> {
        let id = self.process.as_ref()?.id();
        let status = std::fs::read_to_string(format!("/proc/{id}/status")).ok()?;
        let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"))?;
        line.trim().trim_end_matches(" kB").parse().ok()
    }
}
