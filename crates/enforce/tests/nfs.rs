//! A real NFS server in a network namespace of its own, with the proxy in its place: the server listens on the loopback
//! address, the proxy on the host's with the same ports, the portmapper is asked directly. Clients that know nothing
//! of it need no special ports; whose they are follows from their addresses and from what they mount.
//!
//! The test runs itself again inside the namespace. It needs root for that.

#[path = "../benches/soak/codec.rs"]
#[allow(dead_code, unreachable_pub, reason = "the soak uses the rest")]
mod codec;
mod proxy;

use codec::{BLOCK, ClientCodec};
use proxy::{Running, policy, profile};
use rustix::net::{AddressFamily, SocketFlags, SocketType, bind, connect, socket_with};
use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::process::{Child, Command, Stdio};
use tailwright_enforce::deployment::Deployment;
use tailwright_enforce::storage::{ProxyOptions, ProxySnapshot};
use wire::rpc::client::{CallEncoder, Credentials};
use wire::rpc::{MOUNT, decode};

/// Set in the second run, inside the namespace.
const INSIDE: &str = "TAILWRIGHT_ENFORCE_TEST_IN_NAMESPACE";
const SET_UP: &str = "ip link set lo up && ip link add v0 type veth peer name v1 && ip link set v0 up && ip link set v1 up \
    && for n in 1 2 3 4; do ip addr add 10.99.0.$n/24 dev v0 || exit 1; done \
    && mount -t tmpfs tmpfs /run && mkdir -p /run/rpcbind /run/export /run/gold /var/lib/nfs \
    && mount -t tmpfs tmpfs /var/lib/nfs && mkdir -p /var/lib/nfs/ganesha";
const CONFIGURATION: &str = "
NFS_CORE_PARAM { NFS_Port = 2049; MNT_Port = 20048; NLM_Port = 0; Enable_NLM = false; Enable_RQUOTA = false;
    Protocols = 3, 4; mount_path_pseudo = true; Bind_addr = 127.0.0.1; }
NFSV4 { Graceless = true; }
EXPORT { Export_Id = 1; Path = /run/export; Pseudo = /export; Access_Type = RW; Squash = none; SecType = sys;
    Protocols = 3, 4; Transports = TCP; FSAL { Name = VFS; } }
EXPORT { Export_Id = 2; Path = /run/gold; Pseudo = /gold; Access_Type = RW; Squash = none; SecType = sys;
    Protocols = 3, 4; Transports = TCP; FSAL { Name = VFS; } }
";
const HOSTS: &str = r#"
    [[host]]
    name = "here"
    device.v0 = "1Gbps"
    [[server]]
    name = "ssd"
    host = "here"
    address = ["10.99.0.1"]
    [server.storage]
    profile = "none"
    front = [{ protocol = "nfs", listen = "10.99.0.1", forward = "127.0.0.1" }]
    [[client]]
    workload = "gold"
    host = "here"
    export = "/gold"
    [[client]]
    workload = "silver"
    host = "here"
    address = ["10.99.0.3"]
"#;

#[test]
fn nfs_in_a_namespace() {
    if std::env::var_os(INSIDE).is_some() {
        return inside();
    }
    if !["ganesha.nfsd", "rpcbind", "nfs-ls"].into_iter().all(|name| testkit::program(name).is_some()) {
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
    let arguments = ["--exact", "nfs_in_a_namespace", "--nocapture"];
    let output = unshare().arg(itself).args(arguments).env(INSIDE, "1").output().expect("unshare runs");
    let said = [output.stdout, output.stderr].concat();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&said));
}

fn server(name: &str, args: &[&str]) -> Child {
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
    let mut stream = TcpStream::connect(("10.99.0.1", 111)).expect("the portmapper listens");
    let mut call = Vec::new();
    CallEncoder::new(&mut call, Credentials::None).getport(1, MOUNT, 3);
    stream.write_all(&call).unwrap();
    let mut reply = vec![0; 4];
    stream.read_exact(&mut reply).unwrap();
    let len = u32::from_be_bytes(reply[..].try_into().unwrap()) & 0x7fff_ffff;
    reply.resize(4 + len as usize, 0);
    stream.read_exact(&mut reply[4..]).unwrap();
    decode::getport(&decode::record_body(&reply).unwrap()).unwrap()
}

fn inside() {
    let set_up = Command::new("sh").args(["-c", SET_UP]).status().expect("a shell");
    assert!(set_up.success(), "the namespace is set up");
    std::fs::write("/run/ganesha.conf", CONFIGURATION).unwrap();
    let mut rpcbind = server("rpcbind", &["-f"]);
    await_port(111, &mut rpcbind);
    let log = ["-F", "-f", "/run/ganesha.conf", "-L", "/run/ganesha.log", "-p", "/run/ganesha.pid"];
    let mut ganesha = server("ganesha.nfsd", &log);
    await_port(2049, &mut ganesha);
    await_port(20048, &mut ganesha);
    // It listens before it registers.
    while mount_port() == 0 {
        assert!(ganesha.try_wait().expect("a child can be asked").is_none(), "the server ended");
    }
    assert_eq!(mount_port(), 20048);
    let deployment = Deployment::parse(HOSTS).unwrap_or_else(|error| panic!("{error}"));
    let policy = policy(&[("gold", 0, &[]), ("silver", 1, &[(0.5, 0.1)])]);
    let proxy = Running::start(ProxyOptions::new("ssd", deployment, Some(policy), profile()));
    unmodified_clients();
    let seen = |name: &str| {
        let snapshot: ProxySnapshot = proxy.remote.status().expect("it runs");
        let found = snapshot.workloads.into_iter().find(|seen| seen.workload == name);
        found.map_or((0, 0), |seen| (seen.requests, seen.bytes))
    };
    assert!(seen("(unknown)").1 >= 6_000_000, "the clients' reads and writes are recognised");
    // By what it mounts, by its address; and one that is neither.
    let before = seen("(unknown)");
    let moved = [own_client("10.99.0.2", "/gold", 1), own_client("10.99.0.3", "/export", 2)];
    assert_eq!((seen("gold"), seen("silver"), seen("(unknown)")), (moved[0], moved[1], before));
    let unknown = own_client("10.99.0.4", "/export", 3);
    assert_eq!((seen("gold"), seen("silver")), (moved[0], moved[1]));
    assert_eq!(seen("(unknown)"), (before.0 + unknown.0, before.1 + unknown.1));
    let report = proxy.drain();
    assert_eq!((report.snapshot.cut, report.snapshot.buffered_bytes, report.snapshot.outstanding), (0, 0, 0));
    // Both end with the namespace.
    let _ = (ganesha.kill(), rpcbind.kill(), ganesha.wait(), rpcbind.wait());
}

fn run(program: &str, args: &[&str]) -> Vec<u8> {
    let path = testkit::program("nfs-ls").expect("looked for outside").with_file_name(program);
    let output = Command::new(path).args(args).stdin(Stdio::null()).output().expect("a client starts");
    assert!(output.status.success(), "{program} {args:?}: {}", String::from_utf8_lossy(&output.stderr));
    output.stdout
}

/// Nothing in their addresses hints at a proxy.
fn unmodified_clients() {
    let data: Vec<u8> = (0..3_000_000u32).map(|n| n.wrapping_mul(2_654_435_761).to_be_bytes()[1]).collect();
    std::fs::write("/run/in", &data).unwrap();
    run("nfs-cp", &["/run/in", "nfs://10.99.0.1/export/file?version=3"]);
    assert!(std::fs::read("/run/export/file").unwrap() == data, "the data is in the file");
    for version in [3, 4] {
        let file = format!("nfs://10.99.0.1/export/file?version={version}");
        assert!(run("nfs-cat", &[&file]) == data, "version {version}: the data comes back");
        let folder = format!("nfs://10.99.0.1/export?version={version}");
        let list = String::from_utf8(run("nfs-ls", &[&folder])).unwrap();
        assert!(list.lines().any(|line| line.contains("3000000") && line.ends_with("file")), "{list}");
    }
}

fn from(address: &str, port: u16) -> TcpStream {
    let socket = socket_with(AddressFamily::INET, SocketType::STREAM, SocketFlags::CLOEXEC, None).unwrap();
    bind(&socket, &SocketAddr::new(address.parse().unwrap(), 0)).unwrap();
    connect(&socket, &SocketAddr::from(([10, 99, 0, 1], port))).unwrap();
    socket.into()
}

/// Writes a file, all at once, and reads it back; gives its requests and their bytes.
fn own_client(address: &str, path: &str, owner: u32) -> (u64, u64) {
    const PIECES: usize = 20;
    let mut stream = from(address, 2049);
    let mut codec =
        ClientCodec::nfs(path, &mut from(address, 20048), &mut stream, owner).expect("it is mounted");
    let piece = |number: usize| vec![u8::try_from(number + 1).unwrap(); 4 * BLOCK];
    let mut answers = |said: &[u8], codec: &mut ClientCodec| {
        let mut writer = stream.try_clone().unwrap();
        std::thread::scope(|scope| {
            scope.spawn(move || writer.write_all(said).unwrap());
            let mut answers = Vec::new();
            let mut bytes = vec![0; 65536];
            while answers.len() < PIECES {
                let read = stream.read(&mut bytes).unwrap();
                assert!(read > 0, "it hung up");
                codec.feed(&bytes[..read]);
                answers.extend(std::iter::from_fn(|| codec.answer().unwrap()));
            }
            answers.sort_by_key(|answer| answer.id);
            answers
        })
    };
    let mut said = Vec::new();
    for number in 0..PIECES {
        codec.write(&mut said, 4 * number, &piece(number));
    }
    assert!(answers(&said, &mut codec).iter().all(|answer| !answer.error));
    said.clear();
    for number in 0..PIECES {
        codec.read(&mut said, 4 * number, 4 * BLOCK);
    }
    for (number, answer) in answers(&said, &mut codec).iter().enumerate() {
        assert!(answer.data.as_deref() == Some(&piece(number)[..]), "piece {number}");
    }
    let whole: Vec<u8> = (0..PIECES).flat_map(piece).collect();
    assert!(std::fs::read(format!("/run{path}/file{owner}")).unwrap() == whole, "the data is in the file");
    (2 * PIECES as u64, 2 * whole.len() as u64)
}
