//! Options of the open sockets of a server: which sockets are meant, and what came of setting and taking back.

use serde::{Deserialize, Serialize};
use std::fmt;
use std::path::PathBuf;
use std::time::Duration;

/// An option of TCP sockets.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum SocketOption {
    /// TCP_NODELAY, which is `on` or `off`.
    NoDelay,
    /// TCP_CONGESTION, the name of a congestion control.
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

/// A network namespace, by the file that stands for it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct NetworkNamespace {
    /// The device of the file.
    pub device: u64,
    /// The number of the file there, as in `net:[4026531840]`.
    pub inode: u64,
}

/// The TCP sockets of a network namespace that have one of these local ports, whoever has them open.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct ServerSockets {
    /// Which option of them is set.
    pub option: SocketOption,
    /// Their ports, in ascending order.
    pub ports: Vec<u16>,
    /// The network namespace that they are in.
    pub namespace: NetworkNamespace,
    /// The folder in a file system of BPF where what they had before is found, while it is set.
    pub folder: PathBuf,
    /// The device of that file system, which tells it from others that are mounted at the same place; `None` in journals of
    /// versions that did not record it.
    #[serde(default)]
    pub device: Option<u64>,
}

impl fmt::Display for ServerSockets {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let ports: Vec<String> = self.ports.iter().map(u16::to_string).collect();
        write!(f, "{} of sockets at port {} (net:[{}])", self.option, ports.join(","), self.namespace.inode)
    }
}

/// What came of taking an option back.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct SocketsTakenBack {
    /// Listening sockets that had been changed.
    pub listening: u64,
    /// Connected sockets that had been changed, or had begun with what was set on the listening one.
    pub connected: u64,
    /// How many of these have what the server has set meanwhile, instead of what was before.
    pub of_server: u64,
}

impl SocketsTakenBack {
    /// Whether no socket was left that had been changed.
    pub fn is_nothing(&self) -> bool {
        self.listening == 0 && self.connected == 0
    }
}

/// What was done with open sockets in an experiment.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct SocketTotals {
    /// The most listening sockets that were changed at a time.
    pub listening: u64,
    /// The most connected sockets that were changed at a time.
    pub connected: u64,
    /// How often the value was set again on a connection that the server had changed.
    pub set_again: u64,
    /// The most sockets at a time that did not take the value.
    pub not_set: u64,
    /// Whether the kernel says when the server sets the option, so that it is known also where it sets what the knob has set.
    pub is_server_seen: bool,
    /// How often all sockets were looked at.
    pub passes: u64,
    /// How long this took altogether.
    pub duration: Duration,
}

impl SocketTotals {
    /// How long a look at all sockets took on average; `None` without any.
    pub fn pass_duration(&self) -> Option<Duration> {
        let passes = u32::try_from(self.passes).ok().filter(|passes| *passes > 0)?;
        Some(self.duration / passes)
    }
}
