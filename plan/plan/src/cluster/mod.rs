//! The cluster that a user describes: servers, workloads and SLOs from files, checked.

mod device;
mod file;
mod groups;
mod name;
mod problem;
mod slo_table;
mod source;

pub use device::enforced_class;
pub(crate) use device::{enforced_path, policy_server, server_name, warn_of_preemption};
pub use groups::group_cell;
pub(crate) use groups::read_groups;
pub use name::find_workload;
pub use problem::ClusterProblem;
pub use source::{ClusterDescription, ClusterSource, SloTableSource};
