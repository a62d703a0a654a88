//! Asks an NFS server for the root handles of exports, so that the proxy knows whose a file handle is although its
//! client has mounted before the proxy began.
//!
//! The calls are the proxy's own and take another connection. A server that refuses them, as one that exports to nobody
//! but the clients, leaves the proxy with what it sees of the clients' own MOUNT calls.

use super::connector::connect_for_itself;
use super::control::ProxyHandle;
use super::listener::FrontListener;
use crate::deployment::FrontProtocol;
use std::io::{self, Read, Write};
use std::net::SocketAddr;
use std::time::Duration;
use wire::GrantedMount;
use wire::rpc::client::{CallEncoder, Credentials};
use wire::rpc::decode;

/// How long the server may take for each answer.
const TIMEOUT: Duration = Duration::from_secs(2);
/// How often a server that does not answer is asked: it may have been started together with the proxy.
const ATTEMPTS: u32 = 5;
/// The longest reply that is read: a handle and a list of authentication flavors.
const REPLY_MAX: usize = 4096;

/// A server that may know exports, and whether it demands to be told who connects.
#[derive(Debug, Clone, Copy)]
pub(super) struct ProbedServer {
    address: SocketAddr,
    announces: bool,
}

/// The servers behind the NFS fronts. One of them is the mount daemon.
pub(super) fn nfs_servers(listeners: &[FrontListener]) -> Vec<ProbedServer> {
    let mut servers = Vec::new();
    for FrontListener { protocol, connector, .. } in listeners {
        if *protocol == FrontProtocol::Nfs {
            servers.push(ProbedServer { address: connector.forward, announces: connector.announces });
        }
    }
    servers
}

/// Asks for the roots of these exports on a thread of its own, which tells the proxy what it learns.
pub(super) fn ask(servers: Vec<ProbedServer>, exports: Vec<Vec<u8>>, proxy: ProxyHandle) {
    std::thread::spawn(move || {
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
}

/// The root handle of an export; `None` if the server does not grant it.
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
