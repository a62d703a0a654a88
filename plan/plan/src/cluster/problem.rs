//! The problem that `plan`, `admit`, `bound` and `explain` answer: a cluster whose files are found and whose device
//! profiles are read.

use crate::cluster::device::{warn_of_channels, warn_of_namesakes, warn_of_percentile};
use crate::cluster::hosts::count_largest_packet;
use crate::cluster::rules::{has_rules, uncounted_bytes};
use crate::cluster::source::ClusterSource;
use model::{ClientHost, Cluster, OperationError, ServerClass, WorkloadSpec};
use operation::{Notice, ProgressObserver};
use std::path::PathBuf;
use trace::OpenOptions;
use workload::device::StorageProfile;
use workload::profile_file::read_profile;

/// A cluster whose files are found and whose device profiles are read. A planner of limits reads footprints of the
/// traces beside it; a prediction has the traces with the workloads.
#[derive(Debug, Clone)]
pub struct ClusterProblem<W = WorkloadSpec> {
    /// Classes of servers, with paths as they can be opened.
    pub servers: Vec<ServerClass>,
    /// Hosts of clients whose links bounds count; empty if they count none.
    pub hosts: Vec<ClientHost>,
    /// The storage of each server class; empty if requests pass no storage.
    pub profiles: Vec<StorageProfile>,
    /// Workloads in the order of the input, with paths as they can be opened.
    pub workloads: Vec<W>,
    /// Factor on all work, at least 1.
    pub safety_margin: f64,
    /// Label of servers that may fail together.
    pub failure_domain: Option<String>,
    pub options: OpenOptions,
    /// True if cached footprints may be read and stored.
    pub cached: bool,
    /// The file that says what is asked, for reports.
    pub origin: PathBuf,
}

impl ClusterProblem {
    /// Reads everything except the traces, for all classes that have servers.
    ///
    /// # Errors
    ///
    /// If a file cannot be read or is malformed. The profile of a class without servers is read too, so that a
    /// cluster file is refused by every verb or by none.
    pub fn read(source: &ClusterSource, observer: &dyn ProgressObserver) -> Result<Self, OperationError> {
        let cluster = source.read()?;
        let profiles = read_profiles(&cluster)?;
        let problem = Self::new(source, cluster, profiles);
        problem.warn_of_classes(|class| class.count > 0, observer);
        let uncounted = uncounted_bytes(&problem.servers, &problem.workloads);
        uncounted.into_iter().for_each(|note| observer.notice(Notice::Note(note)));
        Ok(problem)
    }

    /// Reads everything except the traces, for one class: the named one, or the first with servers. The result has
    /// this class alone; no profile is read if requests pass only links.
    ///
    /// # Errors
    ///
    /// As [`Self::read`], or if the class does not exist.
    pub(crate) fn read_class(
        source: &ClusterSource,
        name: Option<&str>,
        link_only: bool,
        observer: &dyn ProgressObserver,
    ) -> Result<Self, OperationError> {
        let cluster = source.read()?;
        let profiles = if link_only { Vec::new() } else { read_profiles(&cluster)? };
        let index = choose_class(&cluster, name, observer)?;
        let mut problem = Self::new(source, cluster, profiles);
        let chosen = &problem.servers[index];
        problem.warn_of_classes(|class| class.class == chosen.class, observer);
        problem.servers = vec![problem.servers.swap_remove(index)];
        if !link_only {
            problem.profiles = vec![problem.profiles.swap_remove(index)];
        }
        Ok(problem)
    }

    fn new(source: &ClusterSource, cluster: Cluster, profiles: Vec<StorageProfile>) -> Self {
        let Cluster { safety_margin, failure_domain, mut servers, mut hosts, workloads } = cluster;
        count_largest_packet(&mut servers, &mut hosts);
        let origin = source.origin().to_owned();
        let options = source.options.clone();
        let cached = source.cached;
        Self { servers, hosts, profiles, workloads, safety_margin, failure_domain, options, cached, origin }
    }

    /// Returns true if the cluster file says where workloads may go.
    pub(crate) fn has_rules(&self) -> bool {
        has_rules(&self.workloads)
    }

    /// Warns of doubtful profiles of the classes that are used, and names the classes that can never be.
    fn warn_of_classes(&self, is_used: impl Fn(&ServerClass) -> bool, observer: &dyn ProgressObserver) {
        let mut used: Vec<&StorageProfile> = Vec::new();
        for (class, profile) in self.servers.iter().zip(&self.profiles) {
            if is_used(class) {
                warn_of_channels(class, profile, observer);
                // Classes that share a profile have the same doubts about it.
                if !used.contains(&profile) {
                    warn_of_percentile(&self.workloads, profile, observer);
                }
                used.push(profile);
            } else if class.count == 0 {
                let class = &class.class;
                observer
                    .notice(Notice::Note(format!("server class '{class}' has no servers and is not used")));
            }
        }
        warn_of_namesakes(&used, observer);
    }
}

impl<W> ClusterProblem<W> {
    /// Returns the problem with the same servers and other workloads.
    #[must_use]
    pub fn with_workloads<V>(&self, workloads: Vec<V>) -> ClusterProblem<V> {
        ClusterProblem {
            servers: self.servers.clone(),
            hosts: self.hosts.clone(),
            profiles: self.profiles.clone(),
            workloads,
            safety_margin: self.safety_margin,
            failure_domain: self.failure_domain.clone(),
            options: self.options.clone(),
            cached: self.cached,
            origin: self.origin.clone(),
        }
    }
}

/// Reads the device profiles of all classes.
fn read_profiles(cluster: &Cluster) -> Result<Vec<StorageProfile>, OperationError> {
    cluster.servers.iter().map(|class| read_profile(&class.storage)).collect()
}

/// Returns the index of the class of servers that predictions are for.
fn choose_class(
    cluster: &Cluster,
    name: Option<&str>,
    observer: &dyn ProgressObserver,
) -> Result<usize, OperationError> {
    let Some(name) = name else {
        let with_servers = cluster.servers.iter().enumerate().filter(|(_, class)| class.count > 0);
        let with_servers: Vec<_> = with_servers.map(|(index, _)| index).collect();
        // A cluster has been checked to have a server.
        let first = with_servers[0];
        if with_servers.len() > 1 {
            let class = &cluster.servers[first].class;
            let note = format!("predictions are for class '{class}'; other classes are left out");
            observer.notice(Notice::Note(note));
        }
        return Ok(first);
    };
    cluster.servers.iter().position(|class| class.class == name).ok_or_else(|| {
        let names: Vec<&str> = cluster.servers.iter().map(|class| class.class.as_str()).collect();
        OperationError::input(format_args!(
            "there is no server class '{name}': expected one of {}",
            names.join(", ")
        ))
    })
}
