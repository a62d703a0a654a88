//! `cluster.toml`, the form in which people describe a cluster; `.json` has the same fields for programs.

use model::{Cluster, OperationError};
use operation::files::read_text;
use operation::marks::refuse_marks;
use operation::own_files::{OwnFile, mistaken};
use std::path::Path;

/// Reads a cluster file; paths in the result are relative to the working directory.
pub(super) fn read(path: &Path) -> Result<Cluster, OperationError> {
    let text = read_text(path, "cluster description")?;
    refuse_marks(path, &text)?;
    let is_json = path.extension().is_some_and(|extension| extension.eq_ignore_ascii_case("json"));
    let cluster: Result<Cluster, String> = if is_json {
        serde_json::from_str(&text).map_err(|error| error.to_string())
    } else {
        toml::from_str(&text).map_err(|error| error.to_string())
    };
    let mut cluster = cluster.map_err(|error| {
        if let Some(mistaken) = mistaken(&path.display().to_string(), &text, OwnFile::Cluster) {
            return mistaken;
        }
        OperationError::input(format_args!("{}: {}", path.display(), error.trim_end()))
            .hint("`tailwright plan --help` shows a cluster file")
    })?;
    let folder = path.parent().unwrap_or(Path::new(""));
    cluster.servers.iter_mut().for_each(|server| server.storage = folder.join(&server.storage));
    cluster.workloads.iter_mut().for_each(|workload| workload.trace = folder.join(&workload.trace));
    Ok(cluster)
}
