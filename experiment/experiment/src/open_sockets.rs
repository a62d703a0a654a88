//! Options of the open sockets of a server: selection of sockets, and counts of what was set and restored.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::fmt;
use std::path::PathBuf;
use std::time::Duration;

/// An option of TCP sockets.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum SocketOption {
    /// TCP_NODELAY: `on` or `off`.
    NoDelay,
    /// TCP_CONGESTION: name of a congestion control algorithm.
    CongestionControl,
}

impl fmt::Display for SocketOption {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::NoDelay => "TCP_NODELAY",
            Self::CongestionControl => "TCP_CONGESTION",
        })
    }
}

/// A network namespace, identified by its file in nsfs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct NetworkNamespace {
    /// Device number of the file.
    pub device: u64,
    /// Inode number of the file, as in `net:[4026531840]`.
    pub inode: u64,
}

/// TCP sockets of a network namespace with one of these local ports, independent of the processes that have
/// them open.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct ServerSockets {
    pub option: SocketOption,
    /// Local ports, ascending.
    pub ports: Vec<u16>,
    pub namespace: NetworkNamespace,
    /// Directory in bpffs that holds the old values while the option is set.
    pub folder: PathBuf,
    /// Device number of that bpffs, because several can be mounted at one path; `None` in journals of older
    /// versions.
    #[serde(default)]
    pub device: Option<u64>,
}

impl fmt::Display for ServerSockets {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let ports: Vec<String> = self.ports.iter().map(u16::to_string).collect();
        write!(f, "{} of sockets at port {} (net:[{}])", self.option, ports.join(","), self.namespace.inode)
    }
}

/// Counts of sockets whose option was restored.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct SocketsTakenBack {
    /// Listening sockets that had been changed.
    pub listening: u64,
    /// Connected sockets that had been changed, or had inherited the option from a listening socket.
    pub connected: u64,
    /// Sockets among these that keep a value set by the server meanwhile.
    pub of_server: u64,
}

impl SocketsTakenBack {
    /// Returns true if none of the changed sockets was left.
    pub(crate) fn is_nothing(&self) -> bool {
        self.listening == 0 && self.connected == 0
    }
}

/// Totals of an experiment with open sockets.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, JsonSchema)]
pub struct SocketTotals {
    /// Maximum number of listening sockets changed at a time.
    pub listening: u64,
    /// Maximum number of connected sockets changed at a time.
    pub connected: u64,
    /// Number of times the value was set again after the server had changed it.
    pub set_again: u64,
    /// Maximum number of sockets at a time that refused the value.
    pub not_set: u64,
    /// True if the kernel reports the server's own setsockopt calls, which matters when the server sets the
    /// knob's value.
    #[serde(rename = "server_seen")]
    pub is_server_seen: bool,
    /// Number of passes over all sockets, with the knob on and off.
    pub passes: u64,
    /// Total time of these passes.
    #[serde(skip)]
    pub duration: Duration,
}

impl SocketTotals {
    /// Returns the mean time of a pass; `None` without any.
    pub fn pass_duration(&self) -> Option<Duration> {
        let passes = u32::try_from(self.passes).ok().filter(|passes| *passes > 0)?;
        Some(self.duration / passes)
    }
}
