//! A real NFS server with its portmapper, in a network namespace of its own. A test runs itself again inside the
//! namespace, and needs root for that.

#![allow(unreachable_pub, dead_code, reason = "several tests share it, and none uses all")]

use std::net::TcpStream;
use std::process::{Child, Command, Stdio};

/// Set in the second run, inside the namespace.
const INSIDE: &str = "TAILWRIGHT_WIRE_TEST_IN_NAMESPACE";
const SET_UP: &str = "ip link set lo up && mount -t tmpfs tmpfs /run && mkdir -p /run/rpcbind /run/export /var/lib/nfs \
    && mount -t tmpfs tmpfs /var/lib/nfs && mkdir -p /var/lib/nfs/ganesha";
const CONFIGURATION: &str = "
NFS_CORE_PARAM { NFS_Port = 2049; MNT_Port = 20048; NLM_Port = 0; Enable_NLM = false; Enable_RQUOTA = false;
    Protocols = 3, 4; mount_path_pseudo = true; }
NFSV4 { Graceless = true; }
EXPORT { Export_Id = 1; Path = /run/export; Pseudo = /export; Access_Type = RW; Squash = none; SecType = sys;
    Protocols = 3, 4; Transports = TCP; FSAL { Name = VFS; } }
";

/// Runs a test's `inside` in a namespace, by running the test of this name there.
pub fn in_a_namespace(test: &str, inside: impl FnOnce(&mut NfsServer)) {
    if std::env::var_os(INSIDE).is_some() {
        return inside(&mut NfsServer::start());
    }
    if !["ganesha.nfsd", "rpcbind", "nfs-ls"].into_iter().all(|name| testkit::program(name).is_some()) {
        return;
    }
    let unshare = |command: &mut Command| {
        command.args(["--net", "--mount", "--pid", "--fork", "--kill-child", "--mount-proc"]);
    };
    let mut probe = Command::new("unshare");
    unshare(&mut probe);
    if !probe.arg("true").stderr(Stdio::null()).status().is_ok_and(|status| status.success()) {
        return testkit::skip("namespaces need root and `unshare`");
    }
    let mut again = Command::new("unshare");
    unshare(&mut again);
    let itself = std::env::current_exe().expect("a test has a path");
    let output = again.arg(itself).args(["--exact", test, "--nocapture"]).env(INSIDE, "1").output();
    let output = output.expect("unshare runs");
    let said = [output.stdout, output.stderr].concat();
    let said = String::from_utf8_lossy(&said);
    assert!(output.status.success(), "{said}");
    println!("{said}");
}

/// An NFS server with MOUNT and a portmapper. Both end with the namespace.
pub struct NfsServer {
    ganesha: Child,
    rpcbind: Child,
}

impl NfsServer {
    fn start() -> Self {
        let set_up = Command::new("sh").args(["-c", SET_UP]).status().expect("a shell");
        assert!(set_up.success(), "the namespace is set up");
        std::fs::write("/run/ganesha.conf", CONFIGURATION).unwrap();
        let mut rpcbind = server("rpcbind", &["-f"]);
        drop(connect(111, &mut rpcbind));
        let log = ["-F", "-f", "/run/ganesha.conf", "-L", "/run/ganesha.log", "-p", "/run/ganesha.pid"];
        let mut ganesha = server("ganesha.nfsd", &log);
        drop(connect(2049, &mut ganesha));
        Self { ganesha, rpcbind }
    }

    pub fn connect_portmap(&mut self) -> TcpStream {
        connect(111, &mut self.rpcbind)
    }

    pub fn connect_mount(&mut self) -> TcpStream {
        connect(20048, &mut self.ganesha)
    }

    pub fn connect_nfs(&mut self) -> TcpStream {
        connect(2049, &mut self.ganesha)
    }

    /// Panics if the server has ended.
    pub fn check_runs(&mut self) {
        assert!(self.ganesha.try_wait().expect("a child can be asked").is_none(), "the server ended");
    }
}

impl Drop for NfsServer {
    fn drop(&mut self) {
        let _ = (self.ganesha.kill(), self.rpcbind.kill(), self.ganesha.wait(), self.rpcbind.wait());
    }
}

fn server(name: &str, args: &[&str]) -> Child {
    let program = testkit::program(name).expect("looked for outside");
    Command::new(program)
        .args(args)
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .spawn()
        .expect("a server starts")
}

fn connect(port: u16, server: &mut Child) -> TcpStream {
    testkit::connect_when_ready(server, || TcpStream::connect(("127.0.0.1", port)))
}
