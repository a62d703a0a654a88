//! The NFS server of the kernel, in guests: calls that are in flight together are joined with their replies, in whatever
//! order these come, though no bytes of them are seen.

use crate::nfs::{BURSTS, CALLS, CONNECTIONS, FILE_BYTES, SeenCall, check_calls, talk};
use crate::protocols::at_the_same_time;
use crate::{observe_while, probes};
use observe::{IntendedWaits, ObservedRequest, ProbeSettings, Protocol, RequestQuality};
use std::fs::{self, OpenOptions};
use std::io::{Read, Write};
use std::net::SocketAddr;
use std::process::{Child, Command, Stdio};
use std::sync::Mutex;
use testkit::guest::mount_in_guest;

/// The modules of the server, each after those that it needs.
pub(crate) const MODULES: [&str; 6] = [
    "net/sunrpc/sunrpc",
    "fs/nfs_common/grace",
    "fs/lockd/lockd",
    "fs/nfs_common/nfs_acl",
    "net/sunrpc/auth_gss/auth_rpcgss",
    "fs/nfsd/nfsd",
];

/// The files of the portmapper, which the server registers with.
pub(crate) const FILES: [&str; 1] = ["/etc/netconfig"];

const PORT: u16 = 2049;

/// Until when the kernel believes what it is told of exports.
const FOR_EVER: &str = "2147483647";

/// All may read and write, from any port, and root is root; the number of the file system is given.
const EXPORT_FLAGS: u32 = 0x2 | 0x400 | 0x2000;

fn tell(file: &str, text: &str) {
    let told = OpenOptions::new().write(true).open(file).and_then(|mut file| file.write_all(text.as_bytes()));
    told.unwrap_or_else(|error| panic!("{file}: {error}"));
}

/// The server with this many threads, and the handle of a file that is full of data.
struct KernelServer {
    file: Vec<u8>,
    portmapper: Child,
}

impl KernelServer {
    fn start(threads: u32) -> Self {
        let mut portmapper = Command::new("rpcbind");
        portmapper.args(["-f", "-w"]).stdin(Stdio::null()).stdout(Stdio::inherit()).stderr(Stdio::inherit());
        let mut portmapper = portmapper.spawn().expect("rpcbind is in the guest");
        drop(testkit::connect_when_ready(&mut portmapper, || {
            std::net::TcpStream::connect(("127.0.0.1", 111))
        }));
        mount_in_guest("tmpfs", "/export");
        fs::write("/export/file", vec![7; FILE_BYTES as usize]).expect("there is room");
        mount_in_guest("nfsd", "/proc/fs/nfsd");
        tell("/proc/net/rpc/auth.unix.ip/channel", &format!("nfsd 127.0.0.1 {FOR_EVER} tests\n"));
        let export = format!("tests /export {FOR_EVER} {EXPORT_FLAGS} 65534 65534 0\n");
        tell("/proc/net/rpc/nfsd.export/channel", &export);
        tell("/proc/net/rpc/nfsd.fh/channel", &format!("tests 1 \\x00000000 {FOR_EVER} /export\n"));
        // Replies of more than the memory of a guest would allow.
        tell("/proc/fs/nfsd/max_block_size", "1048576\n");
        tell("/proc/fs/nfsd/versions", "+3 -4\n");
        tell("/proc/fs/nfsd/portlist", &format!("tcp {PORT}\n"));
        tell("/proc/fs/nfsd/threads", &format!("{threads}\n"));
        Self { file: handle_of("/export/file"), portmapper }
    }
}

impl Drop for KernelServer {
    fn drop(&mut self) {
        tell("/proc/fs/nfsd/threads", "0\n");
        let _ = (self.portmapper.kill(), self.portmapper.wait());
    }
}

/// The handle that the kernel gives clients for a file.
fn handle_of(path: &str) -> Vec<u8> {
    let mut file = OpenOptions::new().read(true).write(true).open("/proc/fs/nfsd/filehandle");
    let file = file.as_mut().expect("nfsd is mounted");
    file.write_all(format!("tests {path} 64\n").as_bytes()).expect("the file is exported");
    let mut text = String::new();
    file.read_to_string(&mut text).expect("the kernel answers");
    let digits = text.trim().trim_start_matches("\\x");
    let byte = |at: usize| u8::from_str_radix(&digits[at..at + 2], 16).expect("two digits");
    (0..digits.len()).step_by(2).map(byte).collect()
}

/// Calls of one connection whose replies came before that of an earlier call of their burst.
fn overtaken(calls: &[Vec<SeenCall>]) -> usize {
    calls.iter().map(|seen| seen.windows(2).filter(|pair| pair[0].call > pair[1].call).count()).sum()
}

pub(crate) fn the_nfs_server_of_the_kernel() {
    let server = KernelServer::start(4);
    let address = SocketAddr::from(([127, 0, 0, 1], PORT));
    for protocol in [None, Some(Protocol::Nfs)] {
        let calls = Mutex::new(Vec::new());
        let settings = ProbeSettings { protocol, ..probes(PORT) };
        let watched = observe_while(settings, IntendedWaits::Included, || {
            at_the_same_time(CONNECTIONS, || {
                let seen = talk(address, &server.file);
                let requests = seen.iter().map(|call| call.request).collect();
                calls.lock().expect("no client has failed").push(seen);
                requests
            })
        });
        let calls = calls.into_inner().expect("no client has failed");
        let skipped = watched.report.skipped_runs;
        println!("{protocol:?}: {} calls, {} overtaken, {skipped} skipped", watched.sent, overtaken(&calls));
        watched.expect_all();
        assert_eq!((watched.report.counts.untold, watched.report.counts.unrequested), (0, 0));
        let doubts =
            [RequestQuality::GUESSED, RequestQuality::WITHOUT_PROTOCOL, RequestQuality::SHARED_ANSWER];
        let is_doubtful = |request: &&ObservedRequest| doubts.iter().any(|doubt| request.quality.has(*doubt));
        assert_eq!(watched.requests.iter().find(is_doubtful), None);
        if skipped == 0 {
            assert_eq!(watched.requests.len(), CONNECTIONS * (BURSTS * CALLS) as usize);
            calls.iter().for_each(|seen| check_calls(seen, &watched.requests));
        }
    }
}
