//! `cluster.toml`, the form in which people describe a cluster.

use super::read_text;
use crate::failure::Failure;
use model::Cluster;
use std::path::Path;

/// Reads a cluster file; paths in the result are relative to the working directory.
pub(super) fn read(path: &Path) -> Result<Cluster, Failure> {
    let text = read_text(path, "cluster description")?;
    let mut cluster: Cluster = toml::from_str(&text).map_err(|error| {
        Failure::bad_input(format_args!("{}: {}", path.display(), error.to_string().trim_end()))
            .hint("`tailwright plan --help` shows a cluster file")
    })?;
    let folder = path.parent().unwrap_or(Path::new(""));
    cluster.servers.iter_mut().for_each(|server| server.storage = folder.join(&server.storage));
    cluster.workloads.iter_mut().for_each(|workload| workload.trace = folder.join(&workload.trace));
    Ok(cluster)
}
