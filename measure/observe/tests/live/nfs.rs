//! nfs-ganesha as Debian has it, in a network namespace of its own: calls that are in flight together are joined with
//! their replies by XID, in whatever order these come.

use crate::may_observe;
use crate::protocols::{at_the_same_time, watch_protocol};
use machine::clock::now;
use observe::{ClientRequest, ObservedRequest, Protocol};
use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::sync::Mutex;
use testkit::nfs::{
    FOR_EVERYBODY, GaneshaServer, MOUNT_PORT, NFS_PORT, NamespacedTest, ProcessNumbers, nfs_export,
};
use wire::rpc::client::{CallEncoder, Credentials, StableHow};
use wire::rpc::decode;

pub(crate) const ROOT: Credentials<'_> = Credentials::Unix { machine: "tests", uid: 0, gid: 0 };

/// Connections at a time, and how often each sends a burst of calls.
pub(crate) const CONNECTIONS: usize = 2;
pub(crate) const BURSTS: u32 = 60;

/// Calls of a burst. Each asks for as many bytes as no other one does.
pub(crate) const CALLS: u32 = 6;
pub(crate) const FILE_BYTES: u32 = 200_000;

/// The file's bytes that a call of a burst reads: the first ones many, the later ones few.
fn bytes_of(call: u32) -> u32 {
    if call < 2 { 150_000 + call * 4 } else { call * 100 }
}

/// The handle of a new file that is full of data.
fn full_file(server: &mut GaneshaServer) -> Vec<u8> {
    let mut mount = server.connect(MOUNT_PORT);
    let root = call(&mut mount, |calls| calls.mount(1, b"/export"));
    let root = decode::mount(&root).expect("the export is there");
    let mut nfs = server.connect(NFS_PORT);
    let file = call(&mut nfs, |calls| calls.create(2, &root, b"file", 0o644, Some(0)));
    let file = decode::create(&file).expect("a file can be made").handle;
    let data = vec![7; FILE_BYTES as usize];
    let written = call(&mut nfs, |calls| calls.write(3, &file, 0, StableHow::FileSync, &data));
    assert_eq!(decode::write(&written).expect("there is room").count, FILE_BYTES);
    file
}

/// A reply with the mark of its record, which is its only one.
fn reply(stream: &mut TcpStream) -> Vec<u8> {
    let mut record = vec![0; 4];
    stream.read_exact(&mut record).expect("the server answers");
    let mark = u32::from_be_bytes([record[0], record[1], record[2], record[3]]);
    assert!(mark >> 31 == 1, "a reply is one record");
    record.resize(4 + (mark & 0x7fff_ffff) as usize, 0);
    stream.read_exact(&mut record[4..]).expect("the server sends all of it");
    record
}

fn call(stream: &mut TcpStream, encode: impl FnOnce(&mut CallEncoder<'_>)) -> Vec<u8> {
    let mut out = Vec::new();
    encode(&mut CallEncoder::new(&mut out, ROOT));
    stream.write_all(&out).expect("the server reads");
    decode::record_body(&reply(stream)).expect("a complete record").into_owned()
}

/// A call as its client saw it.
pub(crate) struct SeenCall {
    pub(crate) request: ClientRequest,
    reply_bytes: u64,
    pub(crate) call: u32,
}

/// Bursts of calls that are sent at once; replies in the order in which they came.
pub(crate) fn talk(address: SocketAddr, file: &[u8]) -> Vec<SeenCall> {
    let mut stream = TcpStream::connect(address).expect("the server listens");
    stream.set_nodelay(true).expect("a TCP socket has this option");
    let client = stream.local_addr().expect("a connected socket has an address");
    let mut seen = Vec::new();
    for burst in 0..BURSTS {
        let mut out = Vec::new();
        for number in 0..CALLS {
            CallEncoder::new(&mut out, ROOT).read(burst * CALLS + number, file, 0, bytes_of(number));
        }
        let sent = now();
        stream.write_all(&out).expect("the server reads");
        for _ in 0..CALLS {
            let record = reply(&mut stream);
            let xid = u32::from_be_bytes(record[4..8].try_into().expect("four bytes"));
            assert_eq!(xid / CALLS, burst, "a reply to this burst");
            let request = ClientRequest { client, sent, received: now() };
            seen.push(SeenCall { request, reply_bytes: record.len() as u64, call: xid % CALLS });
        }
    }
    seen
}

#[test]
fn nfs_replies_in_any_order() {
    // Programs in the kernel report processes by the numbers of the machine.
    let test = NamespacedTest {
        name: "nfs::nfs_replies_in_any_order",
        processes: ProcessNumbers::Machine,
        programs: &[],
        set_up: "true",
    };
    if !may_observe() {
        return;
    }
    test.run(|| {
        let mut server = GaneshaServer::start(None, &[nfs_export(1, "/export", FOR_EVERYBODY)]);
        let file = full_file(&mut server);
        let address = SocketAddr::from(([127, 0, 0, 1], 2049));
        let calls = Mutex::new(Vec::new());
        let watched = watch_protocol(address, Protocol::Nfs, || {
            at_the_same_time(CONNECTIONS, || {
                let seen = talk(address, &file);
                let requests = seen.iter().map(|call| call.request).collect();
                calls.lock().expect("no client has failed").push(seen);
                requests
            })
        });
        let calls = calls.into_inner().expect("no client has failed");
        let mut overtaken = 0;
        for seen in &calls {
            overtaken += seen.windows(2).filter(|pair| pair[0].call > pair[1].call).count();
            check_calls(seen, &watched.requests);
        }
        let total = CONNECTIONS * (BURSTS * CALLS) as usize;
        println!("{total} calls of NFS, {overtaken} replies before that of an earlier call");
        assert_eq!(watched.requests.len(), total);
    });
}

/// Each call of a client is a request of its own, with its own reply: what it asked for is in no other reply of the
/// burst, and replies are transmitted in the order in which they came.
pub(crate) fn check_calls(seen: &[SeenCall], requests: &[ObservedRequest]) {
    let mut last = 0;
    for call in seen {
        let is_it = |request: &&ObservedRequest| {
            request.peer == call.request.client
                && request.answer_bytes == call.reply_bytes
                && request.points[1] >= call.request.sent
                && request.points[7] <= call.request.received
        };
        let found: Vec<_> = requests.iter().filter(is_it).collect();
        assert_eq!(found.len(), 1, "call {} of a burst, {} bytes", call.call, call.reply_bytes);
        assert!(found[0].points[7] >= last, "replies are transmitted in the order in which they come");
        last = found[0].points[7];
    }
}
