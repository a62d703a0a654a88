//! A policy made real: on the hosts of a deployment, and before a storage server.

mod apply;
mod conditions;
mod host_links;
mod hosts_file;
mod proxy;
mod proxy_change;
mod proxy_metrics;
mod template;

pub use apply::{ApplySettings, HostAnswer, apply_policy};
pub use conditions::server_runs;
pub use host_links::LinkChange;
pub use hosts_file::HostsFile;
pub use proxy::{ProxyFiles, ProxySettings, ProxyStart, ReloadAnswer, proxy_start};
pub use proxy_change::ProxyAnswer;
pub use proxy_metrics::ProxyMetricsPage;
pub use template::hosts_template;
