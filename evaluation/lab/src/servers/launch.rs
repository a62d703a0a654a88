//! The programs, arguments and configuration files with which the servers of a lab are started.

use super::service::{
    EmulatedSsdServer, HttpServer, LabService, MemcachedServer, NFS_EXPORT, NbdkitServer, NfsServer,
};
use crate::device::SsdModel;
use crate::programs;
use model::OperationError;
use std::ffi::OsString;
use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};
use units::Bytes;

/// A program and its arguments.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct LaunchCommand {
    pub(super) program: PathBuf,
    pub(super) args: Vec<OsString>,
}

impl LaunchCommand {
    /// The command that starts a service. Files that the service needs are written to `folder`.
    ///
    /// # Errors
    /// When a program is not installed or a file cannot be written.
    pub(super) fn for_service(service: &LabService, folder: &Path) -> Result<Self, OperationError> {
        match service {
            LabService::Memcached(server) => server.launch(),
            LabService::Nbd(server) => server.launch(),
            LabService::Nfs(server) => server.launch(),
            LabService::Http(server) => server.launch(folder),
            LabService::Ssd(server) => Ok(server.launch()),
        }
    }

    fn new(program: PathBuf, args: &[&str]) -> Self {
        Self { program, args: args.iter().map(OsString::from).collect() }
    }
}

/// The memory in whole mebibytes, rounded up; at least 2.
fn mebibytes(memory: Bytes) -> String {
    memory.0.div_ceil(1 << 20).max(2).to_string()
}

impl MemcachedServer {
    fn launch(&self) -> Result<LaunchCommand, OperationError> {
        let ip = self.address.ip().to_string();
        let port = self.address.port().to_string();
        let threads = self.threads.to_string();
        let args =
            ["-u", "root", "-l", &ip, "-p", &port, "-U", "0", "-m", &mebibytes(self.memory), "-t", &threads];
        Ok(LaunchCommand::new(programs::find("memcached")?, &args))
    }
}

impl NbdkitServer {
    fn launch(&self) -> Result<LaunchCommand, OperationError> {
        let ip = self.address.ip().to_string();
        let port = self.address.port().to_string();
        let size = format!("size={}", self.size.0);
        let args = ["--foreground", "--ipaddr", &ip, "--port", &port, "memory", &size];
        Ok(LaunchCommand::new(programs::find("nbdkit")?, &args))
    }
}

/// Starts rpcbind and the file server. It runs in mount and process namespaces of its own and mounts
/// empty file systems over /run and /var/lib/nfs: both programs keep state there, and must not touch that
/// of the machine. rpcbind goes to the background once it listens. The arguments are the configuration of
/// the file server, the memory for files in bytes, and the paths of rpcbind and ganesha.nfsd.
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

impl NfsServer {
    fn launch(&self) -> Result<LaunchCommand, OperationError> {
        let rpcbind = programs::find("rpcbind")?;
        let ganesha = programs::find("ganesha.nfsd")?;
        let configuration = self.configuration();
        let mut launch = LaunchCommand::new(
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

impl HttpServer {
    fn launch(&self, folder: &Path) -> Result<LaunchCommand, OperationError> {
        let nginx = programs::find("nginx")?;
        let root = folder.join("http");
        self.write_files(&root).map_err(|error| {
            OperationError::machine(format_args!("cannot write below {}: {error}", root.display()))
                .hint("the lab's folder must be writable")
        })?;
        let mut launch = LaunchCommand::new(nginx, &["-e", "stderr", "-c"]);
        launch.args.push(configuration_file(&root).into());
        Ok(launch)
    }

    /// Writes the files to offer and the configuration.
    fn write_files(&self, root: &Path) -> io::Result<()> {
        let content = root.join("files");
        fs::create_dir_all(&content)?;
        for (name, size) in &self.files {
            File::create(content.join(name))?.set_len(size.0)?;
        }
        fs::write(configuration_file(root), self.configuration(root))
    }

    fn configuration(&self, root: &Path) -> String {
        let address = self.address;
        let root = root.display();
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

fn configuration_file(root: &Path) -> PathBuf {
    root.join("nginx.conf")
}

impl EmulatedSsdServer {
    fn launch(&self) -> LaunchCommand {
        let SsdModel { channels, read, write, bandwidth } = self.model;
        let mut args = vec![
            "lab".to_owned(),
            "device".to_owned(),
            format!("--listen={}", self.address),
            format!("--channels={channels}"),
            format!("--read-time={read}"),
            format!("--write-time={write}"),
            format!("--spin={}ns", self.spin.0),
        ];
        args.extend(bandwidth.map(|rate| format!("--bandwidth={}B/s", rate.bytes_per_sec())));
        args.extend(self.exports.iter().map(|export| format!("--export={}={}", export.name, export.size)));
        LaunchCommand { program: self.program.clone(), args: args.into_iter().map(OsString::from).collect() }
    }
}
