//! Owners of a file's requests, and the files of a trace.

use crate::error::TraceError;
use crate::read::{OpenOptions, open_place};
use crate::recording::segment_files;
use crate::selection::{SplitKey, TracePlace, TraceSelection, recorded_server};
use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::path::{Path, PathBuf};

/// Owners of a file's requests, and the servers that they were sent to.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct TraceOwners {
    /// The number of requests of each workload or client; clients are `CLIENT@SERVER` where there are several servers.
    pub requests: BTreeMap<String, u64>,
    /// Names of the servers, as far as the file tells: `port-2049`, or `10.0.0.9:2049` of a capture split by clients.
    pub servers: BTreeSet<String>,
}

/// Returns the workloads or clients in a file or recording; reads all of it. `None` if the format does not
/// distinguish them.
///
/// # Errors
/// When the file cannot be read as a trace.
pub fn owners_of(
    path: &Path,
    key: SplitKey,
    options: &OpenOptions,
) -> Result<Option<TraceOwners>, TraceError> {
    let place = TracePlace { path: path.to_owned(), selection: TraceSelection::All(key) };
    let mut reader = open_place(&place, options)?;
    if reader.owners().is_none() {
        return Ok(None);
    }
    reader.by_ref().try_for_each(|request| request.map(drop))?;
    let owners = reader.owners().cloned().unwrap_or_default();
    let servers = owners.keys().filter_map(|owner| server_of(owner)).map(str::to_owned).collect();
    let requests = match key {
        SplitKey::Client => without_sole_server(owners),
        SplitKey::Workload => owners,
    };
    Ok(Some(TraceOwners { requests, servers }))
}

/// Removes the server from the names of clients if there is only one.
fn without_sole_server(owners: BTreeMap<String, u64>) -> BTreeMap<String, u64> {
    let servers: BTreeSet<_> = owners.keys().map(|owner| server_of(owner)).collect();
    if servers.len() > 1 {
        return owners;
    }
    let client =
        |owner: String| owner.rsplit_once('@').map_or(owner.clone(), |(client, _)| client.to_owned());
    owners.into_iter().map(|(owner, requests)| (client(owner), requests)).collect()
}

/// Returns the server in the name of an owner: of `CLIENT@SERVER`, and of a workload that is a server's port.
pub fn server_of(owner: &str) -> Option<&str> {
    match owner.rsplit_once('@') {
        Some((_, server)) => Some(server),
        None => Some(recorded_server(owner)).filter(|server| !server.is_empty()),
    }
}

/// Returns the files of the trace with this name: one, or the segments of a recording, the oldest first.
///
/// # Errors
/// When the folder of a recording cannot be listed.
pub fn files_of(name: &Path) -> io::Result<Vec<PathBuf>> {
    let path = TracePlace::of(name).path;
    if path.is_dir() { segment_files(&path) } else { Ok(vec![path]) }
}
