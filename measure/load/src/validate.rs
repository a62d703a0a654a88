//! Refuses workloads that cannot run, before servers are contacted and again when their sizes are known.

use crate::address_space::AddressSpace;
use crate::options::LoadOptions;
use crate::target::{LoadTarget, MemcachedTransport};
use crate::workload::{LoadWorkload, OfferedLoad};
use model::{NAME_EXPECTED, Op, OperationError, is_usable_name};
use std::collections::BTreeSet;

/// Maximum amount of data that servers accept in one NFS call by default.
const NFS_SIZE_MAX: u64 = 1 << 20;
/// Maximum amount of data that every NBD server has to accept in one command.
const NBD_SIZE_MAX: u64 = 32 << 20;
/// Maximum length of a value that fits into a datagram beside its command.
const UDP_VALUE_MAX: u64 = 60_000;
/// Maximum amount of data of a request by any other protocol.
const SIZE_MAX: u64 = 1 << 30;

/// Checks what can be checked without the servers: names, connections, sizes and the options.
pub(crate) fn check_workloads(
    workloads: &[LoadWorkload],
    options: &LoadOptions,
) -> Result<(), OperationError> {
    if u32::try_from(workloads.len()).is_err() {
        return Err(OperationError::input("too many workloads").hint("split them"));
    }
    let mut names = BTreeSet::new();
    for workload in workloads {
        let name = &workload.name;
        if !is_usable_name(name) {
            return Err(OperationError::input(format_args!("workload {name:?}: {NAME_EXPECTED}")));
        }
        if !names.insert(name) {
            return Err(OperationError::input(format_args!("there are two workloads '{name}'"))
                .hint("give every [[workload]] a name that no other has"));
        }
        check_workload(workload, options)
            .map_err(|error| error.about(format_args!("workload {}", workload.name)))?;
    }
    match options.realtime {
        Some(priority) if !(1..=99).contains(&priority) => {
            Err(OperationError::input(format_args!("real-time priority {priority}")).hint("expected 1 to 99"))
        }
        _ => Ok(()),
    }
}

fn check_workload(workload: &LoadWorkload, options: &LoadOptions) -> Result<(), OperationError> {
    if workload.connections == 0 {
        return Err(OperationError::input("0 connections").hint("expected at least 1"));
    }
    if workload.requests_per_connection.as_ref().is_some_and(|range| range.is_empty() || *range.start() == 0)
    {
        return Err(OperationError::input("connections without requests").hint(
            "expected at least one request per connection, and ranges from the smaller to the larger number",
        ));
    }
    let target = workload.target.inside_tls();
    let (smallest, largest, hint) = match target {
        LoadTarget::Nfs { .. } => (1, NFS_SIZE_MAX, "split them: one NFS call takes no more"),
        LoadTarget::Nbd { .. } => (1, NBD_SIZE_MAX, "split them: one NBD command takes no more"),
        LoadTarget::Memcached { transport: MemcachedTransport::Udp, .. } => {
            (0, UDP_VALUE_MAX, "use memcached:// for larger values: a request by UDP is one datagram")
        }
        LoadTarget::Memcached { .. } | LoadTarget::Http { .. } | LoadTarget::Grpc { .. } => {
            (0, SIZE_MAX, "split them")
        }
        LoadTarget::Echo { .. } => (1, SIZE_MAX, "split them; nothing cannot be sent back"),
        LoadTarget::Tls { .. } => unreachable!("TLS is around a target, once"),
    };
    for (_, size) in workload.offered.request_sizes() {
        if !(smallest..=largest).contains(&size) {
            return Err(OperationError::input(format_args!(
                "a request of {size} bytes, where {smallest} to {largest} are possible"
            ))
            .hint(hint));
        }
    }
    if let OfferedLoad::Drawn(load) = &workload.offered
        && let Err(error) = load.arrivals.instants(load.seed)
    {
        return Err(OperationError::input(format_args!("arrivals: {error}")));
    }
    match target {
        LoadTarget::Memcached { keys: 0, .. } => {
            Err(OperationError::input("0 keys").hint("expected at least 1"))
        }
        LoadTarget::Http { .. } | LoadTarget::Grpc { .. } | LoadTarget::Echo { .. }
            if options.verify_data =>
        {
            Err(OperationError::input(
                "answers of HTTP, gRPC and echo servers cannot be verified: nothing is stored",
            )
            .hint("leave data verification out, or this workload"))
        }
        _ => Ok(()),
    }
}

/// Checks that the server can execute every request.
pub(crate) fn check_against_server(
    workload: &LoadWorkload,
    space: &AddressSpace,
) -> Result<(), OperationError> {
    let AddressSpace::Bytes { len, block, is_writable, .. } = *space else { return Ok(()) };
    for (op, size) in workload.offered.request_sizes() {
        let (message, hint) = if op == Op::Write && !is_writable {
            ("writes to a read-only export".to_owned(), "export it writable, or ask for reads only")
        } else if size > len {
            (format!("a request of {size} bytes to {len} bytes"), "use a larger file or export")
        } else if size % block != 0 {
            let message =
                format!("a request of {size} bytes, which is no multiple of the server's block of {block}");
            (message, "choose sizes that are")
        } else {
            continue;
        };
        return Err(OperationError::input(message)
            .hint(hint)
            .about(format_args!("workload {}", workload.name)));
    }
    Ok(())
}

/// A request size as protocols encode it. [`check_workloads`] has refused all that do not fit.
pub(crate) fn checked_size(size: u64) -> u32 {
    u32::try_from(size).expect("sizes were checked before the run")
}
