//! A real NFS server with its portmapper, in a network namespace of its own: the client here writes and reads a file
//! through it, and unmodified clients (NFSv3 and v4) do so with this parser in between.

mod common;
#[path = "common/ganesha.rs"]
mod ganesha;
#[path = "common/relay.rs"]
mod relay;

use common::{Side, Watch};
use relay::{Relay, moved};
use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use testkit::nfs::{GaneshaServer, MOUNT_PORT, NFS_PORT, PORTMAP_PORT};
use wire::GrantedMount;
use wire::rpc::client::{CallEncoder, Credentials, StableHow};
use wire::rpc::{MOUNT, NFS, decode};

#[test]
fn nfs_in_a_namespace() {
    ganesha::in_namespaces("nfs_in_a_namespace", |server| {
        our_client(server);
        unmodified_clients();
    });
}

/// A connection that is watched on our side.
struct Talk {
    stream: TcpStream,
    watch: Watch,
    xid: u32,
}

impl Talk {
    fn new(stream: TcpStream) -> Self {
        Self { stream, watch: Watch::rpc(), xid: 100 }
    }

    /// Sends one call and gives the body of its reply.
    fn call(&mut self, encode: impl FnOnce(&mut CallEncoder<'_>, u32)) -> Vec<u8> {
        self.xid += 1;
        let mut out = Vec::new();
        encode(
            &mut CallEncoder::new(&mut out, Credentials::Unix { machine: "tests", uid: 0, gid: 0 }),
            self.xid,
        );
        self.watch.feed(Side::Client, &out).expect("our own calls are well-formed");
        self.stream.write_all(&out).unwrap();
        let mut record = Vec::new();
        let mut piece = [0; 50_000];
        loop {
            let read = self.stream.read(&mut piece).unwrap();
            assert!(read > 0, "the server hung up");
            self.watch.feed(Side::Server, &piece[..read]).expect("replies are well-formed");
            record.extend(&piece[..read]);
            if self.watch.wire.in_flight() == 0 && self.watch.is_drained() {
                break;
            }
        }
        let (reply, _) = *self.watch.replies().last().expect("a reply");
        assert!(reply.is_solicited && reply.id == u64::from(self.xid));
        decode::record_body(&record).expect("a complete record").into_owned()
    }
}

fn our_client(server: &mut GaneshaServer) {
    let mut portmap = Talk::new(server.connect(PORTMAP_PORT));
    let port = |talk: &mut Talk, program| {
        decode::getport(&talk.call(|calls, xid| calls.getport(xid, program, 3))).unwrap()
    };
    // The server listens before it registers; MOUNT comes last.
    while port(&mut portmap, MOUNT) == 0 {
        server.check_runs();
    }
    assert_eq!((port(&mut portmap, NFS), port(&mut portmap, MOUNT), port(&mut portmap, 1)), (2049, 20048, 0));

    let mut mount = Talk::new(server.connect(MOUNT_PORT));
    let refused = decode::mount(&mount.call(|calls, xid| calls.mount(xid, b"/nowhere")));
    assert!(matches!(refused, Err(decode::CallError::Status(_))), "{refused:?}");
    assert!(mount.watch.replies()[0].0.is_error);
    let root = decode::mount(&mount.call(|calls, xid| calls.mount(xid, b"/export"))).unwrap();
    assert_eq!(mount.watch.mounts, [GrantedMount { path: b"/export".to_vec(), root: root.clone() }]);

    let mut nfs = Talk::new(server.connect(NFS_PORT));
    decode::null(&nfs.call(|calls, xid| {
        calls.null(xid);
    }))
    .unwrap();
    let missing = decode::lookup(&nfs.call(|calls, xid| calls.lookup(xid, &root, b"ours")));
    assert_eq!(missing, Err(decode::CallError::Status(2)), "no such file");
    let file =
        decode::create(&nfs.call(|calls, xid| calls.create(xid, &root, b"ours", 0o644, Some(0)))).unwrap();
    let data: Vec<u8> = (0..300_001u32).map(|n| (n % 251).to_le_bytes()[0]).collect();
    let written =
        decode::write(&nfs.call(|calls, xid| calls.write(xid, &file.handle, 5, StableHow::Unstable, &data)))
            .unwrap();
    assert_eq!(written.count as usize, data.len());
    let committed = decode::commit(&nfs.call(|calls, xid| calls.commit(xid, &file.handle, 0, 0))).unwrap();
    assert_eq!(committed.verifier, written.verifier);
    assert_eq!(decode::getattr(&nfs.call(|calls, xid| calls.getattr(xid, &file.handle))), Ok(300_006));
    let found = decode::lookup(&nfs.call(|calls, xid| calls.lookup(xid, &root, b"ours"))).unwrap();
    assert_eq!((&found.handle, found.size), (&file.handle, Some(300_006)));
    let body = nfs.call(|calls, xid| calls.read(xid, &file.handle, 5, 400_000));
    assert_eq!(decode::read(&body), Ok(decode::ReadResult { data: &data, is_end_of_file: true }));
    assert!(std::fs::read("/run/export/ours").unwrap()[5..] == data, "the data is in the file");
}

/// Listens on one port and passes every connection on to another.
struct Proxy {
    port: u16,
    to: u16,
    stop: Arc<AtomicBool>,
    relays: Arc<Mutex<Vec<Relay>>>,
    thread: std::thread::JoinHandle<()>,
}

impl Proxy {
    fn start(to: u16) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let port = listener.local_addr().unwrap().port();
        let stop = Arc::new(AtomicBool::new(false));
        let relays = Arc::new(Mutex::new(Vec::new()));
        let stopped = stop.clone();
        let list = relays.clone();
        let thread = std::thread::spawn(move || {
            for near in listener.incoming() {
                if stopped.load(Ordering::SeqCst) {
                    return;
                }
                let far = TcpStream::connect(("127.0.0.1", to)).unwrap();
                list.lock().unwrap().push(Relay::start(near.unwrap(), far, Watch::rpc()));
            }
        });
        Self { port, to, stop, relays, thread }
    }

    fn finish(self) -> Vec<Watch> {
        self.stop.store(true, Ordering::SeqCst);
        drop(TcpStream::connect(("127.0.0.1", self.port)));
        self.thread.join().unwrap();
        let relays = std::mem::take(&mut *self.relays.lock().unwrap());
        assert!(!relays.is_empty(), "somebody connected on the way to {}", self.to);
        relays.into_iter().map(Relay::finish).collect()
    }
}

fn run(program: &str, args: &[&str]) -> Vec<u8> {
    let path: PathBuf = testkit::program("nfs-ls").expect("looked for outside").with_file_name(program);
    let output = Command::new(path).args(args).stdin(Stdio::null()).output().expect("a client starts");
    assert!(output.status.success(), "{program} {args:?}: {}", String::from_utf8_lossy(&output.stderr));
    output.stdout
}

fn unmodified_clients() {
    let data: Vec<u8> = (0..3_000_000u32).map(|n| n.wrapping_mul(2_654_435_761).to_be_bytes()[1]).collect();
    std::fs::write("/run/in", &data).unwrap();
    let mount = Proxy::start(20048);
    let nfs = Proxy::start(2049);
    let file = format!("nfs://127.0.0.1/export/file?version=3&nfsport={}&mountport={}", nfs.port, mount.port);
    run("nfs-cp", &["/run/in", &file]);
    assert!(run("nfs-cat", &[&file]) == data, "the data comes back");
    let mounts = mount.finish();
    assert!(mounts.iter().flat_map(|watch| &watch.mounts).any(|mount| mount.path == b"/export"));
    let watches = nfs.finish();
    let (read, written) = moved(&watches);
    assert_eq!(written, data.len() as u64, "NFSv3 writes are recognised");
    assert!(read >= data.len() as u64, "NFSv3 reads are recognised");
    assert!(watches.iter().chain(&mounts).all(|watch| watch.wire.in_flight() == 0));

    let nfs = Proxy::start(2049);
    let file = format!("nfs://127.0.0.1/export/file?version=4&nfsport={}", nfs.port);
    assert!(run("nfs-cat", &[&file]) == data, "the data comes back");
    let (read, written) = moved(&nfs.finish());
    assert!(read >= data.len() as u64 && written == 0, "NFSv4 reads are recognised: {read} {written}");
}
