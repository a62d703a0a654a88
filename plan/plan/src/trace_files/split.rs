//! A recording as traces, and what is known of a cluster file then.

use crate::trace_files::error::TraceFileError;
use crate::trace_files::output::TraceOutput;
use crate::trace_files::reader::ObservedReader;
use model::{Op, OperationError};
use operation::files::check_apart;
use operation::marks::MARK;
use operation::text::{free_file_name, toml_comment, toml_string};
use operation::{Notice, ProgressObserver};
use std::collections::BTreeSet;
use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use trace::{OpenOptions, SplitKey, TraceError, TracePlace, TraceSelection};
use units::{Bytes, Nanos, plural};

/// A trace that was split off.
#[derive(Debug, Clone, PartialEq)]
pub struct SplitPart {
    /// The name of the workload, or the address of the client.
    pub owner: String,
    /// The file with its trace.
    pub path: PathBuf,
    /// The number of its requests.
    pub requests: u64,
    pub reads: u64,
    /// The bytes that they read and wrote.
    pub bytes: u64,
    /// The time between the first and the last of them.
    pub span: Nanos,
}

/// The traces of a file's workloads or clients.
#[derive(Debug, Clone, PartialEq)]
pub struct SplitTrace {
    pub parts: Vec<SplitPart>,
    /// Names of the servers, as far as the file tells: `port-2049`, `10.0.0.9:2049`.
    pub servers: BTreeSet<String>,
}

/// Checks that a file that both files will name is a device profile.
///
/// # Errors
///
/// When it cannot be read or is none.
pub fn check_profile(path: &Path) -> Result<(), OperationError> {
    workload::profile_file::read_profile(path).map(drop)
}

/// Values of a cluster file that a trace does not tell; absent ones are marked `CHANGE`.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ClusterFacts {
    /// File of the device profile.
    pub storage: Option<PathBuf>,
    /// Rate of the server's link, such as `1Gbps`.
    pub network: Option<String>,
}

/// Writes a trace of each workload, or client, of a file into a folder, which is made if it is not there. Reads the file
/// once for the names, and once for each of them.
///
/// # Errors
///
/// When the file cannot be read or does not say whose requests are, or a trace cannot be written.
pub fn split_trace(
    path: &Path,
    key: SplitKey,
    options: &OpenOptions,
    folder: &Path,
    observer: &dyn ProgressObserver,
) -> Result<SplitTrace, TraceFileError> {
    let trace::TraceOwners { requests: owners, servers: all_servers } = trace::owners_of(path, key, options)?.ok_or_else(|| {
        OperationError::input(format_args!("{}: it does not say whose its requests are", path.display()))
            .hint("expected a recording (`proxy --record FOLDER`), observations (`load -o`) or a capture of tcpdump")
    })?;
    let is_nameless = |owner: &String| owner.is_empty() || owner.starts_with('@');
    if key == SplitKey::Client && owners.keys().all(is_nameless) {
        return Err(OperationError::input(format_args!(
            "{}: it does not say which clients have sent its requests",
            path.display()
        ))
        .hint("leave out --by client, or give a recording or a capture of tcpdump")
        .into());
    }
    std::fs::create_dir_all(folder).map_err(|error| {
        OperationError::machine(format_args!("{}: cannot make the folder: {error}", folder.display()))
            .hint("check the path and its permissions")
    })?;
    let servers = servers_of(owners.keys());
    if !servers.is_empty() {
        observer.notice(Notice::Note(format!(
            "the requests are those of several servers, {}: plan the workloads of each server in a file of its own",
            servers.join(", ")
        )));
    }
    let mut taken = BTreeSet::new();
    let mut parts = Vec::new();
    for owner in owners.into_keys() {
        let part = folder.join(format!("{}.parquet", free_file_name(&owner, &mut taken)));
        check_apart(Some(&part), [Some(path)])?;
        let selection = TraceSelection::Named(key, owner.clone());
        let source = TracePlace { path: path.to_owned(), selection };
        parts.push(split_off(&owner, &source, part, options, observer)?);
    }
    Ok(SplitTrace { parts, servers: all_servers })
}

/// Returns the servers of these owners if there are several.
fn servers_of<'a>(owners: impl Iterator<Item = &'a String>) -> Vec<&'a str> {
    let servers: BTreeSet<&str> = owners.filter_map(|owner| trace::server_of(owner)).collect();
    if servers.len() > 1 { servers.into_iter().collect() } else { Vec::new() }
}

fn split_off(
    owner: &str,
    source: &TracePlace,
    path: PathBuf,
    options: &OpenOptions,
    observer: &dyn ProgressObserver,
) -> Result<SplitPart, TraceFileError> {
    let mut part =
        SplitPart { owner: owner.to_owned(), path, requests: 0, reads: 0, bytes: 0, span: Nanos::ZERO };
    let mut first = None;
    let reader = ObservedReader::open_one_of_many(source, options, observer)?;
    let counted = reader.map(|request| {
        let request = request?;
        part.requests += 1;
        part.reads += u64::from(request.op == Op::Read);
        part.bytes = part.bytes.saturating_add(request.size.0);
        part.span = request.arrival - *first.get_or_insert(request.arrival);
        Ok::<_, TraceError>(request)
    });
    let output = TraceOutput { path: part.path.clone(), format: None };
    output.write(counted, observer)?;
    Ok(part)
}

/// Returns a cluster file for these traces with `CHANGE` in place of unknown values, which is refused until
/// they are filled in.
pub fn cluster_text(source: &Path, parts: &[SplitPart], facts: &ClusterFacts) -> String {
    let known =
        |value: Option<String>, what: &str| toml_string(&value.unwrap_or_else(|| format!("{MARK}: {what}")));
    let profile = facts.storage.as_ref().map(|path| path.display().to_string());
    let storage = known(profile, "device profile, from tailwright profile TARGET -o ssd.json");
    let network = known(facts.network.clone(), "the link, such as 1Gbps");
    let mut text = format!(
        "# The workloads of {}. Replace each CHANGE; `tailwright plan --help` describes the file.\n\
         # The margin leaves room: with 1.0 a workload that repeats its trace uses its limits up.\n\
         safety_margin = 1.1\n\n\
         [[server]]\n\
         class = \"server\"\n\
         count = 1\n\
         storage = {storage}\n\
         network = {network}\n",
        toml_comment(&source.display().to_string())
    );
    let servers = servers_of(parts.iter().map(|part| &part.owner));
    if !servers.is_empty() {
        let servers = servers.join(", ");
        // Writing to a string cannot fail.
        let _ = write!(
            text,
            "\n# These are requests to several servers, {servers}: keep the workloads of one here, and plan\n\
             # those of each other server in a file of its own.\n"
        );
    }
    for part in parts {
        let reads = part.reads as f64 / part.requests as f64 * 100.0;
        let bytes = Bytes(part.bytes);
        let requests = plural(part.requests, "request");
        let span = part.span;
        // Writing to a string cannot fail.
        let _ = write!(
            text,
            "\n# {requests} in {span}, {reads:.0} % reads, {bytes}\n\
             [[workload]]\nname = {}\ntrace = {}\nslo = \"CHANGE: such as 99.9% < 100ms\"\n",
            toml_string(&part.owner),
            toml_string(&part.path.display().to_string())
        );
    }
    text
}
