//! The servers of a lab: command lines, client addresses, and readiness.

use super::readiness::ReadinessProbe;
use crate::device::SsdModel;
use crate::nbd::ExportedVolume;
use crate::programs;
use model::OperationError;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::path::PathBuf;
use units::{Bytes, Nanos};

/// A cache in memory.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MemcachedServer {
    /// The address on which it listens.
    pub address: SocketAddr,
    /// The memory for values; less than 2 MiB counts as 2 MiB.
    pub memory: Bytes,
    /// The number of threads; with 1, requests of all connections are served in one order.
    pub threads: u32,
}

/// A volume in memory without an emulated device: as fast as the machine.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NbdkitServer {
    /// The address on which it listens.
    pub address: SocketAddr,
    /// The size of the volume.
    pub size: Bytes,
}

/// A file server with its portmapper, on files in memory. A network namespace can have one, because the portmapper's
/// port is fixed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NfsServer {
    /// The address on which the file server and its MOUNT service listen. The portmapper listens on every address of
    /// the namespace, so that a proxy on another address with the same ports needs no portmapper of its own.
    pub bind: IpAddr,
    /// The port of the file server.
    pub port: u16,
    /// The port of the MOUNT service.
    pub mount_port: u16,
    /// The memory for files.
    pub memory: Bytes,
}

/// A server that offers files by HTTP.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HttpServer {
    /// The address on which it listens.
    pub address: SocketAddr,
    /// Names and sizes of the files, which are filled with zeroes.
    pub files: Vec<(String, Bytes)>,
}

/// The emulated SSD of [`crate::nbd`] as a process of its own.
#[derive(Debug, Clone, PartialEq)]
pub struct EmulatedSsdServer {
    /// The path of the `tailwright` program.
    pub program: PathBuf,
    /// The address on which it listens.
    pub address: SocketAddr,
    /// Service times of requests.
    pub model: SsdModel,
    /// The volumes that it exports.
    pub exports: Vec<ExportedVolume>,
    /// Time before a completion at which it stops sleeping and polls.
    pub spin: Nanos,
}

/// A server that a lab can start.
#[derive(Debug, Clone, PartialEq)]
pub enum LabService {
    /// The cache server memcached.
    Memcached(MemcachedServer),
    /// The program nbdkit with its memory plugin.
    Nbd(NbdkitServer),
    /// The programs nfs-ganesha and rpcbind.
    Nfs(NfsServer),
    /// The web server nginx.
    Http(HttpServer),
    /// The command `tailwright lab device`.
    Ssd(EmulatedSsdServer),
}

/// The path under which an NFS server exports its files.
pub(crate) const NFS_EXPORT: &str = "/export";

impl LabService {
    /// The name of the service in state files and logs.
    pub fn name(&self) -> &'static str {
        match self {
            Self::Memcached(_) => "memcached",
            Self::Nbd(_) => "nbd",
            Self::Nfs(_) => "nfs",
            Self::Http(_) => "http",
            Self::Ssd(_) => "ssd",
        }
    }

    /// Returns the URI for a client that reaches the server's host at `host`. A server that listens on another
    /// address than all or the loopback one has that in its URI. On the loopback address it listens behind a
    /// proxy, which takes the host's.
    pub fn uri(&self, host: IpAddr) -> String {
        match self {
            Self::Memcached(server) => format!("memcached://{}", reachable(server.address, host)),
            Self::Nbd(server) => format!("nbd://{}", reachable(server.address, host)),
            Self::Nfs(server) => {
                let ip = reachable(SocketAddr::new(server.bind, server.port), host).ip();
                format!("nfs://{ip}{NFS_EXPORT}?nfsport={}&mountport={}", server.port, server.mount_port)
            }
            Self::Http(server) => format!("http://{}/", reachable(server.address, host)),
            Self::Ssd(server) => {
                format!("nbd://{}/{}", reachable(server.address, host), server.exports[0].name)
            }
        }
    }

    /// Returns true if the server listens on the loopback address only, so that clients need a proxy.
    pub fn is_behind_proxy(&self) -> bool {
        let ip = match self {
            Self::Memcached(server) => server.address.ip(),
            Self::Nbd(server) => server.address.ip(),
            Self::Nfs(server) => server.bind,
            Self::Http(server) => server.address.ip(),
            Self::Ssd(server) => server.address.ip(),
        };
        ip.is_loopback()
    }

    /// Checks that the programs are installed that the service and the start of any server need.
    ///
    /// # Errors
    /// When one is not: with the package that has it.
    pub(crate) fn check_programs(&self) -> Result<(), OperationError> {
        let own: &[&str] = match self {
            Self::Memcached(_) => &["memcached"],
            Self::Nbd(_) => &["nbdkit"],
            Self::Nfs(_) => &["rpcbind", "ganesha.nfsd", "mount"],
            Self::Http(_) => &["nginx"],
            Self::Ssd(_) => &[],
        };
        ["ip", "unshare"].iter().chain(own).try_for_each(|name| programs::find(name).map(drop))
    }

    /// Returns the probe of the server's readiness, to run inside its namespace.
    pub(super) fn readiness(&self) -> ReadinessProbe {
        let listening = match self {
            Self::Memcached(server) => server.address,
            Self::Nbd(server) => server.address,
            Self::Http(server) => server.address,
            Self::Ssd(server) => server.address,
            Self::Nfs(_) => {
                return ReadinessProbe::MountRegistered(SocketAddr::new(Ipv4Addr::LOCALHOST.into(), 111));
            }
        };
        ReadinessProbe::AcceptsConnections(reachable(listening, Ipv4Addr::LOCALHOST.into()))
    }
}

/// Returns the address for clients of a server that listens on `listening`, where `host` is one of its host's
/// addresses.
fn reachable(listening: SocketAddr, host: IpAddr) -> SocketAddr {
    let ip = listening.ip();
    let ip = if ip.is_unspecified() || ip.is_loopback() { host } else { ip };
    SocketAddr::new(ip, listening.port())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn clients_are_told_the_address_that_they_reach() {
        let host = "10.77.0.2".parse().unwrap();
        let everywhere = NbdkitServer { address: "0.0.0.0:10809".parse().unwrap(), size: Bytes(1) };
        assert_eq!(LabService::Nbd(everywhere).uri(host), "nbd://10.77.0.2:10809");
        let inside =
            NfsServer { bind: Ipv4Addr::LOCALHOST.into(), port: 2049, mount_port: 20048, memory: Bytes(1) };
        let behind_proxy = LabService::Nfs(inside);
        assert!(behind_proxy.is_behind_proxy());
        assert_eq!(behind_proxy.uri(host), "nfs://10.77.0.2/export?nfsport=2049&mountport=20048");
    }
}
