//! A real nbdkit on a socket in a folder of its own.

#![allow(unreachable_pub)]

use std::os::unix::net::UnixStream;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use tempfile::TempDir;

pub struct NbdProcess {
    child: Child,
    folder: TempDir,
}

impl NbdProcess {
    /// Starts nbdkit with a plugin and its arguments, which may name what is in the folder.
    pub fn start(plugin: impl FnOnce(&Path) -> Vec<String>) -> Option<Self> {
        let program = testkit::program("nbdkit")?;
        let folder = tempfile::tempdir().unwrap();
        let child = Command::new(program)
            .args(["-f", "-U"])
            .arg(folder.path().join("server"))
            .args(plugin(folder.path()))
            .stdin(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .expect("nbdkit starts");
        Some(Self { child, folder })
    }

    pub fn connect(&mut self) -> UnixStream {
        let socket = self.folder.path().join("server");
        testkit::connect_when_ready(&mut self.child, || UnixStream::connect(&socket))
    }

    #[allow(dead_code, reason = "several tests share it, and one puts sockets beside the server's")]
    pub fn folder(&self) -> &Path {
        self.folder.path()
    }
}

impl Drop for NbdProcess {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
