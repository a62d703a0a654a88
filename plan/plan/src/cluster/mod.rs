//! The cluster that a user describes: servers, workloads and SLOs from files, checked.

mod device;
mod file;
mod groups;
mod hosts;
mod name;
mod placed;
mod prices;
mod problem;
mod rules;
mod slo_table;
mod source;
mod stored;

pub use device::enforced_class;
pub(crate) use device::{enforced_links, enforced_path, policy_server, server_name, warn_of_preemption};
pub use groups::group_cell;
pub(crate) use groups::read_groups;
pub use name::find_workload;
pub(crate) use placed::{PlacedWorkload, broken_rule};
pub(crate) use prices::prices;
pub use problem::ClusterProblem;
pub(crate) use rules::{has_rules, placement_rules, server_number};
pub use source::{ClusterDescription, ClusterSource, ClusterText, SloTableSource};
pub(crate) use stored::stored;
