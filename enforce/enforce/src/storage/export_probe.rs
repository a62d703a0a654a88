//! Queries an NFS server for the root handles of exports. The proxy can then attribute a file handle to
//! an export even if its client mounted before the proxy started.
//!
//! The calls are the proxy's own and use a separate connection. If the server refuses them, for example
//! because it exports only to the clients, the proxy depends on the clients' own MOUNT calls.

use super::connector::connect_for_itself;
use super::control::ProxyHandle;
use super::listener::FrontListener;
use std::io::{self, Read, Write};
use std::net::SocketAddr;
use std::sync::mpsc::{self, Receiver};
use std::time::Duration;
use wire::rpc::client::{CallEncoder, Credentials};
use wire::rpc::decode;
use wire::{ExportSource, GrantedMount};

/// Timeout of each answer of the server.
pub(super) const TIMEOUT: Duration = Duration::from_secs(2);
/// Number of attempts: the server may have been started together with the proxy.
const ATTEMPTS: u32 = 5;
/// Maximum length of a reply: a handle and a list of authentication flavors.
const REPLY_MAX: usize = 4096;

/// A server that may know exports, with a flag if it requires a PROXY header.
#[derive(Debug, Clone, Copy)]
pub(super) struct ProbedServer {
    address: SocketAddr,
    announces: bool,
}

/// Returns the servers behind the NFS fronts. One of them is the mount daemon.
pub(super) fn nfs_servers(listeners: &[FrontListener]) -> Vec<ProbedServer> {
    let mut servers = Vec::new();
    for FrontListener { protocol, connector, .. } in listeners {
        if protocol.row().export == ExportSource::FileHandle {
            servers.push(ProbedServer { address: connector.forward, announces: connector.announces });
        }
    }
    servers
}

/// Queries the roots of these exports on a separate thread, which reports them to the proxy. The receiver is
/// disconnected when the server has been asked for each of them once.
pub(super) fn ask(servers: Vec<ProbedServer>, exports: Vec<Vec<u8>>, proxy: ProxyHandle) -> Receiver<()> {
    let (asking, asked) = mpsc::channel();
    std::thread::spawn(move || {
        let mut asking = Some(asking);
        let mut unknown = exports;
        for attempt in 0..ATTEMPTS {
            std::thread::sleep(Duration::from_secs(u64::from(attempt)));
            unknown.retain(|export| {
                let root = servers.iter().find_map(|server| mount_root(*server, export).ok().flatten());
                root.is_none_or(|root| {
                    proxy.learn_export(GrantedMount { path: export.clone(), root });
                    false
                })
            });
            drop(asking.take());
            if unknown.is_empty() {
                return;
            }
        }
        for export in unknown {
            let export = String::from_utf8_lossy(&export).into_owned();
            eprintln!(
                "proxy: warning: the server does not tell the proxy the handle of {export:?}: it is known when a client mounts it"
            );
        }
    });
    asked
}

/// Returns the root handle of an export; `None` if the server does not grant it.
fn mount_root(server: ProbedServer, export: &[u8]) -> io::Result<Option<Vec<u8>>> {
    let mut stream = connect_for_itself(server.address, server.announces, TIMEOUT)?;
    let mut call = Vec::new();
    let credentials = Credentials::Unix { machine: "tailwright", uid: 0, gid: 0 };
    CallEncoder::new(&mut call, credentials).mount(1, export);
    stream.write_all(&call)?;
    let mut record = vec![0; 4];
    stream.read_exact(&mut record)?;
    let mark = u32::from_be_bytes([record[0], record[1], record[2], record[3]]);
    let len = (mark & !(1 << 31)) as usize;
    if mark >> 31 == 0 || len > REPLY_MAX {
        return Ok(None);
    }
    record.resize(4 + len, 0);
    stream.read_exact(&mut record[4..])?;
    Ok(decode::mount(&record[4..]).ok())
}
