//! A real NFS server in a separate network namespace, with the proxy in its place: the server listens on
//! the loopback address, the proxy on the host's address with the same ports, and clients query the
//! portmapper directly. Clients are unaware of the proxy and need no special ports; their addresses and
//! mounts identify their workload.

#[path = "../benches/soak/codec.rs"]
#[allow(dead_code, unreachable_pub, reason = "the soak uses the rest")]
mod codec;
mod ganesha;
mod proxy;

use codec::{BLOCK, ClientCodec};
use enforce::deployment::Deployment;
use enforce::storage::{ProxyOptions, ProxySnapshot};
use ganesha::{FOR_EVERYBODY, export, from, in_namespaces, start_server};
use proxy::{Running, policy, profile};
use std::io::{Read, Write};
use std::process::{Command, Stdio};

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
    in_namespaces("nfs_in_a_namespace", &["nfs-ls"], inside);
}

fn inside() {
    let _server = start_server(&[export(1, "/export", FOR_EVERYBODY), export(2, "/gold", FOR_EVERYBODY)]);
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
    // Identified by its mount, by its address, and by neither.
    let before = seen("(unknown)");
    let moved = [own_client("10.99.0.2", "/gold", 1), own_client("10.99.0.3", "/export", 2)];
    assert_eq!((seen("gold"), seen("silver"), seen("(unknown)")), (moved[0], moved[1], before));
    let unknown = own_client("10.99.0.4", "/export", 3);
    assert_eq!((seen("gold"), seen("silver")), (moved[0], moved[1]));
    assert_eq!(seen("(unknown)"), (before.0 + unknown.0, before.1 + unknown.1));
    let report = proxy.drain();
    assert_eq!((report.snapshot.cut, report.snapshot.buffered_bytes, report.snapshot.outstanding), (0, 0, 0));
}

fn run(program: &str, args: &[&str]) -> Vec<u8> {
    let path = testkit::program("nfs-ls").expect("looked for outside").with_file_name(program);
    let output = Command::new(path).args(args).stdin(Stdio::null()).output().expect("a client starts");
    assert!(output.status.success(), "{program} {args:?}: {}", String::from_utf8_lossy(&output.stderr));
    output.stdout
}

/// Addresses that contain no hint of a proxy.
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

/// Writes a file, all at once, and reads it back. Returns the number of requests and their bytes.
fn own_client(address: &str, path: &str, owner: u32) -> (u64, u64) {
    const PIECES: usize = 20;
    let mut stream = from(address, "10.99.0.1", 2049);
    let mut codec = ClientCodec::nfs(path, &mut from(address, "10.99.0.1", 20048), &mut stream, owner)
        .expect("it is mounted");
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
