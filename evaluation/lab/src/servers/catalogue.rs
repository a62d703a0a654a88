//! The servers of `lab up` in their usual configuration.

use super::service::{EmulatedSsdServer, HttpServer, LabService, MemcachedServer, NbdkitServer, NfsServer};
use crate::device::SsdModel;
use crate::nbd::ExportedVolume;
use model::OperationError;
use std::net::{IpAddr, SocketAddr};
use units::{Bytes, Nanos};
use wire::Protocol;

/// A row of [`LAB_SERVERS`].
#[derive(Debug)]
pub struct LabServer {
    /// Name in arguments, state files and logs.
    pub name: &'static str,
    /// Description for help texts.
    pub words: &'static str,
    /// Configures the server to listen on an address of its host.
    pub service: fn(IpAddr) -> Result<LabService, OperationError>,
}

/// Every server, in the order in which they start.
pub static LAB_SERVERS: [LabServer; 5] = [
    LabServer {
        name: "memcached",
        words: "memcached, one thread",
        service: |ip| {
            let address = SocketAddr::new(ip, Protocol::Memcached.port());
            Ok(LabService::Memcached(MemcachedServer { address, memory: Bytes(256 << 20), threads: 1 }))
        },
    },
    LabServer {
        name: "nbd",
        words: "nbdkit, in memory",
        service: |ip| {
            // The emulated SSD has the usual port.
            let address = SocketAddr::new(ip, Protocol::Nbd.port() + 1);
            Ok(LabService::Nbd(NbdkitServer { address, size: Bytes(1 << 30) }))
        },
    },
    LabServer {
        name: "nfs",
        words: "nfs-ganesha and rpcbind, in memory",
        service: |ip| {
            let port = Protocol::Nfs.port();
            let mount_port = Protocol::Nfs.row().ports[1];
            Ok(LabService::Nfs(NfsServer { bind: ip, port, mount_port, memory: Bytes(1 << 30) }))
        },
    },
    LabServer {
        name: "http",
        words: "nginx",
        service: |ip| {
            let address = SocketAddr::new(ip, Protocol::Http1.port());
            let files = [("1k", 1 << 10), ("64k", 64 << 10), ("1m", 1 << 20)];
            let files = files.map(|(name, size)| (name.to_owned(), Bytes(size))).to_vec();
            Ok(LabService::Http(HttpServer { address, files }))
        },
    },
    LabServer {
        name: "ssd",
        words: "an emulated SSD by NBD: 4 channels, reads 400us+2ns/B, writes 700us+5ns/B",
        service: |ip| {
            let program = std::env::current_exe().map_err(|error| {
                OperationError::machine(format_args!("this program cannot find itself: {error}"))
            })?;
            let address = SocketAddr::new(ip, Protocol::Nbd.port());
            let exports = vec![ExportedVolume { name: "ssd".to_owned(), size: 1 << 30 }];
            Ok(LabService::Ssd(EmulatedSsdServer {
                program,
                address,
                model: SsdModel::LAB,
                exports,
                spin: Nanos::ZERO,
            }))
        },
    },
];

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;
    use std::net::Ipv4Addr;

    #[test]
    fn rows_name_their_services_and_no_two_servers_share_a_port() {
        let mut uris = BTreeSet::new();
        for row in &LAB_SERVERS {
            let service = (row.service)(Ipv4Addr::UNSPECIFIED.into()).expect("a configuration");
            assert_eq!(service.name(), row.name);
            let uri = service.uri([10, 77, 0, 2].into());
            let address = uri.split(['/', '?']).nth(2).expect("an address").to_owned();
            assert!(uris.insert(address), "{uri}");
        }
    }
}
