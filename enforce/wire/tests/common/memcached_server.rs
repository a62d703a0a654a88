//! A real memcached on a socket in a folder of its own, and requests to it in the binary protocol.

#![allow(unreachable_pub, dead_code, reason = "several tests share it, and none uses all")]

use std::os::unix::net::UnixStream;
use std::process::{Child, Command, Stdio};
use tempfile::TempDir;

pub struct MemcachedProcess {
    child: Child,
    /// Holds the socket.
    folder: TempDir,
}

impl MemcachedProcess {
    pub fn start() -> Option<Self> {
        let program = testkit::program("memcached")?;
        let folder = tempfile::tempdir().unwrap();
        // Root must name a user, others cannot; the socket is open to both.
        let child = Command::new(program)
            .args(["-u", "root", "-m", "64", "-a", "777", "-s"])
            .arg(folder.path().join("socket"))
            .stdin(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .expect("memcached starts");
        Some(Self { child, folder })
    }

    pub fn connect(&mut self) -> UnixStream {
        testkit::connect_when_ready(&mut self.child, || {
            UnixStream::connect(self.folder.path().join("socket"))
        })
    }
}

impl Drop for MemcachedProcess {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

pub fn binary_request(opcode: u8, extras: &[u8], key: &[u8], value: &[u8], opaque: u32) -> Vec<u8> {
    let mut out = vec![0x80, opcode];
    out.extend(u16::try_from(key.len()).unwrap().to_be_bytes());
    out.extend([u8::try_from(extras.len()).unwrap(), 0, 0, 0]);
    out.extend(u32::try_from(extras.len() + key.len() + value.len()).unwrap().to_be_bytes());
    out.extend(opaque.to_be_bytes());
    out.extend([0; 8]);
    [&out, extras, key, value].concat()
}
