//! A policy made real: on the hosts of a deployment, and before a storage server.

mod apply;
mod hosts_file;
mod proxy;

pub use apply::{ApplySettings, apply_policy};
pub use hosts_file::HostsFile;
pub use proxy::{ProxyFiles, ProxySettings, proxy_options};
