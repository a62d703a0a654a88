//! nfs-ganesha as Debian has it, with its portmapper, and the namespaces in which it has its ports and folders to itself.

use crate::{connect_when_ready, program, skip};
use std::net::TcpStream;
use std::process::{Child, Command, Stdio};

/// Set in the second run, inside of the namespaces.
const INSIDE: &str = "TAILWRIGHT_TEST_IN_NAMESPACES";
const SET_UP: &str = "ip link set lo up && mount -t tmpfs tmpfs /run \
    && mkdir -p /run/rpcbind /run/export/folder /run/gold /var/lib/nfs \
    && mount -t tmpfs tmpfs /var/lib/nfs && mkdir -p /var/lib/nfs/ganesha";
/// The port of the portmapper in the namespaces.
pub const PORTMAP_PORT: u16 = 111;
/// The port of MOUNT in the namespaces.
pub const MOUNT_PORT: u16 = 20_048;
/// The port of NFS in the namespaces.
pub const NFS_PORT: u16 = 2049;

/// Access for all clients of an export.
pub const FOR_EVERYBODY: &str = "Access_Type = RW;";

/// The PID namespace of the processes inside.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ProcessNumbers {
    /// The machine's, as programs in the kernel report them.
    Machine,
    /// Their own: all processes end with the first one.
    Own,
}

/// A test that runs itself again in namespaces of a network and of mounts.
#[derive(Debug)]
pub struct NamespacedTest<'a> {
    /// Its name in its program.
    pub name: &'a str,
    /// The PID namespace of its processes.
    pub processes: ProcessNumbers,
    /// Programs that it takes besides the servers.
    pub programs: &'a [&'a str],
    /// A shell command that runs first inside, after loopback and the folders of the servers exist.
    pub set_up: &'a str,
}

impl NamespacedTest<'_> {
    /// Runs the test inside. Skips with a message without root or the programs.
    ///
    /// # Panics
    /// When the test fails inside.
    pub fn run(&self, inside: impl FnOnce()) {
        if std::env::var_os(INSIDE).is_some() {
            let set_up = [SET_UP, self.set_up].join(" && ");
            let set_up = Command::new("sh").args(["-ec", &set_up]).status().expect("there is a shell");
            assert!(set_up.success(), "the namespaces are set up");
            return inside();
        }
        let needed = ["ganesha.nfsd", "rpcbind", "unshare", "ip"];
        if !needed.iter().chain(self.programs).all(|name| program(name).is_some()) {
            return;
        }
        if !self.unshare().arg("true").stderr(Stdio::null()).status().is_ok_and(|status| status.success()) {
            return skip("namespaces need root");
        }
        let itself = std::env::current_exe().expect("a test has a path");
        let mut again = self.unshare();
        again.arg(itself).args(["--exact", self.name, "--nocapture"]).env(INSIDE, "1");
        let output = again.output().expect("unshare runs");
        let said = [output.stdout, output.stderr].concat();
        let said = String::from_utf8_lossy(&said);
        assert!(output.status.success(), "{said}");
        println!("{said}");
    }

    fn unshare(&self) -> Command {
        let mut command = Command::new("unshare");
        command.args(["--net", "--mount"]);
        if self.processes == ProcessNumbers::Own {
            command.args(["--pid", "--fork", "--kill-child", "--mount-proc"]);
        }
        command
    }
}

/// An export of a folder below `/run` in the configuration of the server, with `access` as its
/// permissions.
pub fn nfs_export(id: u32, path: &str, access: &str) -> String {
    format!(
        "EXPORT {{ Export_Id = {id}; Path = /run{path}; Pseudo = {path}; Squash = none; SecType = sys; {access}\n\
         Protocols = 3, 4; Transports = TCP; FSAL {{ Name = VFS; }} }}\n"
    )
}

fn core_parameters(address: Option<&str>) -> String {
    let bind = address.map_or_else(String::new, |address| format!("Bind_addr = {address};"));
    format!(
        "NFS_CORE_PARAM {{ NFS_Port = {NFS_PORT}; MNT_Port = {MOUNT_PORT}; NLM_Port = 0; Enable_NLM = false;\n\
         Enable_RQUOTA = false; Protocols = 3, 4; mount_path_pseudo = true; {bind} }}\n\
         NFSV4 {{ Graceless = true; }}\n"
    )
}

/// An NFS server with MOUNT and a portmapper, inside of namespaces. All end with the value.
#[derive(Debug)]
pub struct GaneshaServer {
    ganesha: Child,
    rpcbind: Child,
}

impl GaneshaServer {
    /// Starts a server with these exports; it listens at `address`, or at all addresses if `None`.
    ///
    /// # Panics
    /// When it cannot be started, or ends.
    pub fn start(address: Option<&str>, exports: &[String]) -> Self {
        let configuration = core_parameters(address) + &exports.concat();
        std::fs::write("/run/ganesha.conf", configuration).expect("the folder is ours");
        let mut rpcbind = server("rpcbind", &["-f"]);
        drop(connected(PORTMAP_PORT, &mut rpcbind));
        let log = ["-F", "-f", "/run/ganesha.conf", "-L", "/run/ganesha.log", "-p", "/run/ganesha.pid"];
        let mut ganesha = server("ganesha.nfsd", &log);
        drop(connected(NFS_PORT, &mut ganesha));
        drop(connected(MOUNT_PORT, &mut ganesha));
        Self { ganesha, rpcbind }
    }

    /// A connection to one of its ports.
    ///
    /// # Panics
    /// When the server has ended.
    pub fn connect(&mut self, port: u16) -> TcpStream {
        let server = if port == PORTMAP_PORT { &mut self.rpcbind } else { &mut self.ganesha };
        connected(port, server)
    }

    /// Checks that it still runs.
    ///
    /// # Panics
    /// When it has ended.
    pub fn check_runs(&mut self) {
        assert!(self.ganesha.try_wait().expect("a child can be asked").is_none(), "the server ended");
    }
}

impl Drop for GaneshaServer {
    fn drop(&mut self) {
        let _ = (self.ganesha.kill(), self.rpcbind.kill(), self.ganesha.wait(), self.rpcbind.wait());
    }
}

fn server(name: &str, args: &[&str]) -> Child {
    let mut command = Command::new(program(name).expect("looked for outside"));
    command.args(args).stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    command.spawn().unwrap_or_else(|error| panic!("{name}: {error}"))
}

fn connected(port: u16, server: &mut Child) -> TcpStream {
    connect_when_ready(server, || TcpStream::connect(("127.0.0.1", port)))
}
