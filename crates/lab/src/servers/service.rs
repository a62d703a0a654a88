//! What servers are told: their arguments and configuration, and when they are ready.

use crate::device::Model;
use crate::nbd::Export;
use crate::programs;
use model::OperationError;
use std::ffi::OsString;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::path::{Path, PathBuf};
use units::{Bytes, Nanos};

/// A cache in memory.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Memcached {
    /// Where it listens.
    pub address: SocketAddr,
    /// For values; less than 2 MiB is counted as that.
    pub memory: Bytes,
    /// Threads; 1 keeps requests of all connections in one order.
    pub threads: u32,
}

/// A volume in memory, without an emulated device: as fast as the machine.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Nbd {
    /// Where it listens.
    pub address: SocketAddr,
    /// Of the volume.
    pub size: Bytes,
}

/// A file server with its portmapper, on files in memory. One in a network namespace, because the portmapper has a fixed
/// port.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Nfs {
    /// Where the file server and its MOUNT listen. The portmapper listens on every address of the namespace, so that
    /// a proxy on another address with the same ports needs no portmapper of its own.
    pub bind: IpAddr,
    /// Of NFS.
    pub port: u16,
    /// Of MOUNT.
    pub mount_port: u16,
    /// For files.
    pub memory: Bytes,
}

/// Files by HTTP.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Http {
    /// Where it listens.
    pub address: SocketAddr,
    /// Names and sizes of the files that it has, filled with zeroes.
    pub files: Vec<(String, Bytes)>,
}

/// The emulated SSD of [`crate::nbd`] as a program.
#[derive(Debug, Clone, PartialEq)]
pub struct Ssd {
    /// The `tailwright` program.
    pub program: PathBuf,
    /// Where it listens.
    pub address: SocketAddr,
    /// How long requests take.
    pub model: Model,
    /// Its volumes.
    pub exports: Vec<Export>,
    /// How long before a completion to stop sleeping.
    pub spin: Nanos,
}

/// A server.
#[derive(Debug, Clone, PartialEq)]
pub enum Service {
    /// memcached.
    Memcached(Memcached),
    /// nbdkit with its memory plugin.
    Nbd(Nbd),
    /// nfs-ganesha and rpcbind.
    Nfs(Nfs),
    /// nginx.
    Http(Http),
    /// `tailwright lab device`.
    Ssd(Ssd),
}

/// The export of an NFS server.
pub const NFS_EXPORT: &str = "/export";

/// A program and its arguments.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Launch {
    pub(super) program: PathBuf,
    pub(super) args: Vec<OsString>,
}

impl Launch {
    fn new(program: PathBuf, args: &[&str]) -> Self {
        Self { program, args: args.iter().map(OsString::from).collect() }
    }
}

/// How it is seen that a server is ready.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Ready {
    /// It accepts connections.
    Listens(SocketAddr),
    /// Its portmapper knows the port of MOUNT, which is registered last.
    Registered(SocketAddr),
}

impl Service {
    /// A word for it.
    pub fn name(&self) -> &'static str {
        match self {
            Self::Memcached(_) => "memcached",
            Self::Nbd(_) => "nbd",
            Self::Nfs(_) => "nfs",
            Self::Http(_) => "http",
            Self::Ssd(_) => "ssd",
        }
    }

    /// How a client names it that reaches it at `host`, which counts where the server listens on every address.
    pub fn uri(&self, host: IpAddr) -> String {
        let seen = |address: SocketAddr| {
            let ip = if address.ip().is_unspecified() { host } else { address.ip() };
            SocketAddr::new(ip, address.port())
        };
        match self {
            Self::Memcached(it) => format!("memcached://{}", seen(it.address)),
            Self::Nbd(it) => format!("nbd://{}", seen(it.address)),
            Self::Nfs(it) => {
                let seen = seen(SocketAddr::new(it.bind, it.port));
                format!("nfs://{}{NFS_EXPORT}?nfsport={}&mountport={}", seen.ip(), it.port, it.mount_port)
            }
            Self::Http(it) => format!("http://{}/", seen(it.address)),
            Self::Ssd(it) => format!("nbd://{}/{}", seen(it.address), it.exports[0].name),
        }
    }

    /// Whether the programs are there that it needs, and those that start any server.
    ///
    /// # Errors
    /// The first that is not, with its package.
    pub fn check(&self) -> Result<(), OperationError> {
        let own: &[&str] = match self {
            Self::Memcached(_) => &["memcached"],
            Self::Nbd(_) => &["nbdkit"],
            Self::Nfs(_) => &["rpcbind", "ganesha.nfsd", "mount"],
            Self::Http(_) => &["nginx"],
            Self::Ssd(_) => &[],
        };
        ["ip", "unshare"].iter().chain(own).try_for_each(|name| programs::find(name).map(drop))
    }

    pub(super) fn ready(&self) -> Ready {
        let near = |address: SocketAddr| match address.ip() {
            ip if ip.is_unspecified() => SocketAddr::new(Ipv4Addr::LOCALHOST.into(), address.port()),
            _ => address,
        };
        match self {
            Self::Memcached(it) => Ready::Listens(near(it.address)),
            Self::Nbd(it) => Ready::Listens(near(it.address)),
            Self::Http(it) => Ready::Listens(near(it.address)),
            Self::Ssd(it) => Ready::Listens(near(it.address)),
            Self::Nfs(_) => Ready::Registered(SocketAddr::new(Ipv4Addr::LOCALHOST.into(), 111)),
        }
    }

    /// What to run; files that it needs are written to `folder`.
    pub(super) fn launch(&self, folder: &Path) -> Result<Launch, OperationError> {
        match self {
            Self::Memcached(it) => it.launch(),
            Self::Nbd(it) => it.launch(),
            Self::Nfs(it) => it.launch(),
            Self::Http(it) => it.launch(folder),
            Self::Ssd(it) => Ok(it.launch()),
        }
    }
}

/// In whole mebibytes.
fn mebibytes(memory: Bytes) -> String {
    memory.0.div_ceil(1 << 20).max(2).to_string()
}

impl Memcached {
    fn launch(&self) -> Result<Launch, OperationError> {
        let (ip, port) = (self.address.ip().to_string(), self.address.port().to_string());
        let threads = self.threads.to_string();
        let args =
            ["-u", "root", "-l", &ip, "-p", &port, "-U", "0", "-m", &mebibytes(self.memory), "-t", &threads];
        Ok(Launch::new(programs::find("memcached")?, &args))
    }
}

impl Nbd {
    fn launch(&self) -> Result<Launch, OperationError> {
        let (ip, port) = (self.address.ip().to_string(), self.address.port().to_string());
        let size = format!("size={}", self.size.0);
        let args = ["--foreground", "--ipaddr", &ip, "--port", &port, "memory", &size];
        Ok(Launch::new(programs::find("nbdkit")?, &args))
    }
}

/// In mount and process namespaces of its own, where /run and /var/lib/nfs are empty: rpcbind and the file server keep
/// their state there, and those of the machine must not be touched. rpcbind goes to the background once it listens.
const NFS_SCRIPT: &str = "set -e
ip link set lo up
mount -t tmpfs tmpfs /run
mkdir -p /run/rpcbind /run/export /var/lib/nfs
mount -t tmpfs -o size=\"$2\" tmpfs /run/export
mount -t tmpfs tmpfs /var/lib/nfs
mkdir -p /var/lib/nfs/ganesha
printf '%s' \"$1\" > /run/ganesha.conf
\"$3\"
exec \"$4\" -F -f /run/ganesha.conf -L /dev/stderr -p /run/ganesha.pid";

impl Nfs {
    fn launch(&self) -> Result<Launch, OperationError> {
        let (rpcbind, ganesha) = (programs::find("rpcbind")?, programs::find("ganesha.nfsd")?);
        let configuration = self.configuration();
        let mut launch = Launch::new(
            programs::find("sh")?,
            &["-c", NFS_SCRIPT, "nfs", &configuration, &self.memory.0.to_string()],
        );
        launch.args.extend([rpcbind.into(), ganesha.into()]);
        Ok(launch)
    }

    fn configuration(&self) -> String {
        let Self { bind, port, mount_port, .. } = self;
        format!(
            "NFS_CORE_PARAM {{ Bind_addr = {bind}; NFS_Port = {port}; MNT_Port = {mount_port}; NLM_Port = 0;
    Enable_NLM = false; Enable_RQUOTA = false; Protocols = 3, 4; mount_path_pseudo = true; }}
NFSV4 {{ Graceless = true; }}
EXPORT {{ Export_Id = 1; Path = /run/export; Pseudo = {NFS_EXPORT}; Access_Type = RW; Squash = none; SecType = sys;
    Protocols = 3, 4; Transports = TCP; FSAL {{ Name = VFS; }} }}
"
        )
    }
}

impl Http {
    fn launch(&self, folder: &Path) -> Result<Launch, OperationError> {
        let nginx = programs::find("nginx")?;
        let root = folder.join("http");
        let cannot = |error| {
            OperationError::machine(format_args!("cannot write below {}: {error}", root.display()))
                .hint("the lab's folder must be writable")
        };
        let content = root.join("files");
        std::fs::create_dir_all(&content).map_err(cannot)?;
        for (name, size) in &self.files {
            let file = std::fs::File::create(content.join(name)).map_err(cannot)?;
            file.set_len(size.0).map_err(cannot)?;
        }
        let configuration = root.join("nginx.conf");
        std::fs::write(&configuration, self.configuration(&root)).map_err(cannot)?;
        let mut launch = Launch::new(nginx, &["-e", "stderr", "-c"]);
        launch.args.push(configuration.into());
        Ok(launch)
    }

    fn configuration(&self, root: &Path) -> String {
        let (address, root) = (self.address, root.display());
        format!(
            "daemon off;
master_process off;
pid {root}/nginx.pid;
error_log stderr warn;
events {{ worker_connections 1024; }}
http {{
    access_log off;
    keepalive_requests 1000000000;
    client_body_temp_path {root}/body; proxy_temp_path {root}/proxy; fastcgi_temp_path {root}/fastcgi;
    uwsgi_temp_path {root}/uwsgi; scgi_temp_path {root}/scgi;
    server {{ listen {address}; location / {{ root {root}/files; }} }}
}}
"
        )
    }
}

impl Ssd {
    fn launch(&self) -> Launch {
        let Model { channels, read, write, bandwidth } = self.model;
        let mut args = vec![
            "lab".to_owned(),
            "device".to_owned(),
            format!("--listen={}", self.address),
            format!("--channels={channels}"),
            format!("--read={read}"),
            format!("--write={write}"),
            format!("--spin={}ns", self.spin.0),
        ];
        args.extend(bandwidth.map(|rate| format!("--bandwidth={}B/s", rate.bytes_per_sec())));
        args.extend(self.exports.iter().map(|export| format!("--export={}={}", export.name, export.size)));
        Launch { program: self.program.clone(), args: args.into_iter().map(OsString::from).collect() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn clients_are_told_the_address_that_they_reach() {
        let host = "10.77.0.2".parse().unwrap();
        let everywhere = Nbd { address: "0.0.0.0:10809".parse().unwrap(), size: Bytes(1) };
        assert_eq!(Service::Nbd(everywhere).uri(host), "nbd://10.77.0.2:10809");
        let inside =
            Nfs { bind: Ipv4Addr::LOCALHOST.into(), port: 2049, mount_port: 20048, memory: Bytes(1) };
        assert_eq!(Service::Nfs(inside).uri(host), "nfs://127.0.0.1/export?nfsport=2049&mountport=20048");
    }
}
