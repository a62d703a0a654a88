//! nfs-ganesha in namespaces of its own, at the loopback address, and clients that have several addresses of the host.
//! A test runs itself again inside the namespaces. It needs root for that.

#![allow(dead_code, unreachable_pub, reason = "several test programs use parts of it")]

use rustix::net::{AddressFamily, SocketFlags, SocketType, bind, connect, socket_with};
use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::process::{Child, Command, Stdio};
use std::time::Duration;
use wire::rpc::MOUNT;
use wire::rpc::client::{CallEncoder, Credentials, StableHow};
use wire::rpc::decode::{self, CallError};

/// Set in the second run, inside the namespaces.
const INSIDE: &str = "TAILWRIGHT_ENFORCE_TEST_IN_NAMESPACE";
const SET_UP: &str = "ip link set lo up && ip link add v0 type veth peer name v1 && ip link set v0 up && ip link set v1 up \
    && for n in 1 2 3 4; do ip addr add 10.99.0.$n/24 dev v0 || exit 1; done \
    && mount -t tmpfs tmpfs /run && mkdir -p /run/rpcbind /run/export/folder /run/gold /var/lib/nfs \
    && mount -t tmpfs tmpfs /var/lib/nfs && mkdir -p /var/lib/nfs/ganesha";
const CORE: &str = "
NFS_CORE_PARAM { NFS_Port = 2049; MNT_Port = 20048; NLM_Port = 0; Enable_NLM = false; Enable_RQUOTA = false;
    Protocols = 3, 4; mount_path_pseudo = true; Bind_addr = 127.0.0.1; }
NFSV4 { Graceless = true; }
";

/// An export of ganesha for everybody, or with these further fields.
pub fn export(id: u32, path: &str, access: &str) -> String {
    format!(
        "EXPORT {{ Export_Id = {id}; Path = /run{path}; Pseudo = {path}; Squash = none; SecType = sys; {access}\n\
         Protocols = 3, 4; Transports = TCP; FSAL {{ Name = VFS; }} }}\n"
    )
}

pub const FOR_EVERYBODY: &str = "Access_Type = RW;";

/// Runs the test of this name again in namespaces of its own, and there its body. Nothing without root or the programs.
pub fn in_namespaces(test: &str, programs: &[&str], body: impl FnOnce()) {
    if std::env::var_os(INSIDE).is_some() {
        let set_up = Command::new("sh").args(["-c", SET_UP]).status().expect("a shell");
        assert!(set_up.success(), "the namespace is set up");
        return body();
    }
    let is_there = |name: &&str| testkit::program(name).is_some();
    if !["ganesha.nfsd", "rpcbind"].iter().chain(programs).all(is_there) {
        return;
    }
    let unshare = || {
        let mut command = Command::new("unshare");
        command.args(["--net", "--mount", "--pid", "--fork", "--kill-child", "--mount-proc"]);
        command
    };
    if !unshare().arg("true").stderr(Stdio::null()).status().is_ok_and(|status| status.success()) {
        return testkit::skip("namespaces need root and `unshare`");
    }
    let itself = std::env::current_exe().expect("a test has a path");
    let arguments = ["--exact", test, "--nocapture"];
    let output = unshare().arg(itself).args(arguments).env(INSIDE, "1").output().expect("unshare runs");
    let said = [output.stdout, output.stderr].concat();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&said));
}

/// A server that ends with the namespaces, or with this.
pub struct Ganesha {
    rpcbind: Child,
    ganesha: Child,
}

impl Ganesha {
    /// With these exports, whose folders are made; it listens when this returns.
    pub fn start(exports: &[String]) -> Self {
        std::fs::write("/run/ganesha.conf", CORE.to_owned() + &exports.concat()).expect("a file");
        let mut rpcbind = program("rpcbind", &["-f"]);
        await_port(111, &mut rpcbind);
        let log = ["-F", "-f", "/run/ganesha.conf", "-L", "/run/ganesha.log", "-p", "/run/ganesha.pid"];
        let mut ganesha = program("ganesha.nfsd", &log);
        await_port(2049, &mut ganesha);
        await_port(20048, &mut ganesha);
        // It listens before it registers.
        while mount_port() == 0 {
            assert!(ganesha.try_wait().expect("a child can be asked").is_none(), "the server ended");
        }
        assert_eq!(mount_port(), 20048);
        Self { rpcbind, ganesha }
    }
}

impl Drop for Ganesha {
    fn drop(&mut self) {
        let _ = (self.ganesha.kill(), self.rpcbind.kill(), self.ganesha.wait(), self.rpcbind.wait());
    }
}

fn program(name: &str, args: &[&str]) -> Child {
    let program = testkit::program(name).expect("looked for outside");
    let mut command = Command::new(program);
    command.args(args).stdin(Stdio::null()).stdout(Stdio::null()).spawn().expect("a server starts")
}

fn await_port(port: u16, server: &mut Child) {
    while TcpStream::connect(("127.0.0.1", port)).is_err() {
        std::thread::yield_now();
        let ended = server.try_wait().expect("a child can be asked");
        assert!(ended.is_none(), "the server ended: {ended:?}");
    }
}

/// Where the portmapper says that MOUNT is; 0 as long as it is not registered.
fn mount_port() -> u32 {
    let mut portmapper = RpcClient(from("127.0.0.1", "127.0.0.1", 111));
    portmapper.send(Credentials::None, |call| call.getport(1, MOUNT, 3));
    decode::getport(&portmapper.reply()).unwrap()
}

/// A connection from an address of the host.
pub fn from(address: &str, to: &str, port: u16) -> TcpStream {
    let socket = socket_with(AddressFamily::INET, SocketType::STREAM, SocketFlags::CLOEXEC, None).unwrap();
    bind(&socket, &SocketAddr::new(address.parse().unwrap(), 0)).unwrap();
    connect(&socket, &SocketAddr::new(to.parse().unwrap(), port)).unwrap();
    let stream = TcpStream::from(socket);
    stream.set_read_timeout(Some(Duration::from_secs(60))).expect("only so that a test that fails ends");
    stream
}

pub const ROOT: Credentials<'_> = Credentials::Unix { machine: "tests", uid: 0, gid: 0 };
pub const NOBODY: Credentials<'_> = Credentials::Unix { machine: "tests", uid: 1000, gid: 1000 };

/// A connection on which calls are made.
pub struct RpcClient(pub TcpStream);

impl RpcClient {
    /// To the proxy's NFS, from an address.
    pub fn nfs(address: &str) -> Self {
        Self(from(address, "10.99.0.1", 2049))
    }

    /// To the proxy's MOUNT, from an address.
    pub fn mountd(address: &str) -> Self {
        Self(from(address, "10.99.0.1", 20048))
    }

    pub fn send(&mut self, who: Credentials<'_>, encode: impl FnOnce(&mut CallEncoder<'_>)) {
        let mut call = Vec::new();
        encode(&mut CallEncoder::new(&mut call, who));
        self.0.write_all(&call).expect("the proxy reads");
    }

    /// The body of the next reply.
    pub fn reply(&mut self) -> Vec<u8> {
        let mut reply = vec![0; 4];
        self.0.read_exact(&mut reply).expect("a reply");
        let len = u32::from_be_bytes(reply[..].try_into().unwrap()) & 0x7fff_ffff;
        reply.resize(4 + len as usize, 0);
        self.0.read_exact(&mut reply[4..]).expect("the rest of a reply");
        decode::record_body(&reply).expect("a record").into_owned()
    }

    /// The handle of an export's root.
    pub fn mount(&mut self, who: Credentials<'_>, path: &str) -> Result<Vec<u8>, CallError> {
        self.send(who, |call| call.mount(1, path.as_bytes()));
        decode::mount(&self.reply())
    }

    /// The handle of a file that is made, with a byte in it.
    pub fn create(&mut self, root: &[u8], name: &str) -> Vec<u8> {
        self.send(ROOT, |call| call.create(2, root, name.as_bytes(), 0o666, None));
        let file = decode::create(&self.reply()).expect("root may create").handle;
        self.send(ROOT, |call| call.write(3, &file, 0, StableHow::Unstable, &[1; 4096]));
        assert_eq!(decode::write(&self.reply()).map(|written| written.count), Ok(4096));
        file
    }

    /// Reads a file so often; whether the server lets it.
    pub fn read(&mut self, file: &[u8], count: u32) -> bool {
        for number in 0..count {
            self.send(ROOT, |call| call.read(100 + number, file, 0, 4096));
            if decode::read(&self.reply()).is_err() {
                return false;
            }
        }
        true
    }
}
