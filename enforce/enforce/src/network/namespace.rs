//! The network namespace in which tc, ip and nft configure a host.

use crate::command::SystemCommand;
use std::fmt;

/// The network namespace of a host; `None` is the one that this process runs in.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct HostNamespace(pub(super) Option<String>);

impl fmt::Display for HostNamespace {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.0 {
            Some(netns) => write!(f, "network namespace {netns}"),
            None => f.write_str("this machine"),
        }
    }
}

impl HostNamespace {
    pub(super) fn tc(&self, arguments: &str) -> SystemCommand {
        self.iproute2("tc", arguments)
    }

    pub(super) fn ip(&self, arguments: &str) -> SystemCommand {
        self.iproute2("ip", arguments)
    }

    pub(super) fn nft(&self, arguments: &str) -> SystemCommand {
        match &self.0 {
            // nft has no option for a namespace.
            Some(netns) => SystemCommand::new(&format!("ip netns exec {netns} nft {arguments}")),
            None => SystemCommand::new(&format!("nft {arguments}")),
        }
    }

    /// One run of tc for many lines, which the kernel executes in their order.
    pub(super) fn tc_batch(&self, lines: &[String]) -> SystemCommand {
        self.tc("-batch -").reading(lines.join("\n"))
    }

    fn iproute2(&self, program: &str, arguments: &str) -> SystemCommand {
        match &self.0 {
            Some(netns) => SystemCommand::new(&format!("{program} -n {netns} {arguments}")),
            None => SystemCommand::new(&format!("{program} {arguments}")),
        }
    }
}
