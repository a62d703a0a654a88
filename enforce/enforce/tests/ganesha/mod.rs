//! nfs-ganesha in separate namespaces, at the loopback address, and clients at several addresses of the
//! host.

#![allow(dead_code, unreachable_pub, reason = "several test programs use parts of it")]

use rustix::net::{AddressFamily, SocketFlags, SocketType, bind, connect, socket_with};
use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::time::Duration;
pub use testkit::nfs::{FOR_EVERYBODY, GaneshaServer, nfs_export as export};
use testkit::nfs::{MOUNT_PORT, NamespacedTest, ProcessNumbers};
use wire::rpc::MOUNT;
use wire::rpc::client::{CallEncoder, Credentials, StableHow};
use wire::rpc::decode::{self, CallError};

const SET_UP: &str = "ip link add v0 type veth peer name v1 && ip link set v0 up && ip link set v1 up \
    && for n in 1 2 3 4; do ip addr add 10.99.0.$n/24 dev v0 || exit 1; done";

/// Runs the test with this name again in separate namespaces, and its body there. Does nothing without
/// root or the programs.
pub fn in_namespaces(test: &str, programs: &[&str], body: impl FnOnce()) {
    NamespacedTest { name: test, processes: ProcessNumbers::Own, programs, set_up: SET_UP }.run(body);
}

/// Starts the server with these exports; they can be mounted when this returns.
pub fn start_server(exports: &[String]) -> GaneshaServer {
    let mut server = GaneshaServer::start(Some("127.0.0.1"), exports);
    // The server listens before it registers.
    while mount_port() == 0 {
        server.check_runs();
    }
    assert_eq!(mount_port(), u32::from(MOUNT_PORT));
    server
}

/// Returns the port of MOUNT by the portmapper; 0 while it is not registered.
fn mount_port() -> u32 {
    let mut portmapper = RpcClient(from("127.0.0.1", "127.0.0.1", 111));
    portmapper.send(Credentials::None, |call| call.getport(1, MOUNT, 3));
    decode::getport(&portmapper.reply()).unwrap()
}

/// Opens a connection from an address of the host.
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

/// A connection for calls.
pub struct RpcClient(pub TcpStream);

impl RpcClient {
    /// Connects to the proxy's NFS front, from an address.
    pub fn nfs(address: &str) -> Self {
        Self(from(address, "10.99.0.1", 2049))
    }

    /// Connects to the proxy's MOUNT front, from an address.
    pub fn mountd(address: &str) -> Self {
        Self(from(address, "10.99.0.1", 20048))
    }

    pub fn send(&mut self, who: Credentials<'_>, encode: impl FnOnce(&mut CallEncoder<'_>)) {
        let mut call = Vec::new();
        encode(&mut CallEncoder::new(&mut call, who));
        self.0.write_all(&call).expect("the proxy reads");
    }

    /// Returns the body of the next reply.
    pub fn reply(&mut self) -> Vec<u8> {
        let mut reply = vec![0; 4];
        self.0.read_exact(&mut reply).expect("a reply");
        let len = u32::from_be_bytes(reply[..].try_into().unwrap()) & 0x7fff_ffff;
        reply.resize(4 + len as usize, 0);
        self.0.read_exact(&mut reply[4..]).expect("the rest of a reply");
        decode::record_body(&reply).expect("a record").into_owned()
    }

    /// Returns the handle of an export's root.
    pub fn mount(&mut self, who: Credentials<'_>, path: &str) -> Result<Vec<u8>, CallError> {
        self.send(who, |call| call.mount(1, path.as_bytes()));
        decode::mount(&self.reply())
    }

    /// Creates a file with one byte in it, and returns its handle.
    pub fn create(&mut self, root: &[u8], name: &str) -> Vec<u8> {
        self.send(ROOT, |call| call.create(2, root, name.as_bytes(), 0o666, None));
        let file = decode::create(&self.reply()).expect("root may create").handle;
        self.send(ROOT, |call| call.write(3, &file, 0, StableHow::Unstable, &[1; 4096]));
        assert_eq!(decode::write(&self.reply()).map(|written| written.count), Ok(4096));
        file
    }

    /// Reads a file this many times. Returns false if the server refuses.
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
